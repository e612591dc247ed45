/* Checks the exercise of the labels in nncuda_cross_entropy.cuh (learn/check.h). */
#include "phase5_production/05_pytorch/nncuda_label_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(label_lesson())

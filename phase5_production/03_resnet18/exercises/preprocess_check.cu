/* Checks the exercises of preprocess.cuh (learn/check.h). */
#include "phase5_production/03_resnet18/preprocess_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(preprocess_lesson())

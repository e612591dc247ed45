/* Checks the exercises on tables of tensors (learn/check.h). */
#include "phase4_training/01_sgd/sgd_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(sgd_momentum_lesson())

/* Checks the exercise on Nesterov's momentum (learn/check.h). */
#include "phase4_training/01_sgd/sgd_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(sgd_nesterov_lesson())

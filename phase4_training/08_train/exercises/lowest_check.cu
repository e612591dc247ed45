/* Checks lowest_finite (learn/check.h). */
#include "phase4_training/08_train/search_kernels_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(lowest_lesson())

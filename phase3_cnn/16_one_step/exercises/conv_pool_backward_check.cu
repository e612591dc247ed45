/* Checks conv_pool_taps (learn/check.h). */
#include "phase3_cnn/16_one_step/one_step_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(conv_pool_backward_lesson())

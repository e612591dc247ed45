/* Checks pool_backward_gather (learn/check.h). */
#include "phase3_cnn/09_pooling/pooling_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(max_pool2d_backward_lesson())

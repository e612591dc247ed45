/* Checks global_avg_reduce (learn/check.h). */
#include "phase3_cnn/09_pooling/pooling_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(global_avg_pool2d_forward_lesson())

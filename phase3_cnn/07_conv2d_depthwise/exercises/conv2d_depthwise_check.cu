/* Checks depthwise_strip (learn/check.h). */
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(conv2d_depthwise_forward_lesson())

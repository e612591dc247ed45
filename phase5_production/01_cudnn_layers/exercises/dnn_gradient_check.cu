/* Checks dnn_scale (learn/check.h): a gradient of several parts. */
#include "phase5_production/01_cudnn_layers/dnn_describe_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(dnn_gradient_lesson())

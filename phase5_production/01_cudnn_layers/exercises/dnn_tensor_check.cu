/* Checks dnn_tensor (learn/check.h): an array is read as the descriptor says. */
#include "phase5_production/01_cudnn_layers/dnn_describe_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(dnn_tensor_lesson())

/* Checks dnn_algorithm (learn/check.h): tables of algorithms, with all that can be wrong with one. */
#include "phase5_production/01_cudnn_layers/dnn_describe_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(dnn_pick_lesson())

/* Checks the exercises of fused_batchnorm_relu_softmax.cuh (learn/check.h). */
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(fused_lesson())

/* Checks the exercises of add_relu_half.cuh (learn/check.h). */
#include "phase5_production/04_resnet18_fused/add_relu_half_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(add_relu_half_lesson())

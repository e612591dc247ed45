/* Checks the exercises of pool_linear.cuh (learn/check.h). */
#include "phase5_production/04_resnet18_fused/pool_linear_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(pool_linear_lesson())

/* Checks the exercises of stem_pool.cuh (learn/check.h). */
#include "phase5_production/04_resnet18_fused/stem_pool_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(stem_pool_lesson())

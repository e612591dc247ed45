/* Checks the exercises of depthwise_half.cuh (learn/check.h). */
#include "phase5_production/08_engine/depthwise_half_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(depthwise_half_lesson())

/* Checks the exercises of concat_half.cuh (learn/check.h). */
#include "phase5_production/08_engine/concat_half_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(concat_half_lesson())

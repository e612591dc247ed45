/* Checks the exercise int8_dp4a (learn/check.h). */
#include "phase5_production/09_int8/int8_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(linear_int8_lesson())

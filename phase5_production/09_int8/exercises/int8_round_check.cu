/* Checks the exercise int8_round (learn/check.h). */
#include "phase5_production/09_int8/int8_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(int8_round_lesson())

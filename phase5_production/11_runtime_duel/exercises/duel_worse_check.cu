/* Checks duel_worse (learn/check.h). */
#include "phase5_production/11_runtime_duel/duel_compare_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(duel_worst_lesson())

/* Checks the exercises of attention.cuh (learn/check.h). */
#include "phase1_building_blocks/attention_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(attention_lesson(true))

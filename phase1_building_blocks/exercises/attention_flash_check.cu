/* Checks the exercise of attention_flash.cuh (learn/check.h). */
#include "phase1_building_blocks/attention_flash.cuh"
#include "phase1_building_blocks/attention_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(attention_lesson(false))

/* Checks the exercise of attention_tensor_core.cuh (learn/check.h). */
#include "phase1_building_blocks/attention_tensor_core_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(attention_bf16_lesson(false))

/* Checks the exercise of attention_backward.cuh (learn/check.h). */
#include "phase1_building_blocks/attention_backward_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(attention_gradients_lesson(true))

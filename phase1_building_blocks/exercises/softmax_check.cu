/* Checks the exercises of softmax.cuh, forward (learn/check.h). */
#include "phase1_building_blocks/softmax_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(softmax_forward_lesson())

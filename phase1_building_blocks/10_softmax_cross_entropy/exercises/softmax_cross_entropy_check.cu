/* Checks the exercises of softmax_cross_entropy.cuh (learn/check.h). */
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(softmax_cross_entropy_lesson())

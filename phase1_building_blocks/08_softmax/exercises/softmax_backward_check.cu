/* Checks the exercises of softmax.cuh, backward (learn/check.h). */
#include "phase1_building_blocks/08_softmax/softmax_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(softmax_backward_lesson())

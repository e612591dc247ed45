/* Checks the exercises of softmax_dropout.cuh (learn/check.h). */
#include "phase1_building_blocks/12_dropout/softmax_dropout_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(softmax_dropout_lesson())

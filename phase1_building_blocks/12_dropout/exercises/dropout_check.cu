/* Checks the exercises of dropout.cuh (learn/check.h). */
#include "phase1_building_blocks/12_dropout/dropout_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(dropout_lesson())

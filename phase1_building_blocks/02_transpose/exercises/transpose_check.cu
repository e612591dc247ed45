/* Checks the exercises of transpose.cuh (learn/check.h). */
#include "phase1_building_blocks/02_transpose/transpose_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(transpose_lesson())

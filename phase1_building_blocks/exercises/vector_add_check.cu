/* Checks the exercises of vector_add.cuh (learn/check.h). */
#include "phase1_building_blocks/vector_add_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(vector_add_lesson())

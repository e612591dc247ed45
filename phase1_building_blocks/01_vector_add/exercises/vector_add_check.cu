/* Checks the exercises of vector_add.cuh (learn/check.h). */
#include "phase1_building_blocks/01_vector_add/vector_add_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(vector_add_lesson())

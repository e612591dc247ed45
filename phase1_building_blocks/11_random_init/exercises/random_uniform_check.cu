/* Checks the exercises of random_init.cuh about uniform numbers (learn/check.h). */
#include "phase1_building_blocks/11_random_init/random_init_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(random_uniform_lesson())

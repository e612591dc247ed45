/* Checks the exercises of losses.cuh (learn/check.h): mse. */
#include "phase1_building_blocks/09_losses/losses_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(mse_lesson())

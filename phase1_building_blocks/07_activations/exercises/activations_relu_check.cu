/* Checks the exercises of activations.cuh (learn/check.h): relu forward. */
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(relu_forward_lesson())

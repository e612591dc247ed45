/* Checks the exercises of activations.cuh (learn/check.h): leaky relu backward. */
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(leaky_relu_backward_lesson())

/* Checks the exercises of activations.cuh (learn/check.h): tanh backward. */
#include "phase1_building_blocks/07_activations/activations_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(tanh_backward_lesson())

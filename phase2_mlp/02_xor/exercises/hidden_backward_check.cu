/* Checks the exercise of hidden_layer.cuh (learn/check.h). */
#include "phase2_mlp/02_xor/hidden_layer_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(hidden_backward_lesson<ACTIVATION_TANH>())

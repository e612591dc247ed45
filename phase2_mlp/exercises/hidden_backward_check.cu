/* Checks the exercise of hidden.cuh (learn/check.h). */
#include "phase2_mlp/hidden_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(hidden_backward_lesson<ACTIVATION_TANH>())

/* Checks the exercise on a training step's way back: bias (learn/check.h). */
#include "phase2_mlp/03_mlp/backprop_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(backprop_bias_lesson())

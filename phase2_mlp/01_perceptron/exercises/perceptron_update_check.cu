/* Checks the exercise on perceptron.cuh's update kernel (learn/check.h). */
#include "phase2_mlp/01_perceptron/perceptron_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(perceptron_update_lesson())

/* Checks add_relu_mean (learn/check.h). */
#include "phase3_cnn/11_residual/residual_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(add_relu_mean_lesson())

/* Checks add_relu_forward (learn/check.h). */
#include "phase3_cnn/11_residual/residual_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(add_relu_forward_lesson())

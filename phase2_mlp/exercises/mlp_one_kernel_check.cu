/* Checks the exercises of mlp_one_kernel.cuh (learn/check.h). */
#include "phase2_mlp/mlp_one_kernel_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(mlp_lesson())

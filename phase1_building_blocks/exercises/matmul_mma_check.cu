/* Checks the exercise of matmul_mma.cuh (learn/check.h). */
#include "phase1_building_blocks/matmul_mma.cuh"
#include "phase1_building_blocks/matmul_tensor_core_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_tensor_core_lesson())

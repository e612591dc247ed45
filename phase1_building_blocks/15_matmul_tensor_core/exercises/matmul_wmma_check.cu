/* Checks the exercises of matmul_wmma.cuh (learn/check.h). */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_tensor_core_lesson())

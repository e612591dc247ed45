/* Checks the exercises of matmul_vectorised.cuh (learn/check.h). */
#include "phase1_building_blocks/matmul_lesson.cuh"
#include "phase1_building_blocks/matmul_vectorised.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_lesson("matmul_vectorised"))

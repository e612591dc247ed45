/* Checks the exercises of matmul_vectorised.cuh (learn/check.h). */
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_vectorised.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_lesson("matmul_vectorised"))

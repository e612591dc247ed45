/* Checks the exercises of matmul_tiled.cuh (learn/check.h). */
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/04_matmul_tiled/matmul_tiled.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_lesson("matmul_tiled"))

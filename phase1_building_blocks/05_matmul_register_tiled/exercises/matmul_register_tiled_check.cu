/* Checks the exercises of matmul_register_tiled.cuh (learn/check.h). */
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/05_matmul_register_tiled/matmul_register_tiled.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_lesson("matmul_register_tiled"))

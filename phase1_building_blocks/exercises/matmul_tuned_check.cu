/* Checks the exercises of matmul_tuned.cuh (learn/check.h). */
#include "phase1_building_blocks/matmul_lesson.cuh"
#include "phase1_building_blocks/matmul_tuned.cuh"

#include "learn/check.h"

CHECK_MAIN(matmul_lesson("matmul_tuned"))

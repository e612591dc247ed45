/* Checks the exercises of matmul_naive.cuh (learn/check.h); also with a K of several chunks. */
#include "phase1_building_blocks/03_matmul_naive/matmul_lesson.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_naive.cuh"

static inline Lesson matmul_naive_lesson(void) {
  Lesson lesson = matmul_lesson("matmul_naive");
  lesson_check_shape(&lesson, lesson_shape(&lesson, 5, 9, 2 * MATMUL_CHUNK + 76));
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(matmul_naive_lesson())

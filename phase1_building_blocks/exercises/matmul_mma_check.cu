/* Checks the exercise of matmul_mma.cuh (learn/check.h). */
#include "phase1_building_blocks/matmul_mma.cuh"
#include "phase1_building_blocks/matmul_tensor_core_lesson.cuh"

#include "learn/check.h"

/* Conflicts are counted on fewer tiles than the lesson has: there are none, or many in each. */
static inline Lesson matmul_mma_lesson(void) {
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.counted = lesson_shape(&lesson, 64, 128, 64);
  return lesson;
}

CHECK_MAIN(matmul_mma_lesson())

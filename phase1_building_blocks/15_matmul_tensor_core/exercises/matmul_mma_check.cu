/* Checks the exercise of matmul_mma.cuh (learn/check.h). */
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"

#include "learn/check.h"

/* matmul_mma_small() without its fallback for unaligned matrices: that kernel would be compiled again after each
 * edit. */
static inline void matmul_mma_tiles(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  mma_require();
  matmul_mma_run<64, 64, 64, 32, 32, 3>(c, a, b, m, n, k);
}

/* Conflicts are counted on fewer tiles than the lesson has: there are none, or many in each. */
static inline Lesson matmul_mma_lesson(void) {
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.counted = lesson_shape(&lesson, 64, 128, 64);
  lesson.checks = 0;
  const int shapes[][3] = {{3, 40, 24}, {1, 8, 8}, {17, 24, 40}, {65, 72, 72}, {1, 8, 264}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

CHECK_MAIN(matmul_mma_lesson())

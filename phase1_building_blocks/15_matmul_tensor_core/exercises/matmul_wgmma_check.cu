/* Checks the exercises of hopper.cuh and matmul_wgmma.cuh (learn/check.h). */
#include <stdlib.h>

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tensor_core_lesson.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

#include "learn/check.h"

/* The emulated GPU has wgmma with this, which it reads before main(). */
__attribute__((constructor(101))) static void ask_for_hopper(void) { setenv("SIMT_CAPABILITY", "9.0", 1); }

/* matmul_wgmma_ring() without its fallback for unaligned matrices: that kernel would be compiled again after each
 * edit. */
static inline void matmul_wgmma_tiles(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_wgmma: %s", refusal);
  matmul_wgmma_run<1, 4, false>(c, a, b, m, n, k);
}

/* 264 columns of A are more steps than the ring has stages. */
static inline Lesson matmul_wgmma_lesson(void) {
  Lesson lesson = matmul_tensor_core_lesson();
  lesson.checks = 0;
  const int shapes[][3] = {{3, 40, 24}, {1, 8, 8}, {65, 72, 72}, {65, 264, 264}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

CHECK_MAIN(matmul_wgmma_lesson())

/* Checks the exercises of attention.cuh (learn/check.h). */
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"

#include "learn/check.h"

/* attention_flash_rows() with only 2 of its 4 kernels, because every kernel named here is compiled after each edit. */
static inline void attention_flash_rows_few(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                            int h, int s, int d, bool causal) {
  attention_flash_rows_launch<64>(o, lse, q, k, v, b, h, s, d, causal);
}

/* And a row more than a block has. */
static inline Lesson attention_rows_lesson(void) {
  Lesson lesson = attention_narrow(attention_lesson(true));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 1, ATTENTION_ROWS + 1, 16));
  return lesson;
}

CHECK_MAIN(attention_rows_lesson())

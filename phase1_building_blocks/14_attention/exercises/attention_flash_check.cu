/* Checks the exercise of attention_flash.cuh (learn/check.h). */
#include "phase1_building_blocks/14_attention/attention_flash.cuh"
#include "phase1_building_blocks/14_attention/attention_lesson.cuh"

#include "learn/check.h"

/* attention_flash() with only 2 of its 14 kernels, because every kernel named here is compiled again after each edit.
 * They take rows at any alignment and tiles that fit on any GPU; 4 lanes share a row of scores in one, 8 in the
 * other. */
static inline void attention_flash_few(float *o, float *lse, const float *q, const float *k, const float *v, int b,
                                       int h, int s, int d, bool causal) {
  if (d <= 32)
    attention_flash_run<32, 8, 4, 2, false>(o, lse, q, k, v, b, h, s, d, causal);
  else
    attention_flash_run<64, 4, 4, 1, false>(o, lse, q, k, v, b, h, s, d, causal);
}

CHECK_MAIN(attention_narrow(attention_lesson(false)))

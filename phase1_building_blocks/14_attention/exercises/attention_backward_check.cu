/* Checks the exercise of attention_backward.cuh (learn/check.h). */
#include "phase1_building_blocks/14_attention/attention_backward_lesson.cuh"

#include "learn/check.h"

/* attention_gradients_naive() with only 2 of the 4 forward kernels: every kernel is compiled again after each edit. */
static inline void attention_gradients_few(float *dq, float *dk, float *dv, const float *q, const float *k,
                                           const float *v, const float *dout, int b, int h, int s, int d, bool causal) {
  const size_t rows = (size_t)b * h * s;
  float *o = attention_workspace(rows * (d + 1) + attention_backward_naive_floats(b, h, s)), *lse = o + rows * d;
  attention_flash_rows_launch<64>(o, lse, q, k, v, b, h, s, d, causal);
  attention_backward_naive(dq, dk, dv, q, k, v, o, lse, dout, b, h, s, d, causal, lse + rows);
}

CHECK_MAIN(attention_narrow(attention_gradients_lesson(true)))

/* Checks the exercise of attention_tensor_core.cuh (learn/check.h). */
#include "phase1_building_blocks/14_attention/attention_tensor_core_lesson.cuh"

#include "learn/check.h"

/* attention_wmma() with only one of its 6 kernels, because every kernel named here is compiled again after each edit.
 * It takes rows at any alignment and tiles that fit on any GPU. */
static inline void attention_wmma_few(__nv_bfloat16 *o, float *lse, const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                      const __nv_bfloat16 *v, int b, int h, int s, int d, bool causal) {
  mma_require();
  attention_wmma_run<64, 4, false>(o, lse, q, k, v, b, h, s, d, causal);
}

CHECK_MAIN(attention_narrow(attention_bf16_lesson(false)))

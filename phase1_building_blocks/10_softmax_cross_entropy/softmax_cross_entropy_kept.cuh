/* softmax_cross_entropy_kept.cuh - losses and gradients as in softmax_cross_entropy.cuh, each exponential computed
 * once.
 *
 *   logits, dlogits (B,C), labels (B), losses (B); dlogits may be the array of the logits
 *
 * A row of 50257 floats takes all the shared memory that a block can have, so a multiprocessor has one block: while it
 * computes, it asks the memory for nothing. `quads` computes 9 exponentials for 4 logits, 5 for the sum and 4 for the
 * gradient. Here the row in shared memory is read once more, for its maximum, which is cheap. Then each logit is
 * replaced by its exponential, which the gradient only has to scale. And __expf() takes a third of the instructions of
 * expf(): it rounds x log2(e) to a float before it raises 2 to that power, an error of |x| 2^-24, relatively. x is the
 * difference to a maximum; where it is large, the exponential is small beside the sum.
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_KEPT_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_KEPT_CUH

#include "phase1_building_blocks/08_softmax/softmax.cuh"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"

/* Block b takes row b. Each thread reads and writes its own quads alone: no barrier but that of the reduction. */
template <int T>
static __global__ void __launch_bounds__(T)
    softmax_cross_entropy_kept_kernel(float *losses, float *dlogits, const float *logits, const int *labels,
                                      float scale, int classes) {
  extern __shared__ float4 softmax_row[];
  const float *x = logits + (size_t)blockIdx.x * classes;
  float *dx = dlogits + (size_t)blockIdx.x * classes;
  int shift = (int)((uintptr_t)dx / sizeof(float) % SOFTMAX_LINE), quads = (shift + classes + 3) / 4;
  for (int q = threadIdx.x; q < quads; q += T) softmax_fetch_quad(softmax_row, x, shift, classes, q);
  __pipeline_commit();
  int label = labels[blockIdx.x];
  float at_label = softmax_cross_entropy_at(x, label, classes);
  __pipeline_wait_prior(0);

  MaxSum own = max_sum_make(-INFINITY, 0);
#pragma unroll 4
  for (int q = threadIdx.x; q < quads; q += T) own.max = fmaxf(own.max, softmax_quad_max(softmax_row[q]));
  float from = own.max == -INFINITY ? 0.0f : own.max; /* no NaN where a thread has no score above -inf */
#pragma unroll 4
  for (int q = threadIdx.x; q < quads; q += T) {
    float4 v = softmax_row[q];
    v = make_float4(__expf(v.x - from), __expf(v.y - from), __expf(v.z - from), __expf(v.w - from));
    own.sum += softmax_quad_sum(v);
    softmax_row[q] = v;
  }
  MaxSum row = row_max_sum<T>(own);
  if (threadIdx.x == 0) losses[blockIdx.x] = softmax_cross_entropy_loss(row, at_label);

  float factor = expf(own.max - row.max) * (scale / row.sum); /* not `from`: its exp() may be infinite, times 0 */
#pragma unroll 4
  for (int q = threadIdx.x; q < quads; q += T) {
    float4 v = softmax_quad_scale(softmax_row[q], factor);
    int c = 4 * q - shift, j = label - c;
    if (j >= 0 && j < 4) {
      v.x -= j == 0 ? scale : 0.0f;
      v.y -= j == 1 ? scale : 0.0f;
      v.z -= j == 2 ? scale : 0.0f;
      v.w -= j == 3 ? scale : 0.0f;
    }
    if (c >= 0 && c + 3 < classes) {
      __stwb((float4 *)(dx + c), v); /* see softmax_cross_entropy_quads_kernel */
    } else {
      const float part[4] = {v.x, v.y, v.z, v.w};
      for (int i = 0; i < 4; i++)
        if (c + i >= 0 && c + i < classes) dx[c + i] = part[i];
    }
  }
}

/* Rows of a warp, and rows that do not fit into shared memory: as `fused`. */
static inline void softmax_cross_entropy_kept(float *losses, float *dlogits, const float *logits, const int *labels,
                                              float scale, int batch, int classes) {
  size_t bytes = ((size_t)classes + SOFTMAX_LINE + 2) / 4 * sizeof(float4);
  if (!rows_alike(logits, dlogits) || bytes > shared_limit_beside(1024) || classes <= SOFTMAX_WARP_ROW)
    softmax_cross_entropy_fused(losses, dlogits, logits, labels, scale, batch, classes);
  else if (classes > SOFTMAX_SHORT_ROW)
    softmax_launch_rows(softmax_cross_entropy_kept_kernel<SOFTMAX_ROW_BLOCK>, SOFTMAX_ROW_BLOCK, bytes, losses, dlogits,
                        logits, labels, scale, batch, classes);
  else
    softmax_launch_rows(softmax_cross_entropy_kept_kernel<SOFTMAX_SHORT_ROW_BLOCK>, SOFTMAX_SHORT_ROW_BLOCK, bytes,
                        losses, dlogits, logits, labels, scale, batch, classes);
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_KEPT_CUH */

/* fold_shortcut.cuh - two batch norms in evaluation become part of the two convolutions whose sum ends a residual
 * block:
 *
 *     s (w x + 0 - mean) + beta  +  s' (w' x' - mean') + beta'       s = gamma / sqrt(variance + epsilon), s' likewise
 *       = (s w) x + (s' w') x' + bias
 *
 *     w (K,weights) and w' (K,channels); gamma, beta, mean, variance (K) of each; bias (K): one for both
 *
 * batch_norm2d_fold_filter.cuh does so for one. residual_end_op (conv2d_infer_op.cuh) takes the two and the one bias.
 * The kernel is there for the check of the exercise; a network is folded on the host.
 */
#ifndef PHASE5_PRODUCTION_FOLD_SHORTCUT_CUH
#define PHASE5_PRODUCTION_FOLD_SHORTCUT_CUH

#include <math.h>
#include <stddef.h>

#include "common/check.h"

#define FOLD_SHORTCUT_EPSILON 1e-5f

/* Batch norm in evaluation; all (K). */
typedef struct FoldNorm {
  const float *gamma, *beta, *mean, *variance;
} FoldNorm;

/* new_w may be w, and new_w_shortcut may be w_shortcut. */
typedef struct FoldShortcut {
  float *new_w, *new_w_shortcut, *bias;
  const float *w, *w_shortcut;
  FoldNorm norm, norm_shortcut;
  int filters, weights, channels;
} FoldShortcut;

/* Filter k of both. */
static inline __host__ __device__ void fold_shortcut_filter(FoldShortcut f, int k) {
  const size_t first = (size_t)k * f.weights, first_shortcut = (size_t)k * f.channels;
  // >>> exercise fold_shortcut: filter k of both with their batch norms in them, and the one bias of their sum
  // hint: each batch norm multiplies by a number of its own, gamma / sqrt(variance + FOLD_SHORTCUT_EPSILON), then adds
  // hint: what the two add without any weight is a number per filter: both together are the bias
  // hint: bias = beta - scale * mean of the one, plus that of the other; new_w[first + i] = scale * w[first + i]
  const float scale = f.norm.gamma[k] / sqrtf(f.norm.variance[k] + FOLD_SHORTCUT_EPSILON);
  const float scale_shortcut = f.norm_shortcut.gamma[k] / sqrtf(f.norm_shortcut.variance[k] + FOLD_SHORTCUT_EPSILON);
  for (int i = 0; i < f.weights; i++) f.new_w[first + i] = scale * f.w[first + i];
  for (int i = 0; i < f.channels; i++)
    f.new_w_shortcut[first_shortcut + i] = scale_shortcut * f.w_shortcut[first_shortcut + i];
  const float own = f.norm.beta[k] - scale * f.norm.mean[k];
  f.bias[k] = own + f.norm_shortcut.beta[k] - scale_shortcut * f.norm_shortcut.mean[k];
  // <<< exercise
}

static inline void fold_shortcut_cpu(FoldShortcut f) {
  for (int k = 0; k < f.filters; k++) fold_shortcut_filter(f, k);
}

static __global__ void fold_shortcut_kernel(FoldShortcut f) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < f.filters) fold_shortcut_filter(f, k);
}

static inline void fold_shortcut_gpu(FoldShortcut f) {
  fold_shortcut_kernel<<<(unsigned)(f.filters + 127) / 128, 128>>>(f);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_FOLD_SHORTCUT_CUH */

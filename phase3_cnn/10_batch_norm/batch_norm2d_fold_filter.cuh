/* batch_norm2d_fold_filter.cuh - batch norm in evaluation becomes part of the convolution before it:
 *
 *     gamma inv_std (w x + b - mean) + beta  =  (gamma inv_std w) x + (gamma inv_std (b - mean) + beta)
 *
 *     w (K,weights)   b, gamma, beta, mean, var (K)   inv_std = 1 / sqrt(var + epsilon)
 *
 * batch_norm2d_fold.cuh does so for a whole network, on the host; the kernel is there for the check of the exercise.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_FOLD_FILTER_CUH
#define PHASE3_CNN_BATCH_NORM2D_FOLD_FILTER_CUH

#include <math.h>
#include <stddef.h>

#include "common/check.h"

#define BATCH_NORM_EPSILON 1e-5f

/* The arrays of a fold. new_w and new_bias may be w and bias. */
typedef struct BatchNorm2dFold {
  float *new_w, *new_bias;
  const float *w, *bias, *gamma, *beta, *mean, *var;
  int filters, weights;
} BatchNorm2dFold;

/* One filter. */
static inline __host__ __device__ void batch_norm2d_fold_filter(BatchNorm2dFold f, int k) {
  const size_t first = (size_t)k * f.weights;
  // >>> exercise batch_norm_fold: the f.weights weights from `first` on, and bias k, with batch norm in them
  // hint: batch norm multiplies what the convolution gives by one number per filter: what becomes of its weights?
  // hint: the number is scale = gamma / sqrt(var + BATCH_NORM_EPSILON); the bias is moved by the mean before that
  // hint: new_w[first + i] = scale * w[first + i]; new_bias[k] = scale * (bias[k] - mean[k]) + beta[k]
  const float scale = f.gamma[k] / sqrtf(f.var[k] + BATCH_NORM_EPSILON);
  for (int i = 0; i < f.weights; i++) f.new_w[first + i] = scale * f.w[first + i];
  f.new_bias[k] = scale * (f.bias[k] - f.mean[k]) + f.beta[k];
  // <<< exercise
}

static inline void batch_norm2d_fold_cpu(BatchNorm2dFold f) {
  for (int k = 0; k < f.filters; k++) batch_norm2d_fold_filter(f, k);
}

static __global__ void batch_norm2d_fold_kernel(BatchNorm2dFold f) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < f.filters) batch_norm2d_fold_filter(f, k);
}

static inline void batch_norm2d_fold_gpu(BatchNorm2dFold f) {
  batch_norm2d_fold_kernel<<<(unsigned)(f.filters + 127) / 128, 128>>>(f);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_BATCH_NORM2D_FOLD_FILTER_CUH */

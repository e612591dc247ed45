/* mixup.h - training on mixtures of two samples (Zhang, Cisse, Dauphin, Lopez-Paz, "mixup: beyond empirical risk
 * minimization", 2018).
 *
 *   x[b]      = (1 - share) x[b]      + share x[B-1-b]        for all samples b of a batch of B
 *   target[b] = (1 - share) target[b] + share target[B-1-b]   by the loss (soft_labels.cuh of phase 1)
 *
 * The share is drawn once per step from the distribution Beta(alpha, alpha), as in the authors' program: with alpha 0.2
 * most shares are near 0 or 1, with 1 all are equally likely. It is a function of (seed, step), so that a resumed run
 * draws what it would have drawn. Batches are shuffled in each epoch, so b and B-1-b are random pairs. Of an odd batch
 * the sample in the middle is mixed with itself, which changes nothing. The parts of an accumulated step have one
 * share, and pairs of their own.
 *
 *   mixup_share      on the host
 *   mixup_cpu        sample by sample, into another array: the definition
 *   mixup_cpu_fast   both samples of a pair at once: the array may be the same
 *   mixup_gpu        the same: each float is read once and written once
 */
#ifndef COMMON_NN_MIXUP_H
#define COMMON_NN_MIXUP_H

#include <math.h>

#include "common/device.h"
#include "common/philox.h"

enum { MIXUP_STREAM = 0x4D495855, MIXUP_BLOCK = 256 };

/* Beta(alpha, alpha) by one formula, without rejection (Devroye, "Random variate generation in one line of code",
 * 1996): with u and v uniform, c = cos(2 pi v),
 *
 *     1/2 + sign(c) / 2 / sqrt(1 + 1 / ((u^(-1/alpha) - 1) c^2)).
 *
 * Computed in double and rounded once. For a small alpha u^(-1/alpha) may be infinite: then the share is 0 or 1. */
static inline float mixup_share(double alpha, uint64_t seed, long step) {
  const PhiloxBlock block = philox4x32(seed, MIXUP_STREAM, (uint64_t)step);
  const double u = (block.word[0] + 1.0) * 0x1p-32, c = cos(6.283185307179586 * (block.word[1] * 0x1p-32));
  const double half = 0.5 / sqrt(1 + 1 / ((pow(u, -1 / alpha) - 1) * c * c));
  return (float)(c < 0 ? 0.5 - half : 0.5 + half);
}

/* One rounding of the product and the sum, everywhere: CPU and GPU give the same bits. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    float
    mixup_one(float own, float other, float share) {
  return fmaf(share, other - own, own);
}

/* y and x (batch, width), two arrays. */
static inline void mixup_cpu(float *y, const float *x, int batch, size_t width, float share) {
  for (int b = 0; b < batch; b++)
    for (size_t i = 0; i < width; i++)
      y[b * width + i] = mixup_one(x[b * width + i], x[(batch - 1 - b) * width + i], share);
}

/* y may be x, as below. */
static inline void mixup_cpu_fast(float *y, const float *x, int batch, size_t width, float share) {
#pragma omp parallel for schedule(static) if ((size_t)batch * width > 16384)
  for (int b = 0; b < batch / 2; b++) {
    const size_t one = b * width, two = (batch - 1 - b) * width;
    for (size_t i = 0; i < width; i++) {
      // >>> hidden mixup_pair
      const float first = x[one + i], second = x[two + i];
      y[one + i] = mixup_one(first, second, share);
      y[two + i] = mixup_one(second, first, share);
      // <<< hidden
    }
  }
  if (y != x && batch % 2) memcpy(y + batch / 2 * width, x + batch / 2 * width, width * sizeof *y);
}

#ifdef __CUDACC__
#include "common/check.h"

/* Elements of a pair of samples, one and two, into y_one and y_two: the same in the middle of an odd batch. */
static __device__ __forceinline__ void mixup_pair(float *y_one, float *y_two, float one, float two, float share) {
  // >>> hidden mixup_pair
  *y_one = mixup_one(one, two, share);
  *y_two = mixup_one(two, one, share);
  // <<< hidden
}

static __device__ __forceinline__ void mixup_pair(float4 *y_one, float4 *y_two, float4 one, float4 two, float share) {
  float4 first, second;
  mixup_pair(&first.x, &second.x, one.x, two.x, share);
  mixup_pair(&first.y, &second.y, one.y, two.y, share);
  mixup_pair(&first.z, &second.z, one.z, two.z, share);
  mixup_pair(&first.w, &second.w, one.w, two.w, share);
  *y_one = first;
  *y_two = second;
}

/* Blocks (columns of V, pairs); width in V. share_at: in the GPU's memory, for a recorded launch; NULL: `share`. */
template <typename V>
static __global__ void mixup_kernel(V *y, const V *x, int batch, size_t width, float share, const float *share_at) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y, partner = batch - 1 - b;
  if (share_at != NULL) share = *share_at;
  if (i < width)
    mixup_pair(&y[b * width + i], &y[partner * width + i], x[b * width + i], x[partner * width + i], share);
}

template <typename V>
static inline void mixup_launch(V *y, const V *x, int batch, size_t width, float share, const float *share_at) {
  const dim3 grid((unsigned)((width + MIXUP_BLOCK - 1) / MIXUP_BLOCK), (unsigned)(batch + 1) / 2);
  mixup_kernel<<<grid, MIXUP_BLOCK>>>(y, x, batch, width, share, share_at);
  CUDA_CHECK_LAUNCH();
}

static inline void mixup_gpu(float *y, const float *x, int batch, size_t width, float share, const float *share_at) {
  if (batch < 1 || width == 0) return;
  if (width % 4 == 0 && ((uintptr_t)x | (uintptr_t)y) % sizeof(float4) == 0)
    mixup_launch((float4 *)y, (const float4 *)x, batch, width / 4, share, share_at);
  else
    mixup_launch(y, x, batch, width, share, share_at);
}
#endif

#endif /* COMMON_NN_MIXUP_H */

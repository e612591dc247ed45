/* mixup.h - training on mixtures of two samples (Zhang, Cisse, Dauphin, Lopez-Paz, "mixup: beyond empirical risk
 * minimization", 2018).
 *
 *   x[b]      = (1 - share) x[b]      + share x[B-1-b]        for all samples b of a batch of B
 *   target[b] = (1 - share) target[b] + share target[B-1-b]   by the loss (soft_labels.cuh of phase 1)
 *
 * The share is drawn once per step from the distribution Beta(alpha, alpha), as in the authors' program: with alpha 0.2
 * most shares are near 0 or 1, with 1 all are equally likely. It is a function of (seed, step), so that a resumed run
 * draws what it would have drawn. Batches are shuffled in each epoch, so b and B-1-b are random pairs. Of an odd batch
 * the sample in the middle is mixed with itself, which changes nothing. The parts of an accumulated step have one share,
 * and pairs of their own.
 *
 *   mixup_share      on the host
 *   mixup_cpu        two copies of all samples: the definition
 *   mixup_cpu_fast   both samples of a pair at once, in place
 *   mixup_gpu        the same: each float is read once and written once
 */
#ifndef COMMON_NN_MIXUP_H
#define COMMON_NN_MIXUP_H

#include <math.h>

#include "common/device.h"
#include "common/philox.h"

enum { MIXUP_STREAM = 0x4D495855, MIXUP_BLOCK = 256 };

/* Beta(alpha, alpha) by one formula, without rejection (Devroye, "Random variate generation in one line of code", 1996):
 * with u and v uniform, c = cos(2 pi v),
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

/* x (batch, width), and scratch as large. */
static inline void mixup_cpu(float *x, float *scratch, int batch, size_t width, float share) {
  for (size_t i = 0; i < (size_t)batch * width; i++) scratch[i] = x[i];
  for (int b = 0; b < batch; b++)
    for (size_t i = 0; i < width; i++)
      x[b * width + i] = mixup_one(scratch[b * width + i], scratch[(batch - 1 - b) * width + i], share);
}

static inline void mixup_cpu_fast(float *x, int batch, size_t width, float share) {
#pragma omp parallel for schedule(static) if ((size_t)batch * width > 16384)
  for (int b = 0; b < batch / 2; b++) {
    float *one = x + b * width, *two = x + (batch - 1 - b) * width;
    for (size_t i = 0; i < width; i++) {
      // >>> hidden mixup_pair
      const float first = one[i], second = two[i];
      one[i] = mixup_one(first, second, share);
      two[i] = mixup_one(second, first, share);
      // <<< hidden
    }
  }
}

#ifdef __CUDACC__
#include "common/check.h"

static __device__ __forceinline__ void mixup_pair(float *one, float *two, float share) {
  // >>> hidden mixup_pair
  const float first = *one, second = *two;
  *one = mixup_one(first, second, share);
  *two = mixup_one(second, first, share);
  // <<< hidden
}

static __device__ __forceinline__ void mixup_pair(float4 *one, float4 *two, float share) {
  float4 first = *one, second = *two;
  mixup_pair(&first.x, &second.x, share);
  mixup_pair(&first.y, &second.y, share);
  mixup_pair(&first.z, &second.z, share);
  mixup_pair(&first.w, &second.w, share);
  *one = first;
  *two = second;
}

/* Blocks (columns of V, pairs); width in V. share_at: in the GPU's memory, for a recorded launch; NULL: `share` is it. */
template <typename V>
static __global__ void mixup_kernel(V *x, int batch, size_t width, float share, const float *share_at) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
  if (share_at != NULL) share = *share_at;
  if (i < width) mixup_pair(&x[b * width + i], &x[(batch - 1 - b) * width + i], share);
}

static inline void mixup_gpu(float *x, int batch, size_t width, float share, const float *share_at) {
  const int quads = width % 4 == 0 && (uintptr_t)x % sizeof(float4) == 0;
  const size_t columns = quads ? width / 4 : width;
  if (batch < 2 || width == 0) return;
  const dim3 grid((unsigned)((columns + MIXUP_BLOCK - 1) / MIXUP_BLOCK), (unsigned)(batch / 2));
  if (quads)
    mixup_kernel<<<grid, MIXUP_BLOCK>>>((float4 *)x, batch, columns, share, share_at);
  else
    mixup_kernel<<<grid, MIXUP_BLOCK>>>(x, batch, columns, share, share_at);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_MIXUP_H */

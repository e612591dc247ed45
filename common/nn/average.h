/* average.h - the average of a network's weights over its steps (Polyak and Juditsky, "Acceleration of stochastic
 * approximation by averaging", 1992), exponentially weighted, so that it forgets:
 *
 *   average[t] = average[t-1] + share[t] (w[t] - average[t-1]),    share[t] = (1 - decay) / (1 - decay^t),  t from 1
 *
 * That is the mean of w[1] .. w[t] with the weights decay^(t-k): about the last 1 / (1 - decay) steps. While there are
 * fewer of them, the share is larger than 1 - decay: the first step's is 1, and the average is the weights themselves.
 * Without this correction, which is Adam's, it would hold on to the fresh weights. PyTorch's get_ema_avg_fn() and Keras
 * leave it out, and begin with a copy; after a few times 1 / (1 - decay) steps that is the same.
 *
 * A decay above AVERAGE_MOST would be lost in float32: a hundred-thousandth of the difference is less than the rounding
 * of the average, once that has come close.
 *
 *   average_cpu   the loop
 *   average_gpu   all weights of a network in one launch, four per thread: 12 bytes of each move
 */
#ifndef COMMON_NN_AVERAGE_H
#define COMMON_NN_AVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/device.h"

#define AVERAGE_MOST 0.9999
enum { AVERAGE_BLOCK = 256, AVERAGE_CPU_SERIAL = 16384 };

static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    float
    average_one(float average, float w, float share) {
  // >>> hidden ema_update
  return average + share * (w - average);
  // <<< hidden
}

/* next may be average. */
static inline void average_cpu(float *next, const float *average, const float *w, size_t n, float share) {
#pragma omp parallel for simd schedule(static) if (parallel : n > AVERAGE_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) next[i] = average_one(average[i], w[i], share);
}

/* a and b (n) exchange their values. */
static inline void average_swap_cpu(float *a, float *b, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > AVERAGE_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    const float kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

#ifdef __CUDACC__
#include "common/check.h"

/* The first 4 quads weights by fours, the rest one by one. share_at: in the GPU's memory, so that a recorded launch can
 * be repeated when it has changed; NULL: `share` is it. */
static __global__ void average_kernel(float *next, const float *average, const float *w, size_t n, size_t quads,
                                      float share, const float *share_at) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, rest = 4 * quads + i;
  if (share_at != NULL) share = *share_at;
  if (i < quads) {
    const float4 v = ((const float4 *)w)[i];
    float4 a = ((const float4 *)average)[i];
    a.x = average_one(a.x, v.x, share);
    a.y = average_one(a.y, v.y, share);
    a.z = average_one(a.z, v.z, share);
    a.w = average_one(a.w, v.w, share);
    ((float4 *)next)[i] = a;
  }
  if (rest < n) next[rest] = average_one(average[rest], w[rest], share);
}

static inline void average_gpu(float *next, const float *average, const float *w, size_t n, float share,
                               const float *share_at) {
  if (n == 0) return;
  const int aligned = ((uintptr_t)next | (uintptr_t)average | (uintptr_t)w) % sizeof(float4) == 0;
  const size_t quads = aligned ? n / 4 : 0, threads = quads > 0 ? quads : n;
  average_kernel<<<(unsigned)((threads + AVERAGE_BLOCK - 1) / AVERAGE_BLOCK), AVERAGE_BLOCK>>>(next, average, w, n,
                                                                                               quads, share, share_at);
  CUDA_CHECK_LAUNCH();
}

static __global__ void average_swap_kernel(float *a, float *b, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float kept = a[i];
  a[i] = b[i];
  b[i] = kept;
}

static inline void average_swap_gpu(float *a, float *b, size_t n) {
  if (n == 0) return;
  average_swap_kernel<<<(unsigned)((n + AVERAGE_BLOCK - 1) / AVERAGE_BLOCK), AVERAGE_BLOCK>>>(a, b, n);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_AVERAGE_H */

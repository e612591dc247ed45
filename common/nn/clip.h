/* clip.h - gradients that are too large are made smaller before the optimizer uses them (Pascanu, Mikolov, Bengio, "On
 * the difficulty of training recurrent neural networks", 2013).
 *
 *   by value   each element is brought into [-most, most]
 *   by norm    all elements are multiplied by most / norm where their norm is above `most`: the direction stays
 *
 * One batch with a wild loss then moves the weights no further than any other. As PyTorch's clip_grad_value_() and
 * clip_grad_norm_(), over all gradients of a network, which lie in one array.
 *
 * The norm takes two passes. In the first each of up to CLIP_BLOCKS blocks adds up the squares of its elements; in the
 * second each block adds up those sums, and multiplies its elements. No pass waits for the host, and no sum depends on
 * which block is faster: a step gives the same bits each time, also as a part of a CUDA graph. Both add the norm to
 * *norms, of which a training log has the mean; NULL: they do not. phase4_training/07_training_loop has the
 * steps to it.
 *
 * Squares of elements above 1.8e19 are more than a float holds: they are added up in double, and the norm of finite
 * elements is finite. (PyTorch's is infinite there, and its clipped gradients are 0.)
 */
#ifndef COMMON_NN_CLIP_H
#define COMMON_NN_CLIP_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "common/device.h"

enum { CLIP_BLOCKS = 1024, CLIP_BLOCK = 256 };

/* What is left of all elements where the sum of their squares is this: 1 where they are small enough or NaN,
 * 0 where the sum is infinite. */
static inline
#ifdef __CUDACC__
    __host__ __device__
#endif
    float
    clip_factor(double squares, float most) {
  const double factor = most / (sqrt(squares) + 1e-6); /* PyTorch's: no division by zero */
  return factor < 1 ? (float)factor : 1.0f;
}

/* ------------------------------------------------------------------------------------------------------------- CPU */

/* A number that is none stays so: the loss will say that the training has diverged. */
static inline void clip_value_cpu(float *g, size_t n, float most) {
#pragma omp parallel for simd schedule(static) if (parallel : n > 65536)
  for (size_t i = 0; i < n; i++) g[i] = g[i] > most ? most : g[i] < -most ? -most : g[i];
}

/* partial (CLIP_BLOCKS) is scratch. The same sums for any number of threads. */
static inline void clip_norm_cpu(float *g, size_t n, float most, double *partial, double *norms) {
  const size_t each = (n + CLIP_BLOCKS - 1) / CLIP_BLOCKS;
#pragma omp parallel for schedule(static) if (n > 65536)
  for (int b = 0; b < CLIP_BLOCKS; b++) {
    const size_t begin = (size_t)b * each, end = begin + each < n ? begin + each : n;
    partial[b] = 0;
    for (size_t i = begin; i < end; i++) partial[b] += (double)g[i] * g[i];
  }
  double squares = 0;
  for (int b = 0; b < CLIP_BLOCKS; b++) squares += partial[b];
  if (norms && squares <= DBL_MAX) *norms += sqrt(squares); /* not of a step that fp16 skips */
  const float factor = clip_factor(squares, most);
  if (factor == 1) return;
#pragma omp parallel for simd schedule(static) if (parallel : n > 65536)
  for (size_t i = 0; i < n; i++) g[i] *= factor;
}

/* ------------------------------------------------------------------------------------------------------------- GPU */

#ifdef __CUDACC__
#include "common/check.h"

static __global__ void clip_value_kernel(float *g, size_t n, float most) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) g[i] = g[i] > most ? most : g[i] < -most ? -most : g[i];
}

static inline void clip_value_gpu(float *g, size_t n, float most) {
  if (n == 0) return;
  clip_value_kernel<<<(unsigned)((n + CLIP_BLOCK - 1) / CLIP_BLOCK), CLIP_BLOCK>>>(g, n, most);
  CUDA_CHECK_LAUNCH();
}

/* All threads of the block get the sum of their `value`. sum (CLIP_BLOCK) is shared. */
static __device__ __forceinline__ double clip_block_sum(double *sum, double value) {
  sum[threadIdx.x] = value;
  __syncthreads();
  for (int half = CLIP_BLOCK / 2; half > 0; half /= 2) {
    if ((int)threadIdx.x < half) sum[threadIdx.x] += sum[threadIdx.x + half];
    __syncthreads();
  }
  return sum[0];
}

/* Adds up the squares of this thread's quads of g, every gridDim.x * CLIP_BLOCK-th, and of the up to 3 floats behind
 * the last quad. g is aligned to 16 bytes. In float: a thread has a few hundred elements at most. Where that overflows,
 * once more in double, which takes longer on most GPUs. */
static __device__ __forceinline__ double clip_thread_squares(const float *g, size_t n) {
  const size_t thread = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x, threads = (size_t)gridDim.x * CLIP_BLOCK;
  float squares = 0;
#pragma unroll 4
  for (size_t i = thread; i < n / 4; i += threads) {
    const float4 v = reinterpret_cast<const float4 *>(g)[i];
    squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  const size_t last = n / 4 * 4 + thread;
  if (last < n) squares += g[last] * g[last];
  if (squares <= FLT_MAX) return squares;
  double wide = last < n ? (double)g[last] * g[last] : 0;
  for (size_t i = thread; i < n / 4; i += threads)
    for (int k = 0; k < 4; k++) wide += (double)g[4 * i + k] * g[4 * i + k];
  return wide;
}

/* partial[b]: the squares of block b's elements. */
static __global__ void clip_squares_kernel(double *partial, const float *g, size_t n) {
  __shared__ double sum[CLIP_BLOCK];
  const double all = clip_block_sum(sum, clip_thread_squares(g, n));
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

/* Every block adds up all partial sums, in the same order, and multiplies its quads. */
static __global__ void clip_scale_kernel(float *g, size_t n, float most, const double *partial, double *norms) {
  __shared__ double sum[CLIP_BLOCK];
  const size_t thread = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x, threads = (size_t)gridDim.x * CLIP_BLOCK;
  double squares = 0;
  for (int b = threadIdx.x; b < (int)gridDim.x; b += CLIP_BLOCK) squares += partial[b];
  squares = clip_block_sum(sum, squares);
  if (norms != NULL && thread == 0 && squares <= DBL_MAX) *norms += sqrt(squares);
  const float factor = clip_factor(squares, most);
  if (factor == 1) return;
#pragma unroll 4
  for (size_t i = thread; i < n / 4; i += threads) {
    float4 v = reinterpret_cast<float4 *>(g)[i];
    v.x *= factor;
    v.y *= factor;
    v.z *= factor;
    v.w *= factor;
    reinterpret_cast<float4 *>(g)[i] = v;
  }
  const size_t i = n / 4 * 4 + thread;
  if (i < n) g[i] *= factor;
}

/* partial (CLIP_BLOCKS) is scratch on the GPU, norms one double there; g is aligned to 16 bytes. */
static inline void clip_norm_gpu(float *g, size_t n, float most, double *partial, double *norms) {
  if (n == 0) return;
  const size_t pieces = (n + 4 * CLIP_BLOCK - 1) / (4 * CLIP_BLOCK);
  const unsigned blocks = pieces < CLIP_BLOCKS ? (unsigned)pieces : (unsigned)CLIP_BLOCKS;
  clip_squares_kernel<<<blocks, CLIP_BLOCK>>>(partial, g, n);
  CUDA_CHECK_LAUNCH();
  clip_scale_kernel<<<blocks, CLIP_BLOCK>>>(g, n, most, partial, norms);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_CLIP_H */

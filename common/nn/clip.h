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
 * which block is faster: a step gives the same bits each time, also as a part of a CUDA graph.
 */
#ifndef COMMON_NN_CLIP_H
#define COMMON_NN_CLIP_H

#include <math.h>
#include <stddef.h>

#include "common/device.h"

enum { CLIP_BLOCKS = 1024, CLIP_BLOCK = 256 };

/* What is left of all elements where the sum of their squares is this: 1 where they are small enough, or not finite. */
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
static inline void clip_norm_cpu(float *g, size_t n, float most, double *partial) {
  const size_t each = (n + CLIP_BLOCKS - 1) / CLIP_BLOCKS;
#pragma omp parallel for schedule(static) if (n > 65536)
  for (int b = 0; b < CLIP_BLOCKS; b++) {
    const size_t begin = (size_t)b * each, end = begin + each < n ? begin + each : n;
    partial[b] = 0;
    for (size_t i = begin; i < end; i++) partial[b] += (double)g[i] * g[i];
  }
  double squares = 0;
  for (int b = 0; b < CLIP_BLOCKS; b++) squares += partial[b];
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

/* partial[b]: the squares of block b's elements, every gridDim.x-th piece of CLIP_BLOCK. A thread adds up a few hundred
 * of them at most, in float. */
static __global__ void clip_squares_kernel(double *partial, const float *g, size_t n) {
  __shared__ double sum[CLIP_BLOCK];
  float squares = 0;
  for (size_t i = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * CLIP_BLOCK)
    squares += g[i] * g[i];
  const double all = clip_block_sum(sum, squares);
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

static __global__ void clip_scale_kernel(float *g, size_t n, float most, const double *partial) {
  __shared__ double sum[CLIP_BLOCK];
  double squares = 0;
  for (int b = threadIdx.x; b < (int)gridDim.x; b += CLIP_BLOCK) squares += partial[b];
  const float factor = clip_factor(clip_block_sum(sum, squares), most);
  if (factor == 1) return;
  for (size_t i = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x; i < n; i += (size_t)gridDim.x * CLIP_BLOCK)
    g[i] *= factor;
}

/* partial (CLIP_BLOCKS) is scratch on the GPU. */
static inline void clip_norm_gpu(float *g, size_t n, float most, double *partial) {
  if (n == 0) return;
  const size_t pieces = (n + CLIP_BLOCK - 1) / CLIP_BLOCK;
  const unsigned blocks = pieces < CLIP_BLOCKS ? (unsigned)pieces : (unsigned)CLIP_BLOCKS;
  clip_squares_kernel<<<blocks, CLIP_BLOCK>>>(partial, g, n);
  CUDA_CHECK_LAUNCH();
  clip_scale_kernel<<<blocks, CLIP_BLOCK>>>(g, n, most, partial);
  CUDA_CHECK_LAUNCH();
}
#endif

#endif /* COMMON_NN_CLIP_H */

/* gradient_clip.cuh - the norm of all gradients of a network, and gradients that are not larger than `most`: four ways.
 *
 * g (n) are the gradients of `tensors` tensors that lie one behind the other (tensor_begin() of lesson 1). All versions
 * compute
 *
 *   norm     the root of the sum of all squares
 *   clipped  g, times most / norm where the norm is larger than `most`
 *
 *   clip_each     a launch per tensor; each thread adds its square to one number, by an atomic
 *   clip_warps    one array; a warp adds up 32 squares by shuffles, then one atomic per warp
 *   clip_partial  no atomics: each block writes its sum, and each block of the next launch adds up all of them
 *   clip_engine   the same in 16-byte accesses, and in place: common/nn/clip.h, which programs train with
 *
 * The norm takes a sum over all gradients before the first of them can be scaled. It is added up in double, because the
 * order of an atomic sum is not fixed. scratch: CLIP_SCRATCH doubles on the GPU. n is at least 1. */
#ifndef PHASE4_TRAINING_GRADIENT_CLIP_CUH
#define PHASE4_TRAINING_GRADIENT_CLIP_CUH

#include "common/nn/clip.h"
#include "phase4_training/01_sgd/multi_tensor.cuh"

enum { CLIP_SCRATCH = CLIP_BLOCKS + 1 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void clip_cpu(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                            double *scratch) {
  double squares = 0;
  (void)tensors;
  (void)scratch;
  for (size_t i = 0; i < n; i++) squares += (double)g[i] * g[i];
  const double factor = most / (sqrt(squares) + 1e-6);
  for (size_t i = 0; i < n; i++) clipped[i] = factor < 1 ? (float)(factor * g[i]) : g[i];
  *norm = (float)sqrt(squares);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One atomic per element */

static __global__ void clip_each_squares_kernel(double *squares, const float *g, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(squares, (double)g[i] * g[i]);
}

/* norm: NULL where another launch writes it. */
static __global__ void clip_each_scale_kernel(float *clipped, float *norm, const float *g, size_t n, float most,
                                              const double *squares) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) clipped[i] = g[i] * clip_factor(*squares, most);
  if (i == 0 && norm != NULL) *norm = (float)sqrt(*squares);
}

static inline unsigned clip_blocks_of(size_t n) { return (unsigned)((n + CLIP_BLOCK - 1) / CLIP_BLOCK); }

static inline void clip_each(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                             double *scratch) {
  CUDA_CHECK(cudaMemsetAsync(scratch, 0, sizeof *scratch));
  for (int t = 0; t < tensors; t++) {
    const size_t begin = tensor_begin(n, tensors, t), length = tensor_begin(n, tensors, t + 1) - begin;
    if (length == 0) continue;
    clip_each_squares_kernel<<<clip_blocks_of(length), CLIP_BLOCK>>>(scratch, g + begin, length);
    CUDA_CHECK_LAUNCH();
  }
  for (int t = 0; t < tensors; t++) {
    const size_t begin = tensor_begin(n, tensors, t), length = tensor_begin(n, tensors, t + 1) - begin;
    if (length == 0) continue;
    clip_each_scale_kernel<<<clip_blocks_of(length), CLIP_BLOCK>>>(clipped + begin, begin == 0 ? norm : NULL, g + begin,
                                                                   length, most, scratch);
    CUDA_CHECK_LAUNCH();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One atomic per warp */

/* Lane 0 gets the sum of the warp's 32 values. All lanes call it. */
static __device__ __forceinline__ float clip_warp_sum(float value) {
  // >>> exercise clip_warp_sum: in five turns `value` of lane 0 becomes the sum over the 32 lanes
  // hint: each lane adds the value of the lane 16 places above it, then 8, 4, 2 and 1
  // hint: __shfl_down_sync(0xffffffff, value, d) gives the value of lane + d; every lane must call it
  // hint: for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffff, value, d);
  for (int d = 16; d > 0; d /= 2) value += __shfl_down_sync(0xffffffff, value, d);
  // <<< exercise
  return value;
}

static __global__ void clip_warps_squares_kernel(double *squares, const float *g, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = clip_warp_sum(i < n ? g[i] * g[i] : 0);
  if (threadIdx.x % 32 == 0 && i < n) atomicAdd(squares, (double)sum);
}

static inline void clip_warps(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                              double *scratch) {
  (void)tensors;
  CUDA_CHECK(cudaMemsetAsync(scratch, 0, sizeof *scratch));
  clip_warps_squares_kernel<<<clip_blocks_of(n), CLIP_BLOCK>>>(scratch, g, n);
  CUDA_CHECK_LAUNCH();
  clip_each_scale_kernel<<<clip_blocks_of(n), CLIP_BLOCK>>>(clipped, norm, g, n, most, scratch);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* No atomics */

enum { CLIP_WARPS = CLIP_BLOCK / 32 };

/* partial[b]: the squares of block b, which has every gridDim.x-th piece of CLIP_BLOCK elements. */
static __global__ void clip_partial_kernel(double *partial, const float *g, size_t n) {
  __shared__ float warp_sums[CLIP_WARPS];
  const size_t thread = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x, threads = (size_t)gridDim.x * CLIP_BLOCK;
  float squares = 0;
  // >>> exercise clip_stride: `squares` becomes the sum of squares of elements thread, thread + threads, ... of g (n)
  // hint: there are more elements than threads: a thread takes every `threads`-th, beginning at its own number
  // hint: neighbouring threads then read neighbouring elements in each turn, and a warp's load is four whole sectors
  // hint: for (size_t i = thread; i < n; i += threads) squares += g[i] * g[i];
  for (size_t i = thread; i < n; i += threads) squares += g[i] * g[i];
  // <<< exercise
  squares = clip_warp_sum(squares);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = squares;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double sum = 0;
  for (int w = 0; w < CLIP_WARPS; w++) sum += warp_sums[w];
  partial[blockIdx.x] = sum;
}

/* partial (parts): every block adds up all of them, in the same order. */
static __global__ void clip_partial_scale_kernel(float *clipped, float *norm, const float *g, size_t n, float most,
                                                 const double *partial, int parts) {
  __shared__ double lanes[32];
  const size_t thread = (size_t)blockIdx.x * CLIP_BLOCK + threadIdx.x, threads = (size_t)gridDim.x * CLIP_BLOCK;
  if (threadIdx.x < 32) {
    double sum = 0;
    for (int p = threadIdx.x; p < parts; p += 32) sum += partial[p];
    lanes[threadIdx.x] = sum;
  }
  __syncthreads();
  double squares = 0;
  for (int lane = 0; lane < 32; lane++) squares += lanes[lane];
  const float factor = clip_factor(squares, most);
  for (size_t i = thread; i < n; i += threads) clipped[i] = g[i] * factor;
  if (thread == 0) *norm = (float)sqrt(squares);
}

static inline void clip_partial(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                                double *scratch) {
  (void)tensors;
  const unsigned pieces = clip_blocks_of(n), blocks = pieces < CLIP_BLOCKS ? pieces : (unsigned)CLIP_BLOCKS;
  clip_partial_kernel<<<blocks, CLIP_BLOCK>>>(scratch, g, n);
  CUDA_CHECK_LAUNCH();
  clip_partial_scale_kernel<<<blocks, CLIP_BLOCK>>>(clipped, norm, g, n, most, scratch, (int)blocks);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* common/nn/clip.h */

static __global__ void clip_to_float_kernel(float *norm, const double *sum) { *norm = (float)*sum; }

/* It works in place, on a copy here; the last double of scratch becomes the norm. */
static inline void clip_engine(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                               double *scratch) {
  (void)tensors;
  double *sum = scratch + CLIP_BLOCKS;
  CUDA_CHECK(cudaMemsetAsync(sum, 0, sizeof *sum));
  CUDA_CHECK(cudaMemcpyAsync(clipped, g, n * sizeof *g, cudaMemcpyDeviceToDevice));
  clip_norm_gpu(clipped, n, most, scratch, sum);
  clip_to_float_kernel<<<1, 1>>>(norm, sum);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE4_TRAINING_GRADIENT_CLIP_CUH */

/* batch_norm2d_ladder.cuh - batch norm in training on a GPU, from the obvious kernels to those that read twice.
 *
 *   batch_norm2d_forward_naive      one block per channel: x is read for the mean, for the variance and for y
 *   batch_norm2d_forward_welford    one block per channel, mean and variance in one pass: two reads
 *   batch_norm2d_forward_slices     many blocks per channel, float4; one kernel for the statistics, one for y
 *
 *   batch_norm2d_backward_naive     one block per channel: dy and x are read twice
 *   batch_norm2d_backward_slices    many blocks per channel, float4, two kernels
 *
 * batch_norm2d_on_chip.cuh has the last rung, which reads once.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_LADDER_CUH
#define PHASE3_CNN_BATCH_NORM2D_LADDER_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* naive: grid (C), block (BATCH_NORM_THREADS) */

/* The sum of one value per thread, in every thread. */
static __device__ float batch_norm2d_block_sum(float value) {
  __shared__ float part[BATCH_NORM_THREADS];
  part[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = BATCH_NORM_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = part[0];
  __syncthreads(); /* the next sum overwrites part */
  return sum;
}

static __device__ size_t batch_norm2d_at(BatchNorm2dShape s, size_t i) {
  return (i / s.pixels * s.c + blockIdx.x) * s.pixels + i % s.pixels;
}

static __global__ void batch_norm2d_forward_naive_kernel(BatchNorm2d b) {
  const int c = blockIdx.x;
  const size_t m = (size_t)b.shape.n * b.shape.pixels;
  float sum = 0, squares = 0;
  for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_THREADS) sum += b.x[batch_norm2d_at(b.shape, i)];
  const float mean = batch_norm2d_block_sum(sum) / (float)m;
  for (size_t i = threadIdx.x; i < m; i += BATCH_NORM_THREADS) {
    const float d = b.x[batch_norm2d_at(b.shape, i)] - mean;
    squares += d * d;
  }
  const Moments all = {(float)m, mean, batch_norm2d_block_sum(squares)};
  const BatchNorm2dLine line = batch_norm2d_finish(&b, c, all, threadIdx.x == 0);
  batch_norm2d_write<1>(NULL, 0, &b, batch_norm2d_slice(b.shape, c, 0, 1), line);
}

static __global__ void batch_norm2d_backward_naive_kernel(BatchNorm2d b) {
  const int c = blockIdx.x;
  const float m = (float)((size_t)b.shape.n * b.shape.pixels);
  const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, c, 0, 1);
  BatchNorm2dLine line = batch_norm2d_line(&b, c, b.mean[c], b.inv_std[c]);
  float2 sum = batch_norm2d_read_back<1>(NULL, 0, &b, p, line);
  sum.x = batch_norm2d_block_sum(sum.x);
  sum.y = batch_norm2d_block_sum(sum.y);
  if (b.dgamma && threadIdx.x == 0) {
    b.dbeta[c] = sum.x;
    b.dgamma[c] = sum.y;
  }
  line.share = sum.x / m;
  line.slope = sum.y / m;
  if (b.dx) batch_norm2d_write_back<1>(NULL, 0, &b, p, line);
}

static inline void batch_norm2d_forward_naive(const BatchNorm2d *b) {
  batch_norm2d_forward_naive_kernel<<<b->shape.c, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_norm2d_backward_naive(const BatchNorm2d *b) {
  batch_norm2d_backward_naive_kernel<<<b->shape.c, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* welford: the same grid, one pass less */

static __global__ void batch_norm2d_forward_welford_kernel(BatchNorm2d b) {
  __shared__ Moments part[BATCH_NORM_WARPS], all;
  const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, blockIdx.x, 0, 1);
  const Moments m = moments_block(batch_norm2d_read<1>(NULL, 0, &b, p), part);
  if (threadIdx.x == 0) all = m;
  __syncthreads();
  const BatchNorm2dLine line = batch_norm2d_finish(&b, blockIdx.x, all, threadIdx.x == 0);
  batch_norm2d_write<1>(NULL, 0, &b, p, line);
}

static inline void batch_norm2d_forward_welford(const BatchNorm2d *b) {
  batch_norm2d_forward_welford_kernel<<<b->shape.c, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* slices: grid (slices, C), block (BATCH_NORM_THREADS). Each block of the second kernel adds up the sums of its
 * channel's slices. It takes the slices from the end, because the end of x is what the cache still has. */

enum { BATCH_NORM_SLICE = 16384, BATCH_NORM_SLICES = 256 };

static inline int batch_norm2d_slices(BatchNorm2dShape s) {
  const size_t slices = (batch_norm2d_count(s) + BATCH_NORM_SLICE - 1) / BATCH_NORM_SLICE;
  return slices < BATCH_NORM_SLICES ? (int)slices : BATCH_NORM_SLICES;
}

static inline size_t batch_norm2d_slices_workspace_floats(BatchNorm2dShape s) {
  return (size_t)3 * s.c * batch_norm2d_slices(s);
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, 2) batch_norm2d_statistics_slices_kernel(BatchNorm2d b) {
  __shared__ Moments part[BATCH_NORM_WARPS];
  const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, blockIdx.y, blockIdx.x, gridDim.x);
  const Moments m = moments_block(batch_norm2d_read<V>(NULL, 0, &b, p), part);
  if (threadIdx.x == 0) ((Moments *)b.workspace)[blockIdx.y * gridDim.x + blockIdx.x] = m;
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, 2) batch_norm2d_forward_slices_kernel(BatchNorm2d b) {
  const int c = b.shape.c - 1 - blockIdx.y, slice = gridDim.x - 1 - blockIdx.x;
  const Moments *parts = (const Moments *)b.workspace + (size_t)c * gridDim.x;
  __shared__ Moments all;
  if (threadIdx.x < 32) {
    Moments m = {0, 0, 0};
    for (int i = threadIdx.x; i < (int)gridDim.x; i += 32) m = moments_merge(m, parts[i]);
    m = moments_warp(m);
    if (threadIdx.x == 0) all = m;
  }
  __syncthreads();
  const BatchNorm2dLine line = batch_norm2d_finish(&b, c, all, slice == 0 && threadIdx.x == 0);
  batch_norm2d_write<V>(NULL, 0, &b, batch_norm2d_slice(b.shape, c, slice, gridDim.x), line);
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, 2) batch_norm2d_sums_slices_kernel(BatchNorm2d b) {
  __shared__ float2 part[BATCH_NORM_WARPS];
  const int c = blockIdx.y;
  const BatchNorm2dSlice p = batch_norm2d_slice(b.shape, c, blockIdx.x, gridDim.x);
  const BatchNorm2dLine line = batch_norm2d_line(&b, c, b.mean[c], b.inv_std[c]);
  const float2 sum = pair_sum_block(batch_norm2d_read_back<V>(NULL, 0, &b, p, line), part);
  if (threadIdx.x == 0) ((float2 *)b.workspace)[c * gridDim.x + blockIdx.x] = sum;
}

template <int V>
static __global__ void __launch_bounds__(BATCH_NORM_THREADS, 2) batch_norm2d_backward_slices_kernel(BatchNorm2d b) {
  const int c = b.shape.c - 1 - blockIdx.y, slice = gridDim.x - 1 - blockIdx.x;
  const float2 *parts = (const float2 *)b.workspace + (size_t)c * gridDim.x;
  const float m = (float)((size_t)b.shape.n * b.shape.pixels);
  BatchNorm2dLine line = batch_norm2d_line(&b, c, b.mean[c], b.inv_std[c]);
  __shared__ float2 all;
  if (threadIdx.x < 32) {
    float2 sum = {0, 0};
    for (int i = threadIdx.x; i < (int)gridDim.x; i += 32) {
      sum.x += parts[i].x;
      sum.y += parts[i].y;
    }
    sum = pair_sum_warp(sum);
    if (threadIdx.x == 0) all = sum;
  }
  __syncthreads();
  if (b.dgamma && slice == 0 && threadIdx.x == 0) {
    b.dbeta[c] = all.x;
    b.dgamma[c] = all.y;
  }
  line.share = all.x / m;
  line.slope = all.y / m;
  if (b.dx) batch_norm2d_write_back<V>(NULL, 0, &b, batch_norm2d_slice(b.shape, c, slice, gridDim.x), line);
}

template <int V>
static inline void batch_norm2d_forward_slices_of(const BatchNorm2d *b) {
  const dim3 grid((unsigned)batch_norm2d_slices(b->shape), (unsigned)b->shape.c);
  batch_norm2d_statistics_slices_kernel<V><<<grid, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm2d_forward_slices_kernel<V><<<grid, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
}

template <int V>
static inline void batch_norm2d_backward_slices_of(const BatchNorm2d *b) {
  const dim3 grid((unsigned)batch_norm2d_slices(b->shape), (unsigned)b->shape.c);
  batch_norm2d_sums_slices_kernel<V><<<grid, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm2d_backward_slices_kernel<V><<<grid, BATCH_NORM_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
}

static inline void batch_norm2d_forward_slices(const BatchNorm2d *b) {
  if (batch_norm2d_in_fours(b))
    batch_norm2d_forward_slices_of<4>(b);
  else
    batch_norm2d_forward_slices_of<1>(b);
}

static inline void batch_norm2d_backward_slices(const BatchNorm2d *b) {
  if (batch_norm2d_in_fours(b))
    batch_norm2d_backward_slices_of<4>(b);
  else
    batch_norm2d_backward_slices_of<1>(b);
}

#endif /* PHASE3_CNN_BATCH_NORM2D_LADDER_CUH */

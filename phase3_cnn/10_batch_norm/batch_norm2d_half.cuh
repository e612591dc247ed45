/* batch_norm2d_half.cuh - batch norm of arrays of 16 bits, (N,H,W,C) with the channels filled up (common/half.h): what
 * networks in half precision train with. T is __nv_bfloat16 or __half.
 *
 * Statistics are float32, and so is all arithmetic: a sum of half a million bf16 would stop growing at 256 times its
 * terms. Only what lies in memory has 16 bits. The formulas, and what may be part of it (`after`), are those of
 * batch_norm2d.cuh; on a CPU that is the definition of this (common/nn/lower.h).
 *
 *     forward    sums of slices | mean, deviation, running statistics | y
 *     backward   sums of slices | sums of channels, dgamma, dbeta     | dx, dz
 *
 * Each line is three kernels. A thread has eight channels, 16 bytes, of every so-many-th pixel, so that its channels
 * and what belongs to them stay in registers. A block of the first kernel has up to 64 channels and a slice of the
 * pixels.
 *
 * The variance is computed from sums of x - s and of its square, where s is the channel's value in one pixel, the same
 * for all threads: sums of slices are added up without more, and nothing large is subtracted from something large, as
 * s is not far from the mean. (batch_norm2d_moments.cuh explains why this matters.)
 *
 * `passed` has a bit per value here, a byte per run of eight channels, in the order of the array.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_HALF_CUH
#define PHASE3_CNN_BATCH_NORM2D_HALF_CUH

#include <float.h>

#include "common/half.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

enum {
  BATCH_NORM_HALF_THREADS = 256,
  BATCH_NORM_HALF_CHANNELS = 64, /* of a block of the first kernel */
  BATCH_NORM_HALF_SLICES = 264,
  BATCH_NORM_HALF_ROWS = 256, /* pixels of a slice, at least */
  BATCH_NORM_HALF_BLOCKS = 1056
};

/* The arrays of batch_norm2d_arrays.cuh, with those of 16 bits in their place. */
template <typename T>
struct BatchNormHalf {
  size_t rows;        /* pixels of all images */
  int channels, runs; /* C, and eights of them */
  BatchNorm2dAfter after;
  const T *x, *z, *dy;
  T *y, *dx, *dz;
  const float *gamma, *beta;
  float *running_mean, *running_var;
  float *mean, *inv_std, *dgamma, *dbeta;
  unsigned char *passed; /* (rows, runs) */
  float *workspace;      /* (slices, 2, 8 runs): sums of slices; then (2, 8 runs): of channels */
};

static inline int batch_norm_half_slices(size_t rows) {
  const size_t slices = (rows + BATCH_NORM_HALF_ROWS - 1) / BATCH_NORM_HALF_ROWS;
  return slices < BATCH_NORM_HALF_SLICES ? (int)slices : BATCH_NORM_HALF_SLICES;
}

static inline size_t batch_norm_half_floats(size_t rows, int channels) {
  return 2 * ((size_t)batch_norm_half_slices(rows) + 1) * half_channels(channels);
}

/* A pixel that is like any other: not the corner of an image. */
static __host__ __device__ __forceinline__ size_t batch_norm_half_shift_row(size_t rows) { return rows * 619 / 1000; }

/* Eight channels from `channel` on; behind the last they are 0, and so is y. */
struct BatchNormHalfLines {
  float mean[HALF_RUN], inv_std[HALF_RUN], gamma[HALF_RUN], beta[HALF_RUN];
};

template <typename T>
static __device__ __forceinline__ BatchNormHalfLines batch_norm_half_lines(const BatchNormHalf<T> &b, int channel,
                                                                           bool evaluates) {
  BatchNormHalfLines l;
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const int c = channel + e;
    const bool inside = c < b.channels;
    l.gamma[e] = inside ? b.gamma[c] : 0;
    l.beta[e] = inside ? b.beta[c] : 0;
    l.mean[e] = !inside ? 0 : evaluates ? b.running_mean[c] : b.mean[c];
    l.inv_std[e] = !inside ? 0 : evaluates ? 1 / sqrtf(b.running_var[c] + BATCH_NORM_EPSILON) : b.inv_std[c];
  }
  return l;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sums of slices */

/* Which run of channels a thread of the first kernels has, which rows, and how many of these are read at once. */
typedef struct BatchNormHalfPart {
  size_t row, end;
  int run, runs, line, lines; /* run: of the array; runs: of this block; line: of `lines` rows */
} BatchNormHalfPart;

template <typename T>
static __device__ __forceinline__ BatchNormHalfPart batch_norm_half_part(const BatchNormHalf<T> &b) {
  const int most = BATCH_NORM_HALF_CHANNELS / HALF_RUN, first = blockIdx.x * most;
  BatchNormHalfPart p;
  p.runs = b.runs - first < most ? b.runs - first : most;
  p.run = first + (int)threadIdx.x % p.runs;
  p.line = (int)threadIdx.x / p.runs;
  p.lines = BATCH_NORM_HALF_THREADS / p.runs;
  p.row = b.rows * blockIdx.y / gridDim.y + p.line;
  p.end = p.line < p.lines ? b.rows * (blockIdx.y + 1) / gridDim.y : 0;
  return p;
}

/* Two sums of each channel over the threads of a block, to workspace[slice]. `sums` (256, 16) is shared, with a column
 * between rows. */
template <typename T>
static __device__ __forceinline__ void batch_norm_half_block_sums(const BatchNormHalf<T> &b, const BatchNormHalfPart &p,
                                                                  float (*sums)[2 * HALF_RUN + 1],
                                                                  const float (&first)[HALF_RUN],
                                                                  const float (&second)[HALF_RUN]) {
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    sums[threadIdx.x][e] = first[e];
    sums[threadIdx.x][HALF_RUN + e] = second[e];
  }
  __syncthreads();
  /* Half of the lines are added to the other half, until one is left. Threads of a line are neighbours. */
  for (int left = p.lines; left > 1;) {
    const int half = (left + 1) / 2;
    for (int i = threadIdx.x; i < (left - half) * p.runs * 2 * HALF_RUN; i += BATCH_NORM_HALF_THREADS) {
      const int thread = i / (2 * HALF_RUN), e = i % (2 * HALF_RUN);
      sums[thread][e] += sums[half * p.runs + thread][e];
    }
    __syncthreads();
    left = half;
  }
  for (int i = threadIdx.x; i < p.runs * 2 * HALF_RUN; i += BATCH_NORM_HALF_THREADS) {
    const int run = i / HALF_RUN % p.runs, which = i / HALF_RUN / p.runs, e = i % HALF_RUN;
    const int channel = (blockIdx.x * (BATCH_NORM_HALF_CHANNELS / HALF_RUN) + run) * HALF_RUN + e;
    b.workspace[((size_t)blockIdx.y * 2 + which) * b.runs * HALF_RUN + channel] = sums[run][which * HALF_RUN + e];
  }
}

template <typename T>
static __global__ void __launch_bounds__(BATCH_NORM_HALF_THREADS) batch_norm_half_moments_kernel(BatchNormHalf<T> b) {
  __shared__ float sums[BATCH_NORM_HALF_THREADS][2 * HALF_RUN + 1];
  const BatchNormHalfPart p = batch_norm_half_part(b);
  float shift[HALF_RUN], sum[HALF_RUN] = {}, squares[HALF_RUN] = {};
  half_load(shift, b.x + (batch_norm_half_shift_row(b.rows) * b.runs + p.run) * HALF_RUN);
#pragma unroll 4
  for (size_t row = p.row; row < p.end; row += p.lines) {
    float x[HALF_RUN];
    half_load(x, b.x + (row * b.runs + p.run) * HALF_RUN);
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++) {
      const float d = x[e] - shift[e];
      sum[e] += d;
      squares[e] += d * d;
    }
  }
  batch_norm_half_block_sums(b, p, sums, sum, squares);
}

/* g = dy where the ReLU passed it. */
template <typename T>
static __device__ __forceinline__ void batch_norm_half_gradient(float (&g)[HALF_RUN], const float (&x)[HALF_RUN],
                                                                const BatchNormHalf<T> &b, const BatchNormHalfLines &l,
                                                                size_t i) {
  const unsigned bits = b.after == BATCH_NORM_ADD_RELU ? b.passed[i] : 0;
  half_load(g, b.dy + i * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const float y = fmaf(x[e] - l.mean[e], l.gamma[e] * l.inv_std[e], l.beta[e]);
    const bool passed = b.after == BATCH_NORM_ADD_RELU ? bits >> e & 1 : b.after == BATCH_NORM_ALONE || !(y <= 0);
    if (!passed) g[e] = 0;
  }
}

template <typename T>
static __global__ void __launch_bounds__(BATCH_NORM_HALF_THREADS) batch_norm_half_sums_kernel(BatchNormHalf<T> b) {
  __shared__ float sums[BATCH_NORM_HALF_THREADS][2 * HALF_RUN + 1];
  const BatchNormHalfPart p = batch_norm_half_part(b);
  const BatchNormHalfLines l = batch_norm_half_lines(b, p.run * HALF_RUN, false);
  float sum[HALF_RUN] = {}, product[HALF_RUN] = {};
#pragma unroll 2
  for (size_t row = p.row; row < p.end; row += p.lines) {
    const size_t i = row * b.runs + p.run;
    float x[HALF_RUN], g[HALF_RUN];
    half_load(x, b.x + i * HALF_RUN);
    batch_norm_half_gradient(g, x, b, l, i);
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++) {
      sum[e] += g[e];
      product[e] += g[e] * ((x[e] - l.mean[e]) * l.inv_std[e]);
    }
  }
  batch_norm_half_block_sums(b, p, sums, sum, product);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sums of channels: a block has 32 channels, and 8 threads share out the slices of each. */

enum { BATCH_NORM_HALF_COLUMNS = 32, BATCH_NORM_HALF_SHARES = 8 };

template <typename T>
static __device__ __forceinline__ float2 batch_norm_half_channel(const BatchNormHalf<T> &b, int slices,
                                                                 float2 (*part)[BATCH_NORM_HALF_COLUMNS]) {
  const int c = blockIdx.x * BATCH_NORM_HALF_COLUMNS + threadIdx.x, all = b.runs * HALF_RUN;
  float2 sum = {0, 0};
#pragma unroll 8
  for (int slice = threadIdx.y; slice < slices && c < b.channels; slice += BATCH_NORM_HALF_SHARES) {
    sum.x += b.workspace[(size_t)slice * 2 * all + c];
    sum.y += b.workspace[(size_t)slice * 2 * all + all + c];
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int i = 1; i < BATCH_NORM_HALF_SHARES && threadIdx.y == 0; i++) {
    sum.x += part[i][threadIdx.x].x;
    sum.y += part[i][threadIdx.x].y;
  }
  return sum;
}

/* Running statistics stay as they are where the batch's are not finite: a step that overflows leaves no trace. */
template <typename T>
static __global__ void batch_norm_half_finish_kernel(BatchNormHalf<T> b, int slices) {
  __shared__ float2 part[BATCH_NORM_HALF_SHARES][BATCH_NORM_HALF_COLUMNS];
  const int c = blockIdx.x * BATCH_NORM_HALF_COLUMNS + threadIdx.x;
  const float2 sum = batch_norm_half_channel(b, slices, part);
  if (threadIdx.y != 0 || c >= b.channels) return;
  const float shift = half_float(b.x[batch_norm_half_shift_row(b.rows) * b.runs * HALF_RUN + c]), m = (float)b.rows;
  const float mean = shift + sum.x / m, squares = fmaxf(sum.y - sum.x * (sum.x / m), 0);
  const float inv_std = 1 / sqrtf((sum.y == sum.y ? squares : sum.y) / m + BATCH_NORM_EPSILON);
  b.mean[c] = mean;
  b.inv_std[c] = inv_std;
  if (!(fabsf(mean) <= FLT_MAX && sum.y <= FLT_MAX)) return;
  b.running_mean[c] += BATCH_NORM_MOMENTUM * (mean - b.running_mean[c]);
  b.running_var[c] += BATCH_NORM_MOMENTUM * (squares / (m - 1) - b.running_var[c]);
}

template <typename T>
static __global__ void batch_norm_half_total_kernel(BatchNormHalf<T> b, int slices) {
  __shared__ float2 part[BATCH_NORM_HALF_SHARES][BATCH_NORM_HALF_COLUMNS];
  const int c = blockIdx.x * BATCH_NORM_HALF_COLUMNS + threadIdx.x, all = b.runs * HALF_RUN;
  const float2 sum = batch_norm_half_channel(b, slices, part);
  if (threadIdx.y != 0 || c >= b.channels) return;
  float *total = b.workspace + (size_t)slices * 2 * all;
  total[c] = sum.x / (float)b.rows;
  total[all + c] = sum.y / (float)b.rows;
  if (b.dgamma == NULL) return;
  b.dbeta[c] = sum.x;
  b.dgamma[c] = sum.y;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Results. The number of threads is a multiple of the runs of a pixel, so that each keeps its channels. */

template <typename T>
static __global__ void __launch_bounds__(BATCH_NORM_HALF_THREADS)
    batch_norm_half_apply_kernel(BatchNormHalf<T> b, bool evaluates) {
  const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
  const bool add = b.after == BATCH_NORM_ADD_RELU;
  const BatchNormHalfLines l = batch_norm_half_lines(b, (int)(first % b.runs) * HALF_RUN, evaluates);
#pragma unroll 2
  for (size_t i = first; i < b.rows * b.runs; i += step) {
    float x[HALF_RUN], z[HALF_RUN] = {};
    unsigned bits = 0;
    half_load(x, b.x + i * HALF_RUN);
    if (add) half_load(z, b.z + i * HALF_RUN);
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++) {
      float y = fmaf(x[e] - l.mean[e], l.gamma[e] * l.inv_std[e], l.beta[e]);
      if (add) y += z[e];
      x[e] = b.after != BATCH_NORM_ALONE && y < 0 ? 0 : y;
      bits |= (unsigned)!(x[e] <= 0) << e;
    }
    half_store(b.y + i * HALF_RUN, x);
    if (add && !evaluates) b.passed[i] = (unsigned char)bits;
  }
}

template <typename T>
static __global__ void __launch_bounds__(BATCH_NORM_HALF_THREADS)
    batch_norm_half_dx_kernel(BatchNormHalf<T> b, const float *total) {
  const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
  const int channel = (int)(first % b.runs) * HALF_RUN;
  const BatchNormHalfLines l = batch_norm_half_lines(b, channel, false);
  float share[HALF_RUN], slope[HALF_RUN];
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    share[e] = channel + e < b.channels ? total[channel + e] : 0;
    slope[e] = channel + e < b.channels ? total[b.runs * HALF_RUN + channel + e] : 0;
  }
#pragma unroll 2
  for (size_t i = first; i < b.rows * b.runs; i += step) {
    float x[HALF_RUN], g[HALF_RUN];
    half_load(x, b.x + i * HALF_RUN);
    batch_norm_half_gradient(g, x, b, l, i);
    if (b.dz) half_store(b.dz + i * HALF_RUN, g);
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++)
      x[e] = l.gamma[e] * l.inv_std[e] * (g[e] - share[e] - (x[e] - l.mean[e]) * l.inv_std[e] * slope[e]);
    if (b.dx) half_store(b.dx + i * HALF_RUN, x);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Blocks of the last kernels: about two runs per thread, and a multiple of b->runs. */
template <typename T>
static inline unsigned batch_norm_half_apply_blocks(const BatchNormHalf<T> *b) {
  const size_t threads = b->rows * b->runs, blocks = (threads + BATCH_NORM_HALF_THREADS - 1) / BATCH_NORM_HALF_THREADS;
  const size_t most = BATCH_NORM_HALF_BLOCKS, few = blocks < most ? blocks : most;
  return (unsigned)((few + b->runs - 1) / b->runs * b->runs);
}

static inline dim3 batch_norm_half_grid(int runs, int slices) {
  const int most = BATCH_NORM_HALF_CHANNELS / HALF_RUN;
  return dim3((unsigned)(runs + most - 1) / most, (unsigned)slices);
}

static inline unsigned batch_norm_half_channel_blocks(int channels) {
  return (unsigned)(channels + BATCH_NORM_HALF_COLUMNS - 1) / BATCH_NORM_HALF_COLUMNS;
}

template <typename T>
static inline void batch_norm_half_forward(const BatchNormHalf<T> *b) {
  const int slices = batch_norm_half_slices(b->rows);
  const dim3 channels(BATCH_NORM_HALF_COLUMNS, BATCH_NORM_HALF_SHARES);
  batch_norm_half_moments_kernel<T><<<batch_norm_half_grid(b->runs, slices), BATCH_NORM_HALF_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm_half_finish_kernel<T><<<batch_norm_half_channel_blocks(b->channels), channels>>>(*b, slices);
  CUDA_CHECK_LAUNCH();
  batch_norm_half_apply_kernel<T><<<batch_norm_half_apply_blocks(b), BATCH_NORM_HALF_THREADS>>>(*b, false);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void batch_norm_half_evaluate(const BatchNormHalf<T> *b) {
  batch_norm_half_apply_kernel<T><<<batch_norm_half_apply_blocks(b), BATCH_NORM_HALF_THREADS>>>(*b, true);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void batch_norm_half_backward(const BatchNormHalf<T> *b) {
  const int slices = batch_norm_half_slices(b->rows);
  const dim3 channels(BATCH_NORM_HALF_COLUMNS, BATCH_NORM_HALF_SHARES);
  batch_norm_half_sums_kernel<T><<<batch_norm_half_grid(b->runs, slices), BATCH_NORM_HALF_THREADS>>>(*b);
  CUDA_CHECK_LAUNCH();
  batch_norm_half_total_kernel<T><<<batch_norm_half_channel_blocks(b->channels), channels>>>(*b, slices);
  CUDA_CHECK_LAUNCH();
  if (b->dx == NULL && b->dz == NULL) return;
  batch_norm_half_dx_kernel<T><<<batch_norm_half_apply_blocks(b), BATCH_NORM_HALF_THREADS>>>(
      *b, b->workspace + (size_t)slices * 2 * b->runs * HALF_RUN);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_BATCH_NORM2D_HALF_CUH */

/* fused_batchnorm_relu_softmax.cuh - three consecutive operations of a network in one kernel.
 *
 *   x, y (rows,cols): rows of a batch, cols features;  mean, variance, gamma, beta (cols)
 *   n[j] = (x[j] - mean[j]) / sqrt(variance[j] + epsilon) * gamma[j] + beta[j]      batch normalisation
 *   z[j] = max(n[j], 0)                                                             ReLU
 *   y    = softmax(z), row by row                                                   softmax.cuh
 *
 * Memory traffic decides the time: three kernels read the array three times and write it three times, one kernel does
 * both once. Whether operations can be fused depends on what each result needs. ReLU needs its element, softmax its
 * row. The normalisation here is that of inference: mean and variance were collected in training, so a result needs
 * its element and four numbers of its column. In training, mean and variance are those of the batch and need the whole
 * column: no row can be finished before all rows have been read, so x is read a second time. Fusing the two passes
 * into one kernel would then need a barrier over the whole grid and would save no byte.
 *
 *   batchnorm_relu_softmax_separate   three kernels: 3 reads, 3 writes
 *   batchnorm_relu_softmax_two        normalisation and ReLU in one kernel: 2 reads, 2 writes
 *   batchnorm_relu_softmax_online     one kernel, one block per row: 2 reads, 1 write, 8 loads of parameters per
 * element
 *   batchnorm_relu_softmax_fused      the row in registers, the folded parameters in shared memory: 1 read, 1 write
 *   batchnorm_relu_softmax_gpu        two rows per block, parameters from the L1 cache: nothing is done before the rows
 *
 * All may work in place (y == x).
 */
#ifndef PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_CUH
#define PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_CUH

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"
#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase1_building_blocks/08_softmax/softmax.cuh"

#define BATCHNORM_EPSILON 1e-5f /* keeps a column that never changes from dividing by zero */

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void batchnorm_relu_softmax_cpu(float *y, const float *x, const float *mean, const float *variance,
                                              const float *gamma, const float *beta, int rows, int cols) {
  double *z = (double *)xmalloc((size_t)cols * sizeof *z);
  for (int row = 0; row < rows; row++, x += cols, y += cols) {
    double max = 0, sum = 0; /* no z is below 0 */
    for (int j = 0; j < cols; j++) {
      double n = (x[j] - (double)mean[j]) / sqrt((double)variance[j] + BATCHNORM_EPSILON) * gamma[j] + beta[j];
      z[j] = n < 0 ? 0 : n;
      if (z[j] > max) max = z[j];
    }
    for (int j = 0; j < cols; j++) sum += exp(z[j] - max);
    for (int j = 0; j < cols; j++) y[j] = (float)(exp(z[j] - max) / sum);
  }
  free(z);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The four numbers of a column, folded into two: n = scale x + shift. */
typedef struct BatchnormLine {
  float scale, shift;
} BatchnormLine;

static __device__ __forceinline__ BatchnormLine batchnorm_fold(float mean, float variance, float gamma, float beta) {
  BatchnormLine line = {1, 0};
  // >>> exercise batchnorm_fold: set line.scale and line.shift so that scale * x + shift is the normalised x
  // hint: n = (x - mean) / sqrt(variance + epsilon) * gamma + beta: which factor does x have, and what is added?
  // hint: sqrtf(), BATCHNORM_EPSILON; the scale is gamma / sqrt(variance + epsilon)
  // hint: line.scale = gamma / sqrtf(variance + BATCHNORM_EPSILON); line.shift = beta - mean * line.scale;
  line.scale = gamma / sqrtf(variance + BATCHNORM_EPSILON);
  line.shift = beta - mean * line.scale;
  // <<< exercise
  return line;
}

static __device__ __forceinline__ float batchnorm_relu_one(float x, float scale, float shift) {
  float n = fmaf(x, scale, shift);
  return n < 0 ? 0 : n; /* NaN stays */
}

/* One thread per column: it folds the four numbers once and uses the two results in every row. RELU: also max(n, 0). */
enum { BATCHNORM_THREADS = 128, BATCHNORM_ROWS = 32 }; /* per block */

template <bool RELU>
static __global__ void batchnorm_kernel(float *y, const float *x, const float *mean, const float *variance,
                                        const float *gamma, const float *beta, int rows, int cols) {
  int col = blockIdx.y * BATCHNORM_THREADS + threadIdx.x;
  if (col >= cols) return;
  BatchnormLine line = batchnorm_fold(mean[col], variance[col], gamma[col], beta[col]);
  // >>> exercise batchnorm_columns: normalise column `col` in this block's rows, from blockIdx.x * BATCHNORM_ROWS on
  // hint: BATCHNORM_ROWS rows per block, but not beyond `rows`; element (row, col) is at row * cols + col, a size_t
  // hint: y = scale * x + shift, by fmaf(); if RELU, batchnorm_relu_one() does that and the maximum with 0
  // hint: for (int row = first; row < first + BATCHNORM_ROWS && row < rows; row++) y[(size_t)row * cols + col] = ...
  int first = blockIdx.x * BATCHNORM_ROWS, end = min(first + BATCHNORM_ROWS, rows);
#pragma unroll 8
  for (int row = first; row < end; row++) {
    size_t at = (size_t)row * cols + col;
    y[at] = RELU ? batchnorm_relu_one(x[at], line.scale, line.shift) : fmaf(x[at], line.scale, line.shift);
  }
  // <<< exercise
}

/* Four columns per thread, for rows that begin at a multiple of 16 bytes (float4_access.cuh). */
template <bool RELU>
static __global__ void batchnorm_quads_kernel(float4 *y, const float4 *x, const float4 *mean, const float4 *variance,
                                              const float4 *gamma, const float4 *beta, int rows, int quads) {
  int q = blockIdx.y * BATCHNORM_THREADS + threadIdx.x;
  if (q >= quads) return;
  float4 m = mean[q], v = variance[q], g = gamma[q], b = beta[q];
  BatchnormLine line[4] = {batchnorm_fold(m.x, v.x, g.x, b.x), batchnorm_fold(m.y, v.y, g.y, b.y),
                           batchnorm_fold(m.z, v.z, g.z, b.z), batchnorm_fold(m.w, v.w, g.w, b.w)};
  // >>> hidden batchnorm_columns
  int first = blockIdx.x * BATCHNORM_ROWS, end = min(first + BATCHNORM_ROWS, rows);
#pragma unroll 4
  for (int row = first; row < end; row++) {
    float4 u = x[(size_t)row * quads + q];
    if (RELU)
      u = make_float4(
          batchnorm_relu_one(u.x, line[0].scale, line[0].shift), batchnorm_relu_one(u.y, line[1].scale, line[1].shift),
          batchnorm_relu_one(u.z, line[2].scale, line[2].shift), batchnorm_relu_one(u.w, line[3].scale, line[3].shift));
    else
      u = make_float4(fmaf(u.x, line[0].scale, line[0].shift), fmaf(u.y, line[1].scale, line[1].shift),
                      fmaf(u.z, line[2].scale, line[2].shift), fmaf(u.w, line[3].scale, line[3].shift));
    y[(size_t)row * quads + q] = u;
  }
  // <<< hidden
}

/* Computes z where it is needed, twice, instead of storing it: arithmetic instead of memory traffic. */
static __global__ void batchnorm_relu_softmax_online_kernel(float *y, const float *x, const float *mean,
                                                            const float *variance, const float *gamma,
                                                            const float *beta, int cols) {
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  MaxSum seen = max_sum_make(-INFINITY, 0);
  // >>> exercise batchnorm_relu_softmax: write softmax(relu(batchnorm(x))) of the block's row to y, in two passes
  // hint: first pass: thread t takes elements t, t + SOFTMAX_THREADS, ...; max_sum_add(seen, z) adds z
  // hint: row_max_sum<SOFTMAX_THREADS>(seen) joins all threads' results; second pass: expf(z - seen.max) / seen.sum
  // hint: z = batchnorm_relu_one(x[j], line.scale, line.shift), line = batchnorm_fold(mean[j], variance[j], ...)
  for (int j = threadIdx.x; j < cols; j += SOFTMAX_THREADS) {
    BatchnormLine line = batchnorm_fold(mean[j], variance[j], gamma[j], beta[j]);
    seen = max_sum_add(seen, batchnorm_relu_one(x[j], line.scale, line.shift));
  }
  seen = row_max_sum<SOFTMAX_THREADS>(seen);
  for (int j = threadIdx.x; j < cols; j += SOFTMAX_THREADS) {
    BatchnormLine line = batchnorm_fold(mean[j], variance[j], gamma[j], beta[j]);
    y[j] = expf(batchnorm_relu_one(x[j], line.scale, line.shift) - seen.max) / seen.sum;
  }
  // <<< exercise
}

/* z of four columns from `col` on; scale and shift lie in shared memory. If rows begin at a multiple of 16 bytes
 * (aligned), `col` is a multiple of four, and the parameters can be loaded as float4. */
static __device__ __forceinline__ float4 batchnorm_relu_quad(float4 x, const float *scale, const float *shift, int col,
                                                             bool aligned) {
  float4 a, b;
  if (aligned) {
    a = *(const float4 *)(scale + col);
    b = *(const float4 *)(shift + col);
  } else {
    a = make_float4(scale[col], scale[col + 1], scale[col + 2], scale[col + 3]);
    b = make_float4(shift[col], shift[col + 1], shift[col + 2], shift[col + 3]);
  }
  return make_float4(batchnorm_relu_one(x.x, a.x, b.x), batchnorm_relu_one(x.y, a.y, b.y),
                     batchnorm_relu_one(x.z, a.z, b.z), batchnorm_relu_one(x.w, a.w, b.w));
}

/* Like softmax_forward_kernel, but each block processes many rows, because it must first fold the parameters of all
 * columns into shared memory: 2 cols floats. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS, 1024 / (T * ROWS))
    batchnorm_relu_softmax_kernel(float *y, const float *x, const float *mean, const float *variance,
                                  const float *gamma, const float *beta, int rows, int cols) {
  extern __shared__ float4 lines[];
  float *scale = (float *)lines, *shift = scale + (cols + 3) / 4 * 4;
  int t = threadIdx.x;
  // >>> exercise batchnorm_parameters: fold the numbers of every column into scale and shift, with all threads
  // hint: the block has T * ROWS threads; this one is number threadIdx.y * T + t: it takes every (T * ROWS)-th column
  // hint: batchnorm_fold() of mean[j], variance[j], gamma[j], beta[j]
  // hint: each thread uses what others have folded: what must stand between the two?
  for (int j = threadIdx.y * T + t; j < cols; j += T * ROWS) {
    BatchnormLine line = batchnorm_fold(mean[j], variance[j], gamma[j], beta[j]);
    scale[j] = line.scale;
    shift[j] = line.shift;
  }
  __syncthreads(); /* every column is folded */
  // <<< exercise

  /* Unsigned: the last r plus the rows of the grid may overflow an int. */
  for (unsigned r = blockIdx.x * ROWS + threadIdx.y; r < (unsigned)rows; r += gridDim.x * ROWS) {
    Row row = row_split(x + (size_t)r * cols, cols);
    const float4 *in = (const float4 *)(x + (size_t)r * cols + row.head);
    float4 *out = (float4 *)(y + (size_t)r * cols + row.head), kept[QUADS];
    int edge = row_edge(row, t);
#pragma unroll
    for (int i = 0; i < QUADS; i++) kept[i] = t + i * T < row.quads ? __ldcs(&in[t + i * T]) : make_float4(0, 0, 0, 0);
    float alone = edge >= 0 ? x[(size_t)r * cols + edge] : 0, max = 0, sum = 0; /* no z is below 0 */
    if (edge >= 0) alone = batchnorm_relu_one(alone, scale[edge], shift[edge]);
    max = fmaxf(max, alone);
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      if (t + i * T >= row.quads) continue;
      kept[i] = batchnorm_relu_quad(kept[i], scale, shift, row.head + 4 * (t + i * T), row.head == 0);
      max = fmaxf(max, softmax_quad_max(kept[i]));
    }
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      if (t + i * T >= row.quads) continue;
      kept[i] = softmax_quad_exp(kept[i], max);
      sum += softmax_quad_sum(kept[i]);
    }
    alone = edge >= 0 ? expf(alone - max) : 0;
    MaxSum all = row_max_sum<T>(max_sum_make(max, sum + alone));
    float factor = expf(max - all.max) / all.sum;
#pragma unroll
    for (int i = 0; i < QUADS; i++)
      if (t + i * T < row.quads) __stcs(&out[t + i * T], softmax_quad_scale(kept[i], factor));
    if (edge >= 0) y[(size_t)r * cols + edge] = alone * factor;
    if (T > 32) __syncthreads(); /* before row_max_sum() uses its shared memory again */
  }
}

/* As batchnorm_fold(), in a few instructions: rsqrtf() errs by up to 2 units in the last place. */
static __device__ __forceinline__ BatchnormLine batchnorm_fold_fast(float mean, float variance, float gamma,
                                                                    float beta) {
  BatchnormLine line;
  line.scale = gamma * rsqrtf(variance + BATCHNORM_EPSILON);
  line.shift = fmaf(-mean, line.scale, beta);
  return line;
}

enum { BATCHNORM_PAIR = 2 }; /* rows of a block */

/* For rows that begin at a multiple of 16 bytes. A block of the kernel above folds the parameters of all columns before
 * it asks for its first row, and many blocks do so at once: 34 MB from the L2 cache for 4096 x 4096 on an H200, while
 * the memory waits. Here a block has two rows, asks for them first, and folds the parameters of a column where it needs
 * them, for both rows: no shared memory, no barrier. The L1 cache has the parameters, because the blocks before on the
 * same multiprocessor needed the same ones; x does not displace them (__ldcs). */
template <int T, int QUADS>
static __global__ void __launch_bounds__(T, 1024 / T)
    batchnorm_relu_softmax_pairs_kernel(float4 *y, const float4 *x, const float4 *mean, const float4 *variance,
                                        const float4 *gamma, const float4 *beta, int rows, int quads) {
  __shared__ MaxSum part[BATCHNORM_PAIR][T / 32];
  const int t = threadIdx.x, r = blockIdx.x * BATCHNORM_PAIR, here = min(BATCHNORM_PAIR, rows - r);
  float4 kept[BATCHNORM_PAIR][QUADS];
  MaxSum own[BATCHNORM_PAIR];
  x += (size_t)r * quads;
  y += (size_t)r * quads;
#pragma unroll
  for (int k = 0; k < BATCHNORM_PAIR; k++) {
    own[k] = max_sum_make(0, 0); /* no z is below 0 */
#pragma unroll
    for (int i = 0; i < QUADS; i++)
      kept[k][i] = k < here && t + i * T < quads ? __ldcs(&x[k * quads + t + i * T]) : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    if (t + i * T >= quads) continue;
    float4 m = mean[t + i * T], v = variance[t + i * T], g = gamma[t + i * T], b = beta[t + i * T];
    BatchnormLine line[4] = {batchnorm_fold_fast(m.x, v.x, g.x, b.x), batchnorm_fold_fast(m.y, v.y, g.y, b.y),
                             batchnorm_fold_fast(m.z, v.z, g.z, b.z), batchnorm_fold_fast(m.w, v.w, g.w, b.w)};
#pragma unroll
    for (int k = 0; k < BATCHNORM_PAIR; k++) {
      float4 u = kept[k][i];
      kept[k][i] = make_float4(
          batchnorm_relu_one(u.x, line[0].scale, line[0].shift), batchnorm_relu_one(u.y, line[1].scale, line[1].shift),
          batchnorm_relu_one(u.z, line[2].scale, line[2].shift), batchnorm_relu_one(u.w, line[3].scale, line[3].shift));
      own[k].max = fmaxf(own[k].max, softmax_quad_max(kept[k][i]));
    }
  }
#pragma unroll
  for (int k = 0; k < BATCHNORM_PAIR; k++) {
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      if (t + i * T >= quads) continue;
      kept[k][i] = softmax_quad_exp(kept[k][i], own[k].max);
      own[k].sum += softmax_quad_sum(kept[k][i]);
    }
    MaxSum warp = max_sum_lanes(own[k], 32);
    if (t % 32 == 0) part[k][t / 32] = warp;
  }
  __syncthreads(); /* one for both rows */
#pragma unroll
  for (int k = 0; k < BATCHNORM_PAIR; k++) {
    MaxSum all = max_sum_lanes(part[k][t % (T / 32)], T / 32);
    float factor = expf(own[k].max - all.max) / all.sum;
#pragma unroll
    for (int i = 0; i < QUADS; i++)
      if (k < here && t + i * T < quads) __stcs(&y[k * quads + t + i * T], softmax_quad_scale(kept[k][i], factor));
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <bool RELU>
static inline void batchnorm_launch(float *y, const float *x, const float *mean, const float *variance,
                                    const float *gamma, const float *beta, int rows, int cols) {
  unsigned down = (unsigned)((rows + BATCHNORM_ROWS - 1) / BATCHNORM_ROWS);
  if (quads_fit(x, cols) && quads_fit(y, cols) && quads_fit(mean, 4) && quads_fit(variance, 4) && quads_fit(gamma, 4) &&
      quads_fit(beta, 4)) {
    dim3 grid(down, (unsigned)((cols / 4 + BATCHNORM_THREADS - 1) / BATCHNORM_THREADS));
    batchnorm_quads_kernel<RELU><<<grid, BATCHNORM_THREADS>>>((float4 *)y, (const float4 *)x, (const float4 *)mean,
                                                              (const float4 *)variance, (const float4 *)gamma,
                                                              (const float4 *)beta, rows, cols / 4);
  } else {
    dim3 grid(down, (unsigned)((cols + BATCHNORM_THREADS - 1) / BATCHNORM_THREADS));
    batchnorm_kernel<RELU><<<grid, BATCHNORM_THREADS>>>(y, x, mean, variance, gamma, beta, rows, cols);
  }
  CUDA_CHECK_LAUNCH();
}

static inline void batchnorm_relu_softmax_separate(float *y, const float *x, const float *mean, const float *variance,
                                                   const float *gamma, const float *beta, int rows, int cols) {
  batchnorm_launch<false>(y, x, mean, variance, gamma, beta, rows, cols);
  relu_forward_gpu(y, y, (size_t)rows * cols);
  softmax_forward_gpu(y, y, rows, cols);
}

static inline void batchnorm_relu_softmax_two(float *y, const float *x, const float *mean, const float *variance,
                                              const float *gamma, const float *beta, int rows, int cols) {
  batchnorm_launch<true>(y, x, mean, variance, gamma, beta, rows, cols);
  softmax_forward_gpu(y, y, rows, cols);
}

static inline void batchnorm_relu_softmax_online(float *y, const float *x, const float *mean, const float *variance,
                                                 const float *gamma, const float *beta, int rows, int cols) {
  batchnorm_relu_softmax_online_kernel<<<rows, SOFTMAX_THREADS>>>(y, x, mean, variance, gamma, beta, cols);
  CUDA_CHECK_LAUNCH();
}

/* As many blocks as the GPU holds at once, but not more than the rows need. */
template <int T, int QUADS, int ROWS>
static inline void batchnorm_relu_softmax_launch(float *y, const float *x, const float *mean, const float *variance,
                                                 const float *gamma, const float *beta, int rows, int cols) {
  const void *kernel = (const void *)batchnorm_relu_softmax_kernel<T, QUADS, ROWS>;
  size_t bytes = 2 * sizeof(float) * (size_t)((cols + 3) / 4 * 4);
  int device, multiprocessors, blocks, needed = (rows + ROWS - 1) / ROWS;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, T * ROWS, bytes));
  int grid = min(needed, blocks * multiprocessors);
  batchnorm_relu_softmax_kernel<T, QUADS, ROWS>
      <<<grid, dim3(T, ROWS), bytes>>>(y, x, mean, variance, gamma, beta, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void batchnorm_relu_softmax_fused(float *y, const float *x, const float *mean, const float *variance,
                                                const float *gamma, const float *beta, int rows, int cols) {
  if (!rows_alike(x, y) || cols > 8192)
    batchnorm_relu_softmax_online(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 256)
    batchnorm_relu_softmax_launch<32, 2, 8>(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 1024)
    batchnorm_relu_softmax_launch<32, 8, 8>(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 4096)
    batchnorm_relu_softmax_launch<256, 4, 1>(y, x, mean, variance, gamma, beta, rows, cols);
  else
    batchnorm_relu_softmax_launch<512, 4, 1>(y, x, mean, variance, gamma, beta, rows, cols);
}

template <int T, int QUADS>
static inline void batchnorm_relu_softmax_pairs(float *y, const float *x, const float *mean, const float *variance,
                                                const float *gamma, const float *beta, int rows, int cols) {
  unsigned grid = ((unsigned)rows + BATCHNORM_PAIR - 1) / BATCHNORM_PAIR;
  batchnorm_relu_softmax_pairs_kernel<T, QUADS><<<grid, T>>>((float4 *)y, (const float4 *)x, (const float4 *)mean,
                                                             (const float4 *)variance, (const float4 *)gamma,
                                                             (const float4 *)beta, rows, cols / 4);
  CUDA_CHECK_LAUNCH();
}

static inline void batchnorm_relu_softmax_gpu(float *y, const float *x, const float *mean, const float *variance,
                                              const float *gamma, const float *beta, int rows, int cols) {
  if (!quads_fit(x, cols) || !quads_fit(y, cols) || !quads_fit(mean, cols) || !quads_fit(variance, cols) ||
      !quads_fit(gamma, cols) || !quads_fit(beta, cols) || cols > 8192)
    batchnorm_relu_softmax_fused(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 512)
    batchnorm_relu_softmax_pairs<64, 2>(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 1024)
    batchnorm_relu_softmax_pairs<128, 2>(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 2048)
    batchnorm_relu_softmax_pairs<256, 2>(y, x, mean, variance, gamma, beta, rows, cols);
  else if (cols <= 4096)
    batchnorm_relu_softmax_pairs<512, 2>(y, x, mean, variance, gamma, beta, rows, cols);
  else
    batchnorm_relu_softmax_pairs<512, 4>(y, x, mean, variance, gamma, beta, rows, cols);
}

#endif /* PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_CUH */

/* matmul_skinny.cuh - C (M,N) = A (M,K) B (K,N) for few rows: a vector, or up to 8 of them, times a matrix. Row-major,
 * float32 throughout, sizes at least 1; more rows go 8 at a time. The reference is matmul_cpu() of matmul.cuh.
 *
 * Each element of B takes part in M products only, so the time for few rows is that of reading B once. A kernel with
 * tiles in shared memory loads a tile, waits at a barrier, multiplies briefly and waits again. Here the elements
 * of B go from memory to registers: a thread owns four columns of C and every so many rows of B, its loads do not
 * depend on each other, and a multiprocessor has tens of kilobytes on their way. A needs no shared memory either: a
 * thread uses each of its elements once, and the threads that use the same ones load them with one request.
 *
 * A thread's sum has K / 64 products, and then the sums of the threads are added up: up to K = 24 576 that is shorter
 * than the chunks of the other kernels (matmul_chunk.cuh).
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH

#include <stdbool.h>
#include <stddef.h>

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

enum { MATMUL_SKINNY_ROWS = 8 }; /* at a time */

/* Eight threads side by side own 32 columns: a row of them is one line of 128 bytes. */
enum { MATMUL_SKINNY_ACROSS = 8, MATMUL_SKINNY_COLS = 4 * MATMUL_SKINNY_ACROSS };

/* Four floats of x (rows,cols) at (row,col). ALIGNED: they are inside of x. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 matmul_skinny_four(const float *x, int row, int col, int rows, int cols) {
  return ALIGNED ? *(const float4 *)(x + (size_t)row * cols + col) : quad_load<false>(x, row, col, rows, cols);
}

/* The same of B, which is used once: it shall not displace A from the L1 cache (__ldcs). */
template <bool ALIGNED>
static __device__ __forceinline__ float4 matmul_skinny_four_once(const float *x, int row, int col, int rows, int cols) {
  return ALIGNED ? __ldcs((const float4 *)(x + (size_t)row * cols + col)) : quad_load<false>(x, row, col, rows, cols);
}

/* sum += four products: a row of four elements of A times four rows of B */
static __device__ __forceinline__ void matmul_skinny_add(float4 *sum, float4 left, const float4 *right) {
  const float factor[4] = {left.x, left.y, left.z, left.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    sum->x = fmaf(factor[i], right[i].x, sum->x);
    sum->y = fmaf(factor[i], right[i].y, sum->y);
    sum->z = fmaf(factor[i], right[i].z, sum->z);
    sum->w = fmaf(factor[i], right[i].w, sum->w);
  }
}

/* sum[r] += the products with rows 4 * quad ... 4 * quad + 3 of B, and with DEEP - 1 times four more, STEP times four
 * rows apart. All loads come before the first product. */
template <int ROWS, int DEEP, int STEP, bool ALIGNED>
static __device__ __forceinline__ void matmul_skinny_step(float4 (&sum)[ROWS], const float *a, const float *b, int quad,
                                                          int col, int m, int n, int k) {
  float4 left[DEEP][ROWS], right[DEEP][4];
#pragma unroll
  for (int d = 0; d < DEEP; d++) {
    int row = (quad + d * STEP) * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) right[d][i] = matmul_skinny_four_once<ALIGNED>(b, row + i, col, k, n);
#pragma unroll
    for (int r = 0; r < ROWS; r++) left[d][r] = matmul_skinny_four<ALIGNED>(a, min(r, m - 1), row, m, k);
  }
#pragma unroll
  for (int d = 0; d < DEEP; d++)
#pragma unroll
    for (int r = 0; r < ROWS; r++) matmul_skinny_add(&sum[r], left[d][r], right[d]);
}

/* Adds up the sums of the lanes of a warp that have the same columns. */
static __device__ __forceinline__ float matmul_skinny_lanes(float sum) {
#pragma unroll
  for (int lanes = 16; lanes >= MATMUL_SKINNY_ACROSS; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  return sum;
}

/* Block (x,y) computes 32 columns of C from 32 x on, ROWS rows from ROWS y on. Groups of eight threads take the rows of
 * B in turn, four at a time. */
template <int ROWS, int THREADS, int DEEP, bool ALIGNED>
static __global__ void __launch_bounds__(THREADS, 1)
    matmul_skinny_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int groups = THREADS / MATMUL_SKINNY_ACROSS, warps = THREADS / 32;
  __shared__ __align__(16) float sums[warps][ROWS][MATMUL_SKINNY_COLS];
  int across = threadIdx.x % MATMUL_SKINNY_ACROSS, col0 = blockIdx.x * MATMUL_SKINNY_COLS, row0 = blockIdx.y * ROWS;
  int col = ALIGNED ? min(col0 + 4 * across, n - 4) : col0 + 4 * across; /* those beyond n repeat the last ones */
  a += (size_t)row0 * k;
  c += (size_t)row0 * n;
  m -= row0;

  float4 sum[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) sum[r] = make_float4(0, 0, 0, 0);
  int quad = threadIdx.x / MATMUL_SKINNY_ACROSS, quads = (k + 3) / 4;
  for (; quad + (DEEP - 1) * groups < quads; quad += DEEP * groups)
    matmul_skinny_step<ROWS, DEEP, groups, ALIGNED>(sum, a, b, quad, col, m, n, k);
  for (; quad < quads; quad += groups) matmul_skinny_step<ROWS, 1, groups, ALIGNED>(sum, a, b, quad, col, m, n, k);

#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    float4 v = make_float4(matmul_skinny_lanes(sum[r].x), matmul_skinny_lanes(sum[r].y), matmul_skinny_lanes(sum[r].z),
                           matmul_skinny_lanes(sum[r].w));
    if (threadIdx.x % 32 < MATMUL_SKINNY_ACROSS) *(float4 *)&sums[threadIdx.x / 32][r][4 * across] = v;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * MATMUL_SKINNY_COLS; i += THREADS) {
    int r = i / MATMUL_SKINNY_COLS, at = i % MATMUL_SKINNY_COLS;
    float total = 0;
#pragma unroll
    for (int w = 0; w < warps; w++) total += sums[w][r][at];
    if (r < m && col0 + at < n) c[(size_t)r * n + col0 + at] = total;
  }
}

template <int ROWS, int THREADS, int DEEP>
static inline void matmul_skinny_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 grid((n + MATMUL_SKINNY_COLS - 1) / MATMUL_SKINNY_COLS, (m + ROWS - 1) / ROWS);
  if (quads_fit(a, k) && quads_fit(b, n))
    matmul_skinny_kernel<ROWS, THREADS, DEEP, true><<<grid, THREADS>>>(c, a, b, m, n, k);
  else
    matmul_skinny_kernel<ROWS, THREADS, DEEP, false><<<grid, THREADS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

/* The sums of eight rows leave registers for fewer loads. */
static inline void matmul_skinny(float *c, const float *a, const float *b, int m, int n, int k) {
  if (m == 1)
    matmul_skinny_launch<1, 512, 4>(c, a, b, m, n, k);
  else
    matmul_skinny_launch<MATMUL_SKINNY_ROWS, 512, 1>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH */

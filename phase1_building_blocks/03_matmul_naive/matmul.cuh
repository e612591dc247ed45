/* matmul.cuh - C (M,N) = op(A) op(B), the operation that takes most of the time of most networks.
 *
 * op(A) is (M,K), op(B) is (K,N); op(X) is X or its transpose, and a transposed operand lies in memory as (K,M) or
 * (N,K). With `accumulate` the product is added to C. Sizes are at least 1. Every version adds up in an order that
 * depends on the shape alone: the same bits from run to run, and on the CPU with any number of threads.
 *
 *   matmul_cpu             three loops, sums in double: the reference
 *   matmul_cpu_fast        OpenBLAS, one thread per slice of rows; the slices depend on the shape alone
 *   matmul_blocked_kernel  tiles of A and B in shared memory, a small tile of C per thread in registers; where C
 *                          has few tiles, several groups of threads share the sum over K
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_CUH

#include <cblas.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/threads.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

/* T is float, or double for checking gradients by central differences. */
template <typename T>
static inline void matmul_cpu(T *c, const T *a, const T *b, int m, int n, int k, bool transpose_a, bool transpose_b,
                              bool accumulate) {
  for (int row = 0; row < m; row++) {
    for (int col = 0; col < n; col++) {
      double sum = accumulate ? c[(size_t)row * n + col] : 0.0;
      for (int i = 0; i < k; i++) {
        double x = transpose_a ? a[(size_t)i * m + row] : a[(size_t)row * k + i];
        double y = transpose_b ? b[(size_t)col * k + i] : b[(size_t)i * n + col];
        sum += x * y;
      }
      c[(size_t)row * n + col] = (T)sum;
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum {
  MATMUL_CPU_SLICES = 8,           /* at most, because each slice packs all of B again */
  MATMUL_CPU_SLICE_ROWS = 32,      /* at least */
  MATMUL_CPU_SERIAL_WORK = 250000, /* multiply-adds: below, waking a second thread costs more than it saves */
};

/* OpenBLAS runs in the thread that calls it, and keeps 128 MiB per calling thread. */
static inline bool matmul_blas_begin(void) {
  openblas_set_num_threads(1);
  int threads = threads_most();
  if (threads > MATMUL_CPU_SLICES) threads = MATMUL_CPU_SLICES;
  threads_expect_memory((size_t)threads * 128, "matrix products on the CPU (OpenBLAS)");
  return true;
}

static inline void matmul_cpu_fast(float *c, const float *a, const float *b, int m, int n, int k, bool transpose_a,
                                   bool transpose_b, bool accumulate) {
  static const bool blas_is_ready = matmul_blas_begin(); /* once */
  (void)blas_is_ready;
  int slice_rows = ((m + MATMUL_CPU_SLICES - 1) / MATMUL_CPU_SLICES + 15) / 16 * 16;
  if (slice_rows < MATMUL_CPU_SLICE_ROWS) slice_rows = MATMUL_CPU_SLICE_ROWS;
  if ((double)m * n * k < MATMUL_CPU_SERIAL_WORK) slice_rows = m;

#pragma omp parallel for schedule(static) if (slice_rows < m)
  for (int row = 0; row < m; row += slice_rows) {
    int rows = m - row < slice_rows ? m - row : slice_rows;
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, rows,
                n, k, 1.0f, transpose_a ? a + row : a + (size_t)row * k, transpose_a ? m : k, b, transpose_b ? k : n,
                accumulate ? 1.0f : 0.0f, c + (size_t)row * n, n);
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* A block computes a TILE x TILE tile of C. It walks along K in steps of DEPTH: at each step the threads copy a tile of
 * op(A) and one of op(B) into shared memory, and the tiles of the next step are on their way into registers while
 * these are multiplied. A group of (TILE/REG)^2 threads covers the tile of C, REG x REG elements per thread; there are
 * GROUPS such groups, each takes every GROUPS-th k, and their sums are added up, in order, at the end.
 *
 * In shared memory k is the slow dimension, in rows of TILE + 1 floats: the odd stride avoids most bank conflicts where
 * a warp fills the tile along k.
 *
 * Fetches this thread's share of a tile, LOADS floats, from an operand (rows,K) that lies in memory as (rows,K) or,
 * with ALONG_ROWS, as (K,rows). Neighbouring threads read neighbouring floats either way; outside the operand is 0. */
template <int TILE, int DEPTH, bool ALONG_ROWS, int LOADS>
static __device__ void matmul_tile_fetch(float (&share)[LOADS], const float *operand, int row0, int k0, int rows,
                                         int k) {
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
    int element = threadIdx.x + i * (TILE * DEPTH / LOADS);
    int row = row0 + (ALONG_ROWS ? element % TILE : element / DEPTH);
    int col = k0 + (ALONG_ROWS ? element / TILE : element % DEPTH);
    size_t at = ALONG_ROWS ? (size_t)col * rows + row : (size_t)row * k + col;
    share[i] = row < rows && col < k ? operand[at] : 0.0f;
  }
}

template <int TILE, int DEPTH, bool ALONG_ROWS, int LOADS>
static __device__ void matmul_tile_store(float (*tile)[TILE + 1], const float (&share)[LOADS]) {
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
    int element = threadIdx.x + i * (TILE * DEPTH / LOADS);
    if (ALONG_ROWS)
      tile[element / TILE][element % TILE] = share[i];
    else
      tile[element % DEPTH][element / DEPTH] = share[i];
  }
}

/* C (M,N) = op(A) op(B) [+ bias (N), added to each row] [+ C]; grid (ceil(N / TILE), ceil(M / TILE)). */
template <int TILE, int REG, int GROUPS, int DEPTH, bool TRANSPOSE_A, bool TRANSPOSE_B>
static __global__ void __launch_bounds__(TILE / REG * (TILE / REG) * GROUPS)
    matmul_blocked_kernel(float *c, const float *a, const float *b, const float *bias, int m, int n, int k,
                          bool accumulate) {
  const int side = TILE / REG; /* threads along one side of the tile */
  const int threads = side * side * GROUPS;
  const int loads = TILE * DEPTH / threads;
  static_assert(TILE * DEPTH % threads == 0 && DEPTH % GROUPS == 0, "the threads must share a tile evenly");
  __shared__ float a_tile[DEPTH][TILE + 1], b_tile[DEPTH][TILE + 1];
  __shared__ float partial[GROUPS][TILE * TILE];

  int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  int group = threadIdx.x / (side * side), lane = threadIdx.x % (side * side);
  int y = lane / side, x = lane % side; /* this thread's elements: rows y, y + side, ..., columns x, x + side, ... */

  float a_share[loads], b_share[loads], sum[REG][REG] = {};
  matmul_tile_fetch<TILE, DEPTH, TRANSPOSE_A>(a_share, a, row0, 0, m, k);
  matmul_tile_fetch<TILE, DEPTH, !TRANSPOSE_B>(b_share, b, col0, 0, n, k);
  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    matmul_tile_store<TILE, DEPTH, TRANSPOSE_A>(a_tile, a_share);
    matmul_tile_store<TILE, DEPTH, !TRANSPOSE_B>(b_tile, b_share);
    __syncthreads();
    if (k0 + DEPTH < k) {
      matmul_tile_fetch<TILE, DEPTH, TRANSPOSE_A>(a_share, a, row0, k0 + DEPTH, m, k);
      matmul_tile_fetch<TILE, DEPTH, !TRANSPOSE_B>(b_share, b, col0, k0 + DEPTH, n, k);
    }
#pragma unroll 8
    for (int i = 0; i < DEPTH; i += GROUPS) {
      float a_column[REG], b_row[REG];
      for (int r = 0; r < REG; r++) a_column[r] = a_tile[i + group][y + r * side];
      for (int r = 0; r < REG; r++) b_row[r] = b_tile[i + group][x + r * side];
      for (int r = 0; r < REG; r++)
        for (int s = 0; s < REG; s++) sum[r][s] = fmaf(a_column[r], b_row[s], sum[r][s]);
    }
    __syncthreads(); /* the tiles are overwritten next */
  }

  for (int r = 0; r < REG; r++)
    for (int s = 0; s < REG; s++) partial[group][(y + r * side) * TILE + x + s * side] = sum[r][s];
  __syncthreads();
  for (int element = threadIdx.x; element < TILE * TILE; element += threads) {
    int row = row0 + element / TILE, col = col0 + element % TILE;
    if (row >= m || col >= n) continue;
    float total = partial[0][element];
    for (int g = 1; g < GROUPS; g++) total += partial[g][element];
    if (bias != NULL) total += bias[col];
    float *out = c + (size_t)row * n + col;
    *out = accumulate ? *out + total : total;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int TILE, int REG, int GROUPS, int DEPTH>
static inline void matmul_blocked(float *c, const float *a, const float *b, const float *bias, int m, int n, int k,
                                  bool transpose_a, bool transpose_b, bool accumulate) {
  dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  int block = TILE / REG * (TILE / REG) * GROUPS;
  if (transpose_a && transpose_b)
    matmul_blocked_kernel<TILE, REG, GROUPS, DEPTH, true, true><<<grid, block>>>(c, a, b, bias, m, n, k, accumulate);
  else if (transpose_a)
    matmul_blocked_kernel<TILE, REG, GROUPS, DEPTH, true, false><<<grid, block>>>(c, a, b, bias, m, n, k, accumulate);
  else if (transpose_b)
    matmul_blocked_kernel<TILE, REG, GROUPS, DEPTH, false, true><<<grid, block>>>(c, a, b, bias, m, n, k, accumulate);
  else
    matmul_blocked_kernel<TILE, REG, GROUPS, DEPTH, false, false><<<grid, block>>>(c, a, b, bias, m, n, k, accumulate);
  CUDA_CHECK_LAUNCH();
}

/* Where C is small, many small tiles with four groups each keep the GPU busy and the sums over K short: LeNet's
 * (64,120) with K = 400 has 32 blocks of 256 threads and 7 steps. Where it is large, a larger tile reads less.
 * The choice depends on the shape alone. bias (N) may be NULL. */
static inline void matmul_bias_gpu(float *c, const float *a, const float *b, const float *bias, int m, int n, int k,
                                   bool transpose_a, bool transpose_b, bool accumulate) {
  if ((size_t)m * n < 512 * 512)
    matmul_blocked<16, 2, 4, 64>(c, a, b, bias, m, n, k, transpose_a, transpose_b, accumulate);
  else
    matmul_blocked<64, 4, 1, 16>(c, a, b, bias, m, n, k, transpose_a, transpose_b, accumulate);
}

static inline void matmul_gpu(float *c, const float *a, const float *b, int m, int n, int k, bool transpose_a,
                              bool transpose_b, bool accumulate) {
  matmul_bias_gpu(c, a, b, NULL, m, n, k, transpose_a, transpose_b, accumulate);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_CUH */

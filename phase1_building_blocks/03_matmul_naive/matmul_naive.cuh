/* matmul_naive.cuh - C (M,N) = A (M,K) B (K,N), one thread per element of C. Row-major, sizes at least 1, M and N at
 * most two million (a grid has at most 65535 blocks in y).
 *
 * Both versions do the same additions in the same order; they differ in which 32 elements a warp computes. The
 * reference is matmul_cpu() of matmul.cuh.
 *
 *   matmul_naive_columns  a warp computes 32 elements of a column: a load touches 32 rows of A, a store 32 rows of C
 *   matmul_naive          a warp computes 32 elements of a row: they need the same float of A, and neighbours in B
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_NAIVE_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_NAIVE_CUH

#include <stddef.h>

#include "common/check.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_chunk.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

static __global__ void matmul_naive_columns_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; /* on purpose: neighbouring threads have neighbouring rows */
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int begin = 0; begin < k; begin += MATMUL_CHUNK) { /* chunks: see matmul_chunk.cuh */
    int end = min(begin + MATMUL_CHUNK, k);
    float chunk = 0.0f;
    // >>> exercise matmul_naive: add to `chunk` products begin to end - 1 of A's row `row` and B's column `col`
    // hint: one product for each i: the element of A in column i of its row, and that of B in row i of its column
    // hint: a row of A has k floats, so its element i is a[(size_t)row * k + i]; a row of B has n
    // hint: for (int i = begin; i < end; i++) chunk += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    for (int i = begin; i < end; i++) chunk += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    // <<< exercise
    sum += chunk;
  }
  c[(size_t)row * n + col] = sum;
}

static __global__ void matmul_naive_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  int row = m, col = n;
  // >>> exercise matmul_coalesced: choose the thread's element so that a warp loads neighbouring floats of B
  // hint: neighbouring threads of a warp differ in threadIdx.x; which of row and col moves along a row of B and of C?
  // hint: threads with the same row load the same float of A, which costs one sector for the whole warp
  // hint: col = blockIdx.x * blockDim.x + threadIdx.x; and row from y in the same way
  row = blockIdx.y * blockDim.y + threadIdx.y;
  col = blockIdx.x * blockDim.x + threadIdx.x;
  // <<< exercise
  if (row >= m || col >= n) return;
  float sum = 0.0f;
  for (int begin = 0; begin < k; begin += MATMUL_CHUNK) { /* chunks: see matmul_chunk.cuh */
    int end = min(begin + MATMUL_CHUNK, k);
    float chunk = 0.0f;
    // >>> hidden matmul_naive
    for (int i = begin; i < end; i++) chunk += a[(size_t)row * k + i] * b[(size_t)i * n + col];
    // <<< hidden
    sum += chunk;
  }
  c[(size_t)row * n + col] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

enum { MATMUL_NAIVE_BLOCK = 32 }; /* 32 x 32 threads: a warp is a row of the block */

static inline void matmul_naive_columns(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 block(MATMUL_NAIVE_BLOCK, MATMUL_NAIVE_BLOCK);
  dim3 grid((m + MATMUL_NAIVE_BLOCK - 1) / MATMUL_NAIVE_BLOCK, (n + MATMUL_NAIVE_BLOCK - 1) / MATMUL_NAIVE_BLOCK);
  matmul_naive_columns_kernel<<<grid, block>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_naive(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 block(MATMUL_NAIVE_BLOCK, MATMUL_NAIVE_BLOCK);
  dim3 grid((n + MATMUL_NAIVE_BLOCK - 1) / MATMUL_NAIVE_BLOCK, (m + MATMUL_NAIVE_BLOCK - 1) / MATMUL_NAIVE_BLOCK);
  matmul_naive_kernel<<<grid, block>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_NAIVE_CUH */

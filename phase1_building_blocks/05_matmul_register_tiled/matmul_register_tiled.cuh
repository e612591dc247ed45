/* matmul_register_tiled.cuh - C (M,N) = A (M,K) B (K,N), several elements of C per thread. Row-major, sizes at least 1,
 * M and N at most four million (a grid has at most 65535 blocks in y).
 *
 * In matmul_tiled() each product needs two floats from shared memory. Shared memory delivers 32 floats per cycle, and
 * the multiprocessor could do 128 multiply-adds in it. So a thread computes a patch of C, and uses each float that it
 * has fetched from shared memory into a register for several elements. The reference is matmul_cpu() of matmul.cuh.
 *
 *   matmul_register_1d  8 elements of a column per thread: 9 floats from shared memory for 8 products
 *   matmul_register_2d  8 x 8 elements per thread: 16 floats for 64 products, an outer product
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_REGISTER_TILED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_REGISTER_TILED_CUH

#include <stddef.h>

#include "common/check.h"
#include "phase1_building_blocks/03_matmul_naive/matmul_chunk.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The threads of a block copy the ROWS x COLS floats at (row0, col0) of x (rows,cols), with 0 outside of x.
 * Neighbouring threads take neighbouring floats of a row. */
template <int ROWS, int COLS, int THREADS>
static __device__ __forceinline__ void matmul_register_load(float (*tile)[COLS], const float *x, int row0, int col0,
                                                            int rows, int cols) {
  static_assert(ROWS * COLS % THREADS == 0, "the threads share a tile evenly");
#pragma unroll /* the count is a constant, so all loads can be in flight at once */
  for (int q = 0; q < ROWS * COLS / THREADS; q++) {
    int i = threadIdx.x + q * THREADS, row = i / COLS, col = i % COLS;
    bool inside = row0 + row < rows && col0 + col < cols;
    tile[row][col] = inside ? x[(size_t)(row0 + row) * cols + col0 + col] : 0.0f;
  }
}

enum { MATMUL_REGISTERS = 8 }; /* the height, and in 2-D the width, of a thread's patch */

/* TILE x TILE elements of C per block, TILE / 8 x TILE threads; the threads of a warp differ in x. The 3 limits the
 * registers so that three blocks fit on a multiprocessor; without it nvcc 13 uses so many that only one does. */
template <int TILE, int DEPTH>
static __global__ void __launch_bounds__(TILE *TILE / MATMUL_REGISTERS, 3)
    matmul_register_1d_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int threads = TILE * TILE / MATMUL_REGISTERS;
  __shared__ float a_tile[TILE][DEPTH], b_tile[DEPTH][TILE];
  int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  int x = threadIdx.x % TILE, y = threadIdx.x / TILE * MATMUL_REGISTERS; /* the top of this thread's patch */
  float total[MATMUL_REGISTERS] = {}, sum[MATMUL_REGISTERS] = {};        /* a sum has MATMUL_CHUNK products */
  for (int k0 = 0; k0 < k; k0 += DEPTH) {
    matmul_register_load<TILE, DEPTH, threads>(a_tile, a, row0, k0, m, k);
    matmul_register_load<DEPTH, TILE, threads>(b_tile, b, k0, col0, k, n);
    __syncthreads();
    // >>> exercise matmul_register_1d: add the DEPTH products of these tiles to each of the 8 sums
    // hint: sum[r] belongs to row y + r and column x of the tile: it gets a_tile[y + r][i] * b_tile[i][x] for each i
    // hint: all 8 sums need the same b_tile[i][x]: fetch it once, into a register, in the outer of two loops
    // hint: for each i: float right = b_tile[i][x]; then for each r < 8: sum[r] += a_tile[y + r][i] * right;
    for (int i = 0; i < DEPTH; i++) {
      float right = b_tile[i][x];
      for (int r = 0; r < MATMUL_REGISTERS; r++) sum[r] += a_tile[y + r][i] * right;
    }
    // <<< exercise
    __syncthreads();
    if ((k0 + DEPTH) % MATMUL_CHUNK == 0)
      for (int r = 0; r < MATMUL_REGISTERS; r++) {
        total[r] += sum[r];
        sum[r] = 0.0f;
      }
  }
  for (int r = 0; r < MATMUL_REGISTERS; r++)
    if (row0 + y + r < m && col0 + x < n) c[(size_t)(row0 + y + r) * n + col0 + x] = total[r] + sum[r];
}

/* TILE x TILE elements of C per block, TILE / 8 x TILE / 8 threads. */
template <int TILE, int DEPTH>
static __global__ void __launch_bounds__(TILE / MATMUL_REGISTERS * (TILE / MATMUL_REGISTERS))
    matmul_register_2d_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int side = TILE / MATMUL_REGISTERS, threads = side * side;
  __shared__ float a_tile[TILE][DEPTH], b_tile[DEPTH][TILE];
  int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  int x = threadIdx.x % side * MATMUL_REGISTERS, y = threadIdx.x / side * MATMUL_REGISTERS;
  /* No registers are left for totals, so each chunk is added to C. */
  for (int begin = 0; begin < k; begin += MATMUL_CHUNK) {
    float sum[MATMUL_REGISTERS][MATMUL_REGISTERS] = {};
    for (int k0 = begin, end = min(begin + MATMUL_CHUNK, k); k0 < end; k0 += DEPTH) {
      matmul_register_load<TILE, DEPTH, threads>(a_tile, a, row0, k0, m, k);
      matmul_register_load<DEPTH, TILE, threads>(b_tile, b, k0, col0, k, n);
      __syncthreads();
      for (int i = 0; i < DEPTH; i++) {
        float left[MATMUL_REGISTERS], right[MATMUL_REGISTERS];
        // >>> exercise matmul_register_2d: fetch 8 floats of a column of a_tile, 8 of a row of b_tile; add the products
        // hint: this thread's patch begins at (y, x) of the tile: it needs a_tile[y + r][i] and b_tile[i][x + s]
        // hint: fetch left[r] and right[s] first, then multiply each with each: 16 fetches, 64 multiplications
        // hint: left[r] = a_tile[y + r][i]; right[s] = b_tile[i][x + s]; then all sum[r][s] += left[r] * right[s];
        for (int r = 0; r < MATMUL_REGISTERS; r++) left[r] = a_tile[y + r][i];
        for (int s = 0; s < MATMUL_REGISTERS; s++) right[s] = b_tile[i][x + s];
        for (int r = 0; r < MATMUL_REGISTERS; r++)
          for (int s = 0; s < MATMUL_REGISTERS; s++) sum[r][s] += left[r] * right[s];
        // <<< exercise
      }
      __syncthreads();
    }
    for (int r = 0; r < MATMUL_REGISTERS; r++)
      for (int s = 0; s < MATMUL_REGISTERS; s++) {
        size_t at = (size_t)(row0 + y + r) * n + col0 + x + s;
        if (row0 + y + r < m && col0 + x + s < n) c[at] = begin == 0 ? sum[r][s] : c[at] + sum[r][s];
      }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void matmul_register_1d(float *c, const float *a, const float *b, int m, int n, int k) {
  const int tile = 64, depth = 8;
  dim3 grid((n + tile - 1) / tile, (m + tile - 1) / tile);
  matmul_register_1d_kernel<tile, depth><<<grid, tile * tile / MATMUL_REGISTERS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_register_2d(float *c, const float *a, const float *b, int m, int n, int k) {
  const int tile = 128, depth = 8, side = tile / MATMUL_REGISTERS;
  dim3 grid((n + tile - 1) / tile, (m + tile - 1) / tile);
  matmul_register_2d_kernel<tile, depth><<<grid, side * side>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_REGISTER_TILED_CUH */

/* matmul_vectorised.cuh - C (M,N) = A (M,K) B (K,N), matmul_register_2d() improved in one respect after the other.
 * Row-major, float32 throughout, sizes at least 1. The reference is matmul_cpu() of matmul.cuh.
 *
 * Tiles of 128 x 128 x 8 and 256 threads with 8 x 8 elements of C each.
 *
 *   matmul_vectorised       float4 from global memory; A's tile is stored transposed, so that the floats that a thread
 *                           needs of a column of A are neighbours: 4 instructions load 16 floats from shared memory
 *   matmul_conflict_free    a patch consists of four 4 x 4 pieces, so that neighbouring threads load neighbouring
 *                           float4, and the rows of A's tile are longer: no bank conflicts
 *   matmul_warp_tiled       a warp computes a 64 x 32 part of the tile instead of 16 x 128: its threads share more
 *   matmul_double_buffered  the next pair of tiles is loaded while one is multiplied: one barrier per step, not two
 *
 * matmul_tuned.cuh goes on from here.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_VECTORISED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_VECTORISED_CUH

#include <stdbool.h>
#include <stddef.h>

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul_chunk.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The parts of the kernels. The tiles in shared memory are a_tile[DEPTH][A's rows + padding], transposed, and
 * b_tile[DEPTH][B's columns]; PITCH is the length of such a row. */

/* Loads a thread's share of the ROWS x COLS floats at (row0, col0) of x (rows,cols), 0 outside of x; for ALIGNED see
 * float4_access.cuh. */
template <int ROWS, int COLS, int THREADS, bool ALIGNED, int QUADS>
static __device__ __forceinline__ void matmul_fetch(float4 (&share)[QUADS], const float *x, int row0, int col0,
                                                    int rows, int cols) {
  static_assert(ROWS * COLS == 4 * QUADS * THREADS, "the threads must share a tile evenly");
#pragma unroll
  for (int q = 0; q < QUADS; q++) {
    int i = threadIdx.x + q * THREADS;
    share[q] = quad_load<ALIGNED>(x, row0 + i / (COLS / 4), col0 + i % (COLS / 4) * 4, rows, cols);
  }
}

template <int COLS, int THREADS, int PITCH, int QUADS>
static __device__ __forceinline__ void matmul_put(float *tile, const float4 (&share)[QUADS]) {
#pragma unroll
  for (int q = 0; q < QUADS; q++) {
    int i = threadIdx.x + q * THREADS;
    *(float4 *)&tile[i / (COLS / 4) * PITCH + i % (COLS / 4) * 4] = share[q];
  }
}

template <int COLS, int THREADS, int PITCH, int QUADS>
static __device__ __forceinline__ void matmul_put_transposed(float *tile, const float4 (&share)[QUADS]) {
#pragma unroll
  for (int q = 0; q < QUADS; q++) {
    int i = threadIdx.x + q * THREADS;
    int row = i / (COLS / 4), col = i % (COLS / 4) * 4; /* the place of share[q] in A's tile */
    // >>> exercise matmul_vectorised: put the four floats of share[q] into the transposed tile
    // hint: share[q].x .y .z .w are neighbours in a row of A: columns col, col + 1, col + 2, col + 3
    // hint: in the tile they are below each other: rows col ... col + 3, all in column `row`; a row has PITCH floats
    // hint: tile[(col + 0) * PITCH + row] = share[q].x; and so on for y, z and w
    tile[(col + 0) * PITCH + row] = share[q].x;
    tile[(col + 1) * PITCH + row] = share[q].y;
    tile[(col + 2) * PITCH + row] = share[q].z;
    tile[(col + 3) * PITCH + row] = share[q].w;
    // <<< exercise
  }
}

/* Loads COUNT floats of a row of a tile, in groups of four that are STEP floats apart. */
template <int STEP, int COUNT>
static __device__ __forceinline__ void matmul_fragment(float (&fragment)[COUNT], const float *row) {
#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    float4 v = *(const float4 *)(row + i / 4 * STEP);
    fragment[i] = v.x;
    fragment[i + 1] = v.y;
    fragment[i + 2] = v.z;
    fragment[i + 3] = v.w;
  }
}

template <int ROWS, int COLS>
static __device__ __forceinline__ void matmul_outer_product(float (&sum)[ROWS][COLS], const float (&left)[ROWS],
                                                            const float (&right)[COLS]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s++) sum[r][s] = fmaf(left[r], right[s], sum[r][s]);
}

/* Stores the sums to x (rows,cols), in pieces of 4 x 4 that are ROW_STEP and COL_STEP apart, or adds them if `add`;
 * sets the sums to 0. */
template <int ROW_STEP, int COL_STEP, bool ALIGNED, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_write(float *x, float (&sum)[ROWS][COLS], int row, int col, int rows,
                                                    int cols, bool add) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s += 4) {
      int at_row = row + r / 4 * ROW_STEP + r % 4, at_col = col + s / 4 * COL_STEP;
      float4 v = make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]);
      if (add) {
        float4 w = quad_load<ALIGNED>(x, at_row, at_col, rows, cols);
        v = make_float4(w.x + v.x, w.y + v.y, w.z + v.z, w.w + v.w);
      }
      quad_store<ALIGNED>(x, v, at_row, at_col, rows, cols);
      for (int i = 0; i < 4; i++) sum[r][s + i] = 0.0f;
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { MATMUL_TILE = 128, MATMUL_DEPTH = 8, MATMUL_THREADS = 256, MATMUL_PATCH = 8 };

/* How the 16 x 16 patches of a tile are assigned to the threads. */
enum { MATMUL_PLAIN, MATMUL_CONFLICT_FREE, MATMUL_WARP_TILED };

/* The place in the tile of this thread's patch, or of the first of its pieces. A warp has
 *   plain, conflict-free   2 x 16 patches, which need 16 floats of A's tile and 128 of B's per product
 *   warp-tiled             8 x 4 patches, which need 64 and 32 */
template <int LAYOUT>
static __device__ __forceinline__ void matmul_patch(int *row, int *col) {
  if (LAYOUT == MATMUL_PLAIN) {
    *row = threadIdx.x / 16 * 8;
    *col = threadIdx.x % 16 * 8;
  } else if (LAYOUT == MATMUL_CONFLICT_FREE) {
    *row = threadIdx.x / 16 * 4;
    *col = threadIdx.x % 16 * 4;
  } else {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    *row = warp / 4 * 64 + lane / 4 * 4;
    *col = warp % 4 * 32 + lane % 4 * 4;
  }
}

template <int LAYOUT, bool ALIGNED>
static __global__ void __launch_bounds__(MATMUL_THREADS, 2)
    matmul_vectorised_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  /* A row of A's tile is 4 floats longer: it still begins at a multiple of 16 bytes, but the next one in another bank.
   * */
  const int pitch = LAYOUT == MATMUL_PLAIN ? MATMUL_TILE : MATMUL_TILE + 4;
  const int row_step = LAYOUT == MATMUL_PLAIN ? 4 : LAYOUT == MATMUL_CONFLICT_FREE ? 64 : 32;
  const int col_step = LAYOUT == MATMUL_PLAIN ? 4 : LAYOUT == MATMUL_CONFLICT_FREE ? 64 : 16;
  __shared__ __align__(16) float a_tile[MATMUL_DEPTH * pitch], b_tile[MATMUL_DEPTH * MATMUL_TILE];
  int row0 = blockIdx.y * MATMUL_TILE, col0 = blockIdx.x * MATMUL_TILE, row, col;
  matmul_patch<LAYOUT>(&row, &col);
  for (int begin = 0; begin < k; begin += MATMUL_CHUNK) {
    float sum[MATMUL_PATCH][MATMUL_PATCH] = {};
    for (int k0 = begin, end = min(begin + MATMUL_CHUNK, k); k0 < end; k0 += MATMUL_DEPTH) {
      float4 a_share[1], b_share[1];
      matmul_fetch<MATMUL_TILE, MATMUL_DEPTH, MATMUL_THREADS, ALIGNED>(a_share, a, row0, k0, m, k);
      matmul_fetch<MATMUL_DEPTH, MATMUL_TILE, MATMUL_THREADS, ALIGNED>(b_share, b, k0, col0, k, n);
      matmul_put_transposed<MATMUL_DEPTH, MATMUL_THREADS, pitch>(a_tile, a_share);
      matmul_put<MATMUL_TILE, MATMUL_THREADS, MATMUL_TILE>(b_tile, b_share);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < MATMUL_DEPTH; i++) {
        float left[MATMUL_PATCH], right[MATMUL_PATCH];
        matmul_fragment<row_step>(left, &a_tile[i * pitch + row]);
        matmul_fragment<col_step>(right, &b_tile[i * MATMUL_TILE + col]);
        matmul_outer_product(sum, left, right);
      }
      __syncthreads();
    }
    matmul_write<row_step, col_step, ALIGNED>(c, sum, row0 + row, col0 + col, m, n, begin > 0);
  }
}

/* Two pairs of tiles (double buffering). The next pair is loaded into registers before the multiplications and stored
 * to shared memory after them, to the tiles that no thread reads then: they were last read before the barrier. */
template <bool ALIGNED>
static __global__ void __launch_bounds__(MATMUL_THREADS, 2)
    matmul_double_buffered_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int pitch = MATMUL_TILE + 4, row_step = 32, col_step = 16;
  __shared__ __align__(16) float a_tile[2][MATMUL_DEPTH * pitch], b_tile[2][MATMUL_DEPTH * MATMUL_TILE];
  int row0 = blockIdx.y * MATMUL_TILE, col0 = blockIdx.x * MATMUL_TILE, row, col;
  matmul_patch<MATMUL_WARP_TILED>(&row, &col);
  float sum[MATMUL_PATCH][MATMUL_PATCH] = {};
  float4 a_share[1], b_share[1];
  matmul_fetch<MATMUL_TILE, MATMUL_DEPTH, MATMUL_THREADS, ALIGNED>(a_share, a, row0, 0, m, k);
  matmul_fetch<MATMUL_DEPTH, MATMUL_TILE, MATMUL_THREADS, ALIGNED>(b_share, b, 0, col0, k, n);
  int now = 0;
  for (int k0 = 0; k0 < k; k0 += MATMUL_DEPTH, now ^= 1) {
    matmul_put_transposed<MATMUL_DEPTH, MATMUL_THREADS, pitch>(a_tile[now], a_share);
    matmul_put<MATMUL_TILE, MATMUL_THREADS, MATMUL_TILE>(b_tile[now], b_share);
    __syncthreads();
    if (k0 + MATMUL_DEPTH < k) {
      matmul_fetch<MATMUL_TILE, MATMUL_DEPTH, MATMUL_THREADS, ALIGNED>(a_share, a, row0, k0 + MATMUL_DEPTH, m, k);
      matmul_fetch<MATMUL_DEPTH, MATMUL_TILE, MATMUL_THREADS, ALIGNED>(b_share, b, k0 + MATMUL_DEPTH, col0, k, n);
    }
#pragma unroll
    for (int i = 0; i < MATMUL_DEPTH; i++) {
      float left[MATMUL_PATCH], right[MATMUL_PATCH];
      matmul_fragment<row_step>(left, &a_tile[now][i * pitch + row]);
      matmul_fragment<col_step>(right, &b_tile[now][i * MATMUL_TILE + col]);
      matmul_outer_product(sum, left, right);
    }
    int done = k0 + MATMUL_DEPTH;
    if (done >= k || done % MATMUL_CHUNK == 0)
      matmul_write<row_step, col_step, ALIGNED>(c, sum, row0 + row, col0 + col, m, n, done > MATMUL_CHUNK);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int LAYOUT>
static inline void matmul_vectorised_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 grid((n + MATMUL_TILE - 1) / MATMUL_TILE, (m + MATMUL_TILE - 1) / MATMUL_TILE);
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_vectorised_kernel<LAYOUT, true><<<grid, MATMUL_THREADS>>>(c, a, b, m, n, k);
  else
    matmul_vectorised_kernel<LAYOUT, false><<<grid, MATMUL_THREADS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_vectorised(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_vectorised_launch<MATMUL_PLAIN>(c, a, b, m, n, k);
}

static inline void matmul_conflict_free(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_vectorised_launch<MATMUL_CONFLICT_FREE>(c, a, b, m, n, k);
}

static inline void matmul_warp_tiled(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_vectorised_launch<MATMUL_WARP_TILED>(c, a, b, m, n, k);
}

static inline void matmul_double_buffered(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 grid((n + MATMUL_TILE - 1) / MATMUL_TILE, (m + MATMUL_TILE - 1) / MATMUL_TILE);
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_double_buffered_kernel<true><<<grid, MATMUL_THREADS>>>(c, a, b, m, n, k);
  else
    matmul_double_buffered_kernel<false><<<grid, MATMUL_THREADS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_VECTORISED_CUH */

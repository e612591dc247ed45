/* matmul_split_wmma.cuh - C (M,N) = A (M,K) B (K,N) in float32 by three products of tf32 fragments. Row-major, sizes at
 * least 1. For compute capability 8.0 and more.
 *
 * A warp loads fragments of floats, and its lanes split what they hold: x = high + low, both tf32 (matmul_split.cuh).
 * Then three mma_sync() do what one would do, had tf32 24 bits instead of 11.
 *
 * Tensor cores truncate their sums where float32 rounds. Along all of K that would cost more digits than the split has
 * won. So they add up 32 products per element at most, and ordinary additions put these parts together.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WMMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WMMA_CUH

#include <mma.h>

#include "common/mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tile_order.cuh"

enum {
  MATMUL_SPLIT_WMMA_TILE = 64,  /* rows and columns of C per block */
  MATMUL_SPLIT_WMMA_DEPTH = 32, /* along K per step */
  MATMUL_SPLIT_WMMA_WARPS = 4,  /* each has 32 x 32 of the tile: 2 x 2 fragments */
  MATMUL_SPLIT_A_PITCH = MATMUL_SPLIT_WMMA_DEPTH + 4,
  MATMUL_SPLIT_B_PITCH = MATMUL_SPLIT_WMMA_TILE + 8,
};

typedef nvcuda::wmma::precision::tf32 MatmulTf32;
typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 8, MatmulTf32, nvcuda::wmma::row_major> MatmulSplitLeft;
typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 8, MatmulTf32, nvcuda::wmma::row_major> MatmulSplitRight;
typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> MatmulSplitSum;

/* The block's threads copy the ROWS x COLS elements at (row0, col0) of x (rows,cols), with zeros outside of x. */
template <int ROWS, int COLS, int PITCH>
static __device__ __forceinline__ void matmul_split_wmma_fill(float *tile, const float *x, int row0, int col0, int rows,
                                                              int cols) {
  for (int i = threadIdx.x; i < ROWS * COLS; i += 32 * MATMUL_SPLIT_WMMA_WARPS) {
    int row = i / COLS, col = i % COLS;
    bool inside = row0 + row < rows && col0 + col < cols;
    tile[row * PITCH + col] = inside ? x[(size_t)(row0 + row) * cols + col0 + col] : 0.0f;
  }
}

/* high, floats so far, and low: its two parts. */
template <class Fragment>
static __device__ __forceinline__ void matmul_split_fragment(Fragment &high, Fragment &low) {
  for (int i = 0; i < high.num_elements; i++) {
    float x = high.x[i];
    high.x[i] = matmul_split_round_tf32(x);
    low.x[i] = matmul_split_round_tf32(x - high.x[i]);
  }
}

/* part (2 x 2 fragments) = the products of one step. */
static __device__ __forceinline__ void matmul_split_wmma_multiply(MatmulSplitSum (&part)[2][2], const float *a_tile,
                                                                  const float *b_tile, int warp_row, int warp_col) {
#pragma unroll
  for (int f = 0; f < 4; f++) nvcuda::wmma::fill_fragment(part[f / 2][f % 2], 0.0f);
#pragma unroll
  for (int i = 0; i < MATMUL_SPLIT_WMMA_DEPTH; i += 8) {
    MatmulSplitLeft left[2], left_low[2];
    MatmulSplitRight right[2], right_low[2];
#pragma unroll
    for (int f = 0; f < 2; f++) {
      nvcuda::wmma::load_matrix_sync(left[f], &a_tile[(warp_row + 16 * f) * MATMUL_SPLIT_A_PITCH + i],
                                     MATMUL_SPLIT_A_PITCH);
      nvcuda::wmma::load_matrix_sync(right[f], &b_tile[i * MATMUL_SPLIT_B_PITCH + warp_col + 16 * f],
                                     MATMUL_SPLIT_B_PITCH);
      matmul_split_fragment(left[f], left_low[f]);
      matmul_split_fragment(right[f], right_low[f]);
    }
#pragma unroll
    for (int f = 0; f < 4; f++) { /* the small products first */
      MatmulSplitSum &sum = part[f / 2][f % 2];
      nvcuda::wmma::mma_sync(sum, left_low[f / 2], right[f % 2], sum);
      nvcuda::wmma::mma_sync(sum, left[f / 2], right_low[f % 2], sum);
      nvcuda::wmma::mma_sync(sum, left[f / 2], right[f % 2], sum);
    }
  }
}

static __global__ void __launch_bounds__(32 * MATMUL_SPLIT_WMMA_WARPS)
    matmul_split_wmma_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
#ifdef MMA_BFLOAT16 /* where there is bfloat16 there is tf32 */
  const int tile = MATMUL_SPLIT_WMMA_TILE, depth = MATMUL_SPLIT_WMMA_DEPTH;
  __shared__ __align__(128) float a_tile[tile * MATMUL_SPLIT_A_PITCH], b_tile[depth * MATMUL_SPLIT_B_PITCH];
  __shared__ __align__(128) float patch[MATMUL_SPLIT_WMMA_WARPS][16 * 16];
  int row0, col0, warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
  matmul_tile_place(blockIdx.x, (m + tile - 1) / tile, (n + tile - 1) / tile, &row0, &col0);
  row0 *= tile;
  col0 *= tile;
  MatmulSplitSum sum[2][2], part[2][2];
#pragma unroll
  for (int f = 0; f < 4; f++) nvcuda::wmma::fill_fragment(sum[f / 2][f % 2], 0.0f);
  for (int k0 = 0; k0 < k; k0 += depth) {
    matmul_split_wmma_fill<tile, depth, MATMUL_SPLIT_A_PITCH>(a_tile, a, row0, k0, m, k);
    matmul_split_wmma_fill<depth, tile, MATMUL_SPLIT_B_PITCH>(b_tile, b, k0, col0, k, n);
    __syncthreads(); /* the tiles are complete */
    matmul_split_wmma_multiply(part, a_tile, b_tile, warp_row, warp_col);
#pragma unroll
    for (int f = 0; f < 4; f++)
      for (int i = 0; i < sum[0][0].num_elements; i++) sum[f / 2][f % 2].x[i] += part[f / 2][f % 2].x[i];
    __syncthreads(); /* before the tiles are overwritten */
  }
  for (int f = 0; f < 4; f++) {
    nvcuda::wmma::store_matrix_sync(patch[warp], sum[f / 2][f % 2], 16, nvcuda::wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x % 32; i < 16 * 16; i += 32) {
      int row = row0 + warp_row + f / 2 * 16 + i / 16, col = col0 + warp_col + f % 2 * 16 + i % 16;
      if (row < m && col < n) c[(size_t)row * n + col] = patch[warp][i];
    }
    __syncwarp();
  }
#endif
}

static inline void matmul_split_wmma(float *c, const float *a, const float *b, int m, int n, int k, void *workspace) {
  (void)workspace;
  mma_require();
  const int tile = MATMUL_SPLIT_WMMA_TILE;
  unsigned tiles = (unsigned)((m + tile - 1) / tile) * (unsigned)((n + tile - 1) / tile);
  matmul_split_wmma_kernel<<<tiles, 32 * MATMUL_SPLIT_WMMA_WARPS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WMMA_CUH */

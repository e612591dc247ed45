/* matmul_wmma.cuh - C (M,N) = A (M,K) B (K,N) on tensor cores: bfloat16 factors, float32 sums. Row-major, sizes at
 * least 1, M and N at most a million.
 *
 * A tensor core multiplies small matrices. A warp uses it as a whole: its 32 lanes together hold 16 x 16 elements of A,
 * of B and of the sums, as fragments, and one operation multiplies them. wmma (namespace nvcuda::wmma) is CUDA's
 * interface for that. Factors are bfloat16 (bfloat16.cuh), 8 bits of precision: the product of two is exact in float32,
 * in which tensor cores add. So only the inputs and the sums are rounded.
 *
 *   matmul_bfloat16_cpu     the definition: sums in double
 *   matmul_wmma_naive       each warp computes 16 x 16 of C, with fragments from global memory
 *   matmul_wmma_tiled       blocks share tiles of A and B in shared memory; each warp still computes 16 x 16
 *   matmul_wmma_fragments   each warp computes 64 x 32: 6 fragments are loaded for 8 products, not 2 for one
 *
 * matmul_mma.cuh and matmul_wgmma.cuh have faster versions.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_WMMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_WMMA_CUH

#include <cuda_bf16.h>
#include <mma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/check.h"
#include "common/mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/bfloat16.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tile_order.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline float matmul_bfloat16_at(const __nv_bfloat16 *x, size_t i) {
  uint16_t bits;
  memcpy(&bits, x + i, sizeof bits);
  return bfloat16_widen(bits);
}

static inline void matmul_bfloat16_cpu(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  for (int row = 0; row < m; row++)
    for (int col = 0; col < n; col++) {
      double sum = 0;
      for (int i = 0; i < k; i++)
        sum += (double)matmul_bfloat16_at(a, (size_t)row * k + i) * matmul_bfloat16_at(b, (size_t)i * n + col);
      c[(size_t)row * n + col] = (float)sum;
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Loading and storing fragments */

enum { MATMUL_FRAGMENT = 16, MATMUL_FRAGMENT_ELEMENTS = MATMUL_FRAGMENT * MATMUL_FRAGMENT };

typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __nv_bfloat16, nvcuda::wmma::row_major> MatmulLeft;
typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __nv_bfloat16, nvcuda::wmma::row_major> MatmulRight;
typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> MatmulSum;

/* load_matrix_sync() loads a whole matrix that begins at a multiple of 32 bytes, with rows at multiples of 16.
 * Otherwise the lanes first copy it to `patch`, 16 x 16 elements that belong to the warp, with zeros outside of
 * x (rows,cols). */
template <class Fragment>
static __device__ __forceinline__ void matmul_wmma_load(Fragment &fragment, __nv_bfloat16 *patch,
                                                        const __nv_bfloat16 *x, int row0, int col0, int rows,
                                                        int cols) {
  const __nv_bfloat16 *from = x + (size_t)row0 * cols + col0;
  if (row0 + 16 <= rows && col0 + 16 <= cols && cols % 8 == 0 && (uintptr_t)from % 32 == 0) {
    nvcuda::wmma::load_matrix_sync(fragment, from, cols);
    return;
  }
  for (int i = threadIdx.x % 32; i < MATMUL_FRAGMENT_ELEMENTS; i += 32) {
    int row = i / 16, col = i % 16;
    bool inside = row0 + row < rows && col0 + col < cols;
    patch[i] = inside ? from[(size_t)row * cols + col] : __float2bfloat16(0.0f);
  }
  __syncwarp();
  nvcuda::wmma::load_matrix_sync(fragment, patch, 16);
  __syncwarp();
}

/* Stores a fragment in the same way. */
static __device__ __forceinline__ void matmul_wmma_store(float *c, float *patch, const MatmulSum &sum, int row0,
                                                         int col0, int rows, int cols) {
  float *to = c + (size_t)row0 * cols + col0;
  if (row0 + 16 <= rows && col0 + 16 <= cols && cols % 4 == 0 && (uintptr_t)to % 32 == 0) {
    nvcuda::wmma::store_matrix_sync(to, sum, cols, nvcuda::wmma::mem_row_major);
    return;
  }
  nvcuda::wmma::store_matrix_sync(patch, sum, 16, nvcuda::wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x % 32; i < MATMUL_FRAGMENT_ELEMENTS; i += 32) {
    int row = i / 16, col = i % 16;
    if (row0 + row < rows && col0 + col < cols) to[(size_t)row * cols + col] = patch[i];
  }
  __syncwarp();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Each warp computes 16 x 16 elements of C; a block has 4 warps side by side. */
enum { MATMUL_NAIVE_WARPS = 4 };

static __global__ void __launch_bounds__(MATMUL_NAIVE_WARPS * 32)
    matmul_wmma_naive_kernel(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
#ifdef MMA_BFLOAT16
  __shared__ __align__(128) float sum_patch[MATMUL_NAIVE_WARPS][MATMUL_FRAGMENT_ELEMENTS];
  __shared__ __align__(128) __nv_bfloat16 patch[MATMUL_NAIVE_WARPS][MATMUL_FRAGMENT_ELEMENTS];
  int warp = threadIdx.x / 32, row0 = blockIdx.y * 16, col0 = (blockIdx.x * MATMUL_NAIVE_WARPS + warp) * 16;
  if (col0 >= n) return; /* the whole warp */
  MatmulSum sum;
  nvcuda::wmma::fill_fragment(sum, 0.0f);
  // >>> exercise matmul_wmma_naive: add the products of 16 x 16 fragments of A and of B to `sum`, along all of k
  // hint: matmul_wmma_load(left, patch[warp], a, row0, k0, m, k) loads 16 rows of A from row0 on, columns from k0 on
  // hint: of B it is rows from k0, columns from col0; k0 grows in steps of 16; matmul_wmma_load() handles the edges
  // hint: MatmulLeft left; MatmulRight right; load both, then nvcuda::wmma::mma_sync(sum, left, right, sum);
  for (int k0 = 0; k0 < k; k0 += MATMUL_FRAGMENT) {
    MatmulLeft left;
    MatmulRight right;
    matmul_wmma_load(left, patch[warp], a, row0, k0, m, k);
    matmul_wmma_load(right, patch[warp], b, k0, col0, k, n);
    nvcuda::wmma::mma_sync(sum, left, right, sum);
  }
  // <<< exercise
  matmul_wmma_store(c, sum_patch[warp], sum, row0, col0, m, n);
#endif
}

/* The threads of a block copy the ROWS x COLS elements at (row0, col0) of x (rows,cols), with zeros outside of x, to a
 * tile whose rows are PITCH long. ALIGNED: every row of x begins at a multiple of 16 bytes, 8 elements. */
template <int ROWS, int COLS, int PITCH, int THREADS, bool ALIGNED>
static __device__ __forceinline__ void matmul_wmma_fill(__nv_bfloat16 *tile, const __nv_bfloat16 *x, int row0, int col0,
                                                        int rows, int cols) {
  static_assert(ROWS * COLS % (8 * THREADS) == 0, "the threads share a tile evenly");
  if (ALIGNED) {
#pragma unroll
    for (int q = 0; q < ROWS * COLS / 8 / THREADS; q++) {
      int i = threadIdx.x + q * THREADS, row = i / (COLS / 8), col = i % (COLS / 8) * 8;
      bool inside = row0 + row < rows && col0 + col < cols;
      *(uint4 *)&tile[row * PITCH + col] =
          inside ? *(const uint4 *)&x[(size_t)(row0 + row) * cols + col0 + col] : make_uint4(0, 0, 0, 0);
    }
  } else {
    for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
      int row = i / COLS, col = i % COLS;
      bool inside = row0 + row < rows && col0 + col < cols;
      tile[row * PITCH + col] = inside ? x[(size_t)(row0 + row) * cols + col0 + col] : __float2bfloat16(0.0f);
    }
  }
}

/* A block computes BM x BN elements of C, a warp WM x WN; tiles are BK deep. The rows of a tile are padded by 16 bytes,
 * so that the rows of a fragment do not all begin in the same bank. */
template <int BM, int BN, int BK, int WM, int WN, bool ALIGNED>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    matmul_wmma_kernel(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
#ifdef MMA_BFLOAT16
  const int warps = BM / WM * (BN / WN), a_pitch = BK + 8, b_pitch = BN + 8;
  __shared__ __align__(128) __nv_bfloat16 a_tile[BM * a_pitch], b_tile[BK * b_pitch];
  __shared__ __align__(128) float patch[warps][MATMUL_FRAGMENT_ELEMENTS];
  int row0, col0, warp = threadIdx.x / 32;
  matmul_tile_place(blockIdx.x, (m + BM - 1) / BM, (n + BN - 1) / BN, &row0, &col0);
  row0 *= BM;
  col0 *= BN;
  int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN; /* where its part of the tile begins */
  const int across = WN / 16, fragments = WM / 16 * across;
  MatmulSum sum[WM / 16][across];
#pragma unroll
  for (int f = 0; f < fragments; f++) nvcuda::wmma::fill_fragment(sum[f / across][f % across], 0.0f);
  for (int k0 = 0; k0 < k; k0 += BK) {
    matmul_wmma_fill<BM, BK, a_pitch, warps * 32, ALIGNED>(a_tile, a, row0, k0, m, k);
    matmul_wmma_fill<BK, BN, b_pitch, warps * 32, ALIGNED>(b_tile, b, k0, col0, k, n);
    __syncthreads(); /* the tiles are complete */
#pragma unroll
    for (int i = 0; i < BK; i += 16) {
      MatmulLeft left[WM / 16];
      MatmulRight right[WN / 16];
      // >>> exercise matmul_wmma_fragments: load this warp's fragments of both tiles; multiply each left by each right
      // hint: nvcuda::wmma::load_matrix_sync(left[r], address of its first element, a_pitch), and b_pitch for B's tile
      // hint: left[r] begins in row warp_row + 16 r, column i of a_tile; right[s] in row i, column warp_col + 16 s
      // hint: two loops load, then two nested ones: nvcuda::wmma::mma_sync(sum[r][s], left[r], right[s], sum[r][s]);
#pragma unroll
      for (int r = 0; r < WM / 16; r++)
        nvcuda::wmma::load_matrix_sync(left[r], &a_tile[(warp_row + 16 * r) * a_pitch + i], a_pitch);
#pragma unroll
      for (int s = 0; s < WN / 16; s++)
        nvcuda::wmma::load_matrix_sync(right[s], &b_tile[i * b_pitch + warp_col + 16 * s], b_pitch);
#pragma unroll
      for (int r = 0; r < WM / 16; r++)
#pragma unroll
        for (int s = 0; s < WN / 16; s++) nvcuda::wmma::mma_sync(sum[r][s], left[r], right[s], sum[r][s]);
      // <<< exercise
    }
    __syncthreads(); /* before the tiles are overwritten */
  }
#pragma unroll
  for (int f = 0; f < fragments; f++)
    matmul_wmma_store(c, patch[warp], sum[f / across][f % across], row0 + warp_row + f / across * 16,
                      col0 + warp_col + f % across * 16, m, n);
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void matmul_wmma_naive(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  mma_require();
  const int cols = 16 * MATMUL_NAIVE_WARPS;
  dim3 grid((unsigned)((n + cols - 1) / cols), (unsigned)((m + 15) / 16));
  matmul_wmma_naive_kernel<<<grid, MATMUL_NAIVE_WARPS * 32>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

/* Whether the rows of A and B begin at multiples of 16 bytes. */
static inline bool matmul_rows_fit(const __nv_bfloat16 *a, const __nv_bfloat16 *b, int n, int k) {
  return n % 8 == 0 && k % 8 == 0 && ((uintptr_t)a | (uintptr_t)b) % 16 == 0;
}

template <int BM, int BN, int BK, int WM, int WN>
static inline void matmul_wmma_launch(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  mma_require();
  const int threads = BM / WM * (BN / WN) * 32;
  unsigned tiles = (unsigned)((m + BM - 1) / BM) * (unsigned)((n + BN - 1) / BN);
  if (matmul_rows_fit(a, b, n, k))
    matmul_wmma_kernel<BM, BN, BK, WM, WN, true><<<tiles, threads>>>(c, a, b, m, n, k);
  else
    matmul_wmma_kernel<BM, BN, BK, WM, WN, false><<<tiles, threads>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_wmma_tiled(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wmma_launch<64, 64, 64, 16, 16>(c, a, b, m, n, k);
}

static inline void matmul_wmma_fragments(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                         int k) {
  matmul_wmma_launch<128, 128, 64, 64, 32>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_WMMA_CUH */

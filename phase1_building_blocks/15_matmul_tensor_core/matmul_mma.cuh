/* matmul_mma.cuh - C (M,N) = A (M,K) B (K,N) with the instructions under wmma: bfloat16 factors, float32 sums.
 * Row-major.
 *
 * wmma hides in which lane an element of a fragment lies, and so decides how it is fetched. PTX says it openly, and
 * leaves more to do (mma.cuh):
 *
 *   mma.sync   C (16,8) += A (16,16) B (16,8), the fragments in 4, 2 and 4 registers of each lane
 *   ldmatrix   four matrices of 8 x 8 from shared memory, each lane gives the address of one row of 16 bytes; .trans
 *              turns them on the way, which a B by rows needs
 *   cp.async   16 bytes from global to shared memory past the registers; nobody waits until they are needed
 *
 *   matmul_mma         a block 128 x 256 of C, a warp 64 x 64; a ring of STAGES pairs of tiles, 64 columns of A and 64
 *                      rows of B, swizzled: no bank conflicts
 *   matmul_mma_small   the same with tiles of 64 x 64, which matmul_mma() leaves a small C to
 *
 * What A's and B's rows have to be is multiples of 16 bytes; others are left to matmul_wmma_fragments(). Compute
 * capability 8.0 at least.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH

#include <cuda_pipeline_primitives.h>

#include "common/mma.cuh"
#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The way back */

/* Two neighbouring 16 x 8 sums to the 16 x 16 elements of C at (row0, col0), as far as there are any. Lanes 2i and
 * 2i + 1 exchange a pair, so that each has four floats in a row: one instruction stores 64 bytes of each row, not
 * 32. */
static __device__ __forceinline__ void matmul_mma_write(float *c, const float *left, const float *right, int row0,
                                                        int col0, int m, int n) {
  int lane = threadIdx.x % 32, row = row0 + lane / 4, col = col0 + lane % 2 * 8 + lane % 4 / 2 * 4;
  bool odd = lane % 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2, row += 8) {
    float x = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[i] : right[i], 1);
    float y = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[i + 1] : right[i + 1], 1);
    if (row < m && col < n) /* n is a multiple of 8: all four are inside, or none */
      __stcs((float4 *)&c[(size_t)row * n + col],
             odd ? make_float4(x, y, right[i], right[i + 1]) : make_float4(left[i], left[i + 1], x, y));
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* A tile's rows lie one after the other, in chunks of 8 elements, 16 bytes. ldmatrix reads a chunk of each of 8 rows at
 * the same time: if they stood below each other, all would be in the same four banks. */
template <int COLS>
static __device__ __forceinline__ int matmul_swizzle(int row, int chunk) {
  int place = 0;
  // >>> exercise matmul_swizzle: where in the tile does this chunk of this row lie, in elements?
  // hint: row after row, chunk after chunk it would be (row * (COLS / 8) + chunk) * 8; all rows would begin in bank 0
  // hint: 128 bytes are all the banks: 8 chunks. In 8 rows, chunk c should lie at 8 different places of its eight
  // hint: x ^ row % 8 is another number for each row, and for each x: (row * (COLS / 8) + (chunk ^ row % 8)) * 8
  place = (row * (COLS / 8) + (chunk ^ row % 8)) * 8;
  // <<< exercise
  return place;
}

/* ROWS x COLS elements at (row0, col0) of x (rows,cols) on their way into a tile, zeros where x has ended. */
template <int ROWS, int COLS, int THREADS>
static __device__ __forceinline__ void matmul_mma_load(__nv_bfloat16 *tile, const __nv_bfloat16 *x, int row0, int col0,
                                                       int rows, int cols) {
  static_assert(ROWS * COLS % (8 * THREADS) == 0 && COLS % 64 == 0, "the threads share a tile evenly");
#pragma unroll
  for (int q = 0; q < ROWS * COLS / 8 / THREADS; q++) {
    int i = threadIdx.x + q * THREADS, row = i / (COLS / 8), chunk = i % (COLS / 8);
    bool inside = row0 + row < rows && col0 + 8 * chunk < cols;
    const __nv_bfloat16 *from = inside ? x + (size_t)(row0 + row) * cols + col0 + 8 * chunk : x;
    __pipeline_memcpy_async(tile + matmul_swizzle<COLS>(row, chunk), from, 16, inside ? 0 : 16);
  }
}

/* BM x BN elements of C a block, WM x WN a warp. */
template <int BM, int BN, int BK, int WM, int WN, int STAGES>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    matmul_mma_kernel(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const int threads = BM / WM * (BN / WN) * 32, stage_elements = (BM + BN) * BK;
  extern __shared__ __align__(128) unsigned char matmul_mma_shared[];
  __nv_bfloat16 *ring = (__nv_bfloat16 *)matmul_mma_shared;
  int row0, col0;
  matmul_tile_place(blockIdx.x, (m + BM - 1) / BM, (n + BN - 1) / BN, &row0, &col0);
  row0 *= BM;
  col0 *= BN;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN; /* of its part of the tile */
  int steps = (k + BK - 1) / BK;
  for (int step = 0; step < STAGES - 1; step++) {
    __nv_bfloat16 *a_tile = ring + step * stage_elements;
    if (step < steps) {
      matmul_mma_load<BM, BK, threads>(a_tile, a, row0, step * BK, m, k);
      matmul_mma_load<BK, BN, threads>(a_tile + BM * BK, b, step * BK, col0, k, n);
    }
    __pipeline_commit(); /* an empty group counts too: so the wait below is the same in every step */
  }
  float sum[WM / 16][WN / 8][4] = {};
  for (int step = 0; step < steps; step++) {
    __pipeline_wait_prior(STAGES - 2); /* this thread's share of this step's tiles has arrived */
    __syncthreads();                   /* everybody's has, and nobody reads the tiles of the step before any more */
    int next = step + STAGES - 1;
    if (next < steps) {
      __nv_bfloat16 *a_tile = ring + next % STAGES * stage_elements;
      matmul_mma_load<BM, BK, threads>(a_tile, a, row0, next * BK, m, k);
      matmul_mma_load<BK, BN, threads>(a_tile + BM * BK, b, next * BK, col0, k, n);
    }
    __pipeline_commit();
    const __nv_bfloat16 *a_tile = ring + step % STAGES * stage_elements, *b_tile = a_tile + BM * BK;
#pragma unroll
    for (int i = 0; i < BK; i += 16) {
      uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
      for (int r = 0; r < WM / 16; r++)
        mma_load_matrices<false>(left[r],
                                 a_tile + matmul_swizzle<BK>(warp_row + 16 * r + lane % 16, i / 8 + lane / 16));
#pragma unroll
      for (int s = 0; s < WN / 16; s++)
        mma_load_matrices<true>(right[s],
                                b_tile + matmul_swizzle<BN>(i + lane % 16, (warp_col + 16 * s) / 8 + lane / 16));
#pragma unroll
      for (int r = 0; r < WM / 16; r++)
#pragma unroll
        for (int s = 0; s < WN / 8; s++)
          mma_16x8x16(sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
    }
  }
#pragma unroll
  for (int r = 0; r < WM / 16; r++)
#pragma unroll
    for (int s = 0; s < WN / 8; s += 2)
      matmul_mma_write(c, sum[r][s], sum[r][s + 1], row0 + warp_row + 16 * r, col0 + warp_col + 8 * s, m, n);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launcher */

template <int BM, int BN, int BK, int WM, int WN, int STAGES>
static inline void matmul_mma_run(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const int bytes = STAGES * (BM + BN) * BK * (int)sizeof *a;
  shared_limit_ask((const void *)matmul_mma_kernel<BM, BN, BK, WM, WN, STAGES>, bytes);
  unsigned tiles = (unsigned)((m + BM - 1) / BM) * (unsigned)((n + BN - 1) / BN);
  matmul_mma_kernel<BM, BN, BK, WM, WN, STAGES><<<tiles, BM / WM *(BN / WN) * 32, bytes>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

template <int BM, int BN, int BK, int WM, int WN, int STAGES>
static inline void matmul_mma_launch(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  mma_require();
  if (matmul_rows_fit(a, b, n, k) && (uintptr_t)c % 16 == 0)
    matmul_mma_run<BM, BN, BK, WM, WN, STAGES>(c, a, b, m, n, k);
  else
    matmul_wmma_fragments(c, a, b, m, n, k);
}

/* For a C of few tiles: smaller ones keep more multiprocessors busy. */
static inline void matmul_mma_small(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_mma_launch<64, 64, 64, 32, 32, 3>(c, a, b, m, n, k);
}

static inline int matmul_mma_multiprocessors(void) {
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return multiprocessors;
}

/* As large tiles as C has work for, and the GPU shared memory. */
static inline void matmul_mma(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  if ((double)m * n < 128.0 * 256 * matmul_mma_multiprocessors() / 2)
    matmul_mma_small(c, a, b, m, n, k);
  else if (shared_limit() >= 144 << 10)
    matmul_mma_launch<128, 256, 64, 64, 64, 3>(c, a, b, m, n, k);
  else
    matmul_mma_launch<128, 128, 64, 64, 32, 3>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH */

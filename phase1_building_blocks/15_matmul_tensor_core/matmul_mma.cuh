/* matmul_mma.cuh - C (M,N) = A (M,K) B (K,N) with mma.sync instead of wmma: bfloat16 factors, float32 sums. Row-major.
 *
 * The layout of a wmma fragment is not documented, so only wmma can load it. PTX documents the layout of its fragments
 * and leaves the loads to the program (mma.cuh):
 *
 *   mma.sync   C (16,8) += A (16,16) B (16,8), whose elements are in 4, 2 and 4 registers of each lane
 *   ldmatrix   four matrices of 8 x 8 from shared memory; each lane gives the address of one row, 16 bytes. .trans
 *              transposes them, which B needs because it is stored by rows
 *   cp.async   16 bytes from global to shared memory without a register. Nothing waits until the data is needed
 *
 * The ideas of the kernel, one function each:
 *
 *   swizzled tiles           matmul_swizzle: ldmatrix and cp.async without bank conflicts
 *   ring of stages           matmul_mma_load_stage: copies run STAGES - 1 steps ahead of the products (multistage
 *                            software pipelining)
 *   products from registers  matmul_mma_multiply: a warp computes WM x WN sums
 *   coalesced stores         matmul_mma_write
 *
 *   matmul_mma         a block computes 128 x 256 elements of C, a warp 64 x 64, in steps of 64 along K
 *   matmul_mma_small   the same with tiles of 64 x 64; matmul_mma() calls it for a small C
 *
 * Rows of A and B must be multiples of 16 bytes; other matrices go to matmul_wmma_fragments(). Needs compute capability
 * 8.0.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH

#include <cuda_pipeline_primitives.h>

#include "common/mma.cuh"
#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wmma.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Global memory to shared memory */

/* The 128-byte swizzle: where chunk `chunk` of row `row` of a tile is stored, in elements. A chunk is 8 elements, 16
 * bytes; rows follow each other. ldmatrix reads the same chunk of 8 rows at once: without the swizzle all 8 would be in
 * the same four banks. */
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

/* Starts the copies (cp.async) of the ROWS x COLS elements at (row0, col0) of x (rows,cols) to a swizzled tile. Outside
 * of x the tile is filled with zeros. */
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

/* Starts the copies of the pair of tiles of step `step` to stage `stage` of the ring: BM x BK elements of A at row0,
 * then BK x BN of B at col0. They are one group of copies. After the last step the group is empty, so that the kernel
 * waits for the same number of groups in every step. */
template <int BM, int BN, int BK, int THREADS>
static __device__ __forceinline__ void matmul_mma_load_stage(__nv_bfloat16 *ring, int stage, const __nv_bfloat16 *a,
                                                             const __nv_bfloat16 *b, int row0, int col0, int step,
                                                             int steps, int m, int n, int k) {
  if (step < steps) {
    __nv_bfloat16 *a_tile = ring + stage * (BM + BN) * BK;
    matmul_mma_load<BM, BK, THREADS>(a_tile, a, row0, step * BK, m, k);
    matmul_mma_load<BK, BN, THREADS>(a_tile + BM * BK, b, step * BK, col0, k, n);
  }
  __pipeline_commit();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

/* sum (WM,WN) += A (WM,BK) B (BK,WN), for the warp whose part of the tile begins at (warp_row, warp_col): 16 columns of
 * A at a time, ldmatrix to registers, then mma.sync. */
template <int BN, int BK, int WM, int WN>
static __device__ __forceinline__ void matmul_mma_multiply(float (&sum)[WM / 16][WN / 8][4],
                                                           const __nv_bfloat16 *a_tile, const __nv_bfloat16 *b_tile,
                                                           int warp_row, int warp_col) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < BK; i += 16) {
    uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
    for (int r = 0; r < WM / 16; r++)
      mma_load_matrices<false>(left[r], a_tile + matmul_swizzle<BK>(warp_row + 16 * r + lane % 16, i / 8 + lane / 16));
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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Registers to global memory */

/* Two neighbouring 16 x 8 sums to the 16 x 16 elements of C (M,N) at (row0, col0), as far as they exist. Lanes 2i and
 * 2i + 1 exchange pairs, so that each has four floats of a row: one instruction of the warp then stores 64 bytes of
 * each row instead of 32. */
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

/* A block computes the BM x BN elements of C at (row0, col0), a warp WM x WN of them. While the products of one step
 * run, the tiles of the next STAGES - 1 steps are being copied. */
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
  int warp = threadIdx.x / 32, warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN; /* in the tile */
  int steps = (k + BK - 1) / BK;
  for (int step = 0; step < STAGES - 1; step++)
    matmul_mma_load_stage<BM, BN, BK, threads>(ring, step, a, b, row0, col0, step, steps, m, n, k);
  float sum[WM / 16][WN / 8][4] = {};
  for (int step = 0; step < steps; step++) {
    __pipeline_wait_prior(STAGES - 2); /* this thread's copies of this step are complete */
    __syncthreads();                   /* all threads' are, and no thread reads the tiles of the step before any more */
    int next = step + STAGES - 1;
    matmul_mma_load_stage<BM, BN, BK, threads>(ring, next % STAGES, a, b, row0, col0, next, steps, m, n, k);
    const __nv_bfloat16 *a_tile = ring + step % STAGES * stage_elements, *b_tile = a_tile + BM * BK;
    matmul_mma_multiply<BN, BK, WM, WN>(sum, a_tile, b_tile, warp_row, warp_col);
  }
#pragma unroll
  for (int r = 0; r < WM / 16; r++)
#pragma unroll
    for (int s = 0; s < WN / 8; s += 2)
      matmul_mma_write(c, sum[r][s], sum[r][s + 1], row0 + warp_row + 16 * r, col0 + warp_col + 8 * s, m, n);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

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

/* For a C of few tiles: smaller tiles give work to more multiprocessors. */
static inline void matmul_mma_small(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_mma_launch<64, 64, 64, 32, 32, 3>(c, a, b, m, n, k);
}

static inline int matmul_mma_multiprocessors(void) {
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return multiprocessors;
}

/* The largest tiles that give every multiprocessor work and fit into its shared memory. */
static inline void matmul_mma(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  if ((double)m * n < 128.0 * 256 * matmul_mma_multiprocessors() / 2)
    matmul_mma_small(c, a, b, m, n, k);
  else if (shared_limit() >= 144 << 10)
    matmul_mma_launch<128, 256, 64, 64, 64, 3>(c, a, b, m, n, k);
  else
    matmul_mma_launch<128, 128, 64, 64, 32, 3>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_MMA_CUH */

/* matmul_batched.cuh - many small products: C (batch,M,N) = A (batch,M,K) B (batch,K,N), as the attention heads or the
 * groups of a convolution need them. Row-major, float32 throughout, sizes at least 1. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH

#include <cuda_pipeline_primitives.h>

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"
#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_vectorised.cuh"

typedef void MatmulBatchLauncher(float *c, const float *a, const float *b, int m, int n, int k, int batch);

/* The reference: one product after the other. */
static inline void matmul_batched_cpu(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  for (int i = 0; i < batch; i++)
    matmul_cpu(c + (size_t)i * m * n, a + (size_t)i * m * k, b + (size_t)i * k * n, m, n, k, false, false, false);
}

/* BM x BN of C per block, in steps of BK along K; a thread has TM x TN. STAGES pairs of tiles in shared memory. */
template <int BM, int BN, int BK, int TM, int TN, int STAGES, int SLICES>
struct MatmulBatchedShape {
  static const int bm = BM, bn = BN, bk = BK, tm = TM, tn = TN, stages = STAGES;
  static const int across = BN / TN >= 8 ? 8 : BN / TN, down = 32 / across; /* lanes of a warp */
  static const int wm = down * TM, wn = across * TN;                        /* a warp's part of the tile */
  static const int slice = BM / TM * (BN / TN), threads = slice * SLICES;
  static const int a_pitch = BK + 4, b_pitch = BN, stage = BM * a_pitch + BK * b_pitch; /* floats */
  static_assert(BM % wm == 0 && BN % wn == 0, "whole warps");
  static_assert(BM * BK % (4 * threads) == 0 && BK * BN % (4 * threads) == 0, "the threads share a tile evenly");
};

/* Starts the copies of ROWS x COLS floats at (row0,col0) of x (rows,cols) to a tile; zeros outside of x. */
template <int ROWS, int COLS, int PITCH, int THREADS, bool ALIGNED>
static __device__ __forceinline__ void matmul_batched_copy(float *tile, const float *x, int row0, int col0, int rows,
                                                           int cols) {
  const int width = ALIGNED ? 4 : 1; /* floats per copy */
#pragma unroll
  for (int i = 0; i < ROWS * COLS / width / THREADS; i++) {
    int at = (i * THREADS + threadIdx.x) * width, row = at / COLS, col = at % COLS;
    bool inside = row0 + row < rows && col0 + col < cols;
    const float *from = inside ? x + (size_t)(row0 + row) * cols + col0 + col : x;
    __pipeline_memcpy_async(tile + row * PITCH + col, from, width * sizeof *x, inside ? 0 : width * sizeof *x);
  }
}

template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_batched_load(float *ring, const float *a, const float *b, int row0,
                                                           int col0, int step, int m, int n, int k) {
  const int bm = Shape::bm, bn = Shape::bn, bk = Shape::bk, threads = Shape::threads;
  float *a_tile = ring + step % Shape::stages * Shape::stage, *b_tile = a_tile + bm * Shape::a_pitch;
  if (step * bk < k) {
    matmul_batched_copy<bm, bk, Shape::a_pitch, threads, ALIGNED>(a_tile, a, row0, step * bk, m, k);
    matmul_batched_copy<bk, bn, Shape::b_pitch, threads, ALIGNED>(b_tile, b, step * bk, col0, k, n);
  }
  __pipeline_commit();
}

/* total += sum; sum = 0: the end of a chunk (matmul_chunk.cuh). */
template <int ROWS, int COLS>
static __device__ __forceinline__ void matmul_batched_add_chunk(float (&total)[ROWS][COLS], float (&sum)[ROWS][COLS]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s++) {
      total[r][s] += sum[r][s];
      sum[r][s] = 0.0f;
    }
}

template <int BM, int BN, int BK, int TM, int TN, int STAGES, int SLICES, bool ALIGNED>
static __global__ void __launch_bounds__(BM / TM * (BN / TN) * SLICES, 2)
    matmul_batched_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  typedef MatmulBatchedShape<BM, BN, BK, TM, TN, STAGES, SLICES> Shape;
  extern __shared__ __align__(16) float matmul_batched_ring[];
  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  int product = blockIdx.x / (tile_rows * tile_cols), tile = blockIdx.x % (tile_rows * tile_cols);
  int row0 = tile / tile_cols * BM, col0 = tile % tile_cols * BN;
  a += (size_t)product * m * k;
  b += (size_t)product * k * n;
  c += (size_t)product * m * n;

  int slice = threadIdx.x / Shape::slice, warp = threadIdx.x % Shape::slice / 32, lane = threadIdx.x % 32;
  int row = warp / (BN / Shape::wn) * Shape::wm + lane / Shape::across; /* rows row + i * down */
  int col = warp % (BN / Shape::wn) * Shape::wn + lane % Shape::across * 4;
  float sum[TM][TN] = {}, total[TM][TN] = {};
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++)
    matmul_batched_load<Shape, ALIGNED>(matmul_batched_ring, a, b, row0, col0, s, m, n, k);
  for (int step = 0; step < steps; step++) {
    matmul_batched_load<Shape, ALIGNED>(matmul_batched_ring, a, b, row0, col0, step + STAGES - 1, m, n, k);
    __pipeline_wait_prior(STAGES - 1);
    __syncthreads();
    const float *a_tile = matmul_batched_ring + step % STAGES * Shape::stage + slice * (BK / SLICES);
    const float *b_tile = matmul_batched_ring + step % STAGES * Shape::stage + BM * Shape::a_pitch +
                          slice * (BK / SLICES) * Shape::b_pitch;
#pragma unroll
    for (int i = 0; i < BK / SLICES; i += 4) {
      float left[TM][4], right[4][TN];
#pragma unroll
      for (int r = 0; r < TM; r++) matmul_fragment<4>(left[r], a_tile + (row + r * Shape::down) * Shape::a_pitch + i);
#pragma unroll
      for (int j = 0; j < 4; j++) matmul_fragment<4 * Shape::across>(right[j], b_tile + (i + j) * Shape::b_pitch + col);
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int r = 0; r < TM; r++)
#pragma unroll
          for (int q = 0; q < TN; q++) {
            int s = r % 2 ? q : TN - 1 - q;
            sum[r][s] = fmaf(left[r][j], right[j][s], sum[r][s]);
          }
    }
    if (step + STAGES < steps) __syncthreads(); /* the next copies overwrite what others may be reading */
    if ((step + 1) % (MATMUL_CHUNK / BK) == 0 || step + 1 == steps) matmul_batched_add_chunk(total, sum);
  }
  if (SLICES > 1) {
    __syncthreads();
    float4 *sums = (float4 *)matmul_batched_ring;
#pragma unroll
    for (int r = 0; r < TM; r++)
#pragma unroll
      for (int s = 0; s < TN / 4; s++)
        if (slice > 0)
          sums[(((slice - 1) * TM + r) * (TN / 4) + s) * Shape::slice + threadIdx.x % Shape::slice] =
              make_float4(total[r][4 * s], total[r][4 * s + 1], total[r][4 * s + 2], total[r][4 * s + 3]);
    __syncthreads();
    if (slice > 0) return;
#pragma unroll
    for (int r = 0; r < TM; r++)
#pragma unroll
      for (int s = 0; s < TN / 4; s++)
#pragma unroll
        for (int other = 0; other < SLICES - 1; other++) {
          float4 v = sums[((other * TM + r) * (TN / 4) + s) * Shape::slice + threadIdx.x];
          total[r][4 * s] += v.x, total[r][4 * s + 1] += v.y, total[r][4 * s + 2] += v.z, total[r][4 * s + 3] += v.w;
        }
  }
#pragma unroll
  for (int r = 0; r < TM; r++)
#pragma unroll
    for (int s = 0; s < TN / 4; s++)
      quad_store<ALIGNED>(c,
                          make_float4(total[r][4 * s], total[r][4 * s + 1], total[r][4 * s + 2], total[r][4 * s + 3]),
                          row0 + row + r * Shape::down, col0 + col + s * 4 * Shape::across, m, n);
}

template <int BM, int BN, int BK, int TM, int TN, int STAGES, int SLICES>
static inline void matmul_batched_launch(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  typedef MatmulBatchedShape<BM, BN, BK, TM, TN, STAGES, SLICES> Shape;
  const int ring = STAGES * Shape::stage, sums = (SLICES - 1) * BM * BN;
  const int shared = (ring > sums ? ring : sums) * (int)sizeof(float);
  long long blocks = (long long)((m + BM - 1) / BM) * ((n + BN - 1) / BN) * batch;
  bool aligned = quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n);
  if (aligned) {
    CUDA_CHECK(cudaFuncSetAttribute(matmul_batched_kernel<BM, BN, BK, TM, TN, STAGES, SLICES, true>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    matmul_batched_kernel<BM, BN, BK, TM, TN, STAGES, SLICES, true>
        <<<(unsigned)blocks, Shape::threads, shared>>>(c, a, b, m, n, k);
  } else {
    CUDA_CHECK(cudaFuncSetAttribute(matmul_batched_kernel<BM, BN, BK, TM, TN, STAGES, SLICES, false>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    matmul_batched_kernel<BM, BN, BK, TM, TN, STAGES, SLICES, false>
        <<<(unsigned)blocks, Shape::threads, shared>>>(c, a, b, m, n, k);
  }
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_batched(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  matmul_batched_launch<64, 64, 16, 8, 4, 4, 1>(c, a, b, m, n, k, batch);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH */

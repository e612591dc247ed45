/* matmul_sliced.cuh - C (M,N) = A (M,K) B (K,N) where C has fewer tiles than the GPU has multiprocessors. Row-major,
 * float32 throughout, sizes at least 1. The reference is matmul_cpu() of matmul.cuh.
 *
 * Then stream-K divides the steps along K of each tile among several blocks, and the fewer the blocks are, the fewer
 * sums must be written, read and added up. But a multiprocessor needs several warps. So here the warps of a block do not
 * divide the tile among them but the steps: the block has SLICES slices, each with a pair of tiles, a barrier and sums
 * of its own. At the end the slices add up their sums in shared memory.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH

#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"

enum { MATMUL_SLICED_ROWS = 64 }; /* a row of tiles: more rows have more tiles, and need no slices */

/* Each thread's sums of one tile, as matmul_tuned_add_chunk() writes them: those of a slice are THREADS x TM x TN. */
template <int THREADS, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_sliced_put(float4 *sums, const float (&sum)[ROWS][COLS]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s += 4)
      sums[(r * COLS + s) / 4 * THREADS + threadIdx.x] =
          make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]);
}

/* x (rows,cols) = the sums of the slices, in their order. Thread (i,slice) has every SLICES-th float4 of the patch of
 * the threads (i,...), which begins at (row,col) of x. */
template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_sliced_write(float *x, const float4 *sums, int row, int col, int rows,
                                                           int cols) {
  const int quads = Shape::tm * Shape::tn / 4, threads = Shape::threads;
#pragma unroll 4
  for (int q = threadIdx.y; q < quads; q += Shape::slices) {
    float4 total = sums[q * threads + threadIdx.x];
#pragma unroll
    for (int slice = 1; slice < Shape::slices; slice++) {
      float4 v = sums[(slice * quads + q) * threads + threadIdx.x];
      total = make_float4(total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w);
    }
    int r = q / (Shape::tn / 4), s = q % (Shape::tn / 4);
    quad_store<ALIGNED>(x, total, row + r / 4 * Shape::row_step + r % 4, col + s * Shape::col_step, rows, cols);
  }
}

/* Blocks of threads x SLICES. As matmul_tuned_kernel, but the slices divide the steps of each piece of work. `totals_at`
 * is where, in shared memory, the sums begin: after the tiles, or over them if no slice has more than one chunk. */
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int SLICES, int PREFETCH, bool ALIGNED>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32 * SLICES, 1)
    matmul_sliced_kernel(float *c, float *parts, const float *a, const float *b, int m, int n, int k, int whole,
                         int chunk_steps, int totals_at) {
  typedef MatmulTunedShape<BM, BN, BK, WM, WN, TM, TN, SLICES> Shape;
  const int threads = Shape::threads, stage = Shape::stage;
  extern __shared__ __align__(16) float matmul_sliced_tiles[]; /* two pairs of tiles per slice; sums */
  float *tiles = matmul_sliced_tiles + threadIdx.y * 2 * stage;
  float4 *sums = (float4 *)(matmul_sliced_tiles + totals_at), *totals = sums + threadIdx.y * (BM * BN / 4);
  int row, col;
  matmul_tuned_patch<Shape>(&row, &col);

  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  MatmulStreamK work = matmul_stream_k_begin(tile_rows * tile_cols, steps, whole);
  int begin, end, tile, tile_row, tile_col;
  while (matmul_stream_k_next(&work, &tile, &begin, &end)) {
    matmul_tuned_place(tile, tile_rows, tile_cols, &tile_row, &tile_col);
    int row0 = tile_row * BM, col0 = tile_col * BN;
    int first = begin + (end - begin) * (int)threadIdx.y / SLICES;
    int last = begin + (end - begin) * ((int)threadIdx.y + 1) / SLICES;

    float sum[TM][TN] = {}, left[2][TM], right[2][TN];
    if (first < last) {
      MatmulTunedLoads<Shape> loads;
      int now = 0;
      matmul_tuned_load_first<Shape, ALIGNED>(loads, a, b, row0, col0, first, m, n, k);
      matmul_tuned_put<Shape>(tiles + now, loads);
      matmul_tuned_barrier<Shape>();
      matmul_tuned_operands<Shape>(left[0], right[0], tiles + now, 0, row, col);
      for (int step = first; step + 1 < last;) {
        int stop = last - 1 - step < chunk_steps ? last - 1 : step + chunk_steps;
#pragma unroll 1
        for (; step < stop; step++, now ^= stage) {
#if !defined(SIMT_REWRITTEN)
          if (PREFETCH > 0 && step + 1 + PREFETCH < last)
#pragma unroll
            for (int q = 0; q < Shape::b_quads; q++)
              asm volatile("prefetch.global.L2 [%0];" ::"l"(loads.b_from[q] + (size_t)PREFETCH * BK * n));
#endif
          matmul_tuned_step<Shape, ALIGNED>(sum, left, right, loads, tiles + now, tiles + (now ^ stage), row, col, n);
        }
        if (step + 1 < last) matmul_tuned_add_chunk<threads>(totals, sum, stop - first > chunk_steps);
      }
      matmul_tuned_last_step<Shape>(sum, left, right, tiles + now, row, col);
      if (last - 1 - first > chunk_steps) matmul_tuned_add_totals<threads>(sum, totals);
    }
    __syncthreads(); /* the sums may lie where a slice is still reading its tiles */
    matmul_sliced_put<threads>(totals, sum);
    __syncthreads();
    if (end - begin == steps)
      matmul_sliced_write<Shape, ALIGNED>(c, sums, row0 + row, col0 + col, m, n);
    else
      matmul_sliced_write<Shape, true>(parts + (size_t)(2 * blockIdx.x + (begin == 0)) * BM * BN, sums, row, col, BM,
                                       BN);
    __syncthreads(); /* the next piece of work overwrites the sums */
  }
}

/* matmul_tuned_plan() for one block per multiprocessor. If it loses less than 1/24 of the blocks, each tile is divided
 * among the same number of blocks: then no block has parts of two tiles, and waits twice for the first loads. */
static inline MatmulPlan matmul_sliced_plan(int m, int n, int k, int bm, int bn, int bk) {
  MatmulPlan plan = matmul_tuned_plan(m, n, k, bm, bn, bk, 1);
  int each = plan.whole == 0 && plan.blocks > 0 ? plan.blocks / plan.streamed_tiles : 0; /* blocks per tile */
  if (each > 0 && (plan.blocks - each * plan.streamed_tiles) * 24 < plan.blocks) {
    plan.blocks = each * plan.streamed_tiles;
    plan.joined = each > 1;
  }
  return plan;
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int SLICES, int PREFETCH, bool ALIGNED>
static inline void matmul_sliced_run(float *c, const float *a, const float *b, int m, int n, int k) {
  typedef MatmulTunedShape<BM, BN, BK, WM, WN, TM, TN, SLICES> Shape;
  const int tiles = 2 * SLICES * Shape::stage, sums = SLICES * BM * BN; /* floats of shared memory */
  MatmulPlan plan = matmul_sliced_plan(m, n, k, BM, BN, BK);
  float *parts = NULL;
  if (plan.joined) parts = matmul_tuned_workspace((size_t)plan.blocks * 2 * BM * BN * sizeof *parts);
  bool chunks = (tiles + sums) * (int)sizeof(float) <= matmul_tuned_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  int shared = (chunks ? tiles + sums : tiles > sums ? tiles : sums) * (int)sizeof(float);
  CUDA_CHECK(cudaFuncSetAttribute(matmul_sliced_kernel<BM, BN, BK, WM, WN, TM, TN, SLICES, PREFETCH, ALIGNED>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  matmul_sliced_kernel<BM, BN, BK, WM, WN, TM, TN, SLICES, PREFETCH, ALIGNED>
      <<<plan.blocks, dim3(Shape::threads, SLICES), shared>>>(c, parts, a, b, m, n, k, plan.whole,
                                                              chunks ? MATMUL_CHUNK / BK : INT_MAX, chunks ? tiles : 0);
  CUDA_CHECK_LAUNCH();
  if (!plan.joined) return;
  dim3 grid(plan.streamed_tiles,
            (BM * BN / 4 + 255) / 256); /* a float4 per thread: short, for it is added to a short time */
  matmul_tuned_join_kernel<BM, BN, BK, ALIGNED><<<grid, 256>>>(c, parts, m, n, k, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int SLICES, int PREFETCH>
static inline void matmul_sliced_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_sliced_run<BM, BN, BK, WM, WN, TM, TN, SLICES, PREFETCH, true>(c, a, b, m, n, k);
  else
    matmul_sliced_run<BM, BN, BK, WM, WN, TM, TN, SLICES, PREFETCH, false>(c, a, b, m, n, k);
}

static inline void matmul_sliced(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_sliced_launch<64, 128, 8, 64, 64, 16, 8, 4, 4>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH */

/* matmul_sliced.cuh - C (M,N) = A (M,K) B (K,N) for a C with fewer tiles than the GPU has multiprocessors. Row-major,
 * float32 throughout, sizes at least 1. The reference is matmul_cpu() of matmul.cuh.
 *
 * Stream-K divides the steps of a tile among blocks, each of which writes its sums; a second kernel adds them up. With
 * few tiles that are many parts per tile. So here the warps of a block do not share a tile of C, they share its steps:
 * a warp computes the whole tile for its slice of K, with a pair of tiles of its own, and it never waits for another
 * warp. At the end the slices are added up in shared memory, and a multiprocessor writes one part, not four or eight.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH

#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"

enum { MATMUL_SLICED_ROWS = 64, MATMUL_SLICED_DEPTH = 8 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* The sums of the slices, in shared memory: slice threadIdx.y has tm x tn / 4 float4 for each of its 32 threads. */

template <int ROWS, int COLS>
static __device__ __forceinline__ void matmul_sliced_put(float4 *own, const float (&sum)[ROWS][COLS]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s += 4)
      own[(r * COLS + s) / 4 * 32 + threadIdx.x] = make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]);
}

/* x (rows,cols) = the sums of the slices, added up in their order. The patch of threads (i,...) begins at (row,col);
 * thread (i,slice) writes every SLICES-th float4 of it. */
template <typename Shape, int SLICES, bool ALIGNED>
static __device__ __forceinline__ void matmul_sliced_write(float *x, const float4 *sums, int row, int col, int rows,
                                                           int cols) {
  const int quads = Shape::tm * Shape::tn / 4;
#pragma unroll 4
  for (int q = threadIdx.y; q < quads; q += SLICES) {
    float4 total = sums[q * 32 + threadIdx.x];
#pragma unroll
    for (int slice = 1; slice < SLICES; slice++) {
      float4 v = sums[(slice * quads + q) * 32 + threadIdx.x];
      total = make_float4(total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w);
    }
    int r = q / (Shape::tn / 4), s = q % (Shape::tn / 4);
    quad_store<ALIGNED>(x, total, row + r / 4 * Shape::row_step + r % 4, col + s * Shape::col_step, rows, cols);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* sum = the products of steps first ... last - 1 of a tile, by one warp, as matmul_tuned_kernel has it. */
template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_sliced_sum(float (&sum)[Shape::tm][Shape::tn], float *tiles,
                                                         float4 *totals, const float *a, const float *b, int row0,
                                                         int col0, int first, int last, int m, int n, int k,
                                                         int chunk_steps) {
  const int stage = Shape::stage;
  float left[2][Shape::tm], right[2][Shape::tn];
  int row, col, now = 0;
  matmul_tuned_patch<Shape>(&row, &col);
  MatmulTunedLoads<Shape> loads;
  matmul_tuned_load_first<Shape, ALIGNED>(loads, a, b, row0, col0, first, m, n, k);
  matmul_tuned_put<Shape>(tiles + now, loads);
  matmul_tuned_barrier<Shape>();
  matmul_tuned_operands<Shape>(left[0], right[0], tiles + now, 0, row, col);
  for (int step = first; step + 1 < last;) {
    int stop = last - 1 - step < chunk_steps ? last - 1 : step + chunk_steps;
#pragma unroll 1
    for (; step < stop; step++, now ^= stage)
      matmul_tuned_step<Shape, ALIGNED>(sum, left, right, loads, tiles + now, tiles + (now ^ stage), row, col, n);
    if (step + 1 < last) matmul_tuned_add_chunk<32>(totals, sum, stop - first > chunk_steps);
  }
  matmul_tuned_last_step<Shape>(sum, left, right, tiles + now, row, col);
  if (last - 1 - first > chunk_steps) matmul_tuned_add_totals<32>(sum, totals);
}

/* Blocks of 32 x SLICES threads, which take pieces of work as those of matmul_tuned_kernel do. `sums_at` is where the
 * sums begin in shared memory: after the tiles, or in the place of the tiles if both do not fit; then each sum is
 * computed in one chunk. */
template <int BM, int BN, int TM, int TN, int SLICES, bool ALIGNED>
static __global__ void __launch_bounds__(32 * SLICES, 1)
    matmul_sliced_kernel(float *c, float *parts, const float *a, const float *b, int m, int n, int k, int whole,
                         int chunk_steps, int sums_at) {
  typedef MatmulTunedShape<BM, BN, MATMUL_SLICED_DEPTH, BM, BN, TM, TN> Shape;
  extern __shared__ __align__(16) float matmul_sliced_memory[];
  float *tiles = matmul_sliced_memory + threadIdx.y * 2 * Shape::stage;
  float4 *sums = (float4 *)(matmul_sliced_memory + sums_at), *own = sums + threadIdx.y * (BM * BN / 4);
  int row, col;
  matmul_tuned_patch<Shape>(&row, &col);

  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + Shape::bk - 1) / Shape::bk;
  MatmulStreamK work = matmul_stream_k_begin(tile_rows * tile_cols, steps, whole);
  int begin, end, tile, tile_row, tile_col;
  while (matmul_stream_k_next(&work, &tile, &begin, &end)) {
    matmul_tuned_place(tile, tile_rows, tile_cols, &tile_row, &tile_col);
    int row0 = tile_row * BM, col0 = tile_col * BN, slice = threadIdx.y;
    int first = begin + (end - begin) * slice / SLICES, last = begin + (end - begin) * (slice + 1) / SLICES;
    float sum[TM][TN] = {};
    if (first < last)
      matmul_sliced_sum<Shape, ALIGNED>(sum, tiles, own, a, b, row0, col0, first, last, m, n, k, chunk_steps);

    __syncthreads(); /* the sums may lie over tiles that another warp is reading */
    matmul_sliced_put(own, sum);
    __syncthreads();
    if (end - begin == steps)
      matmul_sliced_write<Shape, SLICES, ALIGNED>(c, sums, row0 + row, col0 + col, m, n);
    else
      matmul_sliced_write<Shape, SLICES, true>(parts + (size_t)(2 * blockIdx.x + (begin == 0)) * BM * BN, sums, row,
                                               col, BM, BN);
    __syncthreads(); /* the next piece of work overwrites the sums */
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Stream-K with one block per multiprocessor. But where that leaves less than 1/24 of them idle, every tile is divided
 * among the same number of blocks: then no block has parts of two tiles, and pays for beginning and end only once. */
static inline MatmulPlan matmul_sliced_plan(int m, int n, int k, int bm, int bn) {
  MatmulPlan plan = matmul_tuned_plan(m, n, k, bm, bn, MATMUL_SLICED_DEPTH, 1);
  int each = plan.joined && plan.whole == 0 ? plan.blocks / plan.streamed_tiles : 0; /* blocks per tile */
  if (each > 0 && (plan.blocks - each * plan.streamed_tiles) * 24 < plan.blocks) {
    plan.blocks = each * plan.streamed_tiles;
    plan.joined = each > 1;
  }
  return plan;
}

template <int BM, int BN, int TM, int TN, int SLICES, bool ALIGNED>
static inline void matmul_sliced_run(float *c, const float *a, const float *b, int m, int n, int k) {
  typedef MatmulTunedShape<BM, BN, MATMUL_SLICED_DEPTH, BM, BN, TM, TN> Shape;
  const int tiles = 2 * SLICES * Shape::stage, sums = SLICES * BM * BN; /* floats of shared memory */
  MatmulPlan plan = matmul_sliced_plan(m, n, k, BM, BN);
  float *parts = NULL;
  if (plan.joined) parts = matmul_tuned_workspace((size_t)plan.blocks * 2 * BM * BN * sizeof *parts);
  bool chunks = (tiles + sums) * (int)sizeof(float) <= shared_limit();
  int shared = (chunks ? tiles + sums : tiles > sums ? tiles : sums) * (int)sizeof(float);
  shared_limit_ask((const void *)matmul_sliced_kernel<BM, BN, TM, TN, SLICES, ALIGNED>, shared);
  matmul_sliced_kernel<BM, BN, TM, TN, SLICES, ALIGNED><<<plan.blocks, dim3(32, SLICES), shared>>>(
      c, parts, a, b, m, n, k, plan.whole, chunks ? MATMUL_CHUNK / MATMUL_SLICED_DEPTH : INT_MAX, chunks ? tiles : 0);
  CUDA_CHECK_LAUNCH();
  if (!plan.joined) return;
  dim3 grid(plan.streamed_tiles, (BM * BN / 4 + 255) / 256);
  matmul_tuned_join_kernel<BM, BN, MATMUL_SLICED_DEPTH, ALIGNED>
      <<<grid, 256>>>(c, parts, m, n, k, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

template <int BM, int BN, int TM, int TN, int SLICES>
static inline void matmul_sliced_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_sliced_run<BM, BN, TM, TN, SLICES, true>(c, a, b, m, n, k);
  else
    matmul_sliced_run<BM, BN, TM, TN, SLICES, false>(c, a, b, m, n, k);
}

/* Eight warps with 16 x 8 sums per thread are all that the registers have room for, or twelve with 8 x 8. Their sums
 * are 128 and 96 KB of shared memory: many GPUs have 99, and some 64. */
static inline void matmul_sliced(float *c, const float *a, const float *b, int m, int n, int k) {
  if (shared_limit() < 96 << 10)
    matmul_tuned_launch<64, 64, 8, 32, 64, 8, 8, 4>(c, a, b, m, n, k);
  else if (m <= MATMUL_SLICED_ROWS / 2 || shared_limit() < 128 << 10)
    matmul_sliced_launch<32, 64, 8, 8, 12>(c, a, b, m, n, k);
  else
    matmul_sliced_launch<64, 64, 16, 8, 8>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SLICED_CUH */

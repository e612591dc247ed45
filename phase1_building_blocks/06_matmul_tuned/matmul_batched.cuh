/* matmul_batched.cuh - many small products, C (batch,M,N) = A (batch,M,K) B (batch,K,N): the heads of attention, the
 * points of Winograd's convolution. Row-major, float32 throughout, sizes at least 1. The reference is
 * matmul_batched_cpu().
 *
 * One launch computes all of them, a block per tile of 64 x 64. A small product is over before a pipeline of loads and
 * products is filled. So the ring of tiles in shared memory is as deep as such a product, and all its copies start
 * before the first multiplication: the memory has the requests of all blocks at once.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH

#include <cuda_pipeline_primitives.h>

#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"
#include "phase1_building_blocks/06_matmul_tuned/matmul_vectorised.cuh"

typedef void MatmulBatchLauncher(float *c, const float *a, const float *b, int m, int n, int k, int batch);

static inline void matmul_batched_cpu(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  for (int i = 0; i < batch; i++)
    matmul_cpu(c + (size_t)i * m * n, a + (size_t)i * m * k, b + (size_t)i * k * n, m, n, k, false, false, false);
}

/* A block of 128 threads computes 64 x 64 elements of C in steps of 16 along K, a warp 32 x 32 of them, a thread 8 x 4:
 * rows 4 apart, columns side by side. A stage of the ring holds a pair of tiles:
 *
 *     a_tile[MATMUL_BATCHED_SIDE][MATMUL_BATCHED_PITCH]   not transposed: a thread reads four floats of a row at a time
 *     b_tile[MATMUL_BATCHED_DEPTH][MATMUL_BATCHED_SIDE]
 */
enum { MATMUL_BATCHED_SIDE = 64, MATMUL_BATCHED_DEPTH = 16, MATMUL_BATCHED_THREADS = 128, MATMUL_BATCHED_STAGES = 4 };
enum { MATMUL_BATCHED_ROWS = 8, MATMUL_BATCHED_COLS = 4, MATMUL_BATCHED_WARP = 32, MATMUL_BATCHED_DOWN = 4 };

/* With 4 floats of padding the four rows that a warp reads at a time lie in different banks. */
enum { MATMUL_BATCHED_PITCH = MATMUL_BATCHED_DEPTH + 4 };
enum { MATMUL_BATCHED_A_TILE = MATMUL_BATCHED_SIDE * MATMUL_BATCHED_PITCH };
enum { MATMUL_BATCHED_STAGE = MATMUL_BATCHED_A_TILE + MATMUL_BATCHED_DEPTH * MATMUL_BATCHED_SIDE }; /* floats */

/* Starts the copies of ROWS x COLS floats at (row0,col0) of x (rows,cols) to a tile; zeros outside of x. */
template <int ROWS, int COLS, int PITCH, bool ALIGNED>
static __device__ __forceinline__ void matmul_batched_copy(float *tile, const float *x, int row0, int col0, int rows,
                                                           int cols) {
  const int width = ALIGNED ? 4 : 1; /* floats per copy */
  static_assert(ROWS * COLS % (4 * MATMUL_BATCHED_THREADS) == 0, "the threads share a tile evenly");
#pragma unroll
  for (int i = 0; i < ROWS * COLS / width / MATMUL_BATCHED_THREADS; i++) {
    int at = (i * MATMUL_BATCHED_THREADS + threadIdx.x) * width, row = at / COLS, col = at % COLS;
    bool inside = row0 + row < rows && col0 + col < cols;
    const float *from = inside ? x + (size_t)(row0 + row) * cols + col0 + col : x;
    __pipeline_memcpy_async(tile + row * PITCH + col, from, width * sizeof *x, inside ? 0 : width * sizeof *x);
  }
}

/* Starts the copies of step `step` as one group; after the last step the group is empty. */
template <bool ALIGNED>
static __device__ __forceinline__ void matmul_batched_load(float *ring, const float *a, const float *b, int row0,
                                                           int col0, int step, int m, int n, int k) {
  const int side = MATMUL_BATCHED_SIDE, depth = MATMUL_BATCHED_DEPTH;
  float *a_tile = ring + step % MATMUL_BATCHED_STAGES * MATMUL_BATCHED_STAGE, *b_tile = a_tile + MATMUL_BATCHED_A_TILE;
  if (step * depth < k) {
    matmul_batched_copy<side, depth, MATMUL_BATCHED_PITCH, ALIGNED>(a_tile, a, row0, step * depth, m, k);
    matmul_batched_copy<depth, side, side, ALIGNED>(b_tile, b, step * depth, col0, k, n);
  }
  __pipeline_commit();
}

/* sum += the products of one stage, whose tiles are read from the thread's first row of A and first column of B on. */
static __device__ __forceinline__ void matmul_batched_multiply(float (&sum)[MATMUL_BATCHED_ROWS][MATMUL_BATCHED_COLS],
                                                               const float *a_tile, const float *b_tile) {
  const int rows = MATMUL_BATCHED_ROWS, cols = MATMUL_BATCHED_COLS;
#pragma unroll
  for (int i = 0; i < MATMUL_BATCHED_DEPTH; i += 4) {
    float left[rows][4], right[4][cols];
#pragma unroll
    for (int r = 0; r < rows; r++)
      matmul_fragment<4>(left[r], a_tile + r * MATMUL_BATCHED_DOWN * MATMUL_BATCHED_PITCH + i);
#pragma unroll
    for (int j = 0; j < 4; j++) matmul_fragment<4>(right[j], b_tile + (i + j) * MATMUL_BATCHED_SIDE);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int r = 0; r < rows; r++)
#pragma unroll
        for (int q = 0; q < cols; q++) {
          int s = r % 2 ? q : cols - 1 - q; /* each product keeps an operand of the one before */
          sum[r][s] = fmaf(left[r][j], right[j][s], sum[r][s]);
        }
  }
}

/* total += sum; sum = 0: the end of a chunk (matmul_chunk.cuh) */
static __device__ __forceinline__ void matmul_batched_add_chunk(
    float (&total)[MATMUL_BATCHED_ROWS][MATMUL_BATCHED_COLS], float (&sum)[MATMUL_BATCHED_ROWS][MATMUL_BATCHED_COLS]) {
#pragma unroll
  for (int r = 0; r < MATMUL_BATCHED_ROWS; r++)
#pragma unroll
    for (int s = 0; s < MATMUL_BATCHED_COLS; s++) {
      total[r][s] += sum[r][s];
      sum[r][s] = 0.0f;
    }
}

template <bool ALIGNED>
static __global__ void __launch_bounds__(MATMUL_BATCHED_THREADS, 2)
    matmul_batched_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int side = MATMUL_BATCHED_SIDE, stages = MATMUL_BATCHED_STAGES, down = MATMUL_BATCHED_DOWN;
  __shared__ __align__(16) float ring[stages * MATMUL_BATCHED_STAGE];
  int tile_rows = (m + side - 1) / side, tile_cols = (n + side - 1) / side;
  int product = blockIdx.x / (tile_rows * tile_cols), tile = blockIdx.x % (tile_rows * tile_cols);
  int row0 = tile / tile_cols * side, col0 = tile % tile_cols * side;
  a += (size_t)product * m * k;
  b += (size_t)product * k * n;
  c += (size_t)product * m * n;

  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = warp / 2 * MATMUL_BATCHED_WARP + lane / 8, col = warp % 2 * MATMUL_BATCHED_WARP + lane % 8 * 4;
  float sum[MATMUL_BATCHED_ROWS][MATMUL_BATCHED_COLS] = {}, total[MATMUL_BATCHED_ROWS][MATMUL_BATCHED_COLS] = {};
  int steps = (k + MATMUL_BATCHED_DEPTH - 1) / MATMUL_BATCHED_DEPTH;
#pragma unroll
  for (int s = 0; s < stages - 1; s++) matmul_batched_load<ALIGNED>(ring, a, b, row0, col0, s, m, n, k);
  for (int step = 0; step < steps; step++) {
    matmul_batched_load<ALIGNED>(ring, a, b, row0, col0, step + stages - 1, m, n, k);
    __pipeline_wait_prior(stages - 1);
    __syncthreads();
    const float *a_tile = ring + step % stages * MATMUL_BATCHED_STAGE, *b_tile = a_tile + MATMUL_BATCHED_A_TILE;
    matmul_batched_multiply(sum, a_tile + row * MATMUL_BATCHED_PITCH, b_tile + col);
    if (step + stages < steps) __syncthreads(); /* the next copies overwrite what other threads may be reading */
    if ((step + 1) % (MATMUL_CHUNK / MATMUL_BATCHED_DEPTH) == 0 || step + 1 == steps)
      matmul_batched_add_chunk(total, sum);
  }
#pragma unroll
  for (int r = 0; r < MATMUL_BATCHED_ROWS; r++)
    quad_store<ALIGNED>(c, make_float4(total[r][0], total[r][1], total[r][2], total[r][3]), row0 + row + r * down,
                        col0 + col, m, n);
}

/* Blocks are numbered along x: batch times tiles below 2^31. */
static inline void matmul_batched(float *c, const float *a, const float *b, int m, int n, int k, int batch) {
  const int side = MATMUL_BATCHED_SIDE;
  long long blocks = (long long)((m + side - 1) / side) * ((n + side - 1) / side) * batch;
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_batched_kernel<true><<<(unsigned)blocks, MATMUL_BATCHED_THREADS>>>(c, a, b, m, n, k);
  else
    matmul_batched_kernel<false><<<(unsigned)blocks, MATMUL_BATCHED_THREADS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_BATCHED_CUH */

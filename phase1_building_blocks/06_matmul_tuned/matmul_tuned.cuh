/* matmul_tuned.cuh - C (M,N) = A (M,K) B (K,N) as fast as plain CUDA C makes it. Row-major, float32 throughout, sizes
 * at least 1. The reference is matmul_cpu() of matmul.cuh; the rungs before it are in matmul_vectorised.cuh.
 *
 *   matmul_tuned  16 x 8 elements a thread (24 floats for 128 multiplications), fetched from shared memory one product
 *                 ahead; register banks; tiles in an order that the L2 cache likes; the work divided evenly among the
 *                 multiprocessors; smaller tiles where C is small
 *
 * TFLOP/s on an H200, N = 4096: 51.5; cublasSgemm 51.2 (tools/peers/sgemm_bench.cu).
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH

#include <limits.h>

#include "phase1_building_blocks/06_matmul_tuned/matmul_vectorised.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Tiles of C are numbered down a band of MATMUL_BAND tile rows before going to the next column, so that the blocks at
 * work at one time need few rows of A and few columns of B, which then stay in the L2 cache. */
enum { MATMUL_BAND = 8 };

static __device__ __forceinline__ void matmul_tuned_place(int tile, int tile_rows, int tile_cols, int *tile_row,
                                                          int *tile_col) {
  int band = tile / (MATMUL_BAND * tile_cols), within = tile % (MATMUL_BAND * tile_cols);
  int height = tile_rows - band * MATMUL_BAND < MATMUL_BAND ? tile_rows - band * MATMUL_BAND : MATMUL_BAND;
  *tile_row = band * MATMUL_BAND + within % height;
  *tile_col = within / height;
}

/* from[0] ... from[last], then zeros. ALIGNED: all four or none. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 matmul_tuned_four(const float *from, int last) {
  if (ALIGNED) return last >= 0 ? *(const float4 *)from : make_float4(0, 0, 0, 0);
  return make_float4(last >= 0 ? from[0] : 0, last >= 1 ? from[1] : 0, last >= 2 ? from[2] : 0,
                     last >= 3 ? from[3] : 0);
}

/* A multiprocessor starts 4 x 32 multiply-adds a cycle if it can read their operands. NVIDIA does not say how registers
 * are read; what is measured fits two banks, the even and the odd numbers, that yield one register a cycle each. A
 * multiply-add has three operands. One is spared where the instruction before had it, too: so the patch is gone through
 * like a snake, every step of which keeps its row or its column. The other two should come from different banks. The
 * sums lie in registers as in memory, in fours, because they are stored as float4; therefore B's tile holds each pair
 * of columns the other way round, and sum[r][s] is in the bank where right[s] is not.
 * On an H200 both together took an early form of this kernel from 49.2 to 51.2 TFLOP/s (N = 4096). */
static __device__ __forceinline__ float4 matmul_swap_pairs(float4 v) { return make_float4(v.y, v.x, v.w, v.z); }

/* Both shares into a pair of tiles: A's, transposed, and behind it B's, its pairs swapped. It says over again what
 * matmul_put_transposed() and matmul_put() do, because so the compiler finds shorter address arithmetic. */
template <int BK, int BN, int THREADS, int PITCH, int A_QUADS, int B_QUADS>
static __device__ __forceinline__ void matmul_tuned_put(float *pair, const float4 (&a_share)[A_QUADS],
                                                        const float4 (&b_share)[B_QUADS]) {
  float *a_to = pair + threadIdx.x % (BK / 4) * 4 * PITCH + threadIdx.x / (BK / 4);
  float *b_to = pair + BK * PITCH + threadIdx.x / (BN / 4) * BN + threadIdx.x % (BN / 4) * 4;
#pragma unroll
  for (int q = 0; q < A_QUADS; q++, a_to += THREADS / (BK / 4)) {
    a_to[0] = a_share[q].x;
    a_to[PITCH] = a_share[q].y;
    a_to[2 * PITCH] = a_share[q].z;
    a_to[3 * PITCH] = a_share[q].w;
  }
#pragma unroll
  for (int q = 0; q < B_QUADS; q++, b_to += THREADS / (BN / 4) * BN) *(float4 *)b_to = matmul_swap_pairs(b_share[q]);
}

/* What the thread with the patch at (row, col) needs for product i of a pair of tiles. */
template <int BK, int BN, int PITCH, int ROW_STEP, int COL_STEP, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_tuned_fragments(float (&left)[ROWS], float (&right)[COLS],
                                                              const float *pair, int i, int row, int col) {
  matmul_fragment<COL_STEP>(right, pair + BK * PITCH + i * BN + col);
#pragma unroll
  for (int s = 0; s < COLS; s += 2) {
    float first = right[s];
    right[s] = right[s + 1];
    right[s + 1] = first;
  }
  matmul_fragment<ROW_STEP>(left, pair + i * PITCH + row);
}

template <int ROWS, int COLS>
static __device__ __forceinline__ void matmul_outer_snake(float (&sum)[ROWS][COLS], const float (&left)[ROWS],
                                                          const float (&right)[COLS]) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int i = 0; i < COLS; i++) {
      int s = r % 2 ? i : COLS - 1 - i;
      sum[r][s] = fmaf(left[r], right[s], sum[r][s]);
    }
}

/* This thread's sums into `totals` in shared memory, added to what is there if `add`; then they are 0. (See
 * matmul_chunk.cuh. At N = 4096 on an H200 this takes 1.6 % of the time; totals in C, with chunks of 512, took 12 %,
 * for nothing hides the wait for them.) */
template <int THREADS, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_tuned_add(float4 *totals, float (&sum)[ROWS][COLS], bool add) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s += 4) {
      float4 *total = &totals[(r * COLS + s) / 4 * THREADS + threadIdx.x], v = make_float4(0, 0, 0, 0);
      if (add) v = *total;
      *total = make_float4(v.x + sum[r][s], v.y + sum[r][s + 1], v.z + sum[r][s + 2], v.w + sum[r][s + 3]);
#pragma unroll
      for (int i = 0; i < 4; i++) sum[r][s + i] = 0.0f;
    }
}

template <int THREADS, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_tuned_totals(float (&sum)[ROWS][COLS], const float4 *totals) {
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int s = 0; s < COLS; s += 4) {
      float4 v = totals[(r * COLS + s) / 4 * THREADS + threadIdx.x];
      sum[r][s] += v.x;
      sum[r][s + 1] += v.y;
      sum[r][s + 2] += v.z;
      sum[r][s + 3] += v.w;
    }
}

/* A block computes a tile of BM x BN in steps of BK along K, its warps WM x WN each, its threads TM x TN.
 *
 * There are as many blocks as the GPU runs at a time. If every block took whole tiles, most would wait in the end for
 * the few that get one more. So only the first `whole` tiles are taken whole, block by block; the steps of the others,
 * in a row, are divided evenly ("stream-K": Osama et al., 2023). A block that does only part of a tile's steps leaves
 * its sums in `parts`, BM x BN each: part 2 * block if another block has done the tile's first steps, else
 * 2 * block + 1. matmul_tuned_join_kernel() adds them up.
 *
 * If K is no multiple of BK, it is the first step that is shorter, and the loop needs no bounds. Rows beyond the end of
 * A repeat its last, and columns beyond the end of B are anything: they only matter to sums that nobody writes. */
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, RESIDENT)
    matmul_tuned_kernel(float *c, float *parts, const float *a, const float *b, int m, int n, int k, int whole,
                        int chunk_steps) {
  const int threads = BM / WM * (BN / WN) * 32, across = WN / TN, down = WM / TM; /* lanes of a warp */
  const int row_step = down * 4, col_step = across * 4, pitch = BM + 4;
  const int a_quads = BM * BK / 4 / threads, b_quads = BN * BK / 4 / threads, pair = BK * (pitch + BN);
  const int a_down = threads / (BK / 4), b_down = threads / (BN / 4); /* rows between a thread's quads */
  static_assert(down * across == 32 && across >= 4, "the patches of a warp are one a lane");
  static_assert(threads % (BK / 4) == 0 && threads % (BN / 4) == 0, "a thread's quads are below each other");
  static_assert(BM * BK % (4 * threads) == 0 && BN * BK % (4 * threads) == 0, "the threads share a tile evenly");
  extern __shared__ __align__(16) float matmul_tuned_tiles[]; /* two pairs of tiles, `pair` floats each; totals */
  float *tiles = matmul_tuned_tiles;
  float4 *totals = (float4 *)(tiles + 2 * pair);

  /* Eight lanes side by side are 2 x 4 patches: together they fetch 2 float4 of A's tile, 4 of B's. */
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = warp / (BN / WN) * WM + (lane / (2 * across) * 2 + lane % 2) * 4;
  int col = warp % (BN / WN) * WN + lane / 2 % across * 4;
  int a_row = threadIdx.x / (BK / 4), a_col = threadIdx.x % (BK / 4) * 4; /* its first quad of A's tile */
  int b_row = threadIdx.x / (BN / 4), b_col = threadIdx.x % (BN / 4) * 4;

  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  int first_depth = k - (steps - 1) * BK;
  long long streamed = (long long)(tile_rows * tile_cols - whole) * steps;
  long long unit = streamed * blockIdx.x / gridDim.x, last_unit = streamed * (blockIdx.x + 1) / gridDim.x;
  int tile = blockIdx.x;

  while (tile < whole || unit < last_unit) {
    int begin = 0, end = steps, at = tile; /* the tile, and which of its steps */
    if (tile < whole) {
      tile += gridDim.x;
    } else {
      at = whole + (int)(unit / steps);
      begin = (int)(unit % steps);
      end = last_unit - unit < steps - begin ? begin + (int)(last_unit - unit) : steps;
      unit += end - begin;
    }
    int tile_row, tile_col;
    matmul_tuned_place(at, tile_rows, tile_cols, &tile_row, &tile_col);
    int row0 = tile_row * BM, col0 = tile_col * BN;

    float sum[TM][TN] = {}, left[2][TM], right[2][TN];
    float4 a_share[a_quads], b_share[b_quads];
    const float *a_from[a_quads], *b_from[b_quads];
    int k0 = begin == 0 ? 0 : first_depth + (begin - 1) * BK, depth = begin == 0 ? first_depth : BK;
    int b_at = ALIGNED ? min(col0 + b_col, n - 4) : col0 + b_col, b_last = ALIGNED ? 3 : n - 1 - b_at;
#pragma unroll
    for (int q = 0; q < a_quads; q++) {
      a_from[q] = a + (size_t)min(row0 + a_row + q * a_down, m - 1) * k + k0 + a_col;
      a_share[q] = matmul_tuned_four<ALIGNED>(a_from[q], depth - 1 - a_col);
      a_from[q] += depth;
    }
#pragma unroll
    for (int q = 0; q < b_quads; q++) {
      b_from[q] = b + (size_t)(k0 + b_row + q * b_down) * n + b_at;
      b_share[q] = matmul_tuned_four<ALIGNED>(b_from[q], b_row + q * b_down < depth ? b_last : -1);
      b_from[q] += (size_t)depth * n;
    }

    int now = 0; /* where the pair of tiles is that is being multiplied; the other is at now ^ pair */
    matmul_tuned_put<BK, BN, threads, pitch>(tiles + now, a_share, b_share);
    __syncthreads();
    matmul_tuned_fragments<BK, BN, pitch, row_step, col_step>(left[0], right[0], tiles + now, 0, row, col);
    for (int step = begin; step + 1 < end;) {
      int stop = end - 1 - step < chunk_steps ? end - 1 : step + chunk_steps;
#pragma unroll 1
      for (; step < stop; step++) {
#pragma unroll
        for (int i = 0; i < BK; i++) {
          if (i == 1) { /* the next tiles set out ... */
#pragma unroll
            for (int q = 0; q < a_quads; q++) {
              a_share[q] = matmul_tuned_four<ALIGNED>(a_from[q], 3);
              a_from[q] += BK;
            }
#pragma unroll
            for (int q = 0; q < b_quads; q++) {
              b_share[q] = matmul_tuned_four<ALIGNED>(b_from[q], b_last);
              b_from[q] += (size_t)BK * n;
            }
          }
          if (i == BK - 2)
            matmul_tuned_put<BK, BN, threads, pitch>(tiles + (now ^ pair), a_share, b_share); /* arrive */
          if (i + 1 < BK) {
            matmul_tuned_fragments<BK, BN, pitch, row_step, col_step>(left[(i + 1) % 2], right[(i + 1) % 2],
                                                                      tiles + now, i + 1, row, col);
          } else {
            __syncthreads();
            matmul_tuned_fragments<BK, BN, pitch, row_step, col_step>(left[0], right[0], tiles + (now ^ pair), 0, row,
                                                                      col);
          }
          matmul_outer_snake(sum, left[i % 2], right[i % 2]);
        }
        now ^= pair;
      }
      if (step + 1 < end) matmul_tuned_add<threads>(totals, sum, stop - begin > chunk_steps);
    }
#pragma unroll
    for (int i = 0; i < BK; i++) {
      if (i > 0)
        matmul_tuned_fragments<BK, BN, pitch, row_step, col_step>(left[i % 2], right[i % 2], tiles + now, i, row, col);
      matmul_outer_snake(sum, left[i % 2], right[i % 2]);
    }
    __syncthreads(); /* the next tile begins in shared memory that others may be reading */

    if (end - 1 - begin > chunk_steps) matmul_tuned_totals<threads>(sum, totals);
    if (end - begin == steps)
      matmul_write<row_step, col_step, ALIGNED>(c, sum, row0 + row, col0 + col, m, n, false);
    else
      matmul_write<row_step, col_step, true>(parts + (size_t)(2 * blockIdx.x + (begin == 0)) * BM * BN, sum, row, col,
                                             BM, BN, false);
  }
}

/* Adds up the parts of tile whole + blockIdx.x, in the order of its steps, unless one block has computed all of it;
 * `blocks` is the grid of matmul_tuned_kernel. gridDim.y blocks share a tile. */
template <int BM, int BN, int BK, bool ALIGNED>
static __global__ void matmul_tuned_join_kernel(float *c, const float *parts, int m, int n, int k, int whole,
                                                int blocks) {
  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  long long streamed = (long long)(tile_rows * tile_cols - whole) * steps, begin = (long long)blockIdx.x * steps;
  /* Block j has the units streamed * j / blocks, rounded down, to that of j + 1: unit u is with the last j for which
   * streamed * j < (u + 1) * blocks. */
  int first = (int)(((begin + 1) * blocks - 1) / streamed), last = (int)(((begin + steps) * blocks - 1) / streamed);
  if (first == last) return;
  int tile_row, tile_col;
  matmul_tuned_place(whole + blockIdx.x, tile_rows, tile_cols, &tile_row, &tile_col);
  for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < BM * BN / 4; i += gridDim.y * blockDim.x) {
    float4 total = ((const float4 *)(parts + (size_t)(2 * first + 1) * BM * BN))[i];
    for (int j = first + 1; j <= last; j++) {
      float4 part = ((const float4 *)(parts + (size_t)(2 * j) * BM * BN))[i];
      total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
    }
    quad_store<ALIGNED>(c, total, tile_row * BM + i / (BN / 4), tile_col * BN + i % (BN / 4) * 4, m, n);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* `bytes` of device memory for the parts of tiles, kept from call to call: allocating takes longer than a small
 * product. So two products must not run side by side in two streams. */
static inline float *matmul_tuned_workspace(size_t bytes) {
  static float *memory;
  static size_t size;
  if (size < bytes) {
    CUDA_CHECK(cudaFree(memory));
    CUDA_CHECK(cudaMalloc((void **)&memory, bytes));
    size = bytes;
  }
  return memory;
}

static inline int matmul_tuned_attribute(cudaDeviceAttr attribute) {
  int device, value;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

/* How the work is divided among blocks. */
typedef struct MatmulPlan {
  int blocks, whole;  /* see matmul_tuned_kernel */
  int streamed_tiles; /* those that are not taken whole */
  bool joined;        /* some tile is in parts */
} MatmulPlan;

/* Tiles are taken whole as far as that leaves no block idle. Of what remains, dividing the steps evenly saves time, and
 * writing, reading and adding up parts costs as much as about 16 steps. A part has 4 steps or more, and the more the
 * more steps a tile has: with parts of s steps a tile takes s steps and the adding up of steps / s parts. */
static inline MatmulPlan matmul_tuned_plan(int m, int n, int k, int bm, int bn, int bk, int resident) {
  const int join_steps = 16;
  long long tiles = (long long)((m + bm - 1) / bm) * ((n + bn - 1) / bn), steps = (k + bk - 1) / bk;
  long long blocks = matmul_tuned_attribute(cudaDevAttrMultiProcessorCount) * resident, rest = tiles % blocks;
  if (rest * steps < blocks * join_steps && tiles > blocks) rest += blocks; /* longer parts, and fewer for each tile */
  MatmulPlan plan;
  plan.joined = rest > 0 && (rest + blocks - 1) / blocks * steps - rest * steps / blocks > join_steps;
  if (!plan.joined) rest = 0;
  if (plan.joined && rest == tiles) { /* few tiles: perhaps too few steps for all blocks */
    long long least_steps = 4;
    while (4 * least_steps * least_steps < steps) least_steps *= 2;
    long long useful = (tiles * steps + least_steps - 1) / least_steps;
    if (useful < blocks) blocks = useful;
  }
  if (!plan.joined && tiles < blocks) blocks = tiles;
  plan.blocks = (int)blocks;
  plan.streamed_tiles = (int)rest;
  plan.whole = (int)(tiles - rest);
  return plan;
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT, bool ALIGNED>
static inline void matmul_tuned_run(float *c, const float *a, const float *b, int m, int n, int k) {
  const int threads = BM / WM * (BN / WN) * 32, tiles = 2 * BK * (BM + 4 + BN) * (int)sizeof(float);
  bool chunks = tiles + BM * BN * (int)sizeof(float) <= matmul_tuned_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  int shared = chunks ? tiles + BM * BN * (int)sizeof(float) : tiles;
  MatmulPlan plan = matmul_tuned_plan(m, n, k, BM, BN, BK, RESIDENT);
  float *parts = plan.joined ? matmul_tuned_workspace((size_t)plan.blocks * 2 * BM * BN * sizeof *parts) : NULL;
  CUDA_CHECK(cudaFuncSetAttribute(matmul_tuned_kernel<BM, BN, BK, WM, WN, TM, TN, RESIDENT, ALIGNED>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  matmul_tuned_kernel<BM, BN, BK, WM, WN, TM, TN, RESIDENT, ALIGNED>
      <<<plan.blocks, threads, shared>>>(c, parts, a, b, m, n, k, plan.whole, chunks ? MATMUL_CHUNK / BK : INT_MAX);
  CUDA_CHECK_LAUNCH();
  if (!plan.joined) return;
  dim3 grid(plan.streamed_tiles, (BM * BN / 4 + 1023) / 1024); /* four float4 a thread */
  matmul_tuned_join_kernel<BM, BN, BK, ALIGNED><<<grid, 256>>>(c, parts, m, n, k, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT>
static inline void matmul_tuned_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_tuned_run<BM, BN, BK, WM, WN, TM, TN, RESIDENT, true>(c, a, b, m, n, k);
  else
    matmul_tuned_run<BM, BN, BK, WM, WN, TM, TN, RESIDENT, false>(c, a, b, m, n, k);
}

typedef void MatmulLauncher(float *c, const float *a, const float *b, int m, int n, int k);

/* What a sweep over tile sizes tries. */
static const struct MatmulConfiguration {
  const char *name;
  MatmulLauncher *launch;
} matmul_tuned_configurations[] = {
    {"128x256x8, 16x8", matmul_tuned_launch<128, 256, 8, 64, 64, 16, 8, 1>},
    {"256x128x8, 16x8", matmul_tuned_launch<256, 128, 8, 64, 64, 16, 8, 1>},
    {"128x128x8, 16x8", matmul_tuned_launch<128, 128, 8, 64, 64, 16, 8, 2>},
    {"64x128x8, 16x8", matmul_tuned_launch<64, 128, 8, 64, 64, 16, 8, 4>},
    {"64x64x8, 8x8", matmul_tuned_launch<64, 64, 8, 32, 64, 8, 8, 4>},
    {"32x32x8, 8x4", matmul_tuned_launch<32, 32, 8, 32, 32, 8, 4, 16>},
};

/* Large tiles need few loads for a multiplication, small ones give every multiprocessor work where C is small. */
static inline void matmul_tuned(float *c, const float *a, const float *b, int m, int n, int k) {
  long long elements = (long long)m * n;
  if (elements < 400 * 400)
    matmul_tuned_launch<32, 32, 8, 32, 32, 8, 4, 16>(c, a, b, m, n, k);
  else if (elements < 1000 * 1000)
    matmul_tuned_launch<64, 64, 8, 32, 64, 8, 8, 4>(c, a, b, m, n, k);
  else
    matmul_tuned_launch<128, 128, 8, 64, 64, 16, 8, 2>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_CUH */

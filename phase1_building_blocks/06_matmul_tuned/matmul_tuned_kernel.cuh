/* matmul_tuned_kernel.cuh - the kernel of matmul_tuned.cuh for any tile size, and its parts, of which other products
 * are made, too. C (M,N) = A (M,K) B (K,N), row-major, float32 throughout, sizes at least 1.
 *
 * matmul_tuned_kernel combines seven ideas. Each is one function or a pair of them:
 *
 *   register tile         a thread computes 16 x 8 elements of C: it reads 24 floats of shared memory for 128 products
 *   software pipelining   matmul_tuned_step: during the products of one step, the tiles of the next step come from
 *                         global memory and the operands of the next product from shared memory, both to registers.
 *                         With two pairs of tiles (double buffering) one barrier per step is enough
 *   register banks        matmul_outer_snake and matmul_swap_pairs: the order of the products, and of B's columns
 *   tile order            matmul_tuned_place: blocks that run at the same time share rows of A and columns of B in L2
 *   stream-K              matmul_stream_k_*: every block gets the same number of steps, if need be part of a tile;
 *                         matmul_tuned_join_kernel adds up the parts
 *   chunked sums          matmul_tuned_add_chunk: smaller rounding errors (matmul_chunk.cuh)
 *   smaller tiles         matmul_tuned() of matmul_tuned.cuh: where C is small, so that every multiprocessor gets one
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_KERNEL_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_KERNEL_CUH

#include <limits.h>

#include "phase1_building_blocks/06_matmul_tuned/matmul_vectorised.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tile sizes and the place of a thread */

/* A block of `threads` threads computes a bm x bn tile of C in steps of bk along K, a warp wm x wn elements of it, a
 * thread tm x tn elements: 4 x 4 pieces, row_step and col_step apart. One stage of shared memory holds a pair of tiles:
 *
 *     a_tile[bk][pitch]   A's tile, transposed; a row is 4 floats longer than bm, which avoids bank conflicts
 *     b_tile[bk][bn]      B's tile
 */
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN>
struct MatmulTunedShape {
  static const int bm = BM, bn = BN, bk = BK, wm = WM, wn = WN, tm = TM, tn = TN;
  static const int threads = BM / WM * (BN / WN) * 32;
  static const int across = WN / TN, down = WM / TM; /* lanes of a warp along N, along M */
  static const int row_step = down * 4, col_step = across * 4;
  static const int pitch = BM + 4, stage = BK * (pitch + BN); /* in floats */

  /* How the threads share a tile: float4 per thread, and rows from one of them to the next. */
  static const int a_quads = BM * BK / 4 / threads, b_quads = BN * BK / 4 / threads;
  static const int a_down = threads / (BK / 4), b_down = threads / (BN / 4);
  static_assert(down * across == 32 && across >= 4, "each lane of a warp has one patch of the warp's tile");
  static_assert(threads % (BK / 4) == 0 && threads % (BN / 4) == 0, "a thread's float4 are below each other");
  static_assert(BM * BK % (4 * threads) == 0 && BN * BK % (4 * threads) == 0, "the threads share a tile evenly");
};

/* Row and column, in the block's tile, of the first 4 x 4 piece of this thread's patch. Eight neighbouring lanes are
 * 2 x 4 patches, so that together they read 2 float4 of A's tile and 4 of B's; equal addresses are read once. */
template <typename Shape>
static __device__ __forceinline__ void matmul_tuned_patch(int *row, int *col) {
  const int across = Shape::across, warps_across = Shape::bn / Shape::wn;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  *row = warp / warps_across * Shape::wm + (lane / (2 * across) * 2 + lane % 2) * 4;
  *col = warp % warps_across * Shape::wn + lane / 2 % across * 4;
}

/* Tile order. Tiles of C are numbered down a band of MATMUL_BAND tile rows before going to the next column: the blocks
 * that run at the same time then need few rows of A and few columns of B, which stay in the L2 cache. */
enum { MATMUL_BAND = 8 };

static __device__ __forceinline__ void matmul_tuned_place(int tile, int tile_rows, int tile_cols, int *tile_row,
                                                          int *tile_col) {
  int band = tile / (MATMUL_BAND * tile_cols), within = tile % (MATMUL_BAND * tile_cols);
  int height = tile_rows - band * MATMUL_BAND < MATMUL_BAND ? tile_rows - band * MATMUL_BAND : MATMUL_BAND;
  *tile_row = band * MATMUL_BAND + within % height;
  *tile_col = within / height;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Stream-K (Osama et al., 2023). There are as many blocks as the GPU runs at a time. If every block computed whole
 * tiles, most blocks would be idle at the end, while a few compute one tile more. So only the first `whole` tiles are
 * computed as a whole. The steps of all other tiles, one after the other, are numbered as units, and each block gets an
 * equal run of units. A run may begin and end in the middle of a tile. */

typedef struct MatmulStreamK {
  int tile, whole;           /* the next whole tile of this block; tiles before `whole` are not divided */
  int steps;                 /* of a tile */
  long long unit, last_unit; /* the units of this block that remain: unit ... last_unit - 1 */
} MatmulStreamK;

static __device__ __forceinline__ MatmulStreamK matmul_stream_k_begin(int tiles, int steps, int whole) {
  long long streamed = (long long)(tiles - whole) * steps;
  MatmulStreamK work = {(int)blockIdx.x, whole, steps, streamed * blockIdx.x / gridDim.x,
                        streamed * (blockIdx.x + 1) / gridDim.x};
  return work;
}

/* The next piece of work: steps begin ... end - 1 of a tile. false: there is none left. */
static __device__ __forceinline__ bool matmul_stream_k_next(MatmulStreamK *work, int *tile, int *begin, int *end) {
  bool is_whole = work->tile < work->whole;
  if (!is_whole && work->unit >= work->last_unit) return false;
  *begin = 0;
  *end = work->steps;
  *tile = work->tile;
  if (is_whole) {
    work->tile += gridDim.x;
  } else {
    *tile = work->whole + (int)(work->unit / work->steps);
    *begin = (int)(work->unit % work->steps);
    if (work->last_unit - work->unit < work->steps - *begin) *end = *begin + (int)(work->last_unit - work->unit);
    work->unit += *end - *begin;
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Global memory to registers, registers to shared memory */

/* What a thread loads of a pair of tiles: a_quads float4 of A, b_quads float4 of B. The loads of the next step begin
 * early, so their results wait in registers until the tiles in shared memory are free. */
template <typename Shape>
struct MatmulTunedLoads {
  const float *a_from[Shape::a_quads], *b_from[Shape::b_quads]; /* where the next step begins */
  float4 a[Shape::a_quads], b[Shape::b_quads];
  int b_last; /* how many columns of B there are after the first of this thread's four; negative: none */
};

/* from[0] ... from[last], then zeros. ALIGNED: all four or none. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 matmul_tuned_four(const float *from, int last) {
  if (ALIGNED) return last >= 0 ? *(const float4 *)from : make_float4(0, 0, 0, 0);
  return make_float4(last >= 0 ? from[0] : 0, last >= 1 ? from[1] : 0, last >= 2 ? from[2] : 0,
                     last >= 3 ? from[3] : 0);
}

/* Begins to load the tiles of step `step`: BM rows of A from row0 on, BN columns of B from col0 on.
 *
 * If K is not a multiple of BK, the first step is the shorter one, so that the later ones need no bounds. Rows beyond
 * the end of A repeat its last row, and columns beyond the end of B hold anything: they only contribute to sums that
 * are not written. */
template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_tuned_load_first(MatmulTunedLoads<Shape> &loads, const float *a,
                                                               const float *b, int row0, int col0, int step, int m,
                                                               int n, int k) {
  const int bk = Shape::bk, bn = Shape::bn;
  int a_row = threadIdx.x / (bk / 4), a_col = threadIdx.x % (bk / 4) * 4; /* this thread's first float4 of A's tile */
  int b_row = threadIdx.x / (bn / 4), b_col = threadIdx.x % (bn / 4) * 4; /* and of B's */
  int first_depth = k - ((k + bk - 1) / bk - 1) * bk;
  int k0 = step == 0 ? 0 : first_depth + (step - 1) * bk, depth = step == 0 ? first_depth : bk;
  int b_at = ALIGNED ? min(col0 + b_col, n - 4) : col0 + b_col;
  loads.b_last = ALIGNED ? 3 : n - 1 - b_at;
#pragma unroll
  for (int q = 0; q < Shape::a_quads; q++) {
    loads.a_from[q] = a + (size_t)min(row0 + a_row + q * Shape::a_down, m - 1) * k + k0 + a_col;
    loads.a[q] = matmul_tuned_four<ALIGNED>(loads.a_from[q], depth - 1 - a_col);
    loads.a_from[q] += depth;
  }
#pragma unroll
  for (int q = 0; q < Shape::b_quads; q++) {
    loads.b_from[q] = b + (size_t)(k0 + b_row + q * Shape::b_down) * n + b_at;
    loads.b[q] = matmul_tuned_four<ALIGNED>(loads.b_from[q], b_row + q * Shape::b_down < depth ? loads.b_last : -1);
    loads.b_from[q] += (size_t)depth * n;
  }
}

/* The same for the step after that: BK columns further in A, BK rows further in B. */
template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_tuned_load_next(MatmulTunedLoads<Shape> &loads, int n) {
#pragma unroll
  for (int q = 0; q < Shape::a_quads; q++) {
    loads.a[q] = matmul_tuned_four<ALIGNED>(loads.a_from[q], 3);
    loads.a_from[q] += Shape::bk;
  }
#pragma unroll
  for (int q = 0; q < Shape::b_quads; q++) {
    loads.b[q] = matmul_tuned_four<ALIGNED>(loads.b_from[q], loads.b_last);
    loads.b_from[q] += (size_t)Shape::bk * n;
  }
}

/* Register banks. A multiprocessor starts 4 x 32 multiply-adds per cycle if it can read their operands. NVIDIA does not
 * document how registers are read; what is measured fits two banks, the even and the odd register numbers, which
 * deliver one register per cycle each. A multiply-add has three operands. One of them needs no read if the instruction
 * before had it, too (operand reuse): matmul_outer_snake() goes through the patch in boustrophedon order, so that every
 * product keeps the row or the column of the one before. The other two operands should come from different banks. The
 * sums lie in registers as in memory, in fours, because they are stored as float4. So B's tile has the columns of each
 * pair exchanged, and sum[r][s] is in the other bank than right[s].
 * On an H200 both together took an early form of this kernel from 49.2 to 51.2 TFLOP/s (N = 4096). */
static __device__ __forceinline__ float4 matmul_swap_pairs(float4 v) { return make_float4(v.y, v.x, v.w, v.z); }

/* The loaded floats to the pair of tiles at `pair` in shared memory: A's transposed, B's with the columns of each pair
 * exchanged. This repeats matmul_put_transposed() and matmul_put(), since the compiler finds shorter address arithmetic
 * for pointers that advance. */
template <typename Shape>
static __device__ __forceinline__ void matmul_tuned_put(float *pair, const MatmulTunedLoads<Shape> &loads) {
  const int bk = Shape::bk, bn = Shape::bn, pitch = Shape::pitch;
  float *a_to = pair + threadIdx.x % (bk / 4) * 4 * pitch + threadIdx.x / (bk / 4);
  float *b_to = pair + bk * pitch + threadIdx.x / (bn / 4) * bn + threadIdx.x % (bn / 4) * 4;
#pragma unroll
  for (int q = 0; q < Shape::a_quads; q++, a_to += Shape::a_down) {
    a_to[0] = loads.a[q].x;
    a_to[pitch] = loads.a[q].y;
    a_to[2 * pitch] = loads.a[q].z;
    a_to[3 * pitch] = loads.a[q].w;
  }
#pragma unroll
  for (int q = 0; q < Shape::b_quads; q++, b_to += Shape::b_down * bn) *(float4 *)b_to = matmul_swap_pairs(loads.b[q]);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Shared memory to registers, and the products */

/* The operands of product i (column i of A's tile, row i of B's) of the thread whose patch begins at (row, col). */
template <typename Shape>
static __device__ __forceinline__ void matmul_tuned_operands(float (&left)[Shape::tm], float (&right)[Shape::tn],
                                                             const float *pair, int i, int row, int col) {
  matmul_fragment<Shape::col_step>(right, pair + Shape::bk * Shape::pitch + i * Shape::bn + col);
#pragma unroll
  for (int s = 0; s < Shape::tn; s += 2) { /* undo matmul_swap_pairs() */
    float first = right[s];
    right[s] = right[s + 1];
    right[s + 1] = first;
  }
  matmul_fragment<Shape::row_step>(left, pair + i * Shape::pitch + row);
}

/* sum (ROWS,COLS) += left right^T, row 0 from right to left, row 1 from left to right, and so on. */
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

/* A barrier of the threads that share a pair of tiles: a block or, in matmul_sliced.cuh, a warp. */
template <typename Shape>
static __device__ __forceinline__ void matmul_tuned_barrier() {
  if (Shape::threads == 32)
    __syncwarp();
  else
    __syncthreads();
}

/* Software pipelining: the BK products of the pair of tiles at `now`, and meanwhile all that the next step needs.
 * Product i uses the operands that were read during product i - 1. The loads of the next pair of tiles from global
 * memory begin with product 1; at product BK - 2 they have arrived and are stored to `next`, which nobody reads. The
 * barrier comes before the last product, whose operands are in registers already. */
template <typename Shape, bool ALIGNED>
static __device__ __forceinline__ void matmul_tuned_step(float (&sum)[Shape::tm][Shape::tn],
                                                         float (&left)[2][Shape::tm], float (&right)[2][Shape::tn],
                                                         MatmulTunedLoads<Shape> &loads, const float *now, float *next,
                                                         int row, int col, int n) {
  const int bk = Shape::bk;
#pragma unroll
  for (int i = 0; i < bk; i++) {
    if (i == 1) matmul_tuned_load_next<Shape, ALIGNED>(loads, n);
    if (i == bk - 2) matmul_tuned_put<Shape>(next, loads);
    if (i + 1 < bk) {
      matmul_tuned_operands<Shape>(left[(i + 1) % 2], right[(i + 1) % 2], now, i + 1, row, col);
    } else {
      matmul_tuned_barrier<Shape>();
      matmul_tuned_operands<Shape>(left[0], right[0], next, 0, row, col);
    }
    matmul_outer_snake(sum, left[i % 2], right[i % 2]);
  }
}

/* The last step of a tile: nothing comes after it. The operands of product 0 are in left[0] and right[0]. */
template <typename Shape>
static __device__ __forceinline__ void matmul_tuned_last_step(float (&sum)[Shape::tm][Shape::tn],
                                                              float (&left)[2][Shape::tm], float (&right)[2][Shape::tn],
                                                              const float *now, int row, int col) {
#pragma unroll
  for (int i = 0; i < Shape::bk; i++) {
    if (i > 0) matmul_tuned_operands<Shape>(left[i % 2], right[i % 2], now, i, row, col);
    matmul_outer_snake(sum, left[i % 2], right[i % 2]);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Chunked sums: every MATMUL_CHUNK products the sums are added to totals in shared memory (matmul_chunk.cuh). At
 * N = 4096 on an H200 this takes 2.5 % of the time; totals in C, with chunks of 512, took 12 %, because nothing hides
 * their latency. */

/* totals += sum, or = if not `add`; then sum = 0. Each thread has its own totals. */
template <int THREADS, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_tuned_add_chunk(float4 *totals, float (&sum)[ROWS][COLS], bool add) {
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

/* sum += totals: the chunks before the last one. */
template <int THREADS, int ROWS, int COLS>
static __device__ __forceinline__ void matmul_tuned_add_totals(float (&sum)[ROWS][COLS], const float4 *totals) {
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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Each block takes pieces of work, a tile or part of the steps of a tile, until its share is done. A whole tile is
 * written to C. A block that computes only part of a tile's steps writes its sums to `parts`, BM x BN floats each: to
 * part 2 * block if another block computes the tile's first steps, else to part 2 * block + 1. */
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT, bool ALIGNED>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, RESIDENT)
    matmul_tuned_kernel(float *c, float *parts, const float *a, const float *b, int m, int n, int k, int whole,
                        int chunk_steps) {
  typedef MatmulTunedShape<BM, BN, BK, WM, WN, TM, TN> Shape;
  const int threads = Shape::threads, row_step = Shape::row_step, col_step = Shape::col_step, stage = Shape::stage;
  extern __shared__ __align__(16) float matmul_tuned_tiles[]; /* two pairs of tiles, `stage` floats each; totals */
  float *tiles = matmul_tuned_tiles;
  float4 *totals = (float4 *)(tiles + 2 * stage);
  int row, col;
  matmul_tuned_patch<Shape>(&row, &col);

  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  MatmulStreamK work = matmul_stream_k_begin(tile_rows * tile_cols, steps, whole);
  int begin, end, tile, tile_row, tile_col;
  while (matmul_stream_k_next(&work, &tile, &begin, &end)) {
    matmul_tuned_place(tile, tile_rows, tile_cols, &tile_row, &tile_col);
    int row0 = tile_row * BM, col0 = tile_col * BN;

    float sum[TM][TN] = {}, left[2][TM], right[2][TN]; /* operands of this product and of the next one */
    MatmulTunedLoads<Shape> loads;
    int now = 0; /* the pair of tiles that is multiplied is at tiles + now, the next one at tiles + (now ^ stage) */
    matmul_tuned_load_first<Shape, ALIGNED>(loads, a, b, row0, col0, begin, m, n, k);
    matmul_tuned_put<Shape>(tiles + now, loads);
    __syncthreads();
    matmul_tuned_operands<Shape>(left[0], right[0], tiles + now, 0, row, col);
    for (int step = begin; step + 1 < end;) {
      int stop = end - 1 - step < chunk_steps ? end - 1 : step + chunk_steps;
#pragma unroll 1
      for (; step < stop; step++, now ^= stage)
        matmul_tuned_step<Shape, ALIGNED>(sum, left, right, loads, tiles + now, tiles + (now ^ stage), row, col, n);
      if (step + 1 < end) matmul_tuned_add_chunk<threads>(totals, sum, stop - begin > chunk_steps);
    }
    matmul_tuned_last_step<Shape>(sum, left, right, tiles + now, row, col);
    __syncthreads(); /* the first tiles of the next piece of work overwrite shared memory that others may be reading */

    if (end - 1 - begin > chunk_steps) matmul_tuned_add_totals<threads>(sum, totals);
    if (end - begin == steps)
      matmul_write<row_step, col_step, ALIGNED>(c, sum, row0 + row, col0 + col, m, n, false);
    else
      matmul_write<row_step, col_step, true>(parts + (size_t)(2 * blockIdx.x + (begin == 0)) * BM * BN, sum, row, col,
                                             BM, BN, false);
  }
}

/* Second pass of stream-K: C's tile whole + blockIdx.x = the sum of its parts, in the order of its steps, so that the
 * result is the same in every run. Nothing is to be done if one block has computed the whole tile. `blocks` is the grid
 * of matmul_tuned_kernel; gridDim.y blocks share a tile here. */
template <int BM, int BN, int BK, bool ALIGNED>
static __global__ void matmul_tuned_join_kernel(float *c, const float *parts, int m, int n, int k, int whole,
                                                int blocks) {
  int tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN, steps = (k + BK - 1) / BK;
  long long streamed = (long long)(tile_rows * tile_cols - whole) * steps, begin = (long long)blockIdx.x * steps;
  /* Block j has computed the units from floor(streamed * j / blocks) to the one before floor(streamed * (j + 1) /
   * blocks). So unit u belongs to the last block j for which streamed * j < (u + 1) * blocks. */
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

/* `bytes` of device memory for the parts of tiles. It is kept from call to call, because an allocation takes longer
 * than a small product. So two products must not run at the same time in two streams: a caller that wants that passes
 * memory of its own, to matmul_tuned_launch_in(). */
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

/* How stream-K divides the work among blocks. */
typedef struct MatmulPlan {
  int blocks, whole;  /* the grid; tiles that are computed as a whole */
  int streamed_tiles; /* tiles whose steps are divided */
  bool joined;        /* some tile is in parts, which the second kernel adds up */
} MatmulPlan;

/* Tiles are computed as a whole as long as every block has one. Dividing the steps of the remaining tiles evenly saves
 * time; writing, reading and adding up the parts costs as much as about 16 steps. A part has at least 4 steps, and more
 * if a tile has many: with s steps per part, a tile takes the time of s steps and of adding up steps / s parts. */
static inline MatmulPlan matmul_tuned_plan(int m, int n, int k, int bm, int bn, int bk, int resident) {
  const int join_steps = 16;
  long long tiles = (long long)((m + bm - 1) / bm) * ((n + bn - 1) / bn), steps = (k + bk - 1) / bk;
  long long blocks = matmul_tuned_attribute(cudaDevAttrMultiProcessorCount) * resident, rest = tiles % blocks;
  if (rest * steps < blocks * join_steps && tiles > blocks) rest += blocks; /* longer parts, and fewer per tile */
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

/* Floats of a workspace that serves every product of this configuration, whatever its sizes: two parts per block. */
static inline size_t matmul_tuned_floats(int bm, int bn, int resident) {
  return (size_t)matmul_tuned_attribute(cudaDevAttrMultiProcessorCount) * resident * 2 * bm * bn;
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT, bool ALIGNED>
static inline void matmul_tuned_run(float *c, const float *a, const float *b, int m, int n, int k, float *parts) {
  const int threads = BM / WM * (BN / WN) * 32, tiles = 2 * BK * (BM + 4 + BN) * (int)sizeof(float);
  bool chunks = tiles + BM * BN * (int)sizeof(float) <= matmul_tuned_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  int shared = chunks ? tiles + BM * BN * (int)sizeof(float) : tiles;
  MatmulPlan plan = matmul_tuned_plan(m, n, k, BM, BN, BK, RESIDENT);
  if (plan.joined && parts == NULL) parts = matmul_tuned_workspace((size_t)plan.blocks * 2 * BM * BN * sizeof *parts);
  CUDA_CHECK(cudaFuncSetAttribute(matmul_tuned_kernel<BM, BN, BK, WM, WN, TM, TN, RESIDENT, ALIGNED>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  matmul_tuned_kernel<BM, BN, BK, WM, WN, TM, TN, RESIDENT, ALIGNED>
      <<<plan.blocks, threads, shared>>>(c, parts, a, b, m, n, k, plan.whole, chunks ? MATMUL_CHUNK / BK : INT_MAX);
  CUDA_CHECK_LAUNCH();
  if (!plan.joined) return;
  dim3 grid(plan.streamed_tiles, (BM * BN / 4 + 1023) / 1024); /* four float4 per thread */
  matmul_tuned_join_kernel<BM, BN, BK, ALIGNED><<<grid, 256>>>(c, parts, m, n, k, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

/* With the parts of tiles in `parts`, matmul_tuned_floats() floats at a multiple of 16 bytes; NULL: in memory that is
 * allocated in the first call. With memory of the caller's nothing is allocated. */
template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT>
static inline void matmul_tuned_launch_in(float *c, const float *a, const float *b, int m, int n, int k, float *parts) {
  if (quads_fit(a, k) && quads_fit(b, n) && quads_fit(c, n))
    matmul_tuned_run<BM, BN, BK, WM, WN, TM, TN, RESIDENT, true>(c, a, b, m, n, k, parts);
  else
    matmul_tuned_run<BM, BN, BK, WM, WN, TM, TN, RESIDENT, false>(c, a, b, m, n, k, parts);
}

template <int BM, int BN, int BK, int WM, int WN, int TM, int TN, int RESIDENT>
static inline void matmul_tuned_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_tuned_launch_in<BM, BN, BK, WM, WN, TM, TN, RESIDENT>(c, a, b, m, n, k, NULL);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TUNED_KERNEL_CUH */

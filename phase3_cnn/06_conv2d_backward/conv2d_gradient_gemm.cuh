/* conv2d_gradient_gemm.cuh - what the two implicit GEMMs of conv2d_backward.cuh share: the tiles, their pipeline of
 * asynchronous copies, the products, and how stream-K divides the work. The products and stream-K are those of
 * matmul_tuned_kernel.cuh.
 *
 * A gradient is a matrix product sum (M,N) += a (M,K) b (K,N) whose operands do not exist as matrices. Each of the two
 * has a struct of loads: where this thread copies from in the next step. Three functions with a version for each:
 *
 *   conv2d_gradient_copy      starts copies of one step, those with number `part`, to a pair of tiles
 *   conv2d_gradient_advance   goes to the next step
 *   conv2d_gradient_store     writes one sum to its place in the gradient
 */
#ifndef PHASE3_CNN_CONV2D_GRADIENT_GEMM_CUH
#define PHASE3_CNN_CONV2D_GRADIENT_GEMM_CUH

#include <cuda_pipeline.h>

#include "phase1_building_blocks/06_matmul_tuned/matmul_tuned_kernel.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Tiles */

/* As MatmulTunedShape: a block computes bm x bn sums in steps of bk, a warp wm x wn of them, a thread tm x tn. A stage
 * of shared memory is a pair of tiles, a_tile[bk][a_pitch] and b_tile[bk][b_pitch]; `stages` pairs are in flight. */
template <int BM, int BN, int WM, int WN, int TM, int TN, int STAGES, int RESIDENT>
struct Conv2dProductTile {
  static const int bm = BM, bn = BN, bk = 8, wm = WM, wn = WN, tm = TM, tn = TN, stages = STAGES, resident = RESIDENT;
  static const int threads = BM / WM * (BN / WN) * 32;
  static const int a_floats = BM * bk / threads, b_floats = BN * bk / threads; /* of a step, copied by a thread */
  static const int across = WN / TN, down = WM / TM;
  static const int row_step = down * 4, col_step = across * 4;
  static const int a_pitch = BM + 4, b_pitch = BN + 4, stage = bk * (a_pitch + b_pitch); /* in floats */
  static_assert(down * across == 32 && across >= 4, "each lane of a warp has one patch of the warp's tile");
};

/* The operands of product i of the pair of tiles at `pair`. The columns of each pair are exchanged in b_tile, which
 * this undoes: matmul_tuned_kernel.cuh says why. */
template <typename Tile>
static __device__ __forceinline__ void conv2d_gradient_operands(float (&left)[Tile::tm], float (&right)[Tile::tn],
                                                                const float *pair, int i, int row, int col) {
  matmul_fragment<Tile::col_step>(right, pair + Tile::bk * Tile::a_pitch + i * Tile::b_pitch + col);
#pragma unroll
  for (int s = 0; s < Tile::tn; s += 2) {
    float first = right[s];
    right[s] = right[s + 1];
    right[s + 1] = first;
  }
  matmul_fragment<Tile::row_step>(left, pair + i * Tile::a_pitch + row);
}

/* One float from global to shared memory, or 0 if it is not `inside`: then `from` is not read. */
static __device__ __forceinline__ void conv2d_copy_one(float *to, const float *from, bool inside) {
#if defined(SIMT_REWRITTEN) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800)
  __pipeline_memcpy_async(to, from, 4, inside ? 0 : 4);
#else /* with a number of bytes that is not a constant, __pipeline_memcpy_async() branches */
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
               "r"(inside ? 4 : 0));
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The pipeline */

/* One step: its products, and meanwhile, if MORE, the copies of the step that comes stages - 1 later, to the pair of
 * tiles that the step before has left. The barrier comes before the last product, whose operands are in registers. */
template <typename Tile, bool MORE, typename Loads>
static __device__ __forceinline__ void conv2d_gradient_step(float (&sum)[Tile::tm][Tile::tn],
                                                            float (&left)[2][Tile::tm], float (&right)[2][Tile::tn],
                                                            Loads &loads, const float *now, const float *next,
                                                            float *free, int row, int col, bool last) {
  const int bk = Tile::bk;
#pragma unroll
  for (int i = 0; i < bk; i++) {
    if (MORE) conv2d_gradient_copy(Tile(), loads, free, i);
    if (i + 1 < bk) {
      conv2d_gradient_operands<Tile>(left[(i + 1) % 2], right[(i + 1) % 2], now, i + 1, row, col);
    } else {
      if (MORE) conv2d_gradient_advance(Tile(), loads);
      __pipeline_commit(); /* an empty one counts, too */
      __pipeline_wait_prior(Tile::stages - 2);
      __syncthreads();
      if (MORE || !last) conv2d_gradient_operands<Tile>(left[0], right[0], next, 0, row, col);
    }
    matmul_outer_snake(sum, left[i % 2], right[i % 2]);
  }
}

/* `steps` steps, at least one, from where `loads` stands. Another piece of work may follow. */
template <typename Tile, typename Loads>
static __device__ __forceinline__ void conv2d_gradient_steps(float (&sum)[Tile::tm][Tile::tn], Loads &loads,
                                                             float *tiles, int row, int col, int steps) {
  const int stages = Tile::stages, stage = Tile::stage;
  float left[2][Tile::tm], right[2][Tile::tn]; /* operands of this product and of the next one */
#pragma unroll
  for (int s = 0; s < stages - 1; s++) {
    if (s < steps) {
#pragma unroll
      for (int i = 0; i < Tile::bk; i++) conv2d_gradient_copy(Tile(), loads, tiles + s * stage, i);
      conv2d_gradient_advance(Tile(), loads);
    }
    __pipeline_commit();
  }
  __pipeline_wait_prior(stages - 2);
  __syncthreads();
  conv2d_gradient_operands<Tile>(left[0], right[0], tiles, 0, row, col);

  float *now = tiles, *end = tiles + stages * stage, *free = tiles + (stages - 1) * stage;
  int step = 0;
#pragma unroll 1
  for (; step + stages - 1 < steps; step++) {
    float *next = now + stage < end ? now + stage : tiles;
    conv2d_gradient_step<Tile, true>(sum, left, right, loads, now, next, free, row, col, false);
    free = now;
    now = next;
  }
#pragma unroll 1
  for (; step < steps; step++) {
    float *next = now + stage < end ? now + stage : tiles;
    conv2d_gradient_step<Tile, false>(sum, left, right, loads, now, next, free, row, col, step + 1 == steps);
    free = now;
    now = next;
  }
  __pipeline_wait_prior(0);
  __syncthreads(); /* the next piece of work overwrites tiles that others may be reading */
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The work of a block: stream-K (matmul_tuned_kernel.cuh) */

/* The product, cut into tiles: tile_rows x tile_cols of each group, neighbours in a column next to each other. Element
 * (row, col) of the result is at conv2d_gradient_place(col)[row * row_stride]. */
typedef struct Conv2dProduct {
  int groups, rows, cols, steps; /* of each group: M, N, and K / bk, which is at least 1 */
  int tile_rows, tile_cols;
  size_t row_stride;
} Conv2dProduct;

typedef struct Conv2dProductPlace {
  int group, row0, col0; /* its first row and column in the group's product */
} Conv2dProductPlace;

template <typename Tile>
static __device__ __forceinline__ Conv2dProductPlace conv2d_gradient_tile(const Conv2dProduct &product, int tile) {
  int tile_row = tile % product.tile_rows, rest = tile / product.tile_rows;
  Conv2dProductPlace place = {rest / product.tile_cols, tile_row * Tile::bm, rest % product.tile_cols * Tile::bn};
  return place;
}

/* Four neighbours of a row to their places in the gradient. */
template <typename Problem>
static __device__ __forceinline__ void conv2d_gradient_store(const Problem &problem, int group, int col, int row,
                                                             const float (&sum)[4]) {
  float *to = conv2d_gradient_place(problem, group, col);
  if (conv2d_gradient_aligned(problem) && to != NULL) {
    *(float4 *)&to[row * problem.product.row_stride] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    return;
  }
  for (int i = 0; i < 4; i++) {
    to = conv2d_gradient_place(problem, group, col + i);
    if (to != NULL) to[row * problem.product.row_stride] = sum[i];
  }
}

/* Writes the sums of a piece of work: to `part` (bm,bn), or to the gradient, if `part` is NULL. add: with atomicAdd. */
template <typename Tile, typename Problem>
static __device__ __forceinline__ void conv2d_gradient_write(const Problem &problem, float (&sum)[Tile::tm][Tile::tn],
                                                             float *part, bool add, Conv2dProductPlace tile, int row,
                                                             int col) {
  const Conv2dProduct &product = problem.product;
#pragma unroll
  for (int s = 0; s < Tile::tn; s += 4) {
    int at_col = col + s / 4 * Tile::col_step;
    float *to[4]; /* row 0 of the four columns */
    if (part == NULL)
      for (int i = 0; i < 4; i++) to[i] = conv2d_gradient_place(problem, tile.group, tile.col0 + at_col + i);
#pragma unroll
    for (int r = 0; r < Tile::tm; r++) {
      int in_tile = row + r / 4 * Tile::row_step + r % 4, at_row = tile.row0 + in_tile;
      float4 v = make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]);
      if (part != NULL) {
        *(float4 *)&part[in_tile * Tile::bn + at_col] = v;
      } else if (at_row < product.rows && !add && conv2d_gradient_aligned(problem)) {
        if (to[0] != NULL) *(float4 *)&to[0][at_row * product.row_stride] = v;
      } else if (at_row < product.rows) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          if (to[i] == NULL) continue;
          if (add)
            atomicAdd(&to[i][at_row * product.row_stride], sum[r][s + i]);
          else
            to[i][at_row * product.row_stride] = sum[r][s + i];
        }
      }
    }
  }
}

/* The blocks' common part of both gradients. As matmul_tuned_kernel: a block writes part 2 * block + 1 if it has the
 * tile's first steps, else part 2 * block. `parts` is NULL: it adds them to the gradient with atomicAdd. */
template <typename Tile, typename Loads, typename Problem>
static __device__ __forceinline__ void conv2d_gradient_run(const Problem &problem, float *tiles, float *parts,
                                                           int whole) {
  const Conv2dProduct &product = problem.product;
  int row, col, tile, begin, end;
  matmul_tuned_patch<Tile>(&row, &col);
  MatmulStreamK work =
      matmul_stream_k_begin(product.groups * product.tile_rows * product.tile_cols, product.steps, whole);
#pragma unroll 1
  while (matmul_stream_k_next(&work, &tile, &begin, &end)) {
    Conv2dProductPlace place = conv2d_gradient_tile<Tile>(product, tile);
    Loads loads;
    conv2d_gradient_begin(Tile(), loads, problem, place, begin);
    float sum[Tile::tm][Tile::tn] = {};
    conv2d_gradient_steps<Tile>(sum, loads, tiles, row, col, end - begin);
    bool divided = end - begin < product.steps;
    float *part = parts + (size_t)(2 * blockIdx.x + (begin == 0)) * Tile::bm * Tile::bn;
    conv2d_gradient_write<Tile>(problem, sum, divided && parts != NULL ? part : NULL, divided, place, row, col);
  }
}

/* Adds up the parts of the tiles that were divided, in the order of their steps: the same result in every run. A block
 * of 256 / WAYS x WAYS threads; thread (x, y) adds every WAYS th part of four neighbouring sums of a tile. */
template <typename Tile, int WAYS, typename Problem>
static __global__ void __launch_bounds__(256)
    conv2d_gradient_join_kernel(Problem problem, const float *parts, int whole, int blocks) {
  const int across = 256 / WAYS;
  __shared__ __align__(16) float4 totals[WAYS][across];
  const Conv2dProduct &product = problem.product;
  long long streamed = ((long long)product.groups * product.tile_rows * product.tile_cols - whole) * product.steps;
  long long begin = (long long)blockIdx.x * product.steps; /* matmul_tuned_join_kernel derives who has a part */
  int first = (int)(((begin + 1) * blocks - 1) / streamed);
  int last = (int)(((begin + product.steps) * blocks - 1) / streamed);
  if (first == last) return;
  int i = (blockIdx.y * across + threadIdx.x) * 4; /* the first of four neighbours in the tile */
  float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int j = first + threadIdx.y; j <= last; j += WAYS) {
    float4 part = *(const float4 *)&parts[(size_t)(2 * j + (j == first)) * Tile::bm * Tile::bn + i];
    total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
  }
  if (WAYS > 1) {
    totals[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y > 0) return;
    for (int y = 1; y < WAYS; y++) {
      float4 other = totals[y][threadIdx.x];
      total = make_float4(total.x + other.x, total.y + other.y, total.z + other.z, total.w + other.w);
    }
  }
  Conv2dProductPlace place = conv2d_gradient_tile<Tile>(product, whole + blockIdx.x);
  int row = place.row0 + i / Tile::bn;
  if (row >= product.rows) return;
  const float sum[4] = {total.x, total.y, total.z, total.w};
  conv2d_gradient_store(problem, place.group, place.col0 + i % Tile::bn, row, sum);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers share these */

template <typename Tile>
static inline Conv2dProduct conv2d_product(int groups, int rows, int cols, int steps, size_t row_stride) {
  Conv2dProduct product = {
      groups, rows, cols, steps, (rows + Tile::bm - 1) / Tile::bm, (cols + Tile::bn - 1) / Tile::bn, row_stride};
  return product;
}

template <typename Tile>
static inline MatmulPlan conv2d_gradient_plan(const Conv2dProduct &product) {
  return matmul_tuned_plan(product.groups * product.tile_rows * product.tile_cols, 1, product.steps, 1, 1, 1,
                           Tile::resident);
}

/* Floats of the parts, of this batch or a smaller one. */
template <typename Tile>
static inline size_t conv2d_gradient_parts(const Conv2dProduct &product) {
  size_t blocks = (size_t)conv2d_multiprocessors() * Tile::resident;
  size_t useful =
      (size_t)product.groups * product.tile_rows * product.tile_cols * product.steps / 4 + 1; /* 4: matmul_tuned_plan */
  return (useful < blocks ? useful : blocks) * 2 * Tile::bm * Tile::bn;
}

/* An estimate of the time, to choose tiles by: steps of the block that has most of them, times what a step takes when
 * `resident` blocks share a multiprocessor. `speed` is that of large problems, in TFLOP/s on an H200. */
template <typename Tile>
static inline double conv2d_gradient_time(int groups, int rows, int cols, int steps, double speed) {
  const Conv2dProduct product = conv2d_product<Tile>(groups, rows, cols, steps, 0);
  const MatmulPlan plan = conv2d_gradient_plan<Tile>(product);
  const double tiles = (double)groups * product.tile_rows * product.tile_cols, join_steps = 16;
  double most = plan.joined ? tiles * steps / plan.blocks + join_steps : ceil(tiles / plan.blocks) * steps;
  double sharing = (double)plan.blocks / conv2d_multiprocessors();
  if (sharing < 0.5 * Tile::resident) sharing = 0.5 * Tile::resident; /* fewer blocks do not use all of its units */
  return most * Tile::bm * Tile::bn * sharing / speed;
}

template <typename Tile, typename Problem>
static inline void conv2d_gradient_join(const Problem &problem, const float *parts, MatmulPlan plan) {
  if (!plan.joined) return;
  if (plan.blocks >= 8 * plan.streamed_tiles) /* many parts per tile */
    conv2d_gradient_join_kernel<Tile, 8><<<dim3(plan.streamed_tiles, Tile::bm * Tile::bn / 128), dim3(32, 8)>>>(
        problem, parts, plan.whole, plan.blocks);
  else
    conv2d_gradient_join_kernel<Tile, 1><<<dim3(plan.streamed_tiles, Tile::bm * Tile::bn / 1024), dim3(256, 1)>>>(
        problem, parts, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_GRADIENT_GEMM_CUH */

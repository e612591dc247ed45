/* conv2d_implicit_gemm.cuh - convolution as fast as plain CUDA C makes it without transforms: an implicit matrix
 * product of any stride, padding, dilation and groups, with bias and ReLU in the same kernel. float32, NCHW. The
 * reference is conv2d_forward_cpu(); the parts of the kernel are in conv2d_gemm.cuh.
 *
 *     y (N,K,P,Q) = max(least, w (K,C/groups,R,S) * x (N,C,H,W) + bias (K))
 */
#ifndef PHASE3_CNN_CONV2D_IMPLICIT_GEMM_CUH
#define PHASE3_CNN_CONV2D_IMPLICIT_GEMM_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm.cuh"

/* The products of the step at `now`. Meanwhile COPY issues the copies of a later step to the stage `to`, in portions:
 * nvcc puts three instructions before each group of copies, so there are only two groups; by table, where a copy waits
 * for an entry of the table, seven. And the operands of the next product come from shared memory, those of the next
 * step's first product after the barrier (matmul_tuned_step). `next` is NULL in the last step. */
template <typename Tile, int ORDER, bool COPY>
static __device__ __forceinline__ void conv2d_gemm_step(float (&sum)[Tile::tm][Tile::tn], float (&left)[2][Tile::tm],
                                                        float (&right)[2][Tile::tn], Conv2dCopies<Tile> &copies,
                                                        const float *now, const float *next, float *to,
                                                        const Conv2dGemm &g, int row, int col) {
  const int bk = Tile::bk, portions = ORDER == CONV2D_BY_CHANNEL ? 2 : bk - 1;
#pragma unroll
  for (int i = 0; i < bk; i++) {
    if (i + 1 < bk) {
      matmul_tuned_operands<Tile>(left[(i + 1) % 2], right[(i + 1) % 2], now, i + 1, row, col);
      if (COPY && i < portions) conv2d_gemm_copy<Tile, ORDER>(copies, to, g, i, portions);
    } else if (COPY || next != NULL) {
      __pipeline_commit();                     /* of nothing, unless COPY: the number of commits is the step's */
      __pipeline_wait_prior(Tile::stages - 2); /* the next step has arrived: what this thread copied, */
      __syncthreads();                         /* and the others; the last operands of `now` are in registers */
      matmul_tuned_operands<Tile>(left[0], right[0], next, 0, row, col);
    }
    matmul_outer_snake(sum, left[i % 2], right[i % 2]);
  }
}

/* Each block takes pieces of work, a tile or part of the steps of a tile, as matmul_tuned_kernel. STAGES - 1 steps are
 * on their way to shared memory while one is multiplied: cp.async copies without registers, so that a thread can issue
 * the copies of a later step between the products of this one. */
template <int BM, int BN, int WM, int WN, int TM, int TN, int STAGES, int RESIDENT, int ORDER>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, RESIDENT)
    conv2d_implicit_gemm_kernel(float *y, float *parts, const float *x, const float *packed, const Conv2dTap *table,
                                Conv2dGemm g, Conv2dEpilogue e, int whole) {
  typedef Conv2dTile<BM, BN, WM, WN, TM, TN, STAGES> Tile;
  const int stage = Tile::stage;
  extern __shared__ __align__(16) float conv2d_gemm_stages[]; /* STAGES of them */
  float *stages = conv2d_gemm_stages;
  int row, col;
  matmul_tuned_patch<Tile>(&row, &col);

  Conv2dTiles tiles = conv2d_gemm_tiles(g, BM, BN);
  MatmulStreamK work = matmul_stream_k_begin(tiles.count, g.steps, whole);
  int begin, end, tile, group, tile_row, tile_col;
  while (matmul_stream_k_next(&work, &tile, &begin, &end)) {
    conv2d_gemm_tile(tiles, tile, &group, &tile_row, &tile_col);
    float sum[TM][TN] = {}, left[2][TM], right[2][TN]; /* operands of this product and of the next one */
    Conv2dCopies<Tile> copies = {};
    conv2d_gemm_begin<Tile>(copies, x, packed, table, g, group, tile_row * BM, tile_col * BN, begin);
    for (int i = 0; i < STAGES - 1; i++) {
      if (begin + i < end) conv2d_gemm_copy<Tile, ORDER>(copies, stages + i * stage, g, 0, 1);
      __pipeline_commit();
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    matmul_tuned_operands<Tile>(left[0], right[0], stages, 0, row, col);
    int now = 0, to = (STAGES - 1) * stage, step = begin; /* the stage that is multiplied, and the one that is filled */
#pragma unroll 1
    for (; step < end - (STAGES - 1); step++) {
      int next = now + stage == STAGES * stage ? 0 : now + stage;
      conv2d_gemm_step<Tile, ORDER, true>(sum, left, right, copies, stages + now, stages + next, stages + to, g, row,
                                          col);
      to = now;
      now = next;
    }
#pragma unroll 1
    for (; step < end; step++) {
      int next = now + stage == STAGES * stage ? 0 : now + stage;
      conv2d_gemm_step<Tile, ORDER, false>(sum, left, right, copies, stages + now,
                                           step + 1 < end ? stages + next : NULL, NULL, g, row, col);
      now = next;
    }
    __syncthreads(); /* the copies of the next piece of work overwrite stages that others may be reading */

    if (end - begin == g.steps)
      conv2d_gemm_write<Tile>(y, sum, g, e, group, tile_row * BM + row, tile_col * BN + col);
    else
      matmul_write<Tile::row_step, Tile::col_step, true>(parts + (size_t)(2 * blockIdx.x + (begin == 0)) * BM * BN, sum,
                                                         row, col, BM, BN, false);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* Parts of tiles: at most 2 * 128 * 128 floats for each of two blocks per multiprocessor, whatever the tile. */
static inline size_t conv2d_gemm_parts_floats(void) {
  return (size_t)matmul_tuned_attribute(cudaDevAttrMultiProcessorCount) * 2 * 2 * 128 * 128;
}

typedef void Conv2dGemmLauncher(float *y, const float *x, Conv2dPacked packed, float *parts, Conv2dGemm g,
                                Conv2dEpilogue e);

template <int BM, int BN, int WM, int WN, int TM, int TN, int STAGES, int RESIDENT, int ORDER>
static inline void conv2d_gemm_run(float *y, const float *x, Conv2dPacked packed, float *parts, Conv2dGemm g,
                                   Conv2dEpilogue e) {
  typedef Conv2dTile<BM, BN, WM, WN, TM, TN, STAGES> Tile;
  const int shared = STAGES * Tile::stage * (int)sizeof(float);
  static_assert(BM * BN * RESIDENT <= 2 * 128 * 128, "the workspace holds the parts");
  MatmulPlan plan = matmul_tuned_plan(conv2d_gemm_tiles(g, BM, BN).count, 1, g.steps, 1, 1, 1, RESIDENT);
  CUDA_CHECK(cudaFuncSetAttribute(conv2d_implicit_gemm_kernel<BM, BN, WM, WN, TM, TN, STAGES, RESIDENT, ORDER>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  conv2d_implicit_gemm_kernel<BM, BN, WM, WN, TM, TN, STAGES, RESIDENT, ORDER>
      <<<plan.blocks, Tile::threads, shared>>>(y, parts, x, packed.filters, packed.table, g, e, plan.whole);
  CUDA_CHECK_LAUNCH();
  if (!plan.joined) return;
  dim3 grid(plan.streamed_tiles, (BM * BN / 4 + 1023) / 1024); /* four float4 per thread */
  conv2d_gemm_join_kernel<BM, BN><<<grid, 256>>>(y, parts, g, e, plan.whole, plan.blocks);
  CUDA_CHECK_LAUNCH();
}

/* Tiles of BM filters x BN pixels. */
template <int BM, int BN, int WM, int WN, int TM, int TN, int STAGES, int RESIDENT>
static inline void conv2d_gemm_launch(float *y, const float *x, Conv2dPacked packed, float *parts, Conv2dGemm g,
                                      Conv2dEpilogue e) {
  if (g.order == CONV2D_BY_CHANNEL)
    conv2d_gemm_run<BM, BN, WM, WN, TM, TN, STAGES, RESIDENT, CONV2D_BY_CHANNEL>(y, x, packed, parts, g, e);
  else
    conv2d_gemm_run<BM, BN, WM, WN, TM, TN, STAGES, RESIDENT, CONV2D_BY_TABLE>(y, x, packed, parts, g, e);
}

/* The tile sizes that a sweep tries: filters x pixels, outputs per thread. */
static const struct Conv2dGemmConfiguration {
  const char *name;
  int height; /* filters of a tile */
  Conv2dGemmLauncher *launch;
} conv2d_gemm_configurations[] = {
    {"128x128, 16x8", 128, conv2d_gemm_launch<128, 128, 64, 64, 16, 8, 3, 2>},
    {"128x64, 16x8", 128, conv2d_gemm_launch<128, 64, 64, 64, 16, 8, 3, 4>},
    {"64x256, 16x8", 64, conv2d_gemm_launch<64, 256, 64, 64, 16, 8, 3, 2>},
    {"64x64, 8x8", 64, conv2d_gemm_launch<64, 64, 32, 64, 8, 8, 3, 8>},
    {"32x64, 8x4", 32, conv2d_gemm_launch<32, 64, 32, 32, 8, 4, 3, 8>},
    {"32x32, 8x4", 32, conv2d_gemm_launch<32, 32, 32, 32, 8, 4, 3, 16>},
    {"16x64, 4x8", 16, conv2d_gemm_launch<16, 64, 16, 64, 4, 8, 3, 16>},
};
enum {
  CONV2D_GEMM_CONFIGURATIONS = sizeof conv2d_gemm_configurations / sizeof *conv2d_gemm_configurations,
  CONV2D_GEMM_HIGHEST = 128
};

/* A large tile needs fewer loads per product. A small one computes fewer rows past the last filter, and gives
 * every multiprocessor work where there are few outputs. The bounds are from a sweep on an H200. */
static inline int conv2d_gemm_choose(Conv2dShape s) {
  int filters = s.k / s.groups;
  double outputs = (double)conv2d_y_count(s);
  if (filters <= 16) return 6;
  if (outputs < 160e3) return 5;
  if (filters <= 32 || outputs < 800e3) return 4;
  if (filters <= 64) return outputs < 2e6 ? 3 : 2;
  return outputs < 5e6 ? 1 : 0;
}

/* With one of the configurations. */
static inline void conv2d_gemm_with(int configuration, float *y, const float *x, const float *w, Conv2dShape s,
                                    Conv2dEpilogue e, float *workspace) {
  Conv2dGemm g = conv2d_gemm(y, s, conv2d_gemm_configurations[configuration].height);
  Conv2dPacked packed = conv2d_gemm_packed(g, workspace);
  conv2d_gemm_pack(packed, w, g);
  for (int n = 0; n < s.n; n += g.s.n) {
    g.s.n = s.n - n < conv2d_gemm_images(s) ? s.n - n : conv2d_gemm_images(s);
    conv2d_gemm_configurations[configuration].launch(y + (size_t)n * s.k * g.p * g.q, x + (size_t)n * s.c * s.h * s.w,
                                                     packed, workspace + packed.floats, g, e);
  }
}

/* Enough for every configuration. */
static inline size_t conv2d_implicit_gemm_workspace_floats(Conv2dShape s) {
  return conv2d_gemm_packed(conv2d_gemm(NULL, s, CONV2D_GEMM_HIGHEST), NULL).floats + conv2d_gemm_parts_floats();
}

static inline void conv2d_forward_implicit_gemm(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape s, float *workspace) {
  Conv2dEpilogue epilogue = {bias, -INFINITY};
  conv2d_gemm_with(conv2d_gemm_choose(s), y, x, w, s, epilogue, workspace);
}

/* y = relu(convolution + bias) in one kernel. */
static inline void conv2d_bias_relu_forward_implicit_gemm(float *y, const float *x, const float *w, const float *bias,
                                                          Conv2dShape s, float *workspace) {
  Conv2dEpilogue epilogue = {bias, 0.0f};
  conv2d_gemm_with(conv2d_gemm_choose(s), y, x, w, s, epilogue, workspace);
}

static const Conv2dMethod conv2d_implicit_gemm_method = {
    "implicit_gemm", NULL, conv2d_implicit_gemm_workspace_floats, conv2d_forward_implicit_gemm, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_IMPLICIT_GEMM_CUH */

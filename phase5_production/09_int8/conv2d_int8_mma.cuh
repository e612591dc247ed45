/* conv2d_int8_mma.cuh - convolution of int8 numbers (conv2d_int8.cuh) on tensor cores, with mma.sync.
 *
 * It is conv2d_nhwc_mma.cuh with another product: a row of 128 bytes holds 128 channels. ldmatrix brings 8 x 8 pairs of
 * bytes to the lanes; the same four bytes of a lane are what mma.sync.m16n8k32 expects of int8:
 *
 *     d (16,8) += a (16,32) b (32,8), int32 sums. Lane l has group l / 4, member l % 4:
 *     a   4 registers: rows group, group + 8 at columns 4 * member to + 3; then the same rows, 16 columns further
 *     b   2 registers: rows 4 * member to + 3 of column group; then 16 rows further
 *     d   4 sums: row group at columns 2 * member, + 1; then row group + 8
 *
 * Needs compute capability 8.0.
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INT8_MMA_CUH
#define PHASE5_PRODUCTION_CONV2D_INT8_MMA_CUH

#include "phase5_production/09_int8/conv2d_int8.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Products */

/* POSITIVE: a has uint8. */
template <bool POSITIVE>
static __device__ MMA_INLINE void mma_16x8x32(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef SIMT_REWRITTEN
  const int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int word = 0; word < 8; word++) { /* four factors of depth each */
    int left[2], right[2];
    for (int i = 0; i < 2; i++) {
      left[i] = (int)__shfl_sync(0xFFFFFFFF, a[i + word / 4 * 2], 4 * group + word % 4);
      right[i] = (int)__shfl_sync(0xFFFFFFFF, word / 4 ? b1 : b0, 4 * (2 * member + i) + word % 4);
    }
    for (int i = 0; i < 4; i++) d[i] = int8_dp4a<POSITIVE>(left[i / 2], right[i % 2], d[i]);
  }
#elif defined MMA_BFLOAT16
#define MMA_16X8X32(TYPE)                                      \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." TYPE            \
      ".s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
      "{%0, %1, %2, %3};"                                      \
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if (POSITIVE)
    MMA_16X8X32("u8");
  else
    MMA_16X8X32("s8");
#undef MMA_16X8X32
#endif
}

/* sum (WM,WN) += A (WM, 128 bytes) B (WN, 128 bytes)^T for the warp at (warp_row, warp_col) of the tile. */
template <bool POSITIVE, int WM, int WN>
static __device__ __forceinline__ void conv2d_int8_multiply(int (&sum)[WM / 16][WN / 8][4], unsigned char *a_tile,
                                                            unsigned char *b_tile, int warp_row, int warp_col) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CONV2D_TILE_CHUNKS; i += 2) {
    uint32_t left[WM / 16][4], right[WN / 16][4];
#pragma unroll
    for (int r = 0; r < WM / 16; r++)
      mma_load_matrices<false>(
          left[r], (const __nv_bfloat16 *)conv2d_chunk(a_tile, warp_row + 16 * r + lane % 16, i + lane / 16));
#pragma unroll
    for (int s = 0; s < WN / 16; s++) /* filters 0 to 7, both chunks; then filters 8 to 15 */
      mma_load_matrices<false>(right[s], (const __nv_bfloat16 *)conv2d_chunk(
                                             b_tile, warp_col + 16 * s + lane / 16 * 8 + lane % 8, i + lane / 8 % 2));
#pragma unroll
    for (int r = 0; r < WM / 16; r++)
#pragma unroll
      for (int s = 0; s < WN / 8; s++)
        mma_16x8x32<POSITIVE>(sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Outputs */

/* Two neighbouring outputs; `pairs`: their address allows one store. */
static __device__ __forceinline__ void int8_store_pair(int8_t *to, float a, float b, bool positive) {
  *(char2 *)to = make_char2(int8_byte(a, positive), int8_byte(b, positive));
}
static __device__ __forceinline__ void int8_store_pair(float *to, float a, float b, bool) {
  *(float2 *)to = make_float2(a, b);
}

template <typename T>
static __device__ __forceinline__ void conv2d_int8_write(T *y, size_t at, int k, int a, int b, bool both, bool pairs,
                                                         const Int8End &end) {
  if (!both || !pairs) {
    int8_finish(y, at, k, a, end);
    if (both) int8_finish(y, at + 1, k + 1, b, end);
    return;
  }
  const bool adds = end.added != NULL, positive = end.added_positive != 0, relu = end.relu != 0;
  const char2 added = adds ? *(const char2 *)(end.added + at) : make_char2(0, 0);
  if (end.bias != NULL) a += end.bias[k], b += end.bias[k + 1];
  int8_store_pair(&y[at],
                  int8_end(a, end.scale[k], int8_value(added.x, positive), end.middle, end.added_scale, adds, relu),
                  int8_end(b, end.scale[k + 1], int8_value(added.y, positive), end.middle, end.added_scale, adds, relu),
                  end.y_positive != 0);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* A block computes BM pixels of BN filters, a warp WM x WN of them; blockIdx.z is the group. */
template <typename T, int BM, int BN, int WM, int WN, int STAGES, bool VECTOR, bool POSITIVE>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    conv2d_int8_mma_kernel(T *y, const int8_t *x, const int8_t *w, Conv2dGather g, Int8End end) {
  const int threads = BM / WM * (BN / WN) * 32, stage_bytes = (BM + BN) * CONV2D_TILE_ROW;
  const int rows = BM * CONV2D_TILE_CHUNKS / threads;
  extern __shared__ __align__(128) unsigned char conv2d_int8_mma_ring[];
  const int group = blockIdx.z, filter0 = blockIdx.y * BN;
  const long long pixels = (long long)g.images * g.p_count * g.q_count, pixel0 = (long long)blockIdx.x * BM;
  const int steps = (g.taps * g.channels + CONV2D_TILE_ROW - 1) / CONV2D_TILE_ROW;

  Conv2dNhwcPixel pixel[rows]; /* of the rows that this thread copies */
#pragma unroll
  for (int i = 0; i < rows; i++)
    pixel[i] =
        conv2d_gather_pixel<false>(g, pixel0 + threadIdx.x / CONV2D_TILE_CHUNKS + i * (threads / CONV2D_TILE_CHUNKS));
  int sum[WM / 16][WN / 8][4] = {};
  const int warp = threadIdx.x / 32, warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  for (int step = 1 - STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(STAGES - 2); /* this thread's copies of this step are complete */
      __syncthreads(); /* all threads' are, and no thread reads the tiles of the step before any more */
    }
    const int next = step + STAGES - 1;
    if (next < steps) {
      unsigned char *tiles = conv2d_int8_mma_ring + next % STAGES * stage_bytes;
      conv2d_load_pixels<int8_t, BM, threads, VECTOR, false>(tiles, x, g, pixel, group, next * CONV2D_TILE_ROW);
      conv2d_load_filters_nhwc<int8_t, BN, threads, VECTOR>(tiles + BM * CONV2D_TILE_ROW, w, g, group, filter0,
                                                            next * CONV2D_TILE_ROW);
    }
    __pipeline_commit();
    unsigned char *tiles = conv2d_int8_mma_ring + (step + STAGES) % STAGES * stage_bytes;
    if (step >= 0) conv2d_int8_multiply<POSITIVE, WM, WN>(sum, tiles, tiles + BM * CONV2D_TILE_ROW, warp_row, warp_col);
  }

  const int lane = threadIdx.x % 32, filters = g.groups * g.filters;
  const bool pairs = g.filters % 2 == 0 && (uintptr_t)y % (2 * sizeof(T)) == 0 && (uintptr_t)end.added % 2 == 0;
#pragma unroll
  for (int r = 0; r < WM / 16; r++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const long long m = pixel0 + warp_row + 16 * r + 8 * i + lane / 4;
#pragma unroll
      for (int s = 0; s < WN / 8; s++) {
        const int own = filter0 + warp_col + 8 * s + lane % 4 * 2, k = group * g.filters + own;
        if (m < pixels && own < g.filters)
          conv2d_int8_write(y, (size_t)m * filters + k, k, sum[r][s][2 * i], sum[r][s][2 * i + 1], own + 1 < g.filters,
                            pairs, end);
      }
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <typename T, int BM, int BN, int WM, int WN, int STAGES, bool VECTOR, bool POSITIVE>
static inline void conv2d_int8_mma_run(T *y, const int8_t *x, const int8_t *w, const Conv2dGather *g, Int8End end) {
  const int bytes = STAGES * (BM + BN) * CONV2D_TILE_ROW;
  shared_limit_ask((const void *)conv2d_int8_mma_kernel<T, BM, BN, WM, WN, STAGES, VECTOR, POSITIVE>, bytes);
  const long long pixels = (long long)g->images * g->p_count * g->q_count;
  const dim3 grid((unsigned)((pixels + BM - 1) / BM), (unsigned)(g->filters + BN - 1) / BN, (unsigned)g->groups);
  conv2d_int8_mma_kernel<T, BM, BN, WM, WN, STAGES, VECTOR, POSITIVE>
      <<<grid, BM / WM *(BN / WN) * 32, bytes>>>(y, x, w, *g, end);
  CUDA_CHECK_LAUNCH();
}

template <typename T, bool VECTOR, bool POSITIVE>
static inline void conv2d_int8_mma_tiles(T *y, const int8_t *x, const int8_t *w, const Conv2dGather *g, Int8End end) {
  const double sums = (double)g->images * g->p_count * g->q_count * g->filters * g->groups;
  if (VECTOR && g->filters > 64 && sums >= 128.0 * 128 * matmul_mma_multiprocessors() && shared_limit() >= 96 << 10)
    conv2d_int8_mma_run<T, 128, 128, 64, 32, 3, VECTOR, POSITIVE>(y, x, w, g, end);
  else if (VECTOR && g->filters > 16 && sums <= 64.0 * 64 / 4 * matmul_mma_multiprocessors())
    conv2d_int8_mma_run<T, 64, 16, 16, 16, 3, VECTOR, POSITIVE>(y, x, w, g, end); /* more blocks: a linear layer */
  else
    conv2d_int8_mma_run<T, 64, 64, 32, 32, 3, VECTOR, POSITIVE>(y, x, w, g, end);
}

template <typename T, bool POSITIVE>
static inline void conv2d_int8_mma_launch(T *y, const int8_t *x, const int8_t *w, const Conv2dGather *g, Int8End end) {
  if (conv2d_int8_vectors(x, w, g))
    conv2d_int8_mma_tiles<T, true, POSITIVE>(y, x, w, g, end);
  else
    conv2d_int8_mma_tiles<T, false, POSITIVE>(y, x, w, g, end);
}

/* x (N,H,W,C), w (K,R,S,C/groups) -> y (N,P,Q,K); every shape. Where C / groups is not a multiple of 16, A is copied
 * number by number. */
template <typename T>
static inline void conv2d_int8_mma(T *y, const int8_t *x, const int8_t *w, Conv2dShape s, Int8End end) {
  mma_require();
  const Conv2dGather g = conv2d_gather(s, false);
  if (g.groups > 65535) die("conv2d_int8_mma: %d groups; at most 65535", g.groups);
  if (end.x_positive)
    conv2d_int8_mma_launch<T, true>(y, x, w, &g, end);
  else
    conv2d_int8_mma_launch<T, false>(y, x, w, &g, end);
}

#endif /* PHASE5_PRODUCTION_CONV2D_INT8_MMA_CUH */

/* conv2d_winograd_fused.cuh - Winograd's convolution (conv2d_winograd.cuh) in one kernel: the transform of the input,
 * the products and the transform of the output. Memory holds only x, the transformed filters and y.
 *
 * A block computes 64 filters x 32 tiles, all points. A warp has two points, for each a product of 64 x 32 with C as
 * the depth; a lane has 8 x 8 elements of each. A step is CHANNELS channels:
 *
 *     u_tiles   (channel, point, 64 filters)   copied from the transformed filters, one step ahead
 *     patches   (channel, element, 32 tiles)   copied from x, two steps ahead, zeros outside of the image
 *     v_tiles   (channel, point, 32 tiles)     transformed from the patches, one step ahead
 *     out       (point, 8 filters, 32 tiles)   what the warps exchange before the transform of the output
 *
 *     now                 products of step i from u_tiles[i % 2], v_tiles[i % 2]
 *     in the background   u_tiles[(i + 1) % 2] and, when the patches of step i + 1 are transformed, those of step i + 2
 *
 * There are as many blocks as multiprocessors. Each goes through its share of the work, and the copies for its next
 * filters and tiles begin before the last ones are written.
 *
 *   conv2d_forward_winograd2_fused     F(2x2,3x3): 16 points, 8 warps
 *   conv2d_forward_winograd2x4         F(2x4,3x3): 24 points, 12 warps: 3 products per output instead of 4
 *   conv2d_forward_winograd            this one or that of conv2d_winograd.cuh with F(4x4,3x3)
 *   conv2d_bias_relu_forward_winograd  the same and ReLU
 */
#ifndef PHASE3_CNN_CONV2D_WINOGRAD_FUSED_CUH
#define PHASE3_CNN_CONV2D_WINOGRAD_FUSED_CUH

#include "common/shared_memory_limit.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd.cuh"

template <int MH, int MW, int CHANNELS>
struct WinogradFused {
  static const int mh = MH, mw = MW, ph = MH + 2, pw = MW + 2, points = ph * pw, channels = CHANNELS;
  static const int filters = 64, tiles = 32, warps = points / 2, threads = warps * 32;
  static const int out_pitch = 48; /* a row of 32 tiles, and the next one 16 banks further */
  /* in floats */
  static const int u_stage = CHANNELS * points * filters, v_stage = CHANNELS * points * tiles;
  static const int patches = v_stage;
  static const int out = points * 8 * out_pitch;
  static const int bytes = (2 * u_stage + 2 * v_stage + patches + out) * 4;
  static_assert(WINOGRAD_CHANNELS % CHANNELS == 0 && WINOGRAD_FILTERS % filters == 0, "no step is shorter");
  static_assert(points <= 32, "a patch's mask has 32 bits");
};

/* ---------------------------------------------------------------------------------------------------------------- */
/* The products of a warp */

/* The first of the 8 x 8 elements of a lane: pieces of 4 x 4, 32 rows and 16 columns apart. Eight neighbouring lanes
 * read 2 float4 of a row of u and 4 of a row of v (matmul_tuned_patch). */
static __device__ __forceinline__ int winograd_lane_row(void) {
  return (threadIdx.x / 8 % 4 * 2 + threadIdx.x % 2) * 4;
}
static __device__ __forceinline__ int winograd_lane_col(void) { return threadIdx.x / 2 % 4 * 4; }

/* sum += the outer product of a row of 64 and one of 32. In the latter, the columns of each pair are exchanged, as in
 * matmul_tuned: sum[r][c] and right[c] are then in different register banks. */
static __device__ __forceinline__ void winograd_add_products(float (&sum)[8][8], const float *row_64,
                                                             const float *row_32) {
  float left[8], right[8];
  matmul_fragment<32>(left, row_64 + winograd_lane_row());
  matmul_fragment<16>(right, row_32 + winograd_lane_col());
#pragma unroll
  for (int c = 0; c < 8; c += 2) {
    float first = right[c];
    right[c] = right[c + 1];
    right[c + 1] = first;
  }
  matmul_outer_snake(sum, left, right);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The work of a block */

/* Item i is filters i % filter_blocks * 64 ... of tiles i / filter_blocks * 32 ...; block b has items b, b + gridDim.x,
 * ..., of `steps` steps each. */
typedef struct WinogradWork {
  int filter_blocks, items, steps;
} WinogradWork;

/* A step of an item of this block. Copying u, copying x and multiplying are each at another one. */
typedef struct WinogradCursor {
  int item, step;
} WinogradCursor;

/* true: the next item begins */
static __device__ __forceinline__ bool winograd_advance(WinogradCursor *at, WinogradWork work) {
  if (++at->step < work.steps) return false;
  at->step = 0;
  at->item += gridDim.x;
  return true;
}

/* The tile that a lane copies and transforms: where it begins in channel 0 of x, and which of its elements, from the
 * lowest bit on, are inside of the image. */
typedef struct WinogradPatch {
  long long at;
  unsigned inside;
} WinogradPatch;

template <typename F>
static __device__ __forceinline__ WinogradPatch winograd_patch(Winograd s, WinogradWork work, int item) {
  WinogradPatch patch = {0, 0};
  int tile = item / work.filter_blocks * F::tiles + threadIdx.x % 32, n, tile_h, tile_w;
  if (item >= work.items || tile >= winograd_tiles(s)) return patch;
  winograd_place(s, tile, &n, &tile_h, &tile_w);
  int h0 = tile_h * F::mh - s.padding_h, w0 = tile_w * F::mw - s.padding_w;
  patch.at = (long long)n * s.c * s.h * s.w + (long long)h0 * s.w + w0;
  unsigned columns = 0;
#pragma unroll
  for (int j = 0; j < F::pw; j++) columns |= (w0 + j >= 0 && w0 + j < s.w ? 1u : 0u) << j;
#pragma unroll
  for (int i = 0; i < F::ph; i++)
    if (h0 + i >= 0 && h0 + i < s.h) patch.inside |= columns << (i * F::pw);
  return patch;
}

/* Begins to copy the patches of a step: a warp per channel, a lane per tile, 4 bytes at a time. */
template <typename F>
static __device__ __forceinline__ void winograd_fused_copy_patches(float *patches, const float *x, Winograd s,
                                                                   WinogradPatch patch, int step) {
  for (int i = threadIdx.x / 32; i < F::channels; i += F::warps) {
    int c = step * F::channels + i;
    const float *from = x + patch.at + (long long)c * s.h * s.w;
    float *to = patches + i * F::points * F::tiles + threadIdx.x % 32;
    unsigned inside = c < s.c ? patch.inside : 0;
#pragma unroll
    for (int j = 0; j < F::points; j++)
      __pipeline_memcpy_async(to + j * F::tiles, from + (long long)(j / F::pw) * s.w + j % F::pw, 4,
                              inside >> j & 1 ? 0 : 4);
  }
}

/* Each lane transforms the patches that it has copied: no barrier is needed in between. */
template <typename F>
static __device__ __forceinline__ void winograd_fused_transform(float *v_tile, const float *patches) {
  for (int i = threadIdx.x / 32; i < F::channels; i += F::warps) {
    float d[F::ph][F::pw], point[F::ph][F::pw];
    const float *from = patches + i * F::points * F::tiles + threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < F::points; j++) d[j / F::pw][j % F::pw] = from[j * F::tiles];
    winograd_input<F::mh, F::mw>(point, d);
    float *to = v_tile + i * F::points * F::tiles + (threadIdx.x % 32 ^ 1);
#pragma unroll
    for (int j = 0; j < F::points; j++) to[j * F::tiles] = point[j / F::pw][j % F::pw];
  }
}

/* Begins to copy the filters of a step: 16 threads per row of 64, a row per point, all of a channel at a time. */
template <typename F>
static __device__ __forceinline__ void winograd_fused_copy_filters(float *u_tile, const float *u, Winograd s,
                                                                   WinogradWork work, WinogradCursor at) {
  const float *from = u + ((size_t)(threadIdx.x / 16) * s.c_padded + at.step * F::channels) * s.k_padded +
                      at.item % work.filter_blocks * F::filters + threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < F::channels; i++)
    __pipeline_memcpy_async(u_tile + (i * F::threads + threadIdx.x) * 4, from + (size_t)i * s.k_padded, 16);
}

template <typename F>
static __device__ __forceinline__ void winograd_fused_multiply(float (&sum)[2][8][8], const float *u_tile,
                                                               const float *v_tile, int begin, int end) {
  int point = threadIdx.x / 32 * 2;
#pragma unroll
  for (int i = begin; i < end; i++)
#pragma unroll
    for (int p = 0; p < 2; p++) {
      int row = i * F::points + point + p;
      winograd_add_products(sum[p], u_tile + row * F::filters, v_tile + row * F::tiles);
    }
}

/* The transform of the output needs all points of an output, which are in different warps. They exchange them through
 * shared memory, eight filters at a time: row j of each lane's elements. Warps 0 to 7 then have a filter each, a lane a
 * tile. */
template <typename F, bool RELU>
static __device__ __forceinline__ void winograd_fused_write(float *y, float *out, float (&sum)[2][8][8],
                                                            const float *bias, Winograd s, WinogradWork work, int item,
                                                            bool aligned) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, n, tile_h, tile_w;
  int first = item % work.filter_blocks * F::filters, tile = item / work.filter_blocks * F::tiles + lane;
  winograd_place(s, tile, &n, &tile_h, &tile_w);
  int row = tile_h * F::mh, col = tile_w * F::mw;
  y += ((size_t)n * s.k * s.p + row) * s.q + col;
  float *to = out + (2 * warp * 8 + winograd_lane_row() / 4) * F::out_pitch + winograd_lane_col();
#pragma unroll
  for (int j = 0; j < 8; j++) {
#pragma unroll
    for (int p = 0; p < 2; p++)
#pragma unroll
      for (int q = 0; q < 8; q += 4)
        *(float4 *)(to + p * 8 * F::out_pitch + q * 4) =
            make_float4(sum[p][j][q], sum[p][j][q + 1], sum[p][j][q + 2], sum[p][j][q + 3]);
    __syncthreads();
    int k = first + j / 4 * 32 + warp * 4 + j % 4;
    if (warp < 8 && k < s.k && tile < winograd_tiles(s)) {
      float point[F::ph][F::pw], result[F::mh][F::mw];
#pragma unroll
      for (int i = 0; i < F::points; i++) point[i / F::pw][i % F::pw] = out[(i * 8 + warp) * F::out_pitch + lane];
      winograd_output<F::mh, F::mw>(result, point);
      winograd_finish<F::mh, F::mw>(result, bias != NULL ? bias[k] : 0.0f, RELU);
      winograd_store<F::mh, F::mw>(y + (size_t)k * s.p * s.q, result, s.p - row, s.q - col, s.q, aligned);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2 * 8 * 8; i++) sum[i / 64][i / 8 % 8][i % 8] = 0.0f;
}

template <typename F, bool RELU>
static __global__ void __launch_bounds__(F::threads, 1)
    winograd_fused_kernel(float *y, const float *x, const float *u, const float *bias, Winograd s, WinogradWork work,
                          bool aligned) {
  extern __shared__ __align__(16) float winograd_fused_memory[];
  float *u_tiles = winograd_fused_memory, *v_tiles = u_tiles + 2 * F::u_stage, *patches = v_tiles + 2 * F::v_stage;
  float *out = patches + F::patches, sum[2][8][8] = {};
  int steps = (work.items - 1 - (int)blockIdx.x) / (int)gridDim.x * work.steps + work.steps; /* of this block */
  WinogradCursor u_at = {(int)blockIdx.x, 0}, x_at = u_at, now = u_at;
  WinogradPatch patch = winograd_patch<F>(s, work, x_at.item);

  winograd_fused_copy_filters<F>(u_tiles, u, s, work, u_at);
  winograd_advance(&u_at, work);
  winograd_fused_copy_patches<F>(patches, x, s, patch, x_at.step);
  if (winograd_advance(&x_at, work)) patch = winograd_patch<F>(s, work, x_at.item);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  winograd_fused_transform<F>(v_tiles, patches);
  if (steps > 1) {
    winograd_fused_copy_patches<F>(patches, x, s, patch, x_at.step);
    if (winograd_advance(&x_at, work)) patch = winograd_patch<F>(s, work, x_at.item);
  }
  __pipeline_commit();
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    const float *u_tile = u_tiles + i % 2 * F::u_stage, *v_tile = v_tiles + i % 2 * F::v_stage;
    if (i + 1 < steps) {
      winograd_fused_copy_filters<F>(u_tiles + (i + 1) % 2 * F::u_stage, u, s, work, u_at);
      winograd_advance(&u_at, work);
    }
    __pipeline_commit();
    winograd_fused_multiply<F>(sum, u_tile, v_tile, 0, F::channels / 2);
    __pipeline_wait_prior(1); /* for the patches of the next step, not for its filters */
    if (i + 1 < steps) winograd_fused_transform<F>(v_tiles + (i + 1) % 2 * F::v_stage, patches);
    if (i + 2 < steps) {
      winograd_fused_copy_patches<F>(patches, x, s, patch, x_at.step);
      if (winograd_advance(&x_at, work)) patch = winograd_patch<F>(s, work, x_at.item);
    }
    __pipeline_commit();
    winograd_fused_multiply<F>(sum, u_tile, v_tile, F::channels / 2, F::channels);
    int item = now.item;
    if (winograd_advance(&now, work)) winograd_fused_write<F, RELU>(y, out, sum, bias, s, work, item, aligned);
    __pipeline_wait_prior(1); /* for the filters */
    __syncthreads();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <typename F, bool RELU>
static inline void winograd_fused_run(float *y, const float *x, const float *u, const float *bias, Winograd s) {
  int tile_blocks = (winograd_tiles(s) + F::tiles - 1) / F::tiles, filter_blocks = s.k_padded / F::filters;
  WinogradWork work = {filter_blocks, tile_blocks * filter_blocks, s.c_padded / F::channels};
  int blocks = winograd_most(work.items, conv2d_multiprocessors());
  bool aligned = s.q % F::mw == 0 && (size_t)y % (F::mw * sizeof *y) == 0;
  shared_limit_ask((const void *)winograd_fused_kernel<F, RELU>, F::bytes);
  winograd_fused_kernel<F, RELU><<<blocks, F::threads, F::bytes>>>(y, x, u, bias, s, work, aligned);
  CUDA_CHECK_LAUNCH();
}

/* u: winograd_filter_floats(). As many channels per step as shared memory holds. */
template <int MH, int MW, bool FLIP, bool RELU>
static inline void winograd_fused(float *y, const float *x, const float *w, const float *bias, Winograd s, float *u) {
  winograd_filter_launch<MH, MW, FLIP>(u, w, s);
  int limit = shared_limit();
  if (limit >= WinogradFused<MH, MW, 8>::bytes)
    winograd_fused_run<WinogradFused<MH, MW, 8>, RELU>(y, x, u, bias, s);
  else if (limit >= WinogradFused<MH, MW, 4>::bytes)
    winograd_fused_run<WinogradFused<MH, MW, 4>, RELU>(y, x, u, bias, s);
  else
    winograd_fused_run<WinogradFused<MH, MW, 2>, RELU>(y, x, u, bias, s);
}

static inline size_t conv2d_winograd2_fused_floats(Conv2dShape s) {
  return winograd_filter_floats(winograd_forward_shape<2, 2>(s), 16);
}
static inline size_t conv2d_winograd2x4_floats(Conv2dShape s) {
  return winograd_filter_floats(winograd_forward_shape<2, 4>(s), 24);
}

static inline void conv2d_forward_winograd2_fused(float *y, const float *x, const float *w, const float *bias,
                                                  Conv2dShape s, float *workspace) {
  winograd_fused<2, 2, false, false>(y, x, w, bias, winograd_forward_shape<2, 2>(s), workspace);
}

static inline void conv2d_forward_winograd2x4(float *y, const float *x, const float *w, const float *bias,
                                              Conv2dShape s, float *workspace) {
  winograd_fused<2, 4, false, false>(y, x, w, bias, winograd_forward_shape<2, 4>(s), workspace);
}

static const Conv2dMethod winograd2_fused_forward = {
    "winograd2_fused", winograd_fits, conv2d_winograd2_fused_floats, conv2d_forward_winograd2_fused, NULL, NULL};
static const Conv2dMethod winograd2x4_forward = {
    "winograd2x4", winograd_fits, conv2d_winograd2x4_floats, conv2d_forward_winograd2x4, NULL, NULL};

/* ---------------------------------------------------------------------------------------------------------------- */
/* The version that is fastest, by what an H200 measures. With few channels and filters, the transforms of F(4x4) take
 * longer than its products, and they need much memory; F(2x4) in one kernel is as fast. Otherwise F(4x4). */

enum { WINOGRAD_FEW = 64, WINOGRAD_SPACE = 128 << 20 }; /* channels and filters; floats of v and m: 512 MiB */

static inline bool winograd_few(Winograd s) { return s.c <= WINOGRAD_FEW && s.k <= WINOGRAD_FEW; }

template <bool FLIP, bool RELU>
static inline void winograd_fastest(float *y, const float *x, const float *w, const float *bias, Winograd s4,
                                    Winograd s2x4, float *workspace) {
  if (winograd_few(s4))
    winograd_fused<2, 4, FLIP, RELU>(y, x, w, bias, s2x4, workspace);
  else
    winograd_kernels<4, 4, FLIP>(y, x, w, bias, RELU, s4, workspace, winograd_product, WINOGRAD_SPACE);
}

static inline size_t winograd_fastest_floats(Winograd s4, Winograd s2x4) {
  return winograd_few(s4) ? winograd_filter_floats(s2x4, 24) : winograd_kernels_floats<4, 4>(s4, WINOGRAD_SPACE);
}

static inline size_t conv2d_winograd_floats(Conv2dShape s) {
  return winograd_fastest_floats(winograd_forward_shape<4, 4>(s), winograd_forward_shape<2, 4>(s));
}

static inline void conv2d_forward_winograd(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                           float *workspace) {
  winograd_fastest<false, false>(y, x, w, bias, winograd_forward_shape<4, 4>(s), winograd_forward_shape<2, 4>(s),
                                 workspace);
}

/* y = relu(convolution + bias): in the transform of the output, where the sums are in registers. */
static inline void conv2d_bias_relu_forward_winograd(float *y, const float *x, const float *w, const float *bias,
                                                     Conv2dShape s, float *workspace) {
  winograd_fastest<false, true>(y, x, w, bias, winograd_forward_shape<4, 4>(s), winograd_forward_shape<2, 4>(s),
                                workspace);
}

#endif /* PHASE3_CNN_CONV2D_WINOGRAD_FUSED_CUH */

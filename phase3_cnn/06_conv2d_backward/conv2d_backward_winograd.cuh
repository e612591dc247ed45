/* conv2d_backward_winograd.cuh - the gradients of convolution with 3 x 3 filters and stride 1 by Winograd's algorithm
 * (04_conv2d_winograd), float32, NCHW.
 *
 * The gradient of the input is a convolution of dy with the filters turned by 180 degrees, K and C exchanged: the
 * kernels of lesson 4, with another transform of the filters.
 *
 * The gradient of the filters: forward computes y = At m A, where m = u * v for each point, summed over C. Backward,
 *
 *     dm (points, tiles, K) = A dy At            a tile of dy, MH x MW, to (MH + 2) x (MW + 2) points
 *     du (points, K, C)     = sum over the tiles of dm * v         v as forward: Bt x B
 *     dw                    = Gt du G
 *
 * For each point that is a product of K x C with the tiles as its depth. winograd_weight_kernel transforms both
 * operands, multiplies, and writes the sums of a slice of the tiles; winograd_weight_join_kernel adds up the slices,
 * always in the same order, and transforms the result.
 *
 *   conv2d_backward_input_winograd     dx
 *   conv2d_backward_weight_winograd    dw, and dbias as conv2d_backward.cuh computes it
 *   conv2d_winograd_method             forward and both: --conv=winograd
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_WINOGRAD_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_WINOGRAD_CUH

#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"

/* A block computes 64 filters x 32 channels of du, all points, from a slice of the tiles. A warp has two points, as in
 * winograd_fused_kernel. A step is TILES tiles:
 *
 *     u_tiles   (tile, point, 64 filters)    v_tiles   (tile, point, 32 channels)
 *     patches   (job, element, lane): what the lanes copy, and transform when it has arrived
 *
 * A job is one patch per lane: TILES tiles of 32 / TILES channels of x, or filters of dy. Neighbouring tiles begin
 * 32 / TILES banks apart in u_tiles and v_tiles, so that the lanes of a job store to different banks. */
template <int MH, int MW, int TILES>
struct WinogradWeight {
  static const int mh = MH, mw = MW, ph = MH + 2, pw = MW + 2, points = ph * pw, tiles = TILES;
  static const int filters = 64, channels = 32, warps = points / 2, threads = warps * 32;
  static const int planes = 32 / TILES; /* of a job */
  static const int x_jobs = channels / planes, jobs = x_jobs + filters / planes;
  static const int u_tile = points * filters + planes, v_tile = points * channels + planes;
  static const int u_stage = TILES * u_tile, v_stage = TILES * v_tile;
  static const int x_patch = points * 32, y_patch = MH * MW * 32; /* of a job */
  static const int patches = x_jobs * x_patch + (jobs - x_jobs) * y_patch;
  static const int bytes = (2 * u_stage + 2 * v_stage + patches) * 4;
  static_assert(u_tile % 4 == 0 && v_tile % 4 == 0, "rows are read as float4");
};

/* ROWS x COLS elements from `from` on, which is (row,col) of a plane of height x width; zeros outside of it. */
template <int ROWS, int COLS>
static __device__ __forceinline__ void winograd_copy_patch(float *to, const float *from, int row, int col, int height,
                                                           int width, bool exists) {
#pragma unroll
  for (int i = 0; i < ROWS; i++)
#pragma unroll
    for (int j = 0; j < COLS; j++) {
      bool inside = exists && row + i >= 0 && row + i < height && col + j >= 0 && col + j < width;
      __pipeline_memcpy_async(to + (i * COLS + j) * 32, from + (long long)i * width + j, 4, inside ? 0 : 4);
    }
}

/* Begins to copy the patches of tiles `first` ... first + TILES - 1, those before `last`. */
template <typename F>
static __device__ __forceinline__ void winograd_weight_copy(float *patches, const float *dy, const float *x, Winograd s,
                                                            int k0, int c0, int first, int last) {
  int lane = threadIdx.x % 32, tile = first + lane % F::tiles, n, tile_h, tile_w;
  winograd_place(s, tile, &n, &tile_h, &tile_w);
  int p = tile_h * F::mh, q = tile_w * F::mw, h = p - s.padding_h, w = q - s.padding_w;
  for (int job = threadIdx.x / 32; job < F::jobs; job += F::warps) {
    if (job < F::x_jobs) {
      int c = c0 + job * F::planes + lane / F::tiles;
      const float *from = x + ((long long)n * s.c + c) * s.h * s.w + (long long)h * s.w + w;
      winograd_copy_patch<F::ph, F::pw>(patches + job * F::x_patch + lane, from, h, w, s.h, s.w,
                                        tile < last && c < s.c);
    } else {
      int group = job - F::x_jobs, k = k0 + group * F::planes + lane / F::tiles;
      const float *from = dy + (((long long)n * s.k + k) * s.p + p) * s.q + q;
      winograd_copy_patch<F::mh, F::mw>(patches + F::x_jobs * F::x_patch + group * F::y_patch + lane, from, p, q, s.p,
                                        s.q, tile < last && k < s.k);
    }
  }
}

/* Each lane transforms the patches that it has copied. The columns of each pair in v_tile are exchanged, as
 * winograd_add_products() expects them. */
template <typename F>
static __device__ __forceinline__ void winograd_weight_transform(float *u_tile, float *v_tile, const float *patches) {
  int lane = threadIdx.x % 32, tile = lane % F::tiles, plane = lane / F::tiles;
  for (int job = threadIdx.x / 32; job < F::jobs; job += F::warps) {
    float point[F::ph][F::pw];
    if (job < F::x_jobs) {
      float d[F::ph][F::pw];
      const float *from = patches + job * F::x_patch + lane;
#pragma unroll
      for (int i = 0; i < F::points; i++) d[i / F::pw][i % F::pw] = from[i * 32];
      winograd_input<F::mh, F::mw>(point, d);
      float *to = v_tile + tile * F::v_tile + ((job * F::planes + plane) ^ 1);
#pragma unroll
      for (int i = 0; i < F::points; i++) to[i * F::channels] = point[i / F::pw][i % F::pw];
    } else {
      int group = job - F::x_jobs;
      float d[F::mh][F::mw];
      const float *from = patches + F::x_jobs * F::x_patch + group * F::y_patch + lane;
#pragma unroll
      for (int i = 0; i < F::mh * F::mw; i++) d[i / F::mw][i % F::mw] = from[i * 32];
      winograd_output_gradient<F::mh, F::mw>(point, d);
      float *to = u_tile + tile * F::u_tile + group * F::planes + plane;
#pragma unroll
      for (int i = 0; i < F::points; i++) to[i * F::filters] = point[i / F::pw][i % F::pw];
    }
  }
}

template <typename F>
static __device__ __forceinline__ void winograd_weight_multiply(float (&sum)[2][8][8], const float *u_tile,
                                                                const float *v_tile, int begin, int end) {
  int point = threadIdx.x / 32 * 2;
#pragma unroll
  for (int i = begin; i < end; i++)
#pragma unroll
    for (int p = 0; p < 2; p++)
      winograd_add_products(sum[p], u_tile + i * F::u_tile + (point + p) * F::filters,
                            v_tile + i * F::v_tile + (point + p) * F::channels);
}

/* parts (slices, points, k_padded, c_padded): the block's part of du, from `slice` tiles. */
template <typename F>
static __global__ void __launch_bounds__(F::threads, 1)
    winograd_weight_kernel(float *parts, const float *dy, const float *x, Winograd s, int c_padded, int slice) {
  extern __shared__ __align__(16) float winograd_weight_memory[];
  float *u_tiles = winograd_weight_memory, *v_tiles = u_tiles + 2 * F::u_stage, *patches = v_tiles + 2 * F::v_stage;
  float sum[2][8][8] = {};
  int c0 = blockIdx.x * F::channels, k0 = blockIdx.y * F::filters;
  int tile = blockIdx.z * slice, last = min(tile + slice, winograd_tiles(s));
  int steps = (last - tile + F::tiles - 1) / F::tiles;

  winograd_weight_copy<F>(patches, dy, x, s, k0, c0, tile, last);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  winograd_weight_transform<F>(u_tiles, v_tiles, patches);
  winograd_weight_copy<F>(patches, dy, x, s, k0, c0, tile += F::tiles, last);
  __pipeline_commit();
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < steps; i++) {
    float *u_tile = u_tiles + i % 2 * F::u_stage, *v_tile = v_tiles + i % 2 * F::v_stage;
    winograd_weight_multiply<F>(sum, u_tile, v_tile, 0, F::tiles / 2);
    __pipeline_wait_prior(0);
    if (i + 1 < steps) {
      winograd_weight_transform<F>(u_tiles + (i + 1) % 2 * F::u_stage, v_tiles + (i + 1) % 2 * F::v_stage, patches);
      winograd_weight_copy<F>(patches, dy, x, s, k0, c0, tile += F::tiles, last);
      __pipeline_commit();
    }
    winograd_weight_multiply<F>(sum, u_tile, v_tile, F::tiles / 2, F::tiles);
    __syncthreads();
  }

  int point = threadIdx.x / 32 * 2, row = k0 + winograd_lane_row(), col = c0 + winograd_lane_col();
#pragma unroll
  for (int p = 0; p < 2; p++)
    matmul_write<32, 16, true>(parts + ((size_t)blockIdx.z * F::points + point + p) * s.k_padded * c_padded, sum[p],
                               row, col, s.k_padded, c_padded, false);
}

/* parts -> dw: a block has 32 weights (k,c) x all points; a thread adds up the slices of one. */
template <int MH, int MW>
static __global__ void __launch_bounds__((MH + 2) * (MW + 2) * 32)
    winograd_weight_join_kernel(float *dw, const float *parts, Winograd s, int c_padded, int slices) {
  const int pw = MW + 2, points = (MH + 2) * pw;
  __shared__ float sums[points][32];
  int across = c_padded / 32, c = blockIdx.x % across * 32 + threadIdx.x, k = blockIdx.x / across;
  size_t plane = (size_t)s.k_padded * c_padded;
  parts += threadIdx.y * plane + (size_t)k * c_padded + c;
  float sum = 0;
  for (int i = 0; i < slices; i++) sum += parts[i * points * plane];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || c >= s.c) return;
  float du[MH + 2][pw], g[3][3];
#pragma unroll
  for (int i = 0; i < points; i++) du[i / pw][i % pw] = sums[i][threadIdx.x];
  winograd_filter_gradient<MH, MW>(g, du);
#pragma unroll
  for (int i = 0; i < 9; i++) dw[((size_t)k * s.c + c) * 9 + i] = g[i / 3][i % 3];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* The tiles in slices, so that there are about as many blocks as multiprocessors, or a multiple. */
typedef struct WinogradSlices {
  int slices, tiles, c_padded;
  size_t floats; /* for this number of tiles and every smaller one */
} WinogradSlices;

/* `space`: floats that all slices together may have, but one slice there is in any case. */
static inline WinogradSlices winograd_slices(Winograd s, int points, int step, size_t space) {
  WinogradSlices p = {1, 0, winograd_round_up(s.c, 32), 0};
  long long processors = conv2d_multiprocessors(), blocks = (long long)p.c_padded / 32 * (s.k_padded / 64);
  long long steps = (winograd_tiles(s) + step - 1) / step, least = LLONG_MAX;
  const size_t slice_floats = (size_t)points * s.k_padded * p.c_padded;
  long long most = (2 * processors + blocks - 1) / blocks;
  if (most > steps) most = steps;
  if ((size_t)most > space / slice_floats) most = space >= slice_floats ? (long long)(space / slice_floats) : 1;
  for (int slices = 1; slices <= most; slices++) {
    /* rounds of blocks on all multiprocessors, times the steps of a block: 8 are added for its beginning and end */
    long long cost = (blocks * slices + processors - 1) / processors * ((steps + slices - 1) / slices + 8);
    if (cost >= least) continue;
    least = cost;
    p.slices = slices;
  }
  p.tiles = (int)((steps + p.slices - 1) / p.slices) * step;
  p.slices = (winograd_tiles(s) + p.tiles - 1) / p.tiles;
  p.floats = (size_t)most * slice_floats;
  return p;
}

static const size_t winograd_any_space = (size_t)-1;

template <typename F>
static inline void winograd_weight_run_within(float *dw, const float *dy, const float *x, Winograd s, float *parts,
                                              size_t space) {
  WinogradSlices p = winograd_slices(s, F::points, F::tiles, space);
  dim3 grid(p.c_padded / F::channels, s.k_padded / F::filters, p.slices);
  shared_limit_ask((const void *)winograd_weight_kernel<F>, F::bytes);
  winograd_weight_kernel<F><<<grid, F::threads, F::bytes>>>(parts, dy, x, s, p.c_padded, p.tiles);
  CUDA_CHECK_LAUNCH();
  winograd_weight_join_kernel<F::mh, F::mw>
      <<<p.c_padded / 32 * s.k, dim3(32, F::points)>>>(dw, parts, s, p.c_padded, p.slices);
  CUDA_CHECK_LAUNCH();
}

template <typename F>
static inline void winograd_weight_run(float *dw, const float *dy, const float *x, Winograd s, float *parts) {
  winograd_weight_run_within<F>(dw, dy, x, s, parts, winograd_any_space);
}

/* dx is a convolution of dy: as forward, with other filters. */
static inline void conv2d_backward_input_winograd(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                  float *workspace) {
  winograd_fastest<true, false>(dx, dy, w, NULL, winograd_backward_input_shape<4, 4>(s),
                                winograd_backward_input_shape<2, 4>(s), workspace);
}

typedef WinogradWeight<2, 4, 4> WinogradWeightLarge; /* 93 KiB of shared memory */
typedef WinogradWeight<2, 2, 4> WinogradWeightSmall; /* 61 */

/* With `space` floats for the parts, or those of one slice. */
static inline void conv2d_backward_weight_winograd_within(float *dw, float *dbias, const float *dy, const float *x,
                                                          Conv2dShape s, float *workspace, size_t space) {
  if (dbias != NULL) conv2d_backward_bias(dbias, dy, s, workspace);
  if (shared_limit() >= WinogradWeightLarge::bytes)
    winograd_weight_run_within<WinogradWeightLarge>(dw, dy, x, winograd_forward_shape<2, 4>(s), workspace, space);
  else
    winograd_weight_run_within<WinogradWeightSmall>(dw, dy, x, winograd_forward_shape<2, 2>(s), workspace, space);
}

static inline void conv2d_backward_weight_winograd(float *dw, float *dbias, const float *dy, const float *x,
                                                   Conv2dShape s, float *workspace) {
  conv2d_backward_weight_winograd_within(dw, dbias, dy, x, s, workspace, winograd_any_space);
}

static inline size_t conv2d_backward_input_winograd_floats(Conv2dShape s) {
  return winograd_fastest_floats(winograd_backward_input_shape<4, 4>(s), winograd_backward_input_shape<2, 4>(s));
}

static inline size_t conv2d_backward_weight_winograd_floats(Conv2dShape s, size_t space) {
  size_t large = winograd_slices(winograd_forward_shape<2, 4>(s), WinogradWeightLarge::points, 4, space).floats;
  size_t small = winograd_slices(winograd_forward_shape<2, 2>(s), WinogradWeightSmall::points, 4, space).floats;
  return conv2d_larger(conv2d_bias_floats(s), conv2d_larger(large, small));
}

/* Of forward and both gradients, of this or a smaller batch. */
static inline size_t conv2d_winograd_method_floats(Conv2dShape s) {
  return conv2d_larger(conv2d_winograd_floats(s),
                       conv2d_larger(conv2d_backward_input_winograd_floats(s),
                                     conv2d_backward_weight_winograd_floats(s, winograd_any_space)));
}

static const Conv2dMethod conv2d_winograd_method = {"winograd",
                                                    winograd_fits,
                                                    conv2d_winograd_method_floats,
                                                    conv2d_forward_winograd,
                                                    conv2d_backward_input_winograd,
                                                    conv2d_backward_weight_winograd,
                                                    conv2d_winograd_floats};

#endif /* PHASE3_CNN_CONV2D_BACKWARD_WINOGRAD_CUH */

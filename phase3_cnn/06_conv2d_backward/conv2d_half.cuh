/* conv2d_half.cuh - convolution of 16 bits and its gradients, as networks in half precision compute them: NHWC,
 * channels filled up to multiples of 8 (common/half.h), T is __nv_bfloat16 or __half, sums are float32, mma.sync.
 *
 *     y  (N P Q, K)    = A (N P Q, R S C) w (K, R S C)^T
 *     dx (N H W, C)    = A'(N H W, R S K) turn (C, R S K)^T
 *     dw (K, R S C)    = dy (N P Q, K)^T A (N P Q, R S C)
 *
 * The products of y and dx are those of conv2d_nhwc_mma.cuh. The networks here have 16 to 128 filters, fewer than a
 * tile of 64: so there are tiles for 16 and for 32, of 128 pixels each; a tile of 64 would multiply zeros in three of
 * four products. With so few products per number, the instructions that find the place of each 16 bytes count: there
 * are no divisions among them. With stride 2, dx is four convolutions, of its even and odd rows and columns.
 *
 * The kernel of dw differs from conv2d_nhwc_backward_mma.cuh in its tile: up to 192 columns of A, all nine taps of 16
 * channels, beside 16, 32 or 64 filters. A pixel of dy is read once then instead of three times, and few filters do not
 * leave three of four products to zeros. Each block has a part of the pixels and writes its sums; conv2d_half_add adds
 * the parts in a fixed order, and writes float32 gradients in the order (K,C,R,S) of the float32 weights.
 */
#ifndef PHASE3_CNN_CONV2D_HALF_CUH
#define PHASE3_CNN_CONV2D_HALF_CUH

#include "common/half.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_nhwc_backward_mma.cuh"

/* The shape as it lies in memory: channels and filters filled up. */
static inline Conv2dShape conv2d_half_shape(Conv2dShape s) {
  s.c = half_channels(s.c);
  s.k = half_channels(s.k);
  return s;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Which pixels of x an output reads */

/* Along one axis: output i of `count` is written to place out_first + out_step i, and reads with tap j of `taps` the
 * input first + step i + tap_step j; that is tap number tap + tap_stride j of the filter. */
typedef struct Conv2dHalfAxis {
  int count, out_first, out_step;
  int first, step, tap_step;
  int taps, tap, tap_stride;
} Conv2dHalfAxis;

enum { CONV2D_HALF_PHASES = 4 };

/* A convolution, or up to four: with stride 2 the even and the odd rows and columns of dx read other taps each. One
 * with all taps would find zeros in three of four. */
typedef struct Conv2dHalfPlan {
  int images, h, w, channels, filters, out_h, out_w; /* channels: of what is read */
  int filter_rows, filter_cols, biases, phases;
  Conv2dHalfAxis row[CONV2D_HALF_PHASES], col[CONV2D_HALF_PHASES];
} Conv2dHalfPlan;

static inline Conv2dHalfAxis conv2d_half_axis(int count, int taps, int stride, int padding, int dilation) {
  const Conv2dHalfAxis axis = {count, 0, 1, -padding, stride, dilation, taps, 0, 1};
  return axis;
}

/* Of the gradient of the input: outputs phase, phase + stride, ... of `size`. Output phase + stride i reads dy at
 * (phase + padding - tap) / stride + i, where that divides. */
static inline Conv2dHalfAxis conv2d_half_phase(int phase, int size, int taps, int stride, int padding) {
  const int tap = (phase + padding) % stride;
  const Conv2dHalfAxis axis = {(size - phase + stride - 1) / stride,
                               phase,
                               stride,
                               (phase + padding - tap) / stride,
                               1,
                               -1,
                               tap < taps ? (taps - tap + stride - 1) / stride : 0,
                               tap,
                               stride};
  return axis;
}

/* s: with channels and filters filled up. */
static inline Conv2dHalfPlan conv2d_half_plan(Conv2dShape s, bool backward) {
  const int p = conv2d_out_h(s), q = conv2d_out_w(s);
  Conv2dHalfPlan plan;
  memset(&plan, 0, sizeof plan);
  plan.images = s.n;
  plan.h = backward ? p : s.h;
  plan.w = backward ? q : s.w;
  plan.channels = backward ? s.k : s.c;
  plan.filters = backward ? s.c : s.k;
  plan.out_h = backward ? s.h : p;
  plan.out_w = backward ? s.w : q;
  plan.filter_rows = s.r;
  plan.filter_cols = s.s;
  plan.phases = backward ? s.stride_h * s.stride_w : 1;
  for (int i = 0; i < plan.phases; i++) {
    plan.row[i] = backward ? conv2d_half_phase(i / s.stride_w, s.h, s.r, s.stride_h, s.padding_h)
                           : conv2d_half_axis(p, s.r, s.stride_h, s.padding_h, s.dilation_h);
    plan.col[i] = backward ? conv2d_half_phase(i % s.stride_w, s.w, s.s, s.stride_w, s.padding_w)
                           : conv2d_half_axis(q, s.s, s.stride_w, s.padding_w, s.dilation_w);
  }
  return plan;
}

/* Whether the plan's kernel computes it: numbers are counted in 32 bits, and there is room for so many phases. Others
 * go to conv2d_nhwc_mma.cuh. */
static inline bool conv2d_half_fits(Conv2dShape s, bool backward) {
  const double x = (double)s.n * s.h * s.w * s.c, y = (double)s.n * conv2d_out_h(s) * conv2d_out_w(s) * s.k;
  const bool phases = s.stride_h * s.stride_w <= CONV2D_HALF_PHASES && s.dilation_h == 1 && s.dilation_w == 1;
  return x < INT_MAX / 2 && y < INT_MAX / 2 && (phases || !backward);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* y and dx */

/* Of a thread: which tap and channel its chunk of a row has in a step; -1 behind the last. */
typedef struct Conv2dHalfTap {
  int row, col, offset, weight; /* offset: in x, from the pixel's; weight: in a row of w */
} Conv2dHalfTap;

static __device__ __forceinline__ Conv2dHalfTap conv2d_half_tap(const Conv2dHalfPlan &plan, const Conv2dHalfAxis &row,
                                                                const Conv2dHalfAxis &col, int depth) {
  Conv2dHalfTap t = {1 << 29, 0, 0, -1}; /* outside of every image */
  if (depth >= row.taps * col.taps * plan.channels) return t;
  const int tap = depth / plan.channels, channel = depth % plan.channels, r = tap / col.taps, s = tap % col.taps;
  t.row = row.first + r * row.tap_step;
  t.col = col.first + s * col.tap_step;
  t.offset = (t.row * plan.w + t.col) * plan.channels + channel;
  t.weight =
      ((row.tap + r * row.tap_stride) * plan.filter_cols + col.tap + s * col.tap_stride) * plan.channels + channel;
  return t;
}

/* A block computes BM outputs of BN filters of a phase, a warp WM x WN of them, as conv2d_nhwc_mma_kernel. What
 * differs: the place of each chunk is an addition, not a division; a hundred instructions for 16 bytes were the limit.
 * */
template <typename T, int BM, int BN, int WM, int WN, int STAGES>
static __global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    conv2d_half_kernel(T *y, const T *x, const T *w, const float *bias, const __grid_constant__ Conv2dHalfPlan plan,
                       bool relu) {
  const int threads = BM / WM * (BN / WN) * 32, stage_bytes = (BM + BN) * CONV2D_TILE_ROW;
  const int lines = threads / CONV2D_TILE_CHUNKS, rows = BM / lines, filter_rows = (BN + lines - 1) / lines;
  extern __shared__ __align__(128) unsigned char conv2d_nhwc_tiles[];
  const Conv2dHalfAxis row = plan.row[blockIdx.z], col = plan.col[blockIdx.z];
  const int pixels = plan.images * row.count * col.count, pixel0 = blockIdx.x * BM, filter0 = blockIdx.y * BN;
  const int depth = row.taps * col.taps * plan.channels, steps = (depth + 63) / 64;
  const int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, line = threadIdx.x / CONV2D_TILE_CHUNKS;
  if (pixel0 >= pixels) return;

  int place_row[rows], place_col[rows],
      place[rows]; /* what tap (0,0) would read without padding, and its number in x */
#pragma unroll
  for (int i = 0; i < rows; i++) {
    const unsigned m = pixel0 + line + i * lines, up = m / col.count, image = up / row.count;
    const int first = (int)(up - image * row.count) * row.step;
    place_row[i] = (int)m < pixels ? first : -(1 << 28); /* no such pixel: outside of every image */
    place_col[i] = (int)(m - up * col.count) * col.step;
    place[i] = (int)m < pixels ? (((int)image * plan.h + first) * plan.w + place_col[i]) * plan.channels : 0;
  }
  float sum[WM / 16][WN / 8][4] = {};
  const int warp = threadIdx.x / 32, warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  for (int step = 1 - STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(STAGES - 2);
      __syncthreads();
    }
    const int next = step + STAGES - 1;
    if (next < steps) {
      unsigned char *tile = conv2d_nhwc_tiles + next % STAGES * stage_bytes;
      const Conv2dHalfTap t = conv2d_half_tap(plan, row, col, next * 64 + chunk * HALF_RUN);
#pragma unroll
      for (int i = 0; i < rows; i++) {
        const bool inside =
            (unsigned)(place_row[i] + t.row) < (unsigned)plan.h && (unsigned)(place_col[i] + t.col) < (unsigned)plan.w;
        __pipeline_memcpy_async(conv2d_chunk(tile, line + i * lines, chunk), inside ? x + place[i] + t.offset : x,
                                CONV2D_CHUNK_BYTES, inside ? 0 : CONV2D_CHUNK_BYTES);
      }
#pragma unroll
      for (int i = 0; i < filter_rows; i++) {
        const int own = line + i * lines, filter = filter0 + own;
        const bool inside = filter < plan.filters && t.weight >= 0;
        if (own < BN)
          __pipeline_memcpy_async(
              conv2d_chunk(tile + BM * CONV2D_TILE_ROW, own, chunk),
              inside ? w + filter * (plan.filter_rows * plan.filter_cols * plan.channels) + t.weight : w,
              CONV2D_CHUNK_BYTES, inside ? 0 : CONV2D_CHUNK_BYTES);
      }
    }
    __pipeline_commit();
    unsigned char *tile = conv2d_nhwc_tiles + (step + STAGES) % STAGES * stage_bytes;
    if (step >= 0) conv2d_nhwc_multiply<T, WM, WN>(sum, tile, tile + BM * CONV2D_TILE_ROW, warp_row, warp_col);
  }

  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int r = 0; r < WM / 16; r++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const unsigned m = pixel0 + warp_row + 16 * r + 8 * i + lane / 4, up = m / col.count, image = up / row.count;
      const int out_row = row.out_first + (int)(up - image * row.count) * row.out_step;
      const int out_col = col.out_first + (int)(m - up * col.count) * col.out_step;
      if ((int)m >= pixels) continue;
      T *out = y + (((int)image * plan.out_h + out_row) * plan.out_w + out_col) * plan.filters;
#pragma unroll
      for (int s = 0; s < WN / 8; s++)
        conv2d_nhwc_write(out, sum[r][s][2 * i], sum[r][s][2 * i + 1], bias, plan.biases,
                          filter0 + warp_col + 8 * s + lane % 4 * 2, plan.filters, relu, true);
    }
}

template <typename T, int BM, int BN, int WM, int WN, int STAGES>
static inline void conv2d_half_run(T *y, const T *x, const T *w, const float *bias, const Conv2dHalfPlan *plan,
                                   bool relu) {
  const int bytes = STAGES * (BM + BN) * CONV2D_TILE_ROW, threads = BM / WM * (BN / WN) * 32;
  /* the first phase has most outputs */
  const int pixels = plan->images * plan->row[0].count * plan->col[0].count;
  const dim3 grid((unsigned)(pixels + BM - 1) / BM, (unsigned)(plan->filters + BN - 1) / BN, (unsigned)plan->phases);
  shared_limit_ask((const void *)conv2d_half_kernel<T, BM, BN, WM, WN, STAGES>, bytes);
  conv2d_half_kernel<T, BM, BN, WM, WN, STAGES><<<grid, threads, bytes>>>(y, x, w, bias, *plan, relu);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void conv2d_half_launch(T *y, const T *x, const T *w, const float *bias, const Conv2dHalfPlan *plan,
                                      bool relu) {
  mma_require();
  if (plan->filters <= 16)
    conv2d_half_run<T, 128, 16, 32, 16, 2>(y, x, w, bias, plan, relu);
  else if (plan->filters <= 32)
    conv2d_half_run<T, 128, 32, 32, 32, 2>(y, x, w, bias, plan, relu);
  else
    conv2d_half_run<T, 64, 64, 32, 32, 3>(y, x, w, bias, plan, relu);
}

/* x (N,H,W,C'), w (K',R,S,C'), bias (K) or NULL -> y (N,P,Q,K'). s: with C and K as they are. */
template <typename T>
static inline void conv2d_half_forward(uint16_t *y, const uint16_t *x, const uint16_t *w, const float *bias,
                                       Conv2dShape s, bool relu) {
  const Conv2dShape whole = conv2d_half_shape(s);
  if (conv2d_half_fits(whole, false)) {
    Conv2dHalfPlan plan = conv2d_half_plan(whole, false);
    plan.biases = s.k;
    conv2d_half_launch((T *)y, (const T *)x, (const T *)w, bias, &plan, relu);
    return;
  }
  Conv2dGather g = conv2d_gather(whole, false);
  g.biases = s.k;
  mma_require();
  conv2d_nhwc_mma_run<T, 64, 64, 32, 32, 3, true, false>((T *)y, (const T *)x, (const T *)w, bias, &g, relu);
}

/* dy (N,P,Q,K'), turn (C',R,S,K') -> dx (N,H,W,C') */
template <typename T>
static inline void conv2d_half_backward_input(uint16_t *dx, const uint16_t *dy, const uint16_t *turn, Conv2dShape s) {
  const Conv2dShape whole = conv2d_half_shape(s);
  if (conv2d_half_fits(whole, true)) {
    const Conv2dHalfPlan plan = conv2d_half_plan(whole, true);
    conv2d_half_launch((T *)dx, (const T *)dy, (const T *)turn, NULL, &plan, false);
    return;
  }
  const Conv2dGather g = conv2d_gather(whole, true);
  mma_require();
  conv2d_nhwc_mma_run<T, 64, 64, 32, 32, 3, true, true>((T *)dx, (const T *)dy, (const T *)turn, NULL, &g, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dw: parts */

enum {
  CONV2D_HALF_PIXELS = 64, /* per step */
  CONV2D_HALF_THREADS = 128,
  CONV2D_HALF_TILE = CONV2D_HALF_PIXELS * CONV2D_TILE_ROW, /* bytes: 64 pixels of 64 numbers */
  CONV2D_HALF_BLOCKS = 264,                                /* two for each multiprocessor of an H200 */
  CONV2D_HALF_FEW_BLOCKS = 396, /* three: with few filters a block has two stages, and less shared memory */
};

/* Output pixels that a thread copies for, one in each of its rows: 64 further in each step. */
typedef struct Conv2dHalfPixel {
  int image, p, q;
} Conv2dHalfPixel;

static __device__ __forceinline__ void conv2d_half_advance(Conv2dHalfPixel *pixel, const Conv2dGather &g) {
  pixel->q += CONV2D_HALF_PIXELS;
  while (pixel->q >= g.q_count) {
    pixel->q -= g.q_count;
    if (++pixel->p < g.p_count) continue;
    pixel->p = 0;
    pixel->image++;
  }
}

/* Of a thread's chunk of a row of A: what its tap adds to the row and the column, and its channel; the row of a chunk
 * behind the last column is outside of every image. */
typedef struct Conv2dHalfColumn {
  int row, col, channel;
} Conv2dHalfColumn;

static __device__ __forceinline__ Conv2dHalfColumn conv2d_half_column(const Conv2dGather &g, int d) {
  const int tap = d / g.channels;
  const Conv2dHalfColumn column = {d < g.taps * g.channels ? tap / g.s * g.dilation_h - g.padding_h : 1 << 29,
                                   tap % g.s * g.dilation_w - g.padding_w, d % g.channels};
  return column;
}

enum {
  CONV2D_HALF_LINES = CONV2D_HALF_THREADS / CONV2D_TILE_CHUNKS,
  CONV2D_HALF_ROWS = CONV2D_HALF_PIXELS / CONV2D_HALF_LINES
};

/* Starts the copies of 64 pixels of A, 64 TILES columns, and of dy, 16 FILTERS16 filters from filter0 on; pixel0:
 * number of the first pixel. */
template <typename T, int FILTERS16, int TILES>
static __device__ __forceinline__ void conv2d_half_load(unsigned char *tiles, const T *dy, const T *x,
                                                        const Conv2dGather &g, const Conv2dHalfPixel *pixel,
                                                        const Conv2dHalfColumn *column, int filter0, long long pixel0,
                                                        long long end) {
  const int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, k = filter0 + chunk * HALF_RUN;
#pragma unroll
  for (int i = 0; i < CONV2D_HALF_ROWS; i++) {
    const int row = threadIdx.x / CONV2D_TILE_CHUNKS + i * CONV2D_HALF_LINES;
    const long long m = pixel0 + row;
    const bool exists = m < end;
    if (chunk < 2 * FILTERS16) {
      const bool inside = exists && k < g.filters;
      __pipeline_memcpy_async(conv2d_chunk(tiles, row, chunk), inside ? dy + m * g.filters + k : dy, CONV2D_CHUNK_BYTES,
                              inside ? 0 : CONV2D_CHUNK_BYTES);
    }
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      const int h = pixel[i].p * g.stride_h + column[t].row, w = pixel[i].q * g.stride_w + column[t].col;
      const bool inside = exists && (unsigned)h < (unsigned)g.h && (unsigned)w < (unsigned)g.w;
      const size_t from = ((size_t)pixel[i].image * g.h + h) * g.w + w;
      __pipeline_memcpy_async(conv2d_chunk(tiles + (1 + t) * CONV2D_HALF_TILE, row, chunk),
                              inside ? x + from * g.channels + column[t].channel : x, CONV2D_CHUNK_BYTES,
                              inside ? 0 : CONV2D_CHUNK_BYTES);
    }
  }
}

/* sum (16 FILTERS16 filters, 16 TILES columns) += dy^T A over 64 pixels; the warp's columns begin at warp_col. */
template <typename T, int FILTERS16, int TILES>
static __device__ __forceinline__ void conv2d_half_multiply(float (&sum)[FILTERS16][2 * TILES][4], unsigned char *tiles,
                                                            int warp_col) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CONV2D_HALF_PIXELS; i += 16) {
    uint32_t left[FILTERS16][4], right[TILES][4];
#pragma unroll
    for (int r = 0; r < FILTERS16; r++)
      mma_load_matrices<true>(
          left[r], (const __nv_bfloat16 *)conv2d_chunk(tiles, i + lane / 16 * 8 + lane % 8, 2 * r + lane / 8 % 2));
#pragma unroll
    for (int s = 0; s < TILES; s++) {
      const int column = warp_col + 16 * s;
      unsigned char *tile = tiles + (1 + column / 64) * CONV2D_HALF_TILE;
      mma_load_matrices<true>(right[s],
                              (const __nv_bfloat16 *)conv2d_chunk(tile, i + lane % 16, column % 64 / 8 + lane / 16));
    }
#pragma unroll
    for (int r = 0; r < FILTERS16; r++)
#pragma unroll
      for (int s = 0; s < 2 * TILES; s++)
        conv2d_mma(T(), sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

/* Few products per byte: blocks beside each other hide the memory's latency better than stages of one. */
static __host__ __device__ constexpr int conv2d_half_stages(int filters16) { return filters16 < 4 ? 2 : 3; }

/* partial (splits, K', R S C'): a block has 16 FILTERS16 filters, 64 TILES columns and a part of the pixels. */
template <typename T, int FILTERS16, int TILES>
static __global__ void __launch_bounds__(CONV2D_HALF_THREADS)
    conv2d_half_weight_kernel(float *partial, const T *dy, const T *x, Conv2dGather g) {
  extern __shared__ __align__(128) unsigned char conv2d_nhwc_tiles[];
  const int splits = gridDim.z, split = blockIdx.z, depth = g.taps * g.channels;
  const int filter0 = blockIdx.y * 16 * FILTERS16, depth0 = blockIdx.x * 64 * TILES;
  const long long pixels = (long long)g.images * g.p_count * g.q_count;
  const long long first = pixels * split / splits, end = pixels * (split + 1) / splits;
  const int steps = (int)((end - first + CONV2D_HALF_PIXELS - 1) / CONV2D_HALF_PIXELS);
  const int lane = threadIdx.x % 32, warp_col = threadIdx.x / 32 * 16 * TILES;
  const int stage_bytes = (1 + TILES) * CONV2D_HALF_TILE, stages = conv2d_half_stages(FILTERS16);
  Conv2dHalfPixel pixel[CONV2D_HALF_ROWS];
  Conv2dHalfColumn column[TILES];
#pragma unroll
  for (int i = 0; i < CONV2D_HALF_ROWS; i++) {
    const long long m = first + threadIdx.x / CONV2D_TILE_CHUNKS + i * CONV2D_HALF_LINES;
    pixel[i].q = (int)(m % g.q_count);
    pixel[i].p = (int)(m / g.q_count % g.p_count);
    pixel[i].image = (int)(m / g.q_count / g.p_count);
  }
#pragma unroll
  for (int t = 0; t < TILES; t++)
    column[t] = conv2d_half_column(g, depth0 + t * 64 + (int)threadIdx.x % CONV2D_TILE_CHUNKS * HALF_RUN);
  float sum[FILTERS16][2 * TILES][4] = {};
  for (int step = 1 - stages; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(stages - 2);
      __syncthreads();
    }
    const int next = step + stages - 1;
    if (next < steps) {
      conv2d_half_load<T, FILTERS16, TILES>(conv2d_nhwc_tiles + next % stages * stage_bytes, dy, x, g, pixel, column,
                                            filter0, first + (long long)next * CONV2D_HALF_PIXELS, end);
#pragma unroll
      for (int i = 0; i < CONV2D_HALF_ROWS; i++) conv2d_half_advance(&pixel[i], g);
    }
    __pipeline_commit();
    if (step >= 0)
      conv2d_half_multiply<T, FILTERS16, TILES>(sum, conv2d_nhwc_tiles + step % stages * stage_bytes, warp_col);
  }
  partial += (size_t)split * g.filters * depth;
#pragma unroll
  for (int r = 0; r < FILTERS16; r++)
#pragma unroll
    for (int s = 0; s < 2 * TILES; s++)
#pragma unroll
      for (int i = 0; i < 4; i += 2) { /* the depth is a multiple of 8: both columns are inside, or none */
        const int k = filter0 + 16 * r + 4 * i + lane / 4, d = depth0 + warp_col + 8 * s + lane % 4 * 2;
        if (k < g.filters && d < depth)
          *(float2 *)&partial[(size_t)k * depth + d] = make_float2(sum[r][s][i], sum[r][s][i + 1]);
      }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dw: sums of the parts */

/* partial (splits, K', pixels, C') -> out (K, C, pixels): a thread has a number of the padded array, and 8 threads
 * share out its parts. */
static __global__ void __launch_bounds__(CONV2D_ADD_THREADS)
    conv2d_half_add_kernel(float *out, const float *partial, size_t count, int splits, int filters, int channels,
                           int channels_all, int pixels) {
  __shared__ float part[CONV2D_ADD_ROWS][CONV2D_ADD_COLS];
  const int col = threadIdx.x % CONV2D_ADD_COLS, row = threadIdx.x / CONV2D_ADD_COLS;
  const size_t i = (size_t)blockIdx.x * CONV2D_ADD_COLS + col;
  float sum = 0;
#pragma unroll 4
  for (int split = row; split < splits && i < count; split += CONV2D_ADD_ROWS) sum += partial[split * count + i];
  part[row][col] = sum;
  __syncthreads();
  const int c = (int)(i % channels_all), pixel = (int)(i / channels_all % pixels);
  const size_t k = i / channels_all / pixels;
  if (row != 0 || i >= count || c >= channels || k >= (size_t)filters) return;
  for (int r = 1; r < CONV2D_ADD_ROWS; r++) sum += part[r][col];
  out[(k * channels + c) * pixels + pixel] = sum;
}

/* rows: K' */
static inline void conv2d_half_add(float *out, const float *partial, int splits, int rows, int filters, int channels,
                                   int pixels) {
  const size_t count = (size_t)rows * pixels * half_channels(channels);
  conv2d_half_add_kernel<<<(unsigned)((count + CONV2D_ADD_COLS - 1) / CONV2D_ADD_COLS), CONV2D_ADD_THREADS>>>(
      out, partial, count, splits, filters, channels, half_channels(channels), pixels);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dw: launchers */

/* Tiles of 64 columns of a block: three where there are more than one. */
static inline int conv2d_half_tiles(const Conv2dGather *g) { return g->taps * g->channels <= 64 ? 1 : 3; }

static inline int conv2d_half_filters16(const Conv2dGather *g) {
  return g->filters <= 16 ? 1 : g->filters <= 32 ? 2 : 4;
}

/* Blocks along the columns and the filters. */
static inline dim3 conv2d_half_grid(const Conv2dGather *g) {
  const int columns = 64 * conv2d_half_tiles(g), rows = 16 * conv2d_half_filters16(g);
  return dim3((unsigned)(g->taps * g->channels + columns - 1) / columns, (unsigned)(g->filters + rows - 1) / rows);
}

/* So many parts that every multiprocessor has its blocks, and no part is shorter than two steps. */
static inline int conv2d_half_splits(const Conv2dGather *g) {
  const dim3 grid = conv2d_half_grid(g);
  const double most = (double)g->images * g->p_count * g->q_count / (2 * CONV2D_HALF_PIXELS);
  const int blocks = conv2d_half_filters16(g) < 4 ? CONV2D_HALF_FEW_BLOCKS : CONV2D_HALF_BLOCKS;
  double splits = blocks / ((double)grid.x * grid.y);
  if (splits > most) splits = most;
  return splits < 1 ? 1 : (int)splits;
}

/* Floats of workspace for conv2d_half_backward_weight(). */
static inline size_t conv2d_half_floats(Conv2dShape s) {
  const Conv2dShape whole = conv2d_half_shape(s);
  const Conv2dGather g = conv2d_gather(whole, false);
  const size_t weights = conv2d_half_splits(&g) * conv2d_w_count(whole);
  const size_t bias = (size_t)conv2d_nhwc_bias_splits(whole) * whole.k;
  return weights > bias ? weights : bias;
}

template <typename T, int FILTERS16, int TILES>
static inline void conv2d_half_weight_run(float *partial, const T *dy, const T *x, const Conv2dGather *g, int splits) {
  const int bytes = conv2d_half_stages(FILTERS16) * (1 + TILES) * CONV2D_HALF_TILE;
  dim3 grid = conv2d_half_grid(g);
  grid.z = (unsigned)splits;
  shared_limit_ask((const void *)conv2d_half_weight_kernel<T, FILTERS16, TILES>, bytes);
  conv2d_half_weight_kernel<T, FILTERS16, TILES><<<grid, CONV2D_HALF_THREADS, bytes>>>(partial, dy, x, *g);
  CUDA_CHECK_LAUNCH();
}

template <typename T, int TILES>
static inline void conv2d_half_weight_of(float *partial, const T *dy, const T *x, const Conv2dGather *g, int splits) {
  switch (conv2d_half_filters16(g)) {
    case 1:
      conv2d_half_weight_run<T, 1, TILES>(partial, dy, x, g, splits);
      break;
    case 2:
      conv2d_half_weight_run<T, 2, TILES>(partial, dy, x, g, splits);
      break;
    default:
      conv2d_half_weight_run<T, 4, TILES>(partial, dy, x, g, splits);
      break;
  }
}

/* dbias (K): the sums of dy, in parts. */
template <typename T>
static inline void conv2d_half_bias(float *dbias, const T *dy, Conv2dShape s, float *workspace) {
  const Conv2dShape whole = conv2d_half_shape(s);
  const int splits = conv2d_nhwc_bias_splits(whole);
  const long long pixels = (long long)s.n * conv2d_out_h(s) * conv2d_out_w(s);
  const dim3 block(CONV2D_ADD_COLS, CONV2D_ADD_ROWS), grid((unsigned)(whole.k + 31) / 32, (unsigned)splits);
  conv2d_nhwc_bias_kernel<<<grid, block>>>(workspace, dy, whole.k, pixels);
  CUDA_CHECK_LAUNCH();
  conv2d_half_add(dbias, workspace, splits, 1, 1, s.k, 1);
}

/* dy (N,P,Q,K'), x (N,H,W,C') -> dw (K,C,R,S) float32 and, unless it is NULL, dbias (K) */
template <typename T>
static inline void conv2d_half_backward_weight(float *dw, float *dbias, const uint16_t *dy, const uint16_t *x,
                                               Conv2dShape s, float *workspace) {
  mma_require();
  const Conv2dGather g = conv2d_gather(conv2d_half_shape(s), false);
  const int splits = conv2d_half_splits(&g);
  if (conv2d_half_tiles(&g) == 1)
    conv2d_half_weight_of<T, 1>(workspace, (const T *)dy, (const T *)x, &g, splits);
  else
    conv2d_half_weight_of<T, 3>(workspace, (const T *)dy, (const T *)x, &g, splits);
  conv2d_half_add(dw, workspace, splits, g.filters, s.k, s.c, s.r * s.s);
  if (dbias != NULL) conv2d_half_bias(dbias, (const T *)dy, s, workspace);
}

#endif /* PHASE3_CNN_CONV2D_HALF_CUH */

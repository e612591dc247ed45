/* conv2d_half.cuh - convolution of 16 bits and its gradients, as networks in half precision compute them: NHWC, channels
 * filled up to multiples of 8 (common/half.h), T is __nv_bfloat16 or __half, sums are float32, mma.sync.
 *
 *     y  (N P Q, K)    = A (N P Q, R S C) w (K, R S C)^T
 *     dx (N H W, C)    = A'(N H W, R S K) turn (C, R S K)^T
 *     dw (K, R S C)    = dy (N P Q, K)^T A (N P Q, R S C)
 *
 * The kernel of y and dx is that of conv2d_nhwc_mma.cuh. The networks here have 16 to 128 filters, fewer than a tile of
 * 64: so there are tiles for 16 and for 32, of 128 pixels each; a tile of 64 would multiply zeros in three of four
 * products.
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
/* y and dx */

template <typename T, bool BACKWARD>
static inline void conv2d_half_run(T *y, const T *x, const T *w, const float *bias, const Conv2dGather *g, bool relu) {
  mma_require();
  if (g->filters <= 16)
    conv2d_nhwc_mma_run<T, 128, 16, 32, 16, 3, true, BACKWARD>(y, x, w, bias, g, relu);
  else if (g->filters <= 32)
    conv2d_nhwc_mma_run<T, 128, 32, 32, 32, 3, true, BACKWARD>(y, x, w, bias, g, relu);
  else
    conv2d_nhwc_mma_run<T, 64, 64, 32, 32, 3, true, BACKWARD>(y, x, w, bias, g, relu);
}

/* x (N,H,W,C'), w (K',R,S,C'), bias (K) or NULL -> y (N,P,Q,K'). s: with C and K as they are. */
template <typename T>
static inline void conv2d_half_forward(uint16_t *y, const uint16_t *x, const uint16_t *w, const float *bias,
                                       Conv2dShape s, bool relu) {
  Conv2dGather g = conv2d_gather(conv2d_half_shape(s), false);
  g.biases = s.k;
  conv2d_half_run<T, false>((T *)y, (const T *)x, (const T *)w, bias, &g, relu);
}

/* dy (N,P,Q,K'), turn (C',R,S,K') -> dx (N,H,W,C') */
template <typename T>
static inline void conv2d_half_backward_input(uint16_t *dx, const uint16_t *dy, const uint16_t *turn, Conv2dShape s) {
  const Conv2dGather g = conv2d_gather(conv2d_half_shape(s), true);
  conv2d_half_run<T, true>((T *)dx, (const T *)dy, (const T *)turn, NULL, &g, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dw: parts */

enum {
  CONV2D_HALF_PIXELS = 64, /* per step */
  CONV2D_HALF_THREADS = 128,
  CONV2D_HALF_STAGES = 3,
  CONV2D_HALF_TILE = CONV2D_HALF_PIXELS * CONV2D_TILE_ROW, /* bytes: 64 pixels of 64 numbers */
  CONV2D_HALF_BLOCKS = 264,
};

/* Starts the copies of 64 pixels of A, 64 TILES columns from depth0 on, and of dy, 16 FILTERS16 filters from filter0. */
template <typename T, int FILTERS16, int TILES>
static __device__ __forceinline__ void conv2d_half_load(unsigned char *tiles, const T *dy, const T *x,
                                                        const Conv2dGather &g, int filter0, int depth0,
                                                        long long pixel0, long long end) {
  const int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, depth = g.taps * g.channels, k = filter0 + chunk * HALF_RUN;
#pragma unroll
  for (int i = 0; i < CONV2D_HALF_PIXELS * CONV2D_TILE_CHUNKS / CONV2D_HALF_THREADS; i++) {
    const int row = threadIdx.x / CONV2D_TILE_CHUNKS + i * (CONV2D_HALF_THREADS / CONV2D_TILE_CHUNKS);
    const long long m = pixel0 + row;
    if (chunk < 2 * FILTERS16) {
      const bool inside = m < end && k < g.filters;
      __pipeline_memcpy_async(conv2d_chunk(tiles, row, chunk), inside ? dy + m * g.filters + k : dy, CONV2D_CHUNK_BYTES,
                              inside ? 0 : CONV2D_CHUNK_BYTES);
    }
    const Conv2dNhwcPixel pixel = conv2d_gather_pixel<false>(g, m);
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      const int d = depth0 + t * 64 + chunk * HALF_RUN, tap = d / g.channels;
      const long long from = m < end && d < depth ? conv2d_gather_tap<false>(g, pixel, tap / g.s, tap % g.s) : -1;
      __pipeline_memcpy_async(conv2d_chunk(tiles + (1 + t) * CONV2D_HALF_TILE, row, chunk),
                              from >= 0 ? x + from * g.channels + d % g.channels : x, CONV2D_CHUNK_BYTES,
                              from >= 0 ? 0 : CONV2D_CHUNK_BYTES);
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
      mma_load_matrices<true>(left[r], (const __nv_bfloat16 *)conv2d_chunk(tiles, i + lane / 16 * 8 + lane % 8,
                                                                           2 * r + lane / 8 % 2));
#pragma unroll
    for (int s = 0; s < TILES; s++) {
      const int column = warp_col + 16 * s;
      unsigned char *tile = tiles + (1 + column / 64) * CONV2D_HALF_TILE;
      mma_load_matrices<true>(
          right[s], (const __nv_bfloat16 *)conv2d_chunk(tile, i + lane % 16, column % 64 / 8 + lane / 16));
    }
#pragma unroll
    for (int r = 0; r < FILTERS16; r++)
#pragma unroll
      for (int s = 0; s < 2 * TILES; s++)
        conv2d_mma(T(), sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

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
  const int stage_bytes = (1 + TILES) * CONV2D_HALF_TILE;
  float sum[FILTERS16][2 * TILES][4] = {};
  for (int step = 1 - CONV2D_HALF_STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(CONV2D_HALF_STAGES - 2);
      __syncthreads();
    }
    const int next = step + CONV2D_HALF_STAGES - 1;
    if (next < steps)
      conv2d_half_load<T, FILTERS16, TILES>(conv2d_nhwc_tiles + next % CONV2D_HALF_STAGES * stage_bytes, dy, x, g,
                                            filter0, depth0, first + (long long)next * CONV2D_HALF_PIXELS, end);
    __pipeline_commit();
    if (step >= 0)
      conv2d_half_multiply<T, FILTERS16, TILES>(
          sum, conv2d_nhwc_tiles + step % CONV2D_HALF_STAGES * stage_bytes, warp_col);
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

/* partial (splits, K', pixels, C') -> out (K, C, pixels): a thread has a number of the padded array, and 8 threads share
 * out its parts. */
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

/* So many parts that every multiprocessor has two blocks, and no part is shorter than two steps. */
static inline int conv2d_half_splits(const Conv2dGather *g) {
  const dim3 grid = conv2d_half_grid(g);
  const double most = (double)g->images * g->p_count * g->q_count / (2 * CONV2D_HALF_PIXELS);
  double splits = CONV2D_HALF_BLOCKS / ((double)grid.x * grid.y);
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
  const int bytes = CONV2D_HALF_STAGES * (1 + TILES) * CONV2D_HALF_TILE;
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

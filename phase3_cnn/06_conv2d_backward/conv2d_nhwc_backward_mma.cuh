/* conv2d_nhwc_backward_mma.cuh - gradients of the weights and of the bias in NHWC (conv2d_nhwc.cuh), on tensor cores
 * with mma.sync: bfloat16 or half, float32 sums.
 *
 *     dw (K, R S C) = dy (N P Q, K)^T A (N P Q, R S C)      dbias (K) = sum of dy over the pixels
 *
 * A is the matrix of the forward pass (conv2d_nhwc_mma.cuh), gathered and never stored. The depth of this product is
 * the number of output pixels: 200,704 in the first layers of a ResNet at batch 64, and the result is small, 64 x
 * 576. So the pixels are split: each block sums a part of them for its tile of dw, to `workspace`, and a second
 * kernel adds the parts, always in the same order, so that dw is the same in every run. Pixels are the rows of both
 * tiles in shared memory; ldmatrix transposes them on the way to registers.
 *
 *   conv2d_backward_weight_nhwc_mma   every shape. The gradient of the input is in conv2d_nhwc_mma.cuh
 *   conv2d_nhwc_add_splits            the second kernel
 *   conv2d_nhwc_bias_gradient         dbias, split in the same way
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_BACKWARD_MMA_CUH
#define PHASE3_CNN_CONV2D_NHWC_BACKWARD_MMA_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Parts to sums */

enum { CONV2D_ADD_COLS = 32, CONV2D_ADD_ROWS = 8, CONV2D_ADD_THREADS = CONV2D_ADD_COLS * CONV2D_ADD_ROWS };

/* NUMBERS neighbours of partial[i] on. */
template <int NUMBERS>
static __device__ __forceinline__ void conv2d_add_load(float (&x)[4], const float *partial) {
  if (NUMBERS == 4) {
    float4 four = *(const float4 *)partial;
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
  } else {
    x[0] = *partial;
  }
}

/* out (count) = sum of partial (splits,count). A thread adds up NUMBERS neighbours (1 or 4); ROWS threads share out the
 * splits of these, and one of them adds their sums. */
template <typename T, int NUMBERS, int ROWS>
static __global__ void __launch_bounds__(CONV2D_ADD_THREADS)
    conv2d_nhwc_add_splits_kernel(T *out, const float *partial, size_t count, int splits) {
  const int cols = CONV2D_ADD_THREADS / ROWS;
  __shared__ float part[ROWS][cols][NUMBERS];
  int col = threadIdx.x % cols, row = threadIdx.x / cols;
  size_t i = ((size_t)blockIdx.x * cols + col) * NUMBERS;
  float sum[4] = {};
  for (int split = row; split < splits && i < count; split += ROWS) {
    float x[4];
    conv2d_add_load<NUMBERS>(x, partial + split * count + i);
#pragma unroll
    for (int e = 0; e < NUMBERS; e++) sum[e] += x[e];
  }
  for (int e = 0; e < NUMBERS && ROWS > 1; e++) part[row][col][e] = sum[e];
  if (ROWS > 1) __syncthreads();
  if (row != 0 || i >= count) return;
  for (int r = 1; r < ROWS; r++)
#pragma unroll
    for (int e = 0; e < NUMBERS; e++) sum[e] += part[r][col][e];
#pragma unroll
  for (int e = 0; e < NUMBERS; e++) conv2d_narrow(&out[i + e], sum[e]);
}

template <typename T, int NUMBERS, int ROWS>
static inline void conv2d_nhwc_add_splits_run(T *out, const float *partial, size_t count, int splits) {
  size_t each = (size_t)CONV2D_ADD_THREADS / ROWS * NUMBERS;
  conv2d_nhwc_add_splits_kernel<T, NUMBERS, ROWS>
      <<<(unsigned)((count + each - 1) / each), CONV2D_ADD_THREADS>>>(out, partial, count, splits);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void conv2d_nhwc_add_splits(T *out, const float *partial, size_t count, int splits) {
  bool fours = count % 4 == 0 && (uintptr_t)partial % 16 == 0;
  if (fours && splits <= CONV2D_ADD_ROWS)
    conv2d_nhwc_add_splits_run<T, 4, 1>(out, partial, count, splits);
  else if (fours)
    conv2d_nhwc_add_splits_run<T, 4, CONV2D_ADD_ROWS>(out, partial, count, splits);
  else
    conv2d_nhwc_add_splits_run<T, 1, CONV2D_ADD_ROWS>(out, partial, count, splits);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dbias */

enum { CONV2D_BIAS_PIXELS = 1024, CONV2D_BIAS_SPLITS = 256 };

/* partial (splits,K): a block adds up 32 filters of a part of the pixels. */
template <typename T>
static __global__ void __launch_bounds__(CONV2D_ADD_THREADS)
    conv2d_nhwc_bias_kernel(float *partial, const T *dy, int filters, long long pixels) {
  __shared__ float part[CONV2D_ADD_ROWS][CONV2D_ADD_COLS];
  int k = blockIdx.x * CONV2D_ADD_COLS + threadIdx.x, split = blockIdx.y, splits = gridDim.y;
  long long first = pixels * split / splits, last = pixels * (split + 1) / splits;
  float sum = 0;
  for (long long m = first + threadIdx.y; m < last && k < filters; m += CONV2D_ADD_ROWS)
    sum += conv2d_widen(dy[m * filters + k]);
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || k >= filters) return;
  for (int y = 1; y < CONV2D_ADD_ROWS; y++) sum += part[y][threadIdx.x];
  partial[(size_t)split * filters + k] = sum;
}

static inline int conv2d_nhwc_bias_splits(Conv2dShape s) {
  double parts = (double)s.n * conv2d_out_h(s) * conv2d_out_w(s) / CONV2D_BIAS_PIXELS + 1;
  return parts < CONV2D_BIAS_SPLITS ? (int)parts : CONV2D_BIAS_SPLITS;
}

/* dy (N,P,Q,K) -> dbias (K). workspace: K floats for each of conv2d_nhwc_bias_splits() parts */
template <typename T>
static inline void conv2d_nhwc_bias_gradient(float *dbias, const T *dy, Conv2dShape s, float *workspace) {
  int splits = conv2d_nhwc_bias_splits(s);
  long long pixels = (long long)s.n * conv2d_out_h(s) * conv2d_out_w(s);
  dim3 block(CONV2D_ADD_COLS, CONV2D_ADD_ROWS), grid((unsigned)(s.k + 31) / 32, (unsigned)splits);
  conv2d_nhwc_bias_kernel<<<grid, block>>>(workspace, dy, s.k, pixels);
  CUDA_CHECK_LAUNCH();
  conv2d_nhwc_add_splits(dbias, workspace, s.k, splits);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* dw */

enum {
  CONV2D_DW_TILE = 64, /* filters, columns of A, and pixels per step: rows of 128 bytes */
  CONV2D_DW_THREADS = 128,
  CONV2D_DW_STAGES = 3,
  CONV2D_DW_WARP = 32,
  CONV2D_DW_BYTES = CONV2D_DW_TILE * CONV2D_TILE_ROW,
};

/* Starts the copies of 64 rows of dy, 64 filters of the group from filter0 on. */
template <typename T, bool VECTOR>
static __device__ __forceinline__ void conv2d_dw_load_dy(unsigned char *tile, const T *dy, const Conv2dGather &g,
                                                         int group, int filter0, long long pixel0, long long end) {
  const int count = CONV2D_CHUNK_BYTES / (int)sizeof(T);
  int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, k = filter0 + chunk * count;
#pragma unroll
  for (int row = threadIdx.x / CONV2D_TILE_CHUNKS; row < CONV2D_DW_TILE;
       row += CONV2D_DW_THREADS / CONV2D_TILE_CHUNKS) {
    unsigned char *to = conv2d_chunk(tile, row, chunk);
    long long m = pixel0 + row;
    const T *from = dy + m * g.groups * g.filters + group * g.filters + k;
    if (VECTOR) {
      bool inside = m < end && k < g.filters;
      __pipeline_memcpy_async(to, inside ? from : dy, CONV2D_CHUNK_BYTES, inside ? 0 : CONV2D_CHUNK_BYTES);
    } else {
#pragma unroll
      for (int e = 0; e < count; e++) ((T *)to)[e] = m < end && k + e < g.filters ? from[e] : T(0.0f);
    }
  }
}

/* The same rows of A, columns depth0 to depth0 + 63. */
template <typename T, bool VECTOR>
static __device__ __forceinline__ void conv2d_dw_load_x(unsigned char *tile, const T *x, const Conv2dGather &g,
                                                        int group, int depth0, long long pixel0, long long end) {
  const int count = CONV2D_CHUNK_BYTES / (int)sizeof(T);
  int chunk = threadIdx.x % CONV2D_TILE_CHUNKS, d = depth0 + chunk * count, depth = g.taps * g.channels;
#pragma unroll
  for (int row = threadIdx.x / CONV2D_TILE_CHUNKS; row < CONV2D_DW_TILE;
       row += CONV2D_DW_THREADS / CONV2D_TILE_CHUNKS) {
    unsigned char *to = conv2d_chunk(tile, row, chunk);
    Conv2dNhwcPixel pixel = conv2d_gather_pixel<false>(g, pixel0 + row);
    bool inside = pixel0 + row < end;
    if (VECTOR) {
      int tap = d / g.channels;
      long long from = inside && d < depth ? conv2d_gather_tap<false>(g, pixel, tap / g.s, tap % g.s) : -1;
      const T *source = from >= 0 ? x + from * g.channels_all + group * g.channels + d % g.channels : x;
      __pipeline_memcpy_async(to, source, CONV2D_CHUNK_BYTES, from >= 0 ? 0 : CONV2D_CHUNK_BYTES);
    } else {
#pragma unroll
      for (int e = 0; e < count; e++) {
        int tap = (d + e) / g.channels;
        long long from = inside && d + e < depth ? conv2d_gather_tap<false>(g, pixel, tap / g.s, tap % g.s) : -1;
        ((T *)to)[e] = from >= 0 ? x[from * g.channels_all + group * g.channels + (d + e) % g.channels] : T(0.0f);
      }
    }
  }
}

/* sum (32 filters, 32 columns) += dy^T A over 64 pixels, for the warp at (warp_row, warp_col) of the tile. */
template <typename T>
static __device__ __forceinline__ void conv2d_dw_multiply(float (&sum)[2][4][4], unsigned char *dy_tile,
                                                          unsigned char *x_tile, int warp_row, int warp_col) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < CONV2D_DW_TILE; i += 16) {
    uint32_t left[2][4], right[2][4];
#pragma unroll
    for (int r = 0; r < 2; r++) { /* .trans: filters 0 to 7, 8 to 15 of pixels 0 to 7; then of pixels 8 to 15 */
      int row = i + lane / 16 * 8 + lane % 8, chunk = (warp_row + 16 * r) / 8 + lane / 8 % 2;
      mma_load_matrices<true>(left[r], (const __nv_bfloat16 *)conv2d_chunk(dy_tile, row, chunk));
    }
#pragma unroll
    for (int s = 0; s < 2; s++)
      mma_load_matrices<true>(
          right[s], (const __nv_bfloat16 *)conv2d_chunk(x_tile, i + lane % 16, (warp_col + 16 * s) / 8 + lane / 16));
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int s = 0; s < 4; s++)
        conv2d_mma(T(), sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

/* partial (splits, K, R S C): a block has 64 filters of a group, 64 columns and a part of the pixels. */
template <typename T, bool VECTOR>
static __global__ void __launch_bounds__(CONV2D_DW_THREADS)
    conv2d_dw_mma_kernel(float *partial, const T *dy, const T *x, Conv2dGather g, int splits) {
  extern __shared__ __align__(128) unsigned char conv2d_nhwc_tiles[];
  int group = blockIdx.z / splits, split = blockIdx.z % splits;
  int filter0 = blockIdx.y * CONV2D_DW_TILE, depth0 = blockIdx.x * CONV2D_DW_TILE, depth = g.taps * g.channels;
  long long pixels = (long long)g.images * g.p_count * g.q_count;
  long long first = pixels * split / splits, end = pixels * (split + 1) / splits;
  int steps = (int)((end - first + CONV2D_DW_TILE - 1) / CONV2D_DW_TILE);
  int warp = threadIdx.x / 32, warp_row = warp / 2 * CONV2D_DW_WARP, warp_col = warp % 2 * CONV2D_DW_WARP;
  float sum[2][4][4] = {};
  for (int step = 1 - CONV2D_DW_STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(CONV2D_DW_STAGES - 2);
      __syncthreads();
    }
    int next = step + CONV2D_DW_STAGES - 1;
    if (next < steps) {
      unsigned char *tiles = conv2d_nhwc_tiles + next % CONV2D_DW_STAGES * 2 * CONV2D_DW_BYTES;
      long long pixel0 = first + (long long)next * CONV2D_DW_TILE;
      conv2d_dw_load_dy<T, VECTOR>(tiles, dy, g, group, filter0, pixel0, end);
      conv2d_dw_load_x<T, VECTOR>(tiles + CONV2D_DW_BYTES, x, g, group, depth0, pixel0, end);
    }
    __pipeline_commit();
    unsigned char *tiles = conv2d_nhwc_tiles + (step + CONV2D_DW_STAGES) % CONV2D_DW_STAGES * 2 * CONV2D_DW_BYTES;
    if (step >= 0) conv2d_dw_multiply<T>(sum, tiles, tiles + CONV2D_DW_BYTES, warp_row, warp_col);
  }
  int lane = threadIdx.x % 32;
  partial += ((size_t)split * g.groups + group) * g.filters * depth;
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int k = filter0 + warp_row + 16 * r + i / 2 * 8 + lane / 4,
            d = depth0 + warp_col + 8 * s + lane % 4 * 2 + i % 2;
        if (k < g.filters && d < depth) partial[(size_t)k * depth + d] = sum[r][s][i];
      }
}

/* So many parts that every multiprocessor has two blocks, and no part is shorter than two steps. */
static inline int conv2d_dw_splits(Conv2dShape s) {
  Conv2dGather g = conv2d_gather(s, false);
  double tiles =
      ceil(g.filters / (double)CONV2D_DW_TILE) * ceil(g.taps * (double)g.channels / CONV2D_DW_TILE) * g.groups;
  double most = (double)g.images * g.p_count * g.q_count / (2 * CONV2D_DW_TILE), splits = 264 / tiles;
  if (splits > most) splits = most;
  return splits < 1 ? 1 : (int)splits;
}

/* Floats of workspace for conv2d_backward_weight_nhwc_mma(). */
static inline size_t conv2d_dw_floats(Conv2dShape s) {
  size_t weights = conv2d_dw_splits(s) * conv2d_w_count(s), bias = (size_t)conv2d_nhwc_bias_splits(s) * s.k;
  return weights > bias ? weights : bias;
}

template <typename T, bool VECTOR>
static inline void conv2d_dw_mma_run(float *partial, const T *dy, const T *x, const Conv2dGather *g, int splits) {
  const int bytes = CONV2D_DW_STAGES * 2 * CONV2D_DW_BYTES;
  shared_limit_ask((const void *)conv2d_dw_mma_kernel<T, VECTOR>, bytes);
  dim3 grid((unsigned)(g->taps * g->channels + CONV2D_DW_TILE - 1) / CONV2D_DW_TILE,
            (unsigned)(g->filters + CONV2D_DW_TILE - 1) / CONV2D_DW_TILE, (unsigned)(g->groups * splits));
  conv2d_dw_mma_kernel<T, VECTOR><<<grid, CONV2D_DW_THREADS, bytes>>>(partial, dy, x, *g, splits);
  CUDA_CHECK_LAUNCH();
}

/* dy (N,P,Q,K), x (N,H,W,C) -> dw (K,R,S,C/groups) and, unless it is NULL, dbias (K) */
template <typename T>
static inline void conv2d_backward_weight_nhwc_mma(T *dw, float *dbias, const T *dy, const T *x, Conv2dShape s,
                                                   float *workspace) {
  mma_require();
  Conv2dGather g = conv2d_gather(s, false);
  int splits = conv2d_dw_splits(s), count = CONV2D_CHUNK_BYTES / (int)sizeof(T);
  if ((long long)g.groups * splits > 65535) die("conv2d_nhwc_mma: %d groups; at most 65535: use depthwise", g.groups);
  if (((uintptr_t)dy | (uintptr_t)x) % CONV2D_CHUNK_BYTES == 0 && g.channels % count == 0 && g.filters % count == 0)
    conv2d_dw_mma_run<T, true>(workspace, dy, x, &g, splits);
  else
    conv2d_dw_mma_run<T, false>(workspace, dy, x, &g, splits);
  conv2d_nhwc_add_splits(dw, workspace, conv2d_w_count(s), splits);
  if (dbias != NULL) conv2d_nhwc_bias_gradient(dbias, dy, s, workspace);
}

#endif /* PHASE3_CNN_CONV2D_NHWC_BACKWARD_MMA_CUH */

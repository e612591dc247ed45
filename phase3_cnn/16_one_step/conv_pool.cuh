/* conv_pool.cuh - a convolution, its bias, ReLU and max pooling of 2 x 2, in one kernel forward and one backward.
 *
 *     y[n,k,p,q] = the largest of the four sums  bias[k] + sum over c,r,s of x[n,c,h+r,v+s] w[k,c,r,s]
 *                  with h = 2p, 2p + 1 and v = 2q, 2q + 1, or 0 where none is above 0
 *
 *     x, dx (N,C,H,W)   w, dw (K,C,S,S)   bias, dbias (K)   y, dy, argmax (N,K,P,Q)
 *
 * Launch by launch the convolution writes four numbers for each that pooling keeps, and backward writes them again,
 * three of four 0. Here they stay in registers:
 *
 *   forward    a thread computes the 2 x 2 sums below a window for two filters: from (S + 1) x (S + 1) inputs it makes
 *              8 S^2 products, keeps the largest of each four and notes in a byte which it was: argmax
 *   backward   dx: a block spreads dy to where argmax says, in shared memory, and computes as forward, with the filters
 *              turned around. dw: a window adds dy times the S x S inputs at its largest sum, so one product of four is
 *              made. The blocks of both are one grid
 *
 * A shape as small as LeNet's has few windows, so the channels (backward: the filters) of a sum are shared out among
 * threads, whose parts are added up in a fixed order. dw is added up over all images by one block per filter and
 * channel; where these are few, images are shared out as well, and a second kernel adds up
 * (conv2d_backward_weight.cuh).
 *
 * argmax is that of relu_max_pool2d (max_pool2d.cuh), POOL2D_NOTHING where no sum is above 0.
 *
 * One group, stride 1, dilation 1, filters of 3 x 3 or 5 x 5, images that fit into 48 KiB of shared memory:
 * conv_pool_fits(). *_cpu_fast and the reference *_cpu are the convolution's and the pooling's, one after the other.
 */
#ifndef PHASE3_CNN_CONV_POOL_CUH
#define PHASE3_CNN_CONV_POOL_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"

typedef struct ConvPool {
  Conv2dShape conv;
  Pool2dShape pool;
} ConvPool;

static inline ConvPool conv_pool_make(Conv2dShape conv) {
  const ConvPool s = {conv,
                      pool2d_shape_of(conv.n, conv.k, conv2d_out_h(conv), conv2d_out_w(conv), pool2d_square(2, 2))};
  return s;
}

static inline ConvPool conv_pool_batch(ConvPool s, int batch) {
  s.conv.n = s.pool.n = batch;
  return s;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU: one after the other. workspace: the convolution's output, and what conv2d_*_cpu_fast need */

static inline void conv_pool_forward_cpu(float *y, uint8_t *argmax, const float *x, const float *w, const float *bias,
                                         ConvPool s, float *workspace) {
  conv2d_forward_cpu(workspace, x, w, bias, s.conv);
  max_pool2d_forward_cpu(y, argmax, workspace, s.pool);
  for (size_t i = 0; i < (size_t)s.pool.n * s.pool.c * pool2d_out_h(s.pool) * pool2d_out_w(s.pool); i++) {
    if (!(y[i] > 0)) argmax[i] = POOL2D_NOTHING;
    if (y[i] < 0) y[i] = 0;
  }
}

static inline void conv_pool_backward_cpu(float *dx, float *dw, float *dbias, const float *dy, const uint8_t *argmax,
                                          const float *x, const float *w, ConvPool s, float *workspace) {
  max_pool2d_backward_cpu(workspace, dy, argmax, s.pool);
  conv2d_backward_weight_cpu(dw, dbias, workspace, x, s.conv);
  if (dx) conv2d_backward_input_cpu(dx, workspace, w, s.conv);
}

static inline void conv_pool_forward_cpu_fast(float *y, uint8_t *argmax, const float *x, const float *w,
                                              const float *bias, ConvPool s, float *workspace) {
  conv2d_forward_cpu_fast(workspace, x, w, bias, s.conv, workspace + conv2d_y_count(s.conv));
  relu_max_pool2d_forward_cpu_fast(y, argmax, workspace, s.pool);
}

static inline void conv_pool_backward_cpu_fast(float *dx, float *dw, float *dbias, const float *dy,
                                               const uint8_t *argmax, const float *x, const float *w, ConvPool s,
                                               float *workspace) {
  float *more = workspace + conv2d_y_count(s.conv);
  max_pool2d_backward_cpu_fast(workspace, dy, argmax, s.pool);
  if (dw) conv2d_backward_weight_cpu_fast(dw, dbias, workspace, x, s.conv, more);
  if (dx) conv2d_backward_input_cpu_fast(dx, workspace, w, s.conv, more);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Geometry */

enum {
  CONV_POOL_SHARED = 48 << 10, /* bytes of a block */
  CONV_POOL_THREADS = 384,     /* of a block: about as many; at most */
  CONV_POOL_PAIR = 2,          /* filters of a thread */
  CONV_POOL_FETCH = 4,         /* loads of a thread in flight */
  CONV_POOL_PLACES = 1024,     /* dw: windows whose gradients are in shared memory at once, at least one image's */
  CONV_POOL_BLOCKS = 96,       /* dw: as many at least */
};

/* A convolution with stride 1 of images (channels,h,w) to (filters, ...), in tiles of 2 x 2: forward, or of dy. */
typedef struct ConvPoolTiles {
  int channels, h, w, filters; /* of the input; outputs */
  int up, left;                /* zeros above and left of it */
  int rows, columns;           /* of tiles */
  int pitch, plane;            /* in shared memory, zeros included: of a row, of a channel */
  int group, jobs;             /* filters of a block; its threads for one part of the sum: tiles x pairs of filters */
  int parts, depth;            /* of a sum; channels of each */
  int threads;
} ConvPoolTiles;

static inline int conv_pool_up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

/* Even, because two floats are loaded at once. The tiles of a row lie in 2 * tiles banks; the next row of tiles, two
 * rows further on, begins in the bank behind them. */
static inline int conv_pool_pitch(int width, int tiles) {
  const int even = conv_pool_up(width, 2);
  for (int pitch = even; pitch < even + 16; pitch += 2)
    if (2 * pitch % 32 == 2 * tiles % 32 || 2 * pitch % 32 == (2 * tiles + 2) % 32) return pitch;
  return even;
}

/* Blocks: images x groups of filters. As many groups as make `blocks` of them. */
static inline ConvPoolTiles conv_pool_tiles(ConvPoolTiles t, int images, int side, int blocks) {
  const int pairs = conv_pool_up(t.filters, CONV_POOL_PAIR) / CONV_POOL_PAIR;
  const int wanted = (blocks + images - 1) / images, groups = wanted < pairs ? wanted : pairs;
  t.pitch = conv_pool_pitch(2 * t.columns + side - 1, t.columns);
  t.plane = (2 * t.rows + side - 1) * t.pitch;
  t.group = (pairs + groups - 1) / groups * CONV_POOL_PAIR;
  t.jobs = t.rows * t.columns * t.group / CONV_POOL_PAIR;
  const int room = CONV_POOL_THREADS / t.jobs, most = room < 1 ? 1 : room < t.channels ? room : t.channels;
  t.depth = (t.channels + most - 1) / most;
  t.parts = (t.channels + t.depth - 1) / t.depth;
  const int threads = conv_pool_up(t.jobs * t.parts, 32);
  t.threads = threads < CONV_POOL_THREADS ? threads : CONV_POOL_THREADS;
  return t;
}

static inline ConvPoolTiles conv_pool_forward_tiles(ConvPool s, int blocks) {
  ConvPoolTiles t;
  memset(&t, 0, sizeof t);
  t.channels = s.conv.c, t.h = s.conv.h, t.w = s.conv.w, t.filters = s.conv.k;
  t.up = s.conv.padding_h, t.left = s.conv.padding_w;
  t.rows = pool2d_out_h(s.pool), t.columns = pool2d_out_w(s.pool);
  return conv_pool_tiles(t, s.conv.n, s.conv.s, blocks);
}

/* dx from dy: its channels are the filters. */
static inline ConvPoolTiles conv_pool_input_tiles(ConvPool s, int blocks) {
  ConvPoolTiles t;
  memset(&t, 0, sizeof t);
  t.channels = s.conv.k, t.h = s.pool.h, t.w = s.pool.w, t.filters = s.conv.c;
  t.up = s.conv.s - 1 - s.conv.padding_h, t.left = s.conv.s - 1 - s.conv.padding_w;
  t.rows = (s.conv.h + 1) / 2, t.columns = (s.conv.w + 1) / 2;
  return conv_pool_tiles(t, s.conv.n, s.conv.s, blocks);
}

/* Filters, an image, and the sums of the parts. */
static inline size_t conv_pool_tiles_bytes(ConvPoolTiles t, int side) {
  const size_t sums = t.parts > 1 ? (size_t)t.parts * t.jobs * 4 * CONV_POOL_PAIR : 0;
  return sizeof(float) * ((size_t)t.channels * side * side * t.group + (size_t)t.channels * t.plane + sums);
}

/* dw: blocks are filters x channels x splits of the images. */
typedef struct ConvPoolWeights {
  int pitch, plane;   /* of x in shared memory, padding included */
  int windows, chunk; /* of an image; images at once */
  int splits, images; /* of the batch; images of a split */
  int groups;         /* of threads that share out the windows; each has a thread for each tap and the bias */
} ConvPoolWeights;

/* Parts that the images are divided into, at most: fewer, where that makes the parts equal. */
static inline int conv_pool_most_splits(ConvPool s) {
  const int pairs = s.conv.k * s.conv.c, wanted = (CONV_POOL_BLOCKS + pairs - 1) / pairs;
  return 2 * pairs > CONV_POOL_BLOCKS ? 1 : wanted < s.conv.n ? wanted : s.conv.n;
}

static inline ConvPoolWeights conv_pool_weights(ConvPool s) {
  ConvPoolWeights v;
  memset(&v, 0, sizeof v);
  v.pitch = s.conv.w + 2 * s.conv.padding_w;
  v.plane = (s.conv.h + 2 * s.conv.padding_h) * v.pitch;
  v.windows = pool2d_out_h(s.pool) * pool2d_out_w(s.pool);
  const int splits = conv_pool_most_splits(s);
  v.images = (s.conv.n + splits - 1) / splits;
  v.splits = (s.conv.n + v.images - 1) / v.images;
  v.chunk = CONV_POOL_PLACES / v.windows < 1 ? 1 : CONV_POOL_PLACES / v.windows;
  if (v.chunk > v.images) v.chunk = v.images;
  while (v.chunk > 1 && (size_t)v.chunk * v.plane * sizeof(float) > CONV_POOL_SHARED / 2) v.chunk--;
  v.groups = CONV_POOL_THREADS / (s.conv.s * s.conv.s + 1);
  return v;
}

/* Planes of x; places; what the groups add up. */
static inline size_t conv_pool_weights_bytes(ConvPoolWeights v, int side) {
  return sizeof(float) *
         ((size_t)v.chunk * v.plane + 2 * (size_t)v.chunk * v.windows + (size_t)v.groups * (side * side + 1));
}

/* Floats of workspace of backward on a GPU; a larger batch never needs fewer. */
static inline size_t conv_pool_workspace_floats(ConvPool s) {
  const int splits = conv_pool_most_splits(s);
  return splits > 1 ? (size_t)splits * s.conv.k * (s.conv.c * s.conv.s * s.conv.s + 1) : 0;
}

/* Whether the kernels take it, for any batch: a single image has the smallest groups of filters and the most parts. */
static inline int conv_pool_windows_fit(Pool2dShape p) {
  return p.kernel_h == 2 && p.kernel_w == 2 && p.stride_h == 2 && p.stride_w == 2 && p.pad_h == 0 && p.pad_w == 0 &&
         p.dilation_h == 1 && p.dilation_w == 1 && p.ceil_mode == 0;
}

static inline int conv_pool_fits(ConvPool s) {
  const Conv2dShape c = s.conv;
  if (!conv2d_is_dense(c) || c.stride_h != 1 || c.stride_w != 1 || c.r != c.s || (c.s != 3 && c.s != 5)) return 0;
  if (c.padding_h > c.s - 1 || c.padding_w > c.s - 1 || !conv_pool_windows_fit(s.pool)) return 0;
  if (s.pool.h < 2 || s.pool.w < 2) return 0;
  const double most = CONV_POOL_SHARED, x = (double)c.c * c.h * c.w, w = (double)c.k * c.c * c.s * c.s;
  if (x > most || w > most || (double)s.pool.h * s.pool.w * c.k > most) return 0;
  for (int blocks = 1; blocks <= 4096; blocks *= 2) {
    const ConvPool one = conv_pool_batch(s, 1);
    if (conv_pool_tiles_bytes(conv_pool_forward_tiles(one, blocks), c.s) > CONV_POOL_SHARED ||
        conv_pool_tiles_bytes(conv_pool_input_tiles(one, blocks), c.s) > CONV_POOL_SHARED)
      return 0;
  }
  return conv_pool_weights_bytes(conv_pool_weights(conv_pool_batch(s, 1 << 16)), c.s) <= CONV_POOL_SHARED;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* Zeros to `count` floats of shared memory. */
static __device__ __forceinline__ void conv_pool_clear(float *to, int count) {
  for (int e = threadIdx.x; e < count; e += blockDim.x) to[e] = 0;
}

/* Filters first ... first + t.group - 1 of w to shared memory as (channels,S,S,group), zeros beyond the last. TURNED: w
 * is (channels,filters,S,S), and each filter is turned around. */
template <int S, bool TURNED>
static __device__ __forceinline__ void conv_pool_load_filters(float *to, const float *w, const ConvPoolTiles &t,
                                                              int first) {
  const int area = S * S, count = t.channels * area * t.group;
  for (int e = threadIdx.x; e < count; e += blockDim.x) {
    const int f = e / (t.channels * area), c = e / area % t.channels, tap = e % area, k = first + f;
    const int from = TURNED ? (c * t.filters + k) * area + area - 1 - tap : (k * t.channels + c) * area + tap;
    to[(c * area + tap) * t.group + f] = k < t.filters ? w[from] : 0.0f;
  }
}

/* sum[f][2 a + b] of a tile's four outputs (a,b), for two filters: the products with `depth` channels. corner: the
 * tile's first input of the first channel. */
template <int S>
static __device__ __forceinline__ void conv_pool_products(float (&sum)[CONV_POOL_PAIR][4], const float *corner,
                                                          const float *filters, int depth, const ConvPoolTiles &t) {
  for (int c = 0; c < depth; c++, corner += t.plane) {
    float input[S + 1][S + 1];
#pragma unroll
    for (int r = 0; r <= S; r++)
#pragma unroll
      for (int s = 0; s <= S; s += 2) {
        const float2 two = *(const float2 *)(corner + r * t.pitch + s);
        input[r][s] = two.x;
        input[r][s + 1] = two.y;
      }
#pragma unroll
    for (int r = 0; r < S; r++)
#pragma unroll
      for (int s = 0; s < S; s++, filters += t.group) {
        const float2 weight = *(const float2 *)filters;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          sum[0][i] = fmaf(weight.x, input[r + i / 2][s + i % 2], sum[0][i]);
          sum[1][i] = fmaf(weight.y, input[r + i / 2][s + i % 2], sum[1][i]);
        }
      }
  }
}

/* The parts of a sum, added up by the first of the threads that share it: true for that one. `sums` (parts,8,jobs). */
static __device__ __forceinline__ bool conv_pool_add_parts(float (&sum)[CONV_POOL_PAIR][4], float *sums, int job,
                                                           int part, const ConvPoolTiles &t) {
  const int each = 4 * CONV_POOL_PAIR;
  if (t.parts == 1) return true;
  if (part > 0 && part < t.parts)
    for (int i = 0; i < each; i++) sums[(part * each + i) * t.jobs + job] = sum[i / 4][i % 4];
  __syncthreads();
  for (int other = 1; part == 0 && other < t.parts; other++)
    for (int i = 0; i < each; i++) sum[i / 4][i % 4] += sums[(other * each + i) * t.jobs + job];
  return part == 0;
}

/* The largest of a window's four sums, bias included: y, and which it was. */
static __device__ __forceinline__ void conv_pool_largest(float *y, uint8_t *argmax, const float (&sum)[4]) {
  float best = sum[0];
  int at = 0;
  // >>> exercise conv_pool_largest: ReLU and pooling in registers: *y and *argmax from the four sums of a window
  // hint: best is the largest so far and `at` its number; of equal ones the first counts, and NaN beats any number
  // hint: ReLU comes last: where best is not above 0, argmax is POOL2D_NOTHING, so that no gradient goes back
  // hint: *y = best < 0 ? 0 : best; *argmax = best > 0 ? at : POOL2D_NOTHING: not fmaxf, which loses a NaN
  for (int i = 1; i < 4; i++) {
    if (!(sum[i] > best || sum[i] != sum[i])) continue;
    best = sum[i];
    at = i;
  }
  *y = best < 0 ? 0.0f : best;
  *argmax = (uint8_t)(best > 0 ? at : POOL2D_NOTHING);
  // <<< exercise
}

/* Element e of an image (channels,h,w) to its place in shared memory; rows and columns that no window reads are left
 * out. */
static __device__ __forceinline__ void conv_pool_put(float *image, float value, int e, int pixels,
                                                     const ConvPoolTiles &t) {
  const int c = e / pixels, row = e % pixels / t.w + t.up, column = e % t.w + t.left;
  if (row * t.pitch < t.plane && column < t.pitch) image[c * t.plane + row * t.pitch + column] = value;
}

/* Grid (images, groups of filters). A thread has a window, two filters and a part of the channels. */
template <int S>
static __global__ void __launch_bounds__(CONV_POOL_THREADS)
    conv_pool_forward_kernel(float *y, uint8_t *argmax, const float *x, const float *w, const float *bias,
                             ConvPoolTiles t) {
  extern __shared__ float4 conv_pool_shared[];
  float *filters = (float *)conv_pool_shared, *image = filters + t.channels * S * S * t.group;
  float *sums = image + t.channels * t.plane;
  const int first = blockIdx.y * t.group, windows = t.rows * t.columns, pixels = t.h * t.w;
  const int count = t.channels * pixels, turns = t.parts == 1 ? t.jobs : (int)blockDim.x;
  const float *from = x + (size_t)blockIdx.x * count;
  float fetched[CONV_POOL_FETCH]; /* on their way while the filters are loaded */
#pragma unroll
  for (int i = 0; i < CONV_POOL_FETCH; i++) {
    const int e = threadIdx.x + i * blockDim.x;
    fetched[i] = e < count ? from[e] : 0.0f;
  }
  conv_pool_clear(image, t.channels * t.plane);
  conv_pool_load_filters<S, false>(filters, w, t, first);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < CONV_POOL_FETCH; i++) {
    const int e = threadIdx.x + i * blockDim.x;
    if (e < count) conv_pool_put(image, fetched[i], e, pixels, t);
  }
  for (int e = threadIdx.x + CONV_POOL_FETCH * blockDim.x; e < count; e += blockDim.x)
    conv_pool_put(image, from[e], e, pixels, t);
  __syncthreads();

  for (int at = threadIdx.x; at < turns; at += blockDim.x) {
    const int part = at / t.jobs, job = at % t.jobs, window = job % windows, f = job / windows * CONV_POOL_PAIR;
    const int c = part * t.depth, depth = min(t.depth, t.channels - c);
    float sum[CONV_POOL_PAIR][4] = {};
    conv_pool_products<S>(sum, image + c * t.plane + window / t.columns * 2 * t.pitch + window % t.columns * 2,
                          filters + c * S * S * t.group + f, depth, t);
    if (!conv_pool_add_parts(sum, sums, job, part, t)) continue;
    for (int i = 0; i < CONV_POOL_PAIR; i++) {
      const int k = first + f + i;
      if (f + i >= t.group || k >= t.filters) continue;
      const size_t place = ((size_t)blockIdx.x * t.filters + k) * windows + window;
      const float start = bias != NULL ? bias[k] : 0.0f;
      for (int j = 0; j < 4; j++) sum[i][j] += start;
      conv_pool_largest(y + place, argmax + place, sum[i]);
    }
  }
}

/* The block of an image and of a group of channels of dx. What dy is below pooling stands in shared memory: dy where
 * argmax says, else 0. */
template <int S>
static __device__ __forceinline__ void conv_pool_backward_input(float *dx, const float *dy, const uint8_t *argmax,
                                                                const float *w, const ConvPoolTiles &t, int windows,
                                                                int window_columns, int image_number, int first, int h,
                                                                int v, float *shared) {
  float *filters = shared, *image = filters + t.channels * S * S * t.group, *sums = image + t.channels * t.plane;
  const int tiles = t.rows * t.columns, turns = t.parts == 1 ? t.jobs : (int)blockDim.x;
  const size_t begin = (size_t)image_number * t.channels * windows;
  conv_pool_clear(image, t.channels * t.plane);
  conv_pool_load_filters<S, true>(filters, w, t, first);
  __syncthreads();
  for (int e = threadIdx.x; e < t.channels * windows; e += blockDim.x) {
    const int c = e / windows, window = e % windows, at = argmax[begin + e];
    const int row = window / window_columns * 2 + at / 2 + t.up, column = window % window_columns * 2 + at % 2 + t.left;
    if (at != POOL2D_NOTHING) image[c * t.plane + row * t.pitch + column] = dy[begin + e];
  }
  __syncthreads();

  for (int at = threadIdx.x; at < turns; at += blockDim.x) {
    const int part = at / t.jobs, job = at % t.jobs, tile = job % tiles, f = job / tiles * CONV_POOL_PAIR;
    const int c = part * t.depth, depth = min(t.depth, t.channels - c);
    const int row = tile / t.columns * 2, column = tile % t.columns * 2;
    float sum[CONV_POOL_PAIR][4] = {};
    conv_pool_products<S>(sum, image + c * t.plane + row * t.pitch + column, filters + c * S * S * t.group + f, depth,
                          t);
    if (!conv_pool_add_parts(sum, sums, job, part, t)) continue;
    for (int i = 0; i < CONV_POOL_PAIR; i++) {
      if (f + i >= t.group || first + f + i >= t.filters) continue;
      float *to = dx + ((size_t)image_number * t.filters + first + f + i) * h * v;
      for (int j = 0; j < 4; j++)
        if (row + j / 2 < h && column + j % 2 < v) to[(row + j / 2) * v + column + j % 2] = sum[i][j];
    }
  }
}

/* A window's gradient, and where in an image's plane with its padding the filter lay for its largest sum. */
typedef struct ConvPoolPlace {
  float gradient;
  int corner;
} ConvPoolPlace;

/* `images` images from `first` on: places of filter k, and planes of channel c. */
static __device__ __forceinline__ void conv_pool_load_places(ConvPoolPlace *places, float *planes, const float *dy,
                                                             const uint8_t *argmax, const float *x, const ConvPool &s,
                                                             const ConvPoolWeights &v, int window_columns, int k, int c,
                                                             int first, int images) {
  const int pixels = s.conv.h * s.conv.w;
  for (int e = threadIdx.x; e < images * v.windows; e += blockDim.x) {
    const int window = e % v.windows;
    const size_t from = ((size_t)(first + e / v.windows) * s.conv.k + k) * v.windows + window;
    const int at = argmax[from], row = window / window_columns * 2 + at / 2,
              column = window % window_columns * 2 + at % 2;
    const bool any = at != POOL2D_NOTHING;
    places[e].gradient = any ? dy[from] : 0.0f;
    places[e].corner = e / v.windows * v.plane + (any ? row * v.pitch + column : 0);
  }
  for (int e = threadIdx.x; e < images * pixels; e += blockDim.x) {
    const int image = e / pixels, row = e % pixels / s.conv.w + s.conv.padding_h;
    planes[image * v.plane + row * v.pitch + e % s.conv.w + s.conv.padding_w] =
        x[((size_t)(first + image) * s.conv.c + c) * pixels + e % pixels];
  }
}

/* The block of a filter, a channel and a split of the images. A thread has a tap, or the bias, and every groups-th
 * window. to (C*S*S+1) of the filter. */
template <int S>
static __device__ __forceinline__ void conv_pool_backward_weight(float *to, float *to_bias, const float *dy,
                                                                 const uint8_t *argmax, const float *x,
                                                                 const ConvPool &s, const ConvPoolWeights &v,
                                                                 int window_columns, int k, int c, int split,
                                                                 float *shared) {
  const int area = S * S, taps = area + 1, tap = threadIdx.x % taps, group = threadIdx.x / taps;
  const int step = tap / S * v.pitch + tap % S, end = min((split + 1) * v.images, s.conv.n);
  float *planes = shared, *sums = planes + v.chunk * v.plane + 2 * v.chunk * v.windows;
  ConvPoolPlace *places = (ConvPoolPlace *)(planes + v.chunk * v.plane);
  float sum = 0;
  conv_pool_clear(planes, v.chunk * v.plane);
  for (int first = split * v.images; first < end; first += v.chunk) {
    const int images = min(v.chunk, end - first), count = group < v.groups ? images * v.windows : 0;
    __syncthreads(); /* what lies there has been read */
    conv_pool_load_places(places, planes, dy, argmax, x, s, v, window_columns, k, c, first, images);
    __syncthreads();
    // >>> exercise conv_pool_taps: add to `sum` this thread's share of its tap's gradient: one product per window
    // hint: the group takes places[group], places[group + v.groups], ... below count; tap `area` stands for the bias
    // hint: the tap's input lies `step` floats behind the place's corner in planes; the bias has the input 1
    // hint: sum += places[i].gradient * (tap < area ? planes[places[i].corner + step] : 1.0f)
    for (int i = group; i < count; i += v.groups)
      sum += places[i].gradient * (tap < area ? planes[places[i].corner + step] : 1.0f);
    // <<< exercise
  }
  if (group < v.groups) sums[group * taps + tap] = sum;
  __syncthreads();
  if ((int)threadIdx.x >= taps) return;
  float total = 0;
  for (int g = 0; g < v.groups; g++) total += sums[g * taps + threadIdx.x];
  if ((int)threadIdx.x < area)
    to[c * area + threadIdx.x] = total;
  else if (c == 0 && to_bias != NULL)
    *to_bias = total;
}

/* The first `input_blocks` blocks compute dx, the others dw and dbias, or with several splits their parts: partial
 * (splits,K,C*S*S+1). */
template <int S>
static __global__ void __launch_bounds__(CONV_POOL_THREADS)
    conv_pool_backward_kernel(float *dx, float *dw, float *dbias, float *partial, const float *dy,
                              const uint8_t *argmax, const float *x, const float *w, ConvPool s, ConvPoolTiles t,
                              ConvPoolWeights v, int input_blocks, int input_groups) {
  extern __shared__ float4 conv_pool_shared[];
  const int windows = v.windows, columns = s.pool.w / 2, taps = s.conv.c * S * S;
  if ((int)blockIdx.x < input_blocks) {
    conv_pool_backward_input<S>(dx, dy, argmax, w, t, windows, columns, blockIdx.x / input_groups,
                                blockIdx.x % input_groups * t.group, s.conv.h, s.conv.w, (float *)conv_pool_shared);
    return;
  }
  const int block = blockIdx.x - input_blocks, pair = block / v.splits, split = block % v.splits;
  const int k = pair / s.conv.c, c = pair % s.conv.c;
  float *to = v.splits > 1 ? partial + ((size_t)split * s.conv.k + k) * (taps + 1) : dw + (size_t)k * taps;
  float *to_bias = v.splits > 1 ? to + taps : dbias != NULL ? dbias + k : NULL;
  conv_pool_backward_weight<S>(to, to_bias, dy, argmax, x, s, v, columns, k, c, split, (float *)conv_pool_shared);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void conv_pool_forward_gpu(float *y, uint8_t *argmax, const float *x, const float *w, const float *bias,
                                         ConvPool s) {
  const ConvPoolTiles t = conv_pool_forward_tiles(s, conv2d_multiprocessors());
  const dim3 grid(s.conv.n, (t.filters + t.group - 1) / t.group);
  const size_t bytes = conv_pool_tiles_bytes(t, s.conv.s);
  if (s.conv.s == 3)
    conv_pool_forward_kernel<3><<<grid, t.threads, bytes>>>(y, argmax, x, w, bias, t);
  else
    conv_pool_forward_kernel<5><<<grid, t.threads, bytes>>>(y, argmax, x, w, bias, t);
  CUDA_CHECK_LAUNCH();
}

/* dx may be NULL, and dw (with dbias) may. workspace: conv_pool_workspace_floats() of this or a larger batch. */
static inline void conv_pool_backward_gpu(float *dx, float *dw, float *dbias, const float *dy, const uint8_t *argmax,
                                          const float *x, const float *w, ConvPool s, float *workspace) {
  const ConvPoolTiles t = conv_pool_input_tiles(s, conv2d_multiprocessors());
  const ConvPoolWeights v = conv_pool_weights(s);
  const int groups = (t.filters + t.group - 1) / t.group, input_blocks = dx ? s.conv.n * groups : 0;
  const int weight_blocks = dw ? s.conv.k * s.conv.c * v.splits : 0, blocks = input_blocks + weight_blocks;
  const size_t input_bytes = dx ? conv_pool_tiles_bytes(t, s.conv.s) : 0;
  const size_t weight_bytes = dw ? conv_pool_weights_bytes(v, s.conv.s) : 0;
  const size_t bytes = input_bytes > weight_bytes ? input_bytes : weight_bytes;
  if (blocks == 0) return;
  if (s.conv.s == 3)
    conv_pool_backward_kernel<3><<<blocks, CONV_POOL_THREADS, bytes>>>(dx, dw, dbias, workspace, dy, argmax, x, w, s, t,
                                                                       v, input_blocks, groups);
  else
    conv_pool_backward_kernel<5><<<blocks, CONV_POOL_THREADS, bytes>>>(dx, dw, dbias, workspace, dy, argmax, x, w, s, t,
                                                                       v, input_blocks, groups);
  CUDA_CHECK_LAUNCH();
  if (dw == NULL || v.splits == 1) return;
  const int taps = s.conv.c * s.conv.r * s.conv.s;
  conv2d_backward_weight_sum_kernel<<<(s.conv.k * (taps + 1) + 31) / 32, dim3(32, 32)>>>(dw, dbias, workspace, s.conv.k,
                                                                                         taps, v.splits);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV_POOL_CUH */

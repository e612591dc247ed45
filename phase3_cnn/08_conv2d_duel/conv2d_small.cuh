/* conv2d_small.cuh - convolution of small images with few filters, such as LeNet's: layers of lesson 8's duel for which
 * the other methods are slow.
 *
 * A layer of LeNet has 6 or 16 filters: a tile of a matrix product, 64 x 128, is mostly empty. But an image, (6,14,14),
 * is 4.7 KB, and all filters, (16,6,5,5), are 9.6 KB: both fit into the shared memory of one block. So a block loads
 * the filters, then image after image, and a thread keeps a piece of a row in registers, T numbers wide, where each
 * number serves S taps:
 *
 *   forward          a thread computes 2 x T outputs of one filter: from T + S - 1 inputs of a row and S weights it
 *                    makes T * S products for the first row, and as many for the second with the weights of the tap
 *                    above
 *   backward_input   a row of dy is spread over T + S - 1 numbers of a row of dx; no product is with padding
 *   backward_weight  a thread keeps the S x S gradients of one filter and one channel: a row of dy, T wide, and S rows
 *                    of x make T * S * S products
 *
 * Where an image has fewer such pieces than a block should have threads, the channels (of backward_weight the rows) are
 * shared out, and the parts are added up through shared memory in a fixed order. The partial gradients of the blocks of
 * backward_weight are added up by conv2d_backward_weight.cuh.
 *
 * One group, stride 1, dilation 1, filters of 3 x 3 or 5 x 5, images that fit.
 */
#ifndef PHASE3_CNN_CONV2D_SMALL_CUH
#define PHASE3_CNN_CONV2D_SMALL_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

enum {
  CONV2D_SMALL_SHARED = 48 << 10,
  CONV2D_SMALL_LOADS = 8,     /* that a thread has in flight */
  CONV2D_SMALL_NARROW = 10,   /* numbers of a piece of a row, T: the one that wastes fewer columns */
  CONV2D_SMALL_WIDE = 14,     /* the other */
  CONV2D_SMALL_BLOCK = 256,   /* threads, at most; fewer with wide pieces, which take more registers */
  CONV2D_SMALL_WEIGHTS = 512, /* of backward_weight */
};

/* A convolution with stride 1, and what a block keeps of it. Of backward_input, x is dy, and y is dx. */
typedef struct Conv2dSmall {
  int n, c, h, w; /* input */
  int k, p, q;    /* output */
  int pad_h, pad_w;
  int t, tiles;              /* numbers of a piece; pieces of a row */
  int width, plane;          /* of a row and of a channel in shared memory, padding included */
  int jobs, parts, channels; /* threads for an image; how many share out the channels; channels of one of them */
  int outputs;               /* of an image, up to a multiple of four */
} Conv2dSmall;

static inline int conv2d_small_up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

static inline int conv2d_small_wider(int columns) {
  return conv2d_small_up(columns, CONV2D_SMALL_WIDE) <= conv2d_small_up(columns, CONV2D_SMALL_NARROW);
}

static inline int conv2d_small_threads(int t, int most) { return t == CONV2D_SMALL_WIDE ? most / 4 * 3 : most; }

/* Even, because two floats are loaded at once; the rows of a warp begin in different banks. */
static inline int conv2d_small_width(int columns) {
  const int even = conv2d_small_up(columns, 2);
  return even % 16 == 0 ? even + 2 : even;
}

static inline Conv2dSmall conv2d_small_geometry(int n, int c, int h, int w, int k, int p, int q, int pad_h, int pad_w,
                                                int columns) {
  Conv2dSmall g;
  memset(&g, 0, sizeof g);
  g.n = n, g.c = c, g.h = h, g.w = w, g.k = k, g.p = p, g.q = q, g.pad_h = pad_h, g.pad_w = pad_w;
  g.t = conv2d_small_wider(columns) ? CONV2D_SMALL_WIDE : CONV2D_SMALL_NARROW;
  g.tiles = (columns + g.t - 1) / g.t;
  g.outputs = conv2d_small_up(k * p * q, 4);
  return g;
}

/* As many parts of the channels as there is room for threads. */
static inline Conv2dSmall conv2d_small_share(Conv2dSmall g, int jobs) {
  const int room = conv2d_small_threads(g.t, CONV2D_SMALL_BLOCK) / jobs, most = room < 1 ? 1 : room < g.c ? room : g.c;
  g.jobs = jobs;
  g.channels = (g.c + most - 1) / most;
  g.parts = (g.c + g.channels - 1) / g.channels;
  return g;
}

/* Two rows and one piece of them per thread. */
static inline Conv2dSmall conv2d_small_rows_geometry(Conv2dSmall g, int s) {
  g.width = conv2d_small_width(g.tiles * g.t + s - 1);
  g.plane = (conv2d_small_up(g.p, 2) + s - 1) * g.width;
  return conv2d_small_share(g, g.k * ((g.p + 1) / 2) * g.tiles);
}

static inline Conv2dSmall conv2d_small_forward_geometry(Conv2dShape s) {
  const int p = conv2d_out_h(s), q = conv2d_out_w(s);
  const Conv2dSmall g = conv2d_small_geometry(s.n, s.c, s.h, s.w, s.k, p, q, s.padding_h, s.padding_w, q);
  return conv2d_small_rows_geometry(g, s.s);
}

/* Whether conv2d_small_input_kernel() takes it: a row of dy is one piece, and dy has S - 1 rows or more. */
static inline int conv2d_small_spreads(Conv2dShape s) {
  return conv2d_out_w(s) <= CONV2D_SMALL_WIDE && conv2d_out_h(s) >= s.r - 1;
}

static inline Conv2dSmall conv2d_small_input_geometry(Conv2dShape s) {
  const int p = conv2d_out_h(s), q = conv2d_out_w(s), spreads = conv2d_small_spreads(s);
  Conv2dSmall g = conv2d_small_geometry(s.n, s.k, p, q, s.c, s.h, s.w, s.r - 1 - s.padding_h, s.s - 1 - s.padding_w,
                                        spreads ? q : s.w);
  if (!spreads) return conv2d_small_rows_geometry(g, s.s);
  g.width = conv2d_small_width(g.t);
  g.plane = p * g.width;
  return conv2d_small_share(g, s.c * p);
}

/* Bytes of shared memory: filters, the outputs of all parts, an image. */
static inline size_t conv2d_small_shared_bytes(Conv2dSmall g, int s) {
  const size_t lines = (size_t)g.c * s * g.k;
  return sizeof(float) * (lines * (s > 4 ? 5 : 4) + (size_t)g.parts * g.outputs + (size_t)g.c * g.plane);
}

/* Of backward_weight: a thread per filter and channel; the rows are shared out. */
typedef struct Conv2dSmallWeight {
  Conv2dSmall g;            /* of the forward pass: x lies in shared memory as there */
  int width, plane;         /* of dy in shared memory */
  int jobs, parts, threads; /* filters x channels; threads that share out the pieces of dy */
} Conv2dSmallWeight;

static inline Conv2dSmallWeight conv2d_small_weight_geometry(Conv2dShape s) {
  Conv2dSmallWeight v;
  memset(&v, 0, sizeof v);
  v.g = conv2d_small_forward_geometry(s);
  v.width = v.g.tiles * v.g.t;
  v.plane = conv2d_small_up(v.g.p * v.width - 2, 32) + 2; /* the filters of a warp begin in different banks */
  v.jobs = s.k * s.c;
  const int pieces = v.g.p * v.g.tiles, room = conv2d_small_threads(v.g.t, CONV2D_SMALL_WEIGHTS) / v.jobs;
  const int most = room < 1 ? 1 : room < pieces ? room : pieces, each = (pieces + most - 1) / most;
  v.parts = (pieces + each - 1) / each;
  v.threads = conv2d_small_up(v.jobs * v.parts, 32);
  if (v.threads < 128) v.threads = 128; /* they load, too */
  return v;
}

/* dy and an image; afterwards the sums of half of the parts lie there. */
static inline size_t conv2d_small_weight_bytes(Conv2dSmallWeight v, int s) {
  const size_t images = (size_t)v.g.k * v.plane + (size_t)v.g.c * v.g.plane;
  const size_t sums = (size_t)(v.parts / 2) * (s * s + 1) * v.jobs;
  return sizeof(float) * (images > sums ? images : sums);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* How a block loads rows of `length` neighbours without a division per element: a warp takes as many rows at a time as
 * fit into its lanes, CONV2D_SMALL_LOADS times before it waits. A lane has one column of one of these rows. */
typedef struct Conv2dSmallLanes {
  int row, column, rows; /* of this lane; of a warp. row >= rows: a lane that is left over */
} Conv2dSmallLanes;

static __device__ __forceinline__ Conv2dSmallLanes conv2d_small_lanes(int length) {
  const int lane = threadIdx.x % 32;
  if (length > 32) return {0, lane, 1}; /* and the columns 32 further on */
  return {lane / length, lane % length, 32 / length};
}

/* Zeros to `count` floats of shared memory. */
static __device__ __forceinline__ void conv2d_small_clear(float *to, int count) {
  for (int e = threadIdx.x; e < count; e += blockDim.x) to[e] = 0;
}

/* An image (channels,height,width) to shared memory; `to` is the place of its first number, and the padding round it is
 * zero already. A row takes `pitch` floats there, a channel `plane`. */
static __device__ __forceinline__ void conv2d_small_load(float *to, const float *image, int channels, int height,
                                                         int width, int plane, int pitch) {
  const Conv2dSmallLanes lanes = conv2d_small_lanes(width);
  const int count = channels * height, step = blockDim.x / 32 * lanes.rows;
  for (int first = threadIdx.x / 32 * lanes.rows + lanes.row; first < count; first += step * CONV2D_SMALL_LOADS)
    for (int v = lanes.column; v < width; v += 32) {
      float value[CONV2D_SMALL_LOADS];
#pragma unroll
      for (int i = 0; i < CONV2D_SMALL_LOADS; i++) {
        const int row = first + i * step;
        value[i] = lanes.row < lanes.rows && row < count ? image[row * width + v] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < CONV2D_SMALL_LOADS; i++) {
        const int row = first + i * step, c = row / height, h = row % height;
        if (lanes.row < lanes.rows && row < count) to[c * plane + h * pitch + v] = value[i];
      }
    }
}

/* The row of S taps of an input channel, of a row r, of an output channel: the first four lie in quads (C,S,K), the
 * fifth in fifths (C,S,K). w is (K,C,S,S), or with FLIP (C,K,S,S) to be turned around; with SWAP (C,K,S,S) as it is. */
template <int S, bool FLIP, bool SWAP>
static __device__ __forceinline__ void conv2d_small_load_filters(float4 *quads, float *fifths, const float *w,
                                                                 Conv2dSmall g) {
  const int lines = g.c * g.k, step = blockDim.x / 32, lane = threadIdx.x % 32;
  for (int first = threadIdx.x / 32; first < lines; first += step * CONV2D_SMALL_LOADS) {
    float value[CONV2D_SMALL_LOADS];
#pragma unroll
    for (int i = 0; i < CONV2D_SMALL_LOADS; i++)
      value[i] = first + i * step < lines && lane < S * S ? w[(first + i * step) * S * S + lane] : 0.0f;
#pragma unroll
    for (int i = 0; i < CONV2D_SMALL_LOADS; i++) {
      const int line = first + i * step, tap = FLIP ? S * S - 1 - lane : lane, s = tap % S;
      if (line >= lines || lane >= S * S) continue;
      const int k = FLIP || SWAP ? line % g.k : line / g.c, c = FLIP || SWAP ? line / g.k : line % g.c;
      const int place = (c * S + tap / S) * g.k + k;
      if (s < 4)
        ((float *)(quads + place))[s] = value[i];
      else
        fifths[place] = value[i];
    }
  }
}

template <int S>
static __device__ __forceinline__ void conv2d_small_weights(float (&weight)[S], const float4 *quads,
                                                            const float *fifths, int place) {
  const float4 quad = quads[place];
  const float first[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
  for (int s = 0; s < S; s++) weight[s] = s < 4 ? first[s < 4 ? s : 0] : fifths[place];
}

/* COUNT floats from shared memory, two at a time; `from` has an even place. */
template <int COUNT>
static __device__ __forceinline__ void conv2d_small_fetch(float (&to)[COUNT], const float *from) {
#pragma unroll
  for (int i = 0; i < COUNT; i += 2) {
    const float2 two = *(const float2 *)(from + i);
    to[i] = two.x;
    to[i + 1] = two.y;
  }
}

/* T outputs of a row, of which output i reads input[i] at tap 0. */
template <int S, int T>
static __device__ __forceinline__ void conv2d_small_row(float (&sum)[T], const float (&input)[T + S - 1],
                                                        const float (&weight)[S]) {
  // >>> exercise conv2d_small_products: add to T neighbouring outputs of a row their products with S taps of a filter
  // hint: weight[s] is that of tap s; output i of the T reads input[i] at tap 0
  // hint: the next tap reads one input further: all of a row are in registers, none is loaded twice
  // hint: for each s < S and each i < T: sum[i] += weight[s] * input[i + s]
#pragma unroll
  for (int s = 0; s < S; s++)
#pragma unroll
    for (int i = 0; i < T; i++) sum[i] = fmaf(weight[s], input[i + s], sum[i]);
  // <<< exercise
}

/* The outputs of an image, added up over the parts, to y. */
static __device__ __forceinline__ void conv2d_small_store(float *y, const float *sums, Conv2dSmall g) {
  const int count = g.k * g.p * g.q;
  if (count % 4 == 0 && (uintptr_t)y % sizeof(float4) == 0) { /* then each image of y begins so */
    for (int e = threadIdx.x * 4; e < count; e += blockDim.x * 4) {
      float4 total = *(const float4 *)(sums + e);
      for (int part = 1; part < g.parts; part++) {
        const float4 more = *(const float4 *)(sums + part * g.outputs + e);
        total.x += more.x, total.y += more.y, total.z += more.z, total.w += more.w;
      }
      *(float4 *)(y + e) = total;
    }
    return;
  }
  for (int e = threadIdx.x; e < count; e += blockDim.x) {
    float total = sums[e];
    for (int part = 1; part < g.parts; part++) total += sums[part * g.outputs + e];
    y[e] = total;
  }
}

/* A block computes image after image. A thread has two rows of a filter, T columns of them, and some of the
 * channels. */
template <int S, int T, bool FLIP>
static __global__ void __launch_bounds__(T == CONV2D_SMALL_WIDE ? CONV2D_SMALL_BLOCK / 4 * 3 : CONV2D_SMALL_BLOCK, 4)
    conv2d_small_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dSmall g) {
  extern __shared__ float4 conv2d_small_shared[];
  float4 *quads = conv2d_small_shared;
  float *sums = (float *)(quads + g.c * S * g.k), *image = sums + g.parts * g.outputs;
  float *fifths = image + g.c * g.plane;
  conv2d_small_clear(image, g.c * g.plane);
  conv2d_small_load_filters<S, FLIP, false>(quads, fifths, w, g);

  for (size_t n = blockIdx.x; n < (size_t)g.n; n += gridDim.x) {
    __syncthreads(); /* all threads have finished with the image before */
    conv2d_small_load(image + g.pad_h * g.width + g.pad_w, x + n * g.c * g.h * g.w, g.c, g.h, g.w, g.plane, g.width);
    __syncthreads();

    for (int job = threadIdx.x; job < g.jobs * g.parts; job += blockDim.x) {
      const int part = job / g.jobs, k = job % g.jobs % g.k, piece = job % g.jobs / g.k;
      const int p = piece / g.tiles * 2, q0 = piece % g.tiles * T;
      const int begin = part * g.channels, end = min(begin + g.channels, g.c);
      const float start = part == 0 && bias != NULL ? bias[k] : 0.0f;
      float sum[2][T];
#pragma unroll
      for (int i = 0; i < T; i++) sum[0][i] = sum[1][i] = start;
      for (int c = begin; c < end; c++) {
        const float *row = image + c * g.plane + p * g.width + q0;
        float weight[S + 1][S];
#pragma unroll
        for (int r = 0; r <= S; r++, row += g.width) { /* row p + r of x is that of tap r for y's row p */
          float input[T + S - 1];
          conv2d_small_fetch<T + S - 1>(input, row);
          if (r < S) conv2d_small_weights<S>(weight[r], quads, fifths, (c * S + r) * g.k + k);
          if (r < S) conv2d_small_row<S, T>(sum[0], input, weight[r]);
          if (r > 0) conv2d_small_row<S, T>(sum[1], input, weight[r > 0 ? r - 1 : 0]);
        }
      }
      float *to = sums + part * g.outputs + (k * g.p + p) * g.q + q0;
#pragma unroll
      for (int i = 0; i < T; i++) {
        if (q0 + i < g.q) to[i] = sum[0][i];
        if (q0 + i < g.q && p + 1 < g.p) to[g.q + i] = sum[1][i];
      }
    }
    __syncthreads();
    conv2d_small_store(y + n * g.k * g.p * g.q, sums, g);
  }
}

/* Row `row` of a channel of dx, counted from the padding, which is dropped. */
template <int COUNT>
static __device__ __forceinline__ void conv2d_small_put(float *to, const float (&sum)[COUNT], int row, int above,
                                                        int left, Conv2dSmall g) {
  if (row < above || row - above >= g.p) return;
#pragma unroll
  for (int i = 0; i < COUNT; i++)
    if (i >= left && i - left < g.q) to[(row - above) * g.q + i - left] = sum[i];
}

/* dx from dy: a thread has a channel of dx, some of the filters, and the rows j and j + P, counted from the padding.
 * Row j needs rows j, j - 1, ... of dy, from tap 0 on, and row j + P the others down to tap S - 1: together S rows. So
 * no thread waits for another. */
template <int S, int T>
static __global__ void __launch_bounds__(CONV2D_SMALL_BLOCK, 4)
    conv2d_small_input_kernel(float *dx, const float *dy, const float *w, Conv2dSmall g) {
  extern __shared__ float4 conv2d_small_shared[];
  float4 *quads = conv2d_small_shared;
  float *sums = (float *)(quads + g.c * S * g.k), *image = sums + g.parts * g.outputs;
  float *fifths = image + g.c * g.plane;
  const int above = S - 1 - g.pad_h, left = S - 1 - g.pad_w; /* the padding of x */
  conv2d_small_clear(image, g.c * g.plane);
  conv2d_small_load_filters<S, false, true>(quads, fifths, w, g);

  for (size_t n = blockIdx.x; n < (size_t)g.n; n += gridDim.x) {
    __syncthreads(); /* all threads have finished with the image before */
    conv2d_small_load(image, dy + n * g.c * g.h * g.w, g.c, g.h, g.w, g.plane, g.width);
    __syncthreads();

    for (int job = threadIdx.x; job < g.jobs * g.parts; job += blockDim.x) {
      const int part = job / g.jobs, c = job % g.jobs % g.k, j = job % g.jobs / g.k;
      const int begin = part * g.channels, end = min(begin + g.channels, g.c);
      float *to = sums + part * g.outputs + c * g.p * g.q;
      float sum[T + S - 1] = {};
      for (int r = 0; r < S; r++) {
        if (r == j + 1) { /* row j is complete */
          conv2d_small_put(to, sum, j, above, left, g);
#pragma unroll
          for (int i = 0; i < T + S - 1; i++) sum[i] = 0;
        }
        const float *row = image + begin * g.plane + (j >= r ? j - r : j - r + g.h) * g.width;
        for (int k = begin; k < end; k++, row += g.plane) {
          float gradient[T], weight[S];
          conv2d_small_fetch<T>(gradient, row);
          conv2d_small_weights<S>(weight, quads, fifths, (k * S + r) * g.k + c);
          // >>> exercise conv2d_small_spread: spread T gradients of a row of dy over T + S - 1 numbers of a row of dx
          // hint: output i of the forward pass has read input i + s at tap s: so its gradient goes back there
          // hint: weight[s] is that of tap s; sum[0] is the leftmost number of dx, counted from the padding
          // hint: for each s < S and each i < T: sum[i + s] += weight[s] * gradient[i]
#pragma unroll
          for (int s = 0; s < S; s++)
#pragma unroll
            for (int i = 0; i < T; i++) sum[i + s] = fmaf(weight[s], gradient[i], sum[i + s]);
          // <<< exercise
        }
      }
      conv2d_small_put(to, sum, j < S - 1 ? j + g.h : j, above, left, g);
    }
    __syncthreads();
    conv2d_small_store(dx + n * g.k * g.p * g.q, sums, g);
  }
}

/* A thread has one filter, one channel, and every `parts`-th piece of dy. partial is (blocks,K,C*S*S+1); the last is
 * the bias. */
template <int S, int T>
static __global__ void __launch_bounds__(T == CONV2D_SMALL_WIDE ? CONV2D_SMALL_WEIGHTS / 4 * 3 : CONV2D_SMALL_WEIGHTS,
                                         2)
    conv2d_small_weight_kernel(float *partial, const float *dy, const float *x, Conv2dSmallWeight v) {
  extern __shared__ float4 conv2d_small_shared[];
  const Conv2dSmall g = v.g;
  float *gradients = (float *)conv2d_small_shared, *image = gradients + g.k * v.plane;
  const int part = threadIdx.x / v.jobs, job = threadIdx.x % v.jobs, k = job % g.k, c = job / g.k;
  const int pieces = part < v.parts ? g.p * g.tiles : 0;
  conv2d_small_clear(gradients, g.k * v.plane + g.c * g.plane);

  float sum[S][S] = {}, bias = 0;
  for (size_t n = blockIdx.x; n < (size_t)g.n; n += gridDim.x) {
    __syncthreads(); /* all threads have finished with the image before */
    conv2d_small_load(image + g.pad_h * g.width + g.pad_w, x + n * g.c * g.h * g.w, g.c, g.h, g.w, g.plane, g.width);
    conv2d_small_load(gradients, dy + n * g.k * g.p * g.q, g.k, g.p, g.q, v.plane, v.width);
    __syncthreads();
    for (int piece = part; piece < pieces; piece += v.parts) {
      const int p = piece / g.tiles, q0 = piece % g.tiles * T;
      const float *row = image + c * g.plane + p * g.width + q0;
      float gradient[T];
      conv2d_small_fetch<T>(gradient, gradients + k * v.plane + p * v.width + q0);
#pragma unroll
      for (int r = 0; r < S; r++, row += g.width) {
        float input[T + S - 1];
        conv2d_small_fetch<T + S - 1>(input, row);
#pragma unroll
        for (int q = 0; q < T; q++)
#pragma unroll
          for (int tap = 0; tap < S; tap++) sum[r][tap] += gradient[q] * input[q + tap];
      }
      if (c == 0)
#pragma unroll
        for (int i = 0; i < T; i++) bias += gradient[i];
    }
  }

  /* The upper half of the parts hands its sums to the lower half, until one is left: (parts / 2,S*S+1,jobs). */
  float *sums = (float *)conv2d_small_shared;
  for (int count = v.parts; count > 1; count = (count + 1) / 2) {
    const int half = (count + 1) / 2;
    __syncthreads(); /* what lies there has been read */
    if (part >= half && part < count) {
      float *to = sums + (part - half) * (S * S + 1) * v.jobs + job;
#pragma unroll
      for (int i = 0; i < S * S; i++) to[i * v.jobs] = sum[i / S][i % S];
      to[S * S * v.jobs] = bias;
    }
    __syncthreads();
    if (part < count - half) {
      const float *from = sums + part * (S * S + 1) * v.jobs + job;
#pragma unroll
      for (int i = 0; i < S * S; i++) sum[i / S][i % S] += from[i * v.jobs];
      bias += from[S * S * v.jobs];
    }
  }
  if (part > 0) return;
  float *to = partial + ((size_t)blockIdx.x * g.k + k) * (g.c * S * S + 1);
#pragma unroll
  for (int i = 0; i < S * S; i++) to[c * S * S + i] = sum[i / S][i % S];
  if (c == 0) to[g.c * S * S] = bias;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline int conv2d_small_fits(Conv2dShape s, Error *err) {
  const Conv2dShapeText t = conv2d_shape_text(s);
  const int usual = conv2d_is_dense(s) && s.stride_h == 1 && s.stride_w == 1;
  if (!usual || s.r != s.s || (s.s != 3 && s.s != 5) || s.padding_h > s.r - 1 || s.padding_w > s.s - 1)
    return error_set(err,
                     "small computes convolutions of one group with stride 1, dilation 1, filters of 3 x 3 or 5 x 5 "
                     "and less padding than that; this one is %s: use implicit_gemm",
                     t.text);
  const double most = CONV2D_SMALL_SHARED, x = (double)s.c * s.h * s.w, w = (double)s.k * s.c * s.r * s.s;
  const double y = (double)s.k * conv2d_out_h(s) * conv2d_out_w(s);
  if (x > most || y > most || w > most || (double)s.k * s.c > CONV2D_SMALL_WEIGHTS / 4 * 3 ||
      conv2d_small_shared_bytes(conv2d_small_forward_geometry(s), s.s) > most ||
      conv2d_small_shared_bytes(conv2d_small_input_geometry(s), s.s) > most ||
      conv2d_small_weight_bytes(conv2d_small_weight_geometry(s), s.s) > most)
    return error_set(err,
                     "small keeps an image, all filters and the outputs in %d KiB of shared memory; those of %s do not "
                     "fit: use implicit_gemm",
                     CONV2D_SMALL_SHARED >> 10, t.text);
  return 0;
}

/* `most` blocks per multiprocessor, or one per image. */
static inline unsigned conv2d_small_blocks(int n, int most) {
  const int blocks = most * conv2d_multiprocessors();
  return (unsigned)(n < blocks ? n : blocks);
}

template <int S, bool FLIP>
static inline void conv2d_small_launch(float *y, const float *x, const float *w, const float *bias, Conv2dSmall g) {
  const int most = conv2d_small_threads(g.t, CONV2D_SMALL_BLOCK), jobs = conv2d_small_up(g.jobs * g.parts, 32);
  const int threads = jobs < 128 ? 128 : jobs < most ? jobs : most; /* few jobs, but an image must be loaded */
  const unsigned blocks = conv2d_small_blocks(g.n, 4);
  const size_t bytes = conv2d_small_shared_bytes(g, S);
  if (g.t == CONV2D_SMALL_WIDE)
    conv2d_small_kernel<S, CONV2D_SMALL_WIDE, FLIP><<<blocks, threads, bytes>>>(y, x, w, bias, g);
  else
    conv2d_small_kernel<S, CONV2D_SMALL_NARROW, FLIP><<<blocks, threads, bytes>>>(y, x, w, bias, g);
  CUDA_CHECK_LAUNCH();
}

template <int S>
static inline void conv2d_small_launch_input(float *dx, const float *dy, const float *w, Conv2dSmall g) {
  const int most = conv2d_small_threads(g.t, CONV2D_SMALL_BLOCK), jobs = conv2d_small_up(g.jobs * g.parts, 32);
  const int threads = jobs < 128 ? 128 : jobs < most ? jobs : most;
  const unsigned blocks = conv2d_small_blocks(g.n, 4);
  const size_t bytes = conv2d_small_shared_bytes(g, S);
  if (g.t == CONV2D_SMALL_WIDE)
    conv2d_small_input_kernel<S, CONV2D_SMALL_WIDE><<<blocks, threads, bytes>>>(dx, dy, w, g);
  else
    conv2d_small_input_kernel<S, CONV2D_SMALL_NARROW><<<blocks, threads, bytes>>>(dx, dy, w, g);
  CUDA_CHECK_LAUNCH();
}

template <int S>
static inline void conv2d_small_launch_weight(float *partial, const float *dy, const float *x, Conv2dSmallWeight v,
                                              unsigned blocks) {
  const size_t bytes = conv2d_small_weight_bytes(v, S);
  if (v.g.t == CONV2D_SMALL_WIDE)
    conv2d_small_weight_kernel<S, CONV2D_SMALL_WIDE><<<blocks, v.threads, bytes>>>(partial, dy, x, v);
  else
    conv2d_small_weight_kernel<S, CONV2D_SMALL_NARROW><<<blocks, v.threads, bytes>>>(partial, dy, x, v);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_forward_small(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                        float *workspace) {
  (void)workspace;
  const Conv2dSmall g = conv2d_small_forward_geometry(s);
  if (s.s == 3)
    conv2d_small_launch<3, false>(y, x, w, bias, g);
  else
    conv2d_small_launch<5, false>(y, x, w, bias, g);
}

/* Where rows of dy are wide: the forward pass of dy with the filters turned around. */
static inline void conv2d_backward_input_small(float *dx, const float *dy, const float *w, Conv2dShape s,
                                               float *workspace) {
  (void)workspace;
  const Conv2dSmall g = conv2d_small_input_geometry(s);
  if (conv2d_small_spreads(s) && s.s == 3)
    conv2d_small_launch_input<3>(dx, dy, w, g);
  else if (conv2d_small_spreads(s))
    conv2d_small_launch_input<5>(dx, dy, w, g);
  else if (s.s == 3)
    conv2d_small_launch<3, true>(dx, dy, w, NULL, g);
  else
    conv2d_small_launch<5, true>(dx, dy, w, NULL, g);
}

/* A partial sum for each block of backward_weight. */
static inline size_t conv2d_small_workspace_floats(Conv2dShape s) {
  return (size_t)conv2d_small_blocks(s.n, 2) * s.k * (s.c * s.r * s.s + 1);
}

static inline void conv2d_backward_weight_small(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                                float *workspace) {
  const int taps = s.c * s.r * s.s;
  const unsigned blocks = conv2d_small_blocks(s.n, 2);
  if (s.s == 3)
    conv2d_small_launch_weight<3>(workspace, dy, x, conv2d_small_weight_geometry(s), blocks);
  else
    conv2d_small_launch_weight<5>(workspace, dy, x, conv2d_small_weight_geometry(s), blocks);
  conv2d_backward_weight_sum_kernel<<<(s.k * (taps + 1) + 31) / 32, dim3(32, 32)>>>(dw, dbias, workspace, s.k, taps,
                                                                                    (int)blocks);
  CUDA_CHECK_LAUNCH();
}

static const Conv2dMethod conv2d_small_method = {
    "small",
    conv2d_small_fits,
    conv2d_small_workspace_floats,
    conv2d_forward_small,
    conv2d_backward_input_small,
    conv2d_backward_weight_small,
    conv2d_no_floats,
};

#endif /* PHASE3_CNN_CONV2D_SMALL_CUH */

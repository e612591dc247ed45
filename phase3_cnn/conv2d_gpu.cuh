/* conv2d_gpu.cuh - the convolution of conv2d.cuh on a GPU: a kernel with a thread for each output, to begin with, and
 * those that are used, whose threads compute several outputs from what they load; and their launchers. */
#ifndef PHASE3_CNN_CONV2D_GPU_CUH
#define PHASE3_CNN_CONV2D_GPU_CUH

#include "common/check.h"
#include "phase3_cnn/conv2d_reference.cuh"

enum {
  CONV2D_BLOCK = 256,        /* threads of a block, as dim3: (pixels, shares of the sum of an output) */
  CONV2D_SHARES = 8,         /* at most */
  CONV2D_FILTERS = 8,        /* outputs a thread computes from one input */
  CONV2D_COLUMNS = 5,        /* inputs that it loads at once: for a row of a 5 x 5 filter */
  CONV2D_ROWS = 96,          /* of filters, in shared memory at once */
  CONV2D_WEIGHT_BLOCK = 512, /* backward_weight: threads, as dim3: (taps, shares), and pixels in shared memory */
  CONV2D_WEIGHT_BLOCKS = 2,  /* backward_weight: for each multiprocessor */
};

/* One thread for each output (n,k,p,q), the loops of the formula. Every product costs two loads. */
static __global__ void conv2d_forward_naive_kernel(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape shape, int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * p_count * q_count) return;
  int q = i % q_count, p = i / q_count % p_count, k = i / ((size_t)q_count * p_count) % shape.k;
  size_t n = i / ((size_t)q_count * p_count * shape.k);

  float sum = bias != NULL ? bias[k] : 0.0f;
  for (int c = 0; c < shape.c; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
        if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
        sum += w[((k * shape.c + c) * shape.r + r) * shape.s + s] * x[((n * shape.c + c) * shape.h + h) * shape.w + v];
      }
  y[i] = sum;
}

/* to[f] = the same element of the next filters, `step` floats apart; zero past the last of the `left`. */
static __device__ __forceinline__ void conv2d_load_filters(float *to, const float *from, int step, int left) {
  for (int f = 0; f < CONV2D_FILTERS; f++) to[f] = f < left ? from[(size_t)f * step] : 0.0f;
}

/* Adds up the sums of threads (x, 0), (x, 1).. of a block, in this order, for thread (x, 0). */
template <int THREADS>
static __device__ __forceinline__ void conv2d_add_shares(float *sum) {
  __shared__ float sums[CONV2D_FILTERS][THREADS];
  for (int j = 0; j < CONV2D_FILTERS; j++) sums[j][threadIdx.y * blockDim.x + threadIdx.x] = sum[j];
  __syncthreads();
  if (threadIdx.y > 0) return;
#pragma unroll 1
  for (unsigned i = threadIdx.x + blockDim.x; i < blockDim.x * blockDim.y; i += blockDim.x)
    for (int j = 0; j < CONV2D_FILTERS; j++) sum[j] += sums[j][i];
}

/* A row of taps, and what a pixel that lies at (0,0) reads there. */
typedef struct Conv2dRow {
  int h, offset; /* of the row in a plane, and of its first input in the image */
  int phase;     /* backward_input: only pixels of this remainder by the stride meet the row */
} Conv2dRow;

/* A thread computes one pixel of several filters: it loads an input once for all their products, and the weights of a
 * tap lie side by side in shared memory, where the whole warp reads the same 16 bytes. A small batch has too few pixels
 * to fill a GPU, so threads (x, 0), (x, 1).. of a block share out the rows of taps of pixel x; blockIdx.y counts the
 * groups of filters. */
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_forward_kernel(float *y, const float *x, const float *w, const float *bias, Conv2dShape shape, int p_count,
                          int q_count) {
  __shared__ __align__(16) float filters[CONV2D_ROWS][CONV2D_COLUMNS][CONV2D_FILTERS];
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  unsigned pixels = p_count * q_count, taps = shape.c * shape.r * shape.s, k0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels; /* threads past the end help to load, and do not store */
  unsigned pixel = here % pixels;
  int h0 = (int)(pixel / q_count) * shape.stride - shape.padding;
  int v0 = (int)(pixel % q_count) * shape.stride - shape.padding;
  const float *corner = x + n * shape.c * shape.h * shape.w + h0 * shape.w + v0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS]; /* of the image and of the filter */
    for (int j = 0; j < CONV2D_COLUMNS; j++) inside[j] = s0 + j < shape.s && v0 + s0 + j >= 0 && v0 + s0 + j < shape.w;

    for (int first = 0; first < shape.c * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.c * shape.r - first);
      __syncthreads(); /* everyone is done with the last rows */
      for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
        int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, c = row / shape.r, r = row % shape.r;
        float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
        conv2d_load_filters(to, w + (size_t)k0 * taps + row * shape.s + s, taps, s < shape.s ? shape.k - k0 : 0);
        if (s == s0) rows[e / CONV2D_COLUMNS] = {r, (c * shape.h + r) * shape.w + s0, 0};
      }
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = (unsigned)(h0 + row.h) < (unsigned)shape.h; /* negative: a large unsigned */
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float value = row_inside && inside[j] ? from[j] : 0.0f;
          for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += filters[e][j][f] * value;
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = y + (n * shape.k + k0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)k0 + f < shape.k) out[(size_t)f * pixels] = sum[f] + (bias != NULL ? bias[k0 + f] : 0.0f);
}

/* The mirror image of the forward kernel: a thread computes one input pixel (n,h,v) of several channels and gathers,
 * from every filter, the outputs that it went into. Those are p = (h + padding - r) / stride where that has no
 * remainder, so h + padding and r leave the same remainder, and p is the difference of their quotients. STRIDE 1 is
 * a version of its own, where the divisions vanish; 0 takes any stride. */
template <int STRIDE>
static __global__ void __launch_bounds__(CONV2D_BLOCK)
    conv2d_backward_input_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape, int p_count,
                                 int q_count) {
  __shared__ __align__(16) float filters[CONV2D_ROWS][CONV2D_COLUMNS][CONV2D_FILTERS]; /* of several channels */
  __shared__ Conv2dRow rows[CONV2D_ROWS];
  int stride = STRIDE > 0 ? STRIDE : shape.stride;
  unsigned pixels = shape.h * shape.w, area = shape.r * shape.s, c0 = blockIdx.y * CONV2D_FILTERS;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, total = (size_t)shape.n * pixels;
  size_t here = i < total ? i : total - 1, n = here / pixels;
  unsigned pixel = here % pixels, h = pixel / shape.w + shape.padding, v = pixel % shape.w + shape.padding;
  int p0 = h / stride, q0 = v / stride, h_phase = h % stride, v_phase = v % stride;
  const float *corner = dy + n * shape.k * p_count * q_count + p0 * q_count + q0;

  float sum[CONV2D_FILTERS] = {0};
  for (int s0 = 0; s0 < shape.s; s0 += CONV2D_COLUMNS) {
    bool inside[CONV2D_COLUMNS];
    int column[CONV2D_COLUMNS];
    for (int j = 0; j < CONV2D_COLUMNS; j++) {
      column[j] = -((s0 + j) / stride);
      inside[j] = s0 + j < shape.s && (s0 + j) % stride == v_phase && q0 + column[j] >= 0 && q0 + column[j] < q_count;
    }
    for (int first = 0; first < shape.k * shape.r; first += CONV2D_ROWS) {
      int count = min(CONV2D_ROWS, shape.k * shape.r - first);
      __syncthreads();
      for (int e = threadIdx.y * blockDim.x + threadIdx.x; e < count * CONV2D_COLUMNS; e += CONV2D_BLOCK) {
        int row = first + e / CONV2D_COLUMNS, s = s0 + e % CONV2D_COLUMNS, k = row / shape.r, r = row % shape.r;
        float *to = filters[e / CONV2D_COLUMNS][e % CONV2D_COLUMNS];
        const float *from = w + ((size_t)k * shape.c + c0) * area + r * shape.s + s;
        conv2d_load_filters(to, from, area, s < shape.s ? shape.c - c0 : 0);
        int up = r / stride;
        if (s == s0) rows[e / CONV2D_COLUMNS] = {-up, (k * p_count - up) * q_count, r % stride};
      }
      __syncthreads();

      for (int e = threadIdx.y; e < count; e += blockDim.y) {
        Conv2dRow row = rows[e];
        const float *from = corner + row.offset;
        bool row_inside = row.phase == h_phase && (unsigned)(p0 + row.h) < (unsigned)p_count;
        for (int j = 0; j < CONV2D_COLUMNS; j++) {
          float value = row_inside && inside[j] ? from[column[j]] : 0.0f;
          for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += filters[e][j][f] * value;
        }
      }
    }
  }
  conv2d_add_shares<CONV2D_BLOCK>(sum);
  if (i >= total || threadIdx.y > 0) return;

  float *out = dx + (n * shape.c + c0) * pixels + pixel;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)c0 + f < shape.c) out[(size_t)f * pixels] = sum[f];
}

/* Where the filter's corner lies for a pixel. */
typedef struct Conv2dPixel {
  int h, v; /* in the plane: outside it is the border of zeros */
  const float *corner;
} Conv2dPixel;

/* A thread computes one tap of several filters; blockIdx.x counts slices of the pixels of all images, blockIdx.z groups
 * of filters. The threads of a block need the same dy, which wait in shared memory, and x next to each other; threads
 * (x, 0), (x, 1).. share out the pixels. Tap number `taps` is the bias: it lies outside the image, and reads 1 there.
 * partial (slices, K, taps+1) is added up by the next kernel, in a fixed order: atomicAdd would give another sum in
 * every run. */
static __global__ void __launch_bounds__(CONV2D_WEIGHT_BLOCK)
    conv2d_backward_weight_kernel(float *partial, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                  int q_count, size_t slice_pixels) {
  __shared__ __align__(16) float gradients[CONV2D_WEIGHT_BLOCK][CONV2D_FILTERS];
  __shared__ Conv2dPixel places[CONV2D_WEIGHT_BLOCK];
  unsigned area = shape.r * shape.s, taps = shape.c * area, pixels = p_count * q_count, plane = shape.h * shape.w;
  unsigned k0 = blockIdx.z * CONV2D_FILTERS, t = blockIdx.y * blockDim.x + threadIdx.x;
  bool is_tap = t < taps;
  int c = t / area, r = is_tap ? t % area / shape.s : INT_MIN / 2, s = t % shape.s;
  int offset = is_tap ? (c * shape.h + r) * shape.w + s : 0;
  float outside = is_tap ? 0.0f : 1.0f;

  float sum[CONV2D_FILTERS] = {0};
  size_t first = blockIdx.x * slice_pixels, last = min(first + slice_pixels, (size_t)shape.n * pixels);
  for (; first < last; first += CONV2D_WEIGHT_BLOCK) {
    int count = (int)min((size_t)CONV2D_WEIGHT_BLOCK, last - first);
    __syncthreads(); /* everyone is done with the last pixels */
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < count; i += blockDim.x * blockDim.y) {
      size_t n = (first + i) / pixels;
      unsigned pixel = (first + i) % pixels;
      conv2d_load_filters(gradients[i], dy + (n * shape.k + k0) * pixels + pixel, pixels, shape.k - k0);
      int h = (int)(pixel / q_count) * shape.stride - shape.padding;
      int v = (int)(pixel % q_count) * shape.stride - shape.padding;
      places[i] = {h, v, x + n * shape.c * plane + h * shape.w + v};
    }
    __syncthreads();

    int share = (count + blockDim.y - 1) / blockDim.y, end = min(count, (int)(threadIdx.y + 1) * share);
#pragma unroll 8 /* so that eight loads are under way at once */
    for (int i = threadIdx.y * share; i < end; i++) {
      Conv2dPixel at = places[i];
      bool inside = (unsigned)(at.h + r) < (unsigned)shape.h && (unsigned)(at.v + s) < (unsigned)shape.w;
      float value = inside ? at.corner[offset] : outside;
      for (int f = 0; f < CONV2D_FILTERS; f++) sum[f] += gradients[i][f] * value;
    }
  }
  conv2d_add_shares<CONV2D_WEIGHT_BLOCK>(sum);
  if (t > taps || threadIdx.y > 0) return;

  float *out = partial + ((size_t)blockIdx.x * shape.k + k0) * (taps + 1) + t;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)k0 + f < shape.k) out[(size_t)f * (taps + 1)] = sum[f];
}

/* A block of 32 x 32 threads for 32 weights (a bias counts as one): thread (x, y) adds up every 32nd slice of weight x,
 * so that a warp reads 32 neighbours; then warp y adds up the 32 sums of weight y. */
static __global__ void __launch_bounds__(1024)
    conv2d_backward_weight_sum_kernel(float *dw, float *dbias, const float *partial, int filters, int taps,
                                      int slices) {
  __shared__ float sums[32][33]; /* one more than 32: a column, too, lies in 32 banks */
  int weights = filters * (taps + 1), weight = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (weight < weights)
#pragma unroll 8
    for (int i = threadIdx.y; i < slices; i += 32) sum += partial[(size_t)i * weights + weight];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();

  sum = sums[threadIdx.x][threadIdx.y];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  weight = blockIdx.x * 32 + threadIdx.y;
  if (threadIdx.x > 0 || weight >= weights) return;
  int k = weight / (taps + 1), t = weight % (taps + 1);
  if (t < taps)
    dw[(size_t)k * taps + t] = sum;
  else if (dbias != NULL)
    dbias[k] = sum;
}

/* ------------------------------------------------------------------------------------------------ launchers */

static inline unsigned conv2d_blocks(size_t threads) { return (unsigned)((threads + CONV2D_BLOCK - 1) / CONV2D_BLOCK); }

static inline void conv2d_forward_naive(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  conv2d_forward_naive_kernel<<<conv2d_blocks((size_t)s.n * s.k * p_count * q_count), CONV2D_BLOCK>>>(y, x, w, bias, s,
                                                                                                      p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline int conv2d_filter_groups(int filters) { return (filters + CONV2D_FILTERS - 1) / CONV2D_FILTERS; }

static inline int conv2d_multiprocessors(void) {
  static int count; /* of the one device that the program uses */
  if (count == 0) {
    int device;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  }
  return count;
}

/* Shares are made until there are threads enough to fill the GPU, 2048 for each multiprocessor. A share has six rows or
 * more: fewer are not worth adding up. */
static inline dim3 conv2d_block(int rows, size_t pixels, int filters) {
  size_t threads = pixels * conv2d_filter_groups(filters), room = (size_t)conv2d_multiprocessors() * 2048;
  int shares = 1;
  while (2 * shares <= CONV2D_SHARES && rows >= 6 * 2 * shares && threads * shares < room) shares *= 2;
  return dim3(CONV2D_BLOCK / shares, shares);
}

static inline dim3 conv2d_grid(size_t pixels, int filters, dim3 block) {
  return dim3((unsigned)((pixels + block.x - 1) / block.x), conv2d_filter_groups(filters));
}

static inline void conv2d_forward_gpu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  size_t pixels = (size_t)s.n * p_count * q_count;
  dim3 block = conv2d_block(s.c * s.r, pixels, s.k), grid = conv2d_grid(pixels, s.k, block);
  conv2d_forward_kernel<<<grid, block>>>(y, x, w, bias, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_input_gpu(float *dx, const float *dy, const float *w, Conv2dShape s) {
  size_t pixels = (size_t)s.n * s.h * s.w;
  dim3 block = conv2d_block(s.k * s.r, pixels, s.c), grid = conv2d_grid(pixels, s.c, block);
  if (s.stride == 1)
    conv2d_backward_input_kernel<1><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  else
    conv2d_backward_input_kernel<0><<<grid, block>>>(dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

/* How backward_weight cuts the pixels of a batch into slices: a few blocks cover all taps and filters, and slices are
 * made until every multiprocessor has CONV2D_WEIGHT_BLOCKS. `most` does not depend on the batch. */
typedef struct Conv2dSlices {
  dim3 grid, block;
  size_t pixels, most; /* of a slice; slices of any batch */
} Conv2dSlices;

static inline Conv2dSlices conv2d_slices(Conv2dShape s) {
  size_t pixels = (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s);
  int taps = (s.c * s.r * s.s + 1 + 31) / 32 * 32, filter_tiles = conv2d_filter_groups(s.k);
  int taps_here = taps < CONV2D_WEIGHT_BLOCK ? taps : CONV2D_WEIGHT_BLOCK;
  int tap_tiles = (taps + taps_here - 1) / taps_here;
  Conv2dSlices slices;
  slices.most = (size_t)conv2d_multiprocessors() * CONV2D_WEIGHT_BLOCKS / ((size_t)tap_tiles * filter_tiles) + 1;
  slices.pixels = (pixels + slices.most - 1) / slices.most;
  slices.block = dim3(taps_here, CONV2D_WEIGHT_BLOCK / taps_here);
  slices.grid = dim3((unsigned)((pixels + slices.pixels - 1) / slices.pixels), tap_tiles, filter_tiles);
  return slices;
}

/* Floats that conv2d_backward_weight_gpu needs beside its arguments; no fewer for a larger batch. */
static inline size_t conv2d_workspace_floats_gpu(Conv2dShape s) {
  size_t pixels = (size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s), most = conv2d_slices(s).most;
  return (pixels < most ? pixels : most) * s.k * (s.c * s.r * s.s + 1);
}

static inline void conv2d_backward_weight_gpu(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s,
                                              float *workspace) {
  Conv2dSlices slices = conv2d_slices(s);
  int taps = s.c * s.r * s.s;
  conv2d_backward_weight_kernel<<<slices.grid, slices.block>>>(workspace, dy, x, s, conv2d_out_h(s), conv2d_out_w(s),
                                                               slices.pixels);
  CUDA_CHECK_LAUNCH();
  conv2d_backward_weight_sum_kernel<<<(s.k * (taps + 1) + 31) / 32, dim3(32, 32)>>>(dw, dbias, workspace, s.k, taps,
                                                                                    slices.grid.x);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_GPU_CUH */

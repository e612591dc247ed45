/* conv2d_backward_weight.cuh - the gradients of convolution (conv2d.cuh) with respect to filters and bias, on the GPU:
 * dw and dbias from dy and x.
 *
 * The sum goes over all pixels of all images, so it is cut into slices: one kernel computes a partial sum of each
 * slice, a second kernel adds them up in a fixed order.
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_CUH

#include <limits.h>

#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

/* Where the corner of the filter lies for a pixel of dy. */
typedef struct Conv2dPixel {
  int h, v; /* in the plane; outside of it is the border of zeros */
  const float *corner;
} Conv2dPixel;

/* dy of `count` pixels from pixel `first` of the batch on, of filters k0 ... k0 + 7, to shared memory; and where in x
 * each pixel reads. */
static __device__ __forceinline__ void conv2d_backward_weight_load(float (*gradients)[CONV2D_FILTERS],
                                                                   Conv2dPixel *places, const float *dy, const float *x,
                                                                   Conv2dShape shape, int p_count, int q_count,
                                                                   unsigned k0, size_t first, int count) {
  unsigned pixels = p_count * q_count, plane = shape.h * shape.w;
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < count; i += blockDim.x * blockDim.y) {
    size_t n = (first + i) / pixels;
    unsigned pixel = (first + i) % pixels;
    conv2d_load_filters(gradients[i], dy + (n * shape.k + k0) * pixels + pixel, pixels, shape.k - k0);
    int h = (int)(pixel / q_count) * shape.stride_h - shape.padding_h;
    int v = (int)(pixel % q_count) * shape.stride_w - shape.padding_w;
    places[i] = {h, v, x + n * shape.c * plane + h * shape.w + v};
  }
}

/* A thread computes one tap of CONV2D_FILTERS filters; blockIdx.x counts slices of the pixels of all images,
 * blockIdx.z groups of filters. The threads of a block need the same dy, which is in shared memory, and neighbouring
 * elements of x; threads (x, 0), (x, 1), ... share out the pixels. Tap number `taps` is the bias: it lies outside the
 * image, and reads 1 there. partial (slices,K,taps+1) is added up by the next kernel in a fixed order; with atomicAdd
 * the rounding would differ from run to run. */
static __global__ void __launch_bounds__(CONV2D_WEIGHT_BLOCK)
    conv2d_backward_weight_kernel(float *partial, const float *dy, const float *x, Conv2dShape shape, int p_count,
                                  int q_count, size_t slice_pixels) {
  __shared__ __align__(16) float gradients[CONV2D_WEIGHT_BLOCK][CONV2D_FILTERS];
  __shared__ Conv2dPixel places[CONV2D_WEIGHT_BLOCK];
  unsigned area = shape.r * shape.s, taps = shape.c * area, pixels = p_count * q_count;
  unsigned k0 = blockIdx.z * CONV2D_FILTERS, t = blockIdx.y * blockDim.x + threadIdx.x;
  bool is_tap = t < taps;
  int c = t / area, r = is_tap ? t % area / shape.s : INT_MIN / 2, s = t % shape.s;
  int offset = is_tap ? (c * shape.h + r) * shape.w + s : 0;
  float outside = is_tap ? 0.0f : 1.0f;

  float sum[CONV2D_FILTERS] = {0};
  size_t first = blockIdx.x * slice_pixels, last = min(first + slice_pixels, (size_t)shape.n * pixels);
  for (; first < last; first += CONV2D_WEIGHT_BLOCK) {
    int count = (int)min((size_t)CONV2D_WEIGHT_BLOCK, last - first);
    __syncthreads(); /* all threads have finished with the pixels before */
    conv2d_backward_weight_load(gradients, places, dy, x, shape, p_count, q_count, k0, first, count);
    __syncthreads();

    int share = (count + blockDim.y - 1) / blockDim.y, end = min(count, (int)(threadIdx.y + 1) * share);
#pragma unroll 8 /* so that eight loads are in flight at once */
    for (int i = threadIdx.y * share; i < end; i++) {
      Conv2dPixel at = places[i];
      bool inside = (unsigned)(at.h + r) < (unsigned)shape.h && (unsigned)(at.v + s) < (unsigned)shape.w;
      float input = inside ? at.corner[offset] : outside;
      conv2d_add_products(sum, gradients[i], input);
    }
  }
  conv2d_add_shares<CONV2D_WEIGHT_BLOCK>(sum);
  if (t > taps || threadIdx.y > 0) return;

  float *out = partial + ((size_t)blockIdx.x * shape.k + k0) * (taps + 1) + t;
  for (int f = 0; f < CONV2D_FILTERS; f++)
    if ((int)k0 + f < shape.k) out[(size_t)f * (taps + 1)] = sum[f];
}

/* A block of 32 x 32 threads adds up 32 weights (a bias counts as one): thread (x, y) every 32nd slice of weight x, so
 * that a warp reads 32 neighbours; then warp y adds up the 32 sums of weight y. */
static __global__ void __launch_bounds__(1024)
    conv2d_backward_weight_sum_kernel(float *dw, float *dbias, const float *partial, int filters, int taps,
                                      int slices) {
  __shared__ float sums[32][33]; /* 33, so that the elements of a column are in 32 different banks */
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

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* How backward_weight cuts the pixels of a batch into slices. A few blocks cover all taps and filters of one slice;
 * there are as many slices as give every multiprocessor CONV2D_WEIGHT_BLOCKS blocks. `most` does not depend on the
 * batch. */
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

/* The GPU part of conv2d_workspace_floats() in conv2d.cuh. */
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

#endif /* PHASE3_CNN_CONV2D_BACKWARD_WEIGHT_CUH */

/* pool2d_half.cuh - max pooling and global average pooling of arrays of 16 bits, (N,H,W,C) with the channels filled up
 * (common/half.h). T is __nv_bfloat16 or __half. A thread has eight channels of a pixel, 16 bytes.
 *
 *   max_pool2d_half_forward         y, and for each output the place in its window of the largest, a byte. Of equal
 *                                   values the first wins, and NaN beats any number. With `relu`: of max(0, x)
 *   max_pool2d_half_backward        each input gathers dy of the windows in which it was the largest: no two threads
 *                                   write the same element
 *   global_avg_pool2d_half_*        the mean of each channel, summed in float32
 *
 * The float32 versions, which on a CPU are the definition of these, are in max_pool2d.cuh and global_avg_pool2d.cuh.
 */
#ifndef PHASE3_CNN_POOL2D_HALF_CUH
#define PHASE3_CNN_POOL2D_HALF_CUH

#include "common/half.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"

/* Sizes, as a kernel takes them; windows without dilation. runs: eights of channels. */
typedef struct PoolHalfShape {
  int n, runs, h, w, p, q;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} PoolHalfShape;

static inline PoolHalfShape pool_half_shape(Pool2dShape s) {
  const PoolHalfShape shape = {s.n,
                               half_channels(s.c) / HALF_RUN,
                               s.h,
                               s.w,
                               pool2d_out_h(s),
                               pool2d_out_w(s),
                               s.kernel_h,
                               s.kernel_w,
                               s.stride_h,
                               s.stride_w,
                               s.pad_h,
                               s.pad_w};
  return shape;
}

template <typename T>
static __global__ void max_pool2d_half_forward_kernel(T *y, uint2 *place, const T *x, PoolHalfShape s, bool relu,
                                                      size_t threads) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  const int run = (int)(i % s.runs), q = (int)(i / s.runs % s.q), p = (int)(i / s.runs / s.q % s.p);
  const size_t image = i / s.runs / s.q / s.p;
  float best[HALF_RUN] = {};
  unsigned at[HALF_RUN] = {};
  bool any = false;
  for (int a = 0; a < s.kernel_h; a++)
    for (int b = 0; b < s.kernel_w; b++) {
      const int h = p * s.stride_h - s.pad_h + a, w = q * s.stride_w - s.pad_w + b;
      if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
      float v[HALF_RUN];
      half_load(v, x + (((image * s.h + h) * s.w + w) * s.runs + run) * HALF_RUN);
#pragma unroll
      for (int e = 0; e < HALF_RUN; e++) {
        if (any && !MAX_POOL2D_BEATS(v[e], best[e])) continue;
        best[e] = v[e];
        at[e] = (unsigned)(a * s.kernel_w + b);
      }
      any = true;
    }
  uint2 places = {0, 0};
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    if (relu && best[e] <= 0) {
      best[e] = 0;
      at[e] = POOL2D_NOTHING;
    }
    (e < 4 ? places.x : places.y) |= at[e] << e % 4 * 8;
  }
  half_store(y + i * HALF_RUN, best);
  place[i] = places;
}

template <typename T>
static __global__ void max_pool2d_half_backward_kernel(T *dx, const T *dy, const uint2 *place, PoolHalfShape s,
                                                       size_t threads) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  const int run = (int)(i % s.runs), w = (int)(i / s.runs % s.w), h = (int)(i / s.runs / s.w % s.h);
  const size_t image = i / s.runs / s.w / s.h;
  float sum[HALF_RUN] = {};
  /* Windows that have row h: from the first that ends behind it to the last that begins before it. */
  const int top = h + s.pad_h, left = w + s.pad_w;
  const int p0 = top < s.kernel_h ? 0 : (top - s.kernel_h) / s.stride_h + 1;
  const int q0 = left < s.kernel_w ? 0 : (left - s.kernel_w) / s.stride_w + 1;
  for (int p = p0; p < s.p && p * s.stride_h <= top; p++)
    for (int q = q0; q < s.q && q * s.stride_w <= left; q++) {
      const unsigned own = (unsigned)((top - p * s.stride_h) * s.kernel_w + left - q * s.stride_w);
      const size_t output = ((image * s.p + p) * s.q + q) * s.runs + run;
      const uint2 places = place[output];
      float g[HALF_RUN];
      half_load(g, dy + output * HALF_RUN);
#pragma unroll
      for (int e = 0; e < HALF_RUN; e++)
        if (((e < 4 ? places.x : places.y) >> e % 4 * 8 & 255) == own) sum[e] += g[e];
    }
  half_store(dx + i * HALF_RUN, sum);
}

/* One block per image and run of channels would be few; so a block has an image and all runs: 256 threads, those of a
 * run share out the pixels. */
template <typename T>
static __global__ void global_avg_pool2d_half_forward_kernel(T *y, const T *x, int runs, int pixels) {
  __shared__ float part[HALF_BLOCK][HALF_RUN + 1];
  const int lines = HALF_BLOCK / runs, run = (int)threadIdx.x % runs, line = (int)threadIdx.x / runs;
  const size_t image = blockIdx.x;
  float sum[HALF_RUN] = {};
  for (int pixel = line; pixel < pixels && line < lines; pixel += lines) {
    float v[HALF_RUN];
    half_load(v, x + ((image * pixels + pixel) * runs + run) * HALF_RUN);
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++) sum[e] += v[e];
  }
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) part[threadIdx.x][e] = sum[e];
  __syncthreads();
  if (line != 0) return;
  for (int i = 1; i < lines; i++)
#pragma unroll
    for (int e = 0; e < HALF_RUN; e++) sum[e] += part[i * runs + run][e];
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) sum[e] /= (float)pixels;
  half_store(y + (image * runs + run) * HALF_RUN, sum);
}

template <typename T>
static __global__ void global_avg_pool2d_half_backward_kernel(T *dx, const T *dy, int runs, int pixels,
                                                              size_t threads) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  float g[HALF_RUN];
  half_load(g, dy + (i / runs / pixels * runs + i % runs) * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) g[e] /= (float)pixels;
  half_store(dx + i * HALF_RUN, g);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* x (N,H,W,C') -> y, place (N,P,Q,C') */
template <typename T>
static inline void max_pool2d_half_forward(uint16_t *y, unsigned char *place, const uint16_t *x, Pool2dShape shape,
                                           bool relu) {
  const PoolHalfShape s = pool_half_shape(shape);
  const size_t threads = (size_t)s.n * s.p * s.q * s.runs;
  max_pool2d_half_forward_kernel<T>
      <<<half_blocks(threads), HALF_BLOCK>>>((T *)y, (uint2 *)place, (const T *)x, s, relu, threads);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void max_pool2d_half_backward(uint16_t *dx, const uint16_t *dy, const unsigned char *place,
                                            Pool2dShape shape) {
  const PoolHalfShape s = pool_half_shape(shape);
  const size_t threads = (size_t)s.n * s.h * s.w * s.runs;
  max_pool2d_half_backward_kernel<T>
      <<<half_blocks(threads), HALF_BLOCK>>>((T *)dx, (const T *)dy, (const uint2 *)place, s, threads);
  CUDA_CHECK_LAUNCH();
}

enum { GLOBAL_AVG_POOL_HALF_CHANNELS = HALF_BLOCK * HALF_RUN };

/* x (N,pixels,C') -> y (N,C'); at most GLOBAL_AVG_POOL_HALF_CHANNELS channels */
template <typename T>
static inline void global_avg_pool2d_half_forward(uint16_t *y, const uint16_t *x, int n, int channels, int pixels) {
  global_avg_pool2d_half_forward_kernel<T>
      <<<(unsigned)n, HALF_BLOCK>>>((T *)y, (const T *)x, half_channels(channels) / HALF_RUN, pixels);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void global_avg_pool2d_half_backward(uint16_t *dx, const uint16_t *dy, int n, int channels, int pixels) {
  const int runs = half_channels(channels) / HALF_RUN;
  const size_t threads = (size_t)n * pixels * runs;
  global_avg_pool2d_half_backward_kernel<T>
      <<<half_blocks(threads), HALF_BLOCK>>>((T *)dx, (const T *)dy, runs, pixels, threads);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_POOL2D_HALF_CUH */

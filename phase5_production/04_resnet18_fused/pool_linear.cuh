/* pool_linear.cuh - the last two operations of a ResNet in one kernel: the mean of each channel, and the linear layer.
 *
 *     x (N,pixels,pitch) T, C channels of each pixel   w (classes,C) float   bias (classes)   y (N,classes) float
 *
 *   pool_linear_forward_cpu   the loops of the formula, summed in double
 *   pool_linear_forward_gpu   a block computes 128 classes of 4 images: it first takes the means of their channels,
 *                             which stay in shared memory. T is __half, __nv_bfloat16 or float
 */
#ifndef PHASE5_PRODUCTION_POOL_LINEAR_CUH
#define PHASE5_PRODUCTION_POOL_LINEAR_CUH

#include "common/check.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

enum { POOL_LINEAR_IMAGES = 4, POOL_LINEAR_CLASSES = 128, POOL_LINEAR_THREADS = 256, POOL_LINEAR_CHANNELS = 2048 };

typedef struct PoolLinearShape {
  int n, pixels, c, pitch, classes; /* pitch: numbers of a pixel in memory */
} PoolLinearShape;

template <typename T>
static inline void pool_linear_forward_cpu(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  for (int n = 0; n < s.n; n++)
    for (int k = 0; k < s.classes; k++) {
      double sum = bias[k];
      for (int c = 0; c < s.c; c++) {
        double all = 0;
        for (int i = 0; i < s.pixels; i++) all += conv2d_widen(x[((size_t)n * s.pixels + i) * s.pitch + c]);
        sum += all / s.pixels * w[(size_t)k * s.c + c];
      }
      y[(size_t)n * s.classes + k] = (float)sum;
    }
}

/* Sixteen bytes of T. */
template <typename T>
struct __align__(16) PoolLinearRun {
  T v[16 / sizeof(T)];
};

/* mean (images, C) of the images from `image0` on: a thread has a run of channels, so a warp reads 512 neighbouring
 * bytes of a pixel. */
template <typename T>
static __device__ __forceinline__ void pool_linear_means(float (&mean)[POOL_LINEAR_IMAGES][POOL_LINEAR_CHANNELS],
                                                         const T *x, const PoolLinearShape &s, int image0) {
  const int run = 16 / (int)sizeof(T), runs = s.pitch / run;
  for (int i = threadIdx.x; i < POOL_LINEAR_IMAGES * runs; i += POOL_LINEAR_THREADS) {
    const int image = i / runs, c = i % runs * run;
    float sum[16 / sizeof(T)] = {};
    if (image0 + image >= s.n) continue;
    const T *from = x + (size_t)(image0 + image) * s.pixels * s.pitch + c;
#pragma unroll 7
    for (int p = 0; p < s.pixels; p++) {
      const PoolLinearRun<T> pixel = *(const PoolLinearRun<T> *)(from + (size_t)p * s.pitch);
#pragma unroll
      for (int e = 0; e < run; e++) sum[e] += conv2d_widen(pixel.v[e]);
    }
#pragma unroll
    for (int e = 0; e < run; e++)
      if (c + e < s.c) mean[image][c + e] = sum[e] / (float)s.pixels;
  }
}

template <typename T>
static __global__ void __launch_bounds__(POOL_LINEAR_THREADS)
    pool_linear_kernel(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  __shared__ float mean[POOL_LINEAR_IMAGES][POOL_LINEAR_CHANNELS];
  const int image0 = blockIdx.y * POOL_LINEAR_IMAGES, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int images = s.n - image0 < POOL_LINEAR_IMAGES ? s.n - image0 : POOL_LINEAR_IMAGES;
  pool_linear_means(mean, x, s, image0);
  __syncthreads();
  for (int k = blockIdx.x * POOL_LINEAR_CLASSES + warp;
       k < s.classes && k < (int)(blockIdx.x + 1) * POOL_LINEAR_CLASSES; k += POOL_LINEAR_THREADS / 32) {
    float sum[POOL_LINEAR_IMAGES] = {};
    // >>> exercise pool_linear_product: sum[i] = this lane's share of the product of row k of w and mean[i]
    // hint: row k of w has s.c floats; the lanes of the warp share them, and read neighbours at the same time
    // hint: each weight is loaded once, for all POOL_LINEAR_IMAGES means; those behind the last do not exist
    // hint: for (c = lane; c < s.c; c += 32): v = w[(size_t)k * s.c + c]; for i < images: sum[i] += v * mean[i][c]
#pragma unroll 4
    for (int c = lane; c < s.c; c += 32) {
      const float v = w[(size_t)k * s.c + c];
#pragma unroll
      for (int i = 0; i < POOL_LINEAR_IMAGES; i++)
        if (i < images) sum[i] += v * mean[i][c];
    }
    // <<< exercise
#pragma unroll
    for (int i = 0; i < POOL_LINEAR_IMAGES; i++) {
      for (int step = 16; step > 0; step /= 2) sum[i] += __shfl_xor_sync(0xFFFFFFFF, sum[i], step);
      if (lane == i && i < images) y[(size_t)(image0 + i) * s.classes + k] = sum[i] + bias[k];
    }
  }
}

template <typename T>
static inline void pool_linear_forward_gpu(float *y, const T *x, const float *w, const float *bias, PoolLinearShape s) {
  const dim3 grid((unsigned)(s.classes + POOL_LINEAR_CLASSES - 1) / POOL_LINEAR_CLASSES,
                  (unsigned)(s.n + POOL_LINEAR_IMAGES - 1) / POOL_LINEAR_IMAGES);
  if (s.c > POOL_LINEAR_CHANNELS)
    die("pool_linear: %d channels; at most %d: use the mean and the linear layer by themselves", s.c,
        POOL_LINEAR_CHANNELS);
  pool_linear_kernel<T><<<grid, POOL_LINEAR_THREADS>>>(y, x, w, bias, s);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_POOL_LINEAR_CUH */

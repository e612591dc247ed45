/* depthwise_half.cuh - a convolution of one channel each on 16 bits, channels last: what MobileNet has between two
 * products of 1 x 1, with its bias and its ReLU or Clip. T is __nv_bfloat16 or __half.
 *
 *     x (N,H,W,C)   w (R,S,C) float   bias (C) float   y (N,P,Q,C) = min(max(conv(x) + bias, least), most)
 *
 * Of each number of x there are R S products: too few for tensor cores, so memory is the limit. C is filled up to a
 * multiple of 8 (common/half.h). Sums are float32, and are rounded once.
 *
 *   depthwise_half_cpu      the loops of the formula
 *   depthwise_half_single   one thread per output: a warp loads 64 bytes of a pixel
 *   depthwise_half          one thread per run of eight channels: 16 bytes at once, and the addresses of a tap are
 *                           computed once for all eight
 */
#ifndef PHASE5_PRODUCTION_DEPTHWISE_HALF_CUH
#define PHASE5_PRODUCTION_DEPTHWISE_HALF_CUH

#include "common/half.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

typedef struct DepthwiseHalf {
  Conv2dShape shape; /* c is k, and both are as in memory: a multiple of HALF_RUN */
  float least, most;
} DepthwiseHalf;

static inline void depthwise_half_cpu(uint16_t *y, const uint16_t *x, const float *w, const float *bias,
                                      DepthwiseHalf d, DType type) {
  const Conv2dShape s = d.shape;
  for (int n = 0; n < s.n; n++)
    for (int p = 0; p < conv2d_out_h(s); p++)
      for (int q = 0; q < conv2d_out_w(s); q++)
        for (int c = 0; c < s.c; c++, y++) {
          float sum = bias ? bias[c] : 0;
          for (int r = 0; r < s.r; r++)
            for (int i = 0; i < s.s; i++) {
              const int h = p * s.stride_h - s.padding_h + r * s.dilation_h;
              const int at = q * s.stride_w - s.padding_w + i * s.dilation_w;
              if (h < 0 || h >= s.h || at < 0 || at >= s.w) continue;
              sum = fmaf(half_widen(type, x[(((size_t)n * s.h + h) * s.w + at) * s.c + c]), w[(r * s.s + i) * s.c + c],
                         sum);
            }
          *y = half_narrow(type, sum < d.least ? d.least : sum > d.most ? d.most : sum);
        }
}

/* Output i of (N,P,Q,`each`): image, row and column. */
typedef struct DepthwisePlace {
  int n, p, q;
} DepthwisePlace;

static __device__ __forceinline__ DepthwisePlace depthwise_half_place(size_t pixel, int p_count, int q_count) {
  const DepthwisePlace place = {(int)(pixel / q_count / p_count), (int)(pixel / q_count % p_count),
                                (int)(pixel % q_count)};
  return place;
}

/* The pixel that tap (r,i) reads, as a number of (N,H,W); -1: it lies in the padding. */
static __device__ __forceinline__ long long depthwise_half_tap(Conv2dShape s, DepthwisePlace at, int r, int i) {
  const int h = at.p * s.stride_h - s.padding_h + r * s.dilation_h;
  const int w = at.q * s.stride_w - s.padding_w + i * s.dilation_w;
  return h < 0 || h >= s.h || w < 0 || w >= s.w ? -1 : ((long long)at.n * s.h + h) * s.w + w;
}

template <typename T>
static __global__ void depthwise_half_single_kernel(T *y, const T *x, const float *w, const float *bias,
                                                    DepthwiseHalf d, int p_count, int q_count, size_t outputs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const Conv2dShape s = d.shape;
  if (i >= outputs) return;
  const int c = (int)(i % s.c);
  const DepthwisePlace at = depthwise_half_place(i / s.c, p_count, q_count);
  float sum = bias ? bias[c] : 0;
  for (int r = 0; r < s.r; r++)
    for (int tap = 0; tap < s.s; tap++) {
      const long long pixel = depthwise_half_tap(s, at, r, tap);
      if (pixel >= 0) sum = fmaf(half_float(x[pixel * s.c + c]), w[(r * s.s + tap) * s.c + c], sum);
    }
  half_set(&y[i], sum < d.least ? d.least : sum > d.most ? d.most : sum);
}

template <typename T>
static __global__ void depthwise_half_kernel(T *y, const T *x, const float *w, const float *bias, DepthwiseHalf d,
                                             int p_count, int q_count, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const Conv2dShape s = d.shape;
  if (i >= runs) return;
  const int c = (int)(i % (s.c / HALF_RUN)) * HALF_RUN; /* the first of this thread's eight channels */
  const DepthwisePlace at = depthwise_half_place(i / (s.c / HALF_RUN), p_count, q_count);
  float sum[HALF_RUN], v[HALF_RUN];
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) sum[e] = bias ? bias[c + e] : 0;
  // >>> exercise depthwise_run: add to sum[e] the products of channel c + e, of all taps that lie in the image
  // hint: depthwise_half_tap(s, at, r, tap) is the pixel that a tap reads, or -1; a pixel has s.c numbers
  // hint: half_load(v, x + pixel * s.c + c) loads eight channels at once; w has a row of s.c numbers for each tap
  // hint: sum[e] = fmaf(v[e], w[(r * s.s + tap) * s.c + c + e], sum[e]) for each of the eight
  for (int r = 0; r < s.r; r++)
    for (int tap = 0; tap < s.s; tap++) {
      const long long pixel = depthwise_half_tap(s, at, r, tap);
      if (pixel < 0) continue;
      half_load(v, x + pixel * s.c + c);
#pragma unroll
      for (int e = 0; e < HALF_RUN; e++) sum[e] = fmaf(v[e], w[(r * s.s + tap) * s.c + c + e], sum[e]);
    }
    // <<< exercise
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) v[e] = sum[e] < d.least ? d.least : sum[e] > d.most ? d.most : sum[e];
  half_store(y + i * HALF_RUN, v);
}

/* x, y and w are aligned to 16 bytes; bias may be NULL. */
template <typename T>
static inline void depthwise_half_single(uint16_t *y, const uint16_t *x, const float *w, const float *bias,
                                         DepthwiseHalf d) {
  const size_t outputs = (size_t)d.shape.n * conv2d_out_h(d.shape) * conv2d_out_w(d.shape) * d.shape.c;
  depthwise_half_single_kernel<T><<<half_blocks(outputs), HALF_BLOCK>>>(
      (T *)y, (const T *)x, w, bias, d, conv2d_out_h(d.shape), conv2d_out_w(d.shape), outputs);
  CUDA_CHECK_LAUNCH();
}

template <typename T>
static inline void depthwise_half(uint16_t *y, const uint16_t *x, const float *w, const float *bias, DepthwiseHalf d) {
  const int p_count = conv2d_out_h(d.shape), q_count = conv2d_out_w(d.shape);
  const size_t runs = (size_t)d.shape.n * p_count * q_count * (d.shape.c / HALF_RUN);
  depthwise_half_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)y, (const T *)x, w, bias, d, p_count, q_count, runs);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_DEPTHWISE_HALF_CUH */

/* conv2d_nhwc.cuh - convolution of images whose channels lie side by side, for tensor cores.
 *
 *     x (N,H,W,C)   w (K,R,S,C/groups)   bias (K)   y (N,P,Q,K)
 *
 * The layout is NHWC: pixel by pixel, all channels of one. A row of the matrix of implicit GEMM consists of R S runs of
 * C neighbouring numbers; in NCHW these are H W numbers apart. Tensor cores take 16 bytes at a time.
 *
 * T is __nv_bfloat16, __half or float (multiplied as TF32 by tensor cores); bias is float, and sums are float32.
 *
 *   conv2d_to_nhwc, conv2d_to_nchw   from float32 NCHW to T NHWC and back; filters (K,C,R,S) to (K,R,S,C) likewise:
 *                                    K images of R S pixels
 *   conv2d_forward_nhwc_cpu          the loops of the formula, summed in double
 *   conv2d_forward_nhwc_add_cpu      the end of a residual block: the same, and what the block adds before ReLU
 *   conv2d_forward_nhwc_naive        one thread per output, neighbours in the filters; no tensor cores
 *
 * conv2d_nhwc_mma.cuh has the tensor cores of every GPU from compute capability 8.0 on, conv2d_nhwc_wgmma.cuh those of
 * Hopper.
 */
#ifndef PHASE3_CNN_CONV2D_NHWC_CUH
#define PHASE3_CNN_CONV2D_NHWC_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/check.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

/* Of the two types of 16 bits, the one with 10 bits of fraction; the other one has 7. */
template <typename T>
struct Conv2dIsHalf {
  enum { value = 0 };
};
template <>
struct Conv2dIsHalf<__half> {
  enum { value = 1 };
};

static __host__ __device__ __forceinline__ float conv2d_widen(float x) { return x; }
static __host__ __device__ __forceinline__ float conv2d_widen(__nv_bfloat16 x) { return __bfloat162float(x); }
static __host__ __device__ __forceinline__ float conv2d_widen(__half x) { return __half2float(x); }

/* The nearest T. */
static __host__ __device__ __forceinline__ void conv2d_narrow(float *to, float x) { *to = x; }
static __host__ __device__ __forceinline__ void conv2d_narrow(__nv_bfloat16 *to, float x) { *to = __float2bfloat16(x); }
static __host__ __device__ __forceinline__ void conv2d_narrow(__half *to, float x) { *to = __float2half(x); }

/* What the end of a residual block adds to a convolution of `shape` before ReLU. x NULL: nothing. w NULL: x itself,
 * (N,P,Q,K), which wgmma multiplies by `identity`, a matrix of CONV2D_NHWC_IDENTITY rows. Otherwise x (N,h,w_count,
 * channels) through a convolution of 1 x 1 with `stride` and w (K,channels), whose outputs are (N,P,Q,K), too. */
template <typename T>
struct Conv2dNhwcAdd {
  const T *x = NULL, *w = NULL, *identity = NULL;
  int channels = 0, h = 0, w_count = 0, stride = 1;
  bool one_order = false; /* each sum in the same order, however many images there are */
};

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layouts. Image by image a matrix (C, pixels) becomes (pixels, C), through tiles in shared memory, as in transpose. */

enum { CONV2D_LAYOUT_TILE = 32, CONV2D_LAYOUT_ROWS = 8 };

/* A thread reads along the pixels and writes along the channels. */
template <typename T>
static __global__ void conv2d_to_nhwc_kernel(T *to, const float *from, int channels, int pixels) {
  __shared__ float tile[CONV2D_LAYOUT_TILE][CONV2D_LAYOUT_TILE + 1];
  int pixel0 = blockIdx.x * CONV2D_LAYOUT_TILE, channel0 = blockIdx.y * CONV2D_LAYOUT_TILE, x = threadIdx.x;
  size_t image = blockIdx.z;
  for (int y = threadIdx.y; y < CONV2D_LAYOUT_TILE; y += CONV2D_LAYOUT_ROWS)
    if (channel0 + y < channels && pixel0 + x < pixels)
      tile[y][x] = from[(image * channels + channel0 + y) * pixels + pixel0 + x];
  __syncthreads();
  for (int y = threadIdx.y; y < CONV2D_LAYOUT_TILE; y += CONV2D_LAYOUT_ROWS) {
    // >>> exercise conv2d_nhwc_store: write tile[x][y], channel channel0 + x of pixel pixel0 + y, to its place in NHWC
    // hint: in NHWC the channels of a pixel are neighbours, and pixel follows pixel, image follows image
    // hint: neighbouring threads, which differ in x, then write neighbours; tiles at the edges reach beyond both sizes
    // hint: conv2d_narrow(&to[(image * pixels + pixel0 + y) * channels + channel0 + x], tile[x][y]);
    if (pixel0 + y < pixels && channel0 + x < channels)
      conv2d_narrow(&to[(image * pixels + pixel0 + y) * channels + channel0 + x], tile[x][y]);
    // <<< exercise
  }
}

template <typename T>
static __global__ void conv2d_to_nchw_kernel(float *to, const T *from, int channels, int pixels) {
  __shared__ float tile[CONV2D_LAYOUT_TILE][CONV2D_LAYOUT_TILE + 1];
  int pixel0 = blockIdx.x * CONV2D_LAYOUT_TILE, channel0 = blockIdx.y * CONV2D_LAYOUT_TILE, x = threadIdx.x;
  size_t image = blockIdx.z;
  for (int y = threadIdx.y; y < CONV2D_LAYOUT_TILE; y += CONV2D_LAYOUT_ROWS)
    if (pixel0 + y < pixels && channel0 + x < channels)
      tile[x][y] = conv2d_widen(from[(image * pixels + pixel0 + y) * channels + channel0 + x]);
  __syncthreads();
  for (int y = threadIdx.y; y < CONV2D_LAYOUT_TILE; y += CONV2D_LAYOUT_ROWS)
    if (channel0 + y < channels && pixel0 + x < pixels)
      to[(image * channels + channel0 + y) * pixels + pixel0 + x] = tile[y][x];
}

/* A grid has at most 65535 blocks along y and z. */
static inline dim3 conv2d_layout_grid(int images, int channels, int pixels) {
  if (channels > 65535 * CONV2D_LAYOUT_TILE)
    die("conv2d layout: %d channels; at most %d", channels, 65535 * CONV2D_LAYOUT_TILE);
  return dim3((unsigned)(pixels + CONV2D_LAYOUT_TILE - 1) / CONV2D_LAYOUT_TILE,
              (unsigned)(channels + CONV2D_LAYOUT_TILE - 1) / CONV2D_LAYOUT_TILE,
              (unsigned)(images < 65535 ? images : 65535));
}

/* from (N,C,pixels) float -> to (N,pixels,C) */
template <typename T>
static inline void conv2d_to_nhwc(T *to, const float *from, int n, int c, int pixels) {
  dim3 block(CONV2D_LAYOUT_TILE, CONV2D_LAYOUT_ROWS);
  for (int first = 0; first < n; first += 65535) {
    size_t offset = (size_t)first * c * pixels;
    dim3 grid = conv2d_layout_grid(n - first, c, pixels);
    conv2d_to_nhwc_kernel<<<grid, block>>>(to + offset, from + offset, c, pixels);
    CUDA_CHECK_LAUNCH();
  }
}

/* from (N,pixels,C) -> to (N,C,pixels) float */
template <typename T>
static inline void conv2d_to_nchw(float *to, const T *from, int n, int c, int pixels) {
  dim3 block(CONV2D_LAYOUT_TILE, CONV2D_LAYOUT_ROWS);
  for (int first = 0; first < n; first += 65535) {
    size_t offset = (size_t)first * c * pixels;
    dim3 grid = conv2d_layout_grid(n - first, c, pixels);
    conv2d_to_nchw_kernel<<<grid, block>>>(to + offset, from + offset, c, pixels);
    CUDA_CHECK_LAUNCH();
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reference and naive kernel */

/* One output: all taps, all channels of its filter's group. S is double for the reference, float for the kernel. */
template <typename S, typename T>
static __host__ __device__ __forceinline__ S conv2d_nhwc_output(const T *x, const T *w, Conv2dShape shape, size_t n,
                                                                int p, int q, int k) {
  int channels = shape.c / shape.groups, first = k / (shape.k / shape.groups) * channels;
  S sum = 0;
  for (int r = 0; r < shape.r; r++)
    for (int s = 0; s < shape.s; s++) {
      int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
      int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
      if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue; /* the padding is zero */
      const T *pixel = x + ((n * shape.h + h) * shape.w + v) * shape.c + first;
      const T *tap = w + (((size_t)k * shape.r + r) * shape.s + s) * channels;
      for (int c = 0; c < channels; c++) sum += (S)conv2d_widen(pixel[c]) * (S)conv2d_widen(tap[c]);
    }
  return sum;
}

template <typename T>
static inline void conv2d_forward_nhwc_cpu(T *y, const T *x, const T *w, const float *bias, Conv2dShape shape,
                                           bool relu) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  for (int n = 0; n < shape.n; n++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++)
        for (int k = 0; k < shape.k; k++) {
          double sum = conv2d_nhwc_output<double>(x, w, shape, n, p, q, k) + (bias != NULL ? bias[k] : 0);
          conv2d_narrow(y++, (float)(relu && sum < 0 ? 0 : sum));
        }
}

/* The same with what a residual block adds. */
template <typename T>
static inline void conv2d_forward_nhwc_add_cpu(T *y, const T *x, const T *w, const float *bias, Conv2dShape shape,
                                               bool relu, Conv2dNhwcAdd<T> add) {
  const int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  const Conv2dShape one = conv2d_shape(shape.n, add.channels, add.h, add.w_count, shape.k, 1, 1, add.stride, 0);
  for (int n = 0; n < shape.n; n++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++)
        for (int k = 0; k < shape.k; k++, y++) {
          double sum = conv2d_nhwc_output<double>(x, w, shape, n, p, q, k) + (bias != NULL ? bias[k] : 0);
          const size_t at = (((size_t)n * p_count + p) * q_count + q) * shape.k + k;
          if (add.x != NULL)
            sum += add.w != NULL ? conv2d_nhwc_output<double>(add.x, add.w, one, n, p, q, k) : conv2d_widen(add.x[at]);
          conv2d_narrow(y, (float)(relu && sum < 0 ? 0 : sum));
        }
}

template <typename T, typename S>
static __global__ void conv2d_forward_nhwc_naive_kernel(T *y, const T *x, const T *w, const float *bias,
                                                        Conv2dShape shape, int p_count, int q_count, bool relu) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * p_count * q_count * shape.k) return;
  int k = i % shape.k, q = i / shape.k % q_count, p = i / ((size_t)shape.k * q_count) % p_count;
  size_t n = i / ((size_t)shape.k * q_count * p_count);
  S sum = conv2d_nhwc_output<S>(x, w, shape, n, p, q, k) + (bias != NULL ? bias[k] : 0);
  conv2d_narrow(&y[i], (float)(relu && sum < 0 ? 0 : sum));
}

template <typename T>
static inline void conv2d_forward_nhwc_naive(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                             bool relu) {
  size_t outputs = conv2d_y_count(s);
  conv2d_forward_nhwc_naive_kernel<T, float>
      <<<(unsigned)((outputs + 255) / 256), 256>>>(y, x, w, bias, s, conv2d_out_h(s), conv2d_out_w(s), relu);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_NHWC_CUH */

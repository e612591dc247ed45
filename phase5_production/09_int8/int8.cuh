/* int8.cuh - numbers of 8 bits: what stands for what, and how a sum of their products becomes the next one.
 *
 *     x = scale * q          q an integer of 8 bits; zero is 0 in both (symmetric), so that padding is zero
 *     q = round(x / scale)   to the nearest, halves to even; what is outside of the range becomes its end (saturates)
 *
 * Weights are -128 to 127, and so are activations, int8; what comes out of a ReLU has no sign, and is 0 to 255,
 * uint8: half the step. Arrays of either are int8_t here, and a flag says which; an instruction for products has
 * either kind. Activations have one scale per array, weights one per output channel. Of a convolution or a product
 *
 *     y[k] = sum over d of x[d] w[k][d] + bias[k],   x = sx qx,   w[k] = sw[k] qw[k]
 *
 * all products are integers, and so is their sum, exactly, in int32. One factor brings it to the unit of y:
 *
 *     qy[k] = round((sum of qx qw + qbias[k]) * (sx sw[k] / sy))        qbias[k] = round(bias[k] / (sx sw[k])), int32
 *
 * Int8End describes these last steps: bias, factor, what a residual block adds, ReLU. int8_end() computes them in
 * float32 in one order, with explicit roundings: the processor's loops and every kernel give the same bits.
 *
 * The layout is NHWC (phase3_cnn/03_conv2d_implicit_gemm): x (N,H,W,C), w (K,R,S,C/groups), y (N,P,Q,K).
 */
#ifndef PHASE5_PRODUCTION_INT8_CUH
#define PHASE5_PRODUCTION_INT8_CUH

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "common/check.h"

enum { INT8_LEAST = -128, INT8_MOST = 127, UINT8_MOST = 255 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* Single numbers */

/* The nearest int8, halves to even. NaN becomes 0. */
static __host__ __device__ __forceinline__ int8_t int8_round(float x) {
  int8_t q = 0;
  // >>> exercise int8_round: q = the int8 nearest to x, halves to even, saturated; NaN leaves it at 0
  // hint: rintf() rounds halves to even; roundf() does not
  // hint: compare before you convert: a float beyond the range of an int has no value as an int
  // hint: if (x >= INT8_MOST) q = INT8_MOST; else if (x <= INT8_LEAST) ... else if (x == x) ...: NaN fails all three
  if (x >= INT8_MOST)
    q = INT8_MOST;
  else if (x <= INT8_LEAST)
    q = INT8_LEAST;
  else if (x == x)
    q = (int8_t)rintf(x);
  // <<< exercise
  return q;
}

/* The same of 0 to 255, if `positive`. */
static __host__ __device__ __forceinline__ int8_t int8_byte(float x, bool positive) {
  if (!positive) return int8_round(x);
  return (int8_t)(uint8_t)(x >= UINT8_MOST ? (float)UINT8_MOST : x > 0 ? rintf(x) : 0.0f);
}

static __host__ __device__ __forceinline__ int int8_value(int8_t q, bool positive) { return positive ? (uint8_t)q : q; }

/* As ONNX's QuantizeLinear has it: a division, rounded, and then the nearest integer. */
static __host__ __device__ __forceinline__ int8_t int8_quantize(float x, float scale, bool positive) {
#if defined(__CUDA_ARCH__) || defined(SIMT_REWRITTEN)
  return int8_byte(__fdiv_rn(x, scale), positive);
#else
  return int8_byte(x / scale, positive);
#endif
}

static __host__ __device__ __forceinline__ float int8_dequantize(int8_t q, float scale, bool positive) {
  return (float)int8_value(q, positive) * scale;
}

/* The scale at which `most` is the largest number, 127 or 255. Of zeros alone any would do, and of numbers so small
 * that a quotient by the scale would lose its digits. */
static inline float int8_scale(float most, bool positive) {
  const float end = (float)(positive ? UINT8_MOST : INT8_MOST), step = most / end;
  return step >= FLT_MIN && isfinite(step) ? step : 1 / end;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The end of a convolution or a product */

/* Arrays lie where the kernel runs. */
typedef struct Int8End {
  const float *scale;  /* (K): from the unit of a sum to that of y; where y is float32, to 1 */
  const int32_t *bias; /* (K) in the unit of the sum; NULL: none */
  const int8_t *added; /* (N,P,Q,K) as y, before ReLU; NULL: nothing */
  float middle;        /* the sum is an int8 of its own first, which is so many of y's units; 0: it is not */
  float added_scale;   /* y's units in one of `added` */
  int relu;
  int x_positive, y_positive, added_positive; /* these arrays are uint8 */
} Int8End;

static inline Int8End int8_end_of(const float *scale, const int32_t *bias, int relu) {
  Int8End end = {scale, bias, NULL, 0, 0, relu, 0, 0, 0};
  return end;
}

/* A float32 product and a sum, rounded once each: no compiler may join them. */
static __host__ __device__ __forceinline__ float int8_times(float a, float b) {
#if defined(__CUDA_ARCH__) || defined(SIMT_REWRITTEN)
  return __fmul_rn(a, b);
#else
  volatile float product = a * b;
  return product;
#endif
}

/* y before it is rounded. `sum` has the bias. */
static __host__ __device__ __forceinline__ float int8_end(int32_t sum, float scale, int added, float middle,
                                                          float added_scale, bool adds, bool relu) {
  float y = int8_times((float)sum, scale);
  if (middle != 0) y = int8_times((float)int8_round(y), middle);
  if (adds) y = fmaf((float)added, added_scale, y);
  return relu && y < 0 ? 0 : y;
}

static __host__ __device__ __forceinline__ void int8_store(int8_t *to, float y, bool positive) {
  *to = int8_byte(y, positive);
}
static __host__ __device__ __forceinline__ void int8_store(float *to, float y, bool) { *to = y; }

/* Output `at` of filter k: the sum of its products goes to y. */
template <typename T>
static __host__ __device__ __forceinline__ void int8_finish(T *y, size_t at, int k, int32_t sum, const Int8End &end) {
  if (end.bias != NULL) sum += end.bias[k];
  const bool adds = end.added != NULL;
  const int added = adds ? int8_value(end.added[at], end.added_positive) : 0;
  int8_store(&y[at], int8_end(sum, end.scale[k], added, end.middle, end.added_scale, adds, end.relu != 0),
             end.y_positive != 0);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layouts. Channels are filled up with zeros to `pitch` of them. */

/* x (N,C,pixels) float32 -> q (N,pixels,pitch) */
static inline void int8_from_nchw_cpu(int8_t *q, const float *x, float scale, bool positive, int n, int c, int pixels,
                                      int pitch) {
  for (int i = 0; i < n; i++)
    for (int p = 0; p < pixels; p++)
      for (int j = 0; j < pitch; j++)
        *q++ = j < c ? int8_quantize(x[((size_t)i * c + j) * pixels + p], scale, positive) : 0;
}

/* q (N,pixels,pitch) -> x (N,C,pixels) float32 */
static inline void int8_to_nchw_cpu(float *x, const int8_t *q, float scale, bool positive, int n, int c, int pixels,
                                    int pitch) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < c; j++)
      for (int p = 0; p < pixels; p++) *x++ = int8_dequantize(q[((size_t)i * pixels + p) * pitch + j], scale, positive);
}

enum { INT8_TILE = 32, INT8_ROWS = 8 }; /* of the kernels that exchange the layout; a thread has four channels */

/* Image by image a matrix (C, pixels) becomes (pixels, pitch), through tiles of 32 pixels and 128 channels: a thread
 * reads along the pixels, and writes four channels at a time. */
static __global__ void int8_from_nchw_kernel(int8_t *q, const float *x, float scale, bool positive, int c, int pixels,
                                             int pitch) {
  __shared__ int8_t tile[INT8_TILE][4 * INT8_TILE + 4];
  const int pixel0 = blockIdx.x * INT8_TILE, channel0 = blockIdx.y * 4 * INT8_TILE, own = threadIdx.x;
  const size_t image = blockIdx.z;
  for (int j = threadIdx.y; j < 4 * INT8_TILE; j += INT8_ROWS) {
    const int channel = channel0 + j, pixel = pixel0 + own;
    if (channel >= pitch) break;
    tile[own][j] =
        channel < c && pixel < pixels ? int8_quantize(x[(image * c + channel) * pixels + pixel], scale, positive) : 0;
  }
  __syncthreads();
  for (int p = threadIdx.y; p < INT8_TILE && pixel0 + p < pixels; p += INT8_ROWS) {
    const int channel = channel0 + 4 * own;
    int8_t *to = q + (image * pixels + pixel0 + p) * pitch + channel;
    if (channel + 4 <= pitch && pitch % 4 == 0)
      *(char4 *)to = *(const char4 *)&tile[p][4 * own];
    else
      for (int e = 0; e < 4 && channel + e < pitch; e++) to[e] = tile[p][4 * own + e];
  }
}

static __global__ void int8_to_nchw_kernel(float *x, const int8_t *q, float scale, bool positive, int c, int pixels,
                                           int pitch) {
  __shared__ int8_t tile[INT8_TILE][4 * INT8_TILE + 4];
  const int pixel0 = blockIdx.x * INT8_TILE, channel0 = blockIdx.y * 4 * INT8_TILE, own = threadIdx.x;
  const size_t image = blockIdx.z;
  for (int p = threadIdx.y; p < INT8_TILE && pixel0 + p < pixels; p += INT8_ROWS) {
    const int channel = channel0 + 4 * own;
    const int8_t *from = q + (image * pixels + pixel0 + p) * pitch + channel;
    for (int e = 0; e < 4 && channel + e < c; e++) tile[p][4 * own + e] = from[e];
  }
  __syncthreads();
  for (int j = threadIdx.y; j < 4 * INT8_TILE && channel0 + j < c; j += INT8_ROWS)
    if (pixel0 + own < pixels)
      x[(image * c + channel0 + j) * pixels + pixel0 + own] = int8_dequantize(tile[own][j], scale, positive);
}

/* A grid has at most 65535 blocks along z. */
enum { INT8_MOST_IMAGES = 65535 };

static inline dim3 int8_layout_grid(int images, int channels, int pixels) {
  return dim3((unsigned)(pixels + INT8_TILE - 1) / INT8_TILE,
              (unsigned)(channels + 4 * INT8_TILE - 1) / (4 * INT8_TILE), (unsigned)images);
}

/* x (N,C,pixels) float32 -> q (N,pixels,pitch); q begins at a multiple of 4 bytes */
static inline void int8_from_nchw(int8_t *q, const float *x, float scale, bool positive, int n, int c, int pixels,
                                  int pitch) {
  for (int first = 0; first < n; first += INT8_MOST_IMAGES) {
    const int images = n - first < INT8_MOST_IMAGES ? n - first : INT8_MOST_IMAGES;
    int8_from_nchw_kernel<<<int8_layout_grid(images, pitch, pixels), dim3(INT8_TILE, INT8_ROWS)>>>(
        q + (size_t)first * pixels * pitch, x + (size_t)first * c * pixels, scale, positive, c, pixels, pitch);
    CUDA_CHECK_LAUNCH();
  }
}

static inline void int8_to_nchw(float *x, const int8_t *q, float scale, bool positive, int n, int c, int pixels,
                                int pitch) {
  for (int first = 0; first < n; first += INT8_MOST_IMAGES) {
    const int images = n - first < INT8_MOST_IMAGES ? n - first : INT8_MOST_IMAGES;
    int8_to_nchw_kernel<<<int8_layout_grid(images, c, pixels), dim3(INT8_TILE, INT8_ROWS)>>>(
        x + (size_t)first * c * pixels, q + (size_t)first * pixels * pitch, scale, positive, c, pixels, pitch);
    CUDA_CHECK_LAUNCH();
  }
}

#endif /* PHASE5_PRODUCTION_INT8_CUH */

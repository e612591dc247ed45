/* conv2d_naive.cuh - the forward pass of convolution (conv2d.cuh) on the GPU, for every shape, with nothing but
 * registers: one thread per output, then one thread per four neighbouring outputs. How often is each number read?
 *
 *   conv2d_forward_naive    one thread per output. Each product needs two loads, of an input and of a weight
 *   conv2d_forward_row      four neighbours in a row: a weight serves four products, and an input that one output has
 *                           read moves on to the next. But the lanes of a warp are now four floats apart
 *   conv2d_forward_column   four neighbours in a column: the same reuse, and the lanes read neighbouring floats
 *
 * The next step, a thread that computes several filters from weights in shared memory, is conv2d_forward.cuh.
 */
#ifndef PHASE3_CNN_CONV2D_NAIVE_CUH
#define PHASE3_CNN_CONV2D_NAIVE_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

enum { CONV2D_NEIGHBOURS = 4 }; /* outputs of a thread in conv2d_forward_row() and conv2d_forward_column() */

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* One thread per output (n,k,p,q), the loops of the formula. */
static __global__ void conv2d_forward_naive_kernel(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape shape, int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * p_count * q_count) return;
  int q = 0, p = 0, k = 0;
  size_t n = 0;
  // >>> exercise conv2d_naive_output: find the thread's output: its column q, row p, filter k and image n
  // hint: y is (N,K,P,Q), and this is element i of it: q changes fastest, n slowest
  // hint: q = i % q_count, and i / q_count counts the rows of all images; p is the remainder of that by p_count
  // hint: k = i / ((size_t)q_count * p_count) % shape.k, and n is what is left of i after all three
  q = i % q_count;
  p = i / q_count % p_count;
  k = i / ((size_t)q_count * p_count) % shape.k;
  n = i / ((size_t)q_count * p_count * shape.k);
  // <<< exercise

  int channels = shape.c / shape.groups,
      first = k / (shape.k / shape.groups) * channels; /* those of the filter's group */
  float sum = bias != NULL ? bias[k] : 0.0f;
  for (int c = 0; c < channels; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        float input = 0.0f;
        // >>> exercise conv2d_naive_padding: read the input of tap (c,r,s); in the padding it stays 0
        // hint: output (p,q) begins at row p * stride_h - padding_h of the image; tap r lies r * dilation_h below that
        // hint: the row h is in the image if h >= 0 and h < shape.h; the column likewise, by the width's numbers
        // hint: input = x[((n * shape.c + first + c) * shape.h + h) * shape.w + v], where h and v are in the image
        int h = r * shape.dilation_h + p * shape.stride_h - shape.padding_h;
        int v = s * shape.dilation_w + q * shape.stride_w - shape.padding_w;
        if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
        input = x[((n * shape.c + first + c) * shape.h + h) * shape.w + v];
        // <<< exercise
        sum += w[((k * channels + c) * shape.r + r) * shape.s + s] * input;
      }
  y[i] = sum;
}

/* Element `at` of a line of `count` floats that lie `step` apart; outside of it is the padding. */
static __device__ __forceinline__ float conv2d_read(const float *line, int at, int count, int step) {
  return (unsigned)at < (unsigned)count ? line[at * step] : 0.0f; /* negative: a large unsigned */
}

/* sum[j] += the products of a line of `taps` weights with what output j sees of a line of inputs: inputs first,
 * first + dilation, ...; each output begins one stride after the one before. Weights lie weight_step floats apart,
 * inputs step. Where SLIDES, stride and dilation are equal: then output j + 1 needs for a tap what output j needs for
 * the next one, so a window of CONV2D_NEIGHBOURS inputs in registers moves along, and a tap needs one new input. With
 * TAPS > 0 their number is known when this is compiled: then all loads of a line are under way together, and no value
 * moves from register to register. */
template <bool SLIDES, int TAPS>
static __device__ __forceinline__ void conv2d_add_line(float *sum, const float *line, int count, int step, int first,
                                                       int stride, int dilation, const float *weights, int weight_step,
                                                       int taps) {
  float input[CONV2D_NEIGHBOURS];
  for (int j = 0; j < CONV2D_NEIGHBOURS; j++) input[j] = conv2d_read(line, first + j * stride, count, step);
#pragma unroll
  for (int tap = 0; tap < (TAPS > 0 ? TAPS : taps); tap++) {
    float weight = weights[tap * weight_step];
    for (int j = 0; j < CONV2D_NEIGHBOURS; j++) sum[j] += weight * input[j];
    if (tap + 1 == (TAPS > 0 ? TAPS : taps)) break;
    int next = first + (tap + 1) * dilation; /* what output 0 needs for the next tap */
    if (SLIDES) {
      // >>> exercise conv2d_row_reuse: move the window on by one tap, with one load
      // hint: output j now needs what output j + 1 had: input[j] = input[j + 1], from the first to the last but one
      // hint: only the last output needs a new input; its place in the line is next + (CONV2D_NEIGHBOURS - 1) * stride
      // hint: conv2d_read(line, ..., count, step) reads it; it is 0 in the padding
      for (int j = 0; j + 1 < CONV2D_NEIGHBOURS; j++) input[j] = input[j + 1];
      input[CONV2D_NEIGHBOURS - 1] = conv2d_read(line, next + (CONV2D_NEIGHBOURS - 1) * stride, count, step);
      // <<< exercise
    } else {
      for (int j = 0; j < CONV2D_NEIGHBOURS; j++) input[j] = conv2d_read(line, next + j * stride, count, step);
    }
  }
}

/* A thread computes outputs (n,k,p,q) to (n,k,p,q + 3). */
template <bool SLIDES, int TAPS>
static __global__ void conv2d_forward_row_kernel(float *y, const float *x, const float *w, const float *bias,
                                                 Conv2dShape shape, int p_count, int q_count) {
  int parts = (q_count + CONV2D_NEIGHBOURS - 1) / CONV2D_NEIGHBOURS; /* of a row */
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * p_count * parts) return;
  int q = i % parts * CONV2D_NEIGHBOURS, p = i / parts % p_count, k = i / ((size_t)parts * p_count) % shape.k;
  size_t n = i / ((size_t)parts * p_count * shape.k);

  int channels = shape.c / shape.groups, first = k / (shape.k / shape.groups) * channels;
  float start = bias != NULL ? bias[k] : 0.0f, sum[CONV2D_NEIGHBOURS];
  for (int j = 0; j < CONV2D_NEIGHBOURS; j++) sum[j] = start;
  for (int c = 0; c < channels; c++)
    for (int r = 0; r < shape.r; r++) {
      int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
      if (h < 0 || h >= shape.h) continue;
      const float *row = x + ((n * shape.c + first + c) * shape.h + h) * shape.w;
      const float *weights = w + ((size_t)(k * channels + c) * shape.r + r) * shape.s;
      conv2d_add_line<SLIDES, TAPS>(sum, row, shape.w, 1, q * shape.stride_w - shape.padding_w, shape.stride_w,
                                    shape.dilation_w, weights, 1, shape.s);
    }
  float *out = y + ((n * shape.k + k) * p_count + p) * q_count + q;
  for (int j = 0; j < CONV2D_NEIGHBOURS && q + j < q_count; j++) out[j] = sum[j];
}

/* A thread computes outputs (n,k,p,q) to (n,k,p + 3,q). */
template <bool SLIDES, int TAPS>
static __global__ void conv2d_forward_column_kernel(float *y, const float *x, const float *w, const float *bias,
                                                    Conv2dShape shape, int p_count, int q_count) {
  int parts = (p_count + CONV2D_NEIGHBOURS - 1) / CONV2D_NEIGHBOURS; /* of a column */
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * parts * q_count) return;
  int q = i % q_count, p = i / q_count % parts * CONV2D_NEIGHBOURS, k = i / ((size_t)q_count * parts) % shape.k;
  size_t n = i / ((size_t)q_count * parts * shape.k);

  int channels = shape.c / shape.groups, first = k / (shape.k / shape.groups) * channels;
  float start = bias != NULL ? bias[k] : 0.0f, sum[CONV2D_NEIGHBOURS];
  for (int j = 0; j < CONV2D_NEIGHBOURS; j++) sum[j] = start;
  for (int c = 0; c < channels; c++)
    for (int s = 0; s < shape.s; s++) {
      int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
      if (v < 0 || v >= shape.w) continue;
      const float *column = x + (n * shape.c + first + c) * shape.h * shape.w + v;
      const float *weights = w + (size_t)(k * channels + c) * shape.r * shape.s + s;
      conv2d_add_line<SLIDES, TAPS>(sum, column, shape.h, shape.w, p * shape.stride_h - shape.padding_h, shape.stride_h,
                                    shape.dilation_h, weights, shape.s, shape.r);
    }
  float *out = y + ((n * shape.k + k) * p_count + p) * q_count + q;
  for (int j = 0; j < CONV2D_NEIGHBOURS && p + j < p_count; j++) out[(size_t)j * q_count] = sum[j];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void conv2d_forward_naive(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  conv2d_forward_naive_kernel<<<conv2d_blocks((size_t)s.n * s.k * p_count * q_count), CONV2D_BLOCK>>>(y, x, w, bias, s,
                                                                                                      p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

/* A stride beyond the image counts as one that just leaves it: place + 3 strides must fit into an int. */
static inline void conv2d_forward_row(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  s = conv2d_bounded_stride(s);
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  size_t threads = (size_t)s.n * s.k * p_count * ((q_count + CONV2D_NEIGHBOURS - 1) / CONV2D_NEIGHBOURS);
  if (s.stride_w == s.dilation_w && s.s == 3)
    conv2d_forward_row_kernel<true, 3><<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  else if (s.stride_w == s.dilation_w)
    conv2d_forward_row_kernel<true, 0><<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  else
    conv2d_forward_row_kernel<false, 0><<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_forward_column(float *y, const float *x, const float *w, const float *bias, Conv2dShape s) {
  s = conv2d_bounded_stride(s);
  int p_count = conv2d_out_h(s), q_count = conv2d_out_w(s);
  size_t threads = (size_t)s.n * s.k * ((p_count + CONV2D_NEIGHBOURS - 1) / CONV2D_NEIGHBOURS) * q_count;
  if (s.stride_h == s.dilation_h && s.r == 3)
    conv2d_forward_column_kernel<true, 3><<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  else if (s.stride_h == s.dilation_h)
    conv2d_forward_column_kernel<true, 0><<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  else
    conv2d_forward_column_kernel<false, 0>
        <<<conv2d_blocks(threads), CONV2D_BLOCK>>>(y, x, w, bias, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_NAIVE_CUH */

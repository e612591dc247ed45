/* conv2d_backward_naive.cuh - both gradients of convolution (conv2d.cuh) on the GPU, one thread per result: the loops
 * of conv2d_cpu.cuh, for every shape. The versions after them are in conv2d_backward_*.cuh and in lesson 6.
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_NAIVE_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_NAIVE_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"

/* One thread per input (n,c,h,v): it gathers from all outputs that read it. */
static __global__ void conv2d_backward_input_naive_kernel(float *dx, const float *dy, const float *w, Conv2dShape shape,
                                                          int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.c * shape.h * shape.w) return;
  int v = i % shape.w, h = i / shape.w % shape.h, c = i / ((size_t)shape.w * shape.h) % shape.c;
  size_t n = i / ((size_t)shape.w * shape.h * shape.c);

  int channels = shape.c / shape.groups, filters = shape.k / shape.groups, first = c / channels * filters;
  float sum = 0;
  for (int k = first; k < first + filters; k++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        int p = h + shape.padding_h - r * shape.dilation_h, q = v + shape.padding_w - s * shape.dilation_w;
        if (p < 0 || q < 0 || p % shape.stride_h != 0 || q % shape.stride_w != 0) continue;
        p /= shape.stride_h;
        q /= shape.stride_w;
        if (p >= p_count || q >= q_count) continue;
        sum += w[((k * channels + c % channels) * shape.r + r) * shape.s + s] *
               dy[((n * shape.k + k) * p_count + p) * q_count + q];
      }
  dx[i] = sum;
}

/* One thread per weight (k,c,r,s), and one per bias after them: a sum over all pixels of all images. */
static __global__ void conv2d_backward_weight_naive_kernel(float *dw, float *dbias, const float *dy, const float *x,
                                                           Conv2dShape shape, int p_count, int q_count) {
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups;
  int weights = shape.k * channels * shape.r * shape.s, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= weights + shape.k || (i >= weights && dbias == NULL)) return;
  bool is_weight = i < weights;
  int s = i % shape.s, r = i / shape.s % shape.r, c = i / (shape.s * shape.r) % channels;
  int k = is_weight ? i / (shape.s * shape.r * channels) : i - weights;

  float sum = 0;
  for (int n = 0; n < shape.n; n++) {
    const float *gradient = dy + ((size_t)n * shape.k + k) * p_count * q_count;
    const float *plane = x + ((size_t)n * shape.c + k / filters * channels + c) * shape.h * shape.w;
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
        int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
        bool inside = h >= 0 && h < shape.h && v >= 0 && v < shape.w;
        float input = !is_weight ? 1.0f : inside ? plane[(size_t)h * shape.w + v] : 0.0f;
        sum += gradient[(size_t)p * q_count + q] * input;
      }
  }
  if (is_weight)
    dw[i] = sum;
  else
    dbias[k] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void conv2d_backward_input_naive(float *dx, const float *dy, const float *w, Conv2dShape s) {
  conv2d_backward_input_naive_kernel<<<conv2d_blocks(conv2d_x_count(s)), CONV2D_BLOCK>>>(dx, dy, w, s, conv2d_out_h(s),
                                                                                         conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_backward_weight_naive(float *dw, float *dbias, const float *dy, const float *x,
                                                Conv2dShape s) {
  conv2d_backward_weight_naive_kernel<<<conv2d_blocks(conv2d_w_count(s) + s.k), CONV2D_BLOCK>>>(
      dw, dbias, dy, x, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_CONV2D_BACKWARD_NAIVE_CUH */

/* conv2d_cpu.cuh - convolution (conv2d.cuh) on the CPU, the loops of the formula, summed in double. T is float, or
 * double for tests of gradients by differences. All other versions are compared with these.
 */
#ifndef PHASE3_CNN_CONV2D_CPU_CUH
#define PHASE3_CNN_CONV2D_CPU_CUH

#include <stddef.h>

#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

/* x (N,C,H,W), w (K,C/groups,R,S), bias (K) -> y (N,K,P,Q) */
template <typename T>
static inline void conv2d_forward_cpu(T *y, const T *x, const T *w, const T *bias, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups; /* of a group */
  for (int n = 0; n < shape.n; n++)
    for (int k = 0; k < shape.k; k++)
      for (int p = 0; p < p_count; p++)
        for (int q = 0; q < q_count; q++) {
          double sum = bias != NULL ? bias[k] : 0;
          for (int c = 0; c < channels; c++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                // >>> hidden conv2d_naive_padding
                int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
                int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue; /* the padding is zero */
                // <<< hidden
                size_t plane = (size_t)n * shape.c + k / filters * channels + c;
                sum += (double)w[((k * channels + c) * shape.r + r) * shape.s + s] *
                       x[(plane * shape.h + h) * shape.w + v];
              }
          *y++ = (T)sum;
        }
}

/* dy (N,K,P,Q), w (K,C/groups,R,S) -> dx (N,C,H,W): what the forward pass read where, read backwards */
template <typename T>
static inline void conv2d_backward_input_cpu(T *dx, const T *dy, const T *w, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups;
  for (int n = 0; n < shape.n; n++)
    for (int c = 0; c < shape.c; c++)
      for (int h = 0; h < shape.h; h++)
        for (int v = 0; v < shape.w; v++) {
          double sum = 0;
          int first = c / channels * filters; /* of the group's filters */
          for (int k = first; k < first + filters; k++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                int p = h + shape.padding_h - r * shape.dilation_h; /* times the stride */
                int q = v + shape.padding_w - s * shape.dilation_w;
                if (p < 0 || q < 0 || p % shape.stride_h != 0 || q % shape.stride_w != 0) continue;
                p /= shape.stride_h;
                q /= shape.stride_w;
                if (p >= p_count || q >= q_count) continue;
                sum += (double)w[((k * channels + c % channels) * shape.r + r) * shape.s + s] *
                       dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q];
              }
          *dx++ = (T)sum;
        }
}

/* dy (N,K,P,Q), x (N,C,H,W) -> dw (K,C/groups,R,S), dbias (K), summed over the batch */
template <typename T>
static inline void conv2d_backward_weight_cpu(T *dw, T *dbias, const T *dy, const T *x, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), pixels = p_count * q_count;
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups;
  for (int k = 0; k < shape.k; k++)
    for (int c = 0; c < channels; c++)
      for (int r = 0; r < shape.r; r++)
        for (int s = 0; s < shape.s; s++) {
          double sum = 0;
          for (int n = 0; n < shape.n; n++)
            for (int p = 0; p < p_count; p++)
              for (int q = 0; q < q_count; q++) {
                // >>> hidden conv2d_naive_padding
                int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
                int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
                // <<< hidden
                size_t plane = (size_t)n * shape.c + k / filters * channels + c;
                sum += (double)dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q] *
                       x[(plane * shape.h + h) * shape.w + v];
              }
          *dw++ = (T)sum;
        }
  if (dbias == NULL) return;
  for (int k = 0; k < shape.k; k++) {
    double sum = 0;
    for (int n = 0; n < shape.n; n++)
      for (int i = 0; i < pixels; i++) sum += dy[((size_t)n * shape.k + k) * pixels + i];
    dbias[k] = (T)sum;
  }
}

#endif /* PHASE3_CNN_CONV2D_CPU_CUH */

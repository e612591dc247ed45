/* conv2d_reference.cuh - the shape of a convolution, and its definition: the loops of the formula in conv2d.cuh, summed
 * in double. Templates, for gradients by differences. */
#ifndef PHASE3_CNN_CONV2D_REFERENCE_CUH
#define PHASE3_CNN_CONV2D_REFERENCE_CUH

#include <limits.h>
#include <math.h>

#include "common/error.h"
#include "common/simd.h"

typedef struct Conv2dShape {
  int n, c, h, w; /* input (N,C,H,W) */
  int k, r, s;    /* filters (K,C,R,S) */
  int stride, padding;
} Conv2dShape;

static inline int conv2d_out_h(Conv2dShape s) { return (s.h + 2 * s.padding - s.r) / s.stride + 1; }
static inline int conv2d_out_w(Conv2dShape s) { return (s.w + 2 * s.padding - s.s) / s.stride + 1; }

static inline int conv2d_shape_check(Conv2dShape s, Error *err) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || s.k < 1 || s.r < 1 || s.s < 1)
    return error_set(err, "convolution of (%d,%d,%d,%d) with (%d,%d,%d,%d): every size must be at least 1", s.n, s.c,
                     s.h, s.w, s.k, s.c, s.r, s.s);
  if (s.stride < 1 || s.padding < 0)
    return error_set(err, "convolution with stride %d and padding %d: the stride must be at least 1, the padding 0",
                     s.stride, s.padding);
  if (s.h + 2LL * s.padding < s.r || s.w + 2LL * s.padding < s.s)
    return error_set(err,
                     "convolution of a %d x %d image, padding %d, with %d x %d filters: the filter does not fit; use a "
                     "smaller filter or more padding",
                     s.h, s.w, s.padding, s.r, s.s);
  /* in double: the products may not fit into an int */
  double height = s.h + 2.0 * s.padding, width = s.w + 2.0 * s.padding, most = INT_MAX / SIMD_WIDTH;
  double output = s.k * floor((height - s.r) / s.stride + 1) * floor((width - s.s) / s.stride + 1);
  if (s.c * height * width > most || output > most || (double)s.k * s.c * s.r * s.s > most)
    return error_set(err,
                     "convolution of (%d,%d,%d,%d) with (%d,%d,%d,%d), padding %d: an image or the filters hold more "
                     "than %.0f numbers",
                     s.n, s.c, s.h, s.w, s.k, s.c, s.r, s.s, s.padding, most);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ reference */

/* x (N,C,H,W), w (K,C,R,S), bias (K) -> y (N,K,P,Q) */
template <typename T>
static inline void conv2d_forward_cpu(T *y, const T *x, const T *w, const T *bias, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  for (int n = 0; n < shape.n; n++)
    for (int k = 0; k < shape.k; k++)
      for (int p = 0; p < p_count; p++)
        for (int q = 0; q < q_count; q++) {
          double sum = bias != NULL ? bias[k] : 0;
          for (int c = 0; c < shape.c; c++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue; /* the padding is zero */
                sum += (double)w[((k * shape.c + c) * shape.r + r) * shape.s + s] *
                       x[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v];
              }
          *y++ = (T)sum;
        }
}

/* dy (N,K,P,Q), w (K,C,R,S) -> dx (N,C,H,W): what the forward pass read where, read backwards */
template <typename T>
static inline void conv2d_backward_input_cpu(T *dx, const T *dy, const T *w, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape);
  for (int n = 0; n < shape.n; n++)
    for (int c = 0; c < shape.c; c++)
      for (int h = 0; h < shape.h; h++)
        for (int v = 0; v < shape.w; v++) {
          double sum = 0;
          for (int k = 0; k < shape.k; k++)
            for (int r = 0; r < shape.r; r++)
              for (int s = 0; s < shape.s; s++) {
                int p = h + shape.padding - r, q = v + shape.padding - s; /* times the stride */
                if (p < 0 || q < 0 || p % shape.stride != 0 || q % shape.stride != 0) continue;
                p /= shape.stride;
                q /= shape.stride;
                if (p >= p_count || q >= q_count) continue;
                sum += (double)w[((k * shape.c + c) * shape.r + r) * shape.s + s] *
                       dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q];
              }
          *dx++ = (T)sum;
        }
}

/* dy (N,K,P,Q), x (N,C,H,W) -> dw (K,C,R,S), dbias (K), summed over the batch */
template <typename T>
static inline void conv2d_backward_weight_cpu(T *dw, T *dbias, const T *dy, const T *x, Conv2dShape shape) {
  int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), pixels = p_count * q_count;
  for (int k = 0; k < shape.k; k++)
    for (int c = 0; c < shape.c; c++)
      for (int r = 0; r < shape.r; r++)
        for (int s = 0; s < shape.s; s++) {
          double sum = 0;
          for (int n = 0; n < shape.n; n++)
            for (int p = 0; p < p_count; p++)
              for (int q = 0; q < q_count; q++) {
                int h = p * shape.stride + r - shape.padding, v = q * shape.stride + s - shape.padding;
                if (h < 0 || h >= shape.h || v < 0 || v >= shape.w) continue;
                sum += (double)dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q] *
                       x[(((size_t)n * shape.c + c) * shape.h + h) * shape.w + v];
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

#endif /* PHASE3_CNN_CONV2D_REFERENCE_CUH */

/* conv2d_shape.cuh - the shape of a convolution (conv2d.cuh), and its check.
 *
 *     x (N,C,H,W)   w (K,C/groups,R,S)   bias (K)   y (N,K,P,Q)
 *     P = (H + 2 padding_h - (dilation_h (R - 1) + 1)) / stride_h + 1, Q likewise
 *
 * As PyTorch's conv2d: padding is on both sides of an axis, dilation is the step from one tap of a filter to the next,
 * and with groups > 1 the filters of group g, K / groups of them, read the channels of group g alone, C / groups.
 */
#ifndef PHASE3_CNN_CONV2D_SHAPE_CUH
#define PHASE3_CNN_CONV2D_SHAPE_CUH

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "common/error.h"
#include "common/simd.h"

typedef struct Conv2dShape {
  int n, c, h, w; /* input (N,C,H,W) */
  int k, r, s;    /* filters (K,C/groups,R,S) */
  int stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w, groups;
} Conv2dShape;

/* Of one group, with the same stride and padding along both axes, dilation 1. */
static inline Conv2dShape conv2d_shape(int n, int c, int h, int w, int k, int r, int s, int stride, int padding) {
  Conv2dShape shape = {n, c, h, w, k, r, s, stride, stride, padding, padding, 1, 1, 1};
  return shape;
}

/* Rows and columns that a filter spans, its gaps included. */
static __host__ __device__ inline int conv2d_span_h(Conv2dShape s) { return s.dilation_h * (s.r - 1) + 1; }
static __host__ __device__ inline int conv2d_span_w(Conv2dShape s) { return s.dilation_w * (s.s - 1) + 1; }

static __host__ __device__ inline int conv2d_out_h(Conv2dShape s) {
  return (s.h + 2 * s.padding_h - conv2d_span_h(s)) / s.stride_h + 1;
}
static __host__ __device__ inline int conv2d_out_w(Conv2dShape s) {
  return (s.w + 2 * s.padding_w - conv2d_span_w(s)) / s.stride_w + 1;
}

/* Elements. */
static inline size_t conv2d_x_count(Conv2dShape s) { return (size_t)s.n * s.c * s.h * s.w; }
static inline size_t conv2d_w_count(Conv2dShape s) { return (size_t)s.k * (s.c / s.groups) * s.r * s.s; }
static inline size_t conv2d_y_count(Conv2dShape s) { return (size_t)s.n * s.k * conv2d_out_h(s) * conv2d_out_w(s); }

/* Of each of the three operations; a multiplication and an addition are two. */
static inline double conv2d_flops(Conv2dShape s) {
  return 2.0 * (double)conv2d_y_count(s) * (s.c / s.groups) * s.r * s.s;
}

/* One group and no gaps: what versions that are not general take. */
static inline bool conv2d_is_dense(Conv2dShape s) { return s.groups == 1 && s.dilation_h == 1 && s.dilation_w == 1; }

/* "(64,6,14,14) with (16,6,5,5), stride 1 x 1, padding 2 x 2"; dilation and groups where they are not 1 */
typedef struct Conv2dShapeText {
  char text[224];
} Conv2dShapeText;

static inline Conv2dShapeText conv2d_shape_text(Conv2dShape s) {
  Conv2dShapeText t;
  int used = snprintf(t.text, sizeof t.text, "(%d,%d,%d,%d) with (%d,%d,%d,%d), stride %d x %d, padding %d x %d", s.n,
                      s.c, s.h, s.w, s.k, s.groups > 0 ? s.c / s.groups : s.c, s.r, s.s, s.stride_h, s.stride_w,
                      s.padding_h, s.padding_w);
  if (s.dilation_h != 1 || s.dilation_w != 1)
    used += snprintf(t.text + used, sizeof t.text - used, ", dilation %d x %d", s.dilation_h, s.dilation_w);
  if (s.groups != 1) snprintf(t.text + used, sizeof t.text - used, ", %d groups", s.groups);
  return t;
}

enum { CONV2D_CHANNELS = 65535 };

/* -1 where no version can compute the shape: the message has it, and what is wrong. */
static inline int conv2d_shape_check(Conv2dShape s, Error *err) {
  const Conv2dShapeText t = conv2d_shape_text(s);
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || s.k < 1 || s.r < 1 || s.s < 1)
    return error_set(err, "convolution of %s: every size must be at least 1", t.text);
  if (s.stride_h < 1 || s.stride_w < 1 || s.padding_h < 0 || s.padding_w < 0)
    return error_set(err, "convolution of %s: the stride must be at least 1, the padding at least 0", t.text);
  if (s.dilation_h < 1 || s.dilation_w < 1)
    return error_set(err, "convolution of %s: the dilation must be at least 1 (1: no gaps between a filter's taps)",
                     t.text);
  if (s.groups < 1 || s.c % s.groups != 0 || s.k % s.groups != 0)
    return error_set(err, "convolution of %s: groups must divide the %d channels and the %d filters", t.text, s.c, s.k);
  /* in double: the products may not fit into an int */
  const double span_h = s.dilation_h * (s.r - 1.0) + 1, span_w = s.dilation_w * (s.s - 1.0) + 1;
  const double height = s.h + 2.0 * s.padding_h, width = s.w + 2.0 * s.padding_w, most = INT_MAX / SIMD_WIDTH;
  if (height < span_h || width < span_w)
    return error_set(
        err,
        "convolution of %s: the filter spans %.0f x %.0f, and the padded image is %.0f x %.0f; use a smaller "
        "filter, less dilation or more padding",
        t.text, span_h, span_w, height, width);
  const double output = s.k * floor((height - span_h) / s.stride_h + 1) * floor((width - span_w) / s.stride_w + 1);
  if (s.c * height * width > most || output > most || (double)s.k * (s.c / s.groups) * s.r * s.s > most)
    return error_set(err, "convolution of %s: an image or the filters hold more than %.0f numbers; use smaller ones",
                     t.text, most);
  if (s.c > CONV2D_CHANNELS || s.k > CONV2D_CHANNELS)
    return error_set(err,
                     "convolution of %s: at most %d channels and filters are supported, the blocks of a grid along y",
                     t.text, CONV2D_CHANNELS);
  return 0;
}

/* The same convolution with a stride that is not larger than the padded image: then there is one output, whatever it
 * is. */
static inline Conv2dShape conv2d_bounded_stride(Conv2dShape s) {
  const int h = s.h + 2 * s.padding_h, w = s.w + 2 * s.padding_w;
  if (s.stride_h > h) s.stride_h = h;
  if (s.stride_w > w) s.stride_w = w;
  return s;
}

#endif /* PHASE3_CNN_CONV2D_SHAPE_CUH */

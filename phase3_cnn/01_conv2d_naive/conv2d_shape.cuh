/* conv2d_shape.cuh - the shape of a convolution (conv2d.cuh), and its check.
 *
 *     x (N,C,H,W)   w (K,C,R,S)   bias (K)   y (N,K,P,Q)     P = (H + 2 padding - R) / stride + 1, Q likewise
 */
#ifndef PHASE3_CNN_CONV2D_SHAPE_CUH
#define PHASE3_CNN_CONV2D_SHAPE_CUH

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

#endif /* PHASE3_CNN_CONV2D_SHAPE_CUH */

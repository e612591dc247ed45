/* pool2d_shape.cuh - which pixels a pooling window covers: shared by max_pool2d.cuh and avg_pool2d.cuh.
 *
 * Output (p,q) of a plane summarises the window whose first row is h0 = p stride_h - pad_h and whose first column is
 * q stride_w - pad_w. Its element (a,b) is input row h0 + a dilation_h, and likewise the column:
 *
 *     x, dx (N,C,H,W)   y, dy (N,C,P,Q)
 *     P = floor((H + 2 pad_h - span_h) / stride_h) + 1     span = dilation (kernel - 1) + 1
 *
 * With ceil_mode the division is rounded up, but the last window must begin in the image or before it. Elements outside
 * of the image do not exist: the largest is never one of them. (An average may count them as zeros.) Padding is at most
 * half of a window, so that each window has at least one element; these are PyTorch's rules.
 *
 *     const Pool2dWindow window = {3, 3, 2, 2, 1, 1};           // 3 x 3, every second pixel, one pixel of padding
 *     Pool2dShape shape = pool2d_shape_of(n, c, h, w, window);
 */
#ifndef PHASE3_CNN_POOL2D_SHAPE_CUH
#define PHASE3_CNN_POOL2D_SHAPE_CUH

#include <limits.h>
#include <stdint.h>

#include "common/error.h"

typedef struct Pool2dWindow {
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} Pool2dWindow;

typedef struct Pool2dShape {
  int n, c, h, w; /* input (N,C,H,W) */
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int dilation_h, dilation_w, ceil_mode; /* dilation: of max pooling alone */
} Pool2dShape;

/* Without dilation, and without ceil_mode. */
static inline Pool2dShape pool2d_shape_of(int n, int c, int h, int w, Pool2dWindow window) {
  const Pool2dShape shape = {
      n, c, h, w, window.kernel_h, window.kernel_w, window.stride_h, window.stride_w, window.pad_h, window.pad_w,
      1, 1, 0};
  return shape;
}

static inline Pool2dWindow pool2d_square(int kernel, int stride) {
  const Pool2dWindow window = {kernel, kernel, stride, stride, 0, 0};
  return window;
}

/* Square windows without padding. */
static inline Pool2dShape pool2d_shape(int n, int c, int h, int w, int kernel, int stride) {
  return pool2d_shape_of(n, c, h, w, pool2d_square(kernel, stride));
}

/* Windows along one axis. */
static inline int pool2d_out(int size, int kernel, int stride, int pad, int dilation, int ceil_mode) {
  const int span = dilation * (kernel - 1) + 1, room = size + 2 * pad - span;
  const int last = room / stride + (ceil_mode && room % stride != 0);
  return last + 1 - (ceil_mode && (long long)last * stride >= (long long)size + pad);
}
static inline int pool2d_out_h(Pool2dShape s) {
  return pool2d_out(s.h, s.kernel_h, s.stride_h, s.pad_h, s.dilation_h, s.ceil_mode);
}
static inline int pool2d_out_w(Pool2dShape s) {
  return pool2d_out(s.w, s.kernel_w, s.stride_w, s.pad_w, s.dilation_w, s.ceil_mode);
}

static inline size_t pool2d_x_count(Pool2dShape s) { return (size_t)s.n * s.c * s.h * s.w; }
static inline size_t pool2d_y_count(Pool2dShape s) { return (size_t)s.n * s.c * pool2d_out_h(s) * pool2d_out_w(s); }

/* ---------------------------------------------------------------------------------------------------------------- */
/* The part of a window that lies in the image */

/* The first element of a window that begins at `first` and is in the image: 0, or behind what is in the padding. */
static __host__ __device__ __forceinline__ int pool2d_first(int first, int dilation) {
  return first < 0 ? (-first + dilation - 1) / dilation : 0;
}

/* The first element behind the image: at most `kernel`. */
static __host__ __device__ __forceinline__ int pool2d_end(int first, int kernel, int dilation, int size) {
  const int room = size - first, inside = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  return inside < kernel ? inside : kernel;
}

enum { POOL2D_CHUNK = 64 }; /* outputs of a row at a time, on the CPU */

/* Windows q, with from <= q < to, whose column `offset` to the right of q stride lies in a row of w pixels. */
static inline void pool2d_inside(int *first, int *end, int from, int to, int offset, int stride, int w) {
  const int low = offset < 0 ? (-offset - 1) / stride + 1 : 0;
  const int high = w - offset <= 0 ? 0 : (w - offset - 1) / stride + 1;
  *first = low > from ? low : from;
  *end = high < to ? high : to;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Shapes from outside */

/* One axis, of `size` pixels, which `axis` ("rows") names. */
static inline int pool2d_axis_check(const char *what, const char *axis, int size, int kernel, int stride, int pad,
                                    int dilation, int ceil_mode, Error *err) {
  if (kernel < 1 || stride < 1 || dilation < 1 || pad < 0)
    return error_set(err,
                     "%s with windows of %d %s, stride %d, padding %d and dilation %d: a window, a stride and a "
                     "dilation of at least 1 and a padding of at least 0 are expected",
                     what, kernel, axis, stride, pad, dilation);
  if (pad > kernel / 2)
    return error_set(err,
                     "%s with windows of %d %s and padding %d: the padding is more than half of the window, so that "
                     "some window could lie in it; use at most %d",
                     what, kernel, axis, pad, kernel / 2);
  const long long span = (long long)dilation * (kernel - 1) + 1, padded = size + 2LL * pad;
  if (padded > INT_MAX / 2 || dilation > INT_MAX / 2) return error_set(err, "%s of %d %s: too large", what, size, axis);
  if (span > padded)
    return error_set(err,
                     "%s of %d %s and %lld of padding with windows of %lld: the window does not fit; use a smaller one",
                     what, size, axis, 2LL * pad, span);
  const int count = pool2d_out(size, kernel, stride, pad, dilation, ceil_mode);
  for (int i = 0; i < count && (long long)i * stride < pad; i++) { /* gaps may jump over a small image */
    const int first = i * stride - pad;
    if (pool2d_first(first, dilation) < pool2d_end(first, kernel, dilation, size)) continue;
    return error_set(err,
                     "%s of %d %s with windows of %d, padding %d and dilation %d: window %d has no pixel; use a "
                     "smaller dilation",
                     what, size, axis, kernel, pad, dilation, i);
  }
  return 0;
}

static inline int pool2d_shape_check(const char *what, Pool2dShape s, Error *err) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1)
    return error_set(err, "%s of (%d,%d,%d,%d): every size must be at least 1", what, s.n, s.c, s.h, s.w);
  if (pool2d_axis_check(what, "rows", s.h, s.kernel_h, s.stride_h, s.pad_h, s.dilation_h, s.ceil_mode, err) != 0 ||
      pool2d_axis_check(what, "columns", s.w, s.kernel_w, s.stride_w, s.pad_w, s.dilation_w, s.ceil_mode, err) != 0)
    return -1;
  if ((s.h + 2.0 * s.pad_h) * (s.w + 2.0 * s.pad_w) > INT_MAX || (double)s.n * s.c > INT_MAX)
    return error_set(err, "%s of (%d,%d,%d,%d): too large; use a smaller batch", what, s.n, s.c, s.h, s.w);
  return 0;
}

#endif /* PHASE3_CNN_POOL2D_SHAPE_CUH */

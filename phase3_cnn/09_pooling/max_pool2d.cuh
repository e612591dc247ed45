/* max_pool2d.cuh - the largest of each square window, float32, NCHW; no padding.
 *
 *     y[n,c,p,q] = max over a,b < kernel of  x[n, c, p * stride + a, q * stride + b]
 *
 *     x, dx (N,C,H,W)   y, dy, argmax (N,C,P,Q)     P = (H - kernel) / stride + 1, Q likewise
 *
 * argmax holds a * kernel + b in one byte: which of the window it was. Of equal values the first wins, and NaN beats
 * any number, as in PyTorch. The backward pass hands dy to that one element; where windows overlap (stride < kernel) an
 * element may be the largest of several and gets their sum, elsewhere dx is zero. All outputs are overwritten.
 *
 * Versions of max_pool2d_forward_* and max_pool2d_backward_*:
 *     _cpu       the loops of the formula, which the others are compared with
 *     _cpu_fast  planes are shared out among threads; windows of 2 x 2 without overlap, the usual ones, four at a time
 *     _gpu       forward: one thread per output; backward: one thread per input gathers from the windows that contain
 *                it, so that no two threads write the same element and nothing has to be cleared first; windows of
 *                2 x 2 without overlap: one thread per window
 * A shape from outside goes through max_pool2d_shape_check() first.
 *
 * relu_max_pool2d_forward_* is the same of max(0, x), in one pass: y = max(0, the largest), and where that is not above
 * 0, argmax is POOL2D_NOTHING, so that max_pool2d_backward_* hands no gradient on. Windows up to 15.
 */
#ifndef PHASE3_CNN_MAX_POOL2D_CUH
#define PHASE3_CNN_MAX_POOL2D_CUH

#include <stdint.h>
#include <string.h>

#include "common/error.h"
#include "common/simd.h"

typedef struct Pool2dShape {
  int n, c, h, w; /* input (N,C,H,W) */
  int kernel, stride;
} Pool2dShape;

enum { POOL2D_KERNEL_MAX = 16 }; /* kernel * kernel positions in a byte */
enum { POOL2D_NOTHING = 255 };   /* no position of a window of at most 15 */

static inline int max_pool2d_out_h(Pool2dShape s) { return (s.h - s.kernel) / s.stride + 1; }
static inline int max_pool2d_out_w(Pool2dShape s) { return (s.w - s.kernel) / s.stride + 1; }

static inline int max_pool2d_shape_check(Pool2dShape s, Error *err) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1)
    return error_set(err, "max pooling of (%d,%d,%d,%d): every size must be at least 1", s.n, s.c, s.h, s.w);
  if (s.kernel < 1 || s.kernel > POOL2D_KERNEL_MAX || s.stride < 1)
    return error_set(err,
                     "max pooling with windows of %d and stride %d: windows of 1 to %d and a stride of at least 1 are "
                     "supported",
                     s.kernel, s.stride, POOL2D_KERNEL_MAX);
  if (s.kernel > s.h || s.kernel > s.w)
    return error_set(err,
                     "max pooling of a %d x %d image with windows of %d: the window does not fit; use a smaller one",
                     s.h, s.w, s.kernel);
  if ((long long)s.h * s.w > INT32_MAX || (double)s.n * s.c > INT32_MAX)
    return error_set(err, "max pooling of (%d,%d,%d,%d): too large; use a smaller batch", s.n, s.c, s.h, s.w);
  return 0;
}

/* ------------------------------------------------------------------------------------------------ reference */

template <typename T>
static inline void max_pool2d_forward_cpu(T *y, uint8_t *argmax, const T *x, Pool2dShape shape) {
  int p_count = max_pool2d_out_h(shape), q_count = max_pool2d_out_w(shape);
  for (int plane = 0; plane < shape.n * shape.c; plane++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        const T *window = x + ((size_t)plane * shape.h + p * shape.stride) * shape.w + q * shape.stride;
        T best = window[0];
        int best_at = 0;
        for (int a = 0; a < shape.kernel; a++)
          for (int b = 0; b < shape.kernel; b++) {
            T value = window[a * shape.w + b];
            if (!(value > best || value != value)) continue; /* NaN is not equal to itself */
            best = value;
            best_at = a * shape.kernel + b;
          }
        *y++ = best;
        *argmax++ = (uint8_t)best_at;
      }
}

template <typename T>
static inline void max_pool2d_backward_cpu(T *dx, const T *dy, const uint8_t *argmax, Pool2dShape shape) {
  int p_count = max_pool2d_out_h(shape), q_count = max_pool2d_out_w(shape);
  for (size_t i = 0; i < (size_t)shape.n * shape.c * shape.h * shape.w; i++) dx[i] = 0;
  for (int plane = 0; plane < shape.n * shape.c; plane++)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        int a = *argmax / shape.kernel, b = *argmax % shape.kernel;
        if (a < shape.kernel)
          dx[((size_t)plane * shape.h + p * shape.stride + a) * shape.w + q * shape.stride + b] += *dy;
        argmax++;
        dy++;
      }
}

/* ------------------------------------------------------------------------------------------------ CPU, fast
 *
 * Vectors of four floats, because rows are short and every processor has them. The last vector of a row ends at the
 * last window and repeats some windows, so that no second loop handles the rest. Rows of fewer than four windows take
 * the loops of the formula.
 */

typedef float PoolFloats __attribute__((vector_size(16), aligned(4), may_alias));
typedef int PoolInts __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint8_t PoolBytes __attribute__((vector_size(4), aligned(1), may_alias));

static inline int max_pool2d_is_2x2(Pool2dShape s) { return s.kernel == 2 && s.stride == 2 && s.w >= 8; }

/* In each lane: if `value`, element `at` of its window, is larger than the best so far, or NaN, it becomes the best. */
#define POOL2D_TAKE(best, best_at, value, at)                                   \
  do {                                                                          \
    PoolInts take = ((value) > (best)) | ((value) != (value));                  \
    best = (PoolFloats)((take & (PoolInts)(value)) | (~take & (PoolInts)best)); \
    best_at = (take & (at)) | (~take & best_at);                                \
  } while (0)

CPU_CLONES static inline void max_pool2d_forward_2x2(float *y, uint8_t *argmax, const float *x, int w, int p_count,
                                                     int q_count) {
  for (int p = 0; p < p_count; p++, x += 2 * w, y += q_count, argmax += q_count)
    for (int i = 0; i < q_count; i += 4) {
      int q = i + 4 <= q_count ? i : q_count - 4;
      const float *top = x + 2 * q, *bottom = top + w;
      PoolFloats t0 = *(const PoolFloats *)top, t1 = *(const PoolFloats *)(top + 4);
      PoolFloats b0 = *(const PoolFloats *)bottom, b1 = *(const PoolFloats *)(bottom + 4);
      PoolFloats best = __builtin_shufflevector(t0, t1, 0, 2, 4, 6); /* the even columns, then the odd */
      PoolFloats top_right = __builtin_shufflevector(t0, t1, 1, 3, 5, 7);
      PoolFloats bottom_left = __builtin_shufflevector(b0, b1, 0, 2, 4, 6);
      PoolFloats bottom_right = __builtin_shufflevector(b0, b1, 1, 3, 5, 7);
      PoolInts best_at = {0, 0, 0, 0};
      POOL2D_TAKE(best, best_at, top_right, 1);
      POOL2D_TAKE(best, best_at, bottom_left, 2);
      POOL2D_TAKE(best, best_at, bottom_right, 3);
      *(PoolFloats *)(y + q) = best;
      *(PoolBytes *)(argmax + q) = __builtin_convertvector(best_at, PoolBytes);
    }
}

CPU_CLONES static inline void max_pool2d_backward_2x2(float *dx, const float *dy, const uint8_t *argmax, int w,
                                                      int p_count, int q_count) {
  for (int p = 0; p < p_count; p++, dx += 2 * w, dy += q_count, argmax += q_count)
    for (int i = 0; i < q_count; i += 4) {
      int q = i + 4 <= q_count ? i : q_count - 4;
      PoolInts d = *(const PoolInts *)(dy + q); /* as bits, to be masked */
      PoolInts at = __builtin_convertvector(*(const PoolBytes *)(argmax + q), PoolInts);
      PoolInts top_left = d & (at == 0), top_right = d & (at == 1);
      PoolInts bottom_left = d & (at == 2), bottom_right = d & (at == 3);
      float *top = dx + 2 * q, *bottom = top + w;
      *(PoolInts *)top = __builtin_shufflevector(top_left, top_right, 0, 4, 1, 5);
      *(PoolInts *)(top + 4) = __builtin_shufflevector(top_left, top_right, 2, 6, 3, 7);
      *(PoolInts *)bottom = __builtin_shufflevector(bottom_left, bottom_right, 0, 4, 1, 5);
      *(PoolInts *)(bottom + 4) = __builtin_shufflevector(bottom_left, bottom_right, 2, 6, 3, 7);
    }
}

static inline void max_pool2d_forward_cpu_fast(float *y, uint8_t *argmax, const float *x, Pool2dShape shape) {
  int p_count = max_pool2d_out_h(shape), q_count = max_pool2d_out_w(shape);
  size_t in = (size_t)shape.h * shape.w, out = (size_t)p_count * q_count;
  Pool2dShape one = shape;
  one.n = one.c = 1;
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < shape.n * shape.c; plane++)
    if (max_pool2d_is_2x2(shape))
      max_pool2d_forward_2x2(y + plane * out, argmax + plane * out, x + plane * in, shape.w, p_count, q_count);
    else
      max_pool2d_forward_cpu(y + plane * out, argmax + plane * out, x + plane * in, one);
}

static inline void max_pool2d_backward_cpu_fast(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape shape) {
  int p_count = max_pool2d_out_h(shape), q_count = max_pool2d_out_w(shape);
  size_t in = (size_t)shape.h * shape.w, out = (size_t)p_count * q_count;
  int odd = shape.h % 2 + shape.w % 2; /* then a row or column lies in no window of 2 x 2 */
  Pool2dShape one = shape;
  one.n = one.c = 1;
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < shape.n * shape.c; plane++) {
    float *to = dx + plane * in;
    if (max_pool2d_is_2x2(shape)) {
      if (odd) memset(to, 0, in * sizeof *to);
      max_pool2d_backward_2x2(to, dy + plane * out, argmax + plane * out, shape.w, p_count, q_count);
    } else {
      max_pool2d_backward_cpu(to, dy + plane * out, argmax + plane * out, one);
    }
  }
}

static inline void relu_max_pool2d_forward_cpu_fast(float *y, uint8_t *argmax, const float *x, Pool2dShape shape) {
  size_t outputs = (size_t)shape.n * shape.c * max_pool2d_out_h(shape) * max_pool2d_out_w(shape);
  max_pool2d_forward_cpu_fast(y, argmax, x, shape);
  for (size_t i = 0; i < outputs; i++) {
    if (!(y[i] > 0)) argmax[i] = POOL2D_NOTHING;
    y[i] = y[i] < 0 ? 0 : y[i]; /* NaN stays */
  }
}

/* -------------------------------------------------------------------------------------------------- kernels */

#include "common/check.h"

enum { POOL2D_BLOCK = 256 };

/* One thread per output (n,c,p,q). RELU: of max(0, x). */
template <bool RELU>
static __global__ void max_pool2d_forward_kernel(float *y, uint8_t *argmax, const float *x, Pool2dShape shape,
                                                 int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)p_count * q_count);
  if (plane >= (size_t)shape.n * shape.c) return;
  int p = i / q_count % p_count, q = i % q_count;
  const float *window = x + (plane * shape.h + p * shape.stride) * shape.w + q * shape.stride;

  float best = window[0];
  int best_at = 0;
  for (int a = 0; a < shape.kernel; a++)
    for (int b = 0; b < shape.kernel; b++) {
      float value = window[a * shape.w + b];
      if (value > best || value != value) {
        best = value;
        best_at = a * shape.kernel + b;
      }
    }
  if (RELU && !(best > 0)) best_at = POOL2D_NOTHING;
  y[i] = RELU && best < 0 ? 0.0f : best;
  argmax[i] = (uint8_t)best_at;
}

/* One thread per input (n,c,h,v), which lies in the windows p with p * stride <= h < p * stride + kernel. */
static __global__ void max_pool2d_backward_kernel(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape shape,
                                                  int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)shape.h * shape.w);
  if (plane >= (size_t)shape.n * shape.c) return;
  int h = i / shape.w % shape.h, v = i % shape.w;
  int p_first = max(0, (h - shape.kernel + shape.stride) / shape.stride), p_last = min(h / shape.stride, p_count - 1);
  int q_first = max(0, (v - shape.kernel + shape.stride) / shape.stride), q_last = min(v / shape.stride, q_count - 1);

  float sum = 0;
  for (int p = p_first; p <= p_last; p++)
    for (int q = q_first; q <= q_last; q++) {
      size_t window = (plane * p_count + p) * q_count + q;
      int here = (h - p * shape.stride) * shape.kernel + v - q * shape.stride;
      if (argmax[window] == here) sum += dy[window];
    }
  dx[i] = sum;
}

/* Windows of 2 x 2 without overlap: one thread per window writes all four gradients. A launch of rows x columns needs
 * no division, and reads each dy once. Rows and columns that lie in no window get 0 from the last window beside them.
 * pairs: both gradients of a row are stored at once. */
static __global__ void max_pool2d_backward_2x2_kernel(float *dx, const float *dy, const uint8_t *argmax,
                                                      Pool2dShape shape, int p_count, int q_count, int planes,
                                                      bool pairs) {
  const int q = threadIdx.x, p = blockIdx.y * blockDim.y + threadIdx.y;
  const size_t plane = (size_t)blockIdx.x * blockDim.z + threadIdx.z;
  if (plane >= (size_t)planes || p >= p_count) return;
  for (int column = q; column < q_count; column += blockDim.x) {
    const size_t window = (plane * p_count + p) * q_count + column;
    const float d = dy[window];
    const int at = argmax[window];
    const int rows = p == p_count - 1 ? shape.h - 2 * p : 2, columns = column == q_count - 1 ? shape.w - 2 * column : 2;
    float *to = dx + (plane * shape.h + 2 * p) * shape.w + 2 * column;
    for (int a = 0; a < rows; a++, to += shape.w) {
      const float left = a < 2 && at == 2 * a ? d : 0.0f, right = a < 2 && at == 2 * a + 1 ? d : 0.0f;
      if (pairs) {
        *(float2 *)to = make_float2(left, right);
        continue;
      }
      to[0] = left;
      to[1] = right;
      if (columns == 3) to[2] = 0;
    }
  }
}

/* ------------------------------------------------------------------------------------------------ launchers */

static inline unsigned max_pool2d_blocks(size_t threads) {
  return (unsigned)((threads + POOL2D_BLOCK - 1) / POOL2D_BLOCK);
}

static inline void max_pool2d_forward_gpu(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  int p_count = max_pool2d_out_h(s), q_count = max_pool2d_out_w(s);
  unsigned blocks = max_pool2d_blocks((size_t)s.n * s.c * p_count * q_count);
  max_pool2d_forward_kernel<false><<<blocks, POOL2D_BLOCK>>>(y, argmax, x, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

static inline void relu_max_pool2d_forward_gpu(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  int p_count = max_pool2d_out_h(s), q_count = max_pool2d_out_w(s);
  unsigned blocks = max_pool2d_blocks((size_t)s.n * s.c * p_count * q_count);
  max_pool2d_forward_kernel<true><<<blocks, POOL2D_BLOCK>>>(y, argmax, x, s, p_count, q_count);
  CUDA_CHECK_LAUNCH();
}

/* A thread per window; a block of 256 of one plane or of several. */
static inline void max_pool2d_backward_2x2_gpu(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  const int p_count = max_pool2d_out_h(s), q_count = max_pool2d_out_w(s), planes = s.n * s.c;
  const unsigned x = q_count < 32 ? q_count : 32, most = POOL2D_BLOCK / x,
                 y = (unsigned)p_count < most ? p_count : most;
  const dim3 block(x, y, most / y < 64 ? most / y : 64);
  const dim3 grid((planes + block.z - 1) / block.z, (p_count + y - 1) / y);
  const bool pairs = s.w % 2 == 0 && (uintptr_t)dx % sizeof(float2) == 0;
  max_pool2d_backward_2x2_kernel<<<grid, block>>>(dx, dy, argmax, s, p_count, q_count, planes, pairs);
  CUDA_CHECK_LAUNCH();
}

static inline void max_pool2d_backward_gpu(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  if (s.kernel == 2 && s.stride == 2 && max_pool2d_out_h(s) <= 65535) {
    max_pool2d_backward_2x2_gpu(dx, dy, argmax, s);
    return;
  }
  unsigned blocks = max_pool2d_blocks((size_t)s.n * s.c * s.h * s.w);
  max_pool2d_backward_kernel<<<blocks, POOL2D_BLOCK>>>(dx, dy, argmax, s, max_pool2d_out_h(s), max_pool2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_MAX_POOL2D_CUH */

/* max_pool2d.cuh - the largest of each window, float32, NCHW. Which pixels a window has: pool2d_shape.cuh.
 *
 *     y[n,c,p,q] = max over a < kernel_h, b < kernel_w of  x[n, c, p stride_h - pad_h + a, q stride_w - pad_w + b]
 *
 *     x, dx (N,C,H,W)   y, dy, argmax (N,C,P,Q)
 *
 * argmax holds a * kernel_w + b in one byte: which of the window it was; so a window has at most 256 elements. Of equal
 * values the first wins, and NaN beats any number, as in PyTorch. Padding never wins. The backward pass hands dy to
 * that one element; where windows overlap (stride < kernel) an element may be the largest of several and gets their
 * sum, elsewhere dx is zero. All outputs are overwritten.
 *
 * Versions of max_pool2d_forward_* and max_pool2d_backward_*:
 *     _cpu       the loops of the formula, which the others are compared with
 *     _cpu_fast  planes are shared out among threads; windows of 2 x 2 without overlap, the usual ones, four at a time
 *     _naive     forward: one thread per output; backward: one thread per input gathers from the windows that contain
 *                it, so that no two threads write the same element and nothing has to be cleared first. Any window
 *     _strip     a thread has several windows below each other, and loads each row of inputs once for all of them
 *     _gpu       a thread also has neighbouring windows, so that it loads and stores float4s: what networks use
 * _strip and _gpu have templates for 2 x 2 and 3 x 3 windows with stride 2; other shapes take
 * _naive. A shape from outside goes through max_pool2d_shape_check() first.
 *
 * relu_max_pool2d_forward_* is the same of max(0, x), in one pass: y = max(0, the largest), and where that is not above
 * 0, argmax is POOL2D_NOTHING, so that max_pool2d_backward_* hands no gradient on. Windows of at most 255 elements.
 */
#ifndef PHASE3_CNN_MAX_POOL2D_CUH
#define PHASE3_CNN_MAX_POOL2D_CUH

#include <math.h>
#include <string.h>

#include "common/simd.h"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

enum { POOL2D_POSITIONS = 256 }; /* that a byte tells apart */
enum { POOL2D_NOTHING = 255 };   /* no position of a window of at most 255 elements */

static inline int max_pool2d_shape_check(Pool2dShape s, Error *err) {
  if (s.kernel_h > 0 && s.kernel_w > 0 && (double)s.kernel_h * s.kernel_w > POOL2D_POSITIONS)
    return error_set(err,
                     "max pooling with windows of %d x %d: they have %.0f elements, and a byte for each output counts "
                     "at most %d; use smaller windows, or two poolings one after the other",
                     s.kernel_h, s.kernel_w, (double)s.kernel_h * s.kernel_w, POOL2D_POSITIONS);
  return pool2d_shape_check("max pooling", s, err);
}

/* ------------------------------------------------------------------------------------------------ reference */

/* >, but NaN beats any number: it is not equal to itself. */
#define MAX_POOL2D_BEATS(value, best) ((value) > (best) || (value) != (value))

template <typename T>
static inline void max_pool2d_forward_cpu(T *y, uint8_t *argmax, const T *x, Pool2dShape s) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (int plane = 0; plane < s.n * s.c; plane++, x += (size_t)s.h * s.w)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        T best = 0;
        int best_at = -1;
        for (int a = 0; a < s.kernel_h; a++)
          for (int b = 0; b < s.kernel_w; b++) {
            const int h = p * s.stride_h - s.pad_h + a * s.dilation_h, v = q * s.stride_w - s.pad_w + b * s.dilation_w;
            if (h < 0 || h >= s.h || v < 0 || v >= s.w) continue;
            const T value = x[(size_t)h * s.w + v];
            if (best_at >= 0 && !MAX_POOL2D_BEATS(value, best)) continue;
            best = value;
            best_at = a * s.kernel_w + b;
          }
        *y++ = best;
        *argmax++ = (uint8_t)best_at;
      }
}

template <typename T>
static inline void max_pool2d_backward_cpu(T *dx, const T *dy, const uint8_t *argmax, Pool2dShape s) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (size_t i = 0; i < pool2d_x_count(s); i++) dx[i] = 0;
  for (int plane = 0; plane < s.n * s.c; plane++, dx += (size_t)s.h * s.w)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++, argmax++, dy++) {
        const int a = *argmax / s.kernel_w, b = *argmax % s.kernel_w;
        const int h = p * s.stride_h - s.pad_h + a * s.dilation_h, v = q * s.stride_w - s.pad_w + b * s.dilation_w;
        if (a < s.kernel_h && h >= 0 && h < s.h && v >= 0 && v < s.w) dx[(size_t)h * s.w + v] += *dy;
      }
}

/* ------------------------------------------------------------------------------------------------ CPU, fast
 *
 * Windows of 2 x 2: vectors of four floats, because rows are short and every processor has them. The last vector of a
 * row ends at the last window and repeats some windows, so that no second loop handles the rest. Other windows: element
 * (a,b) of all windows of a row of outputs is compared before the next element, so that the inner loop has no branches.
 */

typedef float PoolFloats __attribute__((vector_size(16), aligned(4), may_alias));
typedef int PoolInts __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint8_t PoolBytes __attribute__((vector_size(4), aligned(1), may_alias));

static inline int max_pool2d_is_2x2(Pool2dShape s) {
  const int whole = !s.ceil_mode || (s.h % 2 == 0 && s.w % 2 == 0); /* all windows have four elements */
  return s.kernel_h == 2 && s.kernel_w == 2 && s.stride_h == 2 && s.stride_w == 2 && s.pad_h == 0 && s.pad_w == 0 &&
         s.dilation_h == 1 && s.dilation_w == 1 && whole && s.w >= 8;
}

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

/* Pixel q stride of `row` is element `at` of window q, for n windows. Inlined with a constant stride, so that it
 * becomes vectors. */
SIMD_INLINE void max_pool2d_take(float *best, int *best_at, const float *row, int n, int stride, int at) {
  for (int q = 0; q < n; q++) {
    const float value = row[q * stride];
    const int beats = (value > best[q]) | (value != value);
    best[q] = beats ? value : best[q];
    best_at[q] = beats ? at : best_at[q];
  }
}

CPU_CLONES static inline void max_pool2d_forward_plane(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (int p = 0; p < p_count; p++, y += q_count, argmax += q_count) {
    const int h0 = p * s.stride_h - s.pad_h, a0 = pool2d_first(h0, s.dilation_h);
    const int a1 = pool2d_end(h0, s.kernel_h, s.dilation_h, s.h);
    for (int from = 0; from < q_count; from += POOL2D_CHUNK) {
      const int to = from + POOL2D_CHUNK < q_count ? from + POOL2D_CHUNK : q_count;
      float best[POOL2D_CHUNK];
      int best_at[POOL2D_CHUNK];
      for (int q = from; q < to; q++) { /* -inf; and where all of a window is, the first of its pixels */
        best[q - from] = -INFINITY;
        best_at[q - from] = a0 * s.kernel_w + pool2d_first(q * s.stride_w - s.pad_w, s.dilation_w);
      }
      for (int a = a0; a < a1; a++)
        for (int b = 0; b < s.kernel_w; b++) {
          const int offset = b * s.dilation_w - s.pad_w, stride = s.stride_w, at = a * s.kernel_w + b;
          int first, end;
          pool2d_inside(&first, &end, from, to, offset, stride, s.w);
          if (first >= end) continue;
          const float *row = x + (size_t)(h0 + a * s.dilation_h) * s.w + first * stride + offset;
          if (stride == 1)
            max_pool2d_take(best + first - from, best_at + first - from, row, end - first, 1, at);
          else if (stride == 2)
            max_pool2d_take(best + first - from, best_at + first - from, row, end - first, 2, at);
          else
            max_pool2d_take(best + first - from, best_at + first - from, row, end - first, stride, at);
        }
      for (int q = from; q < to; q++) {
        y[q] = best[q - from];
        argmax[q] = (uint8_t)best_at[q - from];
      }
    }
  }
}

static inline void max_pool2d_forward_cpu_fast(float *y, uint8_t *argmax, const float *x, Pool2dShape shape) {
  const int p_count = pool2d_out_h(shape), q_count = pool2d_out_w(shape);
  const size_t in = (size_t)shape.h * shape.w, out = (size_t)p_count * q_count;
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < shape.n * shape.c; plane++)
    if (max_pool2d_is_2x2(shape))
      max_pool2d_forward_2x2(y + plane * out, argmax + plane * out, x + plane * in, shape.w, p_count, q_count);
    else
      max_pool2d_forward_plane(y + plane * out, argmax + plane * out, x + plane * in, shape);
}

/* Where element `at` of a window lies from its first one; what is no element lies outside of every image. */
typedef struct MaxPool2dPlaces {
  int down[POOL2D_POSITIONS], right[POOL2D_POSITIONS];
} MaxPool2dPlaces;

static inline void max_pool2d_places(MaxPool2dPlaces *places, Pool2dShape s) {
  for (int at = 0; at < POOL2D_POSITIONS; at++) {
    places->down[at] = at < s.kernel_h * s.kernel_w ? at / s.kernel_w * s.dilation_h : INT_MAX / 2;
    places->right[at] = at % s.kernel_w * s.dilation_w;
  }
}

static inline void max_pool2d_backward_plane(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s,
                                             int p_count, int q_count, const MaxPool2dPlaces *places) {
  memset(dx, 0, (size_t)s.h * s.w * sizeof *dx);
  for (int p = 0; p < p_count; p++)
    for (int q = 0; q < q_count; q++, argmax++, dy++) {
      const int h = p * s.stride_h - s.pad_h + places->down[*argmax];
      const int v = q * s.stride_w - s.pad_w + places->right[*argmax];
      if ((unsigned)h < (unsigned)s.h && (unsigned)v < (unsigned)s.w) dx[(size_t)h * s.w + v] += *dy;
    }
}

static inline void max_pool2d_backward_cpu_fast(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape shape) {
  const int p_count = pool2d_out_h(shape), q_count = pool2d_out_w(shape);
  const size_t in = (size_t)shape.h * shape.w, out = (size_t)p_count * q_count;
  const int odd = shape.h % 2 + shape.w % 2; /* then a row or column lies in no window of 2 x 2 */
  MaxPool2dPlaces places;
  max_pool2d_places(&places, shape);
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < shape.n * shape.c; plane++) {
    float *to = dx + plane * in;
    if (max_pool2d_is_2x2(shape)) {
      if (odd) memset(to, 0, in * sizeof *to);
      max_pool2d_backward_2x2(to, dy + plane * out, argmax + plane * out, shape.w, p_count, q_count);
    } else {
      max_pool2d_backward_plane(to, dy + plane * out, argmax + plane * out, shape, p_count, q_count, &places);
    }
  }
}

static inline void relu_max_pool2d_forward_cpu_fast(float *y, uint8_t *argmax, const float *x, Pool2dShape shape) {
  const size_t outputs = pool2d_y_count(shape);
  max_pool2d_forward_cpu_fast(y, argmax, x, shape);
  for (size_t i = 0; i < outputs; i++) {
    if (!(y[i] > 0)) argmax[i] = POOL2D_NOTHING;
    y[i] = y[i] < 0 ? 0 : y[i]; /* NaN stays */
  }
}

/* -------------------------------------------------------------------------------------------- kernels, any window */

#include "phase3_cnn/09_pooling/pool2d_tile.cuh"

/* One thread per output (n,c,p,q). relu: of max(0, x). */
static __global__ void max_pool2d_forward_naive_kernel(float *y, uint8_t *argmax, const float *x, Pool2dShape s,
                                                       int p_count, int q_count, bool relu) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)p_count * q_count);
  if (plane >= (size_t)s.n * s.c) return;
  const int p = i / q_count % p_count, q = i % q_count;
  x += plane * s.h * s.w;

  float best = -INFINITY;
  int best_at = 0;
  // >>> exercise max_pool_window: find the largest pixel of the window, and where it is
  // hint: element (a,b) is row h0 + a * s.dilation_h, column v0 + b * s.dilation_w; h0 = p * s.stride_h - s.pad_h
  // hint: a from pool2d_first(h0, s.dilation_h) to pool2d_end(h0, s.kernel_h, s.dilation_h, s.h) - 1 is in the image
  // hint: if (MAX_POOL2D_BEATS(value, best)) best = value, best_at = a * s.kernel_w + b; all -inf: the first pixel
  const int h0 = p * s.stride_h - s.pad_h, v0 = q * s.stride_w - s.pad_w;
  const int a0 = pool2d_first(h0, s.dilation_h), a1 = pool2d_end(h0, s.kernel_h, s.dilation_h, s.h);
  const int b0 = pool2d_first(v0, s.dilation_w), b1 = pool2d_end(v0, s.kernel_w, s.dilation_w, s.w);
  best_at = a0 * s.kernel_w + b0;
  for (int a = a0; a < a1; a++)
    for (int b = b0; b < b1; b++) {
      const float value = x[(size_t)(h0 + a * s.dilation_h) * s.w + v0 + b * s.dilation_w];
      if (!MAX_POOL2D_BEATS(value, best)) continue;
      best = value;
      best_at = a * s.kernel_w + b;
    }
  // <<< exercise
  if (relu && !(best > 0)) best_at = POOL2D_NOTHING;
  y[i] = relu && best < 0 ? 0.0f : best;
  argmax[i] = (uint8_t)best_at;
}

/* One thread per input (n,c,h,v). It lies in the windows p with p stride <= h + pad <= p stride + span - 1, those for
 * which (h + pad - p stride) is a multiple of the dilation. */
static __global__ void max_pool2d_backward_naive_kernel(float *dx, const float *dy, const uint8_t *argmax,
                                                        Pool2dShape s, int p_count, int q_count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)s.h * s.w);
  if (plane >= (size_t)s.n * s.c) return;
  const int h = i / s.w % s.h + s.pad_h, v = i % s.w + s.pad_w; /* counted from the first row of padding */
  const int span_h = s.dilation_h * (s.kernel_h - 1) + 1, span_w = s.dilation_w * (s.kernel_w - 1) + 1;
  dy += plane * p_count * q_count;
  argmax += plane * p_count * q_count;

  float sum = 0;
  // >>> exercise pool_backward_gather: add up the gradients of the windows whose largest pixel is (h,v)
  // hint: the first window that reaches h begins at h - span_h + 1 or behind it, the last one at h or before it
  // hint: p from (h < span_h ? 0 : (h - span_h) / s.stride_h + 1) to min(h / s.stride_h, p_count - 1); q likewise
  // hint: there this pixel is (h - p * s.stride_h, v - q * s.stride_w) / dilation, if the division has no remainder
  const int p_first = h < span_h ? 0 : (h - span_h) / s.stride_h + 1, p_last = min(h / s.stride_h, p_count - 1);
  const int q_first = v < span_w ? 0 : (v - span_w) / s.stride_w + 1, q_last = min(v / s.stride_w, q_count - 1);
  for (int p = p_first; p <= p_last; p++)
    for (int q = q_first; q <= q_last; q++) {
      const int down = h - p * s.stride_h, right = v - q * s.stride_w;
      if (down % s.dilation_h != 0 || right % s.dilation_w != 0) continue;
      const int here = down / s.dilation_h * s.kernel_w + right / s.dilation_w;
      const size_t window = (size_t)p * q_count + q;
      if (argmax[window] == here) sum += dy[window];
    }
  // <<< exercise
  dx[i] = sum;
}

/* ------------------------------------------------------------------------------------------------ kernels, tiles
 *
 * ROWS x COLS windows of K x K per thread, S apart, PAD pixels of padding, without dilation.
 */

enum { MAX_POOL2D_TALL = 4, MAX_POOL2D_WIDE = 2 }; /* ROWS where a thread has one column of windows, and several */

/* With several columns of windows S COLS inputs are one vector of a row. whole: COLS outputs are one, too. */
template <int K, int S, int PAD, int ROWS, int COLS>
static __global__ void __launch_bounds__(POOL2D_BLOCK)
    max_pool2d_forward_tile_kernel(float *y, uint8_t *argmax, const float *x, Pool2dShape s, int p_count, int q_count,
                                   bool relu, bool whole) {
  const int inputs = (COLS - 1) * S + K; /* of a row */
  const Pool2dTile tile = pool2d_tile((p_count + ROWS - 1) / ROWS, (q_count + COLS - 1) / COLS, ROWS, COLS);
  if (tile.plane >= (unsigned)(s.n * s.c)) return;
  x += (size_t)tile.plane * s.h * s.w;
  const int h0 = tile.p * S - PAD, v0 = tile.q * S - PAD;

  float best[ROWS][COLS];
  int best_at[ROWS][COLS];
#pragma unroll
  for (int t = 0; t < ROWS; t++)
#pragma unroll
    for (int j = 0; j < COLS; j++) {
      best[t][j] = -INFINITY;
      best_at[t][j] = max(0, -(h0 + t * S)) * K + max(0, -(v0 + j * S)); /* the first pixel of the window */
    }

#pragma unroll
  for (int r = 0; r < (ROWS - 1) * S + K; r++) {
    float input[inputs];
    pool2d_load_row<inputs, PAD, COLS == 1 ? 1 : S * COLS>(input, x, s.h, s.w, h0 + r, v0, -INFINITY);
#pragma unroll
    for (int j = 0; j < COLS; j++) {
      float largest = input[j * S]; /* of this row, for all windows that have it */
      int largest_at = 0;
#pragma unroll
      for (int b = 1; b < K; b++)
        if (MAX_POOL2D_BEATS(input[j * S + b], largest)) {
          largest = input[j * S + b];
          largest_at = b;
        }
#pragma unroll
      for (int t = 0; t < ROWS; t++) {
        const int a = r - t * S;
        if (a < 0 || a >= K || !MAX_POOL2D_BEATS(largest, best[t][j])) continue;
        best[t][j] = largest;
        best_at[t][j] = a * K + largest_at;
      }
    }
  }

  y += ((size_t)tile.plane * p_count + tile.p) * q_count;
  argmax += ((size_t)tile.plane * p_count + tile.p) * q_count;
#pragma unroll
  for (int t = 0; t < ROWS; t++, y += q_count, argmax += q_count) {
    if (tile.p + t >= p_count) break;
#pragma unroll
    for (int j = 0; j < COLS && relu; j++) {
      if (!(best[t][j] > 0)) best_at[t][j] = POOL2D_NOTHING;
      if (best[t][j] < 0) best[t][j] = 0;
    }
    pool2d_store_row<COLS>(y, best[t], tile.q, q_count, whole);
    pool2d_store_row<COLS>(argmax, best_at[t], tile.q, q_count, whole);
  }
}

/* The inputs of a thread are the S ROWS x S COLS that begin where its first window would without padding. They lie in
 * its own windows, in some before and in some behind those. With several columns of windows COLS outputs are one vector
 * of a row, and S COLS inputs, too. */
template <int K, int S, int PAD, int ROWS, int COLS>
static __global__ void __launch_bounds__(POOL2D_BLOCK)
    max_pool2d_backward_tile_kernel(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s, int p_count,
                                    int q_count, bool whole) {
  const int before = (K - 1 - PAD) / S, behind = (S - 1 + PAD) / S, windows = before + COLS + behind;
  const Pool2dTile tile = pool2d_tile((s.h + S * ROWS - 1) / (S * ROWS), (s.w + S * COLS - 1) / (S * COLS), ROWS, COLS);
  if (tile.plane >= (unsigned)(s.n * s.c)) return;
  dy += (size_t)tile.plane * p_count * q_count;
  argmax += (size_t)tile.plane * p_count * q_count;

  float sum[S * ROWS][S * COLS];
#pragma unroll
  for (int r = 0; r < S * ROWS; r++)
#pragma unroll
    for (int c = 0; c < S * COLS; c++) sum[r][c] = 0;
#pragma unroll
  for (int i = -before; i < ROWS + behind; i++) {
    float d[windows];
    int at[windows];
    pool2d_load_row<windows, before, COLS>(d, dy, p_count, q_count, tile.p + i, tile.q - before, 0.0f);
    pool2d_load_row<windows, before, COLS>(at, argmax, p_count, q_count, tile.p + i, tile.q - before, -1);
#pragma unroll
    for (int j = 0; j < windows; j++)
#pragma unroll
      for (int element = 0; element < K * K; element++) {
        const int r = element / K - PAD + i * S, c = element % K - PAD + (j - before) * S;
        if (r >= 0 && r < S * ROWS && c >= 0 && c < S * COLS) sum[r][c] += at[j] == element ? d[j] : 0.0f;
      }
  }

  dx += ((size_t)tile.plane * s.h + tile.p * S) * s.w;
#pragma unroll
  for (int r = 0; r < S * ROWS; r++, dx += s.w)
    if (tile.p * S + r < s.h) pool2d_store_row<S * COLS>(dx, sum[r], tile.q * S, s.w, whole);
}

/* ------------------------------------------------------------------------------------------------ launchers */

static inline void max_pool2d_forward_any(float *y, uint8_t *argmax, const float *x, Pool2dShape s, bool relu) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  max_pool2d_forward_naive_kernel<<<pool2d_blocks(pool2d_y_count(s)), POOL2D_BLOCK>>>(y, argmax, x, s, p_count, q_count,
                                                                                      relu);
  CUDA_CHECK_LAUNCH();
}

static inline void max_pool2d_forward_naive(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  max_pool2d_forward_any(y, argmax, x, s, false);
}

static inline void max_pool2d_backward_naive(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  max_pool2d_backward_naive_kernel<<<pool2d_blocks(pool2d_x_count(s)), POOL2D_BLOCK>>>(
      dx, dy, argmax, s, pool2d_out_h(s), pool2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

template <int K, int S, int PAD, int ROWS, int COLS>
static inline void max_pool2d_forward_tile(float *y, uint8_t *argmax, const float *x, Pool2dShape s, bool relu) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  const size_t down = (p_count + ROWS - 1) / ROWS, across = (q_count + COLS - 1) / COLS;
  const bool whole = pool2d_whole(y, q_count, COLS, sizeof *y) && pool2d_whole(argmax, q_count, COLS, 1);
  max_pool2d_forward_tile_kernel<K, S, PAD, ROWS, COLS>
      <<<pool2d_blocks((size_t)s.n * s.c * down * across), POOL2D_BLOCK>>>(y, argmax, x, s, p_count, q_count, relu,
                                                                           whole);
  CUDA_CHECK_LAUNCH();
}

template <int K, int S, int PAD, int ROWS, int COLS>
static inline void max_pool2d_backward_tile(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  const size_t down = (s.h + S * ROWS - 1) / (S * ROWS), across = (s.w + S * COLS - 1) / (S * COLS);
  max_pool2d_backward_tile_kernel<K, S, PAD, ROWS, COLS>
      <<<pool2d_blocks((size_t)s.n * s.c * down * across), POOL2D_BLOCK>>>(
          dx, dy, argmax, s, pool2d_out_h(s), pool2d_out_w(s), pool2d_whole(dx, s.w, S * COLS, sizeof *dx));
  CUDA_CHECK_LAUNCH();
}

/* One column of windows per thread. */
static inline void max_pool2d_forward_columns(float *y, uint8_t *argmax, const float *x, Pool2dShape s, bool relu) {
  if (pool2d_tiles(s) && pool2d_is(s, 2, 2, 0))
    max_pool2d_forward_tile<2, 2, 0, MAX_POOL2D_TALL, 1>(y, argmax, x, s, relu);
  else if (pool2d_tiles(s) && pool2d_is(s, 3, 2, 1))
    max_pool2d_forward_tile<3, 2, 1, MAX_POOL2D_TALL, 1>(y, argmax, x, s, relu);
  else if (pool2d_tiles(s) && pool2d_is(s, 3, 2, 0))
    max_pool2d_forward_tile<3, 2, 0, MAX_POOL2D_TALL, 1>(y, argmax, x, s, relu);
  else
    max_pool2d_forward_any(y, argmax, x, s, relu);
}

static inline void max_pool2d_forward_strip(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  max_pool2d_forward_columns(y, argmax, x, s, false);
}

static inline void max_pool2d_backward_strip(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  if (pool2d_tiles(s) && pool2d_is(s, 2, 2, 0))
    max_pool2d_backward_tile<2, 2, 0, MAX_POOL2D_TALL, 1>(dx, dy, argmax, s);
  else if (pool2d_tiles(s) && pool2d_is(s, 3, 2, 1))
    max_pool2d_backward_tile<3, 2, 1, MAX_POOL2D_TALL, 1>(dx, dy, argmax, s);
  else if (pool2d_tiles(s) && pool2d_is(s, 3, 2, 0))
    max_pool2d_backward_tile<3, 2, 0, MAX_POOL2D_TALL, 1>(dx, dy, argmax, s);
  else
    max_pool2d_backward_naive(dx, dy, argmax, s);
}

/* Two columns of windows, which are four of inputs; where rows are not float4s, one. */
static inline void max_pool2d_forward_fours(float *y, uint8_t *argmax, const float *x, Pool2dShape s, bool relu) {
  if (!pool2d_whole(x, s.w, 4, sizeof *x) || !pool2d_tiles(s))
    max_pool2d_forward_columns(y, argmax, x, s, relu);
  else if (pool2d_is(s, 2, 2, 0))
    max_pool2d_forward_tile<2, 2, 0, MAX_POOL2D_WIDE, 2>(y, argmax, x, s, relu);
  else if (pool2d_is(s, 3, 2, 1))
    max_pool2d_forward_tile<3, 2, 1, MAX_POOL2D_WIDE, 2>(y, argmax, x, s, relu);
  else if (pool2d_is(s, 3, 2, 0))
    max_pool2d_forward_tile<3, 2, 0, MAX_POOL2D_WIDE, 2>(y, argmax, x, s, relu);
  else
    max_pool2d_forward_any(y, argmax, x, s, relu);
}

static inline void max_pool2d_forward_gpu(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  max_pool2d_forward_fours(y, argmax, x, s, false);
}

static inline void relu_max_pool2d_forward_gpu(float *y, uint8_t *argmax, const float *x, Pool2dShape s) {
  max_pool2d_forward_fours(y, argmax, x, s, true);
}

static inline void max_pool2d_backward_gpu(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape s) {
  const int q_count = pool2d_out_w(s);
  const int whole = pool2d_whole(dx, s.w, 4, sizeof *dx) && pool2d_whole(dy, q_count, 2, sizeof *dy) &&
                    pool2d_whole(argmax, q_count, 2, 1);
  if (!whole || !pool2d_tiles(s))
    max_pool2d_backward_strip(dx, dy, argmax, s);
  else if (pool2d_is(s, 2, 2, 0))
    max_pool2d_backward_tile<2, 2, 0, MAX_POOL2D_WIDE, 2>(dx, dy, argmax, s);
  else if (pool2d_is(s, 3, 2, 1))
    max_pool2d_backward_tile<3, 2, 1, MAX_POOL2D_WIDE, 2>(dx, dy, argmax, s);
  else
    max_pool2d_backward_naive(dx, dy, argmax, s);
}

#endif /* PHASE3_CNN_MAX_POOL2D_CUH */

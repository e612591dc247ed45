/* avg_pool2d.cuh - the mean of each window, float32, NCHW. Which pixels a window has: pool2d_shape.cuh.
 *
 *     y[n,c,p,q] = 1 / count  sum over a < kernel_h, b < kernel_w of x[n, c, h0 + a, v0 + b]
 *     h0 = p stride_h - pad_h   v0 = q stride_w - pad_w
 *
 *     x, dx (N,C,H,W)   y, dy (N,C,P,Q)
 *
 * Elements in the padding are 0. count is the number of the window's pixels in the image, or, if include_pad, of its
 * elements in the image and its padding (PyTorch's and ONNX's count_include_pad). An input gets dy / count from each
 * window that it is in.
 *
 * Versions of avg_pool2d_forward_* and avg_pool2d_backward_*:
 *     _cpu       the loops of the formula, which the others are compared with
 *     _cpu_fast  planes are shared out among threads; forward: an element of all windows of a row before the next
 *     _naive     forward: one thread per output; backward: one thread per input gathers. Any window
 *     _gpu       2 x 2 and 3 x 3 windows with stride 2: a thread has several windows in both directions, and moves
 *                float4s; others: _naive
 * A shape from outside goes through avg_pool2d_shape_check() first.
 */
#ifndef PHASE3_CNN_AVG_POOL2D_CUH
#define PHASE3_CNN_AVG_POOL2D_CUH

#include <string.h>

#include "common/simd.h"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

static inline int avg_pool2d_shape_check(Pool2dShape s, Error *err) {
  if (s.dilation_h != 1 || s.dilation_w != 1)
    return error_set(err, "average pooling with dilation %d x %d: only windows without gaps are supported; use 1",
                     s.dilation_h, s.dilation_w);
  return pool2d_shape_check("average pooling", s, err);
}

/* How many rows, or columns, count of a window that begins at `first`, of `size` and padding of `pad`. */
static __host__ __device__ __forceinline__ int avg_pool2d_extent(int first, int kernel, int size, int pad,
                                                                 bool include_pad) {
  if (include_pad) return pool2d_end(first, kernel, 1, size + pad);
  return pool2d_end(first, kernel, 1, size) - pool2d_first(first, 1);
}

/* What the sum of the window is divided by that begins at row h0, column v0. */
static __host__ __device__ __forceinline__ int avg_pool2d_count(Pool2dShape s, int h0, int v0, bool include_pad) {
  return avg_pool2d_extent(h0, s.kernel_h, s.h, s.pad_h, include_pad) *
         avg_pool2d_extent(v0, s.kernel_w, s.w, s.pad_w, include_pad);
}

/* ------------------------------------------------------------------------------------------------ reference */

template <typename T>
static inline void avg_pool2d_forward_cpu(T *y, const T *x, Pool2dShape s, bool include_pad) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (int plane = 0; plane < s.n * s.c; plane++, x += (size_t)s.h * s.w)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        double sum = 0;
        int count = 0;
        for (int a = 0; a < s.kernel_h; a++)
          for (int b = 0; b < s.kernel_w; b++) {
            const int h = p * s.stride_h - s.pad_h + a, v = q * s.stride_w - s.pad_w + b;
            const int inside = h >= 0 && h < s.h && v >= 0 && v < s.w;
            if (inside) sum += x[(size_t)h * s.w + v];
            count += include_pad ? h < s.h + s.pad_h && v < s.w + s.pad_w : inside;
          }
        *y++ = (T)(sum / count);
      }
}

template <typename T>
static inline void avg_pool2d_backward_cpu(T *dx, const T *dy, Pool2dShape s, bool include_pad) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (size_t i = 0; i < pool2d_x_count(s); i++) dx[i] = 0;
  for (int plane = 0; plane < s.n * s.c; plane++, dx += (size_t)s.h * s.w)
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        const int h0 = p * s.stride_h - s.pad_h, v0 = q * s.stride_w - s.pad_w;
        const T share = *dy++ / (T)avg_pool2d_count(s, h0, v0, include_pad);
        for (int a = pool2d_first(h0, 1); a < pool2d_end(h0, s.kernel_h, 1, s.h); a++)
          for (int b = pool2d_first(v0, 1); b < pool2d_end(v0, s.kernel_w, 1, s.w); b++)
            dx[(size_t)(h0 + a) * s.w + v0 + b] += share;
      }
}

/* ------------------------------------------------------------------------------------------------ CPU, fast */

/* Pixel q stride of `row` belongs to the sum of window q, for n windows. Inlined with a constant stride, so that it
 * becomes vectors. */
SIMD_INLINE void avg_pool2d_add(float *sum, const float *row, int n, int stride) {
  for (int q = 0; q < n; q++) sum[q] += row[q * stride];
}

CPU_CLONES static inline void avg_pool2d_forward_plane(float *y, const float *x, Pool2dShape s, bool include_pad) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  for (int p = 0; p < p_count; p++, y += q_count) {
    const int h0 = p * s.stride_h - s.pad_h, a0 = pool2d_first(h0, 1), a1 = pool2d_end(h0, s.kernel_h, 1, s.h);
    for (int from = 0; from < q_count; from += POOL2D_CHUNK) {
      const int to = from + POOL2D_CHUNK < q_count ? from + POOL2D_CHUNK : q_count;
      float sum[POOL2D_CHUNK];
      for (int q = from; q < to; q++) sum[q - from] = 0;
      for (int a = a0; a < a1; a++)
        for (int b = 0; b < s.kernel_w; b++) {
          const int offset = b - s.pad_w, stride = s.stride_w;
          int first, end;
          pool2d_inside(&first, &end, from, to, offset, stride, s.w);
          if (first >= end) continue;
          const float *row = x + (size_t)(h0 + a) * s.w + first * stride + offset;
          if (stride == 1)
            avg_pool2d_add(sum + first - from, row, end - first, 1);
          else if (stride == 2)
            avg_pool2d_add(sum + first - from, row, end - first, 2);
          else
            avg_pool2d_add(sum + first - from, row, end - first, stride);
        }
      for (int q = from; q < to; q++)
        y[q] = sum[q - from] / (float)avg_pool2d_count(s, h0, q * s.stride_w - s.pad_w, include_pad);
    }
  }
}

static inline void avg_pool2d_backward_plane(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  memset(dx, 0, (size_t)s.h * s.w * sizeof *dx);
  for (int p = 0; p < p_count; p++) {
    const int h0 = p * s.stride_h - s.pad_h, top = h0 + pool2d_first(h0, 1);
    const int bottom = h0 + pool2d_end(h0, s.kernel_h, 1, s.h);
    for (int q = 0; q < q_count; q++) {
      const int v0 = q * s.stride_w - s.pad_w, left = v0 + pool2d_first(v0, 1);
      const int right = v0 + pool2d_end(v0, s.kernel_w, 1, s.w);
      const float share = *dy++ / (float)avg_pool2d_count(s, h0, v0, include_pad);
      for (int h = top; h < bottom; h++)
        for (int v = left; v < right; v++) dx[(size_t)h * s.w + v] += share;
    }
  }
}

static inline void avg_pool2d_forward_cpu_fast(float *y, const float *x, Pool2dShape s, bool include_pad) {
  const size_t in = (size_t)s.h * s.w, out = (size_t)pool2d_out_h(s) * pool2d_out_w(s);
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < s.n * s.c; plane++)
    avg_pool2d_forward_plane(y + plane * out, x + plane * in, s, include_pad);
}

static inline void avg_pool2d_backward_cpu_fast(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  const size_t in = (size_t)s.h * s.w, out = (size_t)pool2d_out_h(s) * pool2d_out_w(s);
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < s.n * s.c; plane++)
    avg_pool2d_backward_plane(dx + plane * in, dy + plane * out, s, include_pad);
}

/* -------------------------------------------------------------------------------------------- kernels, any window */

#include "phase3_cnn/09_pooling/pool2d_tile.cuh"

/* One thread per output (n,c,p,q). */
static __global__ void avg_pool2d_forward_naive_kernel(float *y, const float *x, Pool2dShape s, int p_count,
                                                       int q_count, bool include_pad) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)p_count * q_count);
  if (plane >= (size_t)s.n * s.c) return;
  const int p = i / q_count % p_count, q = i % q_count;
  x += plane * s.h * s.w;

  float sum = 0;
  int count = 1;
  // >>> exercise avg_pool_padding: add up the pixels of the window, and count what the sum is divided by
  // hint: the window begins at row h0 = p * s.stride_h - s.pad_h and column v0; only pixels in the image are loaded
  // hint: include_pad counts the padding above and below, too, but not what a window has beyond row s.h + s.pad_h - 1
  // hint: rows of the count: min(h0 + s.kernel_h, s.h + s.pad_h) - h0, or without the padding those of the sum
  const int h0 = p * s.stride_h - s.pad_h, v0 = q * s.stride_w - s.pad_w;
  const int top = max(h0, 0), left = max(v0, 0), bottom = min(h0 + s.kernel_h, s.h), right = min(v0 + s.kernel_w, s.w);
  for (int h = top; h < bottom; h++)
    for (int v = left; v < right; v++) sum += x[(size_t)h * s.w + v];
  count = (bottom - top) * (right - left);
  if (include_pad) count = (min(h0 + s.kernel_h, s.h + s.pad_h) - h0) * (min(v0 + s.kernel_w, s.w + s.pad_w) - v0);
  // <<< exercise
  y[i] = sum / (float)count;
}

/* One thread per input (n,c,h,v), which lies in the windows p with p stride <= h + pad < p stride + kernel. */
static __global__ void avg_pool2d_backward_naive_kernel(float *dx, const float *dy, Pool2dShape s, int p_count,
                                                        int q_count, bool include_pad) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / ((size_t)s.h * s.w);
  if (plane >= (size_t)s.n * s.c) return;
  const int h = i / s.w % s.h + s.pad_h, v = i % s.w + s.pad_w; /* counted from the first row of padding */
  const int p_first = h < s.kernel_h ? 0 : (h - s.kernel_h) / s.stride_h + 1, p_last = min(h / s.stride_h, p_count - 1);
  const int q_first = v < s.kernel_w ? 0 : (v - s.kernel_w) / s.stride_w + 1, q_last = min(v / s.stride_w, q_count - 1);
  dy += plane * p_count * q_count;
  float sum = 0;
  for (int p = p_first; p <= p_last; p++)
    for (int q = q_first; q <= q_last; q++)
      sum += dy[(size_t)p * q_count + q] /
             (float)avg_pool2d_count(s, p * s.stride_h - s.pad_h, q * s.stride_w - s.pad_w, include_pad);
  dx[i] = sum;
}

/* ------------------------------------------------------------------------------------------------ kernels, tiles
 *
 * ROWS x COLS windows of K x K per thread, S apart, PAD pixels of padding: as in max_pool2d.cuh.
 */

enum { AVG_POOL2D_ROWS = 2 };

template <int K, int S, int PAD, int ROWS, int COLS>
static __global__ void __launch_bounds__(POOL2D_BLOCK)
    avg_pool2d_forward_tile_kernel(float *y, const float *x, Pool2dShape s, int p_count, int q_count, bool include_pad,
                                   bool whole) {
  const int inputs = (COLS - 1) * S + K;
  const Pool2dTile tile = pool2d_tile((p_count + ROWS - 1) / ROWS, (q_count + COLS - 1) / COLS, ROWS, COLS);
  if (tile.plane >= (unsigned)(s.n * s.c)) return;
  x += (size_t)tile.plane * s.h * s.w;
  const int h0 = tile.p * S - PAD, v0 = tile.q * S - PAD;

  float sum[ROWS][COLS];
#pragma unroll
  for (int t = 0; t < ROWS; t++)
#pragma unroll
    for (int j = 0; j < COLS; j++) sum[t][j] = 0;
#pragma unroll
  for (int r = 0; r < (ROWS - 1) * S + K; r++) {
    float input[inputs];
    pool2d_load_row<inputs, PAD, COLS == 1 ? 1 : S * COLS>(input, x, s.h, s.w, h0 + r, v0, 0.0f);
#pragma unroll
    for (int j = 0; j < COLS; j++) {
      float row = 0;
#pragma unroll
      for (int b = 0; b < K; b++) row += input[j * S + b];
#pragma unroll
      for (int t = 0; t < ROWS; t++)
        if (r - t * S >= 0 && r - t * S < K) sum[t][j] += row;
    }
  }

  y += ((size_t)tile.plane * p_count + tile.p) * q_count;
#pragma unroll
  for (int t = 0; t < ROWS; t++, y += q_count) {
    if (tile.p + t >= p_count) break;
#pragma unroll
    for (int j = 0; j < COLS; j++) sum[t][j] /= (float)avg_pool2d_count(s, h0 + t * S, v0 + j * S, include_pad);
    pool2d_store_row<COLS>(y, sum[t], tile.q, q_count, whole);
  }
}

/* 1 / n for n of 1 to K; 1 for a window that there is not. Selected: divisions would take longer than the loads. */
template <int K>
static __device__ __forceinline__ float avg_pool2d_inverse(int n) {
  float inverse = 1;
#pragma unroll
  for (int k = 2; k <= K; k++)
    if (n == k) inverse = 1.0f / k;
  return inverse;
}

template <int K, int S, int PAD, int ROWS, int COLS>
static __global__ void __launch_bounds__(POOL2D_BLOCK)
    avg_pool2d_backward_tile_kernel(float *dx, const float *dy, Pool2dShape s, int p_count, int q_count,
                                    bool include_pad, bool whole) {
  const int before = (K - 1 - PAD) / S, behind = (S - 1 + PAD) / S, windows = before + COLS + behind;
  const Pool2dTile tile = pool2d_tile((s.h + S * ROWS - 1) / (S * ROWS), (s.w + S * COLS - 1) / (S * COLS), ROWS, COLS);
  if (tile.plane >= (unsigned)(s.n * s.c)) return;
  dy += (size_t)tile.plane * p_count * q_count;

  float sum[S * ROWS][S * COLS];
#pragma unroll
  for (int r = 0; r < S * ROWS; r++)
#pragma unroll
    for (int c = 0; c < S * COLS; c++) sum[r][c] = 0;
  const int q0 = tile.q - before;
  float of_column[windows];
#pragma unroll
  for (int j = 0; j < windows; j++)
    of_column[j] = avg_pool2d_inverse<K>(avg_pool2d_extent((q0 + j) * S - PAD, K, s.w, PAD, include_pad));
#pragma unroll
  for (int i = -before; i < ROWS + behind; i++) {
    const int p = tile.p + i;
    const float of_row = avg_pool2d_inverse<K>(avg_pool2d_extent(p * S - PAD, K, s.h, PAD, include_pad));
    float share[windows];
    pool2d_load_row<windows, before, COLS>(share, dy, p_count, q_count, p, q0, 0.0f);
#pragma unroll
    for (int j = 0; j < windows; j++) share[j] *= of_row * of_column[j];
#pragma unroll
    for (int j = 0; j < windows; j++)
#pragma unroll
      for (int element = 0; element < K * K; element++) {
        const int r = element / K - PAD + i * S, c = element % K - PAD + (j - before) * S;
        if (r >= 0 && r < S * ROWS && c >= 0 && c < S * COLS) sum[r][c] += share[j];
      }
  }

  dx += ((size_t)tile.plane * s.h + tile.p * S) * s.w;
#pragma unroll
  for (int r = 0; r < S * ROWS; r++, dx += s.w)
    if (tile.p * S + r < s.h) pool2d_store_row<S * COLS>(dx, sum[r], tile.q * S, s.w, whole);
}

/* ------------------------------------------------------------------------------------------------ launchers */

static inline void avg_pool2d_forward_naive(float *y, const float *x, Pool2dShape s, bool include_pad) {
  avg_pool2d_forward_naive_kernel<<<pool2d_blocks(pool2d_y_count(s)), POOL2D_BLOCK>>>(y, x, s, pool2d_out_h(s),
                                                                                      pool2d_out_w(s), include_pad);
  CUDA_CHECK_LAUNCH();
}

static inline void avg_pool2d_backward_naive(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  avg_pool2d_backward_naive_kernel<<<pool2d_blocks(pool2d_x_count(s)), POOL2D_BLOCK>>>(dx, dy, s, pool2d_out_h(s),
                                                                                       pool2d_out_w(s), include_pad);
  CUDA_CHECK_LAUNCH();
}

template <int K, int S, int PAD, int ROWS, int COLS>
static inline void avg_pool2d_forward_tile(float *y, const float *x, Pool2dShape s, bool include_pad) {
  const int p_count = pool2d_out_h(s), q_count = pool2d_out_w(s);
  const size_t down = (p_count + ROWS - 1) / ROWS, across = (q_count + COLS - 1) / COLS;
  avg_pool2d_forward_tile_kernel<K, S, PAD, ROWS, COLS>
      <<<pool2d_blocks((size_t)s.n * s.c * down * across), POOL2D_BLOCK>>>(y, x, s, p_count, q_count, include_pad,
                                                                           pool2d_whole(y, q_count, COLS, sizeof *y));
  CUDA_CHECK_LAUNCH();
}

template <int K, int S, int PAD, int ROWS, int COLS>
static inline void avg_pool2d_backward_tile(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  const size_t down = (s.h + S * ROWS - 1) / (S * ROWS), across = (s.w + S * COLS - 1) / (S * COLS);
  avg_pool2d_backward_tile_kernel<K, S, PAD, ROWS, COLS>
      <<<pool2d_blocks((size_t)s.n * s.c * down * across), POOL2D_BLOCK>>>(
          dx, dy, s, pool2d_out_h(s), pool2d_out_w(s), include_pad, pool2d_whole(dx, s.w, S * COLS, sizeof *dx));
  CUDA_CHECK_LAUNCH();
}

typedef void AvgPool2dLauncher(float *to, const float *from, Pool2dShape s, bool include_pad);

/* tiles[k][w]: windows of 2 x 2 (k = 0) or 3 x 3; one column of windows per thread (w = 0) or two, which are four of
 * inputs. whole: rows are float4s. */
static inline AvgPool2dLauncher *avg_pool2d_choose(AvgPool2dLauncher *naive, AvgPool2dLauncher *const tiles[2][2],
                                                   Pool2dShape s, bool whole) {
  if (!pool2d_tiles(s) || !(pool2d_is(s, 2, 2, 0) || pool2d_is(s, 3, 2, 1))) return naive;
  return tiles[s.kernel_h == 3][whole];
}

static inline void avg_pool2d_forward_gpu(float *y, const float *x, Pool2dShape s, bool include_pad) {
  static AvgPool2dLauncher *const tiles[2][2] = {
      {avg_pool2d_forward_tile<2, 2, 0, AVG_POOL2D_ROWS, 1>, avg_pool2d_forward_tile<2, 2, 0, AVG_POOL2D_ROWS, 2>},
      {avg_pool2d_forward_tile<3, 2, 1, AVG_POOL2D_ROWS, 1>, avg_pool2d_forward_tile<3, 2, 1, AVG_POOL2D_ROWS, 2>}};
  const bool whole = pool2d_whole(x, s.w, 4, sizeof *x);
  avg_pool2d_choose(avg_pool2d_forward_naive, tiles, s, whole)(y, x, s, include_pad);
}

static inline void avg_pool2d_backward_gpu(float *dx, const float *dy, Pool2dShape s, bool include_pad) {
  static AvgPool2dLauncher *const tiles[2][2] = {
      {avg_pool2d_backward_tile<2, 2, 0, AVG_POOL2D_ROWS, 1>, avg_pool2d_backward_tile<2, 2, 0, AVG_POOL2D_ROWS, 2>},
      {avg_pool2d_backward_tile<3, 2, 1, AVG_POOL2D_ROWS, 1>, avg_pool2d_backward_tile<3, 2, 1, AVG_POOL2D_ROWS, 2>}};
  const bool whole = pool2d_whole(dx, s.w, 4, sizeof *dx) && pool2d_whole(dy, pool2d_out_w(s), 2, sizeof *dy);
  avg_pool2d_choose(avg_pool2d_backward_naive, tiles, s, whole)(dx, dy, s, include_pad);
}

#endif /* PHASE3_CNN_AVG_POOL2D_CUH */

/* softmax.cuh - scores become probabilities, row by row: x, y, dx, dy (rows,cols), rows and cols at least 1.
 *
 *   forward     y[j] = exp(x[j] - max) / sum,   sum = exp(x[0] - max) + ... + exp(x[cols-1] - max)
 *   backward    dx[j] = y[j] (dy[j] - dot),     dot = y[0] dy[0] + ... + y[cols-1] dy[cols-1]
 *
 * Subtracting the row's maximum changes nothing in exact arithmetic and keeps exp() from overflowing. A score of -inf
 * gets the probability 0; NaN, +inf, or a row of nothing but -inf give NaN. All may work in place (y == x, dx == dy)
 * except `jacobian`.
 *
 * The derivative of a row is a matrix, the Jacobian: the derivative of y[j] with respect to x[i] is
 * y[j] ((i == j) - y[i]), cols x cols numbers per row. (dx and dy are gradients of the loss, with respect to x and y.)
 * Backward needs only the product of this matrix with dy. In
 *     dx[i] = sum over j of dy[j] y[j] ((i == j) - y[i]) = y[i] dy[i] - y[i] (sum over j of dy[j] y[j])
 * the sum is the same for all i. So backward is a dot product and a multiplication; `jacobian` shows what that saves.
 *
 * The arithmetic costs little beside the memory traffic: what counts is how often a row is read.
 *
 *   softmax_forward_naive       one thread per row: three passes; the 32 lanes of a warp read 32 rows
 *   softmax_forward_shared      one block per row, reduced by a tree in shared memory: three passes
 *   softmax_forward_shuffle     reduced by shuffles within a warp: three passes, two barriers
 *   softmax_forward_online      maximum and sum in one pass: two passes
 *   softmax_forward_staged      the row is kept in shared memory: one read
 *   softmax_forward_gpu         the row is kept in registers, as float4, by a warp or a block; what does not fit there
 *                               is kept in shared memory
 *
 *   softmax_backward_jacobian   one thread per element computes its row of the Jacobian
 *   softmax_backward_naive      one thread per row
 *   softmax_backward_shuffle    one block per row: two passes
 *   softmax_backward_gpu        both rows in registers: one read (longer rows than 16384 are read twice, as float4)
 *
 * Source of the online sum: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
 */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CUH

#include <cuda_pipeline.h>

#include "common/check.h"
#include "common/shared_memory_limit.cuh"
#include "phase1_building_blocks/08_softmax/row_reduce.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void softmax_forward_cpu(T *y, const T *x, int rows, int cols) {
  for (int row = 0; row < rows; row++, x += cols, y += cols) {
    // >>> hidden softmax_naive
    double max = x[0], sum = 0;
    for (int j = 1; j < cols; j++)
      if (x[j] > max) max = x[j];
    for (int j = 0; j < cols; j++) sum += exp(x[j] - max);
    for (int j = 0; j < cols; j++) y[j] = (T)(exp(x[j] - max) / sum);
    // <<< hidden
  }
}

template <typename T>
static inline void softmax_backward_cpu(T *dx, const T *dy, const T *y, int rows, int cols) {
  for (int row = 0; row < rows; row++, dx += cols, dy += cols, y += cols) {
    // >>> hidden softmax_backward
    double dot = 0;
    for (int j = 0; j < cols; j++) dot += (double)dy[j] * y[j];
    for (int j = 0; j < cols; j++) dx[j] = (T)(y[j] * (dy[j] - dot));
    // <<< hidden
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward: from one thread per row to one block of SOFTMAX_THREADS per row */

enum { SOFTMAX_THREADS = 256 };

static __global__ void softmax_forward_naive_kernel(float *y, const float *x, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += (size_t)row * cols;  // to the thread's row
  y += (size_t)row * cols;
  // >>> exercise softmax_naive: write the probabilities of the row's `cols` scores x to y, safe from overflow
  // hint: three loops: the maximum; the sum of exp(x[j] - max); y[j] = exp(x[j] - max) / sum
  // hint: all scores of a row may be far below 0: start the maximum at -INFINITY or at x[0]
  // hint: for (int j = 0; j < cols; j++) max = fmaxf(max, x[j]); then sum += expf(x[j] - max); then the quotients
  float max = -INFINITY, sum = 0;
  for (int j = 0; j < cols; j++) max = fmaxf(max, x[j]);
  for (int j = 0; j < cols; j++) sum += expf(x[j] - max);
  for (int j = 0; j < cols; j++) y[j] = expf(x[j] - max) / sum;
  // <<< exercise
}

/* Neighbouring threads take neighbouring elements. Each thread then knows the maximum of its elements, and a tree joins
 * them: in each step the lower half of the remaining threads merges the values of the upper half. */
static __global__ void softmax_forward_shared_kernel(float *y, const float *x, int cols) {
  __shared__ float part[SOFTMAX_THREADS];
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  int t = threadIdx.x;

  float max = -INFINITY, sum = 0;
  for (int j = t; j < cols; j += SOFTMAX_THREADS) max = fmaxf(max, x[j]);
  part[t] = max;
  // >>> exercise softmax_tree: reduce part[0 .. SOFTMAX_THREADS-1] to their maximum, in every thread's `max`
  // hint: half = SOFTMAX_THREADS / 2: thread t < half takes the larger of part[t] and part[t + half]; then halve `half`
  // hint: a thread reads what another has written: one barrier before each step, outside the if, and one after the last
  // hint: part is used again below: no thread may write to it before all have read the maximum in part[0]
  for (int half = SOFTMAX_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) part[t] = fmaxf(part[t], part[t + half]);
  }
  __syncthreads();
  max = part[0];
  __syncthreads(); /* all have read part[0]: it may be used again */
  // <<< exercise

  for (int j = t; j < cols; j += SOFTMAX_THREADS) sum += expf(x[j] - max);
  part[t] = sum;
  for (int half = SOFTMAX_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) part[t] += part[t + half];
  }
  __syncthreads();
  sum = part[0];

  for (int j = t; j < cols; j += SOFTMAX_THREADS) y[j] = expf(x[j] - max) / sum;
}

/* The lanes of a warp read each other's registers: five exchanges, no shared memory, no barrier. Each warp then stores
 * one float in shared memory, and after one barrier every warp reduces those 8 floats. */
static __device__ float softmax_warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

static __global__ void softmax_forward_shuffle_kernel(float *y, const float *x, int cols) {
  __shared__ float part[SOFTMAX_THREADS / 32];
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  int t = threadIdx.x;

  float max = -INFINITY, sum = 0;
  for (int j = t; j < cols; j += SOFTMAX_THREADS) max = fmaxf(max, x[j]);
  max = softmax_warp_max(max);
  if (t % 32 == 0) part[t / 32] = max;
  __syncthreads();
  max = softmax_warp_max(part[t % (SOFTMAX_THREADS / 32)]);

  for (int j = t; j < cols; j += SOFTMAX_THREADS) sum += expf(x[j] - max);
  sum = row_sum<SOFTMAX_THREADS>(sum);
  for (int j = t; j < cols; j += SOFTMAX_THREADS) y[j] = expf(x[j] - max) / sum;
}

static __global__ void softmax_forward_online_kernel(float *y, const float *x, int cols) {
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  int t = threadIdx.x;
  MaxSum seen = max_sum_make(-INFINITY, 0);
  for (int j = t; j < cols; j += SOFTMAX_THREADS) seen = max_sum_add(seen, x[j]);
  seen = row_max_sum<SOFTMAX_THREADS>(seen);
  for (int j = t; j < cols; j += SOFTMAX_THREADS) y[j] = expf(x[j] - seen.max) / seen.sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Forward: one read */

/* Three passes again, but the second and the third read shared memory. Each thread reads only what it wrote itself, so
 * the row needs no barrier. T threads: a long row leaves room for one block per multiprocessor, so it gets more. */
template <int T>
static __global__ void softmax_forward_staged_kernel(float *y, const float *x, int cols) {
  extern __shared__ float staged[]; /* the row */
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  MaxSum seen = max_sum_make(-INFINITY, 0);
#pragma unroll 4
  for (int j = threadIdx.x; j < cols; j += T) {
    staged[j] = x[j];
    seen.max = fmaxf(seen.max, staged[j]);
  }
  float from = seen.max == -INFINITY ? 0 : seen.max; /* no NaN where a thread has no score above -inf */
  for (int j = threadIdx.x; j < cols; j += T) seen.sum += expf(staged[j] - from);
  seen = row_max_sum<T>(seen);
  for (int j = threadIdx.x; j < cols; j += T) y[j] = expf(staged[j] - seen.max) / seen.sum;
}

static __device__ __forceinline__ float softmax_quad_max(float4 v) { return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)); }
static __device__ __forceinline__ float softmax_quad_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
static __device__ __forceinline__ float4 softmax_quad_exp(float4 v, float max) {
  return make_float4(expf(v.x - max), expf(v.y - max), expf(v.z - max), expf(v.w - max));
}
static __device__ __forceinline__ float4 softmax_quad_scale(float4 v, float factor) {
  return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

/* T threads per row; each keeps QUADS float4 of it in registers and issues all its loads before it needs the first.
 * Each thread computes exp() relative to its own maximum m, and the row is reduced once, after that:
 *     exp(x - max) / sum = exp(x - m) * (exp(m - max) / sum).
 * The launch bounds leave 64 registers per thread, so that a multiprocessor holds 1024 threads and some of them load
 * while others compute or store. x is read once and y is not read again: both use streaming accesses (__ldcs, __stcs),
 * which the caches evict first. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS, 1024 / (T * ROWS))
    softmax_forward_kernel(float *y, const float *x, int rows, int cols) {
  const float4 none = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return; /* one warp per row then: the whole warp returns */
  x += (size_t)r * cols;
  y += (size_t)r * cols;
  Row row = row_split(x, cols);
  const float4 *in = (const float4 *)(x + row.head);
  float4 *out = (float4 *)(y + row.head), kept[QUADS];
  int edge = row_edge(row, t);
#pragma unroll
  for (int i = 0; i < QUADS; i++) kept[i] = t + i * T < row.quads ? __ldcs(&in[t + i * T]) : none;
  float alone = edge >= 0 ? x[edge] : -INFINITY, max = alone, sum = 0;
#pragma unroll
  for (int i = 0; i < QUADS; i++) max = fmaxf(max, softmax_quad_max(kept[i]));
  float from = max == -INFINITY ? 0 : max;
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    kept[i] = softmax_quad_exp(kept[i], from);
    sum += softmax_quad_sum(kept[i]);
  }
  alone = expf(alone - from);
  MaxSum all = row_max_sum<T>(max_sum_make(max, sum + alone));
  float factor = expf(max - all.max) / all.sum;
#pragma unroll
  for (int i = 0; i < QUADS; i++)
    if (t + i * T < row.quads) __stcs(&out[t + i * T], softmax_quad_scale(kept[i], factor));
  if (edge >= 0) y[edge] = alone * factor;
}

/* For rows that do not fit in the registers of a block: the rest is copied to shared memory by cp.async, which uses no
 * registers. An H200 holds 128 KiB in registers and 226 KiB in shared memory, together 90,000 floats; an A100 holds
 * 74,000. The threads begin at a multiple of 128 bytes, up to 7 quads before the row, so that each load and store of a
 * warp touches 4 lines of 128 bytes and not 5. */
enum { SOFTMAX_LONG_THREADS = 1024, SOFTMAX_LONG_QUADS = 8, SOFTMAX_LINE_QUADS = 8 };

static __global__ void __launch_bounds__(SOFTMAX_LONG_THREADS)
    softmax_forward_long_kernel(float *y, const float *x, int cols) {
  extern __shared__ float4 rest[];
  const int T = SOFTMAX_LONG_THREADS, HELD = SOFTMAX_LONG_QUADS * T; /* quads in registers; from there on, in `rest` */
  const float4 none = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  x += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  Row row = row_split(x, cols);
  int edge = row_edge(row, threadIdx.x);
  int before = (int)((uintptr_t)(x + row.head) / sizeof(float4) % SOFTMAX_LINE_QUADS);
  int t = threadIdx.x - before, end = row.quads - HELD; /* quad t, if not below 0, t + T, ... */
  const float4 *in = (const float4 *)(x + row.head);
  float4 *out = (float4 *)(y + row.head), *own = rest + before, kept[SOFTMAX_LONG_QUADS];

#pragma unroll 4
  for (int q = t; q < end; q += T) __pipeline_memcpy_async(&own[q], &in[HELD + q], sizeof(float4));
  __pipeline_commit();
#pragma unroll
  for (int i = 0; i < SOFTMAX_LONG_QUADS; i++) kept[i] = t + i * T >= 0 && t + i * T < row.quads ? in[t + i * T] : none;
  float alone = edge >= 0 ? x[edge] : -INFINITY, max = alone, sum = 0;
#pragma unroll
  for (int i = 0; i < SOFTMAX_LONG_QUADS; i++) max = fmaxf(max, softmax_quad_max(kept[i]));
  __pipeline_wait_prior(0); /* each thread reads only what it copied itself: no barrier */
#pragma unroll 2
  for (int q = t; q < end; q += T) max = fmaxf(max, softmax_quad_max(own[q]));

  float from = max == -INFINITY ? 0 : max;
#pragma unroll
  for (int i = 0; i < SOFTMAX_LONG_QUADS; i++) {
    kept[i] = softmax_quad_exp(kept[i], from);
    sum += softmax_quad_sum(kept[i]);
  }
#pragma unroll 1
  for (int q = t; q < end; q += T) {
    float4 e = softmax_quad_exp(own[q], from);
    own[q] = e;
    sum += softmax_quad_sum(e);
  }
  alone = expf(alone - from);
  MaxSum all = row_max_sum<SOFTMAX_LONG_THREADS>(max_sum_make(max, sum + alone));

  float factor = expf(max - all.max) / all.sum;
#pragma unroll
  for (int i = 0; i < SOFTMAX_LONG_QUADS; i++)
    if (t + i * T >= 0 && t + i * T < row.quads) out[t + i * T] = softmax_quad_scale(kept[i], factor);
#pragma unroll 1
  for (int q = t; q < end; q += T) out[HELD + q] = softmax_quad_scale(own[q], factor);
  if (edge >= 0) y[edge] = alone * factor;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Backward */

/* Element i of the gradient needs row i of the Jacobian, which is computed on the fly: cols steps per element. */
static __global__ void softmax_backward_jacobian_kernel(float *dx, const float *dy, const float *y, int cols) {
  int i = blockIdx.y * blockDim.x + threadIdx.x;
  size_t at = (size_t)blockIdx.x * cols;
  if (i >= cols) return;
  float sum = 0, yi = y[at + i];
  for (int j = 0; j < cols; j++) sum += dy[at + j] * y[at + j] * ((i == j ? 1.0f : 0.0f) - yi);
  dx[at + i] = sum;
}

static __global__ void softmax_backward_naive_kernel(float *dx, const float *dy, const float *y, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  dx += (size_t)row * cols;
  dy += (size_t)row * cols;
  y += (size_t)row * cols;
  // >>> exercise softmax_backward: write the gradient of the row's scores to dx, in two loops over its `cols` elements
  // hint: dx[i] = sum over j of dy[j] * y[j] * ((i == j) - y[i]): take the term with i == j out of the sum
  // hint: the rest of the sum, without y[i], does not depend on i: it is the dot product of dy and y
  // hint: for (int j = 0; j < cols; j++) dot += dy[j] * y[j]; then dx[j] = y[j] * (dy[j] - dot)
  float dot = 0;
  for (int j = 0; j < cols; j++) dot += dy[j] * y[j];
  for (int j = 0; j < cols; j++) dx[j] = y[j] * (dy[j] - dot);
  // <<< exercise
}

static __global__ void softmax_backward_shuffle_kernel(float *dx, const float *dy, const float *y, int cols) {
  dx += (size_t)blockIdx.x * cols;
  dy += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  // >>> hidden softmax_backward
  float dot = 0;
  for (int j = threadIdx.x; j < cols; j += SOFTMAX_THREADS) dot += dy[j] * y[j];
  dot = row_sum<SOFTMAX_THREADS>(dot);
  for (int j = threadIdx.x; j < cols; j += SOFTMAX_THREADS) dx[j] = y[j] * (dy[j] - dot);
  // <<< hidden
}

/* Keeps both rows in registers, as softmax_forward_kernel does. */
template <int T, int QUADS, int ROWS>
static __global__ void __launch_bounds__(T *ROWS)
    softmax_backward_kernel(float *dx, const float *dy, const float *y, int rows, int cols) {
  const float4 none = make_float4(0, 0, 0, 0);
  int t = threadIdx.x, r = blockIdx.x * ROWS + threadIdx.y;
  if (ROWS > 1 && r >= rows) return;
  dx += (size_t)r * cols;
  dy += (size_t)r * cols;
  y += (size_t)r * cols;
  Row row = row_split(y, cols);
  const float4 *in_y = (const float4 *)(y + row.head), *in_dy = (const float4 *)(dy + row.head);
  float4 *out = (float4 *)(dx + row.head), p[QUADS], d[QUADS];
  int edge = row_edge(row, t);
#pragma unroll
  for (int i = 0; i < QUADS; i++) {
    bool inside = t + i * T < row.quads;
    p[i] = inside ? __ldcs(&in_y[t + i * T]) : none;
    d[i] = inside ? __ldcs(&in_dy[t + i * T]) : none;
  }
  float p_alone = edge >= 0 ? y[edge] : 0, d_alone = edge >= 0 ? dy[edge] : 0, dot = p_alone * d_alone;
#pragma unroll
  for (int i = 0; i < QUADS; i++) dot += (p[i].x * d[i].x + p[i].y * d[i].y) + (p[i].z * d[i].z + p[i].w * d[i].w);
  dot = row_sum<T>(dot);
#pragma unroll
  for (int i = 0; i < QUADS; i++)
    if (t + i * T < row.quads)
      __stcs(&out[t + i * T], make_float4(p[i].x * (d[i].x - dot), p[i].y * (d[i].y - dot), p[i].z * (d[i].z - dot),
                                          p[i].w * (d[i].w - dot)));
  if (edge >= 0) dx[edge] = p_alone * (d_alone - dot);
}

/* For rows that do not fit in registers: they are read twice, the second time from the end, because the caches still
 * hold what was read last. */
static __global__ void __launch_bounds__(SOFTMAX_LONG_THREADS)
    softmax_backward_long_kernel(float *dx, const float *dy, const float *y, int cols) {
  const int T = SOFTMAX_LONG_THREADS;
  dx += (size_t)blockIdx.x * cols;
  dy += (size_t)blockIdx.x * cols;
  y += (size_t)blockIdx.x * cols;
  Row row = row_split(y, cols);
  const float4 *in_y = (const float4 *)(y + row.head), *in_dy = (const float4 *)(dy + row.head);
  float4 *out = (float4 *)(dx + row.head);
  int edge = row_edge(row, threadIdx.x);
  float p_alone = edge >= 0 ? y[edge] : 0, d_alone = edge >= 0 ? dy[edge] : 0, dot = p_alone * d_alone;
#pragma unroll 4
  for (int q = threadIdx.x; q < row.quads; q += T) {
    float4 p = in_y[q], d = in_dy[q];
    dot += (p.x * d.x + p.y * d.y) + (p.z * d.z + p.w * d.w);
  }
  dot = row_sum<SOFTMAX_LONG_THREADS>(dot);
#pragma unroll 4
  for (int q = row.quads - 1 - (int)threadIdx.x; q >= 0; q -= T) {
    float4 p = __ldcs(&in_y[q]), d = __ldcs(&in_dy[q]);
    __stcs(&out[q], make_float4(p.x * (d.x - dot), p.y * (d.y - dot), p.z * (d.z - dot), p.w * (d.w - dot)));
  }
  if (edge >= 0) dx[edge] = p_alone * (d_alone - dot);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void softmax_forward_naive(float *y, const float *x, int rows, int cols) {
  softmax_forward_naive_kernel<<<(rows + 127) / 128, 128>>>(y, x, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_forward_shared(float *y, const float *x, int rows, int cols) {
  softmax_forward_shared_kernel<<<rows, SOFTMAX_THREADS>>>(y, x, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_forward_shuffle(float *y, const float *x, int rows, int cols) {
  softmax_forward_shuffle_kernel<<<rows, SOFTMAX_THREADS>>>(y, x, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_forward_online(float *y, const float *x, int rows, int cols) {
  softmax_forward_online_kernel<<<rows, SOFTMAX_THREADS>>>(y, x, cols);
  CUDA_CHECK_LAUNCH();
}

template <int T>
static inline void softmax_forward_staged_launch(float *y, const float *x, int rows, int cols) {
  size_t bytes = (size_t)cols * sizeof(float);
  if (bytes > 48 * 1024 - 1024) /* more must be requested */
    CUDA_CHECK(cudaFuncSetAttribute((const void *)softmax_forward_staged_kernel<T>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  softmax_forward_staged_kernel<T><<<rows, T, bytes>>>(y, x, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_forward_staged(float *y, const float *x, int rows, int cols) {
  if ((size_t)cols * sizeof(float) > shared_limit_beside(1024))
    softmax_forward_online(y, x, rows, cols);
  else if (cols > 8192)
    softmax_forward_staged_launch<1024>(y, x, rows, cols);
  else
    softmax_forward_staged_launch<256>(y, x, rows, cols);
}

/* T threads per row, QUADS float4 in the registers of each, ROWS rows per block (1 if T is more than a warp). */
template <int T, int QUADS, int ROWS>
static inline void softmax_forward_launch(float *y, const float *x, int rows, int cols) {
  softmax_forward_kernel<T, QUADS, ROWS><<<(rows + ROWS - 1) / ROWS, dim3(T, ROWS)>>>(y, x, rows, cols);
  CUDA_CHECK_LAUNCH();
}

/* Bytes of shared memory that a long row needs in addition to the registers. */
static inline size_t softmax_long_bytes(int cols) {
  int quads = cols / 4 - SOFTMAX_LONG_QUADS * SOFTMAX_LONG_THREADS + SOFTMAX_LINE_QUADS;
  return quads > 0 ? (size_t)quads * sizeof(float4) : 0;
}

static inline void softmax_forward_long(float *y, const float *x, int rows, int cols) {
  size_t bytes = softmax_long_bytes(cols);
  CUDA_CHECK(cudaFuncSetAttribute((const void *)softmax_forward_long_kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  softmax_forward_long_kernel<<<rows, SOFTMAX_LONG_THREADS, bytes>>>(y, x, cols);
  CUDA_CHECK_LAUNCH();
}

/* The sizes are the fastest of a sweep on an H200. */
static inline void softmax_forward_gpu(float *y, const float *x, int rows, int cols) {
  if (!rows_alike(x, y) || softmax_long_bytes(cols) > shared_limit_beside(1024))
    softmax_forward_online(y, x, rows, cols);
  else if (cols <= 256)
    softmax_forward_launch<32, 2, 4>(y, x, rows, cols);
  else if (cols <= 512)
    softmax_forward_launch<32, 4, 8>(y, x, rows, cols);
  else if (cols <= 1024)
    softmax_forward_launch<32, 8, 8>(y, x, rows, cols);
  else if (cols <= 2048)
    softmax_forward_launch<256, 2, 1>(y, x, rows, cols);
  else if (cols <= 4096)
    softmax_forward_launch<256, 4, 1>(y, x, rows, cols);
  else if (cols <= 8192)
    softmax_forward_launch<512, 4, 1>(y, x, rows, cols);
  else if (cols <= 16384)
    softmax_forward_launch<512, 8, 1>(y, x, rows, cols);
  else
    softmax_forward_long(y, x, rows, cols);
}

static inline void softmax_backward_jacobian(float *dx, const float *dy, const float *y, int rows, int cols) {
  dim3 grid((unsigned)rows, (unsigned)(cols + 127) / 128);
  softmax_backward_jacobian_kernel<<<grid, 128>>>(dx, dy, y, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_backward_naive(float *dx, const float *dy, const float *y, int rows, int cols) {
  softmax_backward_naive_kernel<<<(rows + 127) / 128, 128>>>(dx, dy, y, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_backward_shuffle(float *dx, const float *dy, const float *y, int rows, int cols) {
  softmax_backward_shuffle_kernel<<<rows, SOFTMAX_THREADS>>>(dx, dy, y, cols);
  CUDA_CHECK_LAUNCH();
}

template <int T, int QUADS, int ROWS>
static inline void softmax_backward_launch(float *dx, const float *dy, const float *y, int rows, int cols) {
  softmax_backward_kernel<T, QUADS, ROWS><<<(rows + ROWS - 1) / ROWS, dim3(T, ROWS)>>>(dx, dy, y, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_backward_long(float *dx, const float *dy, const float *y, int rows, int cols) {
  softmax_backward_long_kernel<<<rows, SOFTMAX_LONG_THREADS>>>(dx, dy, y, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void softmax_backward_gpu(float *dx, const float *dy, const float *y, int rows, int cols) {
  if (!rows_alike(y, dy) || !rows_alike(y, dx))
    softmax_backward_shuffle(dx, dy, y, rows, cols);
  else if (cols <= 256)
    softmax_backward_launch<32, 2, 4>(dx, dy, y, rows, cols);
  else if (cols <= 1024)
    softmax_backward_launch<128, 2, 1>(dx, dy, y, rows, cols);
  else if (cols <= 4096)
    softmax_backward_launch<256, 4, 1>(dx, dy, y, rows, cols);
  else if (cols <= 16384)
    softmax_backward_launch<1024, 4, 1>(dx, dy, y, rows, cols);
  else
    softmax_backward_long(dx, dy, y, rows, cols);
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CUH */

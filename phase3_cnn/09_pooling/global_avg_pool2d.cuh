/* global_avg_pool2d.cuh - the mean of each plane, float32, NCHW: what modern networks have before their last layer.
 *
 *     y[n,c] = mean over h,v of  x[n,c,h,v]             dx[n,c,h,v] = dy[n,c] / (H W)
 *
 *     x, dx (planes, pixels)   y, dy (planes)           planes = N C, pixels = H W
 *
 * Both are limited by memory: x is read once, or dx written once, and the rest is small.
 *
 * Versions of global_avg_pool2d_forward_*:
 *     _cpu       the loops of the formula, in double
 *     _cpu_fast  planes are shared out among threads, 16 sums side by side
 *     _naive     one thread per plane: neighbouring threads read floats that are a plane apart
 *     _warp      one warp per plane reads neighbouring floats and adds up its 32 sums by shuffles. A plane of 7 x 7 is
 *                two loads per lane: too few to hide their latency
 *     _gpu       small planes: eight per warp, so that each lane has eight loads in flight; large ones: a block per
 *                plane with four float4 loads per thread in flight
 * and of global_avg_pool2d_backward_*:
 *     _cpu, _cpu_fast
 *     _naive     one thread per input, which divides to find its plane
 *     _gpu       a thread stores float4s, and divides once for each
 * No result depends on the order of threads. A shape from outside goes through global_avg_pool2d_check() first.
 */
#ifndef PHASE3_CNN_GLOBAL_AVG_POOL2D_CUH
#define PHASE3_CNN_GLOBAL_AVG_POOL2D_CUH

#include <stdint.h>

#include "common/error.h"
#include "common/simd.h"

static inline int global_avg_pool2d_check(int planes, int pixels, Error *err) {
  if (planes < 1 || pixels < 1)
    return error_set(err, "global average pooling of %d planes of %d pixels: both must be at least 1", planes, pixels);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void global_avg_pool2d_forward_cpu(T *y, const T *x, int planes, int pixels) {
  for (int plane = 0; plane < planes; plane++, x += pixels) {
    double sum = 0;
    for (int i = 0; i < pixels; i++) sum += x[i];
    y[plane] = (T)(sum / pixels);
  }
}

template <typename T>
static inline void global_avg_pool2d_backward_cpu(T *dx, const T *dy, int planes, int pixels) {
  for (int plane = 0; plane < planes; plane++, dx += pixels)
    for (int i = 0; i < pixels; i++) dx[i] = dy[plane] / pixels;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU, fast */

typedef float GlobalPoolFloats __attribute__((vector_size(16), aligned(4), may_alias));

CPU_CLONES static inline float global_avg_pool2d_sum(const float *x, int n) {
  GlobalPoolFloats sum[4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  int i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 4; j++) sum[j] += *(const GlobalPoolFloats *)(x + i + 4 * j);
  const GlobalPoolFloats all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  float total = (all[0] + all[1]) + (all[2] + all[3]);
  for (; i < n; i++) total += x[i];
  return total;
}

static inline void global_avg_pool2d_forward_cpu_fast(float *y, const float *x, int planes, int pixels) {
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < planes; plane++)
    y[plane] = global_avg_pool2d_sum(x + (size_t)plane * pixels, pixels) / (float)pixels;
}

static inline void global_avg_pool2d_backward_cpu_fast(float *dx, const float *dy, int planes, int pixels) {
#pragma omp parallel for schedule(static)
  for (int plane = 0; plane < planes; plane++) {
    const float value = dy[plane] / (float)pixels;
    float *to = dx + (size_t)plane * pixels;
    for (int i = 0; i < pixels; i++) to[i] = value;
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: forward */

enum {
  GLOBAL_POOL_BLOCK = 256,
  GLOBAL_POOL_PLANES = 8,   /* of a warp, where planes are small */
  GLOBAL_POOL_LOADS = 4,    /* of float4s, of a thread at a time, where they are large */
  GLOBAL_POOL_SMALL = 1024, /* pixels of a small plane, at most */
};

/* One thread per plane. */
static __global__ void global_avg_pool2d_naive_kernel(float *y, const float *x, int planes, int pixels) {
  const int plane = blockIdx.x * blockDim.x + threadIdx.x;
  if (plane >= planes) return;
  x += (size_t)plane * pixels;
  float sum = 0;
  for (int i = 0; i < pixels; i++) sum += x[i];
  y[plane] = sum / (float)pixels;
}

static __device__ float global_avg_pool2d_total(float v) { return v; }
static __device__ float global_avg_pool2d_total(float4 v) { return (v.x + v.y) + (v.z + v.w); }

/* One warp per PLANES planes of n vectors V, which are float or float4. Grid: warps for all planes. Each lane asks for
 * the floats of two steps at once, or for the float4s of one. */
template <int PLANES, typename V>
static __global__ void __launch_bounds__(GLOBAL_POOL_BLOCK)
    global_avg_pool2d_warp_kernel(float *y, const V *x, int planes, int n, float pixels) {
  const int steps = PLANES > 1 && sizeof(V) == sizeof(float) ? 2 : 1;
  const int lane = threadIdx.x % 32, first = (blockIdx.x * (GLOBAL_POOL_BLOCK / 32) + threadIdx.x / 32) * PLANES;
  if (first >= planes) return;
  x += (size_t)first * n;
  float sum[PLANES];
#pragma unroll
  for (int t = 0; t < PLANES; t++) sum[t] = 0;
  for (int i = lane; i < n; i += 32 * steps) {
    V v[steps][PLANES];
#pragma unroll
    for (int u = 0; u < steps; u++)
#pragma unroll
      for (int t = 0; t < PLANES; t++) { /* behind the last plane: it again, and no store */
        v[u][t] = V{};
        if (i + 32 * u < n) v[u][t] = x[min(t, planes - 1 - first) * n + i + 32 * u];
      }
#pragma unroll
    for (int u = 0; u < steps; u++)
#pragma unroll
      for (int t = 0; t < PLANES; t++) sum[t] += global_avg_pool2d_total(v[u][t]);
  }
  const int lanes = 32 / PLANES; /* that have the same plane in the end */
  // >>> exercise global_avg_reduce: add up the lanes' sums: sum[0] of lane l becomes the total of plane l / lanes
  // hint: lanes l and l ^ 16 exchange halves: the upper lane keeps the upper PLANES / 2 planes, and adds what it gets
  // hint: then lanes 8 apart, and so on until a lane has one plane; the steps that are left add sum[0] alone
  // hint: sum[t] = keep + __shfl_xor_sync(0xffffffffu, give, step); upper lanes keep sum[t + half] and give sum[t]
#pragma unroll
  for (int half = PLANES / 2, step = 16; half > 0; half /= 2, step /= 2) {
    const bool upper = (lane & step) != 0;
#pragma unroll
    for (int t = 0; t < half; t++) {
      const float give = upper ? sum[t] : sum[t + half], keep = upper ? sum[t + half] : sum[t];
      sum[t] = keep + __shfl_xor_sync(0xffffffffu, give, step);
    }
  }
#pragma unroll
  for (int step = lanes / 2; step > 0; step /= 2) sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], step);
  // <<< exercise
  if (lane % lanes == 0 && first + lane / lanes < planes) y[first + lane / lanes] = sum[0] / pixels;
}

/* One block per plane of n vectors V. */
template <typename V>
static __global__ void __launch_bounds__(GLOBAL_POOL_BLOCK)
    global_avg_pool2d_block_kernel(float *y, const V *x, int n, float pixels) {
  __shared__ float sums[GLOBAL_POOL_BLOCK / 32];
  x += (size_t)blockIdx.x * n;
  float sum = 0;
  const int loads = sizeof(V) == sizeof(float) ? 2 * GLOBAL_POOL_LOADS : GLOBAL_POOL_LOADS;
  for (int i = threadIdx.x; i < n; i += loads * GLOBAL_POOL_BLOCK) {
    V v[loads];
#pragma unroll
    for (int u = 0; u < loads; u++) {
      v[u] = V{};
      if (i + u * GLOBAL_POOL_BLOCK < n) v[u] = x[i + u * GLOBAL_POOL_BLOCK];
    }
#pragma unroll
    for (int u = 0; u < loads; u++) sum += global_avg_pool2d_total(v[u]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float total = 0;
  for (int warp = 0; warp < GLOBAL_POOL_BLOCK / 32; warp++) total += sums[warp];
  y[blockIdx.x] = total / pixels;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: backward */

/* One thread per input. */
static __global__ void global_avg_pool2d_backward_naive_kernel(float *dx, const float *dy, size_t count, int pixels) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) dx[i] = dy[i / pixels] / (float)pixels;
}

/* A thread has GLOBAL_POOL_LOADS times four inputs, each of one plane or of two: pixels is at least 4, and count less
 * than 2^32. */
static __global__ void __launch_bounds__(GLOBAL_POOL_BLOCK)
    global_avg_pool2d_backward_kernel(float *dx, const float *dy, unsigned count, unsigned pixels) {
#pragma unroll
  for (unsigned u = 0; u < GLOBAL_POOL_LOADS; u++) {
    const unsigned i = ((blockIdx.x * GLOBAL_POOL_LOADS + u) * GLOBAL_POOL_BLOCK + threadIdx.x) * 4;
    if (i >= count) return;
    const unsigned plane = i / pixels, left = (plane + 1) * pixels - i; /* inputs of this plane from i on */
    const float here = dy[plane] / (float)pixels;
    const float next = left < 4 && i + left < count ? dy[plane + 1] / (float)pixels : 0.0f;
    if (i + 4 <= count)
      *(float4 *)(dx + i) = make_float4(here, left > 1 ? here : next, left > 2 ? here : next, left > 3 ? here : next);
    else
      for (unsigned j = 0; i + j < count; j++) dx[i + j] = j < left ? here : next;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline unsigned global_avg_pool2d_blocks(size_t threads) {
  return (unsigned)((threads + GLOBAL_POOL_BLOCK - 1) / GLOBAL_POOL_BLOCK);
}

static inline void global_avg_pool2d_forward_naive(float *y, const float *x, int planes, int pixels) {
  global_avg_pool2d_naive_kernel<<<global_avg_pool2d_blocks(planes), GLOBAL_POOL_BLOCK>>>(y, x, planes, pixels);
  CUDA_CHECK_LAUNCH();
}

static inline void global_avg_pool2d_forward_warp(float *y, const float *x, int planes, int pixels) {
  const unsigned blocks = global_avg_pool2d_blocks((size_t)planes * 32);
  global_avg_pool2d_warp_kernel<1, float><<<blocks, GLOBAL_POOL_BLOCK>>>(y, x, planes, pixels, (float)pixels);
  CUDA_CHECK_LAUNCH();
}

static inline void global_avg_pool2d_forward_gpu(float *y, const float *x, int planes, int pixels) {
  const int fours = pixels % 4 == 0 && (uintptr_t)x % sizeof(float4) == 0;
  const float4 *x4 = (const float4 *)x;
  const unsigned warps = (planes + GLOBAL_POOL_PLANES - 1) / GLOBAL_POOL_PLANES;
  const unsigned blocks = global_avg_pool2d_blocks((size_t)warps * 32);
  const float size = (float)pixels;
  if (pixels > GLOBAL_POOL_SMALL && fours)
    global_avg_pool2d_block_kernel<float4><<<planes, GLOBAL_POOL_BLOCK>>>(y, x4, pixels / 4, size);
  else if (pixels > GLOBAL_POOL_SMALL)
    global_avg_pool2d_block_kernel<float><<<planes, GLOBAL_POOL_BLOCK>>>(y, x, pixels, size);
  else if (fours)
    global_avg_pool2d_warp_kernel<GLOBAL_POOL_PLANES, float4>
        <<<blocks, GLOBAL_POOL_BLOCK>>>(y, x4, planes, pixels / 4, size);
  else
    global_avg_pool2d_warp_kernel<GLOBAL_POOL_PLANES, float><<<blocks, GLOBAL_POOL_BLOCK>>>(y, x, planes, pixels, size);
  CUDA_CHECK_LAUNCH();
}

static inline void global_avg_pool2d_backward_naive(float *dx, const float *dy, int planes, int pixels) {
  const size_t count = (size_t)planes * pixels;
  global_avg_pool2d_backward_naive_kernel<<<global_avg_pool2d_blocks(count), GLOBAL_POOL_BLOCK>>>(dx, dy, count,
                                                                                                  pixels);
  CUDA_CHECK_LAUNCH();
}

static inline void global_avg_pool2d_backward_gpu(float *dx, const float *dy, int planes, int pixels) {
  const size_t count = (size_t)planes * pixels;
  const unsigned each = 4 * GLOBAL_POOL_LOADS;
  if (pixels < 4 || count + each * GLOBAL_POOL_BLOCK > UINT32_MAX || (uintptr_t)dx % sizeof(float4) != 0) {
    global_avg_pool2d_backward_naive(dx, dy, planes, pixels);
    return;
  }
  global_avg_pool2d_backward_kernel<<<global_avg_pool2d_blocks((count + each - 1) / each), GLOBAL_POOL_BLOCK>>>(
      dx, dy, (unsigned)count, (unsigned)pixels);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_GLOBAL_AVG_POOL2D_CUH */

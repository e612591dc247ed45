/* residual.cuh - the end of a residual block: the sum of its two branches and ReLU, of n floats; n may be 0.
 *
 *     y = max(a + b, 0)               da = db = y > 0 ? dy : 0
 *
 * The backward pass needs only y. Both gradients are the same numbers, so da and db may be one array, which is written
 * once; one of the two may be NULL. y may be a or b, da or db may be dy. A NaN stays a NaN.
 *
 *   add_relu_*_cpu        plain loops
 *   add_relu_*_cpu_fast   large arrays are divided among threads, and the compiler vectorises
 *   add_relu_*_two        two kernels, as a network without fusion computes it: the sum is written and read again
 *   add_relu_*_one        one kernel, one float per thread
 *   add_relu_*_gpu        one kernel, four floats per thread, loaded at once
 *   add_relu_mean         y and the mean of each of its planes, which the classifier of a residual network reads
 */
#ifndef PHASE3_CNN_RESIDUAL_CUH
#define PHASE3_CNN_RESIDUAL_CUH

#include "phase1_building_blocks/07_activations/activations.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

template <typename T>
static inline void add_relu_forward_cpu(T *y, const T *a, const T *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    T sum = a[i] + b[i];
    y[i] = sum < 0 ? 0 : sum; /* the comparison is false for NaN, so NaN stays */
  }
}

template <typename T>
static inline void add_relu_backward_cpu(T *da, T *db, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    T d = y[i] <= 0 ? 0 : dy[i];
    if (da != NULL) da[i] = d;
    if (db != NULL) db[i] = d;
  }
}

/* a, b (planes, pixels) -> y, and mean (planes) of y */
template <typename T>
static inline void add_relu_mean_cpu(T *y, T *mean, const T *a, const T *b, int planes, int pixels) {
  add_relu_forward_cpu(y, a, b, (size_t)planes * pixels);
  for (int plane = 0; plane < planes; plane++, y += pixels) {
    double sum = 0;
    for (int i = 0; i < pixels; i++) sum += y[i];
    mean[plane] = (T)(sum / pixels);
  }
}

static inline void add_relu_forward_cpu_fast(float *y, const float *a, const float *b, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float sum = a[i] + b[i];
    y[i] = sum < 0 ? 0 : sum;
  }
}

static inline void add_relu_backward_cpu_fast(float *da, float *db, const float *dy, const float *y, size_t n) {
  if (da == NULL || db == NULL || da == db) {
    relu_backward_cpu_fast(da != NULL ? da : db, dy, y, n);
    return;
  }
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float d = dy[i]; /* read unconditionally: then the compiler can use a select instead of a branch */
    da[i] = db[i] = y[i] <= 0 ? 0 : d;
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: one thread per float, or per float4 */

enum { ADD_RELU_BLOCK = 256 };

static __global__ void add_relu_add_kernel(float *y, const float *a, const float *b, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a[i] + b[i];
}

static __global__ void add_relu_copy_kernel(float *to, const float *from, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

static __global__ void add_relu_forward_one_kernel(float *y, const float *a, const float *b, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise add_relu_forward: y[i] = max(a[i] + b[i], 0), if there is an element i; each array is accessed once
  // hint: the sum stays in a register: neither load y nor store it twice
  // hint: float sum = a[i] + b[i]; the grid may be larger than n, so compare i with n before
  // hint: if (i < n) { float sum = a[i] + b[i]; y[i] = sum < 0 ? 0 : sum; }
  if (i < n) {
    float sum = a[i] + b[i];
    y[i] = sum < 0.0f ? 0.0f : sum;
  }
  // <<< exercise
}

static __global__ void add_relu_backward_one_kernel(float *da, float *db, const float *dy, const float *y, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float d = dy[i], v = y[i]; /* both are loaded: else a warp of zeros would skip sectors of dy, and branch */
  d = v <= 0.0f ? 0.0f : d;
  da[i] = d;
  db[i] = d;
}

static __device__ float4 add_relu_quad(float4 a, float4 b) {
  // >>> hidden add_relu_forward
  float4 sum = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  sum.x = sum.x < 0.0f ? 0.0f : sum.x;
  sum.y = sum.y < 0.0f ? 0.0f : sum.y;
  sum.z = sum.z < 0.0f ? 0.0f : sum.z;
  sum.w = sum.w < 0.0f ? 0.0f : sum.w;
  return sum;
  // <<< hidden
}

/* The first 4 * quads floats as float4, the rest one by one; quads is 0 where the arrays are not aligned. There are at
 * least as many threads as quads, and as floats in the rest. */
static __global__ void add_relu_forward_kernel(float *y, const float *a, const float *b, size_t n, size_t quads) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < quads) ((float4 *)y)[i] = add_relu_quad(((const float4 *)a)[i], ((const float4 *)b)[i]);
  size_t rest = 4 * quads + i;
  if (rest < n) {
    float sum = a[rest] + b[rest];
    y[rest] = sum < 0.0f ? 0.0f : sum;
  }
}

static __global__ void add_relu_backward_kernel(float *da, float *db, const float *dy, const float *y, size_t n,
                                                size_t quads) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise add_relu_backward: quad i of da and of db: dy where y > 0, else 0; and so float i of the rest
  // hint: ((const float4 *)dy)[i] loads four floats in one request; load dy and y once for both gradients
  // hint: the rest begins at float 4 * quads: thread i takes float 4 * quads + i, if that is below n
  // hint: float4 d = ((const float4 *)dy)[i], v = ((const float4 *)y)[i]; d.x = v.x <= 0 ? 0 : d.x; ... store d twice
  if (i < quads) {
    float4 d = ((const float4 *)dy)[i], v = ((const float4 *)y)[i];
    d.x = v.x <= 0.0f ? 0.0f : d.x;
    d.y = v.y <= 0.0f ? 0.0f : d.y;
    d.z = v.z <= 0.0f ? 0.0f : d.z;
    d.w = v.w <= 0.0f ? 0.0f : d.w;
    ((float4 *)da)[i] = d;
    ((float4 *)db)[i] = d;
  }
  size_t rest = 4 * quads + i;
  if (rest < n) da[rest] = db[rest] = y[rest] <= 0.0f ? 0.0f : dy[rest];
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: one block per plane */

static __device__ void add_relu_block_mean(float *mean, float sum, int pixels) {
  __shared__ float part[ADD_RELU_BLOCK];
  // >>> exercise add_relu_mean: find the fault: the mean of a plane, from one sum per thread, in a fixed order
  // hint: read the check's report: in which turns do two threads access the same element, one after the other?
  // hint: in each turn a thread reads what another wrote in the turn before; the lanes of a warp do not run in step
  // hint: all threads must have finished a turn before the next one begins: no turn can do without its __syncthreads()
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = ADD_RELU_BLOCK / 2; half > 0; half /= 2) {
    if ((int)threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) mean[blockIdx.x] = part[0] / (float)pixels;
  // <<< exercise
}

static __global__ void add_relu_plane_mean_kernel(float *mean, const float *y, int pixels) {
  const float *plane = y + (size_t)blockIdx.x * pixels;
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < pixels; i += ADD_RELU_BLOCK) sum += plane[i];
  add_relu_block_mean(mean, sum, pixels);
}

static __global__ void add_relu_mean_kernel(float *y, float *mean, const float *a, const float *b, int pixels) {
  const size_t first = (size_t)blockIdx.x * pixels;
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < pixels; i += ADD_RELU_BLOCK) {
    float v = a[first + i] + b[first + i];
    v = v < 0.0f ? 0.0f : v;
    y[first + i] = v;
    sum += v;
  }
  add_relu_block_mean(mean, sum, pixels);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline unsigned add_relu_blocks(size_t threads) {
  return (unsigned)((threads + ADD_RELU_BLOCK - 1) / ADD_RELU_BLOCK);
}

static inline void add_relu_forward_two(float *y, const float *a, const float *b, size_t n) {
  if (n == 0) return;
  add_relu_add_kernel<<<add_relu_blocks(n), ADD_RELU_BLOCK>>>(y, a, b, n);
  CUDA_CHECK_LAUNCH();
  activation_forward_scalar<ACTIVATION_RELU>(y, y, n);
}

static inline void add_relu_backward_two(float *da, float *db, const float *dy, const float *y, size_t n) {
  if (n == 0) return;
  activation_backward_scalar<ACTIVATION_RELU>(da, dy, y, n);
  add_relu_copy_kernel<<<add_relu_blocks(n), ADD_RELU_BLOCK>>>(db, da, n);
  CUDA_CHECK_LAUNCH();
}

static inline void add_relu_forward_one(float *y, const float *a, const float *b, size_t n) {
  if (n == 0) return;
  add_relu_forward_one_kernel<<<add_relu_blocks(n), ADD_RELU_BLOCK>>>(y, a, b, n);
  CUDA_CHECK_LAUNCH();
}

static inline void add_relu_backward_one(float *da, float *db, const float *dy, const float *y, size_t n) {
  if (n == 0) return;
  add_relu_backward_one_kernel<<<add_relu_blocks(n), ADD_RELU_BLOCK>>>(da, db, dy, y, n);
  CUDA_CHECK_LAUNCH();
}

static inline void add_relu_forward_gpu(float *y, const float *a, const float *b, size_t n) {
  if (n == 0) return;
  size_t quads = ((uintptr_t)y | (uintptr_t)a | (uintptr_t)b) % sizeof(float4) == 0 ? n / 4 : 0;
  add_relu_forward_kernel<<<add_relu_blocks(quads > 0 ? quads : n), ADD_RELU_BLOCK>>>(y, a, b, n, quads);
  CUDA_CHECK_LAUNCH();
}

static inline void add_relu_backward_gpu(float *da, float *db, const float *dy, const float *y, size_t n) {
  if (da == NULL || db == NULL || da == db) { /* one array is written: the backward pass of ReLU alone */
    relu_backward_gpu(da != NULL ? da : db, dy, y, n);
    return;
  }
  if (n == 0) return;
  const uintptr_t addresses = (uintptr_t)da | (uintptr_t)db | (uintptr_t)dy | (uintptr_t)y;
  const size_t quads = addresses % sizeof(float4) == 0 ? n / 4 : 0;
  add_relu_backward_kernel<<<add_relu_blocks(quads > 0 ? quads : n), ADD_RELU_BLOCK>>>(da, db, dy, y, n, quads);
  CUDA_CHECK_LAUNCH();
}

/* Two kernels: y is written and read again. */
static inline void add_relu_mean_two(float *y, float *mean, const float *a, const float *b, int planes, int pixels) {
  add_relu_forward_gpu(y, a, b, (size_t)planes * pixels);
  add_relu_plane_mean_kernel<<<planes, ADD_RELU_BLOCK>>>(mean, y, pixels);
  CUDA_CHECK_LAUNCH();
}

static inline void add_relu_mean(float *y, float *mean, const float *a, const float *b, int planes, int pixels) {
  add_relu_mean_kernel<<<planes, ADD_RELU_BLOCK>>>(y, mean, a, b, pixels);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_RESIDUAL_CUH */

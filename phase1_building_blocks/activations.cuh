/* activations.cuh - ReLU, the bend between two linear layers: y = max(x, 0), element by element over n floats.
 *
 * The backward pass asks only where y was above zero, so x need not be kept, and both directions may work in place
 * (y == x, dx == dy). A NaN goes through: a diverged network should be seen, not clamped to zero.
 *
 *   relu_*_cpu       plain loops
 *   relu_*_cpu_fast  vectorised by the compiler, large arrays shared among threads
 *   relu_*_kernel    four floats at a time; a few thousand threads walk over the array together
 */
#ifndef PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH
#define PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH

#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void relu_forward_cpu(T *y, const T *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; /* the comparison is false for NaN, which stays */
}

/* dx = dy where y > 0 (or NaN), else 0: the slope at 0 is taken to be 0. */
template <typename T>
static inline void relu_backward_cpu(T *dx, const T *dy, const T *y, size_t n) {
  for (size_t i = 0; i < n; i++) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

enum { RELU_CPU_SERIAL = 16384 }; /* below this many floats, waking a second thread costs more than it saves */

static inline void relu_forward_cpu_fast(float *y, const float *x, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static inline void relu_backward_cpu_fast(float *dx, const float *dy, const float *y, size_t n) {
#pragma omp parallel for simd schedule(static) if (parallel : n > RELU_CPU_SERIAL)
  for (size_t i = 0; i < n; i++) {
    float d = dy[i]; /* read in any case: a condition on data is a select, on a read it would be a branch */
    dx[i] = y[i] <= 0 ? 0 : d;
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: the first 4 * quads floats as float4, the rest one by one; quads is 0 where the arrays are not aligned. */

static __device__ float relu_forward_one(float x) { return x < 0.0f ? 0.0f : x; }
static __device__ float relu_backward_one(float dy, float y) { return y <= 0.0f ? 0.0f : dy; }

static __global__ void relu_forward_kernel(float *y, const float *x, size_t n, size_t quads) {
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = first; i < quads; i += step) {
    float4 v = ((const float4 *)x)[i];
    ((float4 *)y)[i] =
        make_float4(relu_forward_one(v.x), relu_forward_one(v.y), relu_forward_one(v.z), relu_forward_one(v.w));
  }
  for (size_t i = 4 * quads + first; i < n; i += step) y[i] = relu_forward_one(x[i]);
}

static __global__ void relu_backward_kernel(float *dx, const float *dy, const float *y, size_t n, size_t quads) {
  size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x, step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = first; i < quads; i += step) {
    float4 d = ((const float4 *)dy)[i], v = ((const float4 *)y)[i];
    ((float4 *)dx)[i] = make_float4(relu_backward_one(d.x, v.x), relu_backward_one(d.y, v.y),
                                    relu_backward_one(d.z, v.z), relu_backward_one(d.w, v.w));
  }
  for (size_t i = 4 * quads + first; i < n; i += step) dx[i] = relu_backward_one(dy[i], y[i]);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

enum { RELU_BLOCK = 256, RELU_MAX_GRID = 1024 };

/* Enough blocks for one step of four floats a thread, but no more than a large GPU holds at once. */
static inline int relu_grid(size_t n) {
  size_t grid = (n + 4 * RELU_BLOCK - 1) / (4 * RELU_BLOCK);
  return grid < RELU_MAX_GRID ? (int)grid : RELU_MAX_GRID;
}

static inline void relu_forward_gpu(float *y, const float *x, size_t n) {
  if (n == 0) return;
  bool aligned = ((uintptr_t)y | (uintptr_t)x) % sizeof(float4) == 0;
  relu_forward_kernel<<<relu_grid(n), RELU_BLOCK>>>(y, x, n, aligned ? n / 4 : 0);
  CUDA_CHECK_LAUNCH();
}

static inline void relu_backward_gpu(float *dx, const float *dy, const float *y, size_t n) {
  if (n == 0) return;
  bool aligned = ((uintptr_t)dx | (uintptr_t)dy | (uintptr_t)y) % sizeof(float4) == 0;
  relu_backward_kernel<<<relu_grid(n), RELU_BLOCK>>>(dx, dy, y, n, aligned ? n / 4 : 0);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_ACTIVATIONS_CUH */

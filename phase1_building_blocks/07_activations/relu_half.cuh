/* relu_half.cuh - ReLU of arrays of 16 bits (common/half.h), eight numbers per thread. The float32 versions are in
 * activations.cuh; on a CPU they are the definition of these (common/nn/lower.h). A NaN stays a NaN, and its gradient
 * passes. */
#ifndef PHASE1_BUILDING_BLOCKS_RELU_HALF_CUH
#define PHASE1_BUILDING_BLOCKS_RELU_HALF_CUH

#include "common/half.cuh"

template <typename T>
static __global__ void relu_half_forward_kernel(T *y, const T *x, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float v[HALF_RUN];
  if (i >= runs) return;
  half_load(v, x + i * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) v[e] = v[e] < 0 ? 0 : v[e];
  half_store(y + i * HALF_RUN, v);
}

template <typename T>
static __global__ void relu_half_backward_kernel(T *dx, const T *dy, const T *y, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float g[HALF_RUN], v[HALF_RUN];
  if (i >= runs) return;
  half_load(g, dy + i * HALF_RUN);
  half_load(v, y + i * HALF_RUN);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) g[e] = v[e] <= 0 ? 0 : g[e];
  half_store(dx + i * HALF_RUN, g);
}

/* y may be x. count: a multiple of HALF_RUN. */
template <typename T>
static inline void relu_half_forward(uint16_t *y, const uint16_t *x, size_t count) {
  const size_t runs = count / HALF_RUN;
  relu_half_forward_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)y, (const T *)x, runs);
  CUDA_CHECK_LAUNCH();
}

/* dx may be dy. */
template <typename T>
static inline void relu_half_backward(uint16_t *dx, const uint16_t *dy, const uint16_t *y, size_t count) {
  const size_t runs = count / HALF_RUN;
  relu_half_backward_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)dx, (const T *)dy, (const T *)y, runs);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_RELU_HALF_CUH */

/* add_relu_half.cuh - the end of a residual block on 16 bits in one kernel: y = max(a + b, 0); T is __nv_bfloat16 or
 * __half. The sum is float32 and is rounded once. A NaN stays a NaN.
 *
 *   add_relu_half_two   two kernels, half_add() and relu_half_forward(): the sum is written and read again
 *   add_relu_half       one: three arrays instead of five
 */
#ifndef PHASE5_PRODUCTION_ADD_RELU_HALF_CUH
#define PHASE5_PRODUCTION_ADD_RELU_HALF_CUH

#include "common/half.cuh"
#include "phase1_building_blocks/07_activations/relu_half.cuh"

static inline void add_relu_half_cpu(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t count, DType type) {
  for (size_t i = 0; i < count; i++) {
    const float sum = half_widen(type, a[i]) + half_widen(type, b[i]);
    y[i] = half_narrow(type, sum < 0 ? 0 : sum);
  }
}

/* One thread per run of eight numbers: 16 bytes of each array. */
template <typename T>
static __global__ void add_relu_half_kernel(T *y, const T *a, const T *b, size_t runs) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float left[HALF_RUN], right[HALF_RUN];
  if (i >= runs) return;
  half_load(left, a + i * HALF_RUN);
  half_load(right, b + i * HALF_RUN);
  // >>> exercise add_relu_half: run i of y is the sum of left and right, and 0 where that is below 0
  // hint: left and right hold the eight numbers of run i of a and b; a sum that is not a number stays what it is
  // hint: half_store(y + i * HALF_RUN, left) rounds eight floats and stores them at once
  // hint: for e < HALF_RUN: { float sum = left[e] + right[e]; left[e] = sum < 0 ? 0 : sum; } half_store(...);
#pragma unroll
  for (int e = 0; e < HALF_RUN; e++) {
    const float sum = left[e] + right[e];
    left[e] = sum < 0 ? 0 : sum;
  }
  half_store(y + i * HALF_RUN, left);
  // <<< exercise
}

/* Both: count is a multiple of HALF_RUN; y may be a or b. */
template <typename T>
static inline void add_relu_half_two(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t count) {
  half_add<T>(y, a, b, count);
  relu_half_forward<T>(y, y, count);
}

template <typename T>
static inline void add_relu_half(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t count) {
  const size_t runs = count / HALF_RUN;
  if (runs == 0) return;
  add_relu_half_kernel<T><<<half_blocks(runs), HALF_BLOCK>>>((T *)y, (const T *)a, (const T *)b, runs);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_ADD_RELU_HALF_CUH */

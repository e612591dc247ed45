/* vnni.cuh - what a processor's vpdpbusd computes in one of its lanes, and how signed numbers go through an
 * instruction that wants unsigned ones: the idea of cpu_conv2d_int8.h, in loops to read and to write.
 *
 *   vnni_dot         a sum of 32 bits + four products, of bytes without a sign times bytes with one
 *   vnni_product     the product of two rows of int8 numbers by it
 *   vnni_linear_cpu  y (M,K) = x (M,D) w (K,D)^T, the loops of the formula
 *   vnni_linear      the same by vnni_product, one thread per number
 */
#ifndef PHASE5_PRODUCTION_VNNI_CUH
#define PHASE5_PRODUCTION_VNNI_CUH

#include "common/check.h"

static inline __host__ __device__ int32_t vnni_dot(int32_t sum, uint32_t x, uint32_t w) {
  for (int i = 0; i < 32; i += 8) sum += (int32_t)(uint8_t)(x >> i) * (int8_t)(w >> i);
  return sum;
}

/* Four bytes; d, the length of a row, is a multiple of four. */
static inline __host__ __device__ uint32_t vnni_word(const int8_t *row) {
  return (uint8_t)row[0] | (uint32_t)(uint8_t)row[1] << 8 | (uint32_t)(uint8_t)row[2] << 16 |
         (uint32_t)(uint8_t)row[3] << 24;
}

/* The sum of x[i] w[i]. A kernel of cpu_conv2d_int8.h has the sum of the weights in its bias. */
static inline __host__ __device__ int32_t vnni_product(const int8_t *x, const int8_t *w, int d) {
  int32_t sum = 0, weights = 0;
  for (int i = 0; i < d; i += 4) {
    const uint32_t x_word = vnni_word(x + i), w_word = vnni_word(w + i);
    // >>> exercise vnni_signed: add to `sum` and `weights`, so that sum - 128 weights is the product of signed numbers
    // hint: vnni_dot() takes its second operand for 0 to 255; x is -128 to 127, and x + 128 is in that range
    // hint: adding 128 to a byte is to change its highest bit: x_word ^ 0x80808080 does so with four
    // hint: sum = vnni_dot(sum, x_word ^ 0x80808080u, w_word); and weights: the same with four bytes that are 1
    sum = vnni_dot(sum, x_word ^ 0x80808080u, w_word);
    weights = vnni_dot(weights, 0x01010101u, w_word);
    // <<< exercise
  }
  return sum - 128 * weights;
}

static inline void vnni_linear_cpu(int *y, const int8_t *x, const int8_t *w, int m, int d, int k) {
  for (int row = 0; row < m; row++)
    for (int col = 0; col < k; col++) {
      int32_t sum = 0;
      for (int i = 0; i < d; i++) sum += (int32_t)x[(size_t)row * d + i] * w[(size_t)col * d + i];
      *y++ = sum;
    }
}

static __global__ void vnni_linear_kernel(int *y, const int8_t *x, const int8_t *w, int m, int d, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < m * k) y[i] = vnni_product(x + (size_t)(i / k) * d, w + (size_t)(i % k) * d, d);
}

static inline void vnni_linear(int *y, const int8_t *x, const int8_t *w, int m, int d, int k) {
  vnni_linear_kernel<<<(unsigned)(m * k + 127) / 128, 128>>>(y, x, w, m, d, k);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_VNNI_CUH */

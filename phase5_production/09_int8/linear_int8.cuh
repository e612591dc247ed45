/* linear_int8.cuh - the product of int8 numbers (int8.cuh) of a linear layer: x (M,D), w (K,D) -> y (M,K), int8 or
 * float32.
 *
 * It is a convolution of one image with M pixels in a row, D channels, by 1 x 1 filters, and its kernels compute it.
 */
#ifndef PHASE5_PRODUCTION_LINEAR_INT8_CUH
#define PHASE5_PRODUCTION_LINEAR_INT8_CUH

#include "phase5_production/09_int8/conv2d_int8_wgmma.cuh"

static inline Conv2dShape linear_int8_shape(int m, int d, int k) { return conv2d_shape(1, d, 1, m, k, 1, 1, 1, 0); }

template <typename T>
static inline void linear_int8_cpu(T *y, const int8_t *x, const int8_t *w, int m, int d, int k, Int8End end) {
  conv2d_int8_cpu(y, x, w, linear_int8_shape(m, d, k), end);
}

template <typename T>
static inline void linear_int8_gpu(T *y, const int8_t *x, const int8_t *w, int m, int d, int k, Int8End end) {
  conv2d_int8_best(y, x, w, linear_int8_shape(m, d, k), end);
}

#endif /* PHASE5_PRODUCTION_LINEAR_INT8_CUH */

/* matmul_cublas.cuh - C (M,N) = A (M,K) B (K,N) by NVIDIA's library. On the emulated GPU simt/blas stands in for
 * it, which calls OpenBLAS.
 *
 * cuBLAS stores matrices by columns, as Fortran does. Our row-major C is, to cuBLAS, C transposed, and
 * (A B)^T = B^T A^T: so the operands are exchanged in the call, and nothing is copied. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH

#include "common/check_cublas.h"

static inline void matmul_cublas(float *c, const float *a, const float *b, int m, int n, int k) {
  static cublasHandle_t handle; /* created once: that takes a tenth of a second */
  const float one = 1.0f, zero = 0.0f;
  if (handle == NULL) {
    handle = cublas_handle();
    /* float32 throughout: otherwise tensor cores may round the inputs to 10 bits, for speed */
    CUBLAS_CHECK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
  }
  CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n));
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH */

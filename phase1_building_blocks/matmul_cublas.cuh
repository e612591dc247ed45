/* matmul_cublas.cuh - C (M,N) = A (M,K) B (K,N) by NVIDIA's library: the one to beat. On the emulated GPU it is
 * simt/blas, which asks OpenBLAS.
 *
 * cuBLAS keeps matrices by columns, as Fortran does. In memory our C, by rows, is its C transposed, and
 * (A B)^T = B^T A^T: so it gets the operands exchanged, and nothing is copied. */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH

#include "common/check_cublas.h"

static inline void matmul_cublas(float *c, const float *a, const float *b, int m, int n, int k) {
  static cublasHandle_t handle; /* made once: it takes a tenth of a second */
  const float one = 1.0f, zero = 0.0f;
  if (handle == NULL) {
    CUBLAS_CHECK(cublasCreate(&handle));
    /* float32 throughout: otherwise tensor cores may round the inputs to 10 bits, faster and another product */
    CUBLAS_CHECK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CUBLAS_CHECK(cublasSetStream(handle, cudaStreamPerThread)); /* where <<<...>>> launches then (lesson_time.h) */
#endif
  }
  CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n));
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_CUH */

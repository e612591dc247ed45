/* matmul_cublas_bfloat16.cuh - C (M,N) = A (M,K) B (K,N) by NVIDIA's library: bfloat16 factors, float32 sums and C. On
 * the emulated GPU it is simt/blas. As in matmul_cublas.cuh the operands are exchanged, because cuBLAS stores matrices
 * by columns.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_BFLOAT16_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_BFLOAT16_CUH

#include <cuda_bf16.h>

#include "common/check_cublas.h"

static inline void matmul_cublas_bfloat16(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                          int k) {
  static cublasHandle_t handle; /* created once: that takes a tenth of a second */
  const float one = 1.0f, zero = 0.0f;
  if (handle == NULL) handle = cublas_handle();
  CUBLAS_CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, CUDA_R_16BF, n, a, CUDA_R_16BF, k,
                            &zero, c, CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_CUBLAS_BFLOAT16_CUH */

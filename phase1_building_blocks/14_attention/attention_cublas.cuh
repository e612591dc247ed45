/* attention_cublas.cuh - attention (attention.cuh) in three calls: scores and weighted sum are batched matrix products
 * of cuBLAS, one per head; between them our softmax. Not causal. However fast the products are, S S scores per head are
 * written, read, written and read again.
 *
 * cuBLAS stores matrices by columns: see matmul_cublas.cuh. */
#ifndef PHASE1_BUILDING_BLOCKS_ATTENTION_CUBLAS_CUH
#define PHASE1_BUILDING_BLOCKS_ATTENTION_CUBLAS_CUH

#include "common/check_cublas.h"
#include "phase1_building_blocks/14_attention/attention.cuh"

static inline void attention_cublas(float *o, float *lse, const float *q, const float *k, const float *v, int b, int h,
                                    int s, int d, bool causal) {
  static cublasHandle_t handle;
  const float scale = (float)attention_scale(d), one = 1, zero = 0;
  size_t rows = (size_t)b * h * s;
  long long matrix = (long long)s * d, square = (long long)s * s;
  float *scores = attention_workspace(rows * s);
  if (causal) die("attention_cublas: not causal");
  if (handle == NULL) {
    handle = cublas_handle();
    CUBLAS_CHECK(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH)); /* float32 throughout */
  }
  CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, s, s, d, &scale, k, d, matrix, q, d, matrix,
                                         &zero, scores, s, square, b * h));
  attention_softmax_kernel<<<attention_blocks(rows * 32, 256), 256>>>(scores, lse, (int)rows, s);
  CUDA_CHECK_LAUNCH();
  CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, d, s, s, &one, v, d, matrix, scores, s,
                                         square, &zero, o, d, matrix, b * h));
}

#endif /* PHASE1_BUILDING_BLOCKS_ATTENTION_CUBLAS_CUH */

/* products.c - level 3: matrix products, and triangular systems with many right-hand sides. */
#include "routine.h"

static void work_gemm(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha), *beta = scalar(&c->beta);
  int only_beta = c->k == 0 || is_zero(&c->alpha),
      k = only_beta ? 0 : c->k; /* A and B are not read, whatever they hold */
  for (int i = 0; i < c->batch; i++) {
    void *out = member(c, &c->c, i), *a = only_beta ? out : member(c, &c->a, i),
         *b = only_beta ? out : member(c, &c->b, i);
    if (!a || !b || !out) return;
#define GEMM(f, alpha, beta)                                                                                           \
  f(CblasColMajor, blas_trans(c->trans_a), blas_trans(c->trans_b), c->m, c->n, k, alpha, a, c->a.ld, b, c->b.ld, beta, \
    out, c->c.ld)
    FOR_TYPE(c->a.type, GEMM, gemm, alpha, beta)
#undef GEMM
    written(&c->c, out);
  }
}

/* int8 products, summed modulo 2^32. */
static void gemm_integer(const Call *c, const int8_t *a, const int8_t *b, int32_t *out) {
  uint32_t alpha = *(const uint32_t *)scalar(&c->alpha), beta = *(const uint32_t *)scalar(&c->beta);
  ptrdiff_t a_row = c->trans_a == CUBLAS_OP_N ? 1 : c->a.ld, a_k = c->trans_a == CUBLAS_OP_N ? c->a.ld : 1;
  ptrdiff_t b_k = c->trans_b == CUBLAS_OP_N ? 1 : c->b.ld, b_column = c->trans_b == CUBLAS_OP_N ? c->b.ld : 1;
  for (int j = 0; j < c->n; j++) {
    for (int i = 0; i < c->m; i++) {
      int32_t *element = &out[i + (ptrdiff_t)j * c->c.ld];
      uint32_t sum = 0;
      for (int k = 0; alpha && k < c->k; k++) sum += (uint32_t)(a[i * a_row + k * a_k] * b[k * b_k + j * b_column]);
      *element = (int32_t)(alpha * sum + (beta ? beta * (uint32_t)*element : 0));
    }
  }
}

static void work_gemm_narrow(void *context) {
  Call *c = context;
  int only_beta = c->k == 0 || is_zero(&c->alpha);
  void *sums = product_space(c);
  for (int i = 0; sums && i < c->batch; i++) {
    void *out = member(c, &c->c, i), *a = only_beta ? out : member(c, &c->a, i),
         *b = only_beta ? out : member(c, &c->b, i);
    if (!a || !b || !out) break;
    if (c->c.type == CUDA_R_32I) {
      gemm_integer(c, a, b, out);
    } else {
      product(c, a, b, out, 0, sums);
      sums_to(&c->c, sums, out);
    }
    written(&c->c, out);
  }
  free(sums);
}

/* All forms of gemm. The operands come without their shapes. */
static cublasStatus_t gemm(const char *name, const void *caller, cublasHandle_t handle, cublasOperation_t trans_a,
                           cublasOperation_t trans_b, int m, int n, int k, const void *alpha, Operand a, Operand b,
                           const void *beta, Operand out, int batch, cublasComputeType_t compute) {
  BEGIN(c);
  c.trans_a = trans_a;
  c.trans_b = trans_b;
  c.m = m;
  c.n = n;
  c.k = k;
  c.batch = batch;
  TRY(operation(&c, "transa", trans_a));
  TRY(operation(&c, "transb", trans_b));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(not_negative(&c, "k", k));
  TRY(not_negative(&c, "batchCount", batch));
  a.rows = trans_a == CUBLAS_OP_N ? m : k;
  a.columns = trans_a == CUBLAS_OP_N ? k : m;
  b.rows = trans_b == CUBLAS_OP_N ? k : n;
  b.columns = trans_b == CUBLAS_OP_N ? n : k;
  out.rows = m;
  out.columns = n;
  TRY(leading_dimension(&c, &a));
  TRY(leading_dimension(&c, &b));
  TRY(leading_dimension(&c, &out));
  int scalar_type = gemm_scalar_type(compute, a.type, b.type, out.type);
  if (scalar_type < 0) {
    return not_supported(&c,
                         "compute type %d with matrices of types %d, %d and %d (see "
                         "cudaDataType) is not in cuBLAS's table",
                         (int)compute, (int)a.type, (int)b.type, (int)out.type);
  }
  TRY(set_scalar(&c, &c.alpha, "alpha", (cudaDataType)scalar_type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", (cudaDataType)scalar_type, beta));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  c.a = a;
  c.b = b;
  c.c = out;
  int reads_a = c.alpha.device || !is_zero(&c.alpha);
  if ((reads_a && (!operand_is_good(&c, &a) || !operand_is_good(&c, &b))) || !operand_is_good(&c, &out)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (a.type == CUDA_R_8I && (a.ld % 4 || b.ld % 4 || (uintptr_t)a.data % 4 || (uintptr_t)b.data % 4)) {
    return not_supported(&c,
                         "for int8, A and B must be aligned to 4 bytes, lda and ldb be "
                         "multiples of 4");
  }
  int narrow = a.type != CUDA_R_32F && a.type != CUDA_R_64F && a.type != CUDA_C_32F && a.type != CUDA_C_64F;
  return submit(&c, narrow ? work_gemm_narrow : work_gemm);
}

static void work_symm(void *context) {
  Call *c = context;
#define SYMM(f, alpha, beta)                                                                                    \
  f(CblasColMajor, blas_side(c), blas_uplo(c), c->m, c->n, alpha, c->a.data, c->a.ld, c->b.data, c->b.ld, beta, \
    (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, SYMM, symm, scalar(&c->alpha), scalar(&c->beta))
#undef SYMM
  written(&c->c, c->c.data);
}

static cublasStatus_t symm(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                           cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, const void *alpha, const void *A,
                           int lda, const void *B, int ldb, const void *beta, void *C, int ldc) {
  BEGIN(c);
  int order = side == CUBLAS_SIDE_LEFT ? m : n;
  c.side = side;
  c.uplo = uplo;
  c.m = m;
  c.n = n;
  c.a = matrix("A", type, A, order, order, lda);
  c.b = matrix("B", type, B, m, n, ldb);
  c.c = matrix("C", type, C, m, n, ldc);
  TRY(triangle(&c));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.a));
  TRY(leading_dimension(&c, &c.b));
  TRY(leading_dimension(&c, &c.c));
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", type, beta));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b) || !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_symm);
}

static void work_syrk(void *context) {
  Call *c = context;
#define SYRK(f, alpha, beta)                                                                          \
  f(CblasColMajor, blas_uplo(c), blas_trans(c->trans_a), c->n, c->k, alpha, c->a.data, c->a.ld, beta, \
    (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, SYRK, syrk, scalar(&c->alpha), scalar(&c->beta))
#undef SYRK
}

static void work_syr2k(void *context) {
  Call *c = context;
#define SYR2K(f, alpha, beta)                                                                                       \
  f(CblasColMajor, blas_uplo(c), blas_trans(c->trans_a), c->n, c->k, alpha, c->a.data, c->a.ld, c->b.data, c->b.ld, \
    beta, (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, SYR2K, syr2k, scalar(&c->alpha), scalar(&c->beta))
#undef SYR2K
}

/* syrk and, with a B, syr2k */
static cublasStatus_t rank_k(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, Work *work,
                             cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, const void *alpha,
                             const void *A, int lda, const void *B, int ldb, const void *beta, void *C, int ldc) {
  BEGIN(c);
  int rows = trans == CUBLAS_OP_N ? n : k, columns = trans == CUBLAS_OP_N ? k : n,
      is_complex = type == CUDA_C_32F || type == CUDA_C_64F;
  c.uplo = uplo;
  c.trans_a = trans;
  c.n = n;
  c.k = k;
  c.a = matrix("A", type, A, rows, columns, lda);
  c.b = matrix("B", type, B, work == work_syr2k ? rows : 0, columns, ldb);
  c.c = matrix("C", type, C, n, n, ldc);
  TRY(triangle(&c));
  TRY(operation(&c, "trans", trans));
  if (is_complex && trans == CUBLAS_OP_C) return invalid(&c, "trans is CUBLAS_OP_C: that is herk, not syrk");
  TRY(not_negative(&c, "n", n));
  TRY(not_negative(&c, "k", k));
  TRY(leading_dimension(&c, &c.a));
  if (work == work_syr2k) TRY(leading_dimension(&c, &c.b));
  TRY(leading_dimension(&c, &c.c));
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", type, beta));
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b) || !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work);
}

/* trmm: B is copied to C and multiplied there. */
#define TRIANGULAR(f, alpha, beta)                                                                                  \
  f(CblasColMajor, blas_side(c), blas_uplo(c), blas_trans(c->trans_a), blas_diag(c), c->m, c->n, alpha, a, c->a.ld, \
    out, c->c.ld)

static void work_trmm(void *context) {
  Call *c = context;
  const void *a = c->a.data;
  void *out = (void *)c->c.data;
  for (int j = 0; out != c->b.data && j < c->n; j++) {
    memcpy(line(&c->c, out, j), line(&c->b, c->b.data, j), (size_t)c->m * type_bytes(c->c.type));
  }
  FOR_TYPE(c->a.type, TRIANGULAR, trmm, scalar(&c->alpha), scalar(&c->alpha))
  written(&c->c, out);
}

static void work_trsm(void *context) {
  Call *c = context;
  for (int i = 0; i < c->batch; i++) {
    void *a = member(c, &c->a, i), *out = member(c, &c->c, i);
    if (!a || !out) return;
    FOR_TYPE(c->a.type, TRIANGULAR, trsm, scalar(&c->alpha), scalar(&c->alpha))
    written(&c->c, out);
  }
}
#undef TRIANGULAR

static cublasStatus_t triangular(const char *name, const void *caller, cublasHandle_t handle, Work *work,
                                 cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                                 cublasDiagType_t diag, int m, int n, const void *alpha, Operand a, Operand b,
                                 Operand out, int batch) {
  BEGIN(c);
  int order = side == CUBLAS_SIDE_LEFT ? m : n;
  c.side = side;
  c.uplo = uplo;
  c.trans_a = trans;
  c.diag = diag;
  c.m = m;
  c.n = n;
  c.batch = batch;
  a.rows = a.columns = order;
  b.rows = out.rows = m;
  b.columns = out.columns = n;
  TRY(triangle(&c));
  TRY(operation(&c, "trans", trans));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(not_negative(&c, "batchCount", batch));
  TRY(leading_dimension(&c, &a));
  TRY(leading_dimension(&c, &b));
  TRY(leading_dimension(&c, &out));
  if (b.data == out.data && b.ld != out.ld) return invalid(&c, "C is B, but ldc %d is not ldb %d", out.ld, b.ld);
  TRY(set_scalar(&c, &c.alpha, "alpha", a.type, alpha));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  c.a = a;
  c.b = b;
  c.c = out;
  if (!operand_is_good(&c, &a) || !operand_is_good(&c, &b) || !operand_is_good(&c, &out)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work);
}

/* ---- the names that programs call ---- */

#define NAMES(X, T, TYPE, COMPUTE)                                                                                     \
  cublasStatus_t cublas##X##gemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,  \
                                    int n, int k, const T *alpha, const T *A, int lda, const T *B, int ldb,            \
                                    const T *beta, T *C, int ldc) {                                                    \
    return gemm(CALLER, handle, transa, transb, m, n, k, alpha, one("A", TYPE, A, lda), one("B", TYPE, B, ldb), beta,  \
                one("C", TYPE, C, ldc), 1, COMPUTE);                                                                   \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemmBatched(                                                                               \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const T *alpha,  \
      const T *const A[], int lda, const T *const B[], int ldb, const T *beta, T *const C[], int ldc, int batch) {     \
    return gemm(CALLER, handle, transa, transb, m, n, k, alpha, pointers("A", TYPE, A, lda),                           \
                pointers("B", TYPE, B, ldb), beta, pointers("C", TYPE, C, ldc), batch, COMPUTE);                       \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                                        \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const T *alpha,  \
      const T *A, int lda, long long stride_a, const T *B, int ldb, long long stride_b, const T *beta, T *C, int ldc,  \
      long long stride_c, int batch) {                                                                                 \
    return gemm(CALLER, handle, transa, transb, m, n, k, alpha, strided("A", TYPE, A, lda, stride_a),                  \
                strided("B", TYPE, B, ldb, stride_b), beta, strided("C", TYPE, C, ldc, stride_c), batch, COMPUTE);     \
  }                                                                                                                    \
  cublasStatus_t cublas##X##symm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n, \
                                    const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta, T *C,     \
                                    int ldc) {                                                                         \
    return symm(CALLER, handle, TYPE, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc);                          \
  }                                                                                                                    \
  cublasStatus_t cublas##X##syrk_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,      \
                                    int k, const T *alpha, const T *A, int lda, const T *beta, T *C, int ldc) {        \
    return rank_k(CALLER, handle, TYPE, work_syrk, uplo, trans, n, k, alpha, A, lda, NULL, 1, beta, C, ldc);           \
  }                                                                                                                    \
  cublasStatus_t cublas##X##syr2k_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,     \
                                     int k, const T *alpha, const T *A, int lda, const T *B, int ldb, const T *beta,   \
                                     T *C, int ldc) {                                                                  \
    return rank_k(CALLER, handle, TYPE, work_syr2k, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc);           \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trmm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,               \
                                    cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,      \
                                    const T *A, int lda, const T *B, int ldb, T *C, int ldc) {                         \
    return triangular(CALLER, handle, work_trmm, side, uplo, trans, diag, m, n, alpha, one("A", TYPE, A, lda),         \
                      one("B", TYPE, B, ldb), one("C", TYPE, C, ldc), 1);                                              \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trsm_v2(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,               \
                                    cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,      \
                                    const T *A, int lda, T *B, int ldb) {                                              \
    return triangular(CALLER, handle, work_trsm, side, uplo, trans, diag, m, n, alpha, one("A", TYPE, A, lda),         \
                      one("B", TYPE, B, ldb), one("B", TYPE, B, ldb), 1);                                              \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,           \
                                        cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T *alpha,  \
                                        const T *const A[], int lda, T *const B[], int ldb, int batch) {               \
    return triangular(CALLER, handle, work_trsm, side, uplo, trans, diag, m, n, alpha, pointers("A", TYPE, A, lda),    \
                      pointers("B", TYPE, B, ldb), pointers("B", TYPE, B, ldb), batch);                                \
  }

NAMES(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
NAMES(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
NAMES(C, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
NAMES(Z, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                           int k, const __half *alpha, const __half *A, int lda, const __half *B, int ldb,
                           const __half *beta, __half *C, int ldc) {
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, one("A", CUDA_R_16F, A, lda),
              one("B", CUDA_R_16F, B, ldb), beta, one("C", CUDA_R_16F, C, ldc), 1, CUBLAS_COMPUTE_16F);
}

cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                  int n, int k, const __half *alpha, const __half *const A[], int lda,
                                  const __half *const B[], int ldb, const __half *beta, __half *const C[], int ldc,
                                  int batch) {
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, pointers("A", CUDA_R_16F, A, lda),
              pointers("B", CUDA_R_16F, B, ldb), beta, pointers("C", CUDA_R_16F, C, ldc), batch, CUBLAS_COMPUTE_16F);
}

cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const __half *alpha, const __half *A, int lda,
                                         long long stride_a, const __half *B, int ldb, long long stride_b,
                                         const __half *beta, __half *C, int ldc, long long stride_c, int batch) {
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, strided("A", CUDA_R_16F, A, lda, stride_a),
              strided("B", CUDA_R_16F, B, ldb, stride_b), beta, strided("C", CUDA_R_16F, C, ldc, stride_c), batch,
              CUBLAS_COMPUTE_16F);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                            cudaDataType type_b, int ldb, const void *beta, void *C, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  (void)algorithm;
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, one("A", type_a, A, lda), one("B", type_b, B, ldb), beta,
              one("C", type_c, C, ldc), 1, compute);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const A[], cudaDataType type_a, int lda,
                                   const void *const B[], cudaDataType type_b, int ldb, const void *beta,
                                   void *const C[], cudaDataType type_c, int ldc, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  (void)algorithm;
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, pointers("A", type_a, A, lda),
              pointers("B", type_b, B, ldb), beta, pointers("C", type_c, C, ldc), batch, compute);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, cudaDataType type_a,
                                          int lda, long long stride_a, const void *B, cudaDataType type_b, int ldb,
                                          long long stride_b, const void *beta, void *C, cudaDataType type_c, int ldc,
                                          long long stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  (void)algorithm;
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, strided("A", type_a, A, lda, stride_a),
              strided("B", type_b, B, ldb, stride_b), beta, strided("C", type_c, C, ldc, stride_c), batch, compute);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                             int k, const float *alpha, const void *A, cudaDataType type_a, int lda, const void *B,
                             cudaDataType type_b, int ldb, const float *beta, void *C, cudaDataType type_c, int ldc) {
  return gemm(CALLER, handle, transa, transb, m, n, k, alpha, one("A", type_a, A, lda), one("B", type_b, B, ldb), beta,
              one("C", type_c, C, ldc), 1, CUBLAS_COMPUTE_32F);
}

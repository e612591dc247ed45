/* matrix_vector.c - level 2: a matrix and vectors. */
#include "routine.h"

static void clear_vector(const Operand *o, void *data) {
  size_t bytes = type_bytes(o->type), step = (size_t)abs(o->ld) * bytes;
  for (int i = 0; i < o->columns; i++) memset((char *)data + (size_t)i * step, 0, bytes);
}

static void work_gemv(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha), *beta = scalar(&c->beta);
  int new_y = is_zero(&c->beta), only_beta = is_zero(&c->alpha);
  for (int i = 0; i < c->batch; i++) {
    void *y = member(c, &c->c, i), *a = only_beta ? y : member(c, &c->a, i), *x = only_beta ? y : member(c, &c->b, i);
    if (!a || !x || !y) return;
    if (new_y) clear_vector(&c->c, y); /* not 0 times what lies there, which may be NaN */
    if (only_beta) {
#define SCAL(f, alpha, beta) f(c->c.columns, beta, y, abs(c->c.ld))
      FOR_TYPE(c->a.type, SCAL, scal, alpha, beta)
#undef SCAL
      written(&c->c, y);
      continue;
    }
#define GEMV(f, alpha, beta) \
  f(CblasColMajor, blas_trans(c->trans_a), c->m, c->n, alpha, a, c->a.ld, x, c->b.ld, beta, y, c->c.ld)
    FOR_TYPE(c->a.type, GEMV, gemv, alpha, beta)
#undef GEMV
    written(&c->c, y);
  }
}

static cublasStatus_t gemv(const char *name, const void *caller, cublasHandle_t handle, cublasOperation_t trans, int m,
                           int n, const void *alpha, Operand a, Operand x, const void *beta, Operand y, int batch) {
  BEGIN(c);
  c.trans_a = trans;
  c.m = m;
  c.n = n;
  c.batch = batch;
  TRY(operation(&c, "trans", trans));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(not_negative(&c, "batchCount", batch));
  a.rows = m;
  a.columns = n;
  x.columns = trans == CUBLAS_OP_N ? n : m;
  y.columns = trans == CUBLAS_OP_N ? m : n;
  TRY(leading_dimension(&c, &a));
  TRY(not_zero(&c, &x));
  TRY(not_zero(&c, &y));
  TRY(set_scalar(&c, &c.alpha, "alpha", a.type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", a.type, beta));
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  c.a = a;
  c.b = x;
  c.c = y;
  int reads_a = c.alpha.device || !is_zero(&c.alpha);
  if ((reads_a && (!operand_is_good(&c, &a) || !operand_is_good(&c, &x))) || !operand_is_good(&c, &y)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_gemv);
}

static void work_symv(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha), *beta = scalar(&c->beta), *a = c->a.data, *x = c->b.data;
  void *y = (void *)c->c.data;
  if (is_zero(&c->beta)) clear_vector(&c->c, y);
  if (c->a.type == CUDA_R_32F) {
    cblas_ssymv(CblasColMajor, blas_uplo(c), c->n, *(const float *)alpha, a, c->a.ld, x, c->b.ld, *(const float *)beta,
                y, c->c.ld);
  } else {
    cblas_dsymv(CblasColMajor, blas_uplo(c), c->n, *(const double *)alpha, a, c->a.ld, x, c->b.ld,
                *(const double *)beta, y, c->c.ld);
  }
  written(&c->c, y);
}

static cublasStatus_t symv(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                           cublasFillMode_t uplo, int n, const void *alpha, const void *A, int lda, const void *x,
                           int incx, const void *beta, void *y, int incy) {
  BEGIN(c);
  c.uplo = uplo;
  c.n = n;
  c.a = matrix("A", type, A, n, n, lda);
  c.b = vector("x", type, x, n, incx);
  c.c = vector("y", type, y, n, incy);
  TRY(triangle(&c));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.a));
  TRY(not_zero(&c, &c.b));
  TRY(not_zero(&c, &c.c));
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", type, beta));
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b) || !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_symv);
}

static void work_ger(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha), *x = c->a.data, *y = c->b.data;
  void *a = (void *)c->c.data;
#define GER(f, alpha) f(CblasColMajor, c->m, c->n, alpha, x, c->a.ld, y, c->b.ld, a, c->c.ld)
  switch (c->c.type) {
    case CUDA_R_32F:
      GER(cblas_sger, *(const float *)alpha);
      break;
    case CUDA_R_64F:
      GER(cblas_dger, *(const double *)alpha);
      break;
    case CUDA_C_32F:
      GER((c->conjugate ? cblas_cgerc : cblas_cgeru), alpha);
      break;
    default:
      GER((c->conjugate ? cblas_zgerc : cblas_zgeru), alpha);
      break;
  }
#undef GER
}

static cublasStatus_t ger(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, int conjugate,
                          int m, int n, const void *alpha, const void *x, int incx, const void *y, int incy, void *A,
                          int lda) {
  BEGIN(c);
  c.m = m;
  c.n = n;
  c.conjugate = conjugate;
  c.a = vector("x", type, x, m, incx);
  c.b = vector("y", type, y, n, incy);
  c.c = matrix("A", type, A, m, n, lda);
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.c));
  TRY(not_zero(&c, &c.a));
  TRY(not_zero(&c, &c.b));
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b) || !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_ger);
}

static void work_syr(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha), *x = c->a.data;
  void *a = (void *)c->c.data;
  if (c->c.type == CUDA_R_32F) {
    cblas_ssyr(CblasColMajor, blas_uplo(c), c->n, *(const float *)alpha, x, c->a.ld, a, c->c.ld);
  } else {
    cblas_dsyr(CblasColMajor, blas_uplo(c), c->n, *(const double *)alpha, x, c->a.ld, a, c->c.ld);
  }
}

static cublasStatus_t syr(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                          cublasFillMode_t uplo, int n, const void *alpha, const void *x, int incx, void *A, int lda) {
  BEGIN(c);
  c.uplo = uplo;
  c.n = n;
  c.a = vector("x", type, x, n, incx);
  c.c = matrix("A", type, A, n, n, lda);
  TRY(triangle(&c));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.c));
  TRY(not_zero(&c, &c.a));
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_syr);
}

static void work_trmv(void *context) {
  Call *c = context;
#define TRIANGULAR(f, alpha, beta)                                                                                  \
  f(CblasColMajor, blas_uplo(c), blas_trans(c->trans_a), blas_diag(c), c->n, c->a.data, c->a.ld, (void *)c->c.data, \
    c->c.ld)
  FOR_TYPE(c->a.type, TRIANGULAR, trmv, &c->alpha, &c->alpha)
}

static void work_trsv(void *context) {
  Call *c = context;
  FOR_TYPE(c->a.type, TRIANGULAR, trsv, &c->alpha, &c->alpha)
#undef TRIANGULAR
}

static cublasStatus_t triangular_vector(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                                        Work *work, cublasFillMode_t uplo, cublasOperation_t trans,
                                        cublasDiagType_t diag, int n, const void *A, int lda, void *x, int incx) {
  BEGIN(c);
  c.uplo = uplo;
  c.trans_a = trans;
  c.diag = diag;
  c.n = n;
  c.a = matrix("A", type, A, n, n, lda);
  c.c = vector("x", type, x, n, incx);
  TRY(triangle(&c));
  TRY(operation(&c, "trans", trans));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.a));
  TRY(not_zero(&c, &c.c));
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work);
}

/* ---- the names that programs call ---- */

#define NAMES(X, T, TYPE)                                                                                             \
  cublasStatus_t cublas##X##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha,     \
                                    const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy) {       \
    return gemv(CALLER, handle, trans, m, n, alpha, one("A", TYPE, A, lda), as_vector(one("x", TYPE, x, incx)), beta, \
                as_vector(one("y", TYPE, y, incy)), 1);                                                               \
  }                                                                                                                   \
  cublasStatus_t cublas##X##gemvBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha, \
                                        const T *const A[], int lda, const T *const x[], int incx, const T *beta,     \
                                        T *const y[], int incy, int batch) {                                          \
    return gemv(CALLER, handle, trans, m, n, alpha, pointers("A", TYPE, A, lda),                                      \
                as_vector(pointers("x", TYPE, x, incx)), beta, as_vector(pointers("y", TYPE, y, incy)), batch);       \
  }                                                                                                                   \
  cublasStatus_t cublas##X##gemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,          \
                                               const T *alpha, const T *A, int lda, long long stride_a, const T *x,   \
                                               int incx, long long stride_x, const T *beta, T *y, int incy,           \
                                               long long stride_y, int batch) {                                       \
    return gemv(CALLER, handle, trans, m, n, alpha, strided("A", TYPE, A, lda, stride_a),                             \
                as_vector(strided("x", TYPE, x, incx, stride_x)), beta,                                               \
                as_vector(strided("y", TYPE, y, incy, stride_y)), batch);                                             \
  }                                                                                                                   \
  cublasStatus_t cublas##X##trmv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,            \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx) {              \
    return triangular_vector(CALLER, handle, TYPE, work_trmv, uplo, trans, diag, n, A, lda, x, incx);                 \
  }                                                                                                                   \
  cublasStatus_t cublas##X##trsv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,            \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx) {              \
    return triangular_vector(CALLER, handle, TYPE, work_trsv, uplo, trans, diag, n, A, lda, x, incx);                 \
  }

NAMES(S, float, CUDA_R_32F)
NAMES(D, double, CUDA_R_64F)
NAMES(C, cuComplex, CUDA_C_32F)
NAMES(Z, cuDoubleComplex, CUDA_C_64F)

#define NAMES_REAL(X, T, TYPE)                                                                                       \
  cublasStatus_t cublas##X##ger_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx,        \
                                   const T *y, int incy, T *A, int lda) {                                            \
    return ger(CALLER, handle, TYPE, 0, m, n, alpha, x, incx, y, incy, A, lda);                                      \
  }                                                                                                                  \
  cublasStatus_t cublas##X##syr_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *x,  \
                                   int incx, T *A, int lda) {                                                        \
    return syr(CALLER, handle, TYPE, uplo, n, alpha, x, incx, A, lda);                                               \
  }                                                                                                                  \
  cublasStatus_t cublas##X##symv_v2(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *alpha, const T *A, \
                                    int lda, const T *x, int incx, const T *beta, T *y, int incy) {                  \
    return symv(CALLER, handle, TYPE, uplo, n, alpha, A, lda, x, incx, beta, y, incy);                               \
  }

NAMES_REAL(S, float, CUDA_R_32F)
NAMES_REAL(D, double, CUDA_R_64F)

#define NAMES_COMPLEX(X, T, TYPE)                                                                              \
  cublasStatus_t cublas##X##geru_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx, \
                                    const T *y, int incy, T *A, int lda) {                                     \
    return ger(CALLER, handle, TYPE, 0, m, n, alpha, x, incx, y, incy, A, lda);                                \
  }                                                                                                            \
  cublasStatus_t cublas##X##gerc_v2(cublasHandle_t handle, int m, int n, const T *alpha, const T *x, int incx, \
                                    const T *y, int incy, T *A, int lda) {                                     \
    return ger(CALLER, handle, TYPE, 1, m, n, alpha, x, incx, y, incy, A, lda);                                \
  }

NAMES_COMPLEX(C, cuComplex, CUDA_C_32F)
NAMES_COMPLEX(Z, cuDoubleComplex, CUDA_C_64F)

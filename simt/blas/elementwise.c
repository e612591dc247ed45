/* elementwise.c - geam and dgmm: matrices element by element. */
#include "routine.h"

/* One element of op(A). */
#define ELEMENT(T, o, trans, conjugate, i, j)                                      \
  ((trans) == CUBLAS_OP_N   ? ((const T *)(o).data)[(i) + (ptrdiff_t)(j) * (o).ld] \
   : (trans) == CUBLAS_OP_T ? ((const T *)(o).data)[(j) + (ptrdiff_t)(i) * (o).ld] \
                            : conjugate(((const T *)(o).data)[(j) + (ptrdiff_t)(i) * (o).ld]))

#define ELEMENTWISE(letter, T, conjugate)                                                                \
  static void geam_##letter(const Call *c) {                                                             \
    T alpha = *(const T *)scalar(&c->alpha), beta = *(const T *)scalar(&c->beta), *out = (T *)c->c.data; \
    for (int j = 0; j < c->n; j++) {                                                                     \
      for (int i = 0; i < c->m; i++) {                                                                   \
        T a = alpha == 0 ? 0 : alpha * ELEMENT(T, c->a, c->trans_a, conjugate, i, j);                    \
        T b = beta == 0 ? 0 : beta * ELEMENT(T, c->b, c->trans_b, conjugate, i, j);                      \
        out[i + (ptrdiff_t)j * c->c.ld] = a + b;                                                         \
      }                                                                                                  \
    }                                                                                                    \
  }                                                                                                      \
  static void dgmm_##letter(const Call *c) {                                                             \
    const T *a = c->a.data, *x = (const T *)c->b.data + first_index(c->b.columns, c->b.ld);              \
    T *out = (T *)c->c.data;                                                                             \
    for (int j = 0; j < c->n; j++) {                                                                     \
      for (int i = 0; i < c->m; i++) {                                                                   \
        T factor = x[(ptrdiff_t)(c->side == CUBLAS_SIDE_LEFT ? i : j) * c->b.ld];                        \
        out[i + (ptrdiff_t)j * c->c.ld] = factor * a[i + (ptrdiff_t)j * c->a.ld];                        \
      }                                                                                                  \
    }                                                                                                    \
  }

ELEMENTWISE(s, float, )
ELEMENTWISE(d, double, )
ELEMENTWISE(c, float complex, conjf)
ELEMENTWISE(z, double complex, conj)
#undef ELEMENTWISE
#undef ELEMENT

static void work_geam(void *context) {
  Call *c = context;
  (c->c.type == CUDA_R_32F ? geam_s : c->c.type == CUDA_R_64F ? geam_d : c->c.type == CUDA_C_32F ? geam_c : geam_z)(c);
  written(&c->c, c->c.data);
}

static void work_dgmm(void *context) {
  Call *c = context;
  (c->c.type == CUDA_R_32F ? dgmm_s : c->c.type == CUDA_R_64F ? dgmm_d : c->c.type == CUDA_C_32F ? dgmm_c : dgmm_z)(c);
  written(&c->c, c->c.data);
}

static cublasStatus_t geam(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                           cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n, const void *alpha,
                           const void *A, int lda, const void *beta, const void *B, int ldb, void *C, int ldc) {
  BEGIN(c);
  c.trans_a = trans_a;
  c.trans_b = trans_b;
  c.m = m;
  c.n = n;
  c.a = matrix("A", type, A, trans_a == CUBLAS_OP_N ? m : n, trans_a == CUBLAS_OP_N ? n : m, lda);
  c.b = matrix("B", type, B, trans_b == CUBLAS_OP_N ? m : n, trans_b == CUBLAS_OP_N ? n : m, ldb);
  c.c = matrix("C", type, C, m, n, ldc);
  TRY(operation(&c, "transa", trans_a));
  TRY(operation(&c, "transb", trans_b));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.a));
  TRY(leading_dimension(&c, &c.b));
  TRY(leading_dimension(&c, &c.c));
  if (C && C == A && (trans_a != CUBLAS_OP_N || lda != ldc)) {
    return invalid(&c, "C is A: then transa must be CUBLAS_OP_N and ldc equal lda");
  }
  if (C && C == B && (trans_b != CUBLAS_OP_N || ldb != ldc)) {
    return invalid(&c, "C is B: then transb must be CUBLAS_OP_N and ldc equal ldb");
  }
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  TRY(set_scalar(&c, &c.beta, "beta", type, beta));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  int reads_a = c.alpha.device || !is_zero(&c.alpha), reads_b = c.beta.device || !is_zero(&c.beta);
  if ((reads_a && !operand_is_good(&c, &c.a)) || (reads_b && !operand_is_good(&c, &c.b)) ||
      !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_geam);
}

static cublasStatus_t dgmm(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                           cublasSideMode_t side, int m, int n, const void *A, int lda, const void *x, int incx,
                           void *C, int ldc) {
  BEGIN(c);
  c.side = side;
  c.m = m;
  c.n = n;
  c.a = matrix("A", type, A, m, n, lda);
  c.b = vector("x", type, x, side == CUBLAS_SIDE_LEFT ? m : n, incx);
  c.c = matrix("C", type, C, m, n, ldc);
  TRY(triangle(&c));
  TRY(not_negative(&c, "m", m));
  TRY(not_negative(&c, "n", n));
  TRY(leading_dimension(&c, &c.a));
  TRY(leading_dimension(&c, &c.c));
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b) || !operand_is_good(&c, &c.c)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return submit(&c, work_dgmm);
}

/* ---- the names that programs call ---- */

#define NAMES(X, T, TYPE)                                                                                              \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                                 int n, const T *alpha, const T *A, int lda, const T *beta, const T *B, int ldb, T *C, \
                                 int ldc) {                                                                            \
    return geam(CALLER, handle, TYPE, transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc);                      \
  }                                                                                                                    \
  cublasStatus_t cublas##X##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T *A, int lda,      \
                                 const T *x, int incx, T *C, int ldc) {                                                \
    return dgmm(CALLER, handle, TYPE, side, m, n, A, lda, x, incx, C, ldc);                                            \
  }

NAMES(S, float, CUDA_R_32F)
NAMES(D, double, CUDA_R_64F)
NAMES(C, cuComplex, CUDA_C_32F)
NAMES(Z, cuDoubleComplex, CUDA_C_64F)

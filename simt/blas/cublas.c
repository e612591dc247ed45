/* cublas.c - cuBLAS on OpenBLAS: arguments checked, then queued in the handle's stream.
 *
 * Each routine is one function for all types, which looks at its operand's cudaDataType; the typed names that programs
 * call are made by macros at the end. A call is described by a Call, copied into the stream's queue, and done by a
 * function of type Work: at once, or when the stream is waited for.
 */
#include "blas.h"

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
  cublasAtomicsMode_t atomics_mode;
  int sm_count_target;
};

/* What every routine begins with: `call`, for one that returns cublasStatus_t. */
#define BEGIN(call)                                  \
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED; \
  Call call = new_call(handle->stream, handle->pointer_mode, name, caller)

static void set_result(Call *call, void *result, size_t bytes) {
  call->result = result;
  call->result_bytes = call->pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? bytes : 0;
}

static cublasStatus_t not_negative(const Call *call, const char *name, int number) {
  return number < 0 ? invalid(call, "%s is %d: it must not be negative", name, number) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t not_zero(const Call *call, const Operand *o) {
  return o->ld == 0 ? invalid(call, "the increment of %s is 0", o->name) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t triangle(const Call *call) {
  if ((unsigned)call->uplo <= CUBLAS_FILL_MODE_UPPER && (unsigned)call->side <= CUBLAS_SIDE_RIGHT &&
      (unsigned)call->diag <= CUBLAS_DIAG_UNIT) {
    return CUBLAS_STATUS_SUCCESS;
  }
  return invalid(call, "uplo, side or diag (%d, %d, %d) is none of their values", (int)call->uplo, (int)call->side,
                 (int)call->diag);
}

static enum CBLAS_TRANSPOSE blas_trans(cublasOperation_t trans) {
  return trans == CUBLAS_OP_N ? CblasNoTrans : trans == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
static enum CBLAS_UPLO blas_uplo(const Call *c) { return c->uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper; }
static enum CBLAS_SIDE blas_side(const Call *c) { return c->side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight; }
static enum CBLAS_DIAG blas_diag(const Call *c) { return c->diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit; }

/* One case for each type: CALL(CBLAS function, alpha, beta); real scalars go by value, complex ones by pointer. */
#define FOR_TYPE(type, CALL, routine, alpha, beta)                               \
  switch (type) {                                                                \
    case CUDA_R_32F:                                                             \
      CALL(cblas_s##routine, *(const float *)(alpha), *(const float *)(beta));   \
      break;                                                                     \
    case CUDA_R_64F:                                                             \
      CALL(cblas_d##routine, *(const double *)(alpha), *(const double *)(beta)); \
      break;                                                                     \
    case CUDA_C_32F:                                                             \
      CALL(cblas_c##routine, alpha, beta);                                       \
      break;                                                                     \
    default:                                                                     \
      CALL(cblas_z##routine, alpha, beta);                                       \
      break;                                                                     \
  }

/* ---- vectors ---- */

/* The first element of a vector in memory: with a negative increment it is walked from its end. */
static ptrdiff_t first_index(int n, int increment) { return increment < 0 ? (ptrdiff_t)(1 - n) * increment : 0; }

static void work_axpy(void *context) {
  Call *c = context;
#define AXPY(f, alpha, beta) f(c->n, alpha, c->a.data, c->a.ld, (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, AXPY, axpy, scalar(&c->alpha), scalar(&c->alpha))
#undef AXPY
  written(&c->c, c->c.data);
}

static cublasStatus_t axpy(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, int n,
                           const void *alpha, const void *x, int incx, void *y, int incy) {
  BEGIN(c);
  TRY(set_scalar(&c, &c.alpha, "alpha", type, alpha));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.a = vector("x", type, x, n, incx);
  c.c = vector("y", type, y, n, incy);
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_axpy);
}

static void work_copy(void *context) {
  Call *c = context;
#define COPY(f, alpha, beta) f(c->n, c->a.data, c->a.ld, (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, COPY, copy, &c->alpha, &c->alpha)
#undef COPY
  written(&c->c, c->c.data);
}

static void work_swap(void *context) {
  Call *c = context;
#define SWAP(f, alpha, beta) f(c->n, (void *)c->a.data, c->a.ld, (void *)c->c.data, c->c.ld)
  FOR_TYPE(c->a.type, SWAP, swap, &c->alpha, &c->alpha)
#undef SWAP
  written(&c->a, c->a.data);
  written(&c->c, c->c.data);
}

static cublasStatus_t copy_or_swap(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type,
                                   Work *work, int n, const void *x, int incx, void *y, int incy) {
  BEGIN(c);
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.a = vector("x", type, x, n, incx);
  c.c = vector("y", type, y, n, incy);
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work);
}

/* Not CBLAS's: there 0 times NaN is 0 in some versions, and NaN in others. */
static void work_scal(void *context) {
  Call *c = context;
  const void *alpha = scalar(&c->alpha);
  void *x = (void *)c->c.data;
  for (ptrdiff_t i = 0, at = 0; i < c->n; i++, at += c->c.ld) {
    switch (c->c.type) {
      case CUDA_R_32F:
        ((float *)x)[at] *= *(const float *)alpha;
        break;
      case CUDA_R_64F:
        ((double *)x)[at] *= *(const double *)alpha;
        break;
      case CUDA_C_32F:
        ((float complex *)x)[at] *= c->alpha.type == CUDA_R_32F ? *(const float *)alpha : *(const float complex *)alpha;
        break;
      default:
        ((double complex *)x)[at] *=
            c->alpha.type == CUDA_R_64F ? *(const double *)alpha : *(const double complex *)alpha;
        break;
    }
  }
  written(&c->c, x);
}

static cublasStatus_t scal(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type_alpha,
                           cudaDataType type, int n, const void *alpha, void *x, int incx) {
  BEGIN(c);
  TRY(set_scalar(&c, &c.alpha, "alpha", type_alpha, alpha));
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.c = vector("x", type, x, n, incx);
  if (!operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_scal);
}

/* dot, nrm2, asum: a number for one or two vectors. */
static void work_dot(void *context) {
  Call *c = context;
  const void *x = c->a.data, *y = c->b.data;
  if (c->n <= 0) {
    memset(c->result, 0, type_bytes(c->a.type));
  } else if (c->a.type == CUDA_R_32F) {
    *(float *)c->result = cblas_sdot(c->n, x, c->a.ld, y, c->b.ld);
  } else if (c->a.type == CUDA_R_64F) {
    *(double *)c->result = cblas_ddot(c->n, x, c->a.ld, y, c->b.ld);
  } else if (c->a.type == CUDA_C_32F) {
    (c->conjugate ? cblas_cdotc_sub : cblas_cdotu_sub)(c->n, x, c->a.ld, y, c->b.ld, c->result);
  } else {
    (c->conjugate ? cblas_zdotc_sub : cblas_zdotu_sub)(c->n, x, c->a.ld, y, c->b.ld, c->result);
  }
}

static void work_nrm2(void *context) {
  Call *c = context;
  const void *x = c->a.data;
  int n = c->a.ld > 0 ? c->n : 0; /* cuBLAS's result for an increment that is not positive is 0 */
  switch (c->a.type) {
    case CUDA_R_32F:
      *(float *)c->result = n <= 0 ? 0 : cblas_snrm2(n, x, c->a.ld);
      break;
    case CUDA_R_64F:
      *(double *)c->result = n <= 0 ? 0 : cblas_dnrm2(n, x, c->a.ld);
      break;
    case CUDA_C_32F:
      *(float *)c->result = n <= 0 ? 0 : cblas_scnrm2(n, x, c->a.ld);
      break;
    default:
      *(double *)c->result = n <= 0 ? 0 : cblas_dznrm2(n, x, c->a.ld);
      break;
  }
}

static void work_asum(void *context) {
  Call *c = context;
  const void *x = c->a.data;
  int n = c->a.ld > 0 ? c->n : 0;
  switch (c->a.type) {
    case CUDA_R_32F:
      *(float *)c->result = n <= 0 ? 0 : cblas_sasum(n, x, c->a.ld);
      break;
    case CUDA_R_64F:
      *(double *)c->result = n <= 0 ? 0 : cblas_dasum(n, x, c->a.ld);
      break;
    case CUDA_C_32F:
      *(float *)c->result = n <= 0 ? 0 : cblas_scasum(n, x, c->a.ld);
      break;
    default:
      *(double *)c->result = n <= 0 ? 0 : cblas_dzasum(n, x, c->a.ld);
      break;
  }
}

/* The first element whose |re| + |im| is the largest (or the smallest), counted from 1. A NaN is never chosen, unless
 * it comes first. */
static void find_extreme(Call *c, int smallest) {
  double best = 0;
  int found = 0;
  for (int i = 0; i < c->n && c->a.ld > 0; i++) {
    ptrdiff_t at = (ptrdiff_t)i * c->a.ld;
    double size;
    if (c->a.type == CUDA_C_32F) {
      const float *z = (const float *)c->a.data + 2 * at;
      size = fabsf(z[0]) + fabsf(z[1]);
    } else if (c->a.type == CUDA_C_64F) {
      const double *z = (const double *)c->a.data + 2 * at;
      size = fabs(z[0]) + fabs(z[1]);
    } else {
      size = fabs(load(c->a.type, c->a.data, at));
    }
    if (!found || (smallest ? size < best : size > best)) {
      best = size;
      found = i + 1;
    }
  }
  *(int *)c->result = found;
}

static void work_amax(void *context) { find_extreme(context, 0); }
static void work_amin(void *context) { find_extreme(context, 1); }

static cublasStatus_t reduce(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, Work *work,
                             int conjugate, int n, const void *x, int incx, const void *y, int incy, void *result) {
  BEGIN(c);
  if (!result) return invalid(&c, "result is NULL");
  if (!scalar_is_good(&c, "result", result)) return CUBLAS_STATUS_EXECUTION_FAILED;
  c.n = n;
  set_result(&c, result,
             work == work_dot                           ? type_bytes(type)
             : work == work_amax || work == work_amin   ? sizeof(int)
             : type == CUDA_R_32F || type == CUDA_C_32F ? sizeof(float)
                                                        : sizeof(double));
  c.conjugate = conjugate;
  c.a = vector("x", type, x, n > 0 ? n : 0, incx);
  c.b = vector("y", type, y, n > 0 && work == work_dot ? n : 0, incy);
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.b)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work);
}

static void work_rot(void *context) {
  Call *c = context;
  void *x = (void *)c->a.data, *y = (void *)c->c.data;
  const void *cosine = scalar(&c->alpha), *sine = scalar(&c->beta);
  if (c->a.type == CUDA_R_32F) {
    cblas_srot(c->n, x, c->a.ld, y, c->c.ld, *(const float *)cosine, *(const float *)sine);
  } else {
    cblas_drot(c->n, x, c->a.ld, y, c->c.ld, *(const double *)cosine, *(const double *)sine);
  }
}

static cublasStatus_t rot(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, int n,
                          void *x, int incx, void *y, int incy, const void *cosine, const void *sine) {
  BEGIN(c);
  TRY(set_scalar(&c, &c.alpha, "c", type, cosine));
  TRY(set_scalar(&c, &c.beta, "s", type, sine));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.a = vector("x", type, x, n, incx);
  c.c = vector("y", type, y, n, incy);
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_rot);
}

static void work_rotg(void *context) {
  Call *c = context;
  if (c->a.type == CUDA_R_32F) {
    cblas_srotg((float *)c->a.data, (float *)c->b.data, (float *)c->c.data, c->result);
  } else {
    cblas_drotg((double *)c->a.data, (double *)c->b.data, (double *)c->c.data, c->result);
  }
}

static cublasStatus_t rotg(const char *name, const void *caller, cublasHandle_t handle, cudaDataType type, void *a,
                           void *b, void *cosine, void *sine) {
  BEGIN(c);
  if (!a || !b || !cosine || !sine) return invalid(&c, "a, b, c or s is NULL");
  if (!scalar_is_good(&c, "a", a) || !scalar_is_good(&c, "b", b) || !scalar_is_good(&c, "c", cosine) ||
      !scalar_is_good(&c, "s", sine)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  c.a = vector("a", type, a, 1, 1);
  c.b = vector("b", type, b, 1, 1);
  c.c = vector("c", type, cosine, 1, 1);
  set_result(&c, sine, type_bytes(type));
  return submit(&c, work_rotg);
}

/* ---- a matrix and vectors ---- */

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

/* ---- matrix products ---- */

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

/* ---- geam, dgmm: element by element ---- */

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

/* ---- vectors of any real type: computed in double, rounded once ---- */

static int is_real(cudaDataType type) {
  return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F || type == CUDA_R_64F;
}

static cublasStatus_t types_are_real(const Call *call, cudaDataType x, cudaDataType y, cudaDataType scalar_type) {
  if (is_real(x) && x == y && is_real(scalar_type)) return CUBLAS_STATUS_SUCCESS;
  return not_supported(call,
                       "vectors of types %d and %d with a scalar of type %d (see "
                       "cudaDataType); offered are 16F, 16BF, 32F and 64F, both vectors alike",
                       (int)x, (int)y, (int)scalar_type);
}

static void work_axpy_any(void *context) {
  Call *c = context;
  double alpha = load(c->alpha.type, scalar(&c->alpha), 0);
  ptrdiff_t x = first_index(c->n, c->a.ld), y = first_index(c->n, c->c.ld);
  for (int i = 0; i < c->n; i++, x += c->a.ld, y += c->c.ld) {
    double sum = alpha * load(c->a.type, c->a.data, x) + load(c->c.type, c->c.data, y);
    store(c->c.type, (void *)c->c.data, y, sum);
  }
}

static void work_scal_any(void *context) {
  Call *c = context;
  double alpha = load(c->alpha.type, scalar(&c->alpha), 0);
  for (ptrdiff_t i = 0, at = 0; i < c->n; i++, at += c->c.ld) {
    store(c->c.type, (void *)c->c.data, at, alpha * load(c->c.type, c->c.data, at));
  }
}

static void work_dot_any(void *context) {
  Call *c = context;
  double sum = 0;
  ptrdiff_t x = first_index(c->n, c->a.ld), y = first_index(c->n, c->b.ld);
  for (int i = 0; i < c->n; i++, x += c->a.ld, y += c->b.ld) {
    sum += load(c->a.type, c->a.data, x) * load(c->b.type, c->b.data, y);
  }
  store(c->alpha.type, c->result, 0, sum);
}

static void work_nrm2_any(void *context) {
  Call *c = context;
  if (c->a.type == CUDA_R_64F || c->a.type == CUDA_R_32F) { /* these scale against overflow */
    double norm = 0;
    if (c->n > 0 && c->a.ld > 0) {
      norm = c->a.type == CUDA_R_64F ? cblas_dnrm2(c->n, c->a.data, c->a.ld) : cblas_snrm2(c->n, c->a.data, c->a.ld);
    }
    store(c->alpha.type, c->result, 0, norm);
    return;
  }
  double sum = 0;
  for (int i = 0; i < c->n && c->a.ld > 0; i++) {
    double x = load(c->a.type, c->a.data, (ptrdiff_t)i * c->a.ld);
    sum += x * x;
  }
  store(c->alpha.type, c->result, 0, sqrt(sum));
}

#define CALLER __func__, __builtin_return_address(0)

cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType type_alpha, const void *x,
                            cudaDataType type_x, int incx, void *y, cudaDataType type_y, int incy,
                            cudaDataType execution) {
  const char *name = __func__;
  const void *caller = __builtin_return_address(0);
  (void)execution;
  BEGIN(c);
  TRY(types_are_real(&c, type_x, type_y, type_alpha));
  TRY(set_scalar(&c, &c.alpha, "alpha", type_alpha, alpha));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.a = vector("x", type_x, x, n, incx);
  c.c = vector("y", type_y, y, n, incy);
  if (!operand_is_good(&c, &c.a) || !operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_axpy_any);
}

cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void *alpha, cudaDataType type_alpha, void *x,
                            cudaDataType type_x, int incx, cudaDataType execution) {
  const char *name = __func__;
  const void *caller = __builtin_return_address(0);
  (void)execution;
  BEGIN(c);
  TRY(types_are_real(&c, type_x, type_x, type_alpha));
  TRY(set_scalar(&c, &c.alpha, "alpha", type_alpha, alpha));
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  c.n = n;
  c.c = vector("x", type_x, x, n, incx);
  if (!operand_is_good(&c, &c.c)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work_scal_any);
}

static cublasStatus_t reduce_any(const char *name, const void *caller, cublasHandle_t handle, Work *work, int n,
                                 Operand x, Operand y, void *result, cudaDataType type_result) {
  BEGIN(c);
  TRY(types_are_real(&c, x.type, y.type, type_result));
  if (!result) return invalid(&c, "result is NULL");
  if (!scalar_is_good(&c, "result", result)) return CUBLAS_STATUS_EXECUTION_FAILED;
  c.n = n;
  set_result(&c, result, type_bytes(type_result));
  c.alpha.type = type_result;
  c.a = x;
  c.b = y;
  if (!operand_is_good(&c, &x) || !operand_is_good(&c, &y)) return CUBLAS_STATUS_EXECUTION_FAILED;
  return submit(&c, work);
}

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType type_x, int incx, const void *y,
                           cudaDataType type_y, int incy, void *result, cudaDataType type_result,
                           cudaDataType execution) {
  int length = n > 0 ? n : 0;
  (void)execution;
  return reduce_any(CALLER, handle, work_dot_any, n, vector("x", type_x, x, length, incx),
                    vector("y", type_y, y, length, incy), result, type_result);
}

cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void *x, cudaDataType type_x, int incx, void *result,
                            cudaDataType type_result, cudaDataType execution) {
  (void)execution;
  return reduce_any(CALLER, handle, work_nrm2_any, n, vector("x", type_x, x, n > 0 ? n : 0, incx),
                    vector("x", type_x, x, 0, 1), result, type_result);
}

/* ---- the names that programs call ---- */

/* Operands whose shape the routine fills in: one, the members of a batch by distance, by pointers. */
static Operand one(const char *name, cudaDataType type, const void *data, int ld) {
  return matrix(name, type, data, 0, 0, ld);
}
static Operand strided(const char *name, cudaDataType type, const void *data, int ld, long long stride) {
  Operand o = matrix(name, type, data, 0, 0, ld);
  o.stride = stride;
  return o;
}
static Operand pointers(const char *name, cudaDataType type, const void *data, int ld) {
  Operand o = matrix(name, type, data, 0, 0, ld);
  o.is_array_of_pointers = 1;
  return o;
}
static Operand as_vector(Operand o) {
  o.is_vector = 1;
  o.rows = 1;
  return o;
}

#define NAMES_ALL(X, x, T, TYPE, COMPUTE)                                                                              \
  cublasStatus_t cublas##X##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y,          \
                                    int incy) {                                                                        \
    return axpy(CALLER, handle, TYPE, n, alpha, x, incx, y, incy);                                                     \
  }                                                                                                                    \
  cublasStatus_t cublas##X##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy) {              \
    return copy_or_swap(CALLER, handle, TYPE, work_copy, n, x, incx, y, incy);                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##X##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy) {                    \
    return copy_or_swap(CALLER, handle, TYPE, work_swap, n, x, incx, y, incy);                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##X##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx) {                    \
    return scal(CALLER, handle, TYPE, TYPE, n, alpha, x, incx);                                                        \
  }                                                                                                                    \
  cublasStatus_t cublasI##x##amax_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result) {                \
    return reduce(CALLER, handle, TYPE, work_amax, 0, n, x, incx, NULL, 1, result);                                    \
  }                                                                                                                    \
  cublasStatus_t cublasI##x##amin_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result) {                \
    return reduce(CALLER, handle, TYPE, work_amin, 0, n, x, incx, NULL, 1, result);                                    \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha,      \
                                    const T *A, int lda, const T *x, int incx, const T *beta, T *y, int incy) {        \
    return gemv(CALLER, handle, trans, m, n, alpha, one("A", TYPE, A, lda), as_vector(one("x", TYPE, x, incx)), beta,  \
                as_vector(one("y", TYPE, y, incy)), 1);                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemvBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T *alpha,  \
                                        const T *const A[], int lda, const T *const x[], int incx, const T *beta,      \
                                        T *const y[], int incy, int batch) {                                           \
    return gemv(CALLER, handle, trans, m, n, alpha, pointers("A", TYPE, A, lda),                                       \
                as_vector(pointers("x", TYPE, x, incx)), beta, as_vector(pointers("y", TYPE, y, incy)), batch);        \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemvStridedBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,           \
                                               const T *alpha, const T *A, int lda, long long stride_a, const T *x,    \
                                               int incx, long long stride_x, const T *beta, T *y, int incy,            \
                                               long long stride_y, int batch) {                                        \
    return gemv(CALLER, handle, trans, m, n, alpha, strided("A", TYPE, A, lda, stride_a),                              \
                as_vector(strided("x", TYPE, x, incx, stride_x)), beta,                                                \
                as_vector(strided("y", TYPE, y, incy, stride_y)), batch);                                              \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trmv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,             \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx) {               \
    return triangular_vector(CALLER, handle, TYPE, work_trmv, uplo, trans, diag, n, A, lda, x, incx);                  \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trsv_v2(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,             \
                                    cublasDiagType_t diag, int n, const T *A, int lda, T *x, int incx) {               \
    return triangular_vector(CALLER, handle, TYPE, work_trsv, uplo, trans, diag, n, A, lda, x, incx);                  \
  }                                                                                                                    \
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
  }                                                                                                                    \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                                 int n, const T *alpha, const T *A, int lda, const T *beta, const T *B, int ldb, T *C, \
                                 int ldc) {                                                                            \
    return geam(CALLER, handle, TYPE, transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc);                      \
  }                                                                                                                    \
  cublasStatus_t cublas##X##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T *A, int lda,      \
                                 const T *x, int incx, T *C, int ldc) {                                                \
    return dgmm(CALLER, handle, TYPE, side, m, n, A, lda, x, incx, C, ldc);                                            \
  }

NAMES_ALL(S, s, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
NAMES_ALL(D, d, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
NAMES_ALL(C, c, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
NAMES_ALL(Z, z, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)

#define NAMES_REAL(X, T, TYPE)                                                                                       \
  cublasStatus_t cublas##X##dot_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,         \
                                   T *result) {                                                                      \
    return reduce(CALLER, handle, TYPE, work_dot, 0, n, x, incx, y, incy, result);                                   \
  }                                                                                                                  \
  cublasStatus_t cublas##X##rot_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy, const T *c,         \
                                   const T *s) {                                                                     \
    return rot(CALLER, handle, TYPE, n, x, incx, y, incy, c, s);                                                     \
  }                                                                                                                  \
  cublasStatus_t cublas##X##rotg_v2(cublasHandle_t handle, T *a, T *b, T *c, T *s) {                                 \
    return rotg(CALLER, handle, TYPE, a, b, c, s);                                                                   \
  }                                                                                                                  \
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
  cublasStatus_t cublas##X##dotu_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,  \
                                    T *result) {                                                               \
    return reduce(CALLER, handle, TYPE, work_dot, 0, n, x, incx, y, incy, result);                             \
  }                                                                                                            \
  cublasStatus_t cublas##X##dotc_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy,  \
                                    T *result) {                                                               \
    return reduce(CALLER, handle, TYPE, work_dot, 1, n, x, incx, y, incy, result);                             \
  }                                                                                                            \
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

#define NAMES_NORM(prefix, T, R, TYPE)                                                                    \
  cublasStatus_t cublas##prefix##nrm2_v2(cublasHandle_t handle, int n, const T *x, int incx, R *result) { \
    return reduce(CALLER, handle, TYPE, work_nrm2, 0, n, x, incx, NULL, 1, result);                       \
  }                                                                                                       \
  cublasStatus_t cublas##prefix##asum_v2(cublasHandle_t handle, int n, const T *x, int incx, R *result) { \
    return reduce(CALLER, handle, TYPE, work_asum, 0, n, x, incx, NULL, 1, result);                       \
  }

NAMES_NORM(S, float, float, CUDA_R_32F)
NAMES_NORM(D, double, double, CUDA_R_64F)
NAMES_NORM(Sc, cuComplex, float, CUDA_C_32F)
NAMES_NORM(Dz, cuDoubleComplex, double, CUDA_C_64F)

cublasStatus_t cublasCsscal_v2(cublasHandle_t handle, int n, const float *alpha, cuComplex *x, int incx) {
  return scal(CALLER, handle, CUDA_R_32F, CUDA_C_32F, n, alpha, x, incx);
}

cublasStatus_t cublasZdscal_v2(cublasHandle_t handle, int n, const double *alpha, cuDoubleComplex *x, int incx) {
  return scal(CALLER, handle, CUDA_R_64F, CUDA_C_64F, n, alpha, x, incx);
}

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

/* ---- copies: pitched copies of the CUDA runtime, which checks pointers and direction ---- */

static cublasStatus_t copied(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t copy_matrix(int rows, int columns, int bytes, const void *from, int ld_from, void *to, int ld_to,
                                  enum cudaMemcpyKind kind, int async, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || bytes <= 0 || ld_from <= 0 || ld_to <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  if (ld_from < rows || ld_to < rows) return CUBLAS_STATUS_INVALID_VALUE;
  size_t size = (size_t)bytes;
  size_t pitch_to = (size_t)ld_to * size, pitch_from = (size_t)ld_from * size, width = (size_t)rows * size;
  if (async) return copied(cudaMemcpy2DAsync(to, pitch_to, from, pitch_from, width, (size_t)columns, kind, stream));
  return copied(cudaMemcpy2D(to, pitch_to, from, pitch_from, width, (size_t)columns, kind));
}

/* A vector with increments is a matrix with one row. */
static cublasStatus_t copy_vector(int n, int bytes, const void *from, int inc_from, void *to, int inc_to,
                                  enum cudaMemcpyKind kind, int async, cudaStream_t stream) {
  if (n < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (inc_from == 1 && inc_to == 1)
    return copy_matrix(n, 1, bytes, from, n ? n : 1, to, n ? n : 1, kind, async, stream);
  return copy_matrix(1, n, bytes, from, inc_from, to, inc_to, kind, async, stream);
}

cublasStatus_t cublasSetVector(int n, int bytes, const void *host, int inc_host, void *device, int inc_device) {
  return copy_vector(n, bytes, host, inc_host, device, inc_device, cudaMemcpyHostToDevice, 0, NULL);
}

cublasStatus_t cublasGetVector(int n, int bytes, const void *device, int inc_device, void *host, int inc_host) {
  return copy_vector(n, bytes, device, inc_device, host, inc_host, cudaMemcpyDeviceToHost, 0, NULL);
}

cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                               int ld_device) {
  return copy_matrix(rows, columns, bytes, host, ld_host, device, ld_device, cudaMemcpyHostToDevice, 0, NULL);
}

cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                               int ld_host) {
  return copy_matrix(rows, columns, bytes, device, ld_device, host, ld_host, cudaMemcpyDeviceToHost, 0, NULL);
}

cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void *host, int inc_host, void *device, int inc_device,
                                    cudaStream_t stream) {
  return copy_vector(n, bytes, host, inc_host, device, inc_device, cudaMemcpyHostToDevice, 1, stream);
}

cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void *device, int inc_device, void *host, int inc_host,
                                    cudaStream_t stream) {
  return copy_vector(n, bytes, device, inc_device, host, inc_host, cudaMemcpyDeviceToHost, 1, stream);
}

cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void *host, int ld_host, void *device,
                                    int ld_device, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, host, ld_host, device, ld_device, cudaMemcpyHostToDevice, 1, stream);
}

cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void *device, int ld_device, void *host,
                                    int ld_host, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, device, ld_device, host, ld_host, cudaMemcpyDeviceToHost, 1, stream);
}

/* ---- the handle ---- */

#ifdef __SANITIZE_THREAD__
void openblas_set_num_threads(int threads) __attribute__((weak));
#endif

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
#ifdef __SANITIZE_THREAD__
  if (openblas_set_num_threads) openblas_set_num_threads(1); /* ThreadSanitizer does not see how its threads wait */
#endif
  *handle = NULL;
  if (simt_error_pending() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = calloc(1, sizeof **handle);
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

/* As NVIDIA's: waits for the device. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaDeviceSynchronize();
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  (void)handle;
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
  static const int version[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  if (!value || (unsigned)type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  *value = version[type];
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

#define SETTING(Name, T, field)                                     \
  cublasStatus_t cublasSet##Name(cublasHandle_t handle, T value) {  \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    handle->field = value;                                          \
    return CUBLAS_STATUS_SUCCESS;                                   \
  }                                                                 \
  cublasStatus_t cublasGet##Name(cublasHandle_t handle, T *value) { \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;              \
    if (!value) return CUBLAS_STATUS_INVALID_VALUE;                 \
    *value = handle->field;                                         \
    return CUBLAS_STATUS_SUCCESS;                                   \
  }

SETTING(Stream_v2, cudaStream_t, stream)
SETTING(MathMode, cublasMath_t, math_mode)
SETTING(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SETTING(SmCountTarget, int, sm_count_target)

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if ((unsigned)mode > CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_INVALID_VALUE;
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
  if (!mode) return CUBLAS_STATUS_INVALID_VALUE;
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *mode = handle->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file) {
  (void)on;
  (void)to_stdout;
  (void)to_stderr;
  (void)file;
  return CUBLAS_STATUS_SUCCESS;
}

static const struct {
  cublasStatus_t status;
  const char *name, *text;
} statuses[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the device"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the requested functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};

const char *cublasGetStatusName(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (statuses[i].status == status) return statuses[i].name;
  }
  return "unrecognized status";
}

const char *cublasGetStatusString(cublasStatus_t status) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (statuses[i].status == status) return statuses[i].text;
  }
  return "unrecognized status";
}

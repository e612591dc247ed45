/* vectors.c - level 1: vectors. */
#include "routine.h"

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

/* ---- the names that programs call ---- */

#define NAMES(X, x, T, TYPE)                                                                                  \
  cublasStatus_t cublas##X##axpy_v2(cublasHandle_t handle, int n, const T *alpha, const T *x, int incx, T *y, \
                                    int incy) {                                                               \
    return axpy(CALLER, handle, TYPE, n, alpha, x, incx, y, incy);                                            \
  }                                                                                                           \
  cublasStatus_t cublas##X##copy_v2(cublasHandle_t handle, int n, const T *x, int incx, T *y, int incy) {     \
    return copy_or_swap(CALLER, handle, TYPE, work_copy, n, x, incx, y, incy);                                \
  }                                                                                                           \
  cublasStatus_t cublas##X##swap_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy) {           \
    return copy_or_swap(CALLER, handle, TYPE, work_swap, n, x, incx, y, incy);                                \
  }                                                                                                           \
  cublasStatus_t cublas##X##scal_v2(cublasHandle_t handle, int n, const T *alpha, T *x, int incx) {           \
    return scal(CALLER, handle, TYPE, TYPE, n, alpha, x, incx);                                               \
  }                                                                                                           \
  cublasStatus_t cublasI##x##amax_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result) {       \
    return reduce(CALLER, handle, TYPE, work_amax, 0, n, x, incx, NULL, 1, result);                           \
  }                                                                                                           \
  cublasStatus_t cublasI##x##amin_v2(cublasHandle_t handle, int n, const T *x, int incx, int *result) {       \
    return reduce(CALLER, handle, TYPE, work_amin, 0, n, x, incx, NULL, 1, result);                           \
  }

NAMES(S, s, float, CUDA_R_32F)
NAMES(D, d, double, CUDA_R_64F)
NAMES(C, c, cuComplex, CUDA_C_32F)
NAMES(Z, z, cuDoubleComplex, CUDA_C_64F)

#define NAMES_REAL(X, T, TYPE)                                                                               \
  cublasStatus_t cublas##X##dot_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, \
                                   T *result) {                                                              \
    return reduce(CALLER, handle, TYPE, work_dot, 0, n, x, incx, y, incy, result);                           \
  }                                                                                                          \
  cublasStatus_t cublas##X##rot_v2(cublasHandle_t handle, int n, T *x, int incx, T *y, int incy, const T *c, \
                                   const T *s) {                                                             \
    return rot(CALLER, handle, TYPE, n, x, incx, y, incy, c, s);                                             \
  }                                                                                                          \
  cublasStatus_t cublas##X##rotg_v2(cublasHandle_t handle, T *a, T *b, T *c, T *s) {                         \
    return rotg(CALLER, handle, TYPE, a, b, c, s);                                                           \
  }

NAMES_REAL(S, float, CUDA_R_32F)
NAMES_REAL(D, double, CUDA_R_64F)

#define NAMES_COMPLEX(X, T, TYPE)                                                                             \
  cublasStatus_t cublas##X##dotu_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, \
                                    T *result) {                                                              \
    return reduce(CALLER, handle, TYPE, work_dot, 0, n, x, incx, y, incy, result);                            \
  }                                                                                                           \
  cublasStatus_t cublas##X##dotc_v2(cublasHandle_t handle, int n, const T *x, int incx, const T *y, int incy, \
                                    T *result) {                                                              \
    return reduce(CALLER, handle, TYPE, work_dot, 1, n, x, incx, y, incy, result);                            \
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

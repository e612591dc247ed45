/* vectors_any.c - vectors of any real type: computed in double, rounded once. */
#include "routine.h"

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

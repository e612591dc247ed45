/* routine.h - what the routines of cuBLAS have in common.
 *
 * Each routine is one function for all types, which looks at its operand's cudaDataType; the typed names that programs
 * call are made by macros at the end of its file. A call is described by a Call, copied into the stream's queue, and
 * done by a function of type Work: at once, or when the stream is waited for.
 *
 *   vectors.c        axpy, dot, nrm2 and others: vectors
 *   vectors_any.c    the same for any real type
 *   matrix_vector.c  gemv, ger, trsv and others: a matrix and vectors
 *   products.c       gemm, symm, syrk, trsm and others: matrix products
 *   elementwise.c    geam, dgmm
 *   copies.c         cublasSetMatrix() and others
 *   handle.c         the handle and its settings; names of the status codes
 *   cublas_lt.c      cublasLt
 */
#ifndef SIMT_BLAS_ROUTINE_H
#define SIMT_BLAS_ROUTINE_H

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

#define CALLER __func__, __builtin_return_address(0)

static inline void set_result(Call *call, void *result, size_t bytes) {
  call->result = result;
  call->result_bytes = call->pointer_mode == CUBLAS_POINTER_MODE_DEVICE ? bytes : 0;
}

static inline cublasStatus_t not_negative(const Call *call, const char *name, int number) {
  return number < 0 ? invalid(call, "%s is %d: it must not be negative", name, number) : CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t not_zero(const Call *call, const Operand *o) {
  return o->ld == 0 ? invalid(call, "the increment of %s is 0", o->name) : CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t triangle(const Call *call) {
  if ((unsigned)call->uplo <= CUBLAS_FILL_MODE_UPPER && (unsigned)call->side <= CUBLAS_SIDE_RIGHT &&
      (unsigned)call->diag <= CUBLAS_DIAG_UNIT) {
    return CUBLAS_STATUS_SUCCESS;
  }
  return invalid(call, "uplo, side or diag (%d, %d, %d) is none of their values", (int)call->uplo, (int)call->side,
                 (int)call->diag);
}

static inline enum CBLAS_TRANSPOSE blas_trans(cublasOperation_t trans) {
  return trans == CUBLAS_OP_N ? CblasNoTrans : trans == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
static inline enum CBLAS_UPLO blas_uplo(const Call *c) {
  return c->uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
static inline enum CBLAS_SIDE blas_side(const Call *c) { return c->side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight; }
static inline enum CBLAS_DIAG blas_diag(const Call *c) {
  return c->diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}

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

/* Operands whose shape the routine fills in: one, the members of a batch by distance, by pointers. */
static inline Operand one(const char *name, cudaDataType type, const void *data, int ld) {
  return matrix(name, type, data, 0, 0, ld);
}
static inline Operand strided(const char *name, cudaDataType type, const void *data, int ld, long long stride) {
  Operand o = matrix(name, type, data, 0, 0, ld);
  o.stride = stride;
  return o;
}
static inline Operand pointers(const char *name, cudaDataType type, const void *data, int ld) {
  Operand o = matrix(name, type, data, 0, 0, ld);
  o.is_array_of_pointers = 1;
  return o;
}
static inline Operand as_vector(Operand o) {
  o.is_vector = 1;
  o.rows = 1;
  return o;
}

/* The first element of a vector in memory: with a negative increment it is walked from its end. */
static inline ptrdiff_t first_index(int n, int increment) { return increment < 0 ? (ptrdiff_t)(1 - n) * increment : 0; }

#endif /* SIMT_BLAS_ROUTINE_H */

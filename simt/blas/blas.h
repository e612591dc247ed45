/* blas.h - what cuBLAS (routine.h) and cublasLt (cublas_lt.c) share: the types of elements; a call described by a Call,
 * its operands and scalars checked, queued in its stream; products of real matrices.
 */
#ifndef SIMT_BLAS_H
#define SIMT_BLAS_H

#include "cublas_v2.h"

#include <cblas.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "half.h"
#include "hooks.h"
#include "runtime.h"

/* A matrix (rows, columns), column after column in memory unless it is by_rows; or a vector: its increment is `ld`,
 * `columns` is its length, and `rows` 1. */
typedef struct Operand {
  const char *name; /* as cuBLAS's documentation calls it */
  const void *data; /* or, for a batch given by pointers, an array of them */
  cudaDataType type;
  int rows, columns, ld;
  int by_rows, is_vector, is_array_of_pointers;
  long long stride; /* from one member of a batch to the next, in elements */
} Operand;

/* alpha or beta: its value, in host pointer mode, else where it will be found. */
typedef struct Scalar {
  union {
    float f32;
    double f64;
    float c32[2];
    double c64[2];
    uint16_t f16;
    int32_t i32;
  } value;
  const void *device;
  cudaDataType type;
} Scalar;

typedef void Work(void *call);

typedef struct Call {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  Work *work;
  char name[40];
  const void *caller; /* return address */
  cublasOperation_t trans_a, trans_b;
  cublasFillMode_t uplo;
  cublasSideMode_t side;
  cublasDiagType_t diag;
  int m, n, k, batch;
  cublasComputeType_t compute;
  Operand a, b, c; /* c is written to; by cublasLt read only */
  Scalar alpha, beta;
  void *result;
  size_t result_bytes; /* 0: on the host */
  int conjugate;
} Call;

/* ---- types ---- */

static inline size_t type_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_C_64F:
      return 16;
    default:
      return 0;
  }
}

/* Element `index` of an array, and back. Real types. */
static inline double load(cudaDataType type, const void *array, ptrdiff_t index) {
  switch (type) {
    case CUDA_R_8I:
      return ((const int8_t *)array)[index];
    case CUDA_R_16F:
      return half_to_float(((const uint16_t *)array)[index]);
    case CUDA_R_16BF:
      return bfloat_to_float(((const uint16_t *)array)[index]);
    case CUDA_R_32I:
      return ((const int32_t *)array)[index];
    case CUDA_R_64F:
      return ((const double *)array)[index];
    default:
      return ((const float *)array)[index];
  }
}

/* `number` was computed as a float where the element is narrower than a double. */
static inline void store(cudaDataType type, void *array, ptrdiff_t index, double number) {
  switch (type) {
    case CUDA_R_16F:
      ((uint16_t *)array)[index] = float_to_half((float)number);
      break;
    case CUDA_R_16BF:
      ((uint16_t *)array)[index] = float_to_bfloat((float)number);
      break;
    case CUDA_R_64F:
      ((double *)array)[index] = number;
      break;
    default:
      ((float *)array)[index] = (float)number;
      break;
  }
}

/* ---- checks ---- */

/* "cublasSgemm at main.cu:12 (main)"; only the name when the program carries no line numbers. */
static inline const char *call_text(const Call *call, char *text, size_t size) {
  char where[400];
  simt_where((const char *)call->caller - 1, where, sizeof where);
  if (strncmp(where, "0x", 2) == 0) {
    snprintf(text, size, "%s", call->name);
  } else {
    snprintf(text, size, "%s at %s", call->name, where);
  }
  return text;
}

/* Reports why a call is refused, and gives the status. */
static inline cublasStatus_t refuse(const Call *call, cublasStatus_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline cublasStatus_t refuse(const Call *call, cublasStatus_t status, const char *format, ...) {
  char text[512], reason[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  simt_report_host("%s: %s: %s", call_text(call, text, sizeof text), cublasGetStatusName(status), reason);
  return status;
}
#define invalid(call, ...) refuse(call, CUBLAS_STATUS_INVALID_VALUE, __VA_ARGS__)
#define not_supported(call, ...) refuse(call, CUBLAS_STATUS_NOT_SUPPORTED, __VA_ARGS__)

#define TRY(expression)                                   \
  do {                                                    \
    cublasStatus_t status_ = (expression);                \
    if (status_ != CUBLAS_STATUS_SUCCESS) return status_; \
  } while (0)

/* ---- operands ---- */

/* A matrix lies in memory line by line: its columns or, by_rows, its rows. */
static inline int lines(const Operand *o) { return o->by_rows ? o->rows : o->columns; }
static inline int line_length(const Operand *o) { return o->by_rows ? o->columns : o->rows; }
static inline void *line(const Operand *o, const void *data, int i) {
  return (char *)data + (size_t)i * (size_t)o->ld * type_bytes(o->type);
}

/* 1 when the member `data` of an operand lies in memory that the GPU could use, whole. */
static inline int in_reach(const Call *call, const Operand *o, const void *data) {
  SimtMemory memory;
  char text[512], place[512];
  size_t bytes = type_bytes(o->type);
  size_t span = o->is_vector ? (size_t)(o->columns - 1) * (size_t)abs(o->ld) + 1
                             : (size_t)(lines(o) - 1) * (size_t)o->ld + (size_t)line_length(o);
  int live = simt_memory_find(data, &memory);
  if (!live) {
    const char *what = !data ? "NULL" : memory.freed ? "memory that was freed" : "a host pointer";
    simt_report_host(
        "%s: %s is %s. cuBLAS works on device memory: cudaMalloc(), then cudaMemcpy() or cublasSetMatrix()",
        call_text(call, text, sizeof text), o->name, what);
  } else if (span * bytes > memory.size - (size_t)((const char *)data - (const char *)memory.base)) {
    char shape[128];
    if (o->is_vector) {
      snprintf(shape, sizeof shape, "%d elements, increment %d", o->columns, o->ld);
    } else {
      snprintf(shape, sizeof shape, "%d x %d%s, leading dimension %d", o->rows, o->columns,
               o->by_rows ? " by rows" : "", o->ld);
    }
    simt_report_host("%s: %s (%s, %zu bytes each) needs %zu bytes, but begins %zu bytes into %s",
                     call_text(call, text, sizeof text), o->name, shape, bytes, span * bytes,
                     (size_t)((const char *)data - (const char *)memory.base),
                     simt_memory_text(&memory, place, sizeof place));
  } else {
    return 1;
  }
  simt_error_sticky(cudaErrorIllegalAddress);
  return 0;
}

/* The same for all members that are known when the call is made. */
static inline int operand_is_good(const Call *call, const Operand *o) {
  if (o->rows == 0 || o->columns == 0) return 1;
  if (o->is_array_of_pointers) {
    Operand pointers = {
        .name = o->name, .type = CUDA_C_32F, .rows = 1, .columns = call->batch, .ld = 1, .is_vector = 1};
    return in_reach(call, &pointers, o->data); /* its members when the work is done */
  }
  if (!in_reach(call, o, o->data)) return 0;
  const char *last = (const char *)o->data + (call->batch - 1) * o->stride * (long long)type_bytes(o->type);
  return last == o->data || in_reach(call, o, last);
}

/* alpha, beta and results: on the host or on the device, as the pointer mode says. */
static inline int scalar_is_good(const Call *call, const char *name, const void *pointer) {
  SimtMemory memory;
  char text[512];
  int on_host = call->pointer_mode == CUBLAS_POINTER_MODE_HOST;
  if (on_host ? simt_memory_host_may_use(pointer) : simt_memory_find(pointer, &memory)) return 1;
  simt_report_host(
      "%s: %s is a %s pointer, but the pointer mode is CUBLAS_POINTER_MODE_%s; see %s",
      call_text(call, text, sizeof text), name, on_host ? "device" : "host", on_host ? "HOST" : "DEVICE",
      strncmp(call->name, "cublasLt", 8) == 0 ? "CUBLASLT_MATMUL_DESC_POINTER_MODE" : "cublasSetPointerMode()");
  simt_error_sticky(cudaErrorIllegalAddress);
  return 0;
}

/* ---- parts of a call ---- */

static inline Call new_call(cudaStream_t stream, cublasPointerMode_t mode, const char *function, const void *caller) {
  Call call = {.stream = stream, .pointer_mode = mode, .caller = caller, .batch = 1};
  size_t length = strlen(function);
  if (length > 3 && strcmp(function + length - 3, "_v2") == 0) length -= 3;
  snprintf(call.name, sizeof call.name, "%.*s", (int)length, function);
  return call;
}

static inline Operand matrix(const char *name, cudaDataType type, const void *data, int rows, int columns, int ld) {
  return (Operand){.name = name, .data = data, .type = type, .rows = rows, .columns = columns, .ld = ld};
}

static inline Operand vector(const char *name, cudaDataType type, const void *data, int length, int increment) {
  return (Operand){
      .name = name, .data = data, .type = type, .rows = 1, .columns = length, .ld = increment, .is_vector = 1};
}

static inline const void *scalar(const Scalar *s) { return s->device ? s->device : &s->value; }

static inline cublasStatus_t set_scalar(Call *call, Scalar *s, const char *name, cudaDataType type,
                                        const void *pointer) {
  if (!pointer) return invalid(call, "%s is NULL", name);
  if (!scalar_is_good(call, name, pointer)) return CUBLAS_STATUS_EXECUTION_FAILED;
  s->type = type;
  if (call->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    s->device = pointer;
  } else {
    memcpy(&s->value, pointer, type_bytes(type));
  }
  return CUBLAS_STATUS_SUCCESS;
}

static inline int is_zero(const Scalar *s) {
  const void *p = scalar(s);
  if (s->type == CUDA_C_32F) return *(const float complex *)p == 0;
  if (s->type == CUDA_C_64F) return *(const double complex *)p == 0;
  return load(s->type, p, 0) == 0;
}

/* Member i of a batch; NULL when it is out of reach. */
static inline void *member(const Call *call, const Operand *o, int i) {
  if (!o->is_array_of_pointers) return (char *)o->data + i * o->stride * (long long)type_bytes(o->type);
  void *data = ((void *const *)o->data)[i];
  return o->rows == 0 || o->columns == 0 || in_reach(call, o, data) ? data : NULL;
}

/* For the inspector: the operand holds numbers now. */
static inline void written(const Operand *o, const void *data) {
  if (!SIMT_INSPECTED) return;
  size_t bytes = type_bytes(o->type), step = (size_t)abs(o->ld) * bytes;
  for (int i = 0; i < lines(o); i++) {
    simt_hooks.host_wrote((char *)data + (size_t)i * step, (size_t)line_length(o) * bytes);
  }
}

static inline void run(void *context) {
  Call *call = context;
  call->work(call);
  if (call->result_bytes) TELL_INSPECTOR(host_wrote(call->result, call->result_bytes));
}

/* `size`: of the structure that begins with the call, all of which `work` gets. */
static inline cublasStatus_t submit_bytes(Call *call, size_t size, Work *work) {
  if (simt_error_pending() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  /* none: the legacy default stream, even where --default-stream makes NULL the thread's own */
  cudaStream_t stream = call->stream ? call->stream : cudaStreamLegacy;
  call->work = work;
  if (simt_stream_submit(stream, run, call, size, call->name, NULL, 0) != cudaSuccess) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  if (call->result && call->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
    if (cudaStreamSynchronize(stream) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return simt_error_pending() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

static inline cublasStatus_t submit(Call *call, Work *work) { return submit_bytes(call, sizeof *call, work); }

static inline cublasStatus_t leading_dimension(const Call *call, const Operand *o) {
  int length = line_length(o);
  if (o->ld >= (length > 1 ? length : 1)) return CUBLAS_STATUS_SUCCESS;
  return invalid(call, "the leading dimension of %s is %d, less than its %d %s (%s is %d x %d, %s-major)", o->name,
                 o->ld, length, o->by_rows ? "columns" : "rows", o->name, o->rows, o->columns,
                 o->by_rows ? "row" : "column");
}

static inline cublasStatus_t operation(const Call *call, const char *name, cublasOperation_t trans) {
  if ((unsigned)trans <= CUBLAS_OP_C) return CUBLAS_STATUS_SUCCESS;
  return invalid(call, "%s is %d: it must be CUBLAS_OP_N, _T or _C", name, (int)trans);
}

static inline void to_float(cudaDataType type, const void *from, float *to, int n) {
  if (type == CUDA_R_16F) {
    for (int i = 0; i < n; i++) to[i] = half_to_float(((const uint16_t *)from)[i]);
  } else if (type == CUDA_R_16BF) {
    for (int i = 0; i < n; i++) to[i] = bfloat_to_float(((const uint16_t *)from)[i]);
  } else if (type == CUDA_R_8I) {
    for (int i = 0; i < n; i++) to[i] = ((const int8_t *)from)[i];
  } else {
    memcpy(to, from, (size_t)n * sizeof *to);
  }
}

static inline void from_float(cudaDataType type, const float *from, void *to, int n) {
  if (type == CUDA_R_16F) {
    for (int i = 0; i < n; i++) ((uint16_t *)to)[i] = float_to_half(from[i]);
  } else if (type == CUDA_R_16BF) {
    for (int i = 0; i < n; i++) ((uint16_t *)to)[i] = float_to_bfloat(from[i]);
  } else {
    memcpy(to, from, (size_t)n * sizeof *from);
  }
}

/* A factor as BLAS takes it. Narrow types become floats in `space`, one line after the other. */
typedef struct Factor {
  const void *data;
  int ld;
  enum CBLAS_TRANSPOSE trans;
} Factor;

static inline Factor factor(const Operand *o, const void *data, cublasOperation_t op, int by_rows, float *space) {
  int transposed = (op != CUBLAS_OP_N) != (o->by_rows != by_rows);
  Factor f = {data, o->ld, transposed ? CblasTrans : CblasNoTrans};
  if (o->type == CUDA_R_32F || o->type == CUDA_R_64F) return f;
  f.data = space;
  f.ld = line_length(o);
  for (int i = 0; i < lines(o); i++) to_float(o->type, line(o, data, i), space + (size_t)i * f.ld, f.ld);
  return f;
}

/* The m x n sums of a product: doubles for doubles, else floats, without gaps, in the order of the matrix that they
 * become. This gives their type. */
static inline cudaDataType sum_type(const Call *c) { return c->a.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F; }

static inline void sums_from(const Operand *o, const void *data, int by_rows, void *sums) {
  int n = line_length(o), wide = o->type == CUDA_R_64F;
  if (o->by_rows == by_rows) {
    for (int i = 0; i < lines(o); i++) {
      char *to = (char *)sums + (size_t)i * n * (wide ? sizeof(double) : sizeof(float));
      wide ? (void)memcpy(to, line(o, data, i), n * sizeof(double))
           : to_float(o->type, line(o, data, i), (float *)to, n);
    }
    return;
  }
  for (int i = 0; i < lines(o); i++) {
    for (int j = 0; j < n; j++) {
      store(wide ? CUDA_R_64F : CUDA_R_32F, sums, i + (ptrdiff_t)j * lines(o), load(o->type, line(o, data, i), j));
    }
  }
}

/* Rounds them to the type of the matrix. */
static inline void sums_to(const Operand *o, const void *sums, void *data) {
  int n = line_length(o);
  for (int i = 0; i < lines(o); i++) {
    if (o->type == CUDA_R_64F) {
      memcpy(line(o, data, i), (const double *)sums + (size_t)i * n, n * sizeof(double));
    } else {
      from_float(o->type, (const float *)sums + (size_t)i * n, line(o, data, i), n);
    }
  }
}

/* For product(), to be freed: the sums and, after them, floats made of narrow factors. NULL, with a report, where the
 * host's memory is full. */
static inline void *product_space(const Call *c) {
  size_t factors = (size_t)c->a.rows * c->a.columns + (size_t)c->b.rows * c->b.columns,
         bytes = (size_t)c->m * c->n * type_bytes(sum_type(c)) + (type_bytes(c->a.type) < 4 ? factors * 4 : 0);
  void *space = malloc(bytes);
  if (!space) {
    simt_report_host("%s: no memory for %zu bytes", c->name, bytes);
    simt_error_sticky(cudaErrorMemoryAllocation);
  }
  return space;
}

/* sums = alpha op(A) op(B) + beta C, all real; narrow types are multiplied and summed as floats. With alpha 0 neither A
 * nor B is read, with beta 0 C is not. */
static inline void product(const Call *c, const void *a, const void *b, const void *in, int by_rows, void *sums) {
  double alpha = load(c->alpha.type, scalar(&c->alpha), 0), beta = load(c->beta.type, scalar(&c->beta), 0);
  float *space = (float *)sums + (size_t)c->m * c->n; /* floats where it is used */
  enum CBLAS_ORDER order = by_rows ? CblasRowMajor : CblasColMajor;
  int k = alpha == 0 ? 0 : c->k, ld = by_rows ? c->n : c->m;
  int most = c->m > c->n ? c->m : c->n;
  Factor fa = {sums, most, CblasNoTrans}, fb = fa; /* not read: k is 0 */
  if (k) {
    fa = factor(&c->a, a, c->trans_a, by_rows, space);
    fb = factor(&c->b, b, c->trans_b, by_rows, space + (size_t)c->a.rows * c->a.columns);
  }
  if (beta != 0) sums_from(&c->c, in, by_rows, sums);
  if (sum_type(c) == CUDA_R_64F) {
    cblas_dgemm(order, fa.trans, fb.trans, c->m, c->n, k, alpha, fa.data, fa.ld, fb.data, fb.ld, beta, sums, ld);
  } else {
    cblas_sgemm(order, fa.trans, fb.trans, c->m, c->n, k, (float)alpha, fa.data, fa.ld, fb.data, fb.ld, (float)beta,
                sums, ld);
  }
}

/* NVIDIA's table of types, as far as it is offered. Gives alpha's type; -1 for what is not in it. */
static inline int gemm_scalar_type(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c) {
  if (a != b) return -1;
  switch ((int)compute) {
    case CUDA_R_16F: /* before CUDA 11 */
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return a == CUDA_R_16F && c == CUDA_R_16F ? (int)CUDA_R_16F : -1;
    case CUDA_R_32I:
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return a == CUDA_R_8I && c == CUDA_R_32I ? (int)CUDA_R_32I : -1;
    case CUDA_R_32F:
    case CUDA_C_32F:
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (a == CUDA_C_32F && c == CUDA_C_32F) return CUDA_C_32F;
      if ((a == CUDA_R_16F || a == CUDA_R_16BF) && c == a) return CUDA_R_32F;
      return (a == CUDA_R_8I || a == CUDA_R_16F || a == CUDA_R_16BF || a == CUDA_R_32F) && c == CUDA_R_32F
                 ? (int)CUDA_R_32F
                 : -1;
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
      return (a == CUDA_R_32F || a == CUDA_C_32F) && c == a ? (int)a : -1;
    case CUDA_R_64F:
    case CUDA_C_64F:
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      return (a == CUDA_R_64F || a == CUDA_C_64F) && c == a ? (int)a : -1;
    default:
      return -1;
  }
}

#endif /* SIMT_BLAS_H */

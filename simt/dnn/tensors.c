/* tensors.c - tensors as packed floats and back; operations element by element; reductions. */
#include "dnn.h"
#include "half.h"

#include <float.h>
#include <omp.h>

/* SIMT_THREADS, else one per core. What a call computes must not depend on who calls. */
int dnn_threads(void) {
#ifdef __SANITIZE_THREAD__
  return 1; /* ThreadSanitizer does not see how OpenMP's threads wait */
#else
  static _Atomic int threads; /* whoever asks first finds the same */
  if (!threads) {
    const char *text = getenv("SIMT_THREADS");
    int asked = text ? atoi(text) : 0;
    threads = asked > 0 ? asked : omp_get_num_procs();
  }
  return threads;
#endif
}

void *work_memory(const Call *call, size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!memory) {
    simt_report_host("%s: no memory for %zu bytes", call->name, bytes);
    simt_error_sticky(cudaErrorMemoryAllocation);
  }
  return memory;
}

float load_float(cudnnDataType_t type, const void *array, long long i) {
  if (type == CUDNN_DATA_HALF) return half_to_float(((const uint16_t *)array)[i]);
  if (type == CUDNN_DATA_BFLOAT16) return bfloat_to_float(((const uint16_t *)array)[i]);
  return ((const float *)array)[i];
}

void store_float(cudnnDataType_t type, void *array, long long i, float value) {
  if (type == CUDNN_DATA_HALF) {
    ((uint16_t *)array)[i] = float_to_half(value);
  } else if (type == CUDNN_DATA_BFLOAT16) {
    ((uint16_t *)array)[i] = float_to_bfloat(value);
  } else {
    ((float *)array)[i] = value;
  }
}

long long row_begin(const Tensor *dims, const Tensor *t, long long row) {
  long long at = 0;
  for (int i = dims->rank - 2; i >= 0; row /= dims->dim[i--])
    if (t->dim[i] > 1) at += row % dims->dim[i] * t->stride[i];
  return at;
}

long long row_step(const Tensor *t) { return t->dim[t->rank - 1] > 1 ? t->stride[t->rank - 1] : 0; }

static int is_plain(const Tensor *t) { return t->type == CUDNN_DATA_FLOAT && is_packed(t); }

const float *dense(Call *call, int index, float **made) {
  const Operand *o = &call->o[index];
  const Tensor *t = &o->t;
  *made = NULL;
  if (is_plain(t)) return o->data;
  float *to = *made = work_memory(call, (size_t)element_count(t) * sizeof *to);
  if (!to) return NULL;
  const long long width = t->dim[t->rank - 1], rows = element_count(t) / width, step = row_step(t);
  PARALLEL
  for (long long row = 0; row < rows; row++) {
    const long long begin = row_begin(t, t, row);
    for (long long i = 0; i < width; i++) to[row * width + i] = load_float(t->type, o->data, begin + i * step);
  }
  return to;
}

float *result(Call *call, int index, float alpha, float beta, float **made) {
  const Operand *o = &call->o[index];
  *made = NULL;
  if (is_plain(&o->t) && alpha == 1 && beta == 0) return o->data;
  return *made = work_memory(call, (size_t)element_count(&o->t) * sizeof(float));
}

void deliver(Call *call, int index, const float *from, float alpha, float beta) {
  const Operand *o = &call->o[index];
  const Tensor *t = &o->t;
  if (from == o->data) return;
  const long long width = t->dim[t->rank - 1], rows = element_count(t) / width, step = row_step(t);
  PARALLEL
  for (long long row = 0; row < rows; row++) {
    const long long begin = row_begin(t, t, row);
    for (long long i = 0; i < width; i++) {
      float value = alpha * from[row * width + i];
      if (beta != 0) value += beta * load_float(t->type, o->data, begin + i * step);
      store_float(t->type, o->data, begin + i * step, value);
    }
  }
}

void wrote(const Operand *o) {
  if (!SIMT_INSPECTED) return;
  const Tensor *t = &o->t;
  const size_t bytes = dnn_type_bytes(t->type);
  if (element_count(t) == span_of(t)) {
    simt_hooks.host_wrote(o->data, (size_t)span_of(t) * bytes);
    return;
  }
  const long long width = t->dim[t->rank - 1], rows = element_count(t) / width, step = row_step(t);
  for (long long row = 0; row < rows; row++) {
    char *begin = (char *)o->data + (size_t)row_begin(t, t, row) * bytes;
    if (step == 1) {
      simt_hooks.host_wrote(begin, (size_t)width * bytes);
    } else {
      for (long long i = 0; i < width; i++) simt_hooks.host_wrote(begin + (size_t)(i * step) * bytes, bytes);
    }
  }
}

/* ---- element by element: C = op(alpha A, alpha2 B) + beta C ---- */

enum { OP_SCALE = 100, OP_SET };

static float combine(int op, float a, float b, int propagates_nan) {
  switch (op) {
    case CUDNN_OP_TENSOR_ADD:
      return a + b;
    case CUDNN_OP_TENSOR_MUL:
      return a * b;
    case CUDNN_OP_TENSOR_MIN:
      if (propagates_nan && (isnan(a) || isnan(b))) return NAN;
      return fminf(a, b);
    case CUDNN_OP_TENSOR_MAX:
      if (propagates_nan && (isnan(a) || isnan(b))) return NAN;
      return fmaxf(a, b);
    case CUDNN_OP_TENSOR_SQRT:
      return sqrtf(a);
    default:
      return 1 - a;
  }
}

/* Operands A, C or A, B, C. */
static void work_elements(Call *call) {
  const Operand *a = &call->o[0], *b = call->operands == 3 ? &call->o[1] : NULL, *c = &call->o[call->operands - 1];
  const Tensor *t = &c->t;
  const int last = t->rank - 1, op = b ? call->op : -1;
  const long long width = t->dim[last], rows = element_count(t) / width;
  const long long a_step = row_step(&a->t), b_step = b ? row_step(&b->t) : 0, c_step = row_step(t);
  PARALLEL
  for (long long row = 0; row < rows; row++) {
    long long in = row_begin(t, &a->t, row), other = b ? row_begin(t, &b->t, row) : 0, out = row_begin(t, t, row);
    for (long long i = 0; i < width; i++, in += a_step, other += b_step, out += c_step) {
      float value = call->alpha * load_float(a->t.type, a->data, in);
      if (b) value = combine(op, value, call->alpha2 * load_float(b->t.type, b->data, other), call->mode);
      if (call->beta != 0) value += call->beta * load_float(t->type, c->data, out);
      store_float(t->type, c->data, out, value);
    }
  }
}

static void work_unary(Call *call) {
  const Operand *c = &call->o[call->operands - 1];
  const Operand *a = call->op == OP_SET || call->op == OP_SCALE ? c : &call->o[0];
  const Tensor *t = &c->t;
  const long long width = t->dim[t->rank - 1], rows = element_count(t) / width;
  const long long a_step = row_step(&a->t), c_step = row_step(t);
  PARALLEL
  for (long long row = 0; row < rows; row++) {
    long long in = row_begin(t, &a->t, row), out = row_begin(t, t, row);
    for (long long i = 0; i < width; i++, in += a_step, out += c_step) {
      float value = call->alpha;
      if (call->op != OP_SET) value *= load_float(a->t.type, a->data, in);
      if (call->op < OP_SCALE) value = combine(call->op, value, 0, 0);
      if (call->beta != 0) value += call->beta * load_float(t->type, c->data, out);
      store_float(t->type, c->data, out, value);
    }
  }
}

static cudnnStatus_t need_broadcast(Call *call, int small, int large) {
  char first[100], second[100];
  const Operand *x = &call->o[small], *y = &call->o[large];
  if (broadcasts(&x->t, &y->t)) return CUDNN_STATUS_SUCCESS;
  return bad(call, "each dimension of %s must be 1 or that of %s: they are %s and %s", x->name, y->name,
             dims_text(&x->t, first, sizeof first), dims_text(&y->t, second, sizeof second));
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t a_desc,
                             const void *A, const void *beta, const cudnnTensorDescriptor_t c_desc, void *C) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "A", a_desc, A, 0);
  TENSOR(&call, "C", c_desc, C, 1);
  TRY(need_broadcast(&call, 0, 1));
  TRY(need_same_type(&call, 0, 1));
  return submit(&call, work_elements);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                   const void *x, const void *beta, const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(need_same_dims(&call, 0, 1));
  if (x == y) return bad(&call, "x and y are the same memory: the layout cannot be changed in place");
  return submit(&call, work_elements);
}

struct cudnnOpTensorStruct {
  int set;
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t nan;
};

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t *desc) {
  if (!desc) return bad_here("the place for the descriptor is NULL");
  *desc = calloc(1, sizeof **desc);
  return *desc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t desc) {
  free(desc);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t desc, cudnnOpTensorOp_t op, cudnnDataType_t compute,
                                         cudnnNanPropagation_t nan) {
  if (!desc) return bad_here("the descriptor is NULL");
  if ((unsigned)op > CUDNN_OP_TENSOR_NOT || (unsigned)nan > CUDNN_PROPAGATE_NAN)
    return bad_here("opTensorOp is %d, opTensorNanOpt %d: one is none of its values", (int)op, (int)nan);
  if (compute != CUDNN_DATA_FLOAT)
    return not_supported_here("opTensorCompType is %s; the emulation's cuDNN computes in FLOAT",
                              dnn_type_name(compute));
  *desc = (struct cudnnOpTensorStruct){1, op, compute, nan};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t desc, cudnnOpTensorOp_t *op,
                                         cudnnDataType_t *compute, cudnnNanPropagation_t *nan) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (op) *op = desc->op;
  if (compute) *compute = desc->compute;
  if (nan) *nan = desc->nan;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t desc, const void *alpha1,
                            const cudnnTensorDescriptor_t a_desc, const void *A, const void *alpha2,
                            const cudnnTensorDescriptor_t b_desc, const void *B, const void *beta,
                            const cudnnTensorDescriptor_t c_desc, void *C) {
  BEGIN(call);
  if (!desc || !desc->set) return bad(&call, "opTensorDesc is NULL, or was never set");
  const int unary = desc->op == CUDNN_OP_TENSOR_SQRT || desc->op == CUDNN_OP_TENSOR_NOT;
  call.op = desc->op;
  call.mode = desc->nan;
  TRY(factor_at(&call, "alpha1", alpha1, &call.alpha));
  if (!unary) TRY(factor_at(&call, "alpha2", alpha2, &call.alpha2));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "A", a_desc, A, 0);
  if (!unary) TENSOR(&call, "B", b_desc, B, 0);
  TENSOR(&call, "C", c_desc, C, 1);
  TRY(need_same_dims(&call, 0, call.operands - 1));
  if (unary) return submit(&call, work_unary);
  TRY(need_broadcast(&call, 1, 2));
  if (A != C && B == C && !same_dims(&call.o[1].t, &call.o[2].t))
    return bad(&call, "B and C are the same memory, but B is repeated over C");
  return submit(&call, work_elements);
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t desc, void *y, const void *value) {
  BEGIN(call);
  TENSOR(&call, "y", desc, y, 1);
  float number; /* checked as one; then read in the tensor's type */
  TRY(factor_at(&call, "valuePtr", value, &number));
  call.alpha = load_float(call.o[0].t.type, value, 0);
  call.op = OP_SET;
  return submit(&call, work_unary);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t desc, void *y, const void *alpha) {
  BEGIN(call);
  TENSOR(&call, "y", desc, y, 1);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  call.op = OP_SCALE;
  return submit(&call, work_unary);
}

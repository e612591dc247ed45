/* reduce.c - reductions of a tensor along the dimensions that are 1 in the result. */
#include "dnn.h"

struct cudnnReduceTensorStruct {
  int set;
  cudnnReduceTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t nan;
  cudnnReduceTensorIndices_t indices;
  cudnnIndicesType_t type;
};

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t *desc) {
  if (!desc) return bad_here("the place for the descriptor is NULL");
  *desc = calloc(1, sizeof **desc);
  return *desc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t desc) {
  free(desc);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t desc, cudnnReduceTensorOp_t op,
                                             cudnnDataType_t compute, cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices, cudnnIndicesType_t type) {
  if (!desc) return bad_here("the descriptor is NULL");
  if ((unsigned)op > CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS || (unsigned)nan > CUDNN_PROPAGATE_NAN ||
      (unsigned)indices > CUDNN_REDUCE_TENSOR_FLATTENED_INDICES || (unsigned)type > CUDNN_8BIT_INDICES)
    return bad_here("reduceTensorOp %d, NanOpt %d, Indices %d or IndicesType %d is none of its values", (int)op,
                    (int)nan, (int)indices, (int)type);
  if (compute != CUDNN_DATA_FLOAT)
    return not_supported_here("reduceTensorCompType is %s; the emulation's cuDNN computes in FLOAT",
                              dnn_type_name(compute));
  if (indices != CUDNN_REDUCE_TENSOR_NO_INDICES)
    return not_supported_here("the emulation's cuDNN reduces without indices: CUDNN_REDUCE_TENSOR_NO_INDICES");
  *desc = (struct cudnnReduceTensorStruct){1, op, compute, nan, indices, type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t desc, cudnnReduceTensorOp_t *op,
                                             cudnnDataType_t *compute, cudnnNanPropagation_t *nan,
                                             cudnnReduceTensorIndices_t *indices, cudnnIndicesType_t *type) {
  if (!desc) return bad_here("the descriptor is NULL");
  if (op) *op = desc->op;
  if (compute) *compute = desc->compute;
  if (nan) *nan = desc->nan;
  if (indices) *indices = desc->indices;
  if (type) *type = desc->type;
  return CUDNN_STATUS_SUCCESS;
}

static int is_reduction(const cudnnReduceTensorDescriptor_t desc, const cudnnTensorDescriptor_t a,
                        const cudnnTensorDescriptor_t c) {
  return desc && desc->set && a && c && a->t.rank && broadcasts(&c->t, &a->t);
}

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc,
                                           const cudnnTensorDescriptor_t a, const cudnnTensorDescriptor_t c,
                                           size_t *bytes) {
  if (!handle || !bytes || !is_reduction(desc, a, c))
    return bad_here("an argument is NULL, or C's dimensions are not A's or 1");
  *bytes = 0;
  return CUDNN_STATUS_SUCCESS;
}

/* Partial results: one for each element of A along the first reduced dimension, so to speak. */
cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc,
                                             const cudnnTensorDescriptor_t a, const cudnnTensorDescriptor_t c,
                                             size_t *bytes) {
  if (!handle || !bytes || !is_reduction(desc, a, c))
    return bad_here("an argument is NULL, or C's dimensions are not A's or 1");
  *bytes = same_dims(&a->t, &c->t) ? 0 : (size_t)element_count(&c->t) * sizeof(float);
  return CUDNN_STATUS_SUCCESS;
}

static double start_of(int op) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return 1;
    case CUDNN_REDUCE_TENSOR_MIN:
      return INFINITY;
    case CUDNN_REDUCE_TENSOR_MAX:
      return -INFINITY;
    default:
      return 0;
  }
}

static double joined(int op, double sum, double a, int propagates_nan) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
      return sum * a;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return a == 0 ? sum : sum * a;
    case CUDNN_REDUCE_TENSOR_MIN:
      return propagates_nan && (isnan(a) || isnan(sum)) ? NAN : fmin(sum, a);
    case CUDNN_REDUCE_TENSOR_MAX:
      return propagates_nan && (isnan(a) || isnan(sum)) ? NAN : fmax(sum, a);
    case CUDNN_REDUCE_TENSOR_AMAX:
      return propagates_nan && (isnan(a) || isnan(sum)) ? NAN : fmax(sum, fabs(a));
    case CUDNN_REDUCE_TENSOR_NORM1:
      return sum + fabs(a);
    case CUDNN_REDUCE_TENSOR_NORM2:
      return sum + a * a;
    default:
      return sum + a;
  }
}

/* Operands A, C: C = alpha * op(A) + beta * C. Each element of C walks over its part of A. */
static void work_reduce(Call *call) {
  float *made, *owned;
  const float *a = dense(call, 0, &made);
  float *c = result(call, 1, 1, call->beta, &owned);
  const Tensor *from = &call->o[0].t, *to = &call->o[1].t;
  if (a && c) {
    const long long results = element_count(to), parts = element_count(from) / results;
    PARALLEL
    for (long long r = 0; r < results; r++) {
      double sum = start_of(call->op);
      for (long long p = 0; p < parts; p++) {
        long long at = 0, step = 1, kept = r, reduced = p;
        for (int i = from->rank - 1; i >= 0; step *= from->dim[i--]) {
          long long *rest = to->dim[i] == from->dim[i] ? &kept : &reduced;
          at += *rest % from->dim[i] * step;
          *rest /= from->dim[i];
        }
        sum = joined(call->op, sum, a[at], call->mode);
      }
      if (call->op == CUDNN_REDUCE_TENSOR_AVG) sum /= (double)parts;
      if (call->op == CUDNN_REDUCE_TENSOR_NORM2) sum = sqrt(sum);
      c[r] = (float)(call->alpha * sum);
    }
    deliver(call, 1, c, 1, call->beta);
  }
  free(made);
  free(owned);
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, const cudnnReduceTensorDescriptor_t desc, void *indices,
                                size_t index_bytes, void *workspace, size_t bytes, const void *alpha,
                                const cudnnTensorDescriptor_t a_desc, const void *A, const void *beta,
                                const cudnnTensorDescriptor_t c_desc, void *C) {
  BEGIN(call);
  (void)indices;
  (void)index_bytes;
  if (!desc || !desc->set) return bad(&call, "reduceTensorDesc is NULL, or was never set");
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "A", a_desc, A, 0);
  TENSOR(&call, "C", c_desc, C, 1);
  if (!broadcasts(&call.o[1].t, &call.o[0].t)) return bad(&call, "each dimension of C must be that of A, or 1");
  size_t needed;
  TRY(cudnnGetReductionWorkspaceSize(handle, desc, a_desc, c_desc, &needed));
  if (needed > (workspace ? bytes : 0))
    return bad(&call, "the workspace has %zu bytes, but needs %zu: cudnnGetReductionWorkspaceSize()",
               workspace ? bytes : 0, needed);
  TRY(add_bytes(&call, "workspace", workspace, needed, 1));
  call.op = desc->op;
  call.mode = desc->nan;
  return submit(&call, work_reduce);
}

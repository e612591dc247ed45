/* convolution.c - convolutions: the descriptor, the output's dimensions, and the calls. */
#include "dnn.h"

/* ---- the descriptor ---- */

static cudnnStatus_t set_convolution(const char *function, cudnnConvolutionDescriptor_t desc, const int *padding,
                                     const int *stride, const int *dilation, cudnnConvolutionMode_t mode,
                                     cudnnDataType_t compute) {
  if (!desc) return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the descriptor is NULL");
  for (int i = 0; i < 2; i++) {
    if (padding[i] < 0)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "the padding is %d x %d: it must not be negative",
                            padding[0], padding[1]);
    if (stride[i] < 1 || dilation[i] < 1)
      return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function,
                            "the stride is %d x %d, the dilation %d x %d: they must be positive", stride[0], stride[1],
                            dilation[0], dilation[1]);
  }
  if ((unsigned)mode > CUDNN_CROSS_CORRELATION)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "mode is %d, which is no cudnnConvolutionMode_t",
                          (int)mode);
  if ((unsigned)compute > CUDNN_DATA_FAST_FLOAT_FOR_FP8)
    return refuse_plainly(CUDNN_STATUS_BAD_PARAM, function, "computeType is %d, which is no cudnnDataType_t",
                          (int)compute);
  *desc = (struct cudnnConvolutionStruct){.set = 1,
                                          .padding = {padding[0], padding[1]},
                                          .stride = {stride[0], stride[1]},
                                          .dilation = {dilation[0], dilation[1]},
                                          .groups = 1,
                                          .mode = mode,
                                          .compute = compute};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  return set_convolution(__func__, desc, (const int[]){pad_h, pad_w}, (const int[]){u, v},
                         (const int[]){dilation_h, dilation_w}, mode, compute);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t desc, int rank, const int padding[],
                                              const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  if (!padding || !stride || !dilation) return bad_here("padA, filterStrideA or dilationA is NULL");
  if (rank != 2) return not_supported_here("arrayLength is %d; the emulation's cuDNN convolves in 2 dimensions", rank);
  return set_convolution(__func__, desc, padding, stride, dilation, mode, compute);
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t desc, int asked, int *rank,
                                              int padding[], int stride[], int dilation[], cudnnConvolutionMode_t *mode,
                                              cudnnDataType_t *compute) {
  if (!desc || !desc->set) return bad_here("convDesc is NULL, or was never set");
  if (asked < 0) return bad_here("arrayLengthRequested is %d", asked);
  PUT(rank, 2);
  PUT(mode, desc->mode);
  PUT(compute, desc->compute);
  for (int i = 0; i < asked && i < 2; i++) {
    if (padding) padding[i] = desc->padding[i];
    if (stride) stride[i] = desc->stride[i];
    if (dilation) dilation[i] = desc->dilation[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t desc, int *pad_h, int *pad_w, int *u,
                                              int *v, int *dilation_h, int *dilation_w, cudnnConvolutionMode_t *mode,
                                              cudnnDataType_t *compute) {
  int padding[2] = {0}, stride[2] = {0}, dilation[2] = {0};
  TRY(cudnnGetConvolutionNdDescriptor(desc, 2, NULL, padding, stride, dilation, mode, compute));
  PUT(pad_h, padding[0]);
  PUT(pad_w, padding[1]);
  PUT(u, stride[0]);
  PUT(v, stride[1]);
  PUT(dilation_h, dilation[0]);
  PUT(dilation_w, dilation[1]);
  return CUDNN_STATUS_SUCCESS;
}

#define SETTING(Name, T, field, valid, says)                                             \
  cudnnStatus_t cudnnSetConvolution##Name(cudnnConvolutionDescriptor_t desc, T value) {  \
    if (!desc) return bad_here("convDesc is NULL");                                      \
    if (!(valid)) return bad_here(says, (int)value);                                     \
    desc->field = value;                                                                 \
    return CUDNN_STATUS_SUCCESS;                                                         \
  }                                                                                      \
  cudnnStatus_t cudnnGetConvolution##Name(cudnnConvolutionDescriptor_t desc, T *value) { \
    if (!desc || !value) return bad_here("convDesc or the place for the value is NULL"); \
    *value = desc->field;                                                                \
    return CUDNN_STATUS_SUCCESS;                                                         \
  }

SETTING(MathType, cudnnMathType_t, math, (unsigned)value <= CUDNN_FMA_MATH, "mathType is %d: it must be 0 to 3")
SETTING(GroupCount, int, groups, value >= 1, "groupCount is %d: it must be positive")
SETTING(ReorderType, cudnnReorderType_t, reorder, (unsigned)value <= CUDNN_NO_REORDER,
        "reorderType is %d: it must be 0 or 1")

/* ---- shapes ---- */

long long conv_out(const Convolution *c, int axis) {
  const long long extent = (long long)(c->w.dim[2 + axis] - 1) * c->c.dilation[axis] + 1;
  const long long room = c->x.dim[2 + axis] + 2LL * c->c.padding[axis] - extent;
  return room < 0 ? 0 : 1 + room / c->c.stride[axis];
}

/* A refusal with a report or, when it answers a question, without. */
#define SAY(status, ...) (quietly ? refuse_plainly(status, call->name, __VA_ARGS__) : refuse(call, status, __VA_ARGS__))

static cudnnStatus_t check_channels(const Call *call, const Convolution *c, int quietly) {
  const int groups = c->c.groups;
  if (c->x.dim[1] != c->w.dim[1] * groups)
    return SAY(CUDNN_STATUS_BAD_PARAM, "x has %d channels, but the filter has %d in each of %d groups: %d", c->x.dim[1],
               c->w.dim[1], groups, c->w.dim[1] * groups);
  if (c->w.dim[0] % groups)
    return SAY(CUDNN_STATUS_BAD_PARAM, "the filter has %d output channels, which %d groups cannot share", c->w.dim[0],
               groups);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const Call *call, const Convolution *c, int quietly) {
  char first[100], second[100];
  const Tensor *tensors[] = {&c->x, &c->w, &c->y};
  static const char *const names[] = {"x", "w", "y"};
  for (int i = 0; i < 3; i++) {
    if (tensors[i]->rank == 0) return SAY(CUDNN_STATUS_BAD_PARAM, "the descriptor of %s was never set", names[i]);
    if (tensors[i]->rank != 4)
      return SAY(CUDNN_STATUS_NOT_SUPPORTED,
                 "%s has %d dimensions; the emulation's cuDNN convolves in 2, of tensors of 4", names[i],
                 tensors[i]->rank);
    if (tensors[i]->type != c->x.type)
      return SAY(CUDNN_STATUS_NOT_SUPPORTED, "x is of type %s, but %s of type %s", dnn_type_name(c->x.type), names[i],
                 dnn_type_name(tensors[i]->type));
  }
  if (c->x.type != CUDNN_DATA_FLOAT && c->x.type != CUDNN_DATA_HALF && c->x.type != CUDNN_DATA_BFLOAT16)
    return SAY(CUDNN_STATUS_NOT_SUPPORTED,
               "x is of type %s; the emulation's cuDNN computes in FLOAT, HALF and BFLOAT16", dnn_type_name(c->x.type));
  if (c->c.compute != CUDNN_DATA_FLOAT && c->c.compute != c->x.type)
    return SAY(CUDNN_STATUS_NOT_SUPPORTED, "computeType is %s with tensors of type %s; it must be FLOAT",
               dnn_type_name(c->c.compute), dnn_type_name(c->x.type));
  TRY(check_channels(call, c, quietly));
  const long long h = conv_out(c, 0), w = conv_out(c, 1);
  if (h < 1 || w < 1)
    return SAY(CUDNN_STATUS_BAD_PARAM, "the filter %s, dilated by %d x %d, is larger than x %s with padding %d x %d",
               dims_text(&c->w, first, sizeof first), c->c.dilation[0], c->c.dilation[1],
               dims_text(&c->x, second, sizeof second), c->c.padding[0], c->c.padding[1]);
  if (c->y.dim[0] != c->x.dim[0] || c->y.dim[1] != c->w.dim[0] || c->y.dim[2] != h || c->y.dim[3] != w)
    return SAY(CUDNN_STATUS_BAD_PARAM, "y is %s, but the convolution of x %s gives (%d,%d,%lld,%lld)",
               dims_text(&c->y, first, sizeof first), dims_text(&c->x, second, sizeof second), c->x.dim[0], c->w.dim[0],
               h, w);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t desc,
                                                    const cudnnTensorDescriptor_t x_desc,
                                                    const cudnnFilterDescriptor_t w_desc, int rank, int dim[]) {
  const int quietly = 1;
  const Call place = {.name = __func__}, *call = &place;
  if (!desc || !desc->set || !x_desc || !w_desc || !dim)
    return bad_here("a descriptor or the array is NULL, or a descriptor was never set");
  if (x_desc->t.rank != 4 || w_desc->t.rank != 4 || rank != 4)
    return bad_here("the input has %d dimensions, the filter %d, nbDims is %d: all must be 4", x_desc->t.rank,
                    w_desc->t.rank, rank);
  const Convolution c = {.x = x_desc->t, .w = w_desc->t, .c = *desc};
  TRY(check_channels(call, &c, quietly));
  dim[0] = c.x.dim[0];
  dim[1] = c.w.dim[0];
  for (int axis = 0; axis < 2; axis++) {
    dim[2 + axis] = (int)conv_out(&c, axis);
    if (dim[2 + axis] < 1) return bad_here("the filter is larger than the padded input along dimension %d", 2 + axis);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t desc,
                                                    const cudnnTensorDescriptor_t x_desc,
                                                    const cudnnFilterDescriptor_t w_desc, int *n, int *c, int *h,
                                                    int *w) {
  int dim[4] = {0};
  if (!n || !c || !h || !w) return bad_here("the place for n, c, h or w is NULL");
  TRY(cudnnGetConvolutionNdForwardOutputDim(desc, x_desc, w_desc, 4, dim));
  *n = dim[0], *c = dim[1], *h = dim[2], *w = dim[3];
  return CUDNN_STATUS_SUCCESS;
}

/* ---- the work ---- */

/* Operand i for oneDNN: float tensors as they lie, others as packed floats, and then *t is described so. */
static float *side_of(Call *call, int i, Tensor *t, int direct, int is_result, float **made) {
  *made = NULL;
  if (direct) return call->o[i].data;
  t->type = CUDNN_DATA_FLOAT;
  pack(t);
  if (is_result) return *made = work_memory(call, (size_t)element_count(t) * sizeof(float));
  return (float *)dense(call, i, made);
}

/* A true convolution walks through the filter from its end: (r,s) turned by 180 degrees, packed. */
static float *turned(const Call *call, const Tensor *w, const float *from) {
  float *to = work_memory(call, (size_t)element_count(w) * sizeof *to);
  const int r = w->dim[2], s = w->dim[3];
  for (long long plane = 0, planes = (long long)w->dim[0] * w->dim[1]; to && plane < planes; plane++)
    for (int i = 0; i < r * s; i++) to[plane * r * s + i] = from[plane * r * s + r * s - 1 - i];
  return to;
}

void convolve(Call *call, int x, int w, int y, float alpha, float beta) {
  Convolution c = call->convolution;
  const int index[3] = {x, w, y}, written = c.pass == FORWARD ? 2 : c.pass == BACKWARD_DATA ? 0 : 1;
  const int turns = c.c.mode == CUDNN_CONVOLUTION;
  Tensor *t[3] = {&c.x, &c.w, &c.y};
  float *data[3] = {0}, *made[3] = {0}, *turn = NULL;
  const char *why = NULL;
  int ready = 1;
  for (int i = 0; i < 3; i++) {
    const int is_float = call->o[index[i]].t.type == CUDNN_DATA_FLOAT;
    const int direct = is_float && !(turns && i == 1) && !(i == written && (alpha != 1 || beta != 0));
    data[i] = side_of(call, index[i], t[i], direct, i == written, &made[i]);
    ready = ready && data[i];
  }
  if (ready && turns && written != 1) {
    turn = turned(call, &c.w, data[1]);
    data[1] = turn;
    ready = turn != NULL;
  }
  if (ready && onednn_convolve(&c, data[0], data[1], data[2], &why) != 0) {
    simt_report_host("%s: %s", call->name, why);
    simt_error_sticky(cudaErrorLaunchFailure);
    ready = 0;
  }
  if (ready && turns && written == 1) ready = (data[1] = turn = turned(call, &c.w, data[1])) != NULL;
  if (ready && data[written] != call->o[index[written]].data) deliver(call, index[written], data[written], alpha, beta);
  for (int i = 0; i < 3; i++) free(made[i]);
  free(turn);
}

static void work_convolution(Call *call) { convolve(call, 0, 1, 2, call->alpha, call->beta); }

/* ---- calls ---- */

/* The tensors are operands 0, 1, 2 already: x, w, y as in the forward pass. */
static cudnnStatus_t set_call(Call *call, Pass pass, const cudnnConvolutionDescriptor_t desc, int algorithm,
                              const void *workspace, size_t bytes) {
  size_t needed;
  const char *why = "";
  if (!desc || !desc->set) return bad(call, "convDesc is NULL, or was never set");
  call->convolution = (Convolution){.pass = pass, .x = call->o[0].t, .w = call->o[1].t, .y = call->o[2].t, .c = *desc};
  TRY(check_convolution(call, &call->convolution, 0));
  const cudnnStatus_t status = algorithm_bytes(&call->convolution, algorithm, &needed, &why);
  if (status != CUDNN_STATUS_SUCCESS) return refuse(call, status, "%s", why);
  if (needed && !workspace) return bad(call, "workSpace is NULL, but the algorithm needs %zu bytes", needed);
  if (bytes < needed)
    return bad(call,
               "the workspace has %zu bytes, but the algorithm needs %zu: ask cudnnGetConvolution...WorkspaceSize()",
               bytes, needed);
  return needed ? add_bytes(call, "workSpace", workspace, needed, 1) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void *x, const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t desc, cudnnConvolutionFwdAlgo_t algorithm,
                                      void *workspace, size_t bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "w", w_desc, w, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(set_call(&call, FORWARD, desc, (int)algorithm, workspace, bytes));
  return submit(&call, work_convolution);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void *w,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const cudnnConvolutionDescriptor_t desc,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t bytes,
                                           const void *beta, const cudnnTensorDescriptor_t dx_desc, void *dx) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "dx", dx_desc, dx, 1);
  TENSOR(&call, "w", w_desc, w, 0);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TRY(set_call(&call, BACKWARD_DATA, desc, (int)algorithm, workspace, bytes));
  return submit(&call, work_convolution);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void *x,
                                             const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             const cudnnConvolutionDescriptor_t desc,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes,
                                             const void *beta, const cudnnFilterDescriptor_t dw_desc, void *dw) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "dw", dw_desc, dw, 1);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TRY(set_call(&call, BACKWARD_FILTER, desc, (int)algorithm, workspace, bytes));
  return submit(&call, work_convolution);
}

/* Operands dy, db. */
static void work_bias(Call *call) {
  float *made, *owned;
  const float *dy = dense(call, 0, &made);
  float *db = result(call, 1, call->alpha, call->beta, &owned);
  if (dy && db) {
    const Tensor *t = &call->o[0].t;
    const long long channels = t->dim[1], size = element_count(t) / t->dim[0] / channels;
    PARALLEL
    for (long long c = 0; c < channels; c++) {
      double sum = 0;
      for (long long n = 0; n < t->dim[0]; n++)
        for (long long i = 0; i < size; i++) sum += dy[(n * channels + c) * size + i];
      db[c] = (float)sum;
    }
    deliver(call, 1, db, call->alpha, call->beta);
  }
  free(made);
  free(owned);
}

/* 1,c,1,1 for operand y's c. */
static cudnnStatus_t need_channel_vector(Call *call, int vector, int y) {
  char first[100];
  const Tensor *t = &call->o[vector].t;
  if (t->rank == call->o[y].t.rank && element_count(t) == t->dim[1] && t->dim[1] == call->o[y].t.dim[1])
    return CUDNN_STATUS_SUCCESS;
  return bad(call, "%s is %s: it must be (1,%d,1,1), one number for each channel of %s", call->o[vector].name,
             dims_text(t, first, sizeof first), call->o[y].t.dim[1], call->o[y].name);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy, const void *beta,
                                           const cudnnTensorDescriptor_t db_desc, void *db) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "db", db_desc, db, 1);
  TRY(need_channel_vector(&call, 1, 0));
  TRY(need_same_type(&call, 0, 1));
  return submit(&call, work_bias);
}

/* Operands x, w, y, z, bias: y = f(alpha conv + alpha2 z + bias). */
static void work_fused(Call *call) {
  Call c = *call; /* the convolution alone, into packed floats */
  float *sums = work_memory(call, (size_t)element_count(&call->o[2].t) * sizeof *sums), *made[2] = {0}, *owned = NULL;
  if (!sums) return;
  c.o[2].t.type = CUDNN_DATA_FLOAT;
  pack(&c.o[2].t);
  c.o[2].data = sums;
  c.convolution.y = c.o[2].t;
  convolve(&c, 0, 1, 2, 1, 0);
  const float *z = call->alpha2 != 0 ? dense(call, 3, &made[0]) : NULL, *bias = dense(call, 4, &made[1]);
  float *y = result(call, 2, 1, 0, &owned);
  if (bias && y && (z || call->alpha2 == 0) && simt_error_pending() == cudaSuccess) {
    const Tensor *t = &call->o[2].t;
    const long long planes = (long long)t->dim[0] * t->dim[1], size = (long long)t->dim[2] * t->dim[3];
    PARALLEL
    for (long long plane = 0; plane < planes; plane++) {
      const float b = bias[plane % t->dim[1]];
      for (long long i = plane * size; i < (plane + 1) * size; i++)
        sums[i] = call->alpha * sums[i] + (z ? call->alpha2 * z[i] : 0) + b;
    }
    activate(&call->activation, sums, y, element_count(t));
    deliver(call, 2, y, 1, 0);
  }
  free(sums);
  for (int i = 0; i < 2; i++) free(made[i]);
  free(owned);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnFilterDescriptor_t w_desc, const void *w, const cudnnConvolutionDescriptor_t desc,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z_desc, const void *z, const cudnnTensorDescriptor_t bias_desc, const void *bias,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha1", alpha1, &call.alpha));
  TRY(factor_at(&call, "alpha2", alpha2, &call.alpha2));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "w", w_desc, w, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TENSOR(&call, "z", z_desc, z, 0);
  TENSOR(&call, "bias", bias_desc, bias, 0);
  TRY(need_same_dims(&call, 3, 2));
  TRY(need_channel_vector(&call, 4, 2));
  if (!activation || !activation->set) return bad(&call, "activationDesc is NULL, or was never set");
  if (activation->mode != CUDNN_ACTIVATION_RELU && activation->mode != CUDNN_ACTIVATION_IDENTITY)
    return not_supported(&call, "the activation must be CUDNN_ACTIVATION_RELU or CUDNN_ACTIVATION_IDENTITY");
  if (activation->mode == CUDNN_ACTIVATION_IDENTITY && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
    return not_supported(&call, "CUDNN_ACTIVATION_IDENTITY needs CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM");
  if (activation->nan != CUDNN_NOT_PROPAGATE_NAN)
    return not_supported(&call, "reluNanOpt of the activation must be CUDNN_NOT_PROPAGATE_NAN in this call");
  call.activation = *activation;
  TRY(set_call(&call, FORWARD, desc, (int)algorithm, workspace, bytes));
  return submit(&call, work_fused);
}

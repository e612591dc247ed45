/* activation.c - activations and softmax. */
#include "dnn.h"

/* ---- activations ---- */

static float activated(const struct cudnnActivationStruct *a, float x) {
  const float coef = (float)a->coef;
  switch (a->mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return 1 / (1 + expf(-x));
    case CUDNN_ACTIVATION_RELU:
      return x > 0 || (a->nan && isnan(x)) ? x : 0;
    case CUDNN_ACTIVATION_TANH:
      return tanhf(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      if (a->nan && isnan(x)) return x;
      return x > 0 ? fminf(x, coef) : 0;
    case CUDNN_ACTIVATION_ELU:
      return x > 0 ? x : coef * expm1f(x);
    case CUDNN_ACTIVATION_SWISH:
      return x / (1 + expf(-(float)a->swish_beta * x));
    default:
      return x;
  }
}

/* dy/dx from the x and the y of the forward pass. */
static float slope(const struct cudnnActivationStruct *a, float x, float y) {
  const float coef = (float)a->coef, beta = (float)a->swish_beta;
  switch (a->mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return y * (1 - y);
    case CUDNN_ACTIVATION_RELU:
      return x > 0;
    case CUDNN_ACTIVATION_TANH:
      return 1 - y * y;
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return x > 0 && x <= coef;
    case CUDNN_ACTIVATION_ELU:
      return x > 0 ? 1 : y + coef;
    case CUDNN_ACTIVATION_SWISH: {
      const float s = 1 / (1 + expf(-beta * x));
      return s + beta * x * s * (1 - s);
    }
    default:
      return 1;
  }
}

void activate(const struct cudnnActivationStruct *a, const float *x, float *y, long long count) {
  PARALLEL
  for (long long i = 0; i < count; i++) y[i] = activated(a, x[i]);
}

static void work_forward(Call *call) {
  float *made, *owned;
  const float *x = dense(call, 0, &made);
  float *y = result(call, 1, call->alpha, call->beta, &owned);
  if (x && y) activate(&call->activation, x, y, element_count(&call->o[0].t));
  if (x && y) deliver(call, 1, y, call->alpha, call->beta);
  free(made);
  free(owned);
}

static cudnnStatus_t set_activation(Call *call, cudnnActivationDescriptor_t desc) {
  if (!desc || !desc->set) return bad(call, "activationDesc is NULL, or was never set");
  if (desc->mode == CUDNN_ACTIVATION_IDENTITY)
    return bad(call, "CUDNN_ACTIVATION_IDENTITY is for cudnnConvolutionBiasActivationForward() alone");
  call->activation = *desc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t desc, const void *alpha,
                                     const cudnnTensorDescriptor_t x_desc, const void *x, const void *beta,
                                     const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(set_activation(&call, desc));
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(need_same_dims(&call, 0, 1));
  TRY(need_same_type(&call, 0, 1));
  if (x == y && memcmp(call.o[0].t.stride, call.o[1].t.stride, sizeof call.o[0].t.stride) != 0)
    return bad(&call, "x and y are the same memory, but their strides differ");
  return submit(&call, work_forward);
}

/* Operands y, dy, x, dx. */
static void work_backward(Call *call) {
  float *made[3], *owned;
  const float *y = dense(call, 0, &made[0]), *dy = dense(call, 1, &made[1]), *x = dense(call, 2, &made[2]);
  float *dx = result(call, 3, call->alpha, call->beta, &owned);
  if (y && dy && x && dx) {
    const long long count = element_count(&call->o[0].t);
    PARALLEL
    for (long long i = 0; i < count; i++) dx[i] = dy[i] * slope(&call->activation, x[i], y[i]);
    deliver(call, 3, dx, call->alpha, call->beta);
  }
  for (int i = 0; i < 3; i++) free(made[i]);
  free(owned);
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t desc, const void *alpha,
                                      const cudnnTensorDescriptor_t y_desc, const void *y,
                                      const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                      const cudnnTensorDescriptor_t x_desc, const void *x, const void *beta,
                                      const cudnnTensorDescriptor_t dx_desc, void *dx) {
  BEGIN(call);
  TRY(set_activation(&call, desc));
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "y", y_desc, y, 0);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "dx", dx_desc, dx, 1);
  for (int i = 1; i < 4; i++) {
    TRY(need_same_dims(&call, 0, i));
    TRY(need_same_type(&call, 0, i));
  }
  return submit(&call, work_backward);
}

/* ---- softmax ---- */

/* Element i of group g: first(g) + i * step. */
typedef struct Groups {
  long long groups, size, step, inner;
} Groups;

static Groups groups_of(const Tensor *t, int mode) {
  long long rest = element_count(t) / t->dim[0] / t->dim[1];
  if (mode == CUDNN_SOFTMAX_MODE_INSTANCE) return (Groups){t->dim[0], t->dim[1] * rest, 1, 1};
  return (Groups){t->dim[0] * rest, t->dim[1], rest, rest};
}

static long long first_of(const Groups *g, long long group) {
  return group / g->inner * (g->size * g->inner) + group % g->inner;
}

static void softmax_group(const float *x, float *y, long long size, long long step, int algorithm) {
  double sum = 0;
  float most = algorithm == CUDNN_SOFTMAX_FAST ? 0 : x[0];
  for (long long i = 1; i < size && algorithm != CUDNN_SOFTMAX_FAST; i++) {
    if (x[i * step] > most || isnan(x[i * step])) most = x[i * step];
  }
  for (long long i = 0; i < size; i++) {
    const float e = expf(x[i * step] - most);
    sum += e;
    if (algorithm != CUDNN_SOFTMAX_LOG) y[i * step] = e;
  }
  for (long long i = 0; i < size; i++)
    y[i * step] = algorithm == CUDNN_SOFTMAX_LOG ? (float)(x[i * step] - most - log(sum)) : (float)(y[i * step] / sum);
}

static void work_softmax(Call *call) {
  float *made, *owned;
  const float *x = dense(call, 0, &made);
  float *y = result(call, 1, call->alpha, call->beta, &owned);
  if (x && y) {
    const Groups g = groups_of(&call->o[0].t, call->mode);
    PARALLEL
    for (long long i = 0; i < g.groups; i++) {
      const long long at = first_of(&g, i);
      softmax_group(x + at, y + at, g.size, g.step, call->algorithm);
    }
    deliver(call, 1, y, call->alpha, call->beta);
  }
  free(made);
  free(owned);
}

static cudnnStatus_t set_softmax(Call *call, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode) {
  if ((unsigned)algorithm > CUDNN_SOFTMAX_LOG || (unsigned)mode > CUDNN_SOFTMAX_MODE_CHANNEL)
    return bad(call, "algo is %d, mode %d: one is none of its values", (int)algorithm, (int)mode);
  call->algorithm = (int)algorithm;
  call->mode = (int)mode;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                  const void *alpha, const cudnnTensorDescriptor_t x_desc, const void *x,
                                  const void *beta, const cudnnTensorDescriptor_t y_desc, void *y) {
  BEGIN(call);
  TRY(set_softmax(&call, algorithm, mode));
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(need_same_dims(&call, 0, 1));
  TRY(need_same_type(&call, 0, 1));
  return submit(&call, work_softmax);
}

/* Operands y, dy, dx. */
static void work_softmax_backward(Call *call) {
  float *made[2], *owned;
  const float *y = dense(call, 0, &made[0]), *dy = dense(call, 1, &made[1]);
  float *dx = result(call, 2, call->alpha, call->beta, &owned);
  if (y && dy && dx) {
    const Groups g = groups_of(&call->o[0].t, call->mode);
    const int is_log = call->algorithm == CUDNN_SOFTMAX_LOG;
    PARALLEL
    for (long long group = 0; group < g.groups; group++) {
      const long long at = first_of(&g, group), end = at + g.size * g.step;
      double sum = 0;
      for (long long i = at; i < end; i += g.step) sum += is_log ? dy[i] : (double)dy[i] * y[i];
      for (long long i = at; i < end; i += g.step)
        dx[i] = is_log ? (float)(dy[i] - exp(y[i]) * sum) : (float)((dy[i] - sum) * y[i]);
    }
    deliver(call, 2, dx, call->alpha, call->beta);
  }
  for (int i = 0; i < 2; i++) free(made[i]);
  free(owned);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                   const void *alpha, const cudnnTensorDescriptor_t y_desc, const void *y,
                                   const cudnnTensorDescriptor_t dy_desc, const void *dy, const void *beta,
                                   const cudnnTensorDescriptor_t dx_desc, void *dx) {
  BEGIN(call);
  TRY(set_softmax(&call, algorithm, mode));
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "y", y_desc, y, 0);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "dx", dx_desc, dx, 1);
  for (int i = 1; i < 3; i++) {
    TRY(need_same_dims(&call, 0, i));
    TRY(need_same_type(&call, 0, i));
  }
  return submit(&call, work_softmax_backward);
}

/* batch_norm.c - batch normalization: a feature's elements are those of one channel or, per activation, those at one
 * place of all images. In packed floats: element (n, feature, s) at (n * features + feature) * size + s. */
#include "dnn.h"

typedef struct Features {
  long long images, features, size;
} Features;

static Features features_of(const Tensor *t, int mode) {
  const long long image = element_count(t) / t->dim[0];
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) return (Features){t->dim[0], image, 1};
  return (Features){t->dim[0], t->dim[1], image / t->dim[1]};
}

/* For each element of feature f: `at` is its index. */
#define EACH(d, f, at)                          \
  for (long long n_ = 0; n_ < (d).images; n_++) \
    for (long long at = (n_ * (d).features + (f)) * (d).size, end_ = at + (d).size; at < end_; at++)

/* In double, in two passes. */
static void statistics(const Features *d, const float *x, long long f, double *mean, double *variance) {
  double sum = 0, squares = 0;
  EACH(*d, f, at) sum += x[at];
  *mean = sum / (double)(d->images * d->size);
  EACH(*d, f, at) squares += (x[at] - *mean) * (x[at] - *mean);
  *variance = squares / (double)(d->images * d->size);
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, const cudnnTensorDescriptor_t x_desc,
                                            cudnnBatchNormMode_t mode) {
  if (!derived || !x_desc) return bad_here("a descriptor is NULL");
  if (x_desc->t.rank == 0) return bad_here("xDesc was created, but never set");
  if ((unsigned)mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT) return bad_here("mode is %d: it must be 0 to 2", (int)mode);
  if (x_desc->t.rank < 4 || x_desc->t.rank > 5)
    return bad_here("xDesc has %d dimensions: they must be 4 or 5", x_desc->t.rank);
  Tensor t = x_desc->t;
  if (t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16) t.type = CUDNN_DATA_FLOAT;
  t.dim[0] = 1;
  for (int i = 2; i < t.rank && mode != CUDNN_BATCHNORM_PER_ACTIVATION; i++) t.dim[i] = 1;
  pack(&t);
  derived->t = t;
  return CUDNN_STATUS_SUCCESS;
}

/* Operand x is the first; its parameters' descriptor must be the derived one. */
static cudnnStatus_t set_mode(Call *call, cudnnBatchNormMode_t mode, double epsilon,
                              const cudnnTensorDescriptor_t parameters) {
  struct cudnnTensorStruct x = {call->o[0].t}, derived = {{0}};
  char first[100], second[100];
  if ((unsigned)mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT) return bad(call, "mode is %d: it must be 0 to 2", (int)mode);
  if (x.t.rank < 4 || x.t.rank > 5) return bad(call, "x has %d dimensions: they must be 4 or 5", x.t.rank);
  if (!(epsilon >= CUDNN_BN_MIN_EPSILON)) return bad(call, "epsilon is %g: it must not be negative", epsilon);
  TRY(cudnnDeriveBNTensorDescriptor(&derived, &x, mode));
  if (!parameters || parameters->t.rank == 0)
    return bad(call, "the descriptor of the parameters is NULL, or never set");
  if (!same_dims(&derived.t, &parameters->t) || parameters->t.type != CUDNN_DATA_FLOAT || !is_packed(&parameters->t))
    return bad(call,
               "the parameters are %s of type %s: for this mode and x they are %s, packed, of type FLOAT; "
               "cudnnDeriveBNTensorDescriptor() makes the descriptor",
               dims_text(&parameters->t, first, sizeof first), dnn_type_name(parameters->t.type),
               dims_text(&derived.t, second, sizeof second));
  call->mode = (int)mode;
  call->epsilon = epsilon;
  return CUDNN_STATUS_SUCCESS;
}

/* Optional arrays come in pairs: their place stays, without data. */
static cudnnStatus_t add_pair(Call *call, const char *first, const char *second, const cudnnTensorDescriptor_t desc,
                              const void *a, const void *b, int written) {
  if (!a != !b)
    return bad(call, "%s is %s, but %s is not: give both or neither", a ? second : first, "NULL", a ? first : second);
  if (a) {
    TENSOR(call, first, desc, a, written);
    TENSOR(call, second, desc, b, written);
  } else {
    call->o[call->operands++] = (Operand){.name = first, .t = desc->t};
    call->o[call->operands++] = (Operand){.name = second, .t = desc->t};
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- forward ---- */

enum { X, Y, SCALE, BIAS, RUNNING_MEAN, RUNNING_VARIANCE, SAVED_MEAN, SAVED_INVERSE };

static void normalize(const Features *d, long long f, const float *x, float *y, double mean, double inverse,
                      double scale, double bias) {
  EACH(*d, f, at) y[at] = (float)(scale * ((x[at] - mean) * inverse) + bias);
}

static void work_training(Call *call) {
  float *made, *owned;
  const float *x = dense(call, X, &made), *scale = call->o[SCALE].data, *bias = call->o[BIAS].data;
  float *y = result(call, Y, call->alpha, call->beta, &owned);
  if (x && y) {
    const Features d = features_of(&call->o[X].t, call->mode);
    const double count = (double)(d.images * d.size), unbiased = count > 1 ? count / (count - 1) : 1;
    float *running_mean = call->o[RUNNING_MEAN].data, *running_variance = call->o[RUNNING_VARIANCE].data;
    float *saved_mean = call->o[SAVED_MEAN].data, *saved_inverse = call->o[SAVED_INVERSE].data;
    PARALLEL
    for (long long f = 0; f < d.features; f++) {
      double mean, variance;
      statistics(&d, x, f, &mean, &variance);
      const double inverse = 1 / sqrt(variance + call->epsilon);
      normalize(&d, f, x, y, mean, inverse, scale[f], bias[f]);
      if (saved_mean) saved_mean[f] = (float)mean, saved_inverse[f] = (float)inverse;
      if (!running_mean) continue;
      const double old =
          call->factor == 1 ? 0 : 1 - call->factor; /* with 1 the old numbers, whatever they are, vanish */
      running_mean[f] = (float)(call->factor * mean + (old != 0 ? old * running_mean[f] : 0));
      running_variance[f] = (float)(call->factor * variance * unbiased + (old != 0 ? old * running_variance[f] : 0));
    }
    deliver(call, Y, y, call->alpha, call->beta);
  }
  free(made);
  free(owned);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
                                                     const void *beta, const cudnnTensorDescriptor_t x_desc,
                                                     const void *x, const cudnnTensorDescriptor_t y_desc, void *y,
                                                     const cudnnTensorDescriptor_t parameters, const void *scale,
                                                     const void *bias, double factor, void *running_mean,
                                                     void *running_variance, double epsilon, void *saved_mean,
                                                     void *saved_inverse) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(set_mode(&call, mode, epsilon, parameters));
  TRY(need_same_dims(&call, X, Y));
  TRY(need_same_type(&call, X, Y));
  TENSOR(&call, "bnScale", parameters, scale, 0);
  TENSOR(&call, "bnBias", parameters, bias, 0);
  TRY(add_pair(&call, "resultRunningMean", "resultRunningVariance", parameters, running_mean, running_variance, 1));
  TRY(add_pair(&call, "resultSaveMean", "resultSaveInvVariance", parameters, saved_mean, saved_inverse, 1));
  if (running_mean && !(factor >= 0 && factor <= 1))
    return bad(&call, "exponentialAverageFactor is %g: it must be 0 to 1", factor);
  call.factor = factor;
  return submit(&call, work_training);
}

static void work_inference(Call *call) {
  float *made, *owned;
  const float *x = dense(call, X, &made), *scale = call->o[SCALE].data, *bias = call->o[BIAS].data;
  const float *mean = call->o[RUNNING_MEAN].data, *variance = call->o[RUNNING_VARIANCE].data;
  float *y = result(call, Y, call->alpha, call->beta, &owned);
  if (x && y) {
    const Features d = features_of(&call->o[X].t, call->mode);
    PARALLEL
    for (long long f = 0; f < d.features; f++)
      normalize(&d, f, x, y, mean[f], 1 / sqrt(variance[f] + call->epsilon), scale[f], bias[f]);
    deliver(call, Y, y, call->alpha, call->beta);
  }
  free(made);
  free(owned);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                      const void *alpha, const void *beta,
                                                      const cudnnTensorDescriptor_t x_desc, const void *x,
                                                      const cudnnTensorDescriptor_t y_desc, void *y,
                                                      const cudnnTensorDescriptor_t parameters, const void *scale,
                                                      const void *bias, const void *mean, const void *variance,
                                                      double epsilon) {
  BEGIN(call);
  TRY(factor_at(&call, "alpha", alpha, &call.alpha));
  TRY(factor_at(&call, "beta", beta, &call.beta));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "y", y_desc, y, 1);
  TRY(set_mode(&call, mode, epsilon, parameters));
  TRY(need_same_dims(&call, X, Y));
  TRY(need_same_type(&call, X, Y));
  TENSOR(&call, "bnScale", parameters, scale, 0);
  TENSOR(&call, "bnBias", parameters, bias, 0);
  TENSOR(&call, "estimatedMean", parameters, mean, 0);
  TENSOR(&call, "estimatedVariance", parameters, variance, 0);
  return submit(&call, work_inference);
}

/* ---- backward ---- */

enum { B_X, B_DY, B_DX, B_SCALE, B_DSCALE, B_DBIAS, B_MEAN, B_INVERSE };

/* dx = scale / sd (dy - mean(dy) - xhat mean(dy xhat)) */
static void work_backward(Call *call) {
  float *made[2], *owned;
  const float *x = dense(call, B_X, &made[0]), *dy = dense(call, B_DY, &made[1]), *scale = call->o[B_SCALE].data;
  const float *saved_mean = call->o[B_MEAN].data, *saved_inverse = call->o[B_INVERSE].data;
  float *dx = result(call, B_DX, call->alpha, call->beta, &owned);
  float *dscale = call->o[B_DSCALE].data, *dbias = call->o[B_DBIAS].data;
  if (x && dy && dx) {
    const Features d = features_of(&call->o[B_X].t, call->mode);
    const double count = (double)(d.images * d.size);
    PARALLEL
    for (long long f = 0; f < d.features; f++) {
      double mean = saved_mean ? saved_mean[f] : 0, inverse = saved_inverse ? saved_inverse[f] : 0, variance;
      if (!saved_mean) {
        statistics(&d, x, f, &mean, &variance);
        inverse = 1 / sqrt(variance + call->epsilon);
      }
      double sum = 0, product = 0;
      EACH(d, f, at) {
        sum += dy[at];
        product += dy[at] * ((x[at] - mean) * inverse);
      }
      EACH(d, f, at)
      dx[at] = (float)(scale[f] * inverse * (dy[at] - sum / count - (x[at] - mean) * inverse * (product / count)));
      dscale[f] = (float)(call->alpha2 * product + (call->beta2 != 0 ? call->beta2 * dscale[f] : 0));
      dbias[f] = (float)(call->alpha2 * sum + (call->beta2 != 0 ? call->beta2 * dbias[f] : 0));
    }
    deliver(call, B_DX, dx, call->alpha, call->beta);
  }
  for (int i = 0; i < 2; i++) free(made[i]);
  free(owned);
}

cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha_data,
                                              const void *beta_data, const void *alpha_parameters,
                                              const void *beta_parameters, const cudnnTensorDescriptor_t x_desc,
                                              const void *x, const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                              const cudnnTensorDescriptor_t dx_desc, void *dx,
                                              const cudnnTensorDescriptor_t parameters, const void *scale, void *dscale,
                                              void *dbias, double epsilon, const void *saved_mean,
                                              const void *saved_inverse) {
  BEGIN(call);
  TRY(factor_at(&call, "alphaDataDiff", alpha_data, &call.alpha));
  TRY(factor_at(&call, "betaDataDiff", beta_data, &call.beta));
  TRY(factor_at(&call, "alphaParamDiff", alpha_parameters, &call.alpha2));
  TRY(factor_at(&call, "betaParamDiff", beta_parameters, &call.beta2));
  TENSOR(&call, "x", x_desc, x, 0);
  TENSOR(&call, "dy", dy_desc, dy, 0);
  TENSOR(&call, "dx", dx_desc, dx, 1);
  TRY(set_mode(&call, mode, epsilon, parameters));
  for (int i = 1; i < 3; i++) {
    TRY(need_same_dims(&call, B_X, i));
    TRY(need_same_type(&call, B_X, i));
  }
  if (x == dx) return bad(&call, "x and dx are the same memory: dx may only be that of dy");
  TENSOR(&call, "bnScale", parameters, scale, 0);
  TENSOR(&call, "dBnScaleResult", parameters, dscale, 1);
  TENSOR(&call, "dBnBiasResult", parameters, dbias, 1);
  TRY(add_pair(&call, "savedMean", "savedInvVariance", parameters, saved_mean, saved_inverse, 0));
  return submit(&call, work_backward);
}

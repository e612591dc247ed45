/* batch_norm_cudnn.cuh - cuDNN's batch norm in training, with its ReLU as a second call: what the lesson compares with.
 * Mode SPATIAL, which takes two passes for the statistics as ours do. The ReLU of backward needs y, which the lesson
 * does not have; it reads x instead. So this is timed, and its results are not checked. */
#ifndef PHASE3_CNN_BATCH_NORM_CUDNN_CUH
#define PHASE3_CNN_BATCH_NORM_CUDNN_CUH

#include "common/check_cudnn.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

#if CUDNN_COMPILED

typedef struct BatchNormCudnn {
  const Cudnn *dnn;
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, channels;
  cudnnActivationDescriptor_t relu;
} BatchNormCudnn;

/* A tensor of a call; the handle and the descriptors are made once. */
static inline const BatchNormCudnn *batch_norm_cudnn(const BatchNorm2d *b) {
  static BatchNormCudnn c;
  if (c.handle == NULL) {
    Error err;
    c.dnn = cudnn_load(&err);
    if (c.dnn == NULL) die("%s", err.message);
    c.handle = cudnn_handle(c.dnn);
    CUDNN_CHECK(c.dnn, c.dnn->cudnnCreateTensorDescriptor(&c.x));
    CUDNN_CHECK(c.dnn, c.dnn->cudnnCreateTensorDescriptor(&c.channels));
    CUDNN_CHECK(c.dnn, c.dnn->cudnnCreateActivationDescriptor(&c.relu));
    CUDNN_CHECK(c.dnn, c.dnn->cudnnSetActivationDescriptor(c.relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }
  CUDNN_CHECK(c.dnn, c.dnn->cudnnSetTensor4dDescriptor(c.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, b->shape.n, b->shape.c,
                                                       b->shape.pixels, 1));
  CUDNN_CHECK(c.dnn, c.dnn->cudnnDeriveBNTensorDescriptor(c.channels, c.x, CUDNN_BATCHNORM_SPATIAL));
  return &c;
}

static inline void batch_norm_forward_cudnn(const BatchNorm2d *b) {
  const BatchNormCudnn *c = batch_norm_cudnn(b);
  const float one = 1, zero = 0;
  CUDNN_CHECK(c->dnn, c->dnn->cudnnBatchNormalizationForwardTraining(
                          c->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, c->x, b->x, c->x, b->y, c->channels,
                          b->gamma, b->beta, (double)BATCH_NORM_MOMENTUM, b->new_mean, b->new_var,
                          (double)BATCH_NORM_EPSILON, b->mean, b->inv_std));
  if (b->after == BATCH_NORM_RELU)
    CUDNN_CHECK(c->dnn, c->dnn->cudnnActivationForward(c->handle, c->relu, &one, c->x, b->y, &zero, c->x, b->y));
}

static inline void batch_norm_backward_cudnn(const BatchNorm2d *b) {
  const BatchNormCudnn *c = batch_norm_cudnn(b);
  const float one = 1, zero = 0, *dy = b->dy;
  if (b->after == BATCH_NORM_RELU) {
    CUDNN_CHECK(c->dnn, c->dnn->cudnnActivationBackward(c->handle, c->relu, &one, c->x, b->x, c->x, b->dy, c->x, b->x,
                                                        &zero, c->x, b->dx));
    dy = b->dx;
  }
  CUDNN_CHECK(c->dnn, c->dnn->cudnnBatchNormalizationBackward(c->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one,
                                                              &zero, c->x, b->x, c->x, dy, c->x, b->dx, c->channels,
                                                              b->gamma, b->dgamma, b->dbeta, (double)BATCH_NORM_EPSILON,
                                                              b->mean, b->inv_std));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE3_CNN_BATCH_NORM_CUDNN_CUH */

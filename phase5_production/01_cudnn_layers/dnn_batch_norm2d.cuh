/* dnn_batch_norm2d.cuh - batch norm by cuDNN, in training, in evaluation, and its gradients. The arrays are those of
 * BatchNorm2d (phase3_cnn/10_batch_norm/batch_norm2d.cuh), so that it takes the place of ours.
 *
 * The mode SPATIAL has one mean per channel, as layers of a convolutional network want it; PER_ACTIVATION would have
 * one per channel and pixel. The statistics have a descriptor of their own, (1,C,1,1), which cuDNN derives from that of
 * x. What cuDNN saves is what ours saves: the mean, and 1 / sqrt(variance + epsilon). Its running variance is that of
 * the sample, m / (m - 1) times the batch's, as PyTorch's and ours. ReLU and a sum behind it are calls of their own. */
#ifndef PHASE5_PRODUCTION_DNN_BATCH_NORM2D_CUH
#define PHASE5_PRODUCTION_DNN_BATCH_NORM2D_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"
#include "phase5_production/01_cudnn_layers/dnn_handle.cuh"

#if CUDNN_COMPILED

typedef struct DnnBatchNorm2d {
  Dnn dnn;
  int batch, channels, pixels;
  cudnnTensorDescriptor_t x, channel;
} DnnBatchNorm2d;

static inline void dnn_batch_norm2d_batch(DnnBatchNorm2d *n, int batch) {
  if (n->batch == batch) return;
  n->batch = batch;
  dnn_tensor_set(&n->dnn, n->x, dnn_tensor_nchw(batch, n->channels, 1, n->pixels));
  CUDNN_CHECK(n->dnn.api, n->dnn.api->cudnnDeriveBNTensorDescriptor(n->channel, n->x, CUDNN_BATCHNORM_SPATIAL));
}

static inline void dnn_batch_norm2d_open(DnnBatchNorm2d *n, const Dnn *dnn, BatchNorm2dShape s) {
  memset(n, 0, sizeof *n);
  n->dnn = *dnn;
  n->channels = s.c;
  n->pixels = s.pixels;
  n->x = dnn_tensor(dnn);
  n->channel = dnn_tensor(dnn);
  dnn_batch_norm2d_batch(n, s.n);
}

static inline void dnn_batch_norm2d_close(DnnBatchNorm2d *n) {
  if (n->dnn.api == NULL) return;
  dnn_tensor_close(&n->dnn, n->x);
  dnn_tensor_close(&n->dnn, n->channel);
  memset(n, 0, sizeof *n);
}

/* b->new_mean and b->new_var hold the running statistics, which are changed in place: old_ and new_ are one array. */
static inline void dnn_batch_norm2d_forward(const DnnBatchNorm2d *n, const BatchNorm2d *b) {
  const Cudnn *api = n->dnn.api;
  const float one = 1, zero = 0;
  CUDNN_CHECK(api, api->cudnnBatchNormalizationForwardTraining(n->dnn.handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                               n->x, b->x, n->x, b->y, n->channel, b->gamma, b->beta,
                                                               (double)BATCH_NORM_MOMENTUM, b->new_mean, b->new_var,
                                                               (double)BATCH_NORM_EPSILON, b->mean, b->inv_std));
}

/* By the running statistics. */
static inline void dnn_batch_norm2d_evaluate(const DnnBatchNorm2d *n, const BatchNorm2d *b) {
  const Cudnn *api = n->dnn.api;
  const float one = 1, zero = 0;
  CUDNN_CHECK(api, api->cudnnBatchNormalizationForwardInference(n->dnn.handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero,
                                                                n->x, b->x, n->x, b->y, n->channel, b->gamma, b->beta,
                                                                b->old_mean, b->old_var, (double)BATCH_NORM_EPSILON));
}

/* All three of dx, dgamma and dbeta. It has two pairs of alpha and beta: for dx, and for the other two. */
static inline void dnn_batch_norm2d_backward(const DnnBatchNorm2d *n, const BatchNorm2d *b) {
  const Cudnn *api = n->dnn.api;
  const float one = 1, zero = 0;
  CUDNN_CHECK(
      api, api->cudnnBatchNormalizationBackward(n->dnn.handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, n->x,
                                                b->x, n->x, b->dy, n->x, b->dx, n->channel, b->gamma, b->dgamma,
                                                b->dbeta, (double)BATCH_NORM_EPSILON, b->mean, b->inv_std));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_BATCH_NORM2D_CUH */

/* dnn_activation.cuh - ReLU, sigmoid and tanh, and the sum of two arrays, by cuDNN.
 *
 *     y = f(x), dx = dy f'(x)     cudnnActivationForward, cudnnActivationBackward
 *     y = a + b                   cudnnOpTensor
 *
 * cudnnActivationBackward() asks for x, y and dy. The derivative of each of the three follows from y alone, and y may
 * be passed in the place of x: where x > 0, y > 0, so ReLU's does, too. So x need not be kept, and forward may
 * overwrite it. cuDNN has no leaky ReLU. */
#ifndef PHASE5_PRODUCTION_DNN_ACTIVATION_CUH
#define PHASE5_PRODUCTION_DNN_ACTIVATION_CUH

#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase5_production/01_cudnn_layers/dnn_handle.cuh"

#if CUDNN_COMPILED

/* Element by element: the arrays of a batch, as n images of `count` numbers. */
typedef struct DnnElements {
  Dnn dnn;
  int batch, count;
  cudnnTensorDescriptor_t tensor;
  cudnnActivationDescriptor_t activation;
  cudnnOpTensorDescriptor_t sum;
} DnnElements;

static inline void dnn_elements_batch(DnnElements *e, int batch) {
  if (e->batch == batch) return;
  e->batch = batch;
  dnn_tensor_set(&e->dnn, e->tensor, dnn_tensor_nchw(batch, 1, 1, e->count));
}

static inline void dnn_elements_open(DnnElements *e, const Dnn *dnn, int batch, int count) {
  memset(e, 0, sizeof *e);
  e->dnn = *dnn;
  e->count = count;
  e->tensor = dnn_tensor(dnn);
  dnn_elements_batch(e, batch);
}

/* kind: not ACTIVATION_LEAKY_RELU. */
static inline void dnn_activation_open(DnnElements *e, const Dnn *dnn, Activation kind, int batch, int count) {
  const cudnnActivationMode_t mode = kind == ACTIVATION_RELU      ? CUDNN_ACTIVATION_RELU
                                     : kind == ACTIVATION_SIGMOID ? CUDNN_ACTIVATION_SIGMOID
                                                                  : CUDNN_ACTIVATION_TANH;
  dnn_elements_open(e, dnn, batch, count);
  CUDNN_CHECK(dnn->api, dnn->api->cudnnCreateActivationDescriptor(&e->activation));
  CUDNN_CHECK(dnn->api, dnn->api->cudnnSetActivationDescriptor(e->activation, mode, CUDNN_PROPAGATE_NAN, 0));
}

static inline void dnn_sum_open(DnnElements *e, const Dnn *dnn, int batch, int count) {
  dnn_elements_open(e, dnn, batch, count);
  CUDNN_CHECK(dnn->api, dnn->api->cudnnCreateOpTensorDescriptor(&e->sum));
  CUDNN_CHECK(dnn->api,
              dnn->api->cudnnSetOpTensorDescriptor(e->sum, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
}

static inline void dnn_elements_close(DnnElements *e) {
  const Cudnn *api = e->dnn.api;
  if (api == NULL) return;
  if (e->activation) CUDNN_CHECK(api, api->cudnnDestroyActivationDescriptor(e->activation));
  if (e->sum) CUDNN_CHECK(api, api->cudnnDestroyOpTensorDescriptor(e->sum));
  dnn_tensor_close(&e->dnn, e->tensor);
  memset(e, 0, sizeof *e);
}

/* y may be x. */
static inline void dnn_activation_forward(const DnnElements *e, float *y, const float *x) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(e->dnn.api, e->dnn.api->cudnnActivationForward(e->dnn.handle, e->activation, &one, e->tensor, x, &zero,
                                                             e->tensor, y));
}

/* dx may be dy. */
static inline void dnn_activation_backward(const DnnElements *e, float *dx, const float *dy, const float *y) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(e->dnn.api, e->dnn.api->cudnnActivationBackward(e->dnn.handle, e->activation, &one, e->tensor, y,
                                                              e->tensor, dy, e->tensor, y, &zero, e->tensor, dx));
}

/* y may be a. */
static inline void dnn_sum_forward(const DnnElements *e, float *y, const float *a, const float *b) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(e->dnn.api, e->dnn.api->cudnnOpTensor(e->dnn.handle, e->sum, &one, e->tensor, a, &one, e->tensor, b,
                                                    &zero, e->tensor, y));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_ACTIVATION_CUH */

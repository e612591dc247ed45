/* residual_cudnn.cuh - the same by cuDNN: cudnnOpTensor() for the sum, cudnnActivationForward() and -Backward() for
 * ReLU, and a device copy for the second gradient. One call that does both is in none of its older functions. */
#ifndef PHASE3_CNN_RESIDUAL_CUDNN_CUH
#define PHASE3_CNN_RESIDUAL_CUDNN_CUH

#include "common/check_cudnn.h"
#include "phase3_cnn/11_residual/residual.cuh"

#if CUDNN_COMPILED

typedef struct ResidualCudnn {
  const Cudnn *dnn;
  cudnnHandle_t handle;
  cudnnOpTensorDescriptor_t add;
  cudnnActivationDescriptor_t relu;
} ResidualCudnn;

/* One for each host thread, made in its first call, which is not timed; NULL where there is no cuDNN. */
static inline const ResidualCudnn *residual_cudnn(Error *err) {
  static __thread ResidualCudnn c;
  if (c.dnn != NULL) return &c;
  const Cudnn *dnn = cudnn_load(err);
  if (dnn == NULL) return NULL;
  c.handle = cudnn_handle(dnn);
  CUDNN_CHECK(dnn, dnn->cudnnCreateOpTensorDescriptor(&c.add));
  CUDNN_CHECK(dnn, dnn->cudnnCreateActivationDescriptor(&c.relu));
  CUDNN_CHECK(dnn, dnn->cudnnSetOpTensorDescriptor(c.add, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
  CUDNN_CHECK(dnn, dnn->cudnnSetActivationDescriptor(c.relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  c.dnn = dnn;
  return &c;
}

/* Images of 64 x 32 x 32 where n allows it: what cuDNN is made for. */
static inline cudnnTensorDescriptor_t residual_cudnn_tensor(const Cudnn *dnn, size_t n) {
  cudnnTensorDescriptor_t tensor;
  const int images = n % 65536 == 0;
  CUDNN_CHECK(dnn, dnn->cudnnCreateTensorDescriptor(&tensor));
  CUDNN_CHECK(
      dnn, dnn->cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images ? (int)(n / 65536) : 1,
                                           images ? 64 : 1, images ? 32 : 1, images ? 32 : (int)n));
  return tensor;
}

static inline void add_relu_forward_cudnn(float *y, const float *a, const float *b, size_t n) {
  const float one = 1, zero = 0;
  Error err;
  if (n == 0) return;
  const ResidualCudnn *c = residual_cudnn(&err);
  if (c == NULL) die("%s", err.message);
  const Cudnn *dnn = c->dnn;
  const cudnnTensorDescriptor_t t = residual_cudnn_tensor(dnn, n);
  CUDNN_CHECK(dnn, dnn->cudnnOpTensor(c->handle, c->add, &one, t, a, &one, t, b, &zero, t, y));
  CUDNN_CHECK(dnn, dnn->cudnnActivationForward(c->handle, c->relu, &one, t, y, &zero, t, y));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyTensorDescriptor(t));
}

/* cuDNN asks for x, too; ReLU's gradient follows from y, which serves in its place. */
static inline void add_relu_backward_cudnn(float *da, float *db, const float *dy, const float *y, size_t n) {
  const float one = 1, zero = 0;
  Error err;
  if (n == 0) return;
  const ResidualCudnn *c = residual_cudnn(&err);
  if (c == NULL) die("%s", err.message);
  const Cudnn *dnn = c->dnn;
  const cudnnTensorDescriptor_t t = residual_cudnn_tensor(dnn, n);
  CUDNN_CHECK(dnn, dnn->cudnnActivationBackward(c->handle, c->relu, &one, t, y, t, dy, t, y, &zero, t, da));
  if (db != da) CUDA_CHECK(cudaMemcpyAsync(db, da, n * sizeof *db, cudaMemcpyDeviceToDevice));
  CUDNN_CHECK(dnn, dnn->cudnnDestroyTensorDescriptor(t));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE3_CNN_RESIDUAL_CUDNN_CUH */

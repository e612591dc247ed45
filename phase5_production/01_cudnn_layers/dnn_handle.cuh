/* dnn_handle.cuh - cuDNN's handle and the descriptors of tensors and activations: what all of dnn_*.cuh share.
 *
 *     Dnn dnn;
 *     if (dnn_open(&dnn, &err) != 0) ...          // there is no cuDNN; the sentence says what to do
 *     cudnnTensorDescriptor_t x = dnn_tensor(&dnn);
 *     dnn_tensor_set(&dnn, x, dnn_tensor_nchw(64, 3, 32, 32));
 *     ...
 *     CUDNN_CHECK(dnn.api, dnn.api->cudnnDestroyTensorDescriptor(x));
 *     dnn_close(&dnn);
 *
 * A handle belongs to one GPU and is used by one host thread at a time. Its kernels go to the stream of the thread that
 * calls, cudaStreamPerThread, where ours go too. */
#ifndef PHASE5_PRODUCTION_DNN_HANDLE_CUH
#define PHASE5_PRODUCTION_DNN_HANDLE_CUH

#include "common/check.h"
#include "common/check_cudnn.h"
#include "phase5_production/01_cudnn_layers/dnn_describe.cuh"

#if CUDNN_COMPILED

typedef struct Dnn {
  const Cudnn *api;
  cudnnHandle_t handle;
} Dnn;

static inline int dnn_open(Dnn *dnn, Error *err) {
  dnn->api = cudnn_load(err);
  if (dnn->api == NULL) return -1;
  dnn->handle = cudnn_handle(dnn->api);
  return 0;
}

static inline void dnn_close(Dnn *dnn) {
  if (dnn->api) CUDNN_CHECK(dnn->api, dnn->api->cudnnDestroy(dnn->handle));
  dnn->api = NULL;
}

static inline cudnnTensorDescriptor_t dnn_tensor(const Dnn *dnn) {
  cudnnTensorDescriptor_t tensor;
  CUDNN_CHECK(dnn->api, dnn->api->cudnnCreateTensorDescriptor(&tensor));
  return tensor;
}

static inline void dnn_tensor_close(const Dnn *dnn, cudnnTensorDescriptor_t tensor) {
  if (tensor) CUDNN_CHECK(dnn->api, dnn->api->cudnnDestroyTensorDescriptor(tensor));
}

/* float32 */
static inline void dnn_tensor_set(const Dnn *dnn, cudnnTensorDescriptor_t tensor, DnnTensor t) {
  CUDNN_CHECK(dnn->api,
              dnn->api->cudnnSetTensor4dDescriptorEx(tensor, CUDNN_DATA_FLOAT, t.dim[0], t.dim[1], t.dim[2], t.dim[3],
                                                     t.stride[0], t.stride[1], t.stride[2], t.stride[3]));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_HANDLE_CUH */

/* dnn_pool2d.cuh - max and average pooling by cuDNN: x (N,C,H,W) -> y (N,C,P,Q).
 *
 * cuDNN keeps no argmax: cudnnPoolingBackward() reads x, y and dy, and looks for the largest element again. So a
 * network that pools by cuDNN keeps x and y from forward to backward, where ours keeps a byte per output. For averages
 * both are arguments that it does not look at: dx and dy stand in their place. CUDNN_POOLING_MAX_DETERMINISTIC gives
 * the gradient of overlapping windows without atomic additions.
 *
 * It has no dilation and no ceil_mode. */
#ifndef PHASE5_PRODUCTION_DNN_POOL2D_CUH
#define PHASE5_PRODUCTION_DNN_POOL2D_CUH

#include "phase3_cnn/09_pooling/pool2d_shape.cuh"
#include "phase5_production/01_cudnn_layers/dnn_handle.cuh"

typedef enum DnnPool { DNN_POOL_MAX, DNN_POOL_MEAN, DNN_POOL_MEAN_WITH_PADDING } DnnPool;

static inline int dnn_pool2d_check(Pool2dShape s, Error *err) {
  if (s.dilation_h != 1 || s.dilation_w != 1)
    return error_set(err, "cuDNN pools windows without dilation alone, and these have %d x %d", s.dilation_h,
                     s.dilation_w);
  if (s.ceil_mode)
    return error_set(err, "cuDNN has no ceil_mode: its pooling leaves out a last window that is not full");
  return 0;
}

/* Windows as large as a plane of so many pixels, which is taken for a square where it can be one. */
static inline Pool2dShape dnn_pool2d_plane(int n, int channels, int pixels) {
  const int side = (int)lround(sqrt((double)pixels)), h = side * side == pixels ? side : 1, w = pixels / h;
  const Pool2dWindow window = {h, w, 1, 1, 0, 0};
  return pool2d_shape_of(n, channels, h, w, window);
}

#if CUDNN_COMPILED

typedef struct DnnPool2d {
  Dnn dnn;
  DnnPool kind;
  Pool2dShape shape;
  cudnnTensorDescriptor_t x, y;
  cudnnPoolingDescriptor_t pooling;
} DnnPool2d;

static inline void dnn_pool2d_batch(DnnPool2d *p, int batch) {
  if (batch == p->shape.n) return;
  p->shape.n = batch;
  dnn_tensor_set(&p->dnn, p->x, dnn_tensor_nchw(batch, p->shape.c, p->shape.h, p->shape.w));
  dnn_tensor_set(&p->dnn, p->y, dnn_tensor_nchw(batch, p->shape.c, pool2d_out_h(p->shape), pool2d_out_w(p->shape)));
}

/* The shape passes dnn_pool2d_check(). */
static inline void dnn_pool2d_open(DnnPool2d *p, const Dnn *dnn, DnnPool kind, Pool2dShape s) {
  const cudnnPoolingMode_t mode = kind == DNN_POOL_MAX    ? CUDNN_POOLING_MAX_DETERMINISTIC
                                  : kind == DNN_POOL_MEAN ? CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
                                                          : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  memset(p, 0, sizeof *p);
  p->dnn = *dnn;
  p->kind = kind;
  p->shape = s;
  p->shape.n = 0;
  p->x = dnn_tensor(dnn);
  p->y = dnn_tensor(dnn);
  CUDNN_CHECK(dnn->api, dnn->api->cudnnCreatePoolingDescriptor(&p->pooling));
  CUDNN_CHECK(dnn->api, dnn->api->cudnnSetPooling2dDescriptor(p->pooling, mode, CUDNN_PROPAGATE_NAN, s.kernel_h,
                                                              s.kernel_w, s.pad_h, s.pad_w, s.stride_h, s.stride_w));
  dnn_pool2d_batch(p, s.n);
}

static inline void dnn_pool2d_close(DnnPool2d *p) {
  const Cudnn *api = p->dnn.api;
  if (api == NULL) return;
  dnn_tensor_close(&p->dnn, p->x);
  dnn_tensor_close(&p->dnn, p->y);
  CUDNN_CHECK(api, api->cudnnDestroyPoolingDescriptor(p->pooling));
  memset(p, 0, sizeof *p);
}

static inline void dnn_pool2d_forward(const DnnPool2d *p, float *y, const float *x) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(p->dnn.api, p->dnn.api->cudnnPoolingForward(p->dnn.handle, p->pooling, &one, p->x, x, &zero, p->y, y));
}

/* x and y: of averages NULL. */
static inline void dnn_pool2d_backward(const DnnPool2d *p, float *dx, const float *dy, const float *x, const float *y) {
  const float one = 1, zero = 0;
  if (p->kind != DNN_POOL_MAX) x = dx, y = dy;
  CUDNN_CHECK(p->dnn.api, p->dnn.api->cudnnPoolingBackward(p->dnn.handle, p->pooling, &one, p->y, y, p->y, dy, p->x, x,
                                                           &zero, p->x, dx));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_POOL2D_CUH */

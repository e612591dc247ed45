/* dnn_softmax.cuh - softmax by cuDNN, its gradient, and what of cross-entropy it has: x, y (rows,cols).
 *
 *     ACCURATE   y = exp(x - max) / sum      FAST leaves the maximum out, and overflows at x = 89
 *     LOG        y = x - max - log(sum): its element of the label is minus the loss
 *
 * In a network softmax is part of the loss. cuDNN has no cross-entropy: the loss of a row is minus one element of LOG's
 * result; and LOG's gradient, dx = dy - exp(y) sum(dy), of a dy that is -1 / rows at the label and 0 elsewhere, is
 * (probability - 1 at the label) / rows. That takes a kernel of one's own to write dy, and three passes over the rows
 * where ours (phase1_building_blocks/10_softmax_cross_entropy) takes one. So the networks keep our loss.
 *
 * A row is an "image" of cols channels of one pixel, mode CHANNEL. */
#ifndef PHASE5_PRODUCTION_DNN_SOFTMAX_CUH
#define PHASE5_PRODUCTION_DNN_SOFTMAX_CUH

#include "phase5_production/01_cudnn_layers/dnn_handle.cuh"

#if CUDNN_COMPILED

typedef struct DnnSoftmax {
  Dnn dnn;
  int rows, cols;
  cudnnTensorDescriptor_t tensor;
  cudnnSoftmaxAlgorithm_t algorithm;
} DnnSoftmax;

static inline void dnn_softmax_batch(DnnSoftmax *s, int rows) {
  if (s->rows == rows) return;
  s->rows = rows;
  dnn_tensor_set(&s->dnn, s->tensor, dnn_tensor_nchw(rows, s->cols, 1, 1));
}

/* logarithm: y = log(softmax(x)) */
static inline void dnn_softmax_open(DnnSoftmax *s, const Dnn *dnn, int logarithm, int rows, int cols) {
  memset(s, 0, sizeof *s);
  s->dnn = *dnn;
  s->cols = cols;
  s->tensor = dnn_tensor(dnn);
  s->algorithm = logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  dnn_softmax_batch(s, rows);
}

static inline void dnn_softmax_close(DnnSoftmax *s) {
  if (s->dnn.api) dnn_tensor_close(&s->dnn, s->tensor);
  memset(s, 0, sizeof *s);
}

static inline void dnn_softmax_forward(const DnnSoftmax *s, float *y, const float *x) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(s->dnn.api, s->dnn.api->cudnnSoftmaxForward(s->dnn.handle, s->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                                          s->tensor, x, &zero, s->tensor, y));
}

static inline void dnn_softmax_backward(const DnnSoftmax *s, float *dx, const float *dy, const float *y) {
  const float one = 1, zero = 0;
  CUDNN_CHECK(s->dnn.api, s->dnn.api->cudnnSoftmaxBackward(s->dnn.handle, s->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL,
                                                           &one, s->tensor, y, s->tensor, dy, &zero, s->tensor, dx));
}

#endif /* CUDNN_COMPILED */

#endif /* PHASE5_PRODUCTION_DNN_SOFTMAX_CUH */

/* cnn_layers.cuh - convolution and max pooling in the form of phase2_mlp/layer.cuh, so that a Network can hold them.
 *
 *     Conv2dLayer     x (N,C,H,W) -> y (N,K,P,Q)    w (K,C,R,S), bias (K)
 *     MaxPool2dLayer  x (N,C,H,W) -> y (N,C,P,Q)    keeps for each output which input was the largest
 */
#ifndef PHASE3_CNN_CNN_LAYERS_CUH
#define PHASE3_CNN_CNN_LAYERS_CUH

#include "phase2_mlp/layer.cuh"
#include "phase3_cnn/conv2d.cuh"
#include "phase3_cnn/max_pool2d.cuh"

/* ----------------------------------------------------------------------------------------------- conv2d */

typedef struct Conv2dLayer {
  Layer base;
  Conv2dShape shape; /* shape.n is set for each call */
} Conv2dLayer;

static inline void conv2d_layer_plan(Layer *l, int max_batch) {
  Conv2dShape shape = ((Conv2dLayer *)l)->shape;
  shape.n = max_batch;
  l->workspace_floats = conv2d_workspace_floats(l->device, shape);
}

static inline void conv2d_layer_forward(Layer *l, float *y, const float *x, int batch) {
  Conv2dShape shape = ((Conv2dLayer *)l)->shape;
  shape.n = batch;
  ON_DEVICE(l->device, conv2d_forward_gpu(y, x, l->weight, l->bias, shape),
            conv2d_forward_cpu_fast(y, x, l->weight, l->bias, shape, l->workspace));
}

static inline void conv2d_layer_backward(Layer *l, float *dx, const float *dy, const float *x, const float *y,
                                         int batch) {
  (void)y;
  Conv2dShape shape = ((Conv2dLayer *)l)->shape;
  shape.n = batch;
  ON_DEVICE(l->device, conv2d_backward_weight_gpu(l->weight_grad, l->bias_grad, dy, x, shape, l->workspace),
            conv2d_backward_weight_cpu_fast(l->weight_grad, l->bias_grad, dy, x, shape, l->workspace));
  if (dx == NULL) return;
  ON_DEVICE(l->device, conv2d_backward_input_gpu(dx, dy, l->weight, shape),
            conv2d_backward_input_cpu_fast(dx, dy, l->weight, shape, l->workspace));
}

/* C x H x W in, `filters` square filters of side `kernel`. */
static inline Conv2dLayer conv2d_layer(const char *name, int channels, int height, int width, int filters, int kernel,
                                       int stride, int padding) {
  Conv2dLayer layer = Conv2dLayer();
  Conv2dShape shape = {1, channels, height, width, filters, kernel, kernel, stride, padding};
  Error err;
  if (conv2d_shape_check(shape, &err) != 0) die("layer %s: %s", name, err.message);
  layer.shape = shape;
  Layer *l = &layer.base;
  l->name = name;
  l->in_size = channels * height * width;
  l->out_size = filters * conv2d_out_h(shape) * conv2d_out_w(shape);
  l->weight_rank = 4;
  l->weight_shape[0] = filters;
  l->weight_shape[1] = channels;
  l->weight_shape[2] = l->weight_shape[3] = kernel;
  l->fan_in = channels * kernel * kernel;
  l->weight_count = (size_t)filters * l->fan_in;
  l->bias_count = filters;
  l->plan = conv2d_layer_plan;
  l->forward = conv2d_layer_forward;
  l->backward = conv2d_layer_backward;
  return layer;
}

/* --------------------------------------------------------------------------------------------- max pool */

typedef struct MaxPool2dLayer {
  Layer base;
  Pool2dShape shape; /* shape.n is set for each call */
} MaxPool2dLayer;

static inline void max_pool2d_layer_forward(Layer *l, float *y, const float *x, int batch) {
  Pool2dShape shape = ((MaxPool2dLayer *)l)->shape;
  shape.n = batch;
  ON_DEVICE(l->device, max_pool2d_forward_gpu(y, l->saved, x, shape),
            max_pool2d_forward_cpu_fast(y, l->saved, x, shape));
}

static inline void max_pool2d_layer_backward(Layer *l, float *dx, const float *dy, const float *x, const float *y,
                                             int batch) {
  (void)x, (void)y;
  if (dx == NULL) return;
  Pool2dShape shape = ((MaxPool2dLayer *)l)->shape;
  shape.n = batch;
  ON_DEVICE(l->device, max_pool2d_backward_gpu(dx, dy, l->saved, shape),
            max_pool2d_backward_cpu_fast(dx, dy, l->saved, shape));
}

static inline MaxPool2dLayer max_pool2d_layer(const char *name, int channels, int height, int width, int kernel,
                                              int stride) {
  MaxPool2dLayer layer = MaxPool2dLayer();
  Pool2dShape shape = {1, channels, height, width, kernel, stride};
  Error err;
  if (max_pool2d_shape_check(shape, &err) != 0) die("layer %s: %s", name, err.message);
  layer.shape = shape;
  Layer *l = &layer.base;
  l->name = name;
  l->in_size = channels * height * width;
  l->out_size = channels * max_pool2d_out_h(shape) * max_pool2d_out_w(shape);
  l->saved_bytes = l->out_size;
  l->forward = max_pool2d_layer_forward;
  l->backward = max_pool2d_layer_backward;
  return layer;
}

#endif /* PHASE3_CNN_CNN_LAYERS_CUH */

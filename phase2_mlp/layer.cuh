/* layer.cuh - what every layer of a network is: two functions and the memory they work on.
 *
 * A layer maps x (N, in_size) to y (N, out_size). On the way back it maps dy, the gradient of the loss with respect to
 * y, to dx, and fills its own weight_grad and bias_grad. There is no autograd here: a network calls forward() in order
 * and backward() in reverse order (network.cuh), and each backward() is the calculus of one operation, written by hand.
 *
 * A concrete layer is a struct whose first member is a Layer, so that a pointer to one is a pointer to the other:
 *
 *     LinearLayer       y = x wᵀ + bias    w (out, in), bias (out)
 *     ActivationLayer   y = max(x, 0), or another of activations.cuh; in place: y is x
 *
 * Convolution and pooling follow in phase3_cnn/cnn_layers.cuh in the same form.
 */
#ifndef PHASE2_MLP_LAYER_CUH
#define PHASE2_MLP_LAYER_CUH

#include "common/device.h"
#include "phase1_building_blocks/activations.cuh"
#include "phase2_mlp/linear.cuh"

typedef struct Layer {
  const char *name;      /* "fc1": its tensors are fc1.weight and fc1.bias */
  int in_size, out_size; /* floats of one sample */
  int in_place;          /* y may be x, dx may be dy */
  Device device;         /* set by network_create(), as is all below that is a pointer */

  int weight_rank;        /* 0: the layer has no parameters */
  size_t weight_shape[4]; /* PyTorch's: (out, in) or (K, C, R, S) */
  int fan_in;             /* inputs that one output adds up; He initialisation needs it */
  int fan_out;            /* 0: He initialisation, right before ReLU; else Xavier's, right before sigmoid and tanh */
  size_t weight_count, bias_count;
  float *weight, *bias, *weight_grad, *bias_grad;

  size_t workspace_floats; /* scratch for one call, shared by all layers; valid for max_batch */
  float *workspace;
  size_t saved_bytes; /* what forward() keeps for backward(), a sample */
  unsigned char *saved;

  /* Called once, before the buffers exist: fills workspace_floats, which may depend on the batch. May be NULL. */
  void (*plan)(struct Layer *layer, int max_batch);
  void (*forward)(struct Layer *layer, float *y, const float *x, int batch);
  /* dx is NULL where nobody needs it: in the first layer. */
  void (*backward)(struct Layer *layer, float *dx, const float *dy, const float *x, const float *y, int batch);
} Layer;

/* ------------------------------------------------------------------------------------------------ linear */

typedef struct LinearLayer {
  Layer base;
} LinearLayer;

static inline void linear_layer_forward(Layer *l, float *y, const float *x, int batch) {
  ON_DEVICE(l->device, linear_forward_gpu(y, x, l->weight, l->bias, batch, l->in_size, l->out_size),
            linear_forward_cpu_fast(y, x, l->weight, l->bias, batch, l->in_size, l->out_size));
}

static inline void linear_layer_backward(Layer *l, float *dx, const float *dy, const float *x, const float *y,
                                         int batch) {
  (void)y;
  ON_DEVICE(l->device, linear_backward_weight_gpu(l->weight_grad, l->bias_grad, dy, x, batch, l->in_size, l->out_size),
            linear_backward_weight_cpu_fast(l->weight_grad, l->bias_grad, dy, x, batch, l->in_size, l->out_size));
  if (dx == NULL) return;
  ON_DEVICE(l->device, linear_backward_input_gpu(dx, dy, l->weight, batch, l->in_size, l->out_size),
            linear_backward_input_cpu_fast(dx, dy, l->weight, batch, l->in_size, l->out_size));
}

static inline LinearLayer linear_layer(const char *name, int in_size, int out_size) {
  LinearLayer layer = LinearLayer();
  Layer *l = &layer.base;
  l->name = name;
  l->in_size = in_size;
  l->out_size = out_size;
  l->weight_rank = 2;
  l->weight_shape[0] = out_size;
  l->weight_shape[1] = in_size;
  l->fan_in = in_size;
  l->weight_count = (size_t)out_size * in_size;
  l->bias_count = out_size;
  l->forward = linear_layer_forward;
  l->backward = linear_layer_backward;
  return layer;
}

/* -------------------------------------------------------------------------------------------- activations */

typedef struct ActivationLayer {
  Layer base;
  Activation kind;
} ActivationLayer;

typedef ActivationLayer ReluLayer;

static inline void activation_layer_forward(Layer *l, float *y, const float *x, int batch) {
  Activation kind = ((ActivationLayer *)l)->kind;
  size_t n = (size_t)batch * l->out_size;
  ON_DEVICE(l->device, activation_forward_gpu(kind, y, x, n), activation_forward_cpu_fast(kind, y, x, n));
}

static inline void activation_layer_backward(Layer *l, float *dx, const float *dy, const float *x, const float *y,
                                             int batch) {
  (void)x;
  if (dx == NULL) return;
  Activation kind = ((ActivationLayer *)l)->kind;
  size_t n = (size_t)batch * l->out_size;
  ON_DEVICE(l->device, activation_backward_gpu(kind, dx, dy, y, n), activation_backward_cpu_fast(kind, dx, dy, y, n));
}

static inline ActivationLayer activation_layer(const char *name, Activation kind, int size) {
  ActivationLayer layer = ActivationLayer();
  Layer *l = &layer.base;
  layer.kind = kind;
  l->name = name;
  l->in_size = l->out_size = size;
  l->in_place = 1; /* backward() asks for y alone, so x need not survive */
  l->forward = activation_layer_forward;
  l->backward = activation_layer_backward;
  return layer;
}

static inline ReluLayer relu_layer(const char *name, int size) { return activation_layer(name, ACTIVATION_RELU, size); }

#endif /* PHASE2_MLP_LAYER_CUH */

/* hidden_layer.cuh - the backward pass of a hidden layer: from the gradients of the layer above to its own.
 *
 *   h (B,H) = activation(a)     the outputs of the hidden layer; a (B,H) is what its neurons added up
 *   y (B,O) = h w^T + bias      the layer above, with w (O,H)
 *   da[b][j] = activation'(a[b][j]) * sum over o of dy[b][o] * w[o][j]
 *
 * h[b][j] reaches every neuron o above it by the weight w[o][j], so its gradient is the sum of their gradients times
 * these weights: column j of w. The chain rule multiplies it by the derivative of the activation, which activations.cuh
 * computes from h alone. With da the weights of the hidden layer get their gradients as in lesson 1:
 * perceptron_backward_weight_gpu(dw, dbias, da, x, ...).
 *
 *   hidden_backward_cpu   the plain loops of linear.cuh and activations.cuh, one after the other
 *   hidden_backward_gpu   one thread per da[b][j]
 */
#ifndef PHASE2_MLP_HIDDEN_LAYER_CUH
#define PHASE2_MLP_HIDDEN_LAYER_CUH

#include "phase1_building_blocks/07_activations/activations.cuh"
#include "phase2_mlp/01_perceptron/linear.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void hidden_backward_cpu(Activation kind, T *da, const T *dy, const T *w, const T *h, int batch,
                                       int hidden, int out) {
  linear_backward_input_cpu(da, dy, w, batch, hidden, out);
  activation_backward_cpu(kind, da, da, h, (size_t)batch * hidden);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel and launcher */

enum { HIDDEN_BLOCK = 128 };

template <Activation KIND>
static __global__ void hidden_backward_kernel(float *da, const float *dy, const float *w, const float *h, int batch,
                                              int hidden, int out) {
  size_t element = (size_t)blockIdx.x * HIDDEN_BLOCK + threadIdx.x; /* of da and h (B,H) */
  int b = (int)(element / hidden), j = (int)(element % hidden);
  // >>> exercise hidden_backward: da[b][j], if it exists: the gradient of a[b][j], the sum of neuron j for sample b
  // hint: h[b][j] reaches each of the `out` neurons above, o, by the weight w[o][j]; its derivative there is dy[b][o]
  // hint: w is (out,hidden): its row o holds the weights of neuron o, so neuron j's are one column, `hidden` apart
  // hint: the sum is the gradient of h[b][j]; activation_backward_one<KIND>(sum, h[element]) is that of a[b][j]
  if (b < batch) {
    float sum = 0;
    for (int o = 0; o < out; o++) sum += dy[(size_t)b * out + o] * w[(size_t)o * hidden + j];
    da[element] = activation_backward_one<KIND>(sum, h[element]);
  }
  // <<< exercise
}

template <Activation KIND>
static inline void hidden_backward(float *da, const float *dy, const float *w, const float *h, int batch, int hidden,
                                   int out) {
  unsigned blocks = (unsigned)(((size_t)batch * hidden + HIDDEN_BLOCK - 1) / HIDDEN_BLOCK);
  hidden_backward_kernel<KIND><<<blocks, HIDDEN_BLOCK>>>(da, dy, w, h, batch, hidden, out);
  CUDA_CHECK_LAUNCH();
}

static inline void hidden_backward_gpu(Activation kind, float *da, const float *dy, const float *w, const float *h,
                                       int batch, int hidden, int out) {
  switch (kind) {
    case ACTIVATION_RELU:
      return hidden_backward<ACTIVATION_RELU>(da, dy, w, h, batch, hidden, out);
    case ACTIVATION_LEAKY_RELU:
      return hidden_backward<ACTIVATION_LEAKY_RELU>(da, dy, w, h, batch, hidden, out);
    case ACTIVATION_SIGMOID:
      return hidden_backward<ACTIVATION_SIGMOID>(da, dy, w, h, batch, hidden, out);
    default:
      return hidden_backward<ACTIVATION_TANH>(da, dy, w, h, batch, hidden, out);
  }
}

#endif /* PHASE2_MLP_HIDDEN_LAYER_CUH */

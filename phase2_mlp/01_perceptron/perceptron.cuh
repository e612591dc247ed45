/* perceptron.cuh - one layer of neurons: y = x w^T + b, its gradients, and the step that reduces the loss.
 *
 *   x (B,I) -> y (B,O), with w (O,I) and bias (O): a row of w and a bias for each neuron
 *   forward    y[b][o]  = bias[o] + sum over i of x[b][i] * w[o][i]
 *   backward   dw[o][i] = sum over b of dy[b][o] * x[b][i],   dbias[o] = sum over b of dy[b][o]
 *   update     next     = w - lr * dw: against the gradient; next may be w
 *
 * These are the kernels that one writes first: one thread or one warp per result, and nothing in shared memory. They
 * suffice for layers of a few neurons. linear.cuh has the same layer in tiles, for hundreds of neurons.
 *
 *   linear_forward_cpu, linear_backward_weight_cpu   of linear.cuh, and perceptron_update_cpu: plain loops
 *   perceptron_forward_gpu                           one thread per y[b][o]
 *   perceptron_backward_weight_gpu                   one warp per weight, which adds in a fixed order
 *   perceptron_update_gpu                            one thread per weight
 */
#ifndef PHASE2_MLP_PERCEPTRON_CUH
#define PHASE2_MLP_PERCEPTRON_CUH

#include <stddef.h>

#include "phase2_mlp/01_perceptron/linear.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference: the other two are those of linear.cuh */

template <typename T>
static inline void perceptron_update_cpu(T *next, const T *w, const T *dw, size_t n, T lr) {
  for (size_t i = 0; i < n; i++) next[i] = w[i] - lr * dw[i];
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { PERCEPTRON_BLOCK = 128, PERCEPTRON_WARPS = PERCEPTRON_BLOCK / 32 };

static __global__ void perceptron_forward_kernel(float *y, const float *x, const float *w, const float *bias, int batch,
                                                 int in, int out) {
  size_t element = (size_t)blockIdx.x * PERCEPTRON_BLOCK + threadIdx.x; /* of y (B,O) */
  int b = (int)(element / out), o = (int)(element % out);
  // >>> exercise perceptron_forward: y[b][o], the output of neuron o for sample b, if there is such a sample
  // hint: sample b is row b of x, with `in` floats; neuron o is row o of w, with as many
  // hint: the sum begins with bias[o], and the last block has threads with b >= batch: they must not read or write
  // hint: float sum = bias[o]; for (...) sum += x[(size_t)b * in + i] * w[(size_t)o * in + i]; y[element] = sum;
  if (b < batch) {
    float sum = bias[o];
    for (int i = 0; i < in; i++) sum += x[(size_t)b * in + i] * w[(size_t)o * in + i];
    y[element] = sum;
  }
  // <<< exercise
}

/* Neuron o has in + 1 numbers to learn: its weights, and the bias, which is a weight of an input that is always 1. */
static __global__ void perceptron_backward_weight_kernel(float *dw, float *dbias, const float *dy, const float *x,
                                                         int batch, int in, int out) {
  int number = blockIdx.x * PERCEPTRON_WARPS + threadIdx.y, lane = threadIdx.x;
  int o = number / (in + 1), i = number % (in + 1);
  if (o >= out) return; /* the whole warp */
  float sum = 0;
  // >>> exercise perceptron_gradient: in lane 0, the sum over b of dy[b][o] * x[b][i], or of dy[b][o] when i == in
  // hint: in sample b the derivative of y by a weight is the input that the weight multiplies; by the bias it is 1
  // hint: lane l takes the samples l, l + 32, l + 64, ... below `batch`; then the 32 sums of the warp become one
  // hint: for (int b = lane; b < batch; b += 32) sum += ...; then five times sum += __shfl_xor_sync(~0u, sum, step);
  for (int b = lane; b < batch; b += 32) {
    float input = i < in ? x[(size_t)b * in + i] : 1.0f;
    sum += dy[(size_t)b * out + o] * input;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  // <<< exercise
  if (lane > 0) return;
  if (i < in)
    dw[(size_t)o * in + i] = sum;
  else
    dbias[o] = sum;
}

static __global__ void perceptron_update_kernel(float *next, const float *w, const float *dw, size_t n, float lr) {
  size_t i = (size_t)blockIdx.x * PERCEPTRON_BLOCK + threadIdx.x;
  // >>> exercise perceptron_update: next[i], one step of size lr against the gradient dw[i]; the loss must fall
  // hint: dw[i] is the slope of the loss along w[i]; in which direction does the loss fall?
  // hint: with a gradient of +2 the weight must become smaller
  // hint: if (i < n) next[i] = w[i] - lr * dw[i];
  if (i < n) next[i] = w[i] - lr * dw[i];
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline unsigned perceptron_blocks(size_t threads) {
  return (unsigned)((threads + PERCEPTRON_BLOCK - 1) / PERCEPTRON_BLOCK);
}

static inline void perceptron_forward_gpu(float *y, const float *x, const float *w, const float *bias, int batch,
                                          int in, int out) {
  perceptron_forward_kernel<<<perceptron_blocks((size_t)batch * out), PERCEPTRON_BLOCK>>>(y, x, w, bias, batch, in,
                                                                                          out);
  CUDA_CHECK_LAUNCH();
}

static inline void perceptron_backward_weight_gpu(float *dw, float *dbias, const float *dy, const float *x, int batch,
                                                  int in, int out) {
  dim3 block(32, PERCEPTRON_WARPS);
  perceptron_backward_weight_kernel<<<perceptron_blocks((size_t)out * (in + 1) * 32), block>>>(dw, dbias, dy, x, batch,
                                                                                               in, out);
  CUDA_CHECK_LAUNCH();
}

static inline void perceptron_update_gpu(float *next, const float *w, const float *dw, size_t n, float lr) {
  if (n == 0) return;
  perceptron_update_kernel<<<perceptron_blocks(n), PERCEPTRON_BLOCK>>>(next, w, dw, n, lr);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_PERCEPTRON_CUH */

/* backprop.cuh - backpropagation through a hidden layer of hundreds of neurons: the sums of lessons 1 and 2, with fewer
 * memory accesses.
 *
 *   x (B,I) -> y (B,O) = x w^T + bias, with w (O,I); x is the output of ReLU, after the layer before
 *   delta    dx[b][i] = (sum over o of dy[b][o] * w[o][i]) * (1 where x[b][i] > 0, else 0)
 *   weight   dw[o][i] =  sum over b of dy[b][o] * x[b][i]
 *
 * Both are matrix products: dx = dy w and dw = dy^T x. dy^T is dy read down its columns; no transposed copy is made.
 *
 *   hidden_backward_cpu, backprop_weight_cpu   plain loops
 *   backprop_delta_separate    linear_backward_input_gpu, then relu_backward_gpu: dx is written, read, written again
 *   backprop_delta_each        hidden_backward_gpu, one thread per dx[b][i]: each sample reads all weights again
 *   backprop_delta_shared      one thread per four samples, for which it reads a weight once
 *   backprop_weight            one thread per weight, no tiles: each x is read O times, each dy I times
 *   backprop_weight_tiled      matmul_gpu, as the networks have it: through shared memory
 */
#ifndef PHASE2_MLP_BACKPROP_CUH
#define PHASE2_MLP_BACKPROP_CUH

#include "phase2_mlp/02_xor/hidden_layer.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void backprop_weight_cpu(T *dw, const T *dy, const T *x, int batch, int in, int out) {
  matmul_cpu(dw, dy, x, out, in, batch, true, false, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { BACKPROP_COLUMNS = 32, BACKPROP_ROWS = 4, BACKPROP_SAMPLES = 4 };

/* A warp has 32 neighbouring columns i of BACKPROP_SAMPLES rows b: its lanes read the same dy[b][o], and neighbouring
 * w[o][i]. */
static __global__ void backprop_delta_kernel(float *dx, const float *dy, const float *w, const float *x, int batch,
                                             int in, int out) {
  int i = blockIdx.x * BACKPROP_COLUMNS + threadIdx.x;
  int b0 = (blockIdx.y * BACKPROP_ROWS + threadIdx.y) * BACKPROP_SAMPLES;
  float sum[BACKPROP_SAMPLES] = {};
  // >>> exercise mlp_delta: sum[s]: sum over o of dy[b0 + s][o] * w[o][i], for the samples and the input that exist
  // hint: in lesson 2 one thread per sample read the whole column i of w; here one thread reads it for four samples
  // hint: the outer loop goes over o and reads w[(size_t)o * in + i] once; the inner one over s, below BACKPROP_SAMPLES
  // hint: float weight = w[(size_t)o * in + i]; then for each s: sum[s] += dy[(size_t)(b0 + s) * out + o] * weight
  if (i < in) {
    for (int o = 0; o < out; o++) {
      float weight = w[(size_t)o * in + i];
      for (int s = 0; s < BACKPROP_SAMPLES; s++)
        if (b0 + s < batch) sum[s] += dy[(size_t)(b0 + s) * out + o] * weight;
    }
  }
  // <<< exercise
  for (int s = 0; s < BACKPROP_SAMPLES; s++) {
    size_t element = (size_t)(b0 + s) * in + i;
    if (b0 + s < batch && i < in) dx[element] = activation_backward_one<ACTIVATION_RELU>(sum[s], x[element]);
  }
}

static __global__ void backprop_weight_kernel(float *dw, const float *dy, const float *x, int batch, int in, int out) {
  int i = blockIdx.x * BACKPROP_COLUMNS + threadIdx.x, o = blockIdx.y * BACKPROP_ROWS + threadIdx.y;
  // >>> exercise mlp_weight_gradient: dw[o][i], if there is such a weight: its gradient, summed over the batch
  // hint: in sample b the weight multiplies x[b][i] for y[b][o], and dy[b][o] is the derivative of the loss by y[b][o]
  // hint: the loop goes down a column of dy (B,O) and of x (B,I): the next sample is `out` and `in` floats further
  // hint: sum += dy[(size_t)b * out + o] * x[(size_t)b * in + i] over b; dw[(size_t)o * in + i] = sum
  if (o < out && i < in) {
    float sum = 0;
    for (int b = 0; b < batch; b++) sum += dy[(size_t)b * out + o] * x[(size_t)b * in + i];
    dw[(size_t)o * in + i] = sum;
  }
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* For a matrix (rows,columns); up to 262,140 rows. */
static inline dim3 backprop_grid(int rows, int columns) {
  return dim3((columns + BACKPROP_COLUMNS - 1) / BACKPROP_COLUMNS, (rows + BACKPROP_ROWS - 1) / BACKPROP_ROWS);
}

static inline void backprop_delta_shared(float *dx, const float *dy, const float *w, const float *x, int batch, int in,
                                         int out) {
  dim3 block(BACKPROP_COLUMNS, BACKPROP_ROWS);
  int groups = (batch + BACKPROP_SAMPLES - 1) / BACKPROP_SAMPLES;
  backprop_delta_kernel<<<backprop_grid(groups, in), block>>>(dx, dy, w, x, batch, in, out);
  CUDA_CHECK_LAUNCH();
}

static inline void backprop_delta_each(float *dx, const float *dy, const float *w, const float *x, int batch, int in,
                                       int out) {
  hidden_backward_gpu(ACTIVATION_RELU, dx, dy, w, x, batch, in, out);
}

static inline void backprop_delta_separate(float *dx, const float *dy, const float *w, const float *x, int batch,
                                           int in, int out) {
  linear_backward_input_gpu(dx, dy, w, batch, in, out);
  relu_backward_gpu(dx, dx, x, (size_t)batch * in);
}

static inline void backprop_weight(float *dw, const float *dy, const float *x, int batch, int in, int out) {
  dim3 block(BACKPROP_COLUMNS, BACKPROP_ROWS);
  backprop_weight_kernel<<<backprop_grid(out, in), block>>>(dw, dy, x, batch, in, out);
  CUDA_CHECK_LAUNCH();
}

static inline void backprop_weight_tiled(float *dw, const float *dy, const float *x, int batch, int in, int out) {
  matmul_gpu(dw, dy, x, out, in, batch, true, false, false);
}

#endif /* PHASE2_MLP_BACKPROP_CUH */

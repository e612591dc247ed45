/* backprop.cuh - backpropagation through a hidden layer: the two steps that a perceptron does not have.
 *
 *   x (B,I) -> y (B,O) = x w^T + bias, with w (O,I); x itself is what ReLU made of the layer before
 *   delta    dx[b][i] = (sum over o of dy[b][o] * w[o][i]) * (1 where x[b][i] > 0, else 0)
 *   weight   dw[o][i] =  sum over b of dy[b][o] * x[b][i]
 *
 * The first goes on to the layer before and is there what dy is here: that is all there is to backpropagation. Both are
 * matrix products: dx = dy w and dw = dy^T x, and dy^T is dy read down its columns, never a copy that is turned round.
 *
 *   backprop_delta_cpu, linear_backward_weight_cpu   plain loops
 *   backprop_delta_separate    linear_backward_input_gpu, then relu_backward_gpu: dx is written, read, written again
 *   backprop_delta_fused       the slope is applied while the sum is in a register
 *   backprop_weight            a thread for each weight, no tiles: each x is read O times, each dy I times
 *   backprop_weight_tiled      matmul_gpu, as the networks have it: through shared memory
 */
#ifndef PHASE2_MLP_BACKPROP_CUH
#define PHASE2_MLP_BACKPROP_CUH

#include "phase1_building_blocks/activations.cuh"
#include "phase2_mlp/linear.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void backprop_delta_cpu(T *dx, const T *dy, const T *w, const T *x, int batch, int in, int out) {
  linear_backward_input_cpu(dx, dy, w, batch, in, out);
  relu_backward_cpu(dx, dx, x, (size_t)batch * in);
}

template <typename T>
static inline void backprop_weight_cpu(T *dw, const T *dy, const T *x, int batch, int in, int out) {
  matmul_cpu(dw, dy, x, out, in, batch, true, false, false);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { BACKPROP_COLUMNS = 32, BACKPROP_ROWS = 4 };

/* A warp has 32 neighbours along a row of x; they share dy[b][o], and w[o][i] lies side by side for them. */
static __global__ void backprop_delta_kernel(float *dx, const float *dy, const float *w, const float *x, int batch,
                                             int in, int out) {
  int i = blockIdx.x * BACKPROP_COLUMNS + threadIdx.x, b = blockIdx.y * BACKPROP_ROWS + threadIdx.y;
  // >>> exercise mlp_delta: dx[b][i], if there is one: what sample b's gradients dy say of input i, through ReLU
  // hint: input i reaches every output o, with the weight w[o][i]; each sends dy[b][o] times that weight back
  // hint: where x[b][i] is 0 the unit was off: a small change of what went into it changes nothing
  // hint: sum += dy[(size_t)b * out + o] * w[(size_t)o * in + i] over o; dx is 0 where x[(size_t)b * in + i] <= 0
  if (b < batch && i < in) {
    float sum = 0;
    for (int o = 0; o < out; o++) sum += dy[(size_t)b * out + o] * w[(size_t)o * in + i];
    dx[(size_t)b * in + i] = x[(size_t)b * in + i] <= 0 ? 0 : sum;
  }
  // <<< exercise
}

static __global__ void backprop_weight_kernel(float *dw, const float *dy, const float *x, int batch, int in, int out) {
  int i = blockIdx.x * BACKPROP_COLUMNS + threadIdx.x, o = blockIdx.y * BACKPROP_ROWS + threadIdx.y;
  // >>> exercise mlp_weight_gradient: dw[o][i], if there is such a weight: what all samples together say of it
  // hint: in sample b the weight multiplies x[b][i] for y[b][o], and dy[b][o] is what the loss says of y[b][o]
  // hint: dy (B,O) and x (B,I) are walked down a column each: from one sample to the next are `out` and `in` floats
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

static inline void backprop_delta_fused(float *dx, const float *dy, const float *w, const float *x, int batch, int in,
                                        int out) {
  dim3 block(BACKPROP_COLUMNS, BACKPROP_ROWS);
  backprop_delta_kernel<<<backprop_grid(batch, in), block>>>(dx, dy, w, x, batch, in, out);
  CUDA_CHECK_LAUNCH();
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

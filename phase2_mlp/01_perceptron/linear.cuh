/* linear.cuh - the linear (fully connected) layer: y = x w^T + bias, and its three gradients.
 *
 *   x (B,I) -> y (B,O), with w (O,I) and bias (O)
 *   forward          y[b][o]  = bias[o] + sum over i of x[b][i] * w[o][i]
 *   backward_input   dx (B,I) = dy w                              (overwritten, as are the next two)
 *   backward_weight  dw (O,I) = dy^T x,  dbias (O) = column sums of dy
 *
 * A row of w holds the weights of one output, as in PyTorch. So all three products are matmul() with at most one
 * operand transposed, and no transposed copy is ever made.
 *
 *   linear_*_cpu       plain loops, sums in double
 *   linear_*_cpu_fast  matmul_cpu_fast
 *   linear_*_gpu       matmul_bias_gpu, the bias added as a tile of y is written; dbias by linear_backward_bias_kernel
 */
#ifndef PHASE2_MLP_LINEAR_CUH
#define PHASE2_MLP_LINEAR_CUH

#include <stddef.h>
#include <string.h>

#include "phase1_building_blocks/03_matmul_naive/matmul.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void linear_forward_cpu(T *y, const T *x, const T *w, const T *bias, int batch, int in, int out) {
  for (int b = 0; b < batch; b++) {
    for (int o = 0; o < out; o++) {
      double sum = bias[o];
      for (int i = 0; i < in; i++) sum += (double)x[(size_t)b * in + i] * w[(size_t)o * in + i];
      y[(size_t)b * out + o] = (T)sum;
    }
  }
}

template <typename T>
static inline void linear_backward_input_cpu(T *dx, const T *dy, const T *w, int batch, int in, int out) {
  for (int b = 0; b < batch; b++) {
    for (int i = 0; i < in; i++) {
      double sum = 0.0;
      for (int o = 0; o < out; o++) sum += (double)dy[(size_t)b * out + o] * w[(size_t)o * in + i];
      dx[(size_t)b * in + i] = (T)sum;
    }
  }
}

template <typename T>
static inline void linear_backward_weight_cpu(T *dw, T *dbias, const T *dy, const T *x, int batch, int in, int out) {
  for (int o = 0; o < out; o++) {
    double bias_sum = 0.0;
    for (int b = 0; b < batch; b++) bias_sum += dy[(size_t)b * out + o];
    dbias[o] = (T)bias_sum;
    for (int i = 0; i < in; i++) {
      double sum = 0.0;
      for (int b = 0; b < batch; b++) sum += (double)dy[(size_t)b * out + o] * x[(size_t)b * in + i];
      dw[(size_t)o * in + i] = (T)sum;
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU fast path */

static inline void linear_forward_cpu_fast(float *y, const float *x, const float *w, const float *bias, int batch,
                                           int in, int out) {
  for (int b = 0; b < batch; b++) memcpy(y + (size_t)b * out, bias, (size_t)out * sizeof *y);
  matmul_cpu_fast(y, x, w, batch, out, in, false, true, true);
}

static inline void linear_backward_input_cpu_fast(float *dx, const float *dy, const float *w, int batch, int in,
                                                  int out) {
  matmul_cpu_fast(dx, dy, w, batch, in, out, false, false, false);
}

static inline void linear_backward_weight_cpu_fast(float *dw, float *dbias, const float *dy, const float *x, int batch,
                                                   int in, int out) {
  matmul_cpu_fast(dw, dy, x, out, in, batch, true, false, false);
  memset(dbias, 0, (size_t)out * sizeof *dbias);
  for (int b = 0; b < batch; b++, dy += out) {
#pragma omp simd
    for (int o = 0; o < out; o++) dbias[o] += dy[o];
  }
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

enum { LINEAR_BIAS_COLUMNS = 32, LINEAR_BIAS_ROWS = 16 };

/* dbias (O) = column sums of dy (B,O). A block sums 32 columns: a warp reads 32 neighbours of one row, sixteen warps
 * take every sixteenth row, and the sixteen partial sums of a column are added in order. Grid ceil(O / 32). */
static __global__ void linear_backward_bias_kernel(float *dbias, const float *dy, int batch, int out) {
  __shared__ float partial[LINEAR_BIAS_ROWS][LINEAR_BIAS_COLUMNS];
  int o = blockIdx.x * LINEAR_BIAS_COLUMNS + threadIdx.x;
  float sum = 0.0f;
  // >>> exercise linear_bias_gradient: the sum of column o of dy: a partial sum in each of the 16 warps, then their sum
  // hint: warp threadIdx.y takes the rows threadIdx.y, threadIdx.y + LINEAR_BIAS_ROWS, ... of column o, if there is one
  // hint: a warp's partial sum reaches the others through `partial`: what must have happened before warp 0 reads it?
  // hint: partial[threadIdx.y][threadIdx.x] = sum; __syncthreads(); then warp 0 adds the 15 others' and writes dbias[o]
  if (o < out)
    for (int b = threadIdx.y; b < batch; b += LINEAR_BIAS_ROWS) sum += dy[(size_t)b * out + o];
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || o >= out) return;
  for (int row = 1; row < LINEAR_BIAS_ROWS; row++) sum += partial[row][threadIdx.x];
  dbias[o] = sum;
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline void linear_forward_gpu(float *y, const float *x, const float *w, const float *bias, int batch, int in,
                                      int out) {
  matmul_bias_gpu(y, x, w, bias, batch, out, in, false, true, false);
}

static inline void linear_backward_input_gpu(float *dx, const float *dy, const float *w, int batch, int in, int out) {
  matmul_gpu(dx, dy, w, batch, in, out, false, false, false);
}

static inline void linear_backward_bias_gpu(float *dbias, const float *dy, int batch, int out) {
  dim3 block(LINEAR_BIAS_COLUMNS, LINEAR_BIAS_ROWS);
  linear_backward_bias_kernel<<<(out + LINEAR_BIAS_COLUMNS - 1) / LINEAR_BIAS_COLUMNS, block>>>(dbias, dy, batch, out);
  CUDA_CHECK_LAUNCH();
}

static inline void linear_backward_weight_gpu(float *dw, float *dbias, const float *dy, const float *x, int batch,
                                              int in, int out) {
  matmul_gpu(dw, dy, x, out, in, batch, true, false, false);
  linear_backward_bias_gpu(dbias, dy, batch, out);
}

#endif /* PHASE2_MLP_LINEAR_CUH */

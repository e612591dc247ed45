/* conv2d.cuh - two-dimensional convolution, float32, NCHW (cross-correlation: filters are not flipped, as in PyTorch).
 *
 *     y[n,k,p,q] = bias[k] + sum over c,r,s of w[k,c,r,s] * x[n, c, p * stride + r - padding, q * stride + s - padding]
 *
 * With dilation d the taps r and s are d apart: r * d, s * d. With groups, c counts the channels of k's group.
 *
 *     x (N,C,H,W)   w (K,C/groups,R,S)   bias (K)   y (N,K,P,Q)     P and Q: conv2d_shape.cuh
 *
 * Call one (c,r,s) a tap and one (p,q) a pixel. For one image the products fill a box of filters x taps x pixels, and
 * each of the three operations adds that box up along another side:
 *
 *     conv2d_forward_*          along the taps:                  y  (filter, pixel)
 *     conv2d_backward_weight_*  along the pixels, over images:   dw (filter, tap); dbias: the tap that always reads 1
 *     conv2d_backward_input_*   along the filters:               (tap, pixel), added to the input it was read from
 *
 * Versions of each:
 *     _cpu           the loops of the formula, summed in double: the oracle (a template, for gradients by differences)
 *     _cpu_fast      sixteen images side by side in one vector, a register tile of filters x pixels (or taps)
 *     _naive         GPU: one thread per result
 *     _gpu           one group, no dilation: a thread loads an input once and uses it for eight filters; filters (or
 *                    dy) in shared memory; the threads of a block share out a long sum, so that a small batch, too,
 *                    fills a GPU
 * Outputs are overwritten. bias and dbias may be NULL. No result depends on the number of threads or on their order.
 * All but _gpu take any stride, padding and dilation per axis, and groups; the networks call conv2d_forward(),
 * conv2d_backward_input() and conv2d_backward_weight(), which choose.
 * A shape from outside goes through conv2d_shape_check() first.
 *
 * One header per job, all included here:
 *     conv2d_shape.cuh            the shape and its check
 *     conv2d_cpu.cuh              _cpu of all three operations
 *     conv2d_cpu_fast.cuh         _cpu_fast of all three
 *     conv2d_forward.cuh          the GPU's kernels and launchers, one header per operation
 *     conv2d_backward_input.cuh
 *     conv2d_backward_weight.cuh
 *     conv2d_gpu.cuh              what these share
 *     conv2d_naive.cuh            forward, one thread per output, and four neighbours per thread: lesson 1's ladder
 *     conv2d_backward_naive.cuh   both gradients, one thread per result
 */
#ifndef PHASE3_CNN_CONV2D_CUH
#define PHASE3_CNN_CONV2D_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_backward_input.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_backward_naive.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_backward_weight.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu_fast.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_forward.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_shape.cuh"

/* Floats of workspace that the functions of a device need: on the CPU all _cpu_fast ones, on the GPU
 * conv2d_backward_weight_gpu(). A larger batch never needs fewer. */
static inline size_t conv2d_workspace_floats(Device device, Conv2dShape s) {
  size_t floats = 0;
  ON_DEVICE(device, floats = conv2d_is_dense(s) ? conv2d_workspace_floats_gpu(s) : 0,
            floats = conv2d_workspace_floats_cpu(s));
  return floats;
}

/* What networks call: on the GPU the fast version where it takes the shape. Workspace: conv2d_workspace_floats() of
 * this or a larger batch. */
static inline void conv2d_forward(Device device, float *y, const float *x, const float *w, const float *bias,
                                  Conv2dShape s, float *workspace) {
  if (device == DEVICE_CPU)
    conv2d_forward_cpu_fast(y, x, w, bias, s, workspace);
  else if (conv2d_is_dense(s))
    conv2d_forward_gpu(y, x, w, bias, s);
  else
    conv2d_forward_naive(y, x, w, bias, s);
}

static inline void conv2d_backward_input(Device device, float *dx, const float *dy, const float *w, Conv2dShape s,
                                         float *workspace) {
  if (device == DEVICE_CPU)
    conv2d_backward_input_cpu_fast(dx, dy, w, s, workspace);
  else if (conv2d_is_dense(s))
    conv2d_backward_input_gpu(dx, dy, w, s);
  else
    conv2d_backward_input_naive(dx, dy, w, s);
}

static inline void conv2d_backward_weight(Device device, float *dw, float *dbias, const float *dy, const float *x,
                                          Conv2dShape s, float *workspace) {
  if (device == DEVICE_CPU)
    conv2d_backward_weight_cpu_fast(dw, dbias, dy, x, s, workspace);
  else if (conv2d_is_dense(s))
    conv2d_backward_weight_gpu(dw, dbias, dy, x, s, workspace);
  else
    conv2d_backward_weight_naive(dw, dbias, dy, x, s);
}

#endif /* PHASE3_CNN_CONV2D_CUH */

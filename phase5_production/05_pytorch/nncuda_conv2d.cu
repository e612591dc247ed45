/* nncuda_conv2d.cu - convolution, with the kernels of phase3_cnn/01_conv2d_naive to 06_conv2d_backward. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_winograd.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_fold_filter.cuh"
#include "phase3_cnn/11_residual/residual.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_shape.cuh"

enum { WINOGRAD_CHANNELS_LEAST = 16 }; /* fewer are padded to tiles that are mostly empty */

int nncuda_conv2d_output(const nncuda_conv2d_shape *shape, int64_t *p, int64_t *q) {
  Call call = call_begin(__func__, NNCUDA_CPU, NULL);
  const Conv2dShape s = call_conv2d(&call, shape);
  call_array(&call, "p", p, sizeof *p);
  call_array(&call, "q", q, sizeof *q);
  if (call.status != NNCUDA_OK) return call.status;
  *p = conv2d_out_h(s);
  *q = conv2d_out_w(s);
  return call.status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* On a GPU: which kernels */

/* 3 x 3 filters with stride 1. It computes 2.25 to 4 products instead of 9. */
static inline bool conv2d_takes_winograd(Conv2dShape s) {
  Error err;
  if (s.r != 3 || s.s != 3 || s.stride_h != 1 || s.stride_w != 1) return false; /* without a sentence of why not */
  return s.c >= WINOGRAD_CHANNELS_LEAST && s.k >= WINOGRAD_CHANNELS_LEAST && winograd_fits(s, &err) == 0;
}

/* Of 16 filters most of a matrix product's tile is empty. */
static inline bool conv2d_takes_direct(Conv2dShape s) { return conv2d_is_dense(s) && s.k <= CONV2D_FEW_FILTERS; }

static inline const Conv2dMethod *conv2d_method_for(Conv2dShape s) {
  return conv2d_takes_winograd(s) ? &conv2d_winograd_method : &conv2d_gemm_method;
}

static inline void conv2d_forward_run_gpu(float *y, const float *x, const float *w, const float *bias,
                                          const float *residual, int relu, Conv2dShape s, float *workspace) {
  const int within = relu && residual == NULL; /* ReLU in the convolution's own kernel */
  if (conv2d_takes_direct(s))
    conv2d_forward_least_gpu(y, x, w, bias, s, within ? 0 : -INFINITY);
  else if (conv2d_takes_winograd(s))
    (within ? conv2d_bias_relu_forward_winograd : conv2d_forward_winograd)(y, x, w, bias, s, workspace);
  else
    (within ? conv2d_bias_relu_forward_implicit_gemm : conv2d_forward_implicit_gemm)(y, x, w, bias, s, workspace);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The residual */

static __global__ void nncuda_add_kernel(float *y, const float *residual, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += residual[i];
}

/* y += residual, then ReLU. */
static inline void residual_add_gpu(float *y, const float *residual, int relu, size_t n) {
  if (relu) {
    add_relu_forward_gpu(y, y, residual, n);
    return;
  }
  nncuda_add_kernel<<<(unsigned)((n + 255) / 256), 256>>>(y, residual, n);
  CUDA_CHECK_LAUNCH();
}

static inline void residual_add_cpu(float *y, const float *residual, int relu, size_t n) {
  if (relu) {
    add_relu_forward_cpu_fast(y, y, residual, n);
    return;
  }
  for (size_t i = 0; i < n; i++) y[i] += residual[i];
}

static inline void conv2d_forward_run_cpu(float *y, const float *x, const float *w, const float *bias,
                                          const float *residual, int relu, Conv2dShape s, float *workspace) {
  if (relu && residual == NULL)
    conv2d_relu_forward_cpu_fast(y, x, w, bias, s, workspace);
  else
    conv2d_forward_cpu_fast(y, x, w, bias, s, workspace);
  if (residual != NULL) residual_add_cpu(y, residual, relu, conv2d_y_count(s));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The functions of nncuda.h */

/* Of a shape that is right. The device's number of multiprocessors is asked for: so the device must be current. */
static inline size_t conv2d_workspace_bytes(int device, const nncuda_conv2d_shape *shape) {
  Call call = call_begin(__func__, device, NULL);
  Conv2dKnown *known = conv2d_known(shape);
  const Conv2dShape s = known->shape;
  size_t floats = 0;
  if (known->measured && known->device == device) return known->bytes;
  CALL_RUN(call,
           floats = conv2d_larger(conv2d_method_for(s)->workspace_floats(s),
                                  conv2d_is_dense(s) ? conv2d_workspace_floats_gpu(s) : 0),
           floats = conv2d_workspace_floats_cpu(s));
  known->bytes = floats * sizeof(float);
  known->device = device;
  known->measured = call.status == NNCUDA_OK;
  return known->bytes;
}

size_t nncuda_conv2d_workspace(int device, const nncuda_conv2d_shape *shape) {
  Call call = call_begin(__func__, device, NULL);
  call_conv2d(&call, shape);
  return call.status == NNCUDA_OK ? conv2d_workspace_bytes(device, shape) : 0;
}

/* What the three functions have in common. */
static inline Conv2dShape call_conv2d_with(Call *call, int dtype, const nncuda_conv2d_shape *shape, void *workspace,
                                           size_t workspace_bytes) {
  call_dtype(call, dtype, NNCUDA_FLOAT32);
  const Conv2dShape s = call_conv2d(call, shape);
  if (call->status == NNCUDA_OK)
    call_workspace(call, workspace, workspace_bytes, conv2d_workspace_bytes(call->device, shape));
  return s;
}

int nncuda_conv2d_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w, const void *bias,
                          const void *residual, int relu, const nncuda_conv2d_shape *shape, void *workspace,
                          size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_FLAG(call, relu);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, x);
  CALL_ARRAY(call, w);
  CALL_OPTIONAL(call, bias);
  CALL_OPTIONAL(call, residual);
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes);
  if (residual == y && residual != NULL && call.status == NNCUDA_OK)
    call.status = nncuda_fail(NNCUDA_BAD_ARGUMENT, __func__, "residual",
                              "residual is the array of y, which is overwritten before residual is read; expected "
                              "another one");
  CALL_RUN(
      call,
      {
        conv2d_forward_run_gpu((float *)y, (const float *)x, (const float *)w, (const float *)bias,
                               (const float *)residual, relu, s, (float *)workspace);
        if (residual != NULL) residual_add_gpu((float *)y, (const float *)residual, relu, conv2d_y_count(s));
      },
      conv2d_forward_run_cpu((float *)y, (const float *)x, (const float *)w, (const float *)bias,
                             (const float *)residual, relu, s, (float *)workspace));
  return call.status;
}

int nncuda_conv2d_backward_input(int device, void *stream, int dtype, void *dx, const void *dy, const void *w,
                                 const nncuda_conv2d_shape *shape, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_ARRAY(call, dx);
  CALL_ARRAY(call, dy);
  CALL_ARRAY(call, w);
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes);
  CALL_RUN(
      call,
      conv2d_method_for(s)->backward_input((float *)dx, (const float *)dy, (const float *)w, s, (float *)workspace),
      conv2d_backward_input_cpu_fast((float *)dx, (const float *)dy, (const float *)w, s, (float *)workspace));
  return call.status;
}

int nncuda_conv2d_backward_weight(int device, void *stream, int dtype, void *dw, void *dbias, const void *dy,
                                  const void *x, const nncuda_conv2d_shape *shape, void *workspace,
                                  size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_ARRAY(call, dw);
  CALL_OPTIONAL(call, dbias);
  CALL_ARRAY(call, dy);
  CALL_ARRAY(call, x);
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes);
  CALL_RUN(call,
           conv2d_method_for(s)->backward_weight((float *)dw, (float *)dbias, (const float *)dy, (const float *)x, s,
                                                 (float *)workspace),
           conv2d_backward_weight_cpu_fast((float *)dw, (float *)dbias, (const float *)dy, (const float *)x, s,
                                           (float *)workspace));
  return call.status;
}

int nncuda_conv2d_fold_batch_norm(int device, void *stream, int dtype, void *new_w, void *new_bias, const void *w,
                                  const void *bias, const void *gamma, const void *beta, const void *mean,
                                  const void *var, double epsilon, int64_t filters, int64_t weights) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  call_constant(&call, "epsilon", epsilon, BATCH_NORM_EPSILON);
  CALL_SIZE(call, filters, 1, INT_MAX);
  CALL_SIZE(call, weights, 1, INT_MAX);
  CALL_ARRAY(call, new_w);
  CALL_ARRAY(call, new_bias);
  CALL_ARRAY(call, w);
  CALL_OPTIONAL(call, bias);
  CALL_ARRAY(call, gamma);
  CALL_ARRAY(call, beta);
  CALL_ARRAY(call, mean);
  CALL_ARRAY(call, var);
  const size_t bytes = (size_t)filters * sizeof(float);
  const BatchNorm2dFold f = {
      (float *)new_w,       (float *)new_bias,   (const float *)w,    (const float *)(bias != NULL ? bias : new_bias),
      (const float *)gamma, (const float *)beta, (const float *)mean, (const float *)var,
      (int)filters,         (int)weights};
  CALL_RUN(
      call,
      {
        if (bias == NULL) CUDA_CHECK(cudaMemsetAsync(new_bias, 0, bytes, 0));
        batch_norm2d_fold_gpu(f);
      },
      {
        if (bias == NULL) memset(new_bias, 0, bytes);
        batch_norm2d_fold_cpu(f);
      });
  return call.status;
}

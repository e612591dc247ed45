/* nncuda_conv2d.cu - convolution, with the kernels of phase3_cnn/01_conv2d_naive to 06_conv2d_backward. */
#include <stdlib.h>
#include <string.h>

#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/10_batch_norm/batch_norm2d_fold_filter.cuh"
#include "phase3_cnn/11_residual/residual.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_shape.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_ways.cuh"

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

enum { FORWARD, WITH_GRADIENTS };

static int convolution_of_environment(void) {
  static const char *const names[] = {"chosen", "direct", "winograd", "gemm"};
  const char *wanted = getenv("NNCUDA_CONVOLUTION");
  for (int i = 0; wanted != NULL && i < (int)(sizeof names / sizeof *names); i++)
    if (strcmp(wanted, names[i]) == 0) return i;
  if (wanted != NULL)
    fprintf(stderr, "libnncuda: NNCUDA_CONVOLUTION is %s; expected chosen, direct, winograd or gemm; it is ignored\n",
            wanted);
  return NNCUDA_CHOSEN;
}

int nncuda_convolution = convolution_of_environment();

int nncuda_set_convolution(int way) {
  Call call = call_begin(__func__, NNCUDA_CPU, NULL);
  CALL_SIZE(call, way, NNCUDA_CHOSEN, NNCUDA_GEMM);
  if (call.status == NNCUDA_OK) __atomic_store_n(&nncuda_convolution, way, __ATOMIC_RELAXED);
  return call.status;
}

static inline size_t conv2d_workspace_floats_of(Conv2dShape s, int gradients) {
  const size_t forward = conv2d_forward_way_floats(s);
  if (gradients == FORWARD) return forward;
  return conv2d_larger(forward,
                       conv2d_larger(conv2d_backward_input_way_floats(s), conv2d_backward_weight_way_floats(s)));
}

/* Of a shape that is right. The device's number of multiprocessors is asked for: so the device must be current. */
static inline size_t conv2d_workspace_bytes(int device, const nncuda_conv2d_shape *shape, int gradients) {
  Call call = call_begin(__func__, device, NULL);
  Conv2dKnown *known = conv2d_known(shape);
  const Conv2dShape s = known->shape;
  const int way = __atomic_load_n(&nncuda_convolution, __ATOMIC_RELAXED);
  size_t floats = 0;
  if (known->measured[gradients] && known->device[gradients] == device && known->way[gradients] == way)
    return known->bytes[gradients];
  CALL_RUN(call, floats = conv2d_workspace_floats_of(s, gradients), floats = conv2d_workspace_floats_cpu(s));
  known->bytes[gradients] = floats * sizeof(float);
  known->device[gradients] = device;
  known->way[gradients] = way;
  known->measured[gradients] = call.status == NNCUDA_OK;
  return known->bytes[gradients];
}

size_t nncuda_conv2d_workspace(int device, const nncuda_conv2d_shape *shape) {
  Call call = call_begin(__func__, device, NULL);
  call_conv2d(&call, shape);
  return call.status == NNCUDA_OK ? conv2d_workspace_bytes(device, shape, WITH_GRADIENTS) : 0;
}

size_t nncuda_conv2d_forward_workspace(int device, const nncuda_conv2d_shape *shape) {
  Call call = call_begin(__func__, device, NULL);
  call_conv2d(&call, shape);
  return call.status == NNCUDA_OK ? conv2d_workspace_bytes(device, shape, FORWARD) : 0;
}

/* What the three functions have in common. */
static inline Conv2dShape call_conv2d_with(Call *call, int dtype, const nncuda_conv2d_shape *shape, void *workspace,
                                           size_t workspace_bytes, int gradients) {
  call_dtype(call, dtype, NNCUDA_FLOAT32);
  const Conv2dShape s = call_conv2d(call, shape);
  if (call->status == NNCUDA_OK)
    call_workspace(call, workspace, workspace_bytes, conv2d_workspace_bytes(call->device, shape, gradients));
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
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes, FORWARD);
  if (residual == y && residual != NULL && call.status == NNCUDA_OK)
    call.status = nncuda_fail(NNCUDA_BAD_ARGUMENT, __func__, "residual",
                              "residual is the array of y, which is overwritten before residual is read; expected "
                              "another one");
  CALL_RUN(
      call,
      {
        conv2d_forward_way_gpu((float *)y, (const float *)x, (const float *)w, (const float *)bias,
                               relu && residual == NULL, s, (float *)workspace);
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
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes, WITH_GRADIENTS);
  CALL_RUN(call, conv2d_backward_input_way_gpu((float *)dx, (const float *)dy, (const float *)w, s, (float *)workspace),
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
  const Conv2dShape s = call_conv2d_with(&call, dtype, shape, workspace, workspace_bytes, WITH_GRADIENTS);
  CALL_RUN(call,
           conv2d_backward_weight_way_gpu((float *)dw, (float *)dbias, (const float *)dy, (const float *)x, s,
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

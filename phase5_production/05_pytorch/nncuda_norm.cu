/* nncuda_norm.cu - layer norm and batch norm, with the kernels of phase3_cnn/10_batch_norm. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"
#include "phase3_cnn/10_batch_norm/layer_norm.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layer norm */

int nncuda_layer_norm_forward(int device, void *stream, int dtype, void *y, void *saved, const void *x,
                              const void *weight, const void *bias, double epsilon, int64_t rows, int64_t cols) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  call_constant(&call, "epsilon", epsilon, LAYER_NORM_EPSILON);
  CALL_SIZE(call, rows, 1, INT_MAX);
  CALL_SIZE(call, cols, 1, INT_MAX);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, saved);
  CALL_ARRAY(call, x);
  CALL_OPTIONAL(call, weight);
  CALL_OPTIONAL(call, bias);
  CALL_RUN(call,
           layer_norm_forward_gpu((float *)y, (float *)saved, (const float *)x, (const float *)weight,
                                  (const float *)bias, (int)rows, (int)cols),
           layer_norm_forward_cpu_fast((float *)y, (float *)saved, (const float *)x, (const float *)weight,
                                       (const float *)bias, (int)rows, (int)cols));
  return call.status;
}

size_t nncuda_layer_norm_backward_workspace(int device, int64_t rows, int64_t cols) {
  if (device == NNCUDA_CPU || rows < 1 || cols < 1 || rows > INT_MAX || cols > INT_MAX) return 0;
  return layer_norm_workspace_floats((int)rows, (int)cols) * sizeof(float);
}

int nncuda_layer_norm_backward(int device, void *stream, int dtype, void *dx, void *dweight, void *dbias,
                               const void *dy, const void *x, const void *weight, const void *saved, int64_t rows,
                               int64_t cols, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, rows, 1, INT_MAX);
  CALL_SIZE(call, cols, 1, INT_MAX);
  CALL_OPTIONAL(call, dx);
  CALL_OPTIONAL(call, dweight);
  CALL_OPTIONAL(call, dbias);
  CALL_ARRAY(call, dy);
  CALL_ARRAY(call, x);
  CALL_OPTIONAL(call, weight);
  CALL_ARRAY(call, saved);
  call_workspace(&call, workspace, workspace_bytes,
                 dweight != NULL || dbias != NULL ? nncuda_layer_norm_backward_workspace(device, rows, cols) : 0);
  CALL_RUN(
      call,
      layer_norm_backward_gpu((float *)dx, (float *)dweight, (float *)dbias, (const float *)dy, (const float *)x,
                              (const float *)weight, (const float *)saved, (int)rows, (int)cols, (float *)workspace),
      layer_norm_backward_cpu_fast((float *)dx, (float *)dweight, (float *)dbias, (const float *)dy, (const float *)x,
                                   (const float *)weight, (const float *)saved, (int)rows, (int)cols));
  return call.status;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Batch norm */

/* The arrays that all three functions have. */
static inline BatchNorm2d call_batch_norm(Call *call, int dtype, int after, int64_t n, int64_t c, int64_t pixels,
                                          const void *x, const void *gamma) {
  BatchNorm2d b = {};
  call_dtype(call, dtype, NNCUDA_FLOAT32);
  call_size(call, "after", after, NNCUDA_ALONE, NNCUDA_THEN_ADD_RELU);
  call_size(call, "n", n, 1, INT_MAX);
  call_size(call, "c", c, 1, INT_MAX);
  call_size(call, "pixels", pixels, 1, INT_MAX);
  call_count(call, "n * c", (double)n * c, INT_MAX);
  call_count(call, "c * pixels", (double)c * pixels, INT_MAX);
  call_count(call, "n * pixels", (double)n * pixels, INT_MAX);
  call_array(call, "x", x, sizeof(float));
  call_array(call, "gamma", gamma, sizeof(float));
  b.shape.n = (int)n, b.shape.c = (int)c, b.shape.pixels = (int)pixels;
  b.after = (BatchNorm2dAfter)after;
  b.x = (const float *)x;
  b.gamma = (const float *)gamma;
  return b;
}

/* Without running statistics there is no momentum. */
static inline bool batch_norm_tracks(const void *running_mean) { return running_mean != NULL; }

size_t nncuda_batch_norm_passed(int64_t n, int64_t c, int64_t pixels) {
  if (n < 1 || c < 1 || pixels < 1 || n > INT_MAX || c > INT_MAX || pixels > INT_MAX) return 0;
  const BatchNorm2dShape s = {(int)n, (int)c, (int)pixels};
  return (size_t)c * batch_norm2d_words(s) * sizeof(uint32_t);
}

size_t nncuda_batch_norm_workspace(int device, int64_t n, int64_t c, int64_t pixels) {
  const BatchNorm2dShape s = {(int)n, (int)c, (int)pixels};
  return device == NNCUDA_CPU ? 0 : batch_norm2d_workspace_floats(s) * sizeof(float);
}

int nncuda_batch_norm_forward(int device, void *stream, int dtype, void *y, void *saved_mean, void *saved_inv_std,
                              void *passed, void *running_mean, void *running_var, const void *x, const void *z,
                              const void *gamma, const void *beta, int after, double momentum, double epsilon,
                              int64_t n, int64_t c, int64_t pixels, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  Error err;
  BatchNorm2d b = call_batch_norm(&call, dtype, after, n, c, pixels, x, gamma);
  call_constant(&call, "epsilon", epsilon, BATCH_NORM_EPSILON);
  if (batch_norm_tracks(running_mean)) call_constant(&call, "momentum", momentum, BATCH_NORM_MOMENTUM);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, saved_mean);
  CALL_ARRAY(call, saved_inv_std);
  CALL_ARRAY(call, beta);
  if (after == NNCUDA_THEN_ADD_RELU) {
    CALL_ARRAY(call, z);
    CALL_ARRAY(call, passed);
  }
  CALL_OPTIONAL(call, running_mean);
  if (batch_norm_tracks(running_mean)) CALL_ARRAY(call, running_var);
  call_workspace(&call, workspace, workspace_bytes, nncuda_batch_norm_workspace(device, n, c, pixels));
  if (call.status == NNCUDA_OK && batch_norm2d_shape_check(b.shape, &err) != 0)
    call.status = nncuda_fail(NNCUDA_BAD_ARGUMENT, __func__, "n", "%s", err.message);
  b.z = (const float *)z, b.beta = (const float *)beta, b.y = (float *)y;
  b.mean = (float *)saved_mean, b.inv_std = (float *)saved_inv_std, b.passed = (uint32_t *)passed;
  b.old_mean = b.new_mean = (float *)running_mean;
  b.old_var = b.new_var = (float *)running_var;
  b.workspace = (float *)workspace;
  CALL_RUN(call, batch_norm2d_forward_gpu(&b), batch_norm2d_forward_cpu_fast(&b));
  return call.status;
}

int nncuda_batch_norm_evaluate(int device, void *stream, int dtype, void *y, const void *x, const void *z,
                               const void *gamma, const void *beta, const void *running_mean, const void *running_var,
                               int after, double epsilon, int64_t n, int64_t c, int64_t pixels) {
  Call call = call_begin(__func__, device, stream);
  BatchNorm2d b = call_batch_norm(&call, dtype, after, n, c, pixels, x, gamma);
  call_constant(&call, "epsilon", epsilon, BATCH_NORM_EPSILON);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, beta);
  CALL_ARRAY(call, running_mean);
  CALL_ARRAY(call, running_var);
  if (after == NNCUDA_THEN_ADD_RELU) CALL_ARRAY(call, z);
  b.z = (const float *)z, b.beta = (const float *)beta, b.y = (float *)y;
  b.old_mean = (const float *)running_mean, b.old_var = (const float *)running_var;
  CALL_RUN(call, batch_norm2d_evaluate_gpu(&b), batch_norm2d_evaluate_cpu_fast(&b));
  return call.status;
}

int nncuda_batch_norm_backward(int device, void *stream, int dtype, void *dx, void *dz, void *dgamma, void *dbeta,
                               const void *dy, const void *x, const void *gamma, const void *beta,
                               const void *saved_mean, const void *saved_inv_std, const void *passed, int after,
                               int64_t n, int64_t c, int64_t pixels, void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  BatchNorm2d b = call_batch_norm(&call, dtype, after, n, c, pixels, x, gamma);
  CALL_OPTIONAL(call, dx);
  if (after == NNCUDA_THEN_ADD_RELU) {
    CALL_OPTIONAL(call, dz);
    CALL_ARRAY(call, passed);
  }
  CALL_OPTIONAL(call, dgamma);
  if (dgamma != NULL) CALL_ARRAY(call, dbeta);
  if (dbeta != NULL) CALL_ARRAY(call, dgamma);
  CALL_ARRAY(call, dy);
  CALL_ARRAY(call, beta);
  CALL_ARRAY(call, saved_mean);
  CALL_ARRAY(call, saved_inv_std);
  call_workspace(&call, workspace, workspace_bytes, nncuda_batch_norm_workspace(device, n, c, pixels));
  b.beta = (const float *)beta, b.dy = (const float *)dy;
  b.mean = (float *)saved_mean, b.inv_std = (float *)saved_inv_std, b.passed = (uint32_t *)passed;
  b.dx = (float *)dx, b.dz = after == NNCUDA_THEN_ADD_RELU ? (float *)dz : NULL;
  b.dgamma = (float *)dgamma, b.dbeta = (float *)dbeta;
  b.workspace = (float *)workspace;
  CALL_RUN(call, batch_norm2d_backward_gpu(&b), batch_norm2d_backward_cpu_fast(&b));
  return call.status;
}

/* nncuda_pool2d.cu - pooling, with the kernels of phase3_cnn/09_pooling. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase3_cnn/09_pooling/avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"
#include "phase5_production/05_pytorch/nncuda_pool2d_shape.cuh"

static inline int any_pool2d_check(Pool2dShape s, Error *err) { return pool2d_shape_check("pooling", s, err); }

int nncuda_pool2d_output(const nncuda_pool2d_shape *shape, int64_t *p, int64_t *q) {
  Call call = call_begin(__func__, NNCUDA_CPU, NULL);
  const Pool2dShape s = call_pool2d(&call, shape, any_pool2d_check);
  call_array(&call, "p", p, sizeof *p);
  call_array(&call, "q", q, sizeof *q);
  if (call.status != NNCUDA_OK) return call.status;
  *p = pool2d_out_h(s);
  *q = pool2d_out_w(s);
  return call.status;
}

int nncuda_max_pool2d_forward(int device, void *stream, int dtype, void *y, uint8_t *argmax, const void *x, int relu,
                              const nncuda_pool2d_shape *shape) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_FLAG(call, relu);
  const Pool2dShape s = call_pool2d(&call, shape, max_pool2d_shape_check);
  if (relu && call.status == NNCUDA_OK && s.kernel_h * s.kernel_w > POOL2D_NOTHING)
    call.status = nncuda_fail(NNCUDA_UNSUPPORTED, __func__, "relu",
                              "relu is 1 with windows of %d elements; expected 0, "
                              "or windows of at most %d",
                              s.kernel_h * s.kernel_w, POOL2D_NOTHING);
  CALL_ARRAY(call, y);
  call_array(&call, "argmax", argmax, 1);
  CALL_ARRAY(call, x);
  CALL_RUN(
      call, (relu ? relu_max_pool2d_forward_gpu : max_pool2d_forward_gpu)((float *)y, argmax, (const float *)x, s),
      (relu ? relu_max_pool2d_forward_cpu_fast : max_pool2d_forward_cpu_fast)((float *)y, argmax, (const float *)x, s));
  return call.status;
}

int nncuda_max_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy, const uint8_t *argmax,
                               const nncuda_pool2d_shape *shape) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  const Pool2dShape s = call_pool2d(&call, shape, max_pool2d_shape_check);
  CALL_ARRAY(call, dx);
  CALL_ARRAY(call, dy);
  call_array(&call, "argmax", argmax, 1);
  CALL_RUN(call, max_pool2d_backward_gpu((float *)dx, (const float *)dy, argmax, s),
           max_pool2d_backward_cpu_fast((float *)dx, (const float *)dy, argmax, s));
  return call.status;
}

int nncuda_avg_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x, int count_include_pad,
                              const nncuda_pool2d_shape *shape) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_FLAG(call, count_include_pad);
  const Pool2dShape s = call_pool2d(&call, shape, avg_pool2d_shape_check);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, x);
  CALL_RUN(call, avg_pool2d_forward_gpu((float *)y, (const float *)x, s, count_include_pad),
           avg_pool2d_forward_cpu_fast((float *)y, (const float *)x, s, count_include_pad));
  return call.status;
}

int nncuda_avg_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy, int count_include_pad,
                               const nncuda_pool2d_shape *shape) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_FLAG(call, count_include_pad);
  const Pool2dShape s = call_pool2d(&call, shape, avg_pool2d_shape_check);
  CALL_ARRAY(call, dx);
  CALL_ARRAY(call, dy);
  CALL_RUN(call, avg_pool2d_backward_gpu((float *)dx, (const float *)dy, s, count_include_pad),
           avg_pool2d_backward_cpu_fast((float *)dx, (const float *)dy, s, count_include_pad));
  return call.status;
}

int nncuda_global_avg_pool2d_forward(int device, void *stream, int dtype, void *y, const void *x, int64_t planes,
                                     int64_t pixels) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, planes, 1, INT_MAX);
  CALL_SIZE(call, pixels, 1, INT_MAX);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, x);
  CALL_RUN(call, global_avg_pool2d_forward_gpu((float *)y, (const float *)x, (int)planes, (int)pixels),
           global_avg_pool2d_forward_cpu_fast((float *)y, (const float *)x, (int)planes, (int)pixels));
  return call.status;
}

int nncuda_global_avg_pool2d_backward(int device, void *stream, int dtype, void *dx, const void *dy, int64_t planes,
                                      int64_t pixels) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, planes, 1, INT_MAX);
  CALL_SIZE(call, pixels, 1, INT_MAX);
  CALL_ARRAY(call, dx);
  CALL_ARRAY(call, dy);
  CALL_RUN(call, global_avg_pool2d_backward_gpu((float *)dx, (const float *)dy, (int)planes, (int)pixels),
           global_avg_pool2d_backward_cpu_fast((float *)dx, (const float *)dy, (int)planes, (int)pixels));
  return call.status;
}

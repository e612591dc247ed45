/* nncuda_softmax.cu - softmax, with the kernels of phase1_building_blocks/08_softmax. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase1_building_blocks/08_softmax/softmax.cuh"

int nncuda_softmax_forward(int device, void *stream, int dtype, void *y, const void *x, int64_t rows, int64_t cols) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, rows, 1, INT_MAX);
  CALL_SIZE(call, cols, 1, INT_MAX);
  CALL_ARRAY(call, y);
  CALL_ARRAY(call, x);
  CALL_RUN(call, softmax_forward_gpu((float *)y, (const float *)x, (int)rows, (int)cols),
           softmax_forward_cpu((float *)y, (const float *)x, (int)rows, (int)cols));
  return call.status;
}

int nncuda_softmax_backward(int device, void *stream, int dtype, void *dx, const void *dy, const void *y, int64_t rows,
                            int64_t cols) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, rows, 1, INT_MAX);
  CALL_SIZE(call, cols, 1, INT_MAX);
  CALL_ARRAY(call, dx);
  CALL_ARRAY(call, dy);
  CALL_ARRAY(call, y);
  CALL_RUN(call, softmax_backward_gpu((float *)dx, (const float *)dy, (const float *)y, (int)rows, (int)cols),
           softmax_backward_cpu((float *)dx, (const float *)dy, (const float *)y, (int)rows, (int)cols));
  return call.status;
}

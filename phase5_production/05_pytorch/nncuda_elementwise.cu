/* nncuda_elementwise.cu - activations, add + ReLU, dropout, and a product with a number on the device. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase1_building_blocks/12_dropout/dropout.cuh"
#include "phase3_cnn/11_residual/residual.cuh"

#define ELEMENTS_MOST ((int64_t)1 << 38) /* one each for the threads of 2^30 blocks: a grid has up to 2^31 - 1 */

enum { SCALE_BLOCK = 256, SCALE_BLOCKS = 2112 }; /* 16 for each of an H200's multiprocessors */

/* y (n) = x times *factor. Few blocks, which walk through the arrays: where there is nothing to do they are gone at
 * once, while one block for each 1024 elements would take longer to start than the loss that came before. */
template <bool ALIGNED>
static __global__ void __launch_bounds__(SCALE_BLOCK)
    nncuda_scale_kernel(float *y, const float *x, const float *factor, size_t n) {
  const float by = *factor;
  if (by == 1 && x == y) return;
  const size_t quads = (n + 3) / 4, step = (size_t)gridDim.x * SCALE_BLOCK;
  for (size_t quad = (size_t)blockIdx.x * SCALE_BLOCK + threadIdx.x; quad < quads; quad += step) {
    const float4 v = quad_load_array<ALIGNED>(x, 4 * quad, n);
    quad_store_array<ALIGNED>(y, make_float4(v.x * by, v.y * by, v.z * by, v.w * by), 4 * quad, n);
  }
}

static inline void scale_gpu(float *y, const float *x, const float *factor, size_t n) {
  const size_t blocks = (n + 4 * SCALE_BLOCK - 1) / (4 * SCALE_BLOCK);
  const unsigned grid = (unsigned)(blocks < (size_t)SCALE_BLOCKS ? blocks : (size_t)SCALE_BLOCKS);
  if (n == 0) return;
  if (dropout_aligned(y, x))
    nncuda_scale_kernel<true><<<grid, SCALE_BLOCK>>>(y, x, factor, n);
  else
    nncuda_scale_kernel<false><<<grid, SCALE_BLOCK>>>(y, x, factor, n);
  CUDA_CHECK_LAUNCH();
}

static inline void scale_cpu(float *y, const float *x, const float *factor, size_t n) {
  const float by = *factor;
  if (by == 1 && x == y) return;
  for (size_t i = 0; i < n; i++) y[i] = x[i] * by;
}

int nncuda_scale(int device, void *stream, int dtype, void *y, const void *x, const void *factor, int64_t n) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_ELEMENTS(call, y, n);
  CALL_ELEMENTS(call, x, n);
  CALL_ARRAY(call, factor);
  CALL_RUN(call, scale_gpu((float *)y, (const float *)x, (const float *)factor, (size_t)n),
           scale_cpu((float *)y, (const float *)x, (const float *)factor, (size_t)n));
  return call.status;
}

int nncuda_activation_forward(int device, void *stream, int dtype, int activation, void *y, const void *x, int64_t n) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, activation, NNCUDA_RELU, NNCUDA_TANH);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_ELEMENTS(call, y, n);
  CALL_ELEMENTS(call, x, n);
  CALL_RUN(call, activation_forward_gpu((Activation)activation, (float *)y, (const float *)x, (size_t)n),
           activation_forward_cpu_fast((Activation)activation, (float *)y, (const float *)x, (size_t)n));
  return call.status;
}

int nncuda_activation_backward(int device, void *stream, int dtype, int activation, void *dx, const void *dy,
                               const void *y, int64_t n) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, activation, NNCUDA_RELU, NNCUDA_TANH);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_ELEMENTS(call, dx, n);
  CALL_ELEMENTS(call, dy, n);
  CALL_ELEMENTS(call, y, n);
  CALL_RUN(call,
           activation_backward_gpu((Activation)activation, (float *)dx, (const float *)dy, (const float *)y, (size_t)n),
           activation_backward_cpu_fast((Activation)activation, (float *)dx, (const float *)dy, (const float *)y,
                                        (size_t)n));
  return call.status;
}

int nncuda_add_relu_forward(int device, void *stream, int dtype, void *y, const void *a, const void *b, int64_t n) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_ELEMENTS(call, y, n);
  CALL_ELEMENTS(call, a, n);
  CALL_ELEMENTS(call, b, n);
  CALL_RUN(call, add_relu_forward_gpu((float *)y, (const float *)a, (const float *)b, (size_t)n),
           add_relu_forward_cpu_fast((float *)y, (const float *)a, (const float *)b, (size_t)n));
  return call.status;
}

int nncuda_add_relu_backward(int device, void *stream, int dtype, void *d, const void *dy, const void *y, int64_t n) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_ELEMENTS(call, d, n);
  CALL_ELEMENTS(call, dy, n);
  CALL_ELEMENTS(call, y, n);
  CALL_RUN(call, add_relu_backward_gpu((float *)d, NULL, (const float *)dy, (const float *)y, (size_t)n),
           add_relu_backward_cpu_fast((float *)d, NULL, (const float *)dy, (const float *)y, (size_t)n));
  return call.status;
}

int nncuda_dropout(int device, void *stream, int dtype, void *y, const void *x, int64_t n, double p, uint64_t seed,
                   uint32_t offset) {
  Call call = call_begin(__func__, device, stream);
  CALL_DTYPE(call, dtype);
  CALL_SIZE(call, n, 0, ELEMENTS_MOST);
  CALL_REAL(call, p, 0, 1);
  CALL_ELEMENTS(call, y, n);
  CALL_ELEMENTS(call, x, n);
  CALL_RUN(call, dropout_gpu((float *)y, (const float *)x, (size_t)n, (float)p, seed, offset),
           dropout_cpu((float *)y, (const float *)x, (size_t)n, (float)p, seed, offset));
  return call.status;
}

/* nncuda_conv2d_nhwc.cu - convolution of arrays in PyTorch's channels_last format, by tensor cores, with the kernels of
 * phase3_cnn/03_conv2d_implicit_gemm as phase5_production/04_resnet18_fused chooses among them. */
#include "phase5_production/05_pytorch/nncuda_call.cuh"

#include "phase5_production/04_resnet18_fused/conv2d_infer.cuh"
#include "phase5_production/05_pytorch/nncuda_conv2d_shape.cuh"

/* Of one call; the arrays are T, but bias. */
typedef struct ConvNhwc {
  void *y;
  const void *x, *w, *residual;
  const float *bias;
  Conv2dShape s;
  int relu;
  void *identity;
} ConvNhwc;

enum { IDENTITY = CONV2D_NHWC_IDENTITY * CONV2D_NHWC_IDENTITY };

template <typename T>
static __global__ void nncuda_identity_kernel(T *matrix) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < IDENTITY) conv2d_narrow(&matrix[i], i / CONV2D_NHWC_IDENTITY == i % CONV2D_NHWC_IDENTITY ? 1.0f : 0.0f);
}

template <typename T>
static inline Conv2dNhwcAdd<T> nhwc_add(const ConvNhwc *c) {
  Conv2dNhwcAdd<T> add;
  add.x = (const T *)c->residual;
  add.identity = (const T *)c->identity;
  return add;
}

/* Whether the GPU has wgmma is asked once, by a kernel and a copy that waits for it in the default stream. So the
 * kernel must be there, too, and not in the caller's stream, which the copy does not wait for. */
static inline void nhwc_ask(void) {
  const cudaStream_t stream = nncuda_thread.stream;
  nncuda_thread.stream = NULL;
  conv2d_wgmma_refusal();
  nncuda_thread.stream = stream;
}

template <typename T>
static inline void nhwc_gpu(const ConvNhwc *c) {
  nhwc_ask();
  if (c->residual != NULL) {
    nncuda_identity_kernel<<<(IDENTITY + 255) / 256, 256>>>((T *)c->identity);
    CUDA_CHECK_LAUNCH();
  }
  conv2d_infer_forward((T *)c->y, (const T *)c->x, (const T *)c->w, c->bias, c->s, c->relu, nhwc_add<T>(c));
}

template <typename T>
static inline void nhwc_cpu(const ConvNhwc *c) {
  conv2d_forward_nhwc_add_cpu((T *)c->y, (const T *)c->x, (const T *)c->w, c->bias, c->s, c->relu, nhwc_add<T>(c));
}

static inline void nhwc_run_gpu(const ConvNhwc *c, int dtype) {
  if (dtype == NNCUDA_TF32)
    nhwc_gpu<float>(c);
  else if (dtype == NNCUDA_FLOAT16)
    nhwc_gpu<__half>(c);
  else
    nhwc_gpu<__nv_bfloat16>(c);
}

static inline void nhwc_run_cpu(const ConvNhwc *c, int dtype) {
  if (dtype == NNCUDA_TF32)
    nhwc_cpu<float>(c);
  else if (dtype == NNCUDA_FLOAT16)
    nhwc_cpu<__half>(c);
  else
    nhwc_cpu<__nv_bfloat16>(c);
}

static inline size_t nhwc_bytes(int dtype) { return dtype == NNCUDA_TF32 ? sizeof(float) : sizeof(uint16_t); }

size_t nncuda_conv2d_nhwc_workspace(int device, int dtype) {
  return device == NNCUDA_CPU ? 0 : IDENTITY * nhwc_bytes(dtype);
}

int nncuda_conv2d_nhwc_forward(int device, void *stream, int dtype, void *y, const void *x, const void *w,
                               const float *bias, const void *residual, int relu, const nncuda_conv2d_shape *shape,
                               void *workspace, size_t workspace_bytes) {
  Call call = call_begin(__func__, device, stream);
  if (dtype == NNCUDA_FLOAT32)
    call.status =
        nncuda_fail(NNCUDA_UNSUPPORTED, __func__, "dtype",
                    "dtype is float32; there are kernels for float16, bfloat16, and tf32, which takes the same "
                    "arrays and multiplies factors of 11 bits");
  CALL_SIZE(call, dtype, NNCUDA_FLOAT16, NNCUDA_TF32);
  CALL_FLAG(call, relu);
  const size_t align = nhwc_bytes(dtype);
  call_array(&call, "y", y, align);
  call_array(&call, "x", x, align);
  call_array(&call, "w", w, align);
  CALL_OPTIONAL(call, bias);
  if (residual != NULL) call_array(&call, "residual", residual, align);
  ConvNhwc c = {y, x, w, residual, bias, call_conv2d(&call, shape), relu, workspace};
  call_workspace(&call, workspace, workspace_bytes, residual != NULL ? nncuda_conv2d_nhwc_workspace(device, dtype) : 0);
  CALL_RUN(call, nhwc_run_gpu(&c, dtype), nhwc_run_cpu(&c, dtype));
  return call.status;
}

/* conv2d_im2col_cublas.cuh - conv2d_im2col.cuh with the product of NVIDIA's library, in float32 throughout. What goes
 * before and after the product is ours. On the CPU backend simt/blas stands in for cuBLAS.
 *
 * cuBLAS stores matrices by columns: see matmul_cublas.cuh (phase 1, lesson 3).
 */
#ifndef PHASE3_CNN_CONV2D_IM2COL_CUBLAS_CUH
#define PHASE3_CNN_CONV2D_IM2COL_CUBLAS_CUH

#include "common/check_cublas.h"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"

enum { CONV2D_CUBLAS_DEVICES = 64 };

/* One handle per host thread and GPU, made in the first call: that takes a tenth of a second, and must not happen while
 * a CUDA graph is captured. */
static inline cublasHandle_t conv2d_cublas_handle(void) {
  static __thread cublasHandle_t handles[CONV2D_CUBLAS_DEVICES];
  int device;
  CUDA_CHECK(cudaGetDevice(&device));
  if (device >= CONV2D_CUBLAS_DEVICES)
    die("GPU %d: a cuBLAS handle is kept for the first %d GPUs; choose one of them with CUDA_VISIBLE_DEVICES", device,
        CONV2D_CUBLAS_DEVICES);
  if (handles[device] == NULL) {
    handles[device] = cublas_handle();
    CUBLAS_CHECK(cublasSetMathMode(handles[device], CUBLAS_PEDANTIC_MATH));
  }
  return handles[device];
}

static inline void conv2d_im2col_matmul_cublas(float *c, const float *a, const float *b, int m, int n, int k,
                                               float *parts) {
  const float one = 1.0f, zero = 0.0f;
  (void)parts;
  CUBLAS_CHECK(cublasSgemm(conv2d_cublas_handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, n, a, k, &zero, c, n));
}

static inline void conv2d_forward_im2col_cublas(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape s, float *workspace) {
  conv2d_im2col_forward_with(conv2d_im2col_matmul_cublas, y, x, w, bias, s, conv2d_im2col_images(s), workspace);
}

static inline void conv2d_backward_input_im2col_cublas(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                       float *workspace) {
  conv2d_im2col_backward_input_with(conv2d_im2col_matmul_cublas, dx, dy, w, s, conv2d_im2col_images(s), workspace);
}

static inline void conv2d_backward_weight_im2col_cublas(float *dw, float *dbias, const float *dy, const float *x,
                                                        Conv2dShape s, float *workspace) {
  conv2d_im2col_backward_weight_with(conv2d_im2col_matmul_cublas, dw, dbias, dy, x, s, conv2d_im2col_images(s),
                                     workspace);
}

static const Conv2dMethod conv2d_im2col_cublas_method = {
    "im2col_cublas",
    conv2d_im2col_fits,
    conv2d_im2col_workspace_floats,
    conv2d_forward_im2col_cublas,
    conv2d_backward_input_im2col_cublas,
    conv2d_backward_weight_im2col_cublas,
};

#endif /* PHASE3_CNN_CONV2D_IM2COL_CUBLAS_CUH */

/* conv2d_winograd_cublas.cuh - conv2d_winograd.cuh with cuBLAS's batched product, in float32 throughout: how good is
 * winograd_product()? The transforms are ours. On the CPU backend simt/blas stands in for cuBLAS.
 *
 * cuBLAS stores matrices by columns: a row-major m (filters, tiles) is its matrix of tiles x filters, v is tiles x
 * depth, and u, filters x depth for it, is read transposed. */
#ifndef PHASE3_CNN_CONV2D_WINOGRAD_CUBLAS_CUH
#define PHASE3_CNN_CONV2D_WINOGRAD_CUBLAS_CUH

#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_cublas.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd.cuh"

static inline void winograd_product_cublas(float *m, const float *u, const float *v, int points, int depth, int filters,
                                           int tiles) {
  const float one = 1.0f, zero = 0.0f;
  CUBLAS_CHECK(cublasSgemmStridedBatched(conv2d_cublas_handle(), CUBLAS_OP_N, CUBLAS_OP_T, tiles, filters, depth, &one,
                                         v, tiles, (long long)depth * tiles, u, filters, (long long)depth * filters,
                                         &zero, m, tiles, (long long)filters * tiles, points));
}

static inline void conv2d_forward_winograd2_cublas(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape s, float *workspace) {
  winograd_kernels<2, 2, false>(y, x, w, bias, false, winograd_forward_shape<2, 2>(s), workspace,
                                winograd_product_cublas, winograd_all);
}

static inline void conv2d_forward_winograd4_cublas(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape s, float *workspace) {
  winograd_kernels<4, 4, false>(y, x, w, bias, false, winograd_forward_shape<4, 4>(s), workspace,
                                winograd_product_cublas, winograd_all);
}

#endif /* PHASE3_CNN_CONV2D_WINOGRAD_CUBLAS_CUH */

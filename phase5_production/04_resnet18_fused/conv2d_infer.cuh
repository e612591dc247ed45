/* conv2d_infer.cuh - the launcher that conv2d_infer_half_op.cu and conv2d_tf32_op.cu share: wgmma where the GPU has
 * it and the layer enough channels, else mma.sync. */
#ifndef PHASE5_PRODUCTION_CONV2D_INFER_CUH
#define PHASE5_PRODUCTION_CONV2D_INFER_CUH

#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_wgmma.cuh"

enum { CONV2D_INFER_FEW = 32 }; /* channels: a box of TMA has 64, or 32 floats */

/* x (N,H,W,C), w (K,R,S,C), bias (K) or NULL -> y (N,P,Q,K) = relu(conv(x) + bias + what is added) */
template <typename T>
static inline void conv2d_infer_forward(T *y, const T *x, const T *w, const float *bias, Conv2dShape s, bool relu,
                                        Conv2dNhwcAdd<T> add) {
  if (conv2d_wgmma_refusal() == NULL && s.c >= CONV2D_INFER_FEW)
    conv2d_forward_nhwc_wgmma_add(y, x, w, bias, s, relu, add);
  else
    conv2d_forward_nhwc_mma_add(y, x, w, bias, s, relu, add);
}

#endif /* PHASE5_PRODUCTION_CONV2D_INFER_CUH */

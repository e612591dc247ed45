/* conv2d_methods.h - the Conv2dMethods of lessons 1 to 8 (conv2d_method.cuh), for tests that run each of them. A lesson
 * with another method adds an include and a line. */
#ifndef PHASE3_CNN_CONV2D_METHODS_H
#define PHASE3_CNN_CONV2D_METHODS_H

#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_cublas.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm_register.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_halo.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_cufft.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_winograd.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_small.cuh"

static const Conv2dMethod *const conv2d_methods[] = {
    &conv2d_naive_method,         &conv2d_row_method,           &conv2d_column_method,   &conv2d_tiled_method,
    &conv2d_im2col_method,        &conv2d_im2col_cublas_method, &conv2d_halo_method,     &conv2d_gemm_tiled_method,
    &conv2d_gemm_register_method, &conv2d_gemm_method,          &winograd2_forward,      &winograd2_fused_forward,
    &winograd2x4_forward,         &winograd4_forward,           &conv2d_winograd_method, &conv2d_fft_method,
    &conv2d_fft_overlap_method,   &conv2d_depthwise_method,     &conv2d_small_method,
};

enum { CONV2D_METHODS = sizeof conv2d_methods / sizeof *conv2d_methods };

#endif /* PHASE3_CNN_CONV2D_METHODS_H */

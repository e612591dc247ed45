/* conv2d_backward_lesson.cuh - the versions of both gradients, for the program, its tests and the exercises: what each
 * takes, and how large its workspace is. Arrays, shapes and references are those of conv2d_lesson.cuh.
 */
#ifndef PHASE3_CNN_CONV2D_BACKWARD_LESSON_CUH
#define PHASE3_CNN_CONV2D_BACKWARD_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"

/* As tables of methods, so that the harness finds workspaces and refusals. */
static const Conv2dMethod conv2d_backward_blocks_method = {
    "blocks", NULL, conv2d_bias_floats, NULL, conv2d_backward_input_gather, conv2d_backward_weight_blocks};
static const Conv2dMethod conv2d_backward_atomic_method = {"atomic", NULL, conv2d_bias_floats,
                                                           NULL,     NULL, conv2d_backward_weight_atomic};
static const Conv2dMethod conv2d_backward_split_method = {"split", NULL, conv2d_weight_split_floats,
                                                          NULL,    NULL, conv2d_backward_weight_split};
static const Conv2dMethod conv2d_backward_gemm_atomic_method = {
    "gemm_atomic", NULL, conv2d_bias_floats, NULL, NULL, conv2d_backward_weight_gemm_atomic};
static const Conv2dMethod conv2d_backward_gemm_input_method = {
    "gemm", NULL, conv2d_input_gemm_floats, NULL, conv2d_backward_input_gemm, NULL};
static const Conv2dMethod conv2d_backward_gemm_weight_method = {"gemm", NULL, conv2d_backward_gemm_weight_floats,
                                                                NULL,   NULL, conv2d_backward_weight_gemm};

#endif /* PHASE3_CNN_CONV2D_BACKWARD_LESSON_CUH */

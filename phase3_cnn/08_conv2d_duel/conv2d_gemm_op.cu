/* conv2d_gemm_op.cu - --conv=implicit_gemm. */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_method_op.cuh"

CONV2D_METHOD_OP(implicit_gemm, conv2d_gemm_method);

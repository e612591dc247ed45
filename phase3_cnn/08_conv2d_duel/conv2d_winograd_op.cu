/* conv2d_winograd_op.cu - --conv=winograd. */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_winograd.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_method_op.cuh"

CONV2D_METHOD_OP(winograd, conv2d_winograd_method);

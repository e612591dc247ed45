/* conv2d_small_op.cu - --conv=depthwise, --conv=small. */
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_method_op.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_small.cuh"

CONV2D_METHOD_OP(depthwise, conv2d_depthwise_method);
CONV2D_METHOD_OP(small, conv2d_small_method);

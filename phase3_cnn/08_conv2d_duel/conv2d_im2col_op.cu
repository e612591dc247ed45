/* conv2d_im2col_op.cu - --conv=im2col. */
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_method_op.cuh"

CONV2D_METHOD_OP(im2col, conv2d_im2col_method);

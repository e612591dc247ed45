/* conv2d_fft_op.cu - --conv=fft. */
#include "phase3_cnn/05_conv2d_fft/conv2d_fft.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_method_op.cuh"

CONV2D_METHOD_OP(fft, conv2d_fft_method);

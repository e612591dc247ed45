/* batch_norm2d_half_op.cuh - batch norm of 16 bits, alone, with ReLU, or with a sum and ReLU, as Ops that graph_lower()
 * (common/nn/lower.h) puts in the place of those of batch_norm2d_op.cuh. It follows: a convolution of 16 bits feeds it.
 * */
#ifndef PHASE3_CNN_BATCH_NORM2D_HALF_OP_CUH
#define PHASE3_CNN_BATCH_NORM2D_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_op.cuh"

/* In batch_norm2d_half_op.cu. */
extern const Op batch_norm2d_half_op, batch_norm2d_relu_half_op, batch_norm2d_add_relu_half_op;

#define LOWER_BATCH_NORM \
  { &batch_norm2d_op, &batch_norm2d_half_op, 0, 1, NULL }
#define LOWER_BATCH_NORM_RELU \
  { &batch_norm2d_relu_op, &batch_norm2d_relu_half_op, 0, 1, NULL }
#define LOWER_BATCH_NORM_ADD_RELU \
  { &batch_norm2d_add_relu_op, &batch_norm2d_add_relu_half_op, 0, 1, NULL }

#endif /* PHASE3_CNN_BATCH_NORM2D_HALF_OP_CUH */

/* conv2d_half_op.cuh - convolution of 16 bits as an Op that graph_lower() (common/nn/lower.h) puts in the place of
 * conv2d_op: one group. */
#ifndef PHASE3_CNN_CONV2D_HALF_OP_CUH
#define PHASE3_CNN_CONV2D_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"

extern const Op conv2d_half_op; /* in conv2d_half_op.cu */

static inline int conv2d_half_op_fits(const Node *node) { return conv2d_op_shape(node, 1).groups == 1; }

#define LOWER_CONV2D \
  { &conv2d_op, &conv2d_half_op, 1, 0, conv2d_half_op_fits }

#endif /* PHASE3_CNN_CONV2D_HALF_OP_CUH */

/* pool2d_half_op.cuh - max pooling, alone or with a ReLU, and global average pooling of 16 bits as Ops that
 * graph_lower() (common/nn/lower.h) puts in the place of those of max_pool2d_op.cuh and global_avg_pool2d_op.cuh. They
 * follow: what feeds them has 16 bits already. */
#ifndef PHASE3_CNN_POOL2D_HALF_OP_CUH
#define PHASE3_CNN_POOL2D_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"

/* In pool2d_half_op.cu. */
extern const Op max_pool2d_half_op, relu_max_pool2d_half_op, global_avg_pool2d_half_op;

static inline int max_pool2d_half_op_fits(const Node *node) {
  const Pool2dShape s = max_pool2d_op_shape(node, 1);
  return s.dilation_h == 1 && s.dilation_w == 1;
}

/* A block has all channels of an image. */
static inline int global_avg_pool2d_half_op_fits(const Node *node) { return node->shape.dim[0] <= 2048; }

#define LOWER_MAX_POOL \
  { &max_pool2d_op, &max_pool2d_half_op, 0, 1, max_pool2d_half_op_fits }
#define LOWER_RELU_MAX_POOL \
  { &relu_max_pool2d_op, &relu_max_pool2d_half_op, 0, 1, max_pool2d_half_op_fits }
#define LOWER_GLOBAL_AVG_POOL \
  { &global_avg_pool2d_op, &global_avg_pool2d_half_op, 0, 1, global_avg_pool2d_half_op_fits }

#endif /* PHASE3_CNN_POOL2D_HALF_OP_CUH */

/* conv2d_relu_op.cuh - a convolution and the ReLU behind it as an Op of common/nn that graph_fuse() (common/nn/fuse.h)
 * puts in the place of the two, for inference:
 *
 *     static const Fusion fusions[] = {FUSE_CONV2D_RELU};
 *
 * The kernel writes max(0, y) at once, so that y is not read and written once more. Backward would need what was
 * below 0: a network that trains keeps the two operations. */
#ifndef PHASE3_CNN_CONV2D_RELU_OP_CUH
#define PHASE3_CNN_CONV2D_RELU_OP_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"

extern const Op conv2d_relu_op; /* in conv2d_relu_op.cu */

static inline int conv2d_relu_op_fits(const Node *first, const Node *second) {
  (void)second;
  return conv2d_is_dense(conv2d_op_shape(first, 1));
}

#define FUSE_CONV2D_RELU \
  { &conv2d_op, &activation_ops[ACTIVATION_RELU], &conv2d_relu_op, &relu_passed_op, conv2d_relu_op_fits }

#endif /* PHASE3_CNN_CONV2D_RELU_OP_CUH */

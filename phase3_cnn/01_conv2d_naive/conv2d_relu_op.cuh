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

static inline void conv2d_relu_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  ON_DEVICE(context->device, conv2d_relu_forward_gpu(a->y, a->x[0], a->param[0], a->param[1], shape),
            conv2d_relu_forward_cpu_fast(a->y, a->x[0], a->param[0], a->param[1], shape, a->workspace));
}

static inline void conv2d_relu_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  (void)context;
  (void)a;
  die("%s: a convolution that is fused with its ReLU has no backward pass; open the model for MODEL_INFER", node->name);
}

static const Op conv2d_relu_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_op_workspace, conv2d_relu_op_forward, conv2d_relu_op_backward};

static inline int conv2d_relu_op_fits(const Node *first, const Node *second) {
  (void)second;
  return conv2d_is_dense(conv2d_op_shape(first, 1));
}

#define FUSE_CONV2D_RELU \
  { &conv2d_op, &activation_ops[ACTIVATION_RELU], &conv2d_relu_op, &relu_passed_op, conv2d_relu_op_fits }

#endif /* PHASE3_CNN_CONV2D_RELU_OP_CUH */

/* conv2d_relu_op.cu - the functions of conv2d_relu_op.cuh. */
#include "phase3_cnn/01_conv2d_naive/conv2d_relu_op.cuh"

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

const Op conv2d_relu_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_op_workspace, conv2d_relu_op_forward, conv2d_relu_op_backward};

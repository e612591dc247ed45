/* conv2d_op.cu - the functions of conv2d_op.cuh. */
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"

static inline void conv2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  conv2d_forward(context->device, a->y, a->x[0], a->param[0], a->param[1], conv2d_op_shape(node, a->batch),
                 a->workspace);
}

static inline void conv2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  if (a->grad[0]) conv2d_backward_weight(context->device, a->grad[0], a->grad[1], a->dy, a->x[0], shape, a->workspace);
  if (a->dx[0]) conv2d_backward_input(context->device, a->dx[0], a->dy, a->param[0], shape, a->workspace);
}

const Op conv2d_op = {"Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_op_workspace, conv2d_op_forward, conv2d_op_backward};

/* One thread per result (GPU), the plain loops of the formula (CPU). */
static inline void conv2d_naive_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  ON_DEVICE(context->device, conv2d_forward_naive(a->y, a->x[0], a->param[0], a->param[1], shape),
            conv2d_forward_cpu(a->y, a->x[0], a->param[0], a->param[1], shape));
}

static inline void conv2d_naive_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  if (a->grad[0])
    ON_DEVICE(context->device, conv2d_backward_weight_naive(a->grad[0], a->grad[1], a->dy, a->x[0], shape),
              conv2d_backward_weight_cpu(a->grad[0], a->grad[1], a->dy, a->x[0], shape));
  if (a->dx[0])
    ON_DEVICE(context->device, conv2d_backward_input_naive(a->dx[0], a->dy, a->param[0], shape),
              conv2d_backward_input_cpu(a->dx[0], a->dy, a->param[0], shape));
}

const Op conv2d_naive_op = {"Conv", BACKWARD_NEEDS_X, 0, NULL, NULL, conv2d_naive_op_forward, conv2d_naive_op_backward};

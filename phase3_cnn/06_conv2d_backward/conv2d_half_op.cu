/* conv2d_half_op.cu - the functions of conv2d_half_op.cuh. */
#include "phase3_cnn/06_conv2d_backward/conv2d_half_op.cuh"

#include "phase3_cnn/06_conv2d_backward/conv2d_half.cuh"

/* Of the gradient of the weights; a smaller batch may be divided into as many parts. */
static inline size_t conv2d_half_op_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return lowered_workspace_cpu(context, node, batch);
  if (!context->training) return 0;
  return conv2d_half_floats(conv2d_op_shape(node, batch));
}

template <typename T>
static inline void conv2d_half_forward_gpu(const Node *node, const OpArrays *a) {
  conv2d_half_forward<T>((uint16_t *)a->y, (const uint16_t *)a->x[0], a->half[0], a->param[1],
                         conv2d_op_shape(node, a->batch), false);
}

template <typename T>
static inline void conv2d_half_backward_gpu(const Node *node, const OpArrays *a) {
  const Conv2dShape s = conv2d_op_shape(node, a->batch);
  const uint16_t *dy = (const uint16_t *)a->dy, *turn = a->half[0] + conv2d_w_count(conv2d_half_shape(s));
  if (a->grad[0])
    conv2d_half_backward_weight<T>(a->grad[0], a->grad[1], dy, (const uint16_t *)a->x[0], s, a->workspace);
  if (a->dx[0]) conv2d_half_backward_input<T>((uint16_t *)a->dx[0], dy, turn, s);
}

static inline void conv2d_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, conv2d_half_forward_gpu, node, a),
            lowered_forward_cpu(context, node, a));
}

static inline void conv2d_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, conv2d_half_backward_gpu, node, a),
            lowered_backward_cpu(context, node, a));
}

const Op conv2d_half_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_half_op_workspace, conv2d_half_op_forward, conv2d_half_op_backward};

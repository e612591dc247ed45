/* max_pool2d_op.cu - the functions of max_pool2d_op.cuh. */
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"

static inline void max_pool2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Pool2dShape shape = max_pool2d_op_shape(node, a->batch);
  unsigned char *largest = (unsigned char *)a->saved;
  ON_DEVICE(context->device, max_pool2d_forward_gpu(a->y, largest, a->x[0], shape),
            max_pool2d_forward_cpu_fast(a->y, largest, a->x[0], shape));
}

static inline void max_pool2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Pool2dShape shape = max_pool2d_op_shape(node, a->batch);
  const unsigned char *largest = (const unsigned char *)a->saved;
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, max_pool2d_backward_gpu(a->dx[0], a->dy, largest, shape),
            max_pool2d_backward_cpu_fast(a->dx[0], a->dy, largest, shape));
}

const Op max_pool2d_op = {"MaxPool", 0, 0, max_pool2d_op_saved, NULL, max_pool2d_op_forward, max_pool2d_op_backward};

static inline void relu_max_pool2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Pool2dShape shape = max_pool2d_op_shape(node, a->batch);
  unsigned char *largest = (unsigned char *)a->saved;
  ON_DEVICE(context->device, relu_max_pool2d_forward_gpu(a->y, largest, a->x[0], shape),
            relu_max_pool2d_forward_cpu_fast(a->y, largest, a->x[0], shape));
}

const Op relu_max_pool2d_op = {
    "MaxPool", 0, 0, max_pool2d_op_saved, NULL, relu_max_pool2d_op_forward, max_pool2d_op_backward};

/* softmax_op.cu - the functions of softmax_op.cuh. */
#include "phase5_production/01_cudnn_layers/softmax_op.cuh"

#include "phase1_building_blocks/08_softmax/softmax.cuh"

static void softmax_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int cols = (int)shape_count(node->shape);
  ON_DEVICE(context->device, softmax_forward_gpu(a->y, a->x[0], a->batch, cols),
            softmax_forward_cpu(a->y, a->x[0], a->batch, cols));
}

static void softmax_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const int cols = (int)shape_count(node->shape);
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, softmax_backward_gpu(a->dx[0], a->dy, a->y, a->batch, cols),
            softmax_backward_cpu(a->dx[0], a->dy, a->y, a->batch, cols));
}

const Op softmax_op = {"Softmax", BACKWARD_NEEDS_Y, 0, NULL, NULL, softmax_op_forward, softmax_op_backward};

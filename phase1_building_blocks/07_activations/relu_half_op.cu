/* relu_half_op.cu - the functions of relu_half_op.cuh. */
#include "phase1_building_blocks/07_activations/relu_half_op.cuh"

#include "phase1_building_blocks/07_activations/relu_half.cuh"

static inline size_t relu_half_op_workspace(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_CPU ? lowered_workspace_cpu(context, node, batch) : 0;
}

static inline void relu_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t count = (size_t)a->batch * shape_half_count(node->shape);
  ON_DEVICE(context->device,
            HALF_CALL(node->type, relu_half_forward, (uint16_t *)a->y, (const uint16_t *)a->x[0], count),
            lowered_forward_cpu(context, node, a));
}

static inline void relu_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t count = (size_t)a->batch * shape_half_count(node->shape);
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device,
            HALF_CALL(node->type, relu_half_backward, (uint16_t *)a->dx[0], (const uint16_t *)a->dy,
                      (const uint16_t *)a->y, count),
            lowered_backward_cpu(context, node, a));
}

const Op relu_half_op = {
    "Relu", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, relu_half_op_workspace, relu_half_op_forward, relu_half_op_backward};

/* add_half_op.cu - the functions of add_half_op.cuh. */
#include "phase3_cnn/11_residual/add_half_op.cuh"

#include "phase1_building_blocks/07_activations/relu_half.cuh"

static inline size_t add_half_op_workspace(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_CPU ? lowered_workspace_cpu(context, node, batch) : 0;
}

static inline size_t add_half_count(const Node *node, const OpArrays *a) {
  return (size_t)a->batch * shape_half_count(node->shape);
}

template <typename T>
static inline void add_half_forward_gpu(const Node *node, const OpArrays *a, bool relu) {
  uint16_t *y = (uint16_t *)a->y;
  half_add<T>(y, (const uint16_t *)a->x[0], (const uint16_t *)a->x[1], add_half_count(node, a));
  if (relu) relu_half_forward<T>(y, y, add_half_count(node, a));
}

static inline void add_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, add_half_forward_gpu, node, a, false),
            lowered_forward_cpu(context, node, a));
}
static inline void add_relu_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device, HALF_CALL(node->type, add_half_forward_gpu, node, a, true),
            lowered_forward_cpu(context, node, a));
}

/* The bits of `from`, dy or the first gradient, for every gradient that is another array. */
static inline void add_half_copy(const Context *context, const Node *node, const OpArrays *a, const float *from) {
  for (int k = 0; k < 2; k++)
    if (a->dx[k] && a->dx[k] != from && (k == 0 || a->dx[k] != a->dx[0]))
      device_copy(context->device, a->dx[k], from, add_half_count(node, a) * sizeof(uint16_t));
}

static inline void add_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  add_half_copy(context, node, a, a->dy);
}

static inline void add_relu_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  float *first = a->dx[0] ? a->dx[0] : a->dx[1];
  if (first == NULL) return;
  ON_DEVICE(context->device,
            HALF_CALL(node->type, relu_half_backward, (uint16_t *)first, (const uint16_t *)a->dy,
                      (const uint16_t *)a->y, add_half_count(node, a)),
            {
              lowered_backward_cpu(context, node, a);
              return;
            });
  if (a->dx[1] && a->dx[1] != first)
    device_copy(context->device, a->dx[1], first, add_half_count(node, a) * sizeof(uint16_t));
}

const Op add_half_op = {
    "Add", 0, OP_IN_PLACE | OP_SAME_GRADIENT, NULL, add_half_op_workspace, add_half_op_forward, add_half_op_backward};
const Op add_relu_half_op = {"Add",
                             BACKWARD_NEEDS_Y,
                             OP_IN_PLACE | OP_SAME_GRADIENT,
                             NULL,
                             add_half_op_workspace,
                             add_relu_half_op_forward,
                             add_relu_half_op_backward};

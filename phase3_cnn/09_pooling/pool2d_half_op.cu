/* pool2d_half_op.cu - the functions of pool2d_half_op.cuh. */
#include "phase3_cnn/09_pooling/pool2d_half_op.cuh"

#include "phase3_cnn/09_pooling/pool2d_half.cuh"

static inline size_t pool2d_half_op_workspace(const Context *context, const Node *node, int batch) {
  return context->device == DEVICE_CPU ? lowered_workspace_cpu(context, node, batch) : 0;
}

static inline size_t max_pool2d_half_op_saved(const Node *node, int batch) {
  return lowered_saved_bytes(node, batch, shape_half_count(node->shape) * (size_t)batch);
}

static inline void max_pool2d_half_forward_of(const Context *context, const Node *node, const OpArrays *a, bool relu) {
  ON_DEVICE(context->device,
            HALF_CALL(node->type, max_pool2d_half_forward, (uint16_t *)a->y, (unsigned char *)a->saved,
                      (const uint16_t *)a->x[0], max_pool2d_op_shape(node, a->batch), relu),
            lowered_forward_cpu(context, node, a));
}

static inline void max_pool2d_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  max_pool2d_half_forward_of(context, node, a, false);
}
static inline void relu_max_pool2d_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  max_pool2d_half_forward_of(context, node, a, true);
}

static inline void max_pool2d_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device,
            HALF_CALL(node->type, max_pool2d_half_backward, (uint16_t *)a->dx[0], (const uint16_t *)a->dy,
                      (const unsigned char *)a->saved, max_pool2d_op_shape(node, a->batch)),
            lowered_backward_cpu(context, node, a));
}

static inline void global_avg_pool2d_half_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  ON_DEVICE(context->device,
            HALF_CALL(node->type, global_avg_pool2d_half_forward, (uint16_t *)a->y, (const uint16_t *)a->x[0], a->batch,
                      node->shape.dim[0], global_avg_pool2d_op_pixels(node)),
            lowered_forward_cpu(context, node, a));
}

static inline void global_avg_pool2d_half_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device,
            HALF_CALL(node->type, global_avg_pool2d_half_backward, (uint16_t *)a->dx[0], (const uint16_t *)a->dy,
                      a->batch, node->shape.dim[0], global_avg_pool2d_op_pixels(node)),
            lowered_backward_cpu(context, node, a));
}

const Op max_pool2d_half_op = {"MaxPool",
                               0,
                               0,
                               max_pool2d_half_op_saved,
                               pool2d_half_op_workspace,
                               max_pool2d_half_op_forward,
                               max_pool2d_half_op_backward};
const Op relu_max_pool2d_half_op = {"MaxPool",
                                    0,
                                    0,
                                    max_pool2d_half_op_saved,
                                    pool2d_half_op_workspace,
                                    relu_max_pool2d_half_op_forward,
                                    max_pool2d_half_op_backward};
const Op global_avg_pool2d_half_op = {"GlobalAveragePool",
                                      0,
                                      0,
                                      NULL,
                                      pool2d_half_op_workspace,
                                      global_avg_pool2d_half_op_forward,
                                      global_avg_pool2d_half_op_backward};

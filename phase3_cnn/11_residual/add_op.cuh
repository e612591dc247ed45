/* add_op.cuh - the sum of two nodes of the same shape as an Op of common/nn: what closes a residual block. */
#ifndef PHASE3_CNN_ADD_OP_CUH
#define PHASE3_CNN_ADD_OP_CUH

#include "common/nn/model.h"

static inline void add_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t n = (size_t)a->batch * shape_count(node->shape);
  ON_DEVICE(context->device, add_gpu(a->y, a->x[0], a->x[1], n), add_cpu(a->y, a->x[0], a->x[1], n));
}

/* Both inputs get dy itself; dx[0] may be dy, and dx[1] may be dx[0]. */
static inline void add_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t bytes = (size_t)a->batch * shape_count(node->shape) * sizeof(float);
  for (int k = 0; k < 2; k++)
    if (a->dx[k] && a->dx[k] != a->dy && (k == 0 || a->dx[k] != a->dx[0]))
      device_copy(context->device, a->dx[k], a->dy, bytes);
}

inline const Op add_op = {"Add", 0, OP_IN_PLACE | OP_SAME_GRADIENT, NULL, NULL, add_op_forward, add_op_backward};

static inline int add(Graph *g, int a, int b) {
  const int inputs[] = {a, b};
  if (graph_expect_same_shape(g, "add", a, b) != 0) return GRAPH_ERROR;
  return graph_node(g, &add_op, "add", inputs, 2, graph_shape(g, a), NULL, 0);
}

#endif /* PHASE3_CNN_ADD_OP_CUH */

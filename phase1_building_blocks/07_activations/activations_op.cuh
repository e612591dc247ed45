/* activations_op.cuh - the activations of activations.cuh as an Op of common/nn: y = max(x, 0), and the others. */
#ifndef PHASE1_BUILDING_BLOCKS_ACTIVATIONS_OP_CUH
#define PHASE1_BUILDING_BLOCKS_ACTIVATIONS_OP_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/07_activations/activations.cuh"

static inline Activation activation_kind(const Node *node) { return *(const Activation *)node->attributes.bytes; }

static inline void activation_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Activation kind = activation_kind(node);
  const size_t n = (size_t)a->batch * shape_count(node->shape);
  ON_DEVICE(context->device, activation_forward_gpu(kind, a->y, a->x[0], n),
            activation_forward_cpu_fast(kind, a->y, a->x[0], n));
}

static inline void activation_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Activation kind = activation_kind(node);
  const size_t n = (size_t)a->batch * shape_count(node->shape);
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, activation_backward_gpu(kind, a->dx[0], a->dy, a->y, n),
            activation_backward_cpu_fast(kind, a->dx[0], a->dy, a->y, n));
}

/* Backward needs only y, so forward may overwrite x. `inline`: one address in a program of several files, by which
 * fusions know them. */
inline const Op activation_ops[] = {
    {"Relu", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation_op_forward, activation_op_backward},
    {"LeakyRelu", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation_op_forward, activation_op_backward},
    {"Sigmoid", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation_op_forward, activation_op_backward},
    {"Tanh", BACKWARD_NEEDS_Y, OP_IN_PLACE, NULL, NULL, activation_op_forward, activation_op_backward},
};

/* A ReLU that the node before or behind it computes (common/nn/fuse.h). */
inline const Op relu_passed_op = {"Relu", 0, OP_IN_PLACE | OP_PASSED, NULL, NULL, op_passed, op_passed};

static inline int activation(Graph *g, int x, Activation kind) {
  return graph_node(g, &activation_ops[kind], activation_name(kind), &x, 1, graph_shape(g, x), &kind, sizeof kind);
}

static inline int relu(Graph *g, int x) { return activation(g, x, ACTIVATION_RELU); }

#endif /* PHASE1_BUILDING_BLOCKS_ACTIVATIONS_OP_CUH */

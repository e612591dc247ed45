/* dropout_op.cuh - dropout.cuh as an Op of common/nn. Each node has a stream of its own, and each step draws new
 * numbers; in evaluation y is x. */
#ifndef PHASE1_BUILDING_BLOCKS_DROPOUT_OP_CUH
#define PHASE1_BUILDING_BLOCKS_DROPOUT_OP_CUH

#include "common/nn/graph.h"
#include "phase1_building_blocks/12_dropout/dropout.cuh"

/* Each step takes another seed. Runs whose seeds differ by less than 2^32 never share a mask. */
static inline uint64_t dropout_op_seed(const Context *context) {
  return context->seed + ((uint64_t)context->step << 32);
}

/* The node's, and another one for each part of a step (Context.part). */
static inline uint32_t dropout_op_stream(const Context *context, const Node *node) {
  return node->order + ((uint32_t)context->part << 16);
}

static inline void dropout_op_apply(const Context *context, const Node *node, float *y, const float *x, int batch) {
  const float p = *(const float *)node->attributes.bytes;
  const size_t n = (size_t)batch * shape_count(node->shape);
  const uint64_t seed = dropout_op_seed(context);
  const uint32_t stream = dropout_op_stream(context, node);
  if (context->training)
    ON_DEVICE(context->device, dropout_gpu(y, x, n, p, seed, stream), dropout_cpu(y, x, n, p, seed, stream));
  else if (y != x)
    device_copy(context->device, y, x, n * sizeof(float));
}

static inline void dropout_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  dropout_op_apply(context, node, a->y, a->x[0], a->batch);
}

/* The same function: what was dropped is a function of (seed, stream, index), so no mask is kept. */
static inline void dropout_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->dx[0]) dropout_op_apply(context, node, a->dx[0], a->dy, a->batch);
}

inline const Op dropout_op = {"Dropout",          0, OP_IN_PLACE | OP_DRAWS, NULL, NULL, dropout_op_forward,
                              dropout_op_backward};

/* p = 0: y is x, and no random numbers are drawn. So all steps have the same launches (OP_DRAWS). */
static inline void dropout_none_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->y != a->x[0])
    device_copy(context->device, a->y, a->x[0], (size_t)a->batch * shape_count(node->shape) * sizeof(float));
}

static inline void dropout_none_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  if (a->dx[0] && a->dx[0] != a->dy)
    device_copy(context->device, a->dx[0], a->dy, (size_t)a->batch * shape_count(node->shape) * sizeof(float));
}

inline const Op dropout_none_op = {
    "Dropout", 0, OP_IN_PLACE, NULL, NULL, dropout_none_op_forward, dropout_none_op_backward};

/* Drops each element with probability p in [0, 1]. */
static inline int dropout(Graph *g, int x, float p) {
  if (!(p >= 0 && p <= 1)) return graph_fail(g, "dropout: the probability is %g; 0 to 1 is expected", p);
  return graph_node(g, p > 0 ? &dropout_op : &dropout_none_op, "dropout", &x, 1, graph_shape(g, x), &p, sizeof p);
}

#endif /* PHASE1_BUILDING_BLOCKS_DROPOUT_OP_CUH */

/* batch_norm2d_op.cuh - batch_norm2d.cuh as an Op of common/nn. gamma and beta are trained, without weight decay; the
 * running statistics are buffers. */
#ifndef PHASE3_CNN_BATCH_NORM2D_OP_CUH
#define PHASE3_CNN_BATCH_NORM2D_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

static inline BatchNorm2dShape batch_norm2d_op_shape(const Node *node, int batch) {
  const BatchNorm2dShape shape = {batch, node->shape.dim[0], node->shape.dim[1] * node->shape.dim[2]};
  return shape;
}

static inline size_t batch_norm2d_op_saved(const Node *node, int batch) {
  (void)batch;
  return 2 * (size_t)node->shape.dim[0] * sizeof(float);
}

static inline void batch_norm2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const BatchNorm2dShape s = batch_norm2d_op_shape(node, a->batch);
  float *saved = (float *)a->saved, *mean = a->param[2], *var = a->param[3];
  ON_DEVICE(context->device,
            batch_norm2d_forward_gpu(a->y, saved, mean, var, a->x[0], a->param[0], a->param[1], context->training, s),
            batch_norm2d_forward_cpu(a->y, saved, mean, var, a->x[0], a->param[0], a->param[1], context->training, s));
}

static inline void batch_norm2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const BatchNorm2dShape s = batch_norm2d_op_shape(node, a->batch);
  const float *saved = (const float *)a->saved;
  ON_DEVICE(context->device,
            batch_norm2d_backward_gpu(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], a->param[0], saved, s),
            batch_norm2d_backward_cpu(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], a->param[0], saved, s));
}

static const Op batch_norm2d_op = {"BatchNormalization",    BACKWARD_NEEDS_X,        0, batch_norm2d_op_saved, NULL,
                                   batch_norm2d_op_forward, batch_norm2d_op_backward};

/* Whether it is this operation, alone or fused with others. */
static inline int batch_norm2d_is(const Node *node) {
  return node->op != NULL && strcmp(node->op->name, batch_norm2d_op.name) == 0;
}

/* What graph_fuse() made of batch norms becomes separate operations again. */
static inline void batch_norm2d_unfuse(Graph *g) { (void)g; }

static inline int batch_norm2d(Graph *g, int x) {
  if (graph_expect_images(g, "batch_norm2d", x) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, x);
  const int node = graph_node(g, &batch_norm2d_op, "bn", &x, 1, shape, NULL, 0);
  const size_t channels = (size_t)shape.dim[0];
  const ParamSpec gamma = {"weight", 1, {channels, 0, 0, 0}, 1, 1, &init_one, 1, 0};
  const ParamSpec beta = {"bias", 1, {channels, 0, 0, 0}, 1, 1, &init_zero, 1, 0};
  const ParamSpec mean = {"running_mean", 1, {channels, 0, 0, 0}, 1, 1, &init_zero, 0, 0};
  const ParamSpec variance = {"running_var", 1, {channels, 0, 0, 0}, 1, 1, &init_one, 0, 0};
  graph_param(g, node, gamma);
  graph_param(g, node, beta);
  graph_param(g, node, mean);
  graph_param(g, node, variance);
  graph_step_counter(g, node, "num_batches_tracked");
  return node;
}

#endif /* PHASE3_CNN_BATCH_NORM2D_OP_CUH */

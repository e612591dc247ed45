/* layer_norm_op.cuh - layer_norm.cuh as an Op of common/nn: over the last dimensions of each sample. weight and bias
 * have the shape of these dimensions, as in PyTorch, and are trained without weight decay. */
#ifndef PHASE3_CNN_LAYER_NORM_OP_CUH
#define PHASE3_CNN_LAYER_NORM_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/10_batch_norm/layer_norm.cuh"

static inline int layer_norm_op_cols(const Node *node) { return (int)node->param[0].count; }

static inline int layer_norm_op_rows(const Node *node, int batch) {
  return batch * (int)(shape_count(node->shape) / node->param[0].count);
}

static inline size_t layer_norm_op_saved(const Node *node, int batch) {
  return 2 * (size_t)layer_norm_op_rows(node, batch) * sizeof(float);
}

static inline size_t layer_norm_op_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_CPU) return 0;
  return layer_norm_workspace_floats(layer_norm_op_rows(node, batch), layer_norm_op_cols(node));
}

static inline void layer_norm_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int rows = layer_norm_op_rows(node, a->batch), cols = layer_norm_op_cols(node);
  float *saved = (float *)a->saved;
  ON_DEVICE(context->device, layer_norm_forward_gpu(a->y, saved, a->x[0], a->param[0], a->param[1], rows, cols),
            layer_norm_forward_cpu_fast(a->y, saved, a->x[0], a->param[0], a->param[1], rows, cols));
}

static inline void layer_norm_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const int rows = layer_norm_op_rows(node, a->batch), cols = layer_norm_op_cols(node);
  const float *saved = (const float *)a->saved;
  ON_DEVICE(
      context->device,
      layer_norm_backward_gpu(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], a->param[0], saved, rows, cols,
                              a->workspace),
      layer_norm_backward_cpu_fast(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], a->param[0], saved, rows, cols));
}

inline const Op layer_norm_op = {"LayerNormalization",  BACKWARD_NEEDS_X,        0,
                                 layer_norm_op_saved,   layer_norm_op_workspace, layer_norm_op_forward,
                                 layer_norm_op_backward};

/* Over the last `dims` dimensions of each sample: of (16,64), one row of 1024 with 2, 16 rows of 64 with 1. */
static inline int layer_norm_last(Graph *g, int x, int dims) {
  if (graph_expect_node(g, "layer_norm", x) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, x);
  if (dims < 1 || dims > shape.rank)
    return graph_fail(g, "layer_norm over the last %d dimensions of %s, whose shape is %s; 1 to %d are expected", dims,
                      g->nodes[x].name, shape_text(shape).text, shape.rank);
  ParamSpec weight = {"weight", dims, {0, 0, 0, 0}, 1, 1, &init_one, 1, 0};
  for (int i = 0; i < dims; i++) weight.dim[i] = (size_t)shape.dim[shape.rank - dims + i];
  ParamSpec bias = weight;
  bias.name = "bias";
  bias.init = &init_zero;
  const int node = graph_node(g, &layer_norm_op, "norm", &x, 1, shape, NULL, 0);
  graph_param(g, node, weight);
  graph_param(g, node, bias);
  return node;
}

/* Over all of a sample: nn.LayerNorm(x.shape[1:]). */
static inline int layer_norm(Graph *g, int x) { return layer_norm_last(g, x, graph_shape(g, x).rank); }

#endif /* PHASE3_CNN_LAYER_NORM_OP_CUH */

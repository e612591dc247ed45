/* instance_norm_op.cuh - instance_norm.cuh as an Op of common/nn, without running statistics. Weight and bias are
 * optional, as in PyTorch, whose default is to have none; they are trained without weight decay. */
#ifndef PHASE3_CNN_INSTANCE_NORM_OP_CUH
#define PHASE3_CNN_INSTANCE_NORM_OP_CUH

#include "common/nn/graph.h"
#include "phase3_cnn/10_batch_norm/instance_norm.cuh"

static inline InstanceNormShape instance_norm_op_shape(const Node *node, int batch) {
  const InstanceNormShape shape = {batch, node->shape.dim[0], node->shape.dim[1] * node->shape.dim[2]};
  return shape;
}

static inline size_t instance_norm_op_saved(const Node *node, int batch) {
  return instance_norm_workspace_floats(instance_norm_op_shape(node, batch)) * sizeof(float);
}

static inline size_t instance_norm_op_workspace(const Context *context, const Node *node, int batch) {
  (void)context;
  return instance_norm_workspace_floats(instance_norm_op_shape(node, batch));
}

static inline void instance_norm_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const InstanceNormShape s = instance_norm_op_shape(node, a->batch);
  float *saved = (float *)a->saved;
  ON_DEVICE(context->device, instance_norm_forward_gpu(a->y, saved, a->x[0], a->param[0], a->param[1], s),
            instance_norm_forward_cpu_fast(a->y, saved, a->x[0], a->param[0], a->param[1], s));
}

static inline void instance_norm_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const InstanceNormShape s = instance_norm_op_shape(node, a->batch);
  const float *saved = (const float *)a->saved, *weight = a->param[0];
  ON_DEVICE(
      context->device,
      instance_norm_backward_gpu(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], weight, saved, s, a->workspace),
      instance_norm_backward_cpu_fast(a->dx[0], a->grad[0], a->grad[1], a->dy, a->x[0], weight, saved, s,
                                      a->workspace));
}

inline const Op instance_norm_op = {"InstanceNormalization",  BACKWARD_NEEDS_X,           0,
                                    instance_norm_op_saved,   instance_norm_op_workspace, instance_norm_op_forward,
                                    instance_norm_op_backward};

static inline int instance_norm_node(Graph *g, int x, int affine) {
  if (graph_expect_images(g, "instance_norm2d", x) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, x);
  if (shape.dim[1] * shape.dim[2] == 1)
    return graph_fail(g, "instance_norm2d reads %s of shape %s; of one pixel only the bias would remain",
                      g->nodes[x].name, shape_text(shape).text);
  const int node = graph_node(g, &instance_norm_op, "norm", &x, 1, shape, NULL, 0);
  const size_t channels = (size_t)shape.dim[0];
  const ParamSpec weight = {"weight", 1, {channels, 0, 0, 0}, 1, 1, &init_one, 1, 0};
  const ParamSpec bias = {"bias", 1, {channels, 0, 0, 0}, 1, 1, &init_zero, 1, 0};
  if (affine) {
    graph_param(g, node, weight);
    graph_param(g, node, bias);
  }
  return node;
}

/* nn.InstanceNorm2d(channels), and with affine=True. */
static inline int instance_norm2d(Graph *g, int x) { return instance_norm_node(g, x, 0); }
static inline int instance_norm2d_affine(Graph *g, int x) { return instance_norm_node(g, x, 1); }

#endif /* PHASE3_CNN_INSTANCE_NORM_OP_CUH */

/* conv2d_transposed_op.cuh - conv2d_transposed.cuh as an Op of common/nn: x (N,C,H,W) -> y (N,K,P,Q); w
 * (C,K/groups,R,S), bias (K). */
#ifndef PHASE3_CNN_CONV2D_TRANSPOSED_OP_CUH
#define PHASE3_CNN_CONV2D_TRANSPOSED_OP_CUH

#include "common/nn/graph.h"
#include "phase1_building_blocks/11_random_init/random_init_op.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed.cuh"

/* The attributes of a node are its mirror's shape. */
static inline Conv2dShape conv2d_transposed_op_mirror(const Node *node, int batch) {
  Conv2dShape mirror = *(const Conv2dShape *)node->attributes.bytes;
  mirror.n = batch;
  return mirror;
}

static inline size_t conv2d_transposed_op_workspace(const Context *context, const Node *node, int batch) {
  return conv2d_workspace_floats(context->device, conv2d_transposed_op_mirror(node, batch));
}

static inline void conv2d_transposed_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape mirror = conv2d_transposed_op_mirror(node, a->batch);
  ON_DEVICE(context->device, conv2d_transposed_forward(a->y, a->x[0], a->param[0], a->param[1], mirror),
            conv2d_transposed_forward_cpu_fast(a->y, a->x[0], a->param[0], a->param[1], mirror, a->workspace));
}

static inline void conv2d_transposed_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape mirror = conv2d_transposed_op_mirror(node, a->batch);
  if (a->grad[0])
    conv2d_transposed_backward_weight(context->device, a->grad[0], a->grad[1], a->dy, a->x[0], mirror, a->workspace);
  if (a->dx[0]) conv2d_transposed_backward_input(context->device, a->dx[0], a->dy, a->param[0], mirror, a->workspace);
}

inline const Op conv2d_transposed_op = {"ConvTranspose",
                                        BACKWARD_NEEDS_X,
                                        0,
                                        NULL,
                                        conv2d_transposed_op_workspace,
                                        conv2d_transposed_op_forward,
                                        conv2d_transposed_op_backward};

/* `filters` square filters of side `kernel`: the image becomes about `stride` times as large. */
static inline int conv2d_transposed(Graph *g, int x, int filters, int kernel, int stride, int padding,
                                    int output_padding) {
  if (graph_expect_images(g, "conv2d_transposed", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  Conv2dShape mirror;
  Error err;
  if (conv2d_transposed_mirror(&mirror, 1, in.dim[0], in.dim[1], in.dim[2], filters,
                               conv2d_shape(1, 1, 1, 1, 1, kernel, kernel, stride, padding), output_padding,
                               output_padding, &err) != 0)
    return graph_fail(g, "a transposed convolution of %s %s: %.800s", g->nodes[x].name, shape_text(in).text,
                      err.message);
  const int node = graph_node(g, &conv2d_transposed_op, "conv_transpose", &x, 1, shape3(filters, mirror.h, mirror.w),
                              &mirror, sizeof mirror);
  if (node < 0) return node;
  const int area = kernel * kernel, fan_in = filters * area; /* as PyTorch counts, which takes dimension 1 of w */
  const size_t side = (size_t)kernel;
  const Init *init = g->weight_init ? g->weight_init : &he_normal;
  const ParamSpec weight = {
      "weight", 4, {(size_t)in.dim[0], (size_t)filters, side, side}, fan_in, in.dim[0] * area, init, 1, 1};
  const ParamSpec bias = {
      "bias", 1, {(size_t)filters, 0, 0, 0}, fan_in, filters, init == &torch_default ? init : &init_zero, 1, 1};
  graph_param(g, node, weight);
  graph_param(g, node, bias);
  g->nodes[node].flops = 2.0 * filters * area * (double)shape_count(in);
  return node;
}

#endif /* PHASE3_CNN_CONV2D_TRANSPOSED_OP_CUH */

/* conv2d_op.cuh - conv2d.cuh as an Op of common/nn: x (N,C,H,W) -> y (N,K,P,Q), w (K,C,R,S), bias (K). */
#ifndef PHASE3_CNN_CONV2D_OP_CUH
#define PHASE3_CNN_CONV2D_OP_CUH

#include "common/nn/graph.h"
#include "phase1_building_blocks/11_random_init/random_init_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"

static inline Conv2dShape conv2d_op_shape(const Node *node, int batch) {
  Conv2dShape shape = *(const Conv2dShape *)node->attributes.bytes;
  shape.n = batch;
  return shape;
}

/* On a GPU only the gradient of the weights needs it. */
static inline size_t conv2d_op_workspace(const Context *context, const Node *node, int batch) {
  if (context->device == DEVICE_GPU && !context->training) return 0;
  return conv2d_workspace_floats(context->device, conv2d_op_shape(node, batch));
}

/* In conv2d_op.cu, where their kernels are compiled once, and not again in every program. conv2d_naive_op: one thread
 * per result (GPU), the plain loops of the formula (CPU). */
extern const Op conv2d_op, conv2d_naive_op;

/* A convolution of any shape: of `shape` all but n, c, h, w, which follow from x. Without a bias param[1] is NULL. */
static inline int conv2d_general_bias(Graph *g, int x, Conv2dShape shape, int has_bias) {
  if (graph_expect_images(g, "conv2d", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  shape.n = 1;
  shape.c = in.dim[0];
  shape.h = in.dim[1];
  shape.w = in.dim[2];
  Error err;
  if (conv2d_shape_check(shape, &err) != 0)
    return graph_fail(g, "a convolution of %s %s: %.800s", g->nodes[x].name, shape_text(in).text, err.message);
  const int node = graph_node(g, &conv2d_op, "conv", &x, 1, shape3(shape.k, conv2d_out_h(shape), conv2d_out_w(shape)),
                              &shape, sizeof shape);
  if (node < 0) return node;
  const NodeWindow window = {{conv2d_span_h(shape), conv2d_span_w(shape)},
                             {shape.stride_h, shape.stride_w},
                             {shape.padding_h, shape.padding_w}};
  graph_window(g, node, window);
  const int channels = shape.c / shape.groups, area = shape.r * shape.s; /* of a filter, as PyTorch counts */
  const int fan_in = channels * area, fan_out = shape.k * area;
  const Init *init = g->weight_init ? g->weight_init : &he_normal;
  const ParamSpec weight = {
      "weight", 4, {(size_t)shape.k, (size_t)channels, (size_t)shape.r, (size_t)shape.s}, fan_in, fan_out, init, 1, 1};
  const ParamSpec bias = {
      "bias", 1, {(size_t)shape.k, 0, 0, 0}, fan_in, shape.k, init == &torch_default ? init : &init_zero, 1, 1};
  graph_param(g, node, weight);
  if (has_bias) graph_param(g, node, bias);
  g->nodes[node].flops = 2.0 * fan_in * (double)shape_count(g->nodes[node].shape);
  return node;
}

static inline int conv2d_general(Graph *g, int x, Conv2dShape shape) { return conv2d_general_bias(g, x, shape, 1); }

/* `filters` square filters of side `kernel`. */
static inline int conv2d(Graph *g, int x, int filters, int kernel, int stride, int padding) {
  return conv2d_general(g, x, conv2d_shape(1, 1, 1, 1, filters, kernel, kernel, stride, padding));
}

/* The same without a bias: for a convolution that batch norm follows, which would subtract it again. */
static inline int conv2d_no_bias(Graph *g, int x, int filters, int kernel, int stride, int padding) {
  return conv2d_general_bias(g, x, conv2d_shape(1, 1, 1, 1, filters, kernel, kernel, stride, padding), 0);
}

#endif /* PHASE3_CNN_CONV2D_OP_CUH */

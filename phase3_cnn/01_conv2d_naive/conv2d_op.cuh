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

static inline size_t conv2d_op_workspace(const Context *context, const Node *node, int batch) {
  return conv2d_workspace_floats(context->device, conv2d_op_shape(node, batch));
}

static inline void conv2d_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  ON_DEVICE(context->device, conv2d_forward_gpu(a->y, a->x[0], a->param[0], a->param[1], shape),
            conv2d_forward_cpu_fast(a->y, a->x[0], a->param[0], a->param[1], shape, a->workspace));
}

static inline void conv2d_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  if (a->grad[0])
    ON_DEVICE(context->device, conv2d_backward_weight_gpu(a->grad[0], a->grad[1], a->dy, a->x[0], shape, a->workspace),
              conv2d_backward_weight_cpu_fast(a->grad[0], a->grad[1], a->dy, a->x[0], shape, a->workspace));
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, conv2d_backward_input_gpu(a->dx[0], a->dy, a->param[0], shape),
            conv2d_backward_input_cpu_fast(a->dx[0], a->dy, a->param[0], shape, a->workspace));
}

static const Op conv2d_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_op_workspace, conv2d_op_forward, conv2d_op_backward};

/* One thread per output (GPU), the plain loops of the formula (CPU); backward on a GPU is that of conv2d_op. */
static inline void conv2d_naive_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  ON_DEVICE(context->device, conv2d_forward_naive(a->y, a->x[0], a->param[0], a->param[1], shape),
            conv2d_forward_cpu(a->y, a->x[0], a->param[0], a->param[1], shape));
}

static inline void conv2d_naive_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const Conv2dShape shape = conv2d_op_shape(node, a->batch);
  if (context->device == DEVICE_GPU) {
    conv2d_op_backward(context, node, a);
    return;
  }
  if (a->grad[0]) conv2d_backward_weight_cpu(a->grad[0], a->grad[1], a->dy, a->x[0], shape);
  if (a->dx[0]) conv2d_backward_input_cpu(a->dx[0], a->dy, a->param[0], shape);
}

static const Op conv2d_naive_op = {
    "Conv", BACKWARD_NEEDS_X, 0, NULL, conv2d_op_workspace, conv2d_naive_op_forward, conv2d_naive_op_backward};

/* --conv=...: an implementation of your own is an Op, and a line here. */
static const Implementation conv2d_implementations[] = {{"tiled", &conv2d_op, NULL}, {"naive", &conv2d_naive_op, NULL}};
static const OpChoice conv2d_choice = {"conv", conv2d_implementations, 2};

/* `filters` square filters of side `kernel`. */
static inline int conv2d(Graph *g, int x, int filters, int kernel, int stride, int padding) {
  if (graph_expect_images(g, "conv2d", x) != 0) return GRAPH_ERROR;
  const Shape in = graph_shape(g, x);
  const Conv2dShape shape = {1, in.dim[0], in.dim[1], in.dim[2], filters, kernel, kernel, stride, padding};
  Error err;
  if (conv2d_shape_check(shape, &err) != 0)
    return graph_fail(g, "a convolution of %s %s: %.800s", g->nodes[x].name, shape_text(in).text, err.message);
  const int node = graph_node(g, &conv2d_op, "conv", &x, 1, shape3(filters, conv2d_out_h(shape), conv2d_out_w(shape)),
                              &shape, sizeof shape);
  if (node < 0) return node;
  const int fan_in = in.dim[0] * kernel * kernel;
  const size_t side = (size_t)kernel;
  const Init *init = g->weight_init ? g->weight_init : &he_normal;
  const ParamSpec weight = {
      "weight", 4, {(size_t)filters, (size_t)in.dim[0], side, side}, fan_in, filters * kernel * kernel, init, 1, 1};
  const ParamSpec bias = {
      "bias", 1, {(size_t)filters, 0, 0, 0}, fan_in, filters, init == &torch_default ? init : &init_zero, 1, 1};
  graph_param(g, node, weight);
  graph_param(g, node, bias);
  g->nodes[node].flops = 2.0 * fan_in * (double)shape_count(g->nodes[node].shape);
  return node;
}

#endif /* PHASE3_CNN_CONV2D_OP_CUH */

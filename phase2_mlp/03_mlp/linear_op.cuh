/* linear_op.cuh - linear.cuh as an Op of common/nn: y = x wᵀ + bias, w (out, in), bias (out). */
#ifndef PHASE2_MLP_LINEAR_OP_CUH
#define PHASE2_MLP_LINEAR_OP_CUH

#include "common/nn/graph.h"
#include "phase1_building_blocks/11_random_init/random_init_op.cuh"
#include "phase2_mlp/01_perceptron/linear.cuh"

/* Of w (out, in). */
static inline int linear_out(const Node *node) { return (int)node->param[0].dim[0]; }
static inline int linear_in(const Node *node) { return (int)node->param[0].dim[1]; }

static inline void linear_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const int in = linear_in(node), out = linear_out(node);
  ON_DEVICE(context->device, linear_forward_gpu(a->y, a->x[0], a->param[0], a->param[1], a->batch, in, out),
            linear_forward_cpu_fast(a->y, a->x[0], a->param[0], a->param[1], a->batch, in, out));
}

static inline void linear_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const int in = linear_in(node), out = linear_out(node);
  if (a->grad[0])
    ON_DEVICE(context->device, linear_backward_weight_gpu(a->grad[0], a->grad[1], a->dy, a->x[0], a->batch, in, out),
              linear_backward_weight_cpu_fast(a->grad[0], a->grad[1], a->dy, a->x[0], a->batch, in, out));
  if (a->dx[0] == NULL) return;
  ON_DEVICE(context->device, linear_backward_input_gpu(a->dx[0], a->dy, a->param[0], a->batch, in, out),
            linear_backward_input_cpu_fast(a->dx[0], a->dy, a->param[0], a->batch, in, out));
}

static const Op linear_op = {"Gemm", BACKWARD_NEEDS_X, 0, NULL, NULL, linear_op_forward, linear_op_backward};

/* All elements of a sample of x -> `out` features. */
static inline int linear(Graph *g, int x, int out) {
  const size_t in = shape_count(graph_shape(g, x));
  const int node = graph_node(g, &linear_op, "fc", &x, 1, shape1(out), NULL, 0);
  if (node < 0) return node;
  const Init *init = g->weight_init ? g->weight_init : &he_normal;
  const ParamSpec weight = {"weight", 2, {(size_t)out, in, 0, 0}, (int)in, out, init, 1, 1};
  const ParamSpec bias = {"bias", 1, {(size_t)out, 0, 0, 0}, (int)in, out, init == &torch_default ? init : &init_zero,
                          1,      1};
  graph_param(g, node, weight);
  graph_param(g, node, bias);
  g->nodes[node].flops = 2.0 * (double)in * out;
  return node;
}

#endif /* PHASE2_MLP_LINEAR_OP_CUH */

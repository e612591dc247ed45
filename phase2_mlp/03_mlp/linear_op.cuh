/* linear_op.cuh - linear.cuh as an Op of common/nn: y = x wᵀ + bias, w (out, in), bias (out). */
#ifndef PHASE2_MLP_LINEAR_OP_CUH
#define PHASE2_MLP_LINEAR_OP_CUH

#include "common/nn/graph.h"
#include "phase1_building_blocks/11_random_init/random_init_op.cuh"
#include "phase2_mlp/01_perceptron/linear.cuh"

/* Of w (out, in). */
static inline int linear_out(const Node *node) { return (int)node->param[0].dim[0]; }
static inline int linear_in(const Node *node) { return (int)node->param[0].dim[1]; }

extern const Op linear_op; /* in linear_op.cu, where its kernels are compiled once, and not in every program */

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

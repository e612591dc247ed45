/* int8_chain.cuh - which nodes of a float32 graph one int8 operation computes together: a convolution or linear
 * layer, the sum at the end of a residual block, and ReLU. */
#ifndef PHASE5_PRODUCTION_INT8_CHAIN_CUH
#define PHASE5_PRODUCTION_INT8_CHAIN_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/09_pooling/avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"
#include "phase3_cnn/11_residual/residual.cuh"

#include "phase3_cnn/11_residual/add_op.cuh" /* after residual.cuh, whose kernels it calls */
#include "phase5_production/09_int8/int8_op.cuh"

enum { INT8_NONE = -1 };

/* Of the output of a node: step 0 is float32, else int8, or uint8 if positive. */
typedef struct Int8Scale {
  float step;
  int positive;
} Int8Scale;

/* ----------------------------------------------------------------------------------------------------- what is what */

static inline int int8_is_relu(const Node *n) { return n->op == &activation_ops[ACTIVATION_RELU]; }
static inline int int8_is_product(const Node *n) { return n->op == &conv2d_op || n->op == &linear_op; }

/* The only reader of node i; INT8_NONE: there are others, or it is an output of the graph. */
static inline int int8_reader(const Graph *g, int i) {
  if (graph_readers(g, i) != 1) return INT8_NONE;
  for (int j = i + 1; j < g->count; j++)
    for (int k = 0; k < g->nodes[j].inputs; k++)
      if (g->nodes[j].input[k] == i) return j;
  return INT8_NONE;
}

/* The ReLU that alone reads node i; else i. */
static inline int int8_behind_relu(const Graph *g, int i) {
  const int reader = int8_reader(g, i);
  return reader >= 0 && int8_is_relu(&g->nodes[reader]) ? reader : i;
}

/* Products of uint8 and int8 that half of int32 holds. The other half is the bias's. */
enum { INT8_MOST_PRODUCTS = 1 << 15 };

/* Products with filters in groups need whole runs of channels. */
static inline int int8_product_fits(const Node *n) {
  if (n->param[0].count / (size_t)n->shape.dim[0] > INT8_MOST_PRODUCTS) return 0;
  if (n->op != &conv2d_op) return 1;
  const Conv2dShape s = conv2d_op_shape(n, 1);
  return s.groups == 1 || (s.c % INT8_RUN == 0 && s.k % INT8_RUN == 0);
}

/* What one int8_conv_op computes: from node `product` on to node `end`. */
typedef struct Int8Chain {
  int product, add, added, end; /* add: INT8_NONE, or the sum; added: the other node that it reads */
  int relu;
} Int8Chain;

static inline Int8Chain int8_chain(const Graph *g, const Int8Scale *scale, int product) {
  Int8Chain chain = {product, INT8_NONE, INT8_NONE, product, 0};
  const int reader = int8_reader(g, product);
  if (reader >= 0 && g->nodes[reader].op == &add_op) {
    const Node *sum = &g->nodes[reader];
    const int first = sum->input[0] == product, other = sum->input[first], end = int8_behind_relu(g, reader);
    /* Of two products the first one adds the other. */
    const int own =
        first || !int8_is_product(&g->nodes[other]) || scale[other].step == 0 || int8_reader(g, other) != reader;
    if (own && other != product && scale[other].step > 0 && scale[end].step > 0 &&
        (end == reader || scale[reader].step == 0)) {
      chain.add = reader;
      chain.added = other;
      chain.end = end;
      chain.relu = end != reader;
      return chain;
    }
  }
  if (scale[product].step == 0 && reader >= 0 && int8_is_relu(&g->nodes[reader])) {
    chain.end = reader;
    chain.relu = 1;
  }
  return chain;
}

/* Whether the chain can be int8: it reads int8, and writes it, or logits. */
static inline int int8_chain_fits(const Graph *g, const Int8Scale *scale, Int8Chain c) {
  const Node *n = &g->nodes[c.product];
  if (!int8_product_fits(n) || scale[n->input[0]].step == 0) return 0;
  return scale[c.end].step > 0 || (n->op == &linear_op && c.end == c.product);
}

#endif /* PHASE5_PRODUCTION_INT8_CHAIN_CUH */

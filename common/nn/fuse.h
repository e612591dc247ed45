/* fuse.h - two operations in a row, computed by the kernels of one.
 *
 * A launch costs as much time as a small layer. Where a network says relu(g, linear(g, x, 120)), the two nodes stay,
 * with their names, their parameters and their random numbers, but other Ops compute them:
 *
 *     static const Fusion fusions[] = {{&linear_op, &activation_ops[ACTIVATION_RELU], &linear_relu_op,
 *                                       &relu_passed_op, NULL},
 *                                      {&activation_ops[ACTIVATION_RELU], &max_pool2d_op, &relu_passed_op,
 *                                       &relu_max_pool2d_op, relu_max_pool2d_op_fits}};
 *     graph_fuse(g, fusions, 2);
 *
 * One of the two becomes an Op that does nothing (OP_PASSED): its output is the array of its input, and its gradient
 * that of its input. The other one computes both. So nothing else may read the input of the one that does nothing: two
 * nodes are fused only where that is so.
 */
#ifndef COMMON_NN_FUSE_H
#define COMMON_NN_FUSE_H

#include "common/nn/graph.h"

typedef struct Fusion {
  const Op *first, *second;             /* second reads first; NULL: first alone, whatever follows */
  const Op *fused_first, *fused_second; /* what computes them then */
  int (*fits)(const Node *second);      /* NULL: always */
} Fusion;

/* The forward() and backward() of an Op that does nothing. */
static inline void op_passed(const Context *context, const Node *node, const OpArrays *arrays) {
  (void)context;
  (void)node;
  (void)arrays;
}

/* How often node i is read: by other nodes, by a loss, by people. */
static inline int graph_readers(const Graph *g, int i) {
  int readers = graph_is_output(g, i);
  for (int j = i + 1; j < g->count; j++)
    for (int k = 0; k < g->nodes[j].inputs; k++) readers += g->nodes[j].input[k] == i;
  return readers;
}

/* Whether `fusion` is about nodes first and second, of which second reads first alone. */
static inline int graph_can_fuse(const Graph *g, const Fusion *fusion, const Node *first, const Node *second) {
  if (second->op != fusion->second || first->op != fusion->first) return 0;
  if (graph_readers(g, second->input[0]) > 1) return 0;
  if ((fusion->fused_first->flags & OP_PASSED) && graph_readers(g, first->input[0]) > 1) return 0;
  return fusion->fits == NULL || fusion->fits(second);
}

/* Applies the fusions in their order, each wherever it can be. */
static inline void graph_fuse(Graph *g, const Fusion *fusions, int count) {
  for (int f = 0; f < count && !g->failed; f++)
    for (int i = 0; i < g->count; i++) {
      const Fusion *fusion = &fusions[f];
      Node *second = &g->nodes[i], *first = second->inputs == 1 ? &g->nodes[second->input[0]] : NULL;
      if (fusion->second == NULL) {
        if (second->op == fusion->first) second->op = fusion->fused_first;
      } else if (first && graph_can_fuse(g, fusion, first, second)) {
        first->op = fusion->fused_first;
        second->op = fusion->fused_second;
      }
    }
}

/* ---------------------------------------------------------------------------------------------------- longer chains
 *
 * Several operations in a row, of which what passes between them is never stored: the last node computes all of them. It
 * reads what the first one read, and has the parameters of all, with their names. The others stay in the list, without
 * inputs, parameters or arrays (OP_ABSORBED). Nobody else may read what passes between.
 */
enum { CHAIN_MOST = 5 };

typedef struct ChainFusion {
  const Op *op[CHAIN_MOST];
  int count;
  int (*fits)(const Graph *g, const int *node, int count); /* node: numbers, first to last; NULL: always */
  void (*attributes)(Node *last, const Graph *g, const int *node, int count); /* sets those of the last; NULL: none */
  const Op *fused;
} ChainFusion;

static const Op absorbed_op = {"(absorbed)", 0, OP_ABSORBED, NULL, NULL, op_passed, op_passed};

/* Whether the nodes that end with `last` are the chain; their numbers then. */
static inline int graph_find_chain(const Graph *g, const ChainFusion *fusion, int last, int *node) {
  int params = 0;
  for (int i = fusion->count - 1, at = last; i >= 0; i--) {
    const Node *n = &g->nodes[at];
    if (n->op != fusion->op[i] || n->inputs != 1 || (i < fusion->count - 1 && graph_readers(g, at) > 1)) return 0;
    node[i] = at;
    params += n->params;
    at = n->input[0];
  }
  return params <= NODE_MAX_PARAMS && (fusion->fits == NULL || fusion->fits(g, node, fusion->count));
}

static inline void graph_join_chain(Graph *g, const ChainFusion *fusion, const int *node) {
  Node *last = &g->nodes[node[fusion->count - 1]];
  Node joined = *last;
  joined.op = fusion->fused;
  joined.input[0] = g->nodes[node[0]].input[0];
  joined.params = 0;
  joined.flops = 0;
  for (int i = 0; i < fusion->count; i++) {
    const Node *n = &g->nodes[node[i]];
    for (int k = 0; k < n->params; k++) joined.param[joined.params++] = n->param[k];
    joined.flops += n->flops;
  }
  if (fusion->attributes) fusion->attributes(&joined, g, node, fusion->count);
  for (int i = 0; i < fusion->count - 1; i++) {
    Node *n = &g->nodes[node[i]];
    n->op = &absorbed_op;
    n->inputs = n->params = 0;
    n->flops = 0;
  }
  *last = joined;
}

/* Applies the fusions in their order, each wherever it can be. */
static inline void graph_fuse_chains(Graph *g, const ChainFusion *fusions, int count) {
  int node[CHAIN_MOST];
  for (int f = 0; f < count && !g->failed; f++)
    for (int i = 0; i < g->count; i++)
      if (graph_find_chain(g, &fusions[f], i, node)) graph_join_chain(g, &fusions[f], node);
}

#endif /* COMMON_NN_FUSE_H */

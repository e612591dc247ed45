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
 *
 * Where the second reads two nodes, as a sum does, and is the one that does nothing, the first reads the other of them
 * as its second input from then on. Its place in the list is then behind that one:
 *
 *     {&batch_norm2d_op, &add_relu_op, &batch_norm2d_add_relu_op, &add_passed_op, NULL}
 *
 * graph_unfuse() makes all of them separate again, graph_unfuse_group() those that are computed together with a node.
 */
#ifndef COMMON_NN_FUSE_H
#define COMMON_NN_FUSE_H

#include "common/nn/graph.h"

typedef struct Fusion {
  const Op *first, *second;                           /* second reads first; NULL: first alone, whatever follows */
  const Op *fused_first, *fused_second;               /* what computes them then */
  int (*fits)(const Node *first, const Node *second); /* NULL: always */
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

/* Whether `fusion` is about node `second` and its k-th input. */
static inline int graph_can_fuse(const Graph *g, const Fusion *fusion, const Node *second, int k) {
  const Node *first = &g->nodes[second->input[k]];
  if (second->op != fusion->second || first->op != fusion->first) return 0;
  if (graph_readers(g, second->input[k]) > 1) return 0;
  if ((fusion->fused_first->flags & OP_PASSED) && graph_readers(g, first->input[0]) > 1) return 0;
  if (second->inputs == 2 && (!(fusion->fused_second->flags & OP_PASSED) || first->inputs != 1)) return 0;
  return fusion->fits == NULL || fusion->fits(first, second);
}

static inline int graph_moved(int i, int from, int to) { return i == from ? to : i - (i > from && i <= to); }

/* Node `from` moves to the place behind node `to`, which comes later; the numbers of nodes follow. Nobody between the
 * two may read it. */
static inline void graph_move(Graph *g, int from, int to) {
  const Node node = g->nodes[from];
  memmove(&g->nodes[from], &g->nodes[from + 1], (size_t)(to - from) * sizeof node);
  g->nodes[to] = node;
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].inputs; k++) g->nodes[i].input[k] = graph_moved(g->nodes[i].input[k], from, to);
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = graph_moved(g->losses[l].node, from, to);
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = graph_moved(g->outputs[o], from, to);
}

/* Another Op computes the node. The first one is remembered. */
static inline void graph_replace(Node *node, const Op *op) {
  if (node->plain == NULL) node->plain = node->op;
  node->op = op;
}

/* The two are computed together, with whatever either of them was computed with before. */
static inline void graph_group(Graph *g, Node *first, Node *second) {
  const int before[2] = {first->group, second->group};
  int group = 0;
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].group > group) group = g->nodes[i].group;
  first->group = second->group = ++group;
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].group && (g->nodes[i].group == before[0] || g->nodes[i].group == before[1]))
      g->nodes[i].group = group;
}

/* Node i and its k-th input. */
static inline void graph_fuse_two(Graph *g, const Fusion *fusion, int i, int k) {
  Node *second = &g->nodes[i], *first = &g->nodes[second->input[k]];
  graph_group(g, first, second);
  graph_replace(first, fusion->fused_first);
  graph_replace(second, fusion->fused_second);
  if (second->inputs != 2) return;
  const int own = second->input[k], other = second->input[1 - k];
  first->input[1] = other;
  first->inputs = 2;
  second->input[0] = own;
  second->inputs = 1;
  second->joined = 1;
  if (other > own) graph_move(g, own, other);
}

/* Applies the fusions in their order, each wherever it can be. */
static inline void graph_fuse(Graph *g, const Fusion *fusions, int count) {
  for (int f = 0; f < count && !g->failed; f++)
    for (int i = 0; i < g->count; i++) {
      const Fusion *fusion = &fusions[f];
      const int inputs = g->nodes[i].inputs;
      if (fusion->second == NULL) {
        if (g->nodes[i].op == fusion->first) graph_replace(&g->nodes[i], fusion->fused_first);
      } else if (inputs >= 1 && inputs <= 2) {
        int k = 0;
        while (k < inputs && !graph_can_fuse(g, fusion, &g->nodes[i], k)) k++;
        if (k < inputs) graph_fuse_two(g, fusion, i, k);
      }
    }
}

/* The operation of this node by itself again. */
static inline void graph_unfuse_node(Graph *g, Node *node) {
  if (node->op && (node->op->flags & OP_ABSORBED)) {
    graph_fail(g, "%s is computed by a node behind it (graph_fuse_chains()), and cannot be separated from it",
               node->name);
    return;
  }
  if (node->joined) {
    Node *first = &g->nodes[node->input[0]];
    node->input[1] = first->input[1];
    node->inputs = 2;
    first->inputs = 1;
    node->joined = 0;
  }
  if (node->plain) node->op = node->plain;
  node->plain = NULL;
  node->group = 0;
}

/* Every operation by itself again. Nodes that have moved stay where they are. */
static inline void graph_unfuse(Graph *g) {
  for (int i = 0; i < g->count && !g->failed; i++) graph_unfuse_node(g, &g->nodes[i]);
}

/* Node i and all that are computed together with it. */
static inline void graph_unfuse_group(Graph *g, int i) {
  const int group = g->nodes[i].group;
  for (int j = 0; j < g->count && !g->failed; j++)
    if (j == i || (group != 0 && g->nodes[j].group == group)) graph_unfuse_node(g, &g->nodes[j]);
}

/* ---------------------------------------------------------------------------------------------------- longer chains
 *
 * Several operations in a row, of which what passes between them is never stored: the last node computes all of them.
 * It reads what the first one read, and has the parameters of all, with their names. The others stay in the list,
 * without inputs, parameters or arrays (OP_ABSORBED). Nobody else may read what passes between.
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
  joined.plain = NULL; /* it cannot be taken apart again */
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

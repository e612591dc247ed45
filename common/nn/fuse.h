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

#endif /* COMMON_NN_FUSE_H */

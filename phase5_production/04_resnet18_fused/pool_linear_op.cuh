/* pool_linear_op.cuh - pool_linear.cuh as Ops of common/nn that take the place of the mean of each channel and the
 * linear layer behind it, for inference. The logits are float32, whatever the arrays before them are.
 *
 *     graph_fuse_chains(g, &pool_linear_chain, 1);
 *     graph_lower(g, DTYPE_FP16);
 *     pool_linear_read_half(g);                         // the kernel reads 16 bits: no cast before it
 *
 * pool_linear_tf32_op reads float32 (N,H,W,C).
 */
#ifndef PHASE5_PRODUCTION_POOL_LINEAR_OP_CUH
#define PHASE5_PRODUCTION_POOL_LINEAR_OP_CUH

#include "common/nn/lower.h"
#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d_op.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool_op.cuh"

extern const Op pool_linear_op, pool_linear_half_op, pool_linear_tf32_op; /* in pool_linear_op.cu */

/* Attributes. They begin as those of global_avg_pool2d_op do. */
typedef struct PoolLinear {
  int pixels;
  DType type; /* of what it reads */
} PoolLinear;

static inline PoolLinear pool_linear_of(const Node *node) { return *(const PoolLinear *)node->attributes.bytes; }

int pool_linear_chain_fits(const Graph *g, const int *node, int count); /* in pool_linear_op.cu, which has the kernel */

static inline void pool_linear_attributes(Node *last, const Graph *g, const int *node, int count) {
  const PoolLinear own = {global_avg_pool2d_op_pixels(&g->nodes[node[0]]), DTYPE_FLOAT32};
  (void)count;
  memcpy(&last->attributes, &own, sizeof own);
}

static const ChainFusion pool_linear_chain = {{&global_avg_pool2d_op, &linear_op, NULL, NULL, NULL},
                                              2,
                                              pool_linear_chain_fits,
                                              pool_linear_attributes,
                                              &pool_linear_op};

static inline void pool_linear_read_half(Graph *g) {
  for (int i = 0; i < g->count; i++) {
    Node *node = &g->nodes[i];
    if (node->op != &pool_linear_op || g->nodes[node->input[0]].op != &cast_op) continue;
    PoolLinear own = pool_linear_of(node);
    own.type = g->type;
    memcpy(&node->attributes, &own, sizeof own);
    graph_skip_cast(g, i);
    node->op = &pool_linear_half_op;
  }
}

#endif /* PHASE5_PRODUCTION_POOL_LINEAR_OP_CUH */

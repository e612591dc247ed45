/* stem_pool_op.cuh - stem_pool.cuh as Ops of common/nn that take the place of the first convolution of a ResNet, its
 * ReLU and its pooling, for inference:
 *
 *     graph_fuse_chains(g, &stem_pool_chain, 1);        // before other fusions
 *     graph_lower(g, DTYPE_FP16);                       // with LOWER_STEM_POOL among the lowerings
 *     stem_pool_read_pictures(g);                       // the kernel reads float32 pictures: no cast before it
 *
 * stem_pool_tf32_op writes float32 (N,H,W,C), for conv2d_tf32_op; its weights are (K,R,S,C).
 */
#ifndef PHASE5_PRODUCTION_STEM_POOL_OP_CUH
#define PHASE5_PRODUCTION_STEM_POOL_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_relu_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"

extern const Op stem_pool_op, stem_pool_half_op, stem_pool_tf32_op; /* in stem_pool_op.cu */

/* Attributes. They begin as those of conv2d_op do. */
typedef struct StemPool {
  Conv2dShape conv;
  Pool2dShape pool;
} StemPool;

static inline StemPool stem_pool_of(const Node *node, int batch) {
  StemPool stem = *(const StemPool *)node->attributes.bytes;
  stem.conv.n = stem.pool.n = batch;
  return stem;
}

int stem_pool_chain_fits(const Graph *g, const int *node, int count); /* in stem_pool_op.cu, which has the kernel */

static inline void stem_pool_attributes(Node *last, const Graph *g, const int *node, int count) {
  const StemPool stem = {*(const Conv2dShape *)g->nodes[node[0]].attributes.bytes,
                         *(const Pool2dShape *)g->nodes[node[count - 1]].attributes.bytes};
  memcpy(&last->attributes, &stem, sizeof stem);
}

static const ChainFusion stem_pool_chain = {{&conv2d_op, &activation_ops[ACTIVATION_RELU], &max_pool2d_op, NULL, NULL},
                                            3,
                                            stem_pool_chain_fits,
                                            stem_pool_attributes,
                                            &stem_pool_op};

#define LOWER_STEM_POOL \
  { &stem_pool_op, &stem_pool_half_op, 1, 0, NULL }

/* Node i reads what the cast before it reads, which nobody else does. */
static inline void graph_skip_cast(Graph *g, int i) {
  Node *node = &g->nodes[i], *cast = &g->nodes[node->input[0]];
  if (cast->op != &cast_op || graph_readers(g, node->input[0]) != 1) return;
  node->input[0] = cast->input[0];
  cast->op = &absorbed_op;
  cast->inputs = 0;
}

static inline void stem_pool_read_pictures(Graph *g) {
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].op == &stem_pool_half_op) graph_skip_cast(g, i);
}

#endif /* PHASE5_PRODUCTION_STEM_POOL_OP_CUH */

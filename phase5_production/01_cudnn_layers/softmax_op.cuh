/* softmax_op.cuh - softmax.cuh of phase 1 as an Op of common/nn: of all numbers of a sample, y = exp(x) / sum exp(x).
 * In training it is part of the loss; a network that is used may end with it. */
#ifndef PHASE5_PRODUCTION_SOFTMAX_OP_CUH
#define PHASE5_PRODUCTION_SOFTMAX_OP_CUH

#include "common/nn/graph.h"

extern const Op softmax_op; /* in softmax_op.cu */

static inline int softmax(Graph *g, int x) {
  return graph_node(g, &softmax_op, "softmax", &x, 1, graph_shape(g, x), NULL, 0);
}

#endif /* PHASE5_PRODUCTION_SOFTMAX_OP_CUH */

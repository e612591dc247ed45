/* add_relu_op.cuh - residual.cuh as an Op of common/nn that graph_fuse() (common/nn/fuse.h) puts in the place of an
 * add() and the ReLU that reads it, and nothing else:
 *
 *     static const Fusion fusions[] = {FUSE_ADD_RELU};
 *     graph_fuse(g, fusions, 1);
 *
 * The node of the sum computes both. What it computes are the same bits as those of the two operations.
 */
#ifndef PHASE3_CNN_ADD_RELU_OP_CUH
#define PHASE3_CNN_ADD_RELU_OP_CUH

#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase3_cnn/11_residual/residual.cuh"

static inline void add_relu_op_forward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t n = (size_t)a->batch * shape_count(node->shape);
  ON_DEVICE(context->device, add_relu_forward_gpu(a->y, a->x[0], a->x[1], n),
            add_relu_forward_cpu_fast(a->y, a->x[0], a->x[1], n));
}

/* dx[0] may be dy, and dx[1] may be dx[0]: then one array is written. */
static inline void add_relu_op_backward(const Context *context, const Node *node, const OpArrays *a) {
  const size_t n = (size_t)a->batch * shape_count(node->shape);
  ON_DEVICE(context->device, add_relu_backward_gpu(a->dx[0], a->dx[1], a->dy, a->y, n),
            add_relu_backward_cpu_fast(a->dx[0], a->dx[1], a->dy, a->y, n));
}

inline const Op add_relu_op = {
    "Add", BACKWARD_NEEDS_Y, OP_IN_PLACE | OP_SAME_GRADIENT, NULL, NULL, add_relu_op_forward, add_relu_op_backward};

#define FUSE_ADD_RELU \
  { &add_op, &activation_ops[ACTIVATION_RELU], &add_relu_op, &relu_passed_op, NULL }

#endif /* PHASE3_CNN_ADD_RELU_OP_CUH */

/* batch_norm2d_op.cuh - batch_norm2d.cuh as an Op of common/nn. gamma and beta are trained, without weight decay; the
 * running statistics are buffers.
 *
 * graph_fuse() (common/nn/fuse.h) joins it with what follows in a residual network:
 *
 *     static const Fusion fusions[] = {FUSE_BATCH_NORM_RELU, FUSE_ADD_RELU, FUSE_BATCH_NORM_ADD_RELU};
 *
 * The last of these needs the second, of phase3_cnn/11_residual: a sum with ReLU is one operation then, and batch norm
 * takes it over.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_OP_CUH
#define PHASE3_CNN_BATCH_NORM2D_OP_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d.cuh"

#define BATCH_NORM_OP_NAME "BatchNormalization"

/* In batch_norm2d_op.cu, where their kernels are compiled once, and not again in every program. */
extern const Op batch_norm2d_op, batch_norm2d_relu_op, batch_norm2d_add_relu_op;

/* A sum that batch norm computes as well. */
inline const Op batch_norm2d_add_passed_op = {"Add", 0, OP_IN_PLACE | OP_PASSED, NULL, NULL, op_passed, op_passed};

#define FUSE_BATCH_NORM_RELU \
  { &batch_norm2d_op, &activation_ops[ACTIVATION_RELU], &batch_norm2d_relu_op, &relu_passed_op, NULL }
#define FUSE_BATCH_NORM_ADD_RELU \
  { &batch_norm2d_op, &add_relu_op, &batch_norm2d_add_relu_op, &batch_norm2d_add_passed_op, NULL }

/* Whether it is this operation, alone or fused with others. */
static inline int batch_norm2d_is(const Node *node) {
  return node->op != NULL && strcmp(node->op->name, BATCH_NORM_OP_NAME) == 0;
}

static inline int batch_norm2d(Graph *g, int x) {
  if (graph_expect_images(g, "batch_norm2d", x) != 0) return GRAPH_ERROR;
  const Shape shape = graph_shape(g, x);
  const int node = graph_node(g, &batch_norm2d_op, "bn", &x, 1, shape, NULL, 0);
  const size_t channels = (size_t)shape.dim[0];
  const ParamSpec gamma = {"weight", 1, {channels, 0, 0, 0}, 1, 1, &init_one, 1, 0};
  const ParamSpec beta = {"bias", 1, {channels, 0, 0, 0}, 1, 1, &init_zero, 1, 0};
  const ParamSpec mean = {"running_mean", 1, {channels, 0, 0, 0}, 1, 1, &init_zero, 0, 0};
  const ParamSpec variance = {"running_var", 1, {channels, 0, 0, 0}, 1, 1, &init_one, 0, 0};
  graph_param(g, node, gamma);
  graph_param(g, node, beta);
  graph_param(g, node, mean);
  graph_param(g, node, variance);
  graph_step_counter(g, node, "num_batches_tracked");
  return node;
}

#endif /* PHASE3_CNN_BATCH_NORM2D_OP_CUH */

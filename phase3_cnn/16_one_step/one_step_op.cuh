/* one_step_op.cuh - conv_pool.cuh, linear_chain.cuh and loss_step.cuh as Ops and a Loss of common/nn, and the fusions
 * that put them in the place of operations that a network's builder has added one by one:
 *
 *     Graph *g = lenet_graph();
 *     one_step_fuse(g);
 *
 * Names of parameters, random numbers and results stay; sums are added up in another order. The kernels are compiled
 * once, in one_step_op.cu, and not again in every program.
 */
#ifndef PHASE3_CNN_ONE_STEP_OP_CUH
#define PHASE3_CNN_ONE_STEP_OP_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_op.cuh"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_op.cuh"
#include "phase3_cnn/09_pooling/max_pool2d_op.cuh"

/* In one_step_op.cu. */
extern const Op conv_pool_op, chain_op;
extern const Loss cross_entropy_step_loss;
int conv_pool_op_fits(const Graph *g, const int *node, int count);
void conv_pool_op_attributes(Node *last, const Graph *g, const int *node, int count);
int chain_op_fits(const Graph *g, const int *node, int count);

#define ONE_STEP_CONV_POOL conv_pool_op_fits, conv_pool_op_attributes, &conv_pool_op

/* Behind the fusions of a network, such as lenet_fusions, or without. The longest first. */
static const ChainFusion one_step_fusions[] = {
    {{&conv2d_op, &relu_passed_op, &relu_max_pool2d_op}, 3, ONE_STEP_CONV_POOL},
    {{&conv2d_op, &activation_ops[ACTIVATION_RELU], &max_pool2d_op}, 3, ONE_STEP_CONV_POOL},
    {{&linear_relu_op, &relu_passed_op, &linear_relu_op, &relu_passed_op, &linear_one_launch_op},
     5,
     chain_op_fits,
     NULL,
     &chain_op},
    {{&linear_op, &activation_ops[ACTIVATION_RELU], &linear_op, &activation_ops[ACTIVATION_RELU], &linear_op},
     5,
     chain_op_fits,
     NULL,
     &chain_op},
    {{&linear_relu_op, &relu_passed_op, &linear_one_launch_op}, 3, chain_op_fits, NULL, &chain_op},
    {{&linear_op, &activation_ops[ACTIVATION_RELU], &linear_op}, 3, chain_op_fits, NULL, &chain_op},
};
#undef ONE_STEP_CONV_POOL

enum { ONE_STEP_FUSIONS = sizeof one_step_fusions / sizeof *one_step_fusions };

static inline void one_step_fuse(Graph *g) {
  graph_fuse_chains(g, one_step_fusions, ONE_STEP_FUSIONS);
  for (int l = 0; l < g->loss_count; l++)
    if (g->losses[l].loss == &cross_entropy_loss) g->losses[l].loss = &cross_entropy_step_loss;
}

/* For the graph() of a Task: fused, unless the user asks for --unfused or for an implementation (session.h). */
static inline Graph *one_step_may_fuse(Graph *g) {
  g->fuse = one_step_fuse;
  return g;
}

#endif /* PHASE3_CNN_ONE_STEP_OP_CUH */

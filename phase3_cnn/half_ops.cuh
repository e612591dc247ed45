/* half_ops.cuh - which operations of the networks of this phase can be computed in half precision: for graph_lower()
 * (common/nn/lower.h), which --precision=bf16 and --precision=fp16 call.
 *
 * Dropout, the activations beside ReLU, average pooling of windows and convolutions of several groups are not among
 * them: they stay float32, between casts. So does what is float32 in every network: the loss and its softmax, the
 * statistics of batch norm, and all that concerns the weights: their masters, their gradients, the optimizer.
 */
#ifndef PHASE3_CNN_HALF_OPS_CUH
#define PHASE3_CNN_HALF_OPS_CUH

#include "phase1_building_blocks/07_activations/relu_half_op.cuh"
#include "phase2_mlp/03_mlp/linear_half_op.cuh"
#include "phase3_cnn/06_conv2d_backward/conv2d_half_op.cuh"
#include "phase3_cnn/09_pooling/pool2d_half_op.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm2d_half_op.cuh"
#include "phase3_cnn/11_residual/add_half_op.cuh"

static const Lowering cnn_lowerings[] = {
    LOWER_CONV2D, LOWER_BATCH_NORM,  LOWER_BATCH_NORM_RELU,   LOWER_BATCH_NORM_ADD_RELU, LOWER_RELU,
    LOWER_ADD,    LOWER_ADD_RELU,    LOWER_MAX_POOL,          LOWER_RELU_MAX_POOL,       LOWER_GLOBAL_AVG_POOL,
    LOWER_LINEAR, LOWER_LINEAR_RELU, LOWER_LINEAR_ONE_LAUNCH,
};

/* For builders of networks: what --precision can do. */
static inline void cnn_can_be_lowered(Graph *g) {
  g->lowerings = cnn_lowerings;
  g->lowering_count = sizeof cnn_lowerings / sizeof *cnn_lowerings;
}

#endif /* PHASE3_CNN_HALF_OPS_CUH */

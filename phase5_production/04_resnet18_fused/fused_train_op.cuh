/* fused_train_op.cuh - convolution of 16 bits for training on Hopper: all three products by wgmma, as an Op that
 * graph_lower() (common/nn/lower.h) puts in the place of conv2d_op. Layers with few channels, GPUs without wgmma, and
 * the CPU go to conv2d_half_op. The gradient of the weights is rounded to 16 bits before it becomes float32, as
 * PyTorch's autocast does. */
#ifndef PHASE5_PRODUCTION_FUSED_TRAIN_OP_CUH
#define PHASE5_PRODUCTION_FUSED_TRAIN_OP_CUH

#include "phase3_cnn/half_ops.cuh"

extern const Op conv2d_train_half_op; /* in fused_train_op.cu */

#define LOWER_CONV2D_TRAIN \
  { &conv2d_op, &conv2d_train_half_op, 1, 0, conv2d_half_op_fits }

/* For builders of networks: what --precision can do, with these convolutions. */
static inline void cnn_can_be_lowered_for_hopper(Graph *g) {
  enum { COUNT = sizeof cnn_lowerings / sizeof *cnn_lowerings };
  static Lowering lowerings[COUNT + 1] = {LOWER_CONV2D_TRAIN};
  memcpy(lowerings + 1, cnn_lowerings, sizeof cnn_lowerings);
  g->lowerings = lowerings;
  g->lowering_count = COUNT + 1;
}

#endif /* PHASE5_PRODUCTION_FUSED_TRAIN_OP_CUH */

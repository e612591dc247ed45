/* relu_half_op.cuh - ReLU of 16 bits as an Op that graph_lower() (common/nn/lower.h) puts in the place of a ReLU that
 * stands behind an operation of 16 bits. */
#ifndef PHASE1_BUILDING_BLOCKS_RELU_HALF_OP_CUH
#define PHASE1_BUILDING_BLOCKS_RELU_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"

extern const Op relu_half_op; /* in relu_half_op.cu */

#define LOWER_RELU \
  { &activation_ops[ACTIVATION_RELU], &relu_half_op, 0, 1, NULL }

#endif /* PHASE1_BUILDING_BLOCKS_RELU_HALF_OP_CUH */

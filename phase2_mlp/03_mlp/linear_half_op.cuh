/* linear_half_op.cuh - a linear layer of 16 bits, alone or with the ReLU behind it, as Ops that graph_lower()
 * (common/nn/lower.h) puts in the place of those of linear_op.cuh and linear_relu_op.cuh. The weights are multiplied as
 * 16 bits on tensor cores (matmul_half.cuh); sums, the bias, and the gradients of both are float32. */
#ifndef PHASE2_MLP_LINEAR_HALF_OP_CUH
#define PHASE2_MLP_LINEAR_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase2_mlp/03_mlp/linear_relu_op.cuh"

extern const Op linear_half_op, linear_relu_half_op; /* in linear_half_op.cu */

#define LOWER_LINEAR \
  { &linear_op, &linear_half_op, 1, 0, NULL }
#define LOWER_LINEAR_ONE_LAUNCH \
  { &linear_one_launch_op, &linear_half_op, 1, 0, NULL }
#define LOWER_LINEAR_RELU \
  { &linear_relu_op, &linear_relu_half_op, 1, 0, NULL }

#endif /* PHASE2_MLP_LINEAR_HALF_OP_CUH */

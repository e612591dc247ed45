/* linear_relu_op.cuh - linear_relu.cuh as Ops of common/nn that graph_fuse() (common/nn/fuse.h) puts in the place of a
 * linear layer and the ReLU behind it, and of a linear layer alone:
 *
 *     static const Fusion fusions[] = {FUSE_LINEAR_RELU, FUSE_LINEAR};
 *
 * Their kernels are compiled once, in linear_relu_op.cu, and not again in every program.
 */
#ifndef PHASE2_MLP_LINEAR_RELU_OP_CUH
#define PHASE2_MLP_LINEAR_RELU_OP_CUH

#include "common/nn/fuse.h"
#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase2_mlp/03_mlp/linear_op.cuh"

extern const Op linear_relu_op, linear_one_launch_op;

#define FUSE_LINEAR_RELU \
  { &linear_op, &activation_ops[ACTIVATION_RELU], &linear_relu_op, &relu_passed_op, NULL }
#define FUSE_LINEAR \
  { &linear_op, NULL, &linear_one_launch_op, NULL, NULL }

#endif /* PHASE2_MLP_LINEAR_RELU_OP_CUH */

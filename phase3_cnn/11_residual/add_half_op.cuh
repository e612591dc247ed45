/* add_half_op.cuh - a sum of 16 bits, alone or with ReLU, as Ops that graph_lower() (common/nn/lower.h) puts in the
 * place of those of add_op.cuh and add_relu_op.cuh: where batch norm does not compute them itself. */
#ifndef PHASE3_CNN_ADD_HALF_OP_CUH
#define PHASE3_CNN_ADD_HALF_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/11_residual/add_relu_op.cuh"

extern const Op add_half_op, add_relu_half_op; /* in add_half_op.cu */

#define LOWER_ADD \
  { &add_op, &add_half_op, 0, 1, NULL }
#define LOWER_ADD_RELU \
  { &add_relu_op, &add_relu_half_op, 0, 1, NULL }

#endif /* PHASE3_CNN_ADD_HALF_OP_CUH */

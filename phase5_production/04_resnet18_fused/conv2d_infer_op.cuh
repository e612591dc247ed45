/* conv2d_infer_op.cuh - convolutions of a trained network as Ops of common/nn, with what is computed in the same
 * launch. They have no backward pass: for models that are opened to infer.
 *
 *     float32, NCHW             16 bits (common/nn/lower.h)   TF32: float32, NHWC     y =
 *     conv2d_op                 conv2d_infer_half_op          conv2d_tf32_op          conv(x) + bias
 *     conv2d_relu_op            conv2d_relu_half_op           conv2d_relu_tf32_op     relu(conv(x) + bias)
 *     residual_end_op           residual_end_half_op          residual_end_tf32_op    relu(conv(x) + bias + shortcut)
 *     add_relu_op               add_relu_one_half_op          add_relu_op             relu(a + b)
 *
 * conv2d_relu_gemm_op and conv2d_relu_winograd_op are conv2d_relu_op by the kernels of lessons 3 and 4 of phase 3.
 *
 * The end of a residual block. It reads h, and the shortcut: what the block adds, or, where that is a convolution of
 * 1 x 1 of the block's input, this input. So the convolution of the shortcut is no launch of its own, and its output
 * is never stored. Parameters: weight, that of the shortcut, bias, the sum of both. Where the shortcut is added as it
 * is, its weight is an identity, which the wgmma kernel multiplies by (conv2d_nhwc_plan.cuh).
 *
 * TF32: nodes are float32, but their arrays are (N,H,W,C), and so are the weights (K,R,S,C), rounded to TF32. Common/nn
 * knows nothing of it, so all nodes between the pictures and the logits must be of this column.
 */
#ifndef PHASE5_PRODUCTION_CONV2D_INFER_OP_CUH
#define PHASE5_PRODUCTION_CONV2D_INFER_OP_CUH

#include "common/nn/lower.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_relu_op.cuh"
#include "phase3_cnn/11_residual/add_relu_op.cuh"

extern const Op conv2d_relu_gemm_op, conv2d_relu_winograd_op, residual_end_op; /* conv2d_infer_op.cu */
extern const Op conv2d_infer_half_op, conv2d_relu_half_op, residual_end_half_op,
    add_relu_one_half_op;                                                  /* ..._half_op.cu */
extern const Op conv2d_tf32_op, conv2d_relu_tf32_op, residual_end_tf32_op; /* conv2d_tf32_op.cu */

/* A sum that the convolution computes as well. */
inline const Op residual_add_passed_op = {"Add", 0, OP_IN_PLACE | OP_PASSED, NULL, NULL, op_passed, op_passed};

#define FUSE_CONV2D_ADD_RELU \
  { &conv2d_op, &add_relu_op, &residual_end_op, &residual_add_passed_op, conv2d_relu_op_fits }

/* A byte of the attributes of these nodes: each sum in the same order, however large the batch is. */
enum { CONV2D_INFER_ONE_ORDER = NODE_ATTRIBUTE_BYTES - 1 };

static inline bool conv2d_infer_one_order(const Node *node) {
  return node->attributes.bytes[CONV2D_INFER_ONE_ORDER] != 0;
}

/* Parameters of the end of a residual block. */
enum { RESIDUAL_END_WEIGHT, RESIDUAL_END_ADDED, RESIDUAL_END_BIAS, RESIDUAL_END_IDENTITY = 128 };

/* Attributes of residual_end_op. It begins as those of conv2d_op do. */
typedef struct ResidualEnd {
  Conv2dShape shape;
  Conv2dShape added; /* the convolution of 1 x 1; k 0: the shortcut is added as it is */
} ResidualEnd;

static inline ResidualEnd residual_end_of(const Node *node, int batch) {
  ResidualEnd end = *(const ResidualEnd *)node->attributes.bytes;
  end.shape.n = end.added.n = batch;
  return end;
}

#define LOWER_CONV2D_INFER \
  { &conv2d_op, &conv2d_infer_half_op, 1, 0, NULL }
#define LOWER_CONV2D_RELU \
  { &conv2d_relu_op, &conv2d_relu_half_op, 1, 0, NULL }
#define LOWER_RESIDUAL_END \
  { &residual_end_op, &residual_end_half_op, 2, 0, NULL }
#define LOWER_ADD_RELU_ONE \
  { &add_relu_op, &add_relu_one_half_op, 0, 1, NULL }

/* ------------------------------------------------------------------------------------------------ rewriting a graph */

/* Convolution i adds a shortcut (FUSE_CONV2D_ADD_RELU): its parameters, and what becomes of the shortcut's own
 * convolution. */
static inline void residual_end_finish(Graph *g, int i) {
  Node *node = &g->nodes[i], *shortcut = &g->nodes[node->input[1]];
  const ResidualEnd plain = {*(const Conv2dShape *)node->attributes.bytes, {}};
  ResidualEnd end = plain;
  const Param bias = node->param[1];
  const Conv2dShape one = *(const Conv2dShape *)shortcut->attributes.bytes;
  if (shortcut->op == &conv2d_op && graph_readers(g, node->input[1]) == 1 && one.r == 1 && one.s == 1 &&
      one.padding_h == 0 && one.padding_w == 0 && one.stride_h == one.stride_w && conv2d_is_dense(one)) {
    end.added = one;
    node->param[RESIDUAL_END_ADDED] = shortcut->param[0];
    node->input[1] = shortcut->input[0];
    node->flops += shortcut->flops;
    shortcut->op = &absorbed_op;
    shortcut->inputs = shortcut->params = 0;
    shortcut->flops = 0;
    node->params = 2;
  } else {
    const size_t rows = RESIDUAL_END_IDENTITY;
    const ParamSpec identity = {"identity", 4, {rows, rows, 1, 1}, 1, 1, &init_zero, 0, 0};
    node->params = 1;
    graph_param(g, i, identity);
  }
  node->param[node->params++] = bias;
  *(ResidualEnd *)node->attributes.bytes = end;
}

static inline void residual_ends_finish(Graph *g) {
  for (int i = 0; i < g->count; i++)
    if (g->nodes[i].op == &residual_end_op) residual_end_finish(g, i);
}

#endif /* PHASE5_PRODUCTION_CONV2D_INFER_OP_CUH */

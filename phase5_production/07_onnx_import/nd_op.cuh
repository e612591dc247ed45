/* nd_op.cuh - the generic operations of imported models as Ops of common/nn. They compute forward, for inference.
 *
 * The attributes of a node are the arguments of its kernel (nd_*.cuh) without the arrays, which forward() adds. So a
 * node needs no more than its inputs, and what the importer has found out about shapes is done once. Op.name is ONNX's.
 * Inputs that may be absent are at the end.
 */
#ifndef PHASE5_PRODUCTION_ND_OP_CUH
#define PHASE5_PRODUCTION_ND_OP_CUH

#include "phase5_production/07_onnx_import/nd_elementwise.cuh"
#include "phase5_production/07_onnx_import/nd_matmul.cuh"
#include "phase5_production/07_onnx_import/nd_move.cuh"
#include "phase5_production/07_onnx_import/nd_normalize.cuh"
#include "phase5_production/07_onnx_import/nd_reduce.cuh"
#include "phase5_production/07_onnx_import/nd_resize.cuh"
#include "phase5_production/07_onnx_import/nd_window.cuh"

/* nd_elementwise_op.cu. NdUnary: x; clip of float32 has its bounds first, as `least` and `most`. NdBinary: a, b.
 * NdWhere: condition, a, b. */
extern const Op nd_unary_ops[], nd_binary_ops[], nd_clip_op, nd_where_op;

/* nd_move_op.cu. No attributes: y is x[0] under another shape. */
extern const Op nd_view_op;

/* NdCopy: x */
typedef enum NdCopyKind {
  ND_TRANSPOSE,
  ND_SLICE,
  ND_SPLIT,
  ND_EXPAND,
  ND_TILE,
  ND_DEPTH_TO_SPACE,
  ND_SPACE_TO_DEPTH,
  ND_REVERSE
} NdCopyKind;
extern const Op nd_copy_ops[];

/* NdConcat: up to 8; NdPad: x, value or nothing; NdTriangle: x; NdGather, NdGatherElements, NdGatherNd: x, indices;
 * NdOneHot: indices, values (2) */
extern const Op nd_concat_op, nd_pad_op, nd_triangle_op, nd_gather_op, nd_gather_elements_op, nd_gather_nd_op,
    nd_one_hot_op;

/* x, indices, updates */
typedef struct NdScatter {
  int by_tuples, batched; /* ScatterND; whether `threads` is of each sample */
  size_t threads;
  NdScatterElements elements;
  NdScatterNd tuples;
} NdScatter;
extern const Op nd_scatter_elements_op, nd_scatter_nd_op;

/* nd_reduce_op.cu. NdReduce: x; NdLine: x */
extern const Op nd_reduce_ops[], nd_line_ops[];

/* nd_window_op.cu. Inputs as ONNX's operators have them, of which the last may be absent. */
typedef struct NdConvInputs {
  NdConv conv;
  int bias, x_zero, w_zero, y_zero, x_scale, w_scale, y_scale; /* which input each one is; -1: none. x: 0, w: 1 */
} NdConvInputs;
extern const Op nd_conv_op, nd_conv_transpose_op, nd_conv_integer_op, nd_conv_quantized_op;
extern const Op nd_pool_ops[];    /* NdPool: x, by NdPoolKind */
extern const Op nd_max_unpool_op; /* NdUnpool: x, indices */

/* The same for products: a: 0, b: 1. */
typedef struct NdMatmulInputs {
  NdMatmul matmul;
  int c, a_zero, b_zero, y_zero, a_scale, b_scale, y_scale;
} NdMatmulInputs;
extern const Op nd_matmul_op, nd_gemm_op, nd_matmul_integer_op, nd_matmul_quantized_op;

/* nd_linear_op.cu. x (..., in) -> y (..., out) by weight (out,in) and bias (out), its parameters: linear_op of each
 * row. No attributes. */
extern const Op nd_linear_op;

/* nd_resize_op.cu. NdResize: x; NdGridSample: x, grid */
extern const Op nd_resize_op, nd_grid_sample_op;

/* nd_normalize_op.cu. NdChannel: x, scale, bias, mean, variance; NdRows: x, scale, bias; NdAcross: x; NdQuantize: x,
 * scale, zero point */
extern const Op nd_channel_op, nd_layer_norm_op, nd_instance_norm_op, nd_lrn_op;
extern const Op onnx_quantize_linear_op, onnx_dequantize_linear_op;

/* A copy of a node's attributes. */
template <typename T>
static inline T nd_attributes(const Node *node) {
  static_assert(sizeof(T) <= NODE_ATTRIBUTE_BYTES, "raise NODE_ATTRIBUTE_BYTES");
  T args;
  memcpy(&args, node->attributes.bytes, sizeof args);
  return args;
}

#endif /* PHASE5_PRODUCTION_ND_OP_CUH */

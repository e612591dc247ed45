/* import_table.cuh - the operators that can be imported: names, versions, and who builds them. */
#ifndef PHASE5_PRODUCTION_IMPORT_TABLE_CUH
#define PHASE5_PRODUCTION_IMPORT_TABLE_CUH

#include "phase5_production/07_onnx_import/import_constant.cuh"
#include "phase5_production/07_onnx_import/import_elementwise.cuh"
#include "phase5_production/07_onnx_import/import_index.cuh"
#include "phase5_production/07_onnx_import/import_matrix.cuh"
#include "phase5_production/07_onnx_import/import_normalize.cuh"
#include "phase5_production/07_onnx_import/import_pool.cuh"
#include "phase5_production/07_onnx_import/import_quantize.cuh"
#include "phase5_production/07_onnx_import/import_reduce.cuh"
#include "phase5_production/07_onnx_import/import_window.cuh"

typedef struct ImportOperator {
  const char *name;
  int first, last; /* versions of the standard operators; last 0: any later one */
  int (*build)(Import *im);
  int kind; /* for builders of several operators: Import.kind */
} ImportOperator;

static const ImportOperator import_operators[] = {
    {"Abs", 1, 0, build_unary, ND_ABS},
    {"Acos", 7, 0, build_unary, ND_ACOS},
    {"Acosh", 9, 0, build_unary, ND_ACOSH},
    {"Add", 1, 0, build_binary, ND_ADD},
    {"And", 1, 0, build_binary, ND_AND},
    {"ArgMax", 1, 0, build_arg, 0},
    {"ArgMin", 1, 0, build_arg, 1},
    {"Asin", 7, 0, build_unary, ND_ASIN},
    {"Asinh", 9, 0, build_unary, ND_ASINH},
    {"Atan", 7, 0, build_unary, ND_ATAN},
    {"Atanh", 9, 0, build_unary, ND_ATANH},
    {"AveragePool", 1, 0, build_pool, ND_POOL_AVERAGE},
    {"BatchNormalization", 1, 0, build_batch_norm, 0},
    {"BitShift", 11, 0, build_binary, ND_SHIFT_LEFT},
    {"BlackmanWindow", 17, 0, build_window, 2},
    {"Cast", 1, 0, build_cast, 0},
    {"CastLike", 15, 0, build_cast, 0},
    {"Ceil", 1, 0, build_unary, ND_CEIL},
    {"Celu", 12, 0, build_unary, ND_CELU},
    {"Clip", 1, 0, build_clip, 0},
    {"Concat", 1, 0, build_concat, 0},
    {"Constant", 1, 0, build_constant, 0},
    {"ConstantOfShape", 9, 0, build_constant_of_shape, 0},
    {"Conv", 1, 0, build_conv, 0},
    {"ConvInteger", 10, 0, build_conv_integer, 0},
    {"ConvTranspose", 1, 0, build_conv_transpose, 0},
    {"Cos", 7, 0, build_unary, ND_COS},
    {"Cosh", 9, 0, build_unary, ND_COSH},
    {"CumSum", 11, 0, build_cumsum, 0},
    {"DepthToSpace", 1, 0, build_depth_to_space, 0},
    {"DequantizeLinear", 10, 0, build_quantize, 1},
    {"Div", 1, 0, build_binary, ND_DIV},
    {"Dropout", 1, 0, build_dropout, 0},
    {"DynamicQuantizeLinear", 11, 0, build_dynamic_quantize, 0},
    {"Elu", 1, 0, build_unary, ND_ELU},
    {"Equal", 1, 0, build_binary, ND_EQUAL},
    {"Erf", 9, 0, build_unary, ND_ERF},
    {"Exp", 1, 0, build_unary, ND_EXP},
    {"Expand", 8, 0, build_expand, 0},
    {"EyeLike", 9, 0, build_eye_like, 0},
    {"Flatten", 1, 0, build_flatten, 0},
    {"Floor", 1, 0, build_unary, ND_FLOOR},
    {"Gather", 1, 0, build_gather, 0},
    {"GatherElements", 11, 0, build_gather_elements, 0},
    {"GatherND", 11, 0, build_gather_nd, 0},
    {"Gemm", 1, 0, build_gemm, 0},
    {"GlobalAveragePool", 1, 0, build_global_pool, ND_REDUCE_MEAN},
    {"GlobalMaxPool", 1, 0, build_global_pool, ND_REDUCE_MAX},
    {"Greater", 1, 0, build_binary, ND_GREATER},
    {"GreaterOrEqual", 12, 0, build_binary, ND_GREATER_OR_EQUAL},
    {"GridSample", 16, 0, build_grid_sample, 0},
    {"HammingWindow", 17, 0, build_window, 1},
    {"HannWindow", 17, 0, build_window, 0},
    {"HardSigmoid", 1, 0, build_unary, ND_HARD_SIGMOID},
    {"HardSwish", 14, 0, build_unary, ND_HARD_SWISH},
    {"Hardmax", 1, 0, build_softmax, ND_LINE_HARDMAX},
    {"Identity", 1, 0, build_identity, 0},
    {"InstanceNormalization", 1, 0, build_instance_norm, 0},
    {"IsInf", 10, 0, build_unary, ND_IS_INF},
    {"IsNaN", 9, 0, build_unary, ND_IS_NAN},
    {"LRN", 1, 0, build_lrn, 0},
    {"LayerNormalization", 17, 0, build_layer_norm, 0},
    {"LeakyRelu", 1, 0, build_unary, ND_LEAKY_RELU},
    {"Less", 1, 0, build_binary, ND_LESS},
    {"LessOrEqual", 12, 0, build_binary, ND_LESS_OR_EQUAL},
    {"Log", 1, 0, build_unary, ND_LOG},
    {"LogSoftmax", 1, 0, build_softmax, ND_LINE_LOG_SOFTMAX},
    {"LpNormalization", 1, 0, build_lp_normalization, 0},
    {"LpPool", 2, 0, build_pool, ND_POOL_LP},
    {"MatMul", 1, 0, build_matmul, 0},
    {"MatMulInteger", 10, 0, build_matmul_integer, 0},
    {"Max", 1, 0, build_many, ND_MAX},
    {"MaxPool", 1, 0, build_pool, ND_POOL_MAX},
    {"MaxUnpool", 9, 0, build_max_unpool, 0},
    {"Mean", 1, 0, build_many, ND_DIV},
    {"MeanVarianceNormalization", 9, 0, build_mean_variance, 0},
    {"Min", 1, 0, build_many, ND_MIN},
    {"Mish", 18, 0, build_unary, ND_MISH},
    {"Mod", 10, 0, build_binary, ND_MOD},
    {"Mul", 1, 0, build_binary, ND_MUL},
    {"Neg", 1, 0, build_unary, ND_NEG},
    {"Not", 1, 0, build_unary, ND_NOT},
    {"OneHot", 9, 0, build_one_hot, 0},
    {"Or", 1, 0, build_binary, ND_OR},
    {"PRelu", 1, 0, build_prelu, 0},
    {"Pad", 1, 0, build_pad, 0},
    {"Pow", 1, 0, build_binary, ND_POW},
    {"QLinearConv", 10, 0, build_qlinear_conv, 0},
    {"QLinearMatMul", 10, 0, build_qlinear_matmul, 0},
    {"QuantizeLinear", 10, 0, build_quantize, 0},
    {"Range", 11, 0, build_range, 0},
    {"Reciprocal", 1, 0, build_unary, ND_RECIPROCAL},
    {"ReduceL1", 1, 0, build_reduce, ND_REDUCE_L1},
    {"ReduceL2", 1, 0, build_reduce, ND_REDUCE_L2},
    {"ReduceLogSum", 1, 0, build_reduce, ND_REDUCE_LOG_SUM},
    {"ReduceLogSumExp", 1, 0, build_reduce, ND_REDUCE_LOG_SUM_EXP},
    {"ReduceMax", 1, 0, build_reduce, ND_REDUCE_MAX},
    {"ReduceMean", 1, 0, build_reduce, ND_REDUCE_MEAN},
    {"ReduceMin", 1, 0, build_reduce, ND_REDUCE_MIN},
    {"ReduceProd", 1, 0, build_reduce, ND_REDUCE_PROD},
    {"ReduceSum", 1, 0, build_reduce, ND_REDUCE_SUM},
    {"ReduceSumSquare", 1, 0, build_reduce, ND_REDUCE_SUM_SQUARE},
    {"Relu", 1, 0, build_unary, ND_RELU},
    {"Reshape", 1, 0, build_reshape, 0},
    {"Resize", 10, 0, build_resize, 0},
    {"Round", 11, 0, build_unary, ND_ROUND},
    {"Scatter", 9, 10, build_scatter_elements, 0},
    {"ScatterElements", 11, 0, build_scatter_elements, 0},
    {"ScatterND", 11, 0, build_scatter_nd, 0},
    {"Selu", 1, 0, build_unary, ND_SELU},
    {"Shape", 1, 0, build_shape, 0},
    {"Shrink", 9, 0, build_unary, ND_SHRINK},
    {"Sigmoid", 1, 0, build_unary, ND_SIGMOID},
    {"Sign", 9, 0, build_unary, ND_SIGN},
    {"Sin", 7, 0, build_unary, ND_SIN},
    {"Sinh", 9, 0, build_unary, ND_SINH},
    {"Size", 1, 0, build_size, 0},
    {"Slice", 1, 0, build_slice, 0},
    {"Softmax", 1, 0, build_softmax, ND_LINE_SOFTMAX},
    {"Softplus", 1, 0, build_unary, ND_SOFTPLUS},
    {"Softsign", 1, 0, build_unary, ND_SOFTSIGN},
    {"SpaceToDepth", 1, 0, build_depth_to_space, 1},
    {"Split", 1, 0, build_split, 0},
    {"Sqrt", 1, 0, build_unary, ND_SQRT},
    {"Squeeze", 1, 0, build_squeeze, 0},
    {"Sub", 1, 0, build_binary, ND_SUB},
    {"Sum", 1, 0, build_many, ND_ADD},
    {"Tan", 7, 0, build_unary, ND_TAN},
    {"Tanh", 1, 0, build_unary, ND_TANH},
    {"ThresholdedRelu", 10, 0, build_unary, ND_THRESHOLDED_RELU},
    {"Tile", 1, 0, build_tile, 0},
    {"TopK", 1, 0, build_top_k, 0},
    {"Transpose", 1, 0, build_transpose, 0},
    {"Trilu", 14, 0, build_trilu, 0},
    {"Unsqueeze", 1, 0, build_squeeze, 1},
    {"Upsample", 7, 9, build_resize, 0},
    {"Where", 9, 0, build_where, 0},
    {"Xor", 1, 0, build_binary, ND_XOR},
};
enum { IMPORT_OPERATORS = sizeof import_operators / sizeof *import_operators };

/* NULL: none of this name, domain and version. */
static inline const ImportOperator *import_operator(const Import *im, const Onnx__NodeProto *node) {
  if (onnx_domain(node->domain)[0] != '\0') return NULL;
  for (int i = 0; i < IMPORT_OPERATORS; i++) {
    const ImportOperator *o = &import_operators[i];
    if (strcmp(o->name, node->op_type) == 0)
      return im->opset >= o->first && (o->last == 0 || im->opset <= o->last) ? o : NULL;
  }
  return NULL;
}

#endif /* PHASE5_PRODUCTION_IMPORT_TABLE_CUH */

/* nd_window_op.cu - the Ops of nd_window.cuh and nd_matmul.cuh. */
#include "phase5_production/07_onnx_import/nd_op.cuh"

/* Input k, or NULL where k is -1. */
static const float *input_of(const OpArrays *a, int k) { return k >= 0 ? a->x[k] : NULL; }

static void conv_forward(const Context *context, const Node *node, const OpArrays *a) {
  const NdConvInputs inputs = nd_attributes<NdConvInputs>(node);
  NdConv args = inputs.conv;
  args.x = a->x[0];
  args.w = a->x[1];
  args.bias = node->params > 0 ? a->param[0] : input_of(a, inputs.bias);
  args.quantized.a_zero = input_of(a, inputs.x_zero);
  args.quantized.b_zero = input_of(a, inputs.w_zero);
  args.quantized.y_zero = input_of(a, inputs.y_zero);
  args.quantized.a_scale = input_of(a, inputs.x_scale);
  args.quantized.b_scale = input_of(a, inputs.w_scale);
  args.quantized.y_scale = input_of(a, inputs.y_scale);
  args.y = a->y;
  if (args.x_type == DTYPE_FLOAT32 && args.w_type == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void pool_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdPool args = nd_attributes<NdPool>(node);
  args.x = a->x[0];
  args.y = a->y;
  if (args.type == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void unpool_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdUnpool args = nd_attributes<NdUnpool>(node);
  args.x = a->x[0];
  args.indices = (const int64_t *)a->x[1];
  args.y = a->y;
  args.most = nd_count(node, a);
  device_zero(context->device, a->y, node_bytes(node) * (size_t)a->batch);
  nd_run<false>(context, args, args.per_sample * (size_t)a->batch);
}

static void matmul_gpu(const NdMatmul &args, size_t matrices) {
  if (args.compute == ND_FLOAT && args.a_type == DTYPE_FLOAT32 && args.b_type == DTYPE_FLOAT32)
    nd_matmul_gpu<true, float>(args, matrices);
  else if (args.compute == ND_FLOAT)
    nd_matmul_gpu<false, float>(args, matrices);
  else if (args.compute == ND_DOUBLE)
    nd_matmul_gpu<false, double>(args, matrices);
  else
    nd_matmul_gpu<false, int64_t>(args, matrices);
}

static void matmul_cpu(const NdMatmul &args, size_t matrices) {
  if (args.compute == ND_FLOAT && args.a_type == DTYPE_FLOAT32 && args.b_type == DTYPE_FLOAT32)
    nd_matmul_cpu<true, float>(args, matrices);
  else if (args.compute == ND_FLOAT)
    nd_matmul_cpu<false, float>(args, matrices);
  else if (args.compute == ND_DOUBLE)
    nd_matmul_cpu<false, double>(args, matrices);
  else
    nd_matmul_cpu<false, int64_t>(args, matrices);
}

static void matmul_forward(const Context *context, const Node *node, const OpArrays *a) {
  const NdMatmulInputs inputs = nd_attributes<NdMatmulInputs>(node);
  NdMatmul args = inputs.matmul;
  args.a = a->x[0];
  args.b = a->x[1];
  args.c = input_of(a, inputs.c);
  args.quantized.a_zero = input_of(a, inputs.a_zero);
  args.quantized.b_zero = input_of(a, inputs.b_zero);
  args.quantized.y_zero = input_of(a, inputs.y_zero);
  args.quantized.a_scale = input_of(a, inputs.a_scale);
  args.quantized.b_scale = input_of(a, inputs.b_scale);
  args.quantized.y_scale = input_of(a, inputs.y_scale);
  args.y = a->y;
  if (args.m == 0) args.m = a->batch; /* the rows are the samples */
  const size_t matrices = nd_count(node, a) / ((size_t)args.m * args.n);
  ON_DEVICE(context->device, matmul_gpu(args, matrices), matmul_cpu(args, matrices));
}

#define WINDOW(name, forward) \
  { name, 0, 0, NULL, NULL, forward, nd_no_backward }
const Op nd_conv_op = WINDOW("Conv", conv_forward);
const Op nd_conv_transpose_op = WINDOW("ConvTranspose", conv_forward);
const Op nd_conv_integer_op = WINDOW("ConvInteger", conv_forward);
const Op nd_conv_quantized_op = WINDOW("QLinearConv", conv_forward);
const Op nd_pool_ops[] = {WINDOW("MaxPool", pool_forward), WINDOW("MaxPool", pool_forward),
                          WINDOW("AveragePool", pool_forward), WINDOW("LpPool", pool_forward)};
const Op nd_max_unpool_op = WINDOW("MaxUnpool", unpool_forward);
const Op nd_matmul_op = WINDOW("MatMul", matmul_forward);
const Op nd_gemm_op = WINDOW("Gemm", matmul_forward);
const Op nd_matmul_integer_op = WINDOW("MatMulInteger", matmul_forward);
const Op nd_matmul_quantized_op = WINDOW("QLinearMatMul", matmul_forward);

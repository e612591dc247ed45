/* nd_normalize_op.cu - the Ops of nd_normalize.cuh. */
#include "phase5_production/07_onnx_import/nd_op.cuh"

static void channel_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdChannel args = nd_attributes<NdChannel>(node);
  args.x = a->x[0];
  args.scale = a->x[1];
  args.bias = a->x[2];
  args.mean = a->x[3];
  args.variance = a->x[4];
  args.y = a->y;
  if (args.type == DTYPE_FLOAT32 && args.parameter_type == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void rows_gpu(const NdRows &args, size_t rows) {
  if (args.type == DTYPE_FLOAT32)
    nd_rows_launch<true>(args, rows);
  else
    nd_rows_launch<false>(args, rows);
}

static void rows_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdRows args = nd_attributes<NdRows>(node);
  args.x = a->x[0];
  args.scale = node->inputs > 1 ? a->x[1] : NULL;
  args.bias = node->inputs > 2 ? a->x[2] : NULL;
  args.y = a->y;
  const size_t rows = nd_count(node, a) / args.length;
  ON_DEVICE(context->device, rows_gpu(args, rows), nd_rows_cpu(args, rows));
}

static void across_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdAcross args = nd_attributes<NdAcross>(node);
  args.x = a->x[0];
  args.y = a->y;
  if (args.type == DTYPE_FLOAT32)
    nd_run<true>(context, args, nd_count(node, a));
  else
    nd_run<false>(context, args, nd_count(node, a));
}

static void quantize_forward(const Context *context, const Node *node, const OpArrays *a) {
  NdQuantize args = nd_attributes<NdQuantize>(node);
  args.x = a->x[0];
  args.scale = a->x[1];
  args.zero = node->inputs > 2 ? a->x[2] : NULL;
  args.y = a->y;
  nd_run<false>(context, args, nd_count(node, a));
}

#define NORMALIZE(name, forward) \
  { name, 0, 0, NULL, NULL, forward, nd_no_backward }
const Op nd_channel_op = NORMALIZE("BatchNormalization", channel_forward);
const Op nd_layer_norm_op = NORMALIZE("LayerNormalization", rows_forward);
const Op nd_instance_norm_op = NORMALIZE("InstanceNormalization", rows_forward);
const Op nd_lrn_op = NORMALIZE("LRN", across_forward);
const Op onnx_quantize_linear_op = NORMALIZE("QuantizeLinear", quantize_forward);
const Op onnx_dequantize_linear_op = NORMALIZE("DequantizeLinear", quantize_forward);

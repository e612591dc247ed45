/* import_quantize.cuh - builders of operators on 8-bit integers: conversions, and products whose sums are exact. */
#ifndef PHASE5_PRODUCTION_IMPORT_QUANTIZE_CUH
#define PHASE5_PRODUCTION_IMPORT_QUANTIZE_CUH

#include "phase5_production/07_onnx_import/import_matrix.cuh"
#include "phase5_production/07_onnx_import/import_reduce.cuh"
#include "phase5_production/07_onnx_import/import_window.cuh"

/* Remembers the integers that a constant was made of. */
static inline int import_remember_quantized(Import *im, ImportValue *x, ImportValue *scale, ImportValue *zero,
                                            int axis) {
  OnnxQuantized q;
  memset(&q, 0, sizeof q);
  if (import_data(im, x) == NULL || import_data(im, scale) == NULL || (zero && import_data(im, zero) == NULL))
    return -1;
  q.type = x->type;
  q.rank = x->shape.rank;
  q.axis = axis;
  memcpy(q.dim, x->shape.dim, sizeof q.dim);
  q.count = import_count(&x->shape);
  q.scale_count = import_count(&scale->shape);
  q.data = x->data;
  q.scales = (const float *)scale->data;
  q.zeros = zero ? zero->data : NULL;
  return import_add_quantized(im, &q);
}

/* QuantizeLinear; kind 1: DequantizeLinear. */
static inline int build_quantize(Import *im) {
  ImportValue *x = import_expect(im, 0), *scale = x ? import_expect(im, 1) : NULL, *zero = import_input(im, 2);
  NdQuantize args;
  int axis = 0;
  memset(&args, 0, sizeof args);
  if (scale == NULL) return -1;
  const size_t scales = import_count(&scale->shape);
  if (scales > 1 && import_axis(im, import_attribute(im, "axis", 1), x->shape.rank, &axis) != 0) return -1;
  if (scale->type != DTYPE_FLOAT32 || (zero && import_count(&zero->shape) != scales) ||
      (scales > 1 && (int64_t)scales != x->shape.dim[axis]))
    return import_fail(im, "%zu scales of %s for %s along axis %d", scales, dtype_name(scale->type),
                       import_shape_text(&x->shape).text, axis);
  args.dequantize = im->kind;
  args.channels = (unsigned)scales;
  args.inner = scales > 1 ? (unsigned)import_product(&x->shape, axis + 1, x->shape.rank) : 1;
  args.from = x->type;
  args.to = im->kind ? DTYPE_FLOAT32 : zero ? zero->type : DTYPE_UINT8;
  args.scale_type = scale->type;
  args.zero_type = zero ? zero->type : DTYPE_UINT8;
  if (!im->kind && args.to != DTYPE_INT8 && args.to != DTYPE_UINT8)
    return import_fail(im, "to %s; int8 or uint8 is expected", dtype_name(args.to));
  const int folds =
      im->kind && import_is_constant(x) && import_is_constant(scale) && (zero == NULL || import_is_constant(zero));
  const int quantized = folds ? import_remember_quantized(im, x, scale, zero, axis) : -1;
  ImportValue *inputs[] = {x, scale, zero};
  const Op *op = im->kind ? &onnx_dequantize_linear_op : &onnx_quantize_linear_op;
  if (import_output(im, 0, import_add(im, op, inputs, zero ? 3 : 2, args.to, &x->shape, &args, sizeof args), args.to,
                    &x->shape) != 0)
    return -1;
  if (folds && import_wanted(im, 0)) import_wanted(im, 0)->quantized = quantized;
  return 0;
}

/* uint8 with 0 exactly representable: scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min(x, 0) / scale). */
static inline int build_dynamic_quantize(Import *im) {
  ImportValue *x = import_expect(im, 0);
  int all[ONNX_MAX_RANK];
  NdQuantize args;
  memset(&args, 0, sizeof args);
  if (x == NULL) return -1;
  for (int i = 0; i < ONNX_MAX_RANK; i++) all[i] = 1;
  ImportValue *low = import_unary(im, import_reduce(im, ND_REDUCE_MIN, x, all, 0), ND_CLIP, -INFINITY, 0, x->type);
  ImportValue *high =
      low ? import_unary(im, import_reduce(im, ND_REDUCE_MAX, x, all, 0), ND_CLIP, 0, INFINITY, x->type) : NULL;
  ImportValue *scale =
      high ? import_unary(im, import_binary(im, ND_SUB, high, low), ND_AFFINE, 1.0 / 255, 0, x->type) : NULL;
  ImportValue *place = scale ? import_unary(im, import_binary(im, ND_DIV, low, scale), ND_NEG, 0, 0, x->type) : NULL;
  ImportValue *bounded =
      place ? import_unary(im, import_unary(im, place, ND_CLIP, 0, 255, x->type), ND_ROUND, 0, 0, x->type) : NULL;
  ImportValue *zero = bounded ? import_unary(im, bounded, ND_COPY, 0, 0, DTYPE_UINT8) : NULL;
  if (zero == NULL) return -1;
  args.channels = args.inner = 1;
  args.from = args.scale_type = x->type;
  args.to = args.zero_type = DTYPE_UINT8;
  ImportValue *inputs[] = {x, scale, zero};
  if (import_output(im, 0,
                    import_add(im, &onnx_quantize_linear_op, inputs, 3, DTYPE_UINT8, &x->shape, &args, sizeof args),
                    DTYPE_UINT8, &x->shape) != 0)
    return -1;
  return import_alias(im, 1, scale) != 0 || import_alias(im, 2, zero) != 0 ? -1 : 0;
}

/* How many zero points, or scales, v holds: 1 or `many`; of a type where it is given. -1 with a sentence. */
static inline int import_many(Import *im, const ImportValue *v, int64_t many, DType type, int *count) {
  const size_t found = import_count(&v->shape);
  *count = (int)found;
  if (v->type == type && !import_batched(&v->shape) && (found == 1 || (many > 1 && found == (size_t)many))) return 0;
  return import_fail(im, "'%.100s' is %zu numbers of %s; %lld or 1 of %s are expected", v->name, found,
                     dtype_name(v->type), (long long)(many > 1 ? many : 1), dtype_name(type));
}

/* MatMulInteger: a, b, zero points of both. Those of a may be one for each row. */
static inline int build_matmul_integer(Import *im) {
  ImportValue *a = import_expect(im, 0), *b = a ? import_expect(im, 1) : NULL, *inputs[4] = {a, b, NULL, NULL};
  ImportShape s;
  int count = 2;
  if (b == NULL) return -1;
  NdMatmulInputs args = import_matmul_inputs(a, b, DTYPE_INT32);
  if (import_matmul_shapes(im, a, b, &args.matmul, &s) != 0) return -1;
  args.matmul.quantized.is = 1;
  for (int i = 2; i < 4; i++) {
    ImportValue *zero = import_input(im, i);
    if (zero == NULL) continue;
    int *many = i == 2 ? &args.matmul.quantized.a_many : &args.matmul.quantized.b_many;
    if (import_many(im, zero, i == 2 ? args.matmul.m : args.matmul.n, i == 2 ? a->type : b->type, many) != 0) return -1;
    if (i == 2) args.a_zero = count;
    if (i == 3) args.b_zero = count;
    inputs[count++] = zero;
  }
  return import_output(im, 0, import_add(im, &nd_matmul_integer_op, inputs, count, DTYPE_INT32, &s, &args, sizeof args),
                       DTYPE_INT32, &s);
}

/* The 8 inputs of QLinearMatMul and QLinearConv, in their order: a, its scale and zero point, b, ..., y's scale and
 * zero point. -1 where one is missing. The nodes here have a and b first. */
static inline int import_quantized_inputs(Import *im, ImportValue *inputs[NODE_MAX_INPUTS]) {
  static const int order[] = {0, 3, 1, 2, 4, 5, 6, 7};
  for (int i = 0; i < 8; i++)
    if ((inputs[i] = import_expect(im, order[i])) == NULL) return -1;
  return 0;
}

/* Of those 8: scales and zero points in the same number, `a_many` and `b_many` at most; of y one. */
static inline int import_check_quantized(Import *im, ImportValue *const *inputs, int64_t a_many, int64_t b_many,
                                         NdQuantized *q) {
  int a_scales, b_scales, one;
  if (import_many(im, inputs[2], a_many, DTYPE_FLOAT32, &a_scales) != 0 ||
      import_many(im, inputs[3], a_many, inputs[0]->type, &q->a_many) != 0 ||
      import_many(im, inputs[4], b_many, DTYPE_FLOAT32, &b_scales) != 0 ||
      import_many(im, inputs[5], b_many, inputs[1]->type, &q->b_many) != 0 ||
      import_many(im, inputs[6], 1, DTYPE_FLOAT32, &one) != 0 ||
      import_many(im, inputs[7], 1, inputs[7]->type == DTYPE_INT8 ? DTYPE_INT8 : DTYPE_UINT8, &one) != 0)
    return -1;
  if (a_scales == q->a_many && b_scales == q->b_many) return 0;
  return import_fail(im, "%d and %d scales for %d and %d zero points", a_scales, b_scales, q->a_many, q->b_many);
}

static inline int build_qlinear_matmul(Import *im) {
  ImportValue *inputs[NODE_MAX_INPUTS];
  ImportShape s;
  if (import_quantized_inputs(im, inputs) != 0) return -1;
  NdMatmulInputs args = import_matmul_inputs(inputs[0], inputs[1], inputs[7]->type);
  if (import_matmul_shapes(im, inputs[0], inputs[1], &args.matmul, &s) != 0) return -1;
  args.a_scale = 2, args.a_zero = 3, args.b_scale = 4, args.b_zero = 5, args.y_scale = 6, args.y_zero = 7;
  args.matmul.quantized.is = 2;
  if (import_check_quantized(im, inputs, args.matmul.m, args.matmul.n, &args.matmul.quantized) != 0) return -1;
  return import_output(im, 0,
                       import_add(im, &nd_matmul_quantized_op, inputs, 8, inputs[7]->type, &s, &args, sizeof args),
                       inputs[7]->type, &s);
}

static inline int build_conv_integer(Import *im) {
  ImportValue *x = import_expect(im, 0), *w = x ? import_expect(im, 1) : NULL, *inputs[4] = {x, w, NULL, NULL};
  ImportWindow o;
  int count = 2;
  if (w == NULL || import_conv_window(im, x, w, &o, 0) != 0 || import_window_out(im, &o, 0) != 0) return -1;
  NdConvInputs args = import_conv_inputs(x, w, &o, DTYPE_INT32);
  const ImportShape s = import_window_shape(x, &o, o.w.filters);
  args.conv.quantized.is = 1;
  int one;
  if (import_input(im, 2) && import_many(im, im->in[2], 1, x->type, &one) != 0) return -1;
  if (import_input(im, 3) && import_many(im, im->in[3], o.w.filters, w->type, &args.conv.quantized.b_many) != 0)
    return -1;
  if (import_input(im, 2)) args.x_zero = count, inputs[count++] = im->in[2];
  if (import_input(im, 3)) args.w_zero = count, inputs[count++] = im->in[3];
  return import_output(im, 0, import_add(im, &nd_conv_integer_op, inputs, count, DTYPE_INT32, &s, &args, sizeof args),
                       DTYPE_INT32, &s);
}

/* A bias, the ninth input, is a constant of int32: a parameter of the node. */
static inline int build_qlinear_conv(Import *im) {
  ImportValue *inputs[NODE_MAX_INPUTS];
  ImportWindow o;
  if (import_quantized_inputs(im, inputs) != 0 || import_conv_window(im, inputs[0], inputs[1], &o, 0) != 0 ||
      import_window_out(im, &o, 0) != 0)
    return -1;
  ImportValue *bias = import_input(im, 8);
  if (bias &&
      (bias->type != DTYPE_INT32 || import_count(&bias->shape) != (size_t)o.w.filters || import_data(im, bias) == NULL))
    return import_fail(im, "a bias of %s %s; %d constants of int32 are expected", dtype_name(bias->type),
                       import_shape_text(&bias->shape).text, o.w.filters);
  NdConvInputs args = import_conv_inputs(inputs[0], inputs[1], &o, inputs[7]->type);
  const ImportShape s = import_window_shape(inputs[0], &o, o.w.filters);
  args.x_scale = 2, args.x_zero = 3, args.w_scale = 4, args.w_zero = 5, args.y_scale = 6, args.y_zero = 7;
  args.conv.quantized.is = 2;
  args.conv.bias_type = DTYPE_INT32;
  if (import_check_quantized(im, inputs, 1, o.w.filters, &args.conv.quantized) != 0) return -1;
  const int node = import_add(im, &nd_conv_quantized_op, inputs, 8, inputs[7]->type, &s, &args, sizeof args);
  const ParamSpec spec = {"bias", 1, {(size_t)o.w.filters}, 1, 1, &init_zero, 0, 0};
  if (bias && node >= 0) {
    graph_param(im->g, node, spec);
    if (import_check_graph(im) != 0) return -1;
    import_bind(im, node, 0, bias->data, import_bytes(bias), DTYPE_INT32, bias);
  }
  return import_output(im, 0, node, inputs[7]->type, &s);
}

#endif /* PHASE5_PRODUCTION_IMPORT_QUANTIZE_CUH */

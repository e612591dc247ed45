/* import_elementwise.cuh - builders of operators that work element by element. */
#ifndef PHASE5_PRODUCTION_IMPORT_ELEMENTWISE_CUH
#define PHASE5_PRODUCTION_IMPORT_ELEMENTWISE_CUH

#include "phase1_building_blocks/07_activations/activations_op.cuh"
#include "phase3_cnn/11_residual/add_op.cuh"
#include "phase5_production/07_onnx_import/import_graph.h"

/* ------------------------------------------------------------------------------------------------------------ unary */

/* A node of this kind on v. */
static inline int import_unary_node(Import *im, ImportValue *v, NdUnary args, DType to) {
  const int whole_kind = args.kind == ND_COPY || args.kind == ND_ABS || args.kind == ND_CLIP || args.kind == ND_NEG ||
                         args.kind == ND_NOT || args.kind == ND_RELU || args.kind == ND_SIGN;
  args.from = v->type;
  args.to = to;
  args.compute = nd_compute(v->type);
  if (args.kind == ND_COPY && args.compute == ND_INT && nd_compute(to) == ND_DOUBLE) args.compute = ND_DOUBLE;
  if ((args.compute == ND_INT || args.compute == ND_UINT) && !whole_kind) args.compute = ND_DOUBLE;
  return import_add(im, args.kind == ND_CLIP && v->type == DTYPE_FLOAT32 ? &nd_clip_op : &nd_unary_ops[args.kind], &v,
                    1, to, &v->shape, &args, sizeof args);
}

static inline NdUnary import_unary_args(NdUnaryKind kind, double alpha, double beta) {
  NdUnary args;
  memset(&args, 0, sizeof args);
  args.kind = kind;
  args.alpha = alpha;
  args.beta = beta;
  return args;
}

/* f(v) as a value. */
static inline ImportValue *import_unary(Import *im, ImportValue *v, NdUnaryKind kind, double alpha, double beta,
                                        DType to) {
  if (v == NULL) return NULL;
  return import_temporary(im, import_unary_node(im, v, import_unary_args(kind, alpha, beta), to), to, &v->shape);
}

/* The attributes of each kind, with the operators' own defaults. */
static inline NdUnary import_unary_of_node(const Import *im) {
  const NdUnaryKind kind = (NdUnaryKind)im->kind;
  double alpha = 0, beta = 0;
  switch (kind) {
    case ND_LEAKY_RELU:
      alpha = import_attribute_float(im, "alpha", 0.01f);
      break;
    case ND_ELU:
    case ND_CELU:
    case ND_THRESHOLDED_RELU:
      alpha = import_attribute_float(im, "alpha", 1);
      break;
    case ND_SELU:
      alpha = import_attribute_float(im, "alpha", im->opset < 6 ? 1.6732f : 1.67326319217681884765625f);
      beta = import_attribute_float(im, "gamma", im->opset < 6 ? 1.0507f : 1.05070102214813232421875f);
      break;
    case ND_HARD_SIGMOID:
      alpha = import_attribute_float(im, "alpha", 0.2f);
      beta = import_attribute_float(im, "beta", 0.5f);
      break;
    case ND_HARD_SWISH:
      alpha = 1.0 / 6;
      beta = 0.5;
      break;
    case ND_SHRINK:
      alpha = import_attribute_float(im, "lambd", 0.5f);
      beta = import_attribute_float(im, "bias", 0);
      break;
    case ND_IS_INF:
      alpha = (double)import_attribute(im, "detect_negative", 1);
      beta = (double)import_attribute(im, "detect_positive", 1);
      break;
    default:
      break;
  }
  return import_unary_args(kind, alpha, beta);
}

/* The activation of phase 1 that is this one; -1: none. */
static inline int import_our_activation(const NdUnary *args, const ImportValue *x) {
  if (x->type != DTYPE_FLOAT32 || x->shape.rank == 0) return -1;
  if (args->kind == ND_RELU) return ACTIVATION_RELU;
  if (args->kind == ND_SIGMOID) return ACTIVATION_SIGMOID;
  if (args->kind == ND_TANH) return ACTIVATION_TANH;
  return args->kind == ND_LEAKY_RELU && (float)args->alpha == LEAKY_RELU_SLOPE ? ACTIVATION_LEAKY_RELU : -1;
}

static inline int build_unary(Import *im) {
  ImportValue *x = import_expect(im, 0);
  if (x == NULL) return -1;
  const NdUnary args = import_unary_of_node(im);
  const int ours = import_our_activation(&args, x);
  const DType to = args.kind == ND_NOT || args.kind == ND_IS_NAN || args.kind == ND_IS_INF ? DTYPE_BOOL : x->type;
  if (ours < 0) return import_output(im, 0, import_unary_node(im, x, args, to), to, &x->shape);
  const int from = import_node_of(im, x);
  if (from < 0) return -1;
  import_name(im, NULL);
  const int node = graph_typed(im->g, activation(im->g, from, (Activation)ours), x->type, im->g->nodes[from].whole);
  return import_output(im, 0, node, x->type, &x->shape);
}

/* Cast, CastLike. */
static inline int build_cast(Import *im) {
  ImportValue *x = import_expect(im, 0), *like = import_input(im, 1);
  DType to;
  char text[32];
  if (x == NULL) return -1;
  if (im->opset < 6 && like == NULL && onnx_attribute_int(im->node, "to", 0) == 0) {
    onnx_attribute_string(im->node, "to", "", text, sizeof text); /* a name, before version 6 */
    return import_fail(im, "the type \"%s\" by its name, as versions before 6 have it; export the model anew", text);
  }
  if (like)
    to = like->type;
  else if (import_type(im, import_attribute(im, "to", 0), &to) != 0)
    return -1;
  if (to == x->type) return import_alias(im, 0, x);
  return import_output(im, 0, import_unary_node(im, x, import_unary_args(ND_COPY, 0, 0), to), to, &x->shape);
}

/* Identity, Dropout when it does not drop. */
static inline int build_identity(Import *im) {
  ImportValue *x = import_expect(im, 0);
  return x ? import_alias(im, 0, x) : -1;
}

/* ----------------------------------------------------------------------------------------------------- broadcasting */

/* The shape of a and b together, as ONNX and numpy say. */
static inline int import_broadcast(Import *im, const ImportShape *a, const ImportShape *b, ImportShape *out) {
  *out = import_shape0();
  out->rank = a->rank > b->rank ? a->rank : b->rank;
  for (int i = 0; i < out->rank; i++) {
    const int ai = i - (out->rank - a->rank), bi = i - (out->rank - b->rank);
    const int64_t da = ai >= 0 ? a->dim[ai] : 1, db = bi >= 0 ? b->dim[bi] : 1;
    if (da != db && da != 1 && db != 1)
      return import_fail(im, "the shapes %s and %s do not go together: axis %d is %lld and %lld%s",
                         import_shape_text(a).text, import_shape_text(b).text, i, (long long)da, (long long)db,
                         da < 0 || db < 0 ? " (-1: the batch)" : "");
    out->dim[i] = da == 1 ? db : da;
  }
  return 0;
}

/* Before version 7 b is put along a from `axis` on, where `broadcast` is set: axes of 1 behind it say the same now. */
static inline ImportValue *import_old_broadcast(Import *im, ImportValue *a, ImportValue *b) {
  if (im->opset >= 7 || !import_attribute(im, "broadcast", 0)) return b;
  const int axis = (int)import_attribute(im, "axis", a->shape.rank - b->shape.rank);
  ImportShape shape = b->shape;
  for (int from = axis + b->shape.rank; from >= 0 && shape.rank < ONNX_MAX_RANK && from < a->shape.rank; from++)
    shape.dim[shape.rank++] = 1;
  return import_view(im, b, &shape);
}

/* f(a, b) as a node; *shape: of its result. */
static inline int import_binary_node(Import *im, NdBinaryKind kind, ImportValue *a, ImportValue *b, DType to,
                                     ImportShape *shape) {
  NdBinary args;
  memset(&args, 0, sizeof args);
  if (a == NULL || b == NULL || import_broadcast(im, &a->shape, &b->shape, shape) != 0) return GRAPH_ERROR;
  args.kind = kind;
  args.a_type = a->type;
  args.b_type = b->type;
  args.to = to;
  args.compute = nd_compute(a->type);
  if (nd_compute(b->type) != args.compute) args.compute = ND_DOUBLE; /* Pow */
  args.axes = import_axes(shape);
  args.a_strides = import_strides(&a->shape, shape->rank);
  args.b_strides = import_strides(&b->shape, shape->rank);
  NdStrides *const strides[] = {&args.a_strides, &args.b_strides};
  nd_collapse(&args.axes, strides, 2);
  ImportValue *inputs[] = {a, b};
  return import_add(im, &nd_binary_ops[kind], inputs, 2, to, shape, &args, sizeof args);
}

static inline ImportValue *import_binary(Import *im, NdBinaryKind kind, ImportValue *a, ImportValue *b) {
  ImportShape shape;
  if (a == NULL || b == NULL) return NULL;
  const int node = import_binary_node(im, kind, a, b, a->type, &shape);
  return import_temporary(im, node, a->type, &shape);
}

/* The bias of a product: MatMul and Add are one linear layer. Whether b was that. */
static inline int import_add_bias(Import *im, const ImportValue *product, ImportValue *b) {
  if (product->bias < 0 || product->uses > 1 || !import_is_constant(b) || b->type != DTYPE_FLOAT32) return 0;
  OnnxConstant *bias = &im->out->constants[product->bias];
  const int64_t features = (int64_t)(bias->bytes / sizeof(float));
  if (import_count(&b->shape) != (size_t)features || b->shape.rank > product->shape.rank || b->shape.rank < 1 ||
      b->shape.dim[b->shape.rank - 1] != features || import_data(im, b) == NULL)
    return 0;
  bias->data = b->data;
  bias->quantized = b->quantized;
  return import_alias(im, 0, product) == 0;
}

static inline int import_comparison(NdBinaryKind kind) {
  return kind == ND_EQUAL || kind == ND_LESS || kind == ND_LESS_OR_EQUAL || kind == ND_GREATER ||
         kind == ND_GREATER_OR_EQUAL || kind == ND_AND || kind == ND_OR || kind == ND_XOR;
}

static inline int build_binary(Import *im) {
  ImportValue *a = import_expect(im, 0), *b = a ? import_expect(im, 1) : NULL;
  NdBinaryKind kind = (NdBinaryKind)im->kind;
  ImportShape shape;
  char direction[16];
  if (b == NULL) return -1;
  if (kind == ND_MOD && import_attribute(im, "fmod", 0)) kind = ND_FMOD;
  if (kind == ND_SHIFT_LEFT &&
      strcmp(onnx_attribute_string(im->node, "direction", "LEFT", direction, sizeof direction), "RIGHT") == 0)
    kind = ND_SHIFT_RIGHT;
  if (a->type != b->type && kind != ND_POW)
    return import_fail(im, "inputs of %s and %s; the same type is expected", dtype_name(a->type), dtype_name(b->type));
  if ((b = import_old_broadcast(im, a, b)) == NULL) return -1;
  if (kind == ND_ADD && (import_add_bias(im, a, b) || import_add_bias(im, b, a))) return 0;
  if (kind == ND_ADD && a->type == DTYPE_FLOAT32 && import_same_shape(&a->shape, &b->shape) && a->shape.rank > 0 &&
      !import_is_constant(a) && !import_is_constant(b)) {
    import_name(im, NULL);
    const int node = graph_typed(im->g, add(im->g, a->node, b->node), a->type, im->g->nodes[a->node].whole);
    return import_output(im, 0, node, a->type, &a->shape);
  }
  const DType to = import_comparison(kind) ? DTYPE_BOOL : a->type;
  const int node = import_binary_node(im, kind, a, b, to, &shape);
  return import_output(im, 0, node, to, &shape);
}

/* PRelu: the slope goes along with x; before version 9 a list of slopes is of the channels. */
static inline int build_prelu(Import *im) {
  ImportValue *x = import_expect(im, 0), *slope = x ? import_expect(im, 1) : NULL;
  ImportShape shape;
  if (slope == NULL) return -1;
  if (slope->shape.rank == 1 && x->shape.rank > 2 && im->opset < 9 && slope->shape.dim[0] == x->shape.dim[1]) {
    shape = slope->shape;
    while (shape.rank < x->shape.rank - 1) shape.dim[shape.rank++] = 1;
    if ((slope = import_view(im, slope, &shape)) == NULL) return -1;
  }
  const int node = import_binary_node(im, ND_PRELU, x, slope, x->type, &shape);
  if (node >= 0 && !import_same_shape(&shape, &x->shape))
    return import_fail(im, "a slope of the shape %s for x of %s; x would become larger",
                       import_shape_text(&slope->shape).text, import_shape_text(&x->shape).text);
  return import_output(im, 0, node, x->type, &shape);
}

/* Sum, Mean, Max, Min of any number of arrays. */
static inline int build_many(Import *im) {
  ImportValue *sum = import_expect(im, 0);
  const NdBinaryKind kind = im->kind == ND_DIV ? ND_ADD : (NdBinaryKind)im->kind; /* ND_DIV: the mean */
  for (int k = 1; k < im->inputs && sum; k++) {
    ImportValue *more = import_expect(im, k);
    if (more && more->type != sum->type)
      return import_fail(im, "inputs of %s and %s; the same type is expected", dtype_name(sum->type),
                         dtype_name(more->type));
    sum = import_binary(im, kind, sum, more);
  }
  if (sum && im->kind == ND_DIV && im->inputs > 1)
    sum = import_unary(im, sum, ND_AFFINE, 1.0 / im->inputs, 0, sum->type);
  return sum ? import_alias(im, 0, sum) : -1;
}

/* Bounds as attributes or as inputs, constants or not. */
static inline int build_clip(Import *im) {
  ImportValue *x = import_expect(im, 0), *low = import_input(im, 1), *high = import_input(im, 2);
  if (x == NULL) return -1;
  if ((low && !import_is_constant(low)) || (high && !import_is_constant(high))) {
    if (low) x = import_binary(im, ND_MAX, x, low);
    if (high && x) x = import_binary(im, ND_MIN, x, high);
    return x ? import_alias(im, 0, x) : -1;
  }
  if ((low && import_data(im, low) == NULL) || (high && import_data(im, high) == NULL)) return -1;
  NdUnary args = import_unary_args(ND_CLIP, import_attribute_float(im, "min", -INFINITY),
                                   import_attribute_float(im, "max", INFINITY));
  if (low) args.alpha = import_real(low, 0);
  if (high) args.beta = import_real(high, 0);
  args.low = low ? import_int(low, 0) : x->type == DTYPE_UINT64 ? 0 : INT64_MIN;
  args.high = high ? import_int(high, 0) : x->type == DTYPE_UINT64 ? -1 : INT64_MAX;
  args.least = (float)args.alpha;
  args.most = (float)args.beta;
  return import_output(im, 0, import_unary_node(im, x, args, x->type), x->type, &x->shape);
}

static inline int build_where(Import *im) {
  ImportValue *condition = import_expect(im, 0), *a = condition ? import_expect(im, 1) : NULL,
              *b = a ? import_expect(im, 2) : NULL;
  ImportShape two, shape;
  NdWhere args;
  memset(&args, 0, sizeof args);
  if (b == NULL || import_broadcast(im, &a->shape, &b->shape, &two) != 0 ||
      import_broadcast(im, &condition->shape, &two, &shape) != 0)
    return -1;
  if (condition->type != DTYPE_BOOL || a->type != b->type)
    return import_fail(im, "inputs of %s, %s, %s; bool and twice the same type are expected",
                       dtype_name(condition->type), dtype_name(a->type), dtype_name(b->type));
  args.bytes = (int)dtype_bytes(a->type);
  args.axes = import_axes(&shape);
  args.condition_strides = import_strides(&condition->shape, shape.rank);
  args.a_strides = import_strides(&a->shape, shape.rank);
  args.b_strides = import_strides(&b->shape, shape.rank);
  NdStrides *const strides[] = {&args.condition_strides, &args.a_strides, &args.b_strides};
  nd_collapse(&args.axes, strides, 3);
  ImportValue *inputs[] = {condition, a, b};
  return import_output(im, 0, import_add(im, &nd_where_op, inputs, 3, a->type, &shape, &args, sizeof args), a->type,
                       &shape);
}

#endif /* PHASE5_PRODUCTION_IMPORT_ELEMENTWISE_CUH */

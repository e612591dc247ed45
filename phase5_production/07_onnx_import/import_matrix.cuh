/* import_matrix.cuh - builders of matrix products. x times a constant matrix of float32 is linear_op, or nd_linear_op
 * on the last of several axes; the sum with a constant list that follows is its bias (import_add_bias()). */
#ifndef PHASE5_PRODUCTION_IMPORT_MATRIX_CUH
#define PHASE5_PRODUCTION_IMPORT_MATRIX_CUH

#include "phase2_mlp/03_mlp/linear_op.cuh"
#include "phase5_production/07_onnx_import/import_elementwise.cuh"

/* w (in,out) -> (out,in) */
static inline float *import_transposed(Import *im, const float *w, int64_t in, int64_t out) {
  float *turned = (float *)import_buffer(im, (size_t)(in * out) * sizeof *turned);
  for (int64_t i = 0; i < in; i++)
    for (int64_t k = 0; k < out; k++) turned[k * in + i] = w[i * out + k];
  return turned;
}

/* The integers behind a weight, transposed like it. */
static inline int import_transposed_quantized(Import *im, int quantized, int64_t in, int64_t out) {
  OnnxQuantized q = im->quantized[quantized];
  const size_t bytes = dtype_bytes(q.type);
  unsigned char *turned = (unsigned char *)import_buffer(im, q.count * bytes);
  for (int64_t i = 0; i < in; i++)
    for (int64_t k = 0; k < out; k++)
      memcpy(turned + (size_t)(k * in + i) * bytes, (const unsigned char *)q.data + (size_t)(i * out + k) * bytes,
             bytes);
  q.data = turned;
  q.axis = 1 - q.axis;
  q.dim[0] = out, q.dim[1] = in;
  return import_add_quantized(im, &q);
}

/* The bias of `features` numbers that c, (features), (1,features) or one number, means; NULL: it is something else. */
static inline const float *import_row_bias(Import *im, ImportValue *c, int64_t features) {
  const size_t count = import_count(&c->shape);
  const int row = c->shape.rank == 0 || c->shape.dim[c->shape.rank - 1] == (int64_t)count;
  if (c->type != DTYPE_FLOAT32 || c->shape.rank > 2 || !row || (count != 1 && count != (size_t)features)) return NULL;
  const float *data = (const float *)import_data(im, c);
  if (data == NULL || count == (size_t)features) return data;
  float *all = (float *)import_buffer(im, (size_t)features * sizeof *all);
  for (int64_t k = 0; k < features; k++) all[k] = data[0];
  return all;
}

/* Output 0 is x (..., in) times w: (in,out), or (out,in) where it is turned already. bias may be NULL: zeros, which a
 * sum that follows may replace. */
static inline int import_linear(Import *im, ImportValue *x, ImportValue *w, int turned, const float *bias,
                                ImportValue *bias_value) {
  const int64_t in = w->shape.dim[turned], out = w->shape.dim[1 - turned];
  const float *data = (const float *)import_data(im, w);
  ImportShape s = x->shape;
  if (data == NULL) return -1;
  s.dim[s.rank - 1] = out;
  int from = import_node_of(im, x), node;
  if (from < 0) return -1;
  import_name(im, w);
  if (x->shape.rank == 2) {
    from = import_unflattened(im, from);
    if (shape_count(im->g->nodes[from].shape) != (size_t)in) from = x->node;
    node = graph_typed(im->g, linear(im->g, from, (int)out), x->type, im->g->nodes[from].whole);
  } else {
    const ParamSpec weight = {"weight", 2, {(size_t)out, (size_t)in}, (int)in, (int)out, &he_normal, 1, 1};
    const ParamSpec bias_spec = {"bias", 1, {(size_t)out}, (int)in, (int)out, &init_zero, 1, 1};
    node = import_add(im, &nd_linear_op, &x, 1, x->type, &s, NULL, 0);
    graph_param(im->g, node, weight);
    graph_param(im->g, node, bias_spec);
    if (node >= 0) im->g->nodes[node].flops = 2.0 * (double)out * (double)import_count(&x->shape);
  }
  if (node < 0) return im->g->failed ? import_check_graph(im) : -1;
  const size_t bytes = (size_t)(in * out) * sizeof(float);
  const int weight = import_bind(im, node, 0, turned ? data : import_transposed(im, data, in, out), bytes, w->type, w);
  if (!turned && w->quantized >= 0)
    im->out->constants[weight].quantized = import_transposed_quantized(im, w->quantized, in, out);
  const int index =
      import_bind(im, node, 1, bias ? bias : (const float *)import_buffer(im, (size_t)out * sizeof(float)),
                  (size_t)out * sizeof(float), DTYPE_FLOAT32, bias ? bias_value : NULL);
  if (import_output(im, 0, node, x->type, &s) != 0) return -1;
  if (bias == NULL && import_wanted(im, 0)) import_wanted(im, 0)->bias = index;
  return 0;
}

/* Whether w is a constant matrix that a linear layer can have. */
static inline int import_is_weight(const ImportValue *x, const ImportValue *w) {
  return x->type == DTYPE_FLOAT32 && w->type == DTYPE_FLOAT32 && import_is_constant(w) && w->shape.rank == 2 &&
         x->shape.rank >= 2 && !import_is_constant(x) && import_count(&w->shape) > 0;
}

static inline NdMatmulInputs import_matmul_inputs(const ImportValue *a, const ImportValue *b, DType to) {
  NdMatmulInputs args;
  memset(&args, 0, sizeof args);
  args.c = args.a_zero = args.b_zero = args.y_zero = args.a_scale = args.b_scale = args.y_scale = -1;
  args.matmul.alpha = 1;
  args.matmul.compute = nd_compute(a->type);
  args.matmul.a_type = a->type;
  args.matmul.b_type = b->type;
  args.matmul.y_type = to;
  return args;
}

static inline int build_gemm(Import *im) {
  ImportValue *a = import_expect(im, 0), *b = a ? import_expect(im, 1) : NULL, *c = import_input(im, 2);
  if (b == NULL) return -1;
  const int turn_a = import_attribute(im, "transA", 0) != 0, turn_b = import_attribute(im, "transB", 0) != 0;
  const float alpha = import_attribute_float(im, "alpha", 1), beta = import_attribute_float(im, "beta", 1);
  if (a->shape.rank != 2 || b->shape.rank != 2 || a->shape.dim[1 - turn_a] != b->shape.dim[turn_b] ||
      (import_batched(&a->shape) && turn_a) || import_batched(&b->shape))
    return import_fail(im, "the product of %s%s and %s%s", import_shape_text(&a->shape).text,
                       turn_a ? " transposed" : "", import_shape_text(&b->shape).text, turn_b ? " transposed" : "");
  const ImportShape s = {2, {a->shape.dim[turn_a], b->shape.dim[1 - turn_b]}};
  if (!turn_a && alpha == 1 && import_is_weight(a, b) && (c == NULL || (beta == 1 && import_is_constant(c)))) {
    const float *bias = c ? import_row_bias(im, c, s.dim[1]) : NULL;
    if (c == NULL || bias) return import_linear(im, a, b, turn_b, bias, c);
  }
  ImportShape joined;
  if (c && (import_broadcast(im, &s, &c->shape, &joined) != 0 || !import_same_shape(&s, &joined)))
    return import_fail(im, "C has the shape %s, the product %s", import_shape_text(&c->shape).text,
                       import_shape_text(&s).text);
  NdMatmulInputs args = import_matmul_inputs(a, b, a->type);
  NdMatmul *m = &args.matmul;
  m->m = import_batched(&s) ? 0 : (int)s.dim[0];
  m->n = (int)s.dim[1];
  m->k = (int)a->shape.dim[1 - turn_a];
  m->a_row = turn_a ? 1 : a->shape.dim[1], m->a_column = turn_a ? a->shape.dim[1] : 1;
  m->b_row = turn_b ? 1 : b->shape.dim[1], m->b_column = turn_b ? b->shape.dim[1] : 1;
  m->alpha = alpha, m->beta = beta;
  if (c) {
    const NdStrides strides = import_strides(&c->shape, 2);
    args.c = 2;
    m->c_type = c->type;
    m->c_row = strides.step[0], m->c_column = strides.step[1];
  }
  ImportValue *inputs[] = {a, b, c};
  const int node = import_add(im, &nd_gemm_op, inputs, c ? 3 : 2, a->type, &s, &args, sizeof args);
  return import_output(im, 0, import_products(im, node, m->k), a->type, &s);
}

/* Shapes and strides of MatMul; a list is a row or a column, whose axis then vanishes from y. */
static inline int import_matmul_shapes(Import *im, const ImportValue *a, const ImportValue *b, NdMatmul *m,
                                       ImportShape *s) {
  ImportShape x = a->shape, y = b->shape, leading_a, leading_b;
  if (x.rank < 1 || y.rank < 1) return import_fail(im, "the product of a number");
  const int row = x.rank == 1, column = y.rank == 1;
  if (row) x.rank = 2, x.dim[1] = x.dim[0], x.dim[0] = 1;
  if (column) y.rank = 2, y.dim[1] = 1;
  const int64_t rows = x.dim[x.rank - 2], k = x.dim[x.rank - 1], columns = y.dim[y.rank - 1];
  if (k != y.dim[y.rank - 2] || k == ONNX_IMPORT_BATCH || columns == ONNX_IMPORT_BATCH)
    return import_fail(im, "the product of %s and %s", import_shape_text(&a->shape).text,
                       import_shape_text(&b->shape).text);
  leading_a = x, leading_b = y;
  leading_a.rank -= 2, leading_b.rank -= 2;
  if (import_broadcast(im, &leading_a, &leading_b, s) != 0) return -1;
  m->m = rows == ONNX_IMPORT_BATCH ? 0 : (int)rows;
  m->n = (int)columns;
  m->k = (int)k;
  m->a_row = k, m->a_column = 1, m->b_row = columns, m->b_column = 1;
  m->axes = import_axes(s);
  m->a_strides = import_strides(&leading_a, s->rank);
  m->b_strides = import_strides(&leading_b, s->rank);
  for (int i = 0; i < s->rank; i++)
    m->a_strides.step[i] *= rows == ONNX_IMPORT_BATCH ? 1 : rows * k, m->b_strides.step[i] *= k * columns;
  NdStrides *const list[] = {&m->a_strides, &m->b_strides};
  nd_collapse(&m->axes, list, 2);
  if (s->rank + 2 > ONNX_MAX_RANK) return import_fail(im, "more than %d axes", ONNX_MAX_RANK);
  if (!row) s->dim[s->rank++] = rows;
  if (!column) s->dim[s->rank++] = columns;
  return 0;
}

static inline int build_matmul(Import *im) {
  ImportValue *a = import_expect(im, 0), *b = a ? import_expect(im, 1) : NULL;
  ImportShape s;
  if (b == NULL) return -1;
  if (import_is_weight(a, b) && a->shape.dim[a->shape.rank - 1] == b->shape.dim[0])
    return import_linear(im, a, b, 0, NULL, NULL);
  NdMatmulInputs args = import_matmul_inputs(a, b, a->type);
  if (import_matmul_shapes(im, a, b, &args.matmul, &s) != 0) return -1;
  ImportValue *inputs[] = {a, b};
  const int node = import_add(im, &nd_matmul_op, inputs, 2, a->type, &s, &args, sizeof args);
  return import_output(im, 0, import_products(im, node, args.matmul.k), a->type, &s);
}

#endif /* PHASE5_PRODUCTION_IMPORT_MATRIX_CUH */

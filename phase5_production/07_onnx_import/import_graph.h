/* import_graph.h - nodes of the graph for values of the file, and back: names, parameters, outputs. */
#ifndef PHASE5_PRODUCTION_IMPORT_GRAPH_H
#define PHASE5_PRODUCTION_IMPORT_GRAPH_H

#include "phase5_production/07_onnx_import/import_state.h"

/* ------------------------------------------------------------------------------------------------------------ names */

/* "layer1.0.relu" of "/layer1/layer1.0/relu/Relu", as PyTorch's exporter calls what a module's function calls; other
 * names stay. */
static inline void import_scope_name(char *to, size_t size, const char *name) {
  char part[NODE_NAME];
  to[0] = '\0';
  if (name[0] != '/') {
    snprintf(to, size, "%s", name);
    return;
  }
  for (const char *at = name + 1, *slash; (slash = strchr(at, '/')) != NULL; at = slash + 1) {
    snprintf(part, sizeof part, "%.*s", (int)(slash - at < NODE_NAME - 1 ? slash - at : NODE_NAME - 1), at);
    const size_t length = strlen(to);
    if (length > 0 && strncmp(part, to, length) == 0 && part[length] == '.')
      snprintf(to, size, "%s", part); /* it repeats what it is in */
    else
      snprintf(to + length, size - length, "%s%s", length ? "." : "", part);
  }
  if (to[0] == '\0') snprintf(to, size, "%s", name + 1);
}

/* "conv1" of the initializer "conv1.weight"; "" where it has no such name. */
static inline void import_weight_name(char *to, size_t size, const ImportValue *weight) {
  const char *dot = weight ? strrchr(weight->name, '.') : NULL;
  to[0] = '\0';
  if (dot == NULL || (strcmp(dot, ".weight") != 0 && strcmp(dot, ".weight_quantized") != 0)) return;
  if ((size_t)(dot - weight->name) < size) snprintf(to, size, "%.*s", (int)(dot - weight->name), weight->name);
}

/* The next node of the graph is called after the weight, the file's node, or its operator; the first node for a node of
 * the file has the name alone. */
static inline void import_name(Import *im, const ImportValue *weight) {
  char name[4 * NODE_NAME] = "", tried[NODE_NAME + 8];
  const int named = im->named;
  im->named = 1;
  if (named || (import_weight_name(name, sizeof name, weight), name[0] == '\0' && onnx_is_empty(im->node->name))) {
    int number = im->g->count; /* which nobody has, mostly */
    do snprintf(tried, sizeof tried, "%.40s%d", im->base, number++);
    while (graph_find(im->g, tried) >= 0);
    graph_name(im->g, tried);
    return;
  }
  if (name[0] == '\0') import_scope_name(name, sizeof name, im->node->name);
  const size_t most = NODE_NAME - 8, length = strlen(name);
  const char *end = length > most ? name + length - most : name; /* the end of a name tells more than its beginning */
  snprintf(tried, sizeof tried, "%.55s", end);
  for (int number = im->g->count; graph_find(im->g, tried) >= 0; number++)
    snprintf(tried, sizeof tried, "%.50s_%d", end, number);
  graph_name(im->g, tried);
}

/* ------------------------------------------------------------------------------------------------------- parameters */

/* Parameter k of a node of the graph gets these bytes; `source` is the value that they come from, or NULL. */
static inline int import_bind(Import *im, int node, int k, const void *data, size_t bytes, DType type,
                              const ImportValue *source) {
  OnnxImport *out = im->out;
  if (out->constant_count == out->constant_capacity) {
    out->constant_capacity = out->constant_capacity ? 2 * out->constant_capacity : 64;
    out->constants = (OnnxConstant *)realloc(out->constants, (size_t)out->constant_capacity * sizeof *out->constants);
    if (out->constants == NULL) die("out of memory: %d constants", out->constant_capacity);
  }
  OnnxConstant *c = &out->constants[out->constant_count];
  snprintf(c->name, sizeof c->name, "%s", im->g->nodes[node].param[k].name);
  c->data = data;
  c->bytes = bytes;
  c->type = type;
  c->quantized = source ? source->quantized : -1;
  return out->constant_count++;
}

/* Its number. */
static inline int import_add_quantized(Import *im, const OnnxQuantized *q) {
  im->quantized = (OnnxQuantized *)realloc(im->quantized, (size_t)(im->quantized_count + 1) * sizeof *im->quantized);
  if (im->quantized == NULL) die("out of memory: %d quantized constants", im->quantized_count);
  im->quantized[im->quantized_count] = *q;
  return im->quantized_count++;
}

/* A float32 parameter of a node from a constant of the file. */
static inline int import_bind_value(Import *im, int node, int k, ImportValue *v) {
  const void *data = import_data(im, v);
  if (data == NULL) return -1;
  const size_t bytes = im->g->nodes[node].param[k].count * sizeof(float);
  if (v->type != DTYPE_FLOAT32 || import_bytes(v) != bytes)
    return import_fail(im, "'%.100s' is %s %s; %zu numbers of float32 are expected", v->name, dtype_name(v->type),
                       import_shape_text(&v->shape).text, bytes / sizeof(float));
  import_bind(im, node, k, data, bytes, v->type, v);
  return 0;
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

/* The graph's node of a value; of a constant a constant node, made now. GRAPH_ERROR and a sentence on failure. */
static inline int import_node_of(Import *im, ImportValue *v) {
  int whole;
  if (v->node >= 0) return v->node;
  const void *data = import_data(im, v);
  if (data == NULL) return GRAPH_ERROR;
  if (v->symbolic && !im->folds) {
    import_fail(im,
                "'%.100s' depends on the size of the batch, and is computed with; fix the batch: give the inputs a "
                "first size that is a number",
                v->name);
    return GRAPH_ERROR;
  }
  char name[NODE_NAME + 16], kept[2 * NODE_NAME];
  const size_t length = strlen(v->name), most = NODE_NAME - 8;
  snprintf(kept, sizeof kept, "%s", im->g->next_name);
  const char *end = length > most ? v->name + length - most : v->name;
  snprintf(name, sizeof name, "%.55s", end);
  for (int number = im->g->count; graph_find(im->g, name) >= 0; number++)
    snprintf(name, sizeof name, "%.50s_%d", end, number);
  const Shape shape = import_graph_shape(&v->shape, &whole);
  Shape all;
  memset(&all, 0, sizeof all);
  all.rank = v->shape.rank;
  for (int i = 0; i < all.rank; i++) all.dim[i] = (int)v->shape.dim[i];
  v->node = graph_constant(im->g, name, v->type, all);
  snprintf(im->g->next_name, sizeof im->g->next_name, "%.*s", 2 * NODE_NAME - 1, kept);
  if (v->node < 0) {
    import_check_graph(im);
    return GRAPH_ERROR;
  }
  im->g->nodes[v->node].shape = shape;
  im->g->nodes[v->node].whole = whole;
  import_bind(im, v->node, 0, data, import_bytes(v), v->type, v);
  return v->node;
}

/* A constant that is computed now must have a size that a network can mean. */
static inline int import_check_constant(Import *im, const ImportShape *shape, DType type) {
  if (!im->folds || (double)import_count(shape) * (double)dtype_bytes(type) <= IMPORT_MOST_CONSTANT) return 0;
  return import_fail(im, "a constant of the shape %s is computed; at most 1 GiB is", import_shape_text(shape).text);
}

/* A node of `op` that reads values; its result has the shape and the type. GRAPH_ERROR and a sentence on failure. */
static inline int import_add(Import *im, const Op *op, ImportValue *const *inputs, int count, DType type,
                             const ImportShape *shape, const void *attributes, size_t bytes) {
  int nodes[NODE_MAX_INPUTS], whole;
  if (import_check_shape(im, shape) != 0 || import_check_constant(im, shape, type) != 0) return GRAPH_ERROR;
  if (count > NODE_MAX_INPUTS) {
    import_fail(im, "%d inputs; at most %d are possible", count, NODE_MAX_INPUTS);
    return GRAPH_ERROR;
  }
  for (int i = 0; i < count; i++)
    if ((nodes[i] = import_node_of(im, inputs[i])) < 0) return GRAPH_ERROR;
  const Shape s = import_graph_shape(shape, &whole), none = {0, {0}};
  const int empty = im->folds && import_count(shape) == 0; /* it is not computed, and will be a constant */
  import_name(im, NULL);
  const int node = graph_typed(
      im->g, graph_node(im->g, op, im->base, nodes, count, empty ? none : s, attributes, bytes), type, whole);
  if (node < 0) import_check_graph(im);
  if (node >= 0 && empty) im->g->nodes[node].shape = s;
  return node;
}

/* Each of its results takes so many multiplications and additions. Returns the node. */
static inline int import_products(Import *im, int node, double each) {
  if (node >= 0) im->g->nodes[node].flops = 2 * each * (double)shape_count(im->g->nodes[node].shape);
  return node;
}

/* ---------------------------------------------------------------------------------------------------------- outputs */

/* Whether anybody reads output k of the node. */
static inline ImportValue *import_wanted(Import *im, int k) {
  if ((size_t)k >= im->node->n_output || im->node->output[k][0] == '\0') return NULL;
  ImportValue *v = import_find(im, im->node->output[k]);
  return v && (v->uses > 0 || k == 0) ? v : NULL;
}

/* Output k of the file's node is this node of the graph. */
static inline int import_output(Import *im, int k, int node, DType type, const ImportShape *shape) {
  if (node < 0) return im->g->failed ? import_check_graph(im) : -1;
  ImportValue *v = import_wanted(im, k);
  if (v == NULL) return 0;
  v->ready = 1;
  v->type = type;
  v->shape = *shape;
  v->node = node;
  return 0;
}

/* It is a constant, whose bytes live as long as the import. */
static inline int import_constant(Import *im, int k, DType type, const ImportShape *shape, const void *data,
                                  int symbolic) {
  ImportValue *v = import_wanted(im, k);
  if (v == NULL) return 0;
  v->ready = 1;
  v->type = type;
  v->shape = *shape;
  v->data = data;
  v->symbolic = symbolic;
  return 0;
}

/* It is another name of a value. */
static inline int import_alias(Import *im, int k, const ImportValue *from) {
  ImportValue *v = import_wanted(im, k);
  if (v == NULL) return 0;
  const char *name = v->name;
  const int uses = v->uses;
  *v = *from;
  v->name = name;
  v->uses = uses;
  return 0;
}

/* A value of the graph that the file has no name for. Lives in the import's buffers. */
static inline ImportValue *import_temporary(Import *im, int node, DType type, const ImportShape *shape) {
  if (node < 0) return NULL;
  ImportValue *v = (ImportValue *)import_buffer(im, sizeof *v);
  v->name = "a result within the operator";
  v->ready = 1;
  v->type = type;
  v->shape = *shape;
  v->node = node;
  v->bias = v->quantized = -1;
  return v;
}

/* A constant that the file has no name for: `data` lives in the import's buffers. */
static inline ImportValue *import_literal(Import *im, const char *name, DType type, const ImportShape *shape,
                                          const void *data) {
  ImportValue *v = import_temporary(im, 0, type, shape);
  v->node = GRAPH_ERROR;
  v->name = name;
  v->data = data;
  return v;
}

static inline ImportValue *import_number(Import *im, DType type, double x) {
  const ImportShape none = import_shape0();
  void *data = import_buffer(im, 8);
  nd_store<double>(data, type, 0, x);
  return import_literal(im, "number", type, &none, data);
}

/* ----------------------------------------------------------------------------------------------------- other shapes */

/* The same elements as another shape: the value itself where the graph has it so, else a view, which costs nothing. */
static inline ImportValue *import_view(Import *im, ImportValue *v, const ImportShape *shape) {
  if (import_same_shape(&v->shape, shape)) return v;
  if (import_check_shape(im, shape) != 0) return NULL;
  if (import_count(shape) != import_count(&v->shape)) {
    import_fail(im, "%s is to become %s", import_shape_text(&v->shape).text, import_shape_text(shape).text);
    return NULL;
  }
  if (import_is_constant(v)) {
    if (import_data(im, v) == NULL) return NULL;
    ImportValue *other = import_temporary(im, 0, v->type, shape);
    const int quantized = v->quantized;
    other->name = v->name;
    other->node = GRAPH_ERROR;
    other->data = v->data;
    other->symbolic = v->symbolic;
    other->quantized = quantized;
    return other;
  }
  int node = v->node, whole;
  const Shape s = import_graph_shape(shape, &whole);
  if (im->g->nodes[node].op == &nd_view_op) node = im->g->nodes[node].input[0];
  const Node *owner = &im->g->nodes[node];
  if (shape_equal(owner->shape, s) && owner->whole == whole) return import_temporary(im, node, v->type, shape);
  ImportValue *from = import_temporary(im, node, v->type, shape);
  return import_temporary(im, import_add(im, &nd_view_op, &from, 1, v->type, shape, NULL, 0), v->type, shape);
}

/* Output k is `v` as another shape. */
static inline int import_output_view(Import *im, int k, ImportValue *v, const ImportShape *shape) {
  const ImportValue *view = import_view(im, v, shape);
  return view ? import_alias(im, k, view) : -1;
}

/* What a flatten in front of a linear layer reads. */
static inline int import_unflattened(const Import *im, int node) {
  return im->g->nodes[node].op == &nd_view_op ? im->g->nodes[node].input[0] : node;
}

/* ---------------------------------------------------------------------------------------------------------- strides */

/* Of an array that is read from end to end, axis by axis; the last axes of `out`, size 1 repeated. */
static inline NdStrides import_strides(const ImportShape *s, int rank) {
  NdStrides strides;
  long long step = 1;
  memset(&strides, 0, sizeof strides);
  for (int i = s->rank - 1, k = rank - 1; i >= 0; i--, k--) {
    strides.step[k] = s->dim[i] == 1 ? 0 : step;
    step *= s->dim[i] == ONNX_IMPORT_BATCH ? 1 : s->dim[i];
  }
  return strides;
}

/* Without repetition: also an axis of one element has its stride. */
static inline NdStrides import_plain_strides(const ImportShape *s) {
  NdStrides strides;
  long long step = 1;
  memset(&strides, 0, sizeof strides);
  for (int i = s->rank - 1; i >= 0; i--) {
    strides.step[i] = step;
    step *= s->dim[i] == ONNX_IMPORT_BATCH ? 1 : s->dim[i];
  }
  return strides;
}

static inline NdAxes import_axes(const ImportShape *s) {
  NdAxes axes;
  memset(&axes, 0, sizeof axes);
  axes.rank = s->rank;
  for (int i = 0; i < s->rank; i++) axes.dim[i] = s->dim[i] == ONNX_IMPORT_BATCH ? 0 : (unsigned)s->dim[i];
  return axes;
}

#endif /* PHASE5_PRODUCTION_IMPORT_GRAPH_H */

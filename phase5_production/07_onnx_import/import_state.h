/* import_state.h - what the importer knows while it goes through a model: the values by name, constants, the graph.
 *
 * A value of the file is an array that is computed when the model runs, and then a node of the graph, or it is a
 * constant: then its bytes are here, on the host. In a constant that is computed from a shape the batch is the number
 * IMPORT_BATCH. It is a power of two, so that float32 has it exactly, and larger than any size: a multiple of it in a
 * shape is the batch times something.
 */
#ifndef PHASE5_PRODUCTION_IMPORT_STATE_H
#define PHASE5_PRODUCTION_IMPORT_STATE_H

#include "phase5_production/07_onnx_import/nd_op.cuh"
#include "phase5_production/07_onnx_import/onnx_import.cuh"

#define IMPORT_BATCH ((int64_t)1 << 30)
#define IMPORT_MOST_CONSTANT 1073741824.0
enum { IMPORT_INPUTS = 64, IMPORT_TEXT = 600 };

/* dim[0] of what has the batch first is ONNX_IMPORT_BATCH. */
typedef struct ImportShape {
  int rank;
  int64_t dim[ONNX_MAX_RANK];
} ImportShape;

typedef struct ImportValue {
  const char *name;
  int ready; /* it is a graph input, an initializer, or a node has computed it */
  DType type;
  ImportShape shape;
  int node;                             /* of the graph; GRAPH_ERROR: none yet */
  const void *data;                     /* of a constant; NULL: it is computed at run time, or not loaded yet */
  const Onnx__TensorProto *initializer; /* whose data is loaded when it is first read */
  int symbolic;                         /* a constant that depends on the batch */
  int uses;                             /* nodes of the file that read it, and 1 where it is an output */
  int bias;                             /* the constant that is the bias of zeros of the product that computed it; -1 */
  int quantized;                        /* entry of Import.quantized: a constant that DequantizeLinear made; -1 */
} ImportValue;

typedef struct Import {
  OnnxImport *out;
  const OnnxModel *model;
  Graph *g;
  int opset;
  ImportValue *values; /* by name */
  int count;
  void **buffers; /* owned */
  int buffer_count, buffer_capacity;
  OnnxQuantized *quantized;
  int quantized_count;
  /* Of the node that is being built. */
  const Onnx__NodeProto *node;
  size_t index;
  ImportValue *in[IMPORT_INPUTS];
  int inputs, kind, named,
      folds;        /* kind: of the table of operators; named: a node of the graph has got its name; folds: all
                                     its inputs are constants */
  const char *base; /* of names */
  Error *err;
} Import;

/* ----------------------------------------------------------------------------------------------------------- errors */

/* "resnet.onnx: node 'conv1' (Conv): ..." Returns -1. */
__attribute__((format(printf, 2, 3))) static inline int import_fail(Import *im, const char *format, ...) {
  char what[IMPORT_TEXT], node[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (im->node == NULL) return error_set(im->err, "%.200s: %s", im->model->path, what);
  return error_set(im->err, "%.200s: %.200s: %s", im->model->path,
                   onnx_node_text(node, sizeof node, im->node, im->index), what);
}

/* What the graph says, in the same form. */
static inline int import_check_graph(Import *im) {
  return im->g->failed ? import_fail(im, "%.500s", im->g->error.message) : 0;
}

/* ------------------------------------------------------------------------------------------------------------ types */

/* -1: no type of a graph. */
static inline int import_dtype(int onnx_type) {
  static const signed char types[] = {-1,           DTYPE_FLOAT32, DTYPE_UINT8, DTYPE_INT8, DTYPE_UINT16, DTYPE_INT16,
                                      DTYPE_INT32,  DTYPE_INT64,   -1,          DTYPE_BOOL, DTYPE_FP16,   DTYPE_DOUBLE,
                                      DTYPE_UINT32, DTYPE_UINT64,  -1,          -1,         DTYPE_BF16};
  return onnx_type > 0 && onnx_type < (int)sizeof types ? types[onnx_type] : -1;
}

/* Of ONNX; or a sentence. */
static inline int import_type(Import *im, int64_t onnx_type, DType *type) {
  *type = DTYPE_FLOAT32;
  const int found = onnx_type < 100 ? import_dtype((int)onnx_type) : -1;
  if (found < 0)
    return import_fail(im, "the type %s is not computed with; numbers and bool are",
                       onnx_type_name((int)(onnx_type < 100 ? onnx_type : 0)));
  *type = (DType)found;
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

static inline int import_batched(const ImportShape *s) { return s->rank > 0 && s->dim[0] == ONNX_IMPORT_BATCH; }

static inline ImportShape import_shape0(void) {
  ImportShape s;
  memset(&s, 0, sizeof s);
  return s;
}

static inline ImportShape import_shape1(int64_t n) {
  ImportShape s = import_shape0();
  s.rank = 1;
  s.dim[0] = n;
  return s;
}

/* Elements of one sample where the batch is first, else of all. */
static inline size_t import_count(const ImportShape *s) {
  size_t count = 1;
  for (int i = 0; i < s->rank; i++)
    if (s->dim[i] != ONNX_IMPORT_BATCH) count *= (size_t)s->dim[i];
  return count;
}

/* The product of axes from..to-1, without the batch. */
static inline size_t import_product(const ImportShape *s, int from, int to) {
  size_t count = 1;
  for (int i = from; i < to; i++)
    if (s->dim[i] != ONNX_IMPORT_BATCH) count *= (size_t)s->dim[i];
  return count;
}

static inline int import_same_shape(const ImportShape *a, const ImportShape *b) {
  int same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->dim[i] == b->dim[i];
  return same;
}

/* "(N,3,224,224)" */
typedef struct ImportShapeText {
  char text[128];
} ImportShapeText;

static inline ImportShapeText import_shape_text(const ImportShape *s) {
  ImportShapeText t;
  int used = snprintf(t.text, sizeof t.text, "(");
  for (int i = 0; i < s->rank && used < 100; i++)
    used += s->dim[i] == ONNX_IMPORT_BATCH
                ? snprintf(t.text + used, sizeof t.text - (size_t)used, "%sN", i ? "," : "")
                : snprintf(t.text + used, sizeof t.text - (size_t)used, "%s%lld", i ? "," : "", (long long)s->dim[i]);
  snprintf(t.text + used, sizeof t.text - (size_t)used, ")");
  return t;
}

/* Sizes of at least 0 that an array can have. */
static inline int import_check_shape(Import *im, const ImportShape *s) {
  int64_t product = 1;
  if (s->rank > ONNX_MAX_RANK)
    return import_fail(im, "an array of %d axes; up to %d are possible", s->rank, ONNX_MAX_RANK);
  for (int i = 0; i < s->rank; i++) {
    const int64_t d = s->dim[i];
    if (i == 0 && d == ONNX_IMPORT_BATCH) continue;
    if (d == ONNX_IMPORT_BATCH)
      return import_fail(im,
                         "the batch would become axis %d of %s; it must stay the first axis. Fix the batch instead: "
                         "give the inputs a first size that is a number",
                         i, import_shape_text(s).text);
    if (d < 0 || d > INT_MAX || __builtin_mul_overflow(product, d > 0 ? d : 1, &product) || product > INT_MAX)
      return import_fail(im, "an array of the shape %s; at most %d elements are possible", import_shape_text(s).text,
                         INT_MAX);
  }
  return 0;
}

/* The graph's form: all axes but the first, and how many samples. */
static inline Shape import_graph_shape(const ImportShape *s, int *whole) {
  Shape shape;
  memset(&shape, 0, sizeof shape);
  const int samples = s->rank > 0 && import_count(s) > 0; /* else there is one, with all axes */
  *whole = !samples ? 1 : import_batched(s) ? 0 : (int)s->dim[0];
  shape.rank = s->rank - samples;
  for (int i = 0; i < shape.rank; i++) shape.dim[i] = (int)s->dim[i + samples];
  return shape;
}

/* An axis as the file has it, negative ones from the end; `rank` as the result. -1 where there is none. */
static inline int import_axis(Import *im, int64_t axis, int rank, int *result) {
  *result = 0;
  if (axis < -rank || axis >= rank)
    return import_fail(im, "axis %lld of an array of %d axes; %d to %d are possible", (long long)axis, rank, -rank,
                       rank - 1);
  *result = (int)(axis < 0 ? axis + rank : axis);
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- values */

static inline ImportValue *import_find(Import *im, const char *name) {
  int low = 0, high = im->count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (strcmp(im->values[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < im->count && strcmp(im->values[low].name, name) == 0 ? &im->values[low] : NULL;
}

/* Memory that lives as long as the import, zero. */
static inline void *import_buffer(Import *im, size_t bytes) {
  if (im->buffer_count == im->buffer_capacity) {
    im->buffer_capacity = im->buffer_capacity ? 2 * im->buffer_capacity : 64;
    im->buffers = (void **)realloc(im->buffers, (size_t)im->buffer_capacity * sizeof *im->buffers);
    if (im->buffers == NULL) die("out of memory: %d buffers", im->buffer_capacity);
  }
  return im->buffers[im->buffer_count++] = xcalloc(bytes + 16, 1);
}

static inline int import_is_constant(const ImportValue *v) { return v->data != NULL || v->initializer != NULL; }

static inline size_t import_bytes(const ImportValue *v) { return import_count(&v->shape) * dtype_bytes(v->type); }

/* The bytes of a constant; NULL and a sentence where the value is none, or its file cannot be read. */
static inline const void *import_data(Import *im, ImportValue *v) {
  if (v->data) return v->data;
  if (v->initializer == NULL) {
    snprintf(im->out->needs, sizeof im->out->needs, "%.255s", v->name);
    import_fail(im,
                "'%.100s' is computed when the model runs, and must be known when it is imported; where it is an input "
                "of the model, give its value",
                v->name);
    return NULL;
  }
  OnnxTensor t;
  if (onnx_tensor_load(&t, im->model, v->initializer, im->err) != 0) return NULL;
  void *data = import_buffer(im, t.bytes);
  if (t.bytes) memcpy(data, t.data, t.bytes);
  onnx_tensor_free(&t);
  return v->data = data;
}

/* Input i of the node; NULL: it has none. */
static inline ImportValue *import_input(const Import *im, int i) { return i < im->inputs ? im->in[i] : NULL; }

/* The same where it must be there. */
static inline ImportValue *import_expect(Import *im, int i) {
  ImportValue *v = import_input(im, i);
  if (v == NULL) import_fail(im, "input %d is missing; the operator has %d inputs here", i, im->inputs);
  return v;
}

/* Element i of a constant. */
static inline int64_t import_int(const ImportValue *v, size_t i) { return nd_load<int64_t>(v->data, v->type, i); }
static inline double import_real(const ImportValue *v, size_t i) { return nd_load<double>(v->data, v->type, i); }

/* Up to `most` whole numbers of an attribute or, where it has none of this name, of constant input i. *count: how many,
 * -1: neither is there. */
static inline int import_ints(Import *im, const char *attribute, int i, int64_t *values, int most, int *count) {
  size_t n = 0;
  const int64_t *ints = attribute ? onnx_attribute_ints(im->node, attribute, &n) : NULL;
  ImportValue *v = i >= 0 ? import_input(im, i) : NULL;
  *count = -1;
  if (ints == NULL && v == NULL) {
    if (attribute && onnx_attribute(im->node, attribute)) *count = 0; /* an empty list */
    return 0;
  }
  if (ints == NULL) {
    if (import_data(im, v) == NULL) return -1;
    n = import_count(&v->shape);
    if (nd_compute(v->type) != ND_INT)
      return import_fail(im, "'%.100s' is of %s; whole numbers are expected", v->name, dtype_name(v->type));
  }
  if (n > (size_t)most)
    return import_fail(im, "%zu numbers in %s; at most %d are expected", n, attribute ? attribute : v->name, most);
  for (size_t k = 0; k < n; k++) values[k] = ints ? ints[k] : import_int(v, k);
  *count = (int)n;
  return 0;
}

static inline int64_t import_attribute(const Import *im, const char *name, int64_t otherwise) {
  return onnx_attribute_int(im->node, name, otherwise);
}
static inline float import_attribute_float(const Import *im, const char *name, float otherwise) {
  return onnx_attribute_float(im->node, name, otherwise);
}

#endif /* PHASE5_PRODUCTION_IMPORT_STATE_H */

/* import_model.h - from a model's inputs through its nodes to its outputs. */
#ifndef PHASE5_PRODUCTION_IMPORT_MODEL_H
#define PHASE5_PRODUCTION_IMPORT_MODEL_H

#include "phase5_production/07_onnx_import/import_fold.h"
#include "phase5_production/07_onnx_import/import_table.cuh"

/* ------------------------------------------------------------------------------------------------------------ names */

static inline int import_compare_values(const void *a, const void *b) {
  return strcmp(((const ImportValue *)a)->name, ((const ImportValue *)b)->name);
}

/* Every name of the file, once, sorted. */
static inline void import_collect(Import *im) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  size_t most = graph->n_input + graph->n_initializer;
  for (size_t i = 0; i < graph->n_node; i++) most += graph->node[i]->n_output;
  im->values = (ImportValue *)xcalloc(most, sizeof *im->values);
  for (size_t i = 0; i < graph->n_input; i++) im->values[im->count++].name = graph->input[i]->name;
  for (size_t i = 0; i < graph->n_initializer; i++) im->values[im->count++].name = graph->initializer[i]->name;
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_output; k++)
      if (graph->node[i]->output[k][0] != '\0') im->values[im->count++].name = graph->node[i]->output[k];
  qsort(im->values, (size_t)im->count, sizeof *im->values, import_compare_values);
  int kept = 0;
  for (int i = 0; i < im->count; i++)
    if (kept == 0 || strcmp(im->values[kept - 1].name, im->values[i].name) != 0) im->values[kept++] = im->values[i];
  im->count = kept;
  for (int i = 0; i < kept; i++) im->values[i].node = im->values[i].bias = im->values[i].quantized = -1;
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_input; k++) {
      ImportValue *v = import_find(im, graph->node[i]->input[k]);
      if (v) v->uses++;
    }
  for (size_t i = 0; i < graph->n_output; i++) {
    ImportValue *v = import_find(im, graph->output[i]->name);
    if (v) v->uses += 2; /* nothing may be joined behind it */
  }
}

static inline int import_initializers(Import *im) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  for (size_t i = 0; i < graph->n_initializer; i++) {
    const Onnx__TensorProto *t = graph->initializer[i];
    ImportValue *v = import_find(im, t->name);
    if (import_dtype(t->data_type) < 0) continue; /* strings: a mistake where they are read */
    v->ready = 1;
    v->type = (DType)import_dtype(t->data_type);
    v->shape.rank = (int)t->n_dims;
    for (size_t k = 0; k < t->n_dims; k++) v->shape.dim[k] = t->dims[k];
    v->initializer = t;
    if (import_check_shape(im, &v->shape) != 0) return -1;
  }
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- inputs */

static inline const OnnxImportInput *import_given(const OnnxImportInput *inputs, int count, const char *name) {
  const OnnxImportInput *any = NULL;
  for (int i = 0; i < count; i++) {
    if (inputs[i].name && strcmp(inputs[i].name, name) == 0) return &inputs[i];
    if (inputs[i].name == NULL) any = &inputs[i];
  }
  return any;
}

/* The shape that the file declares, with what is given in its place. */
static inline int import_input_shape(Import *im, const Onnx__ValueInfoProto *input, const OnnxImportInput *given,
                                     ImportShape *s) {
  const char *symbol[ONNX_MAX_RANK] = {NULL};
  int64_t declared[ONNX_MAX_RANK];
  const int rank = onnx_value_shape(input, declared, symbol);
  *s = import_shape0();
  s->rank = given && (given->rank > 0 || given->value) ? given->rank : rank;
  if (s->rank < 0) return import_fail(im, "input '%.100s' has no shape; give one", input->name);
  if (rank >= 0 && s->rank != rank)
    return import_fail(im, "input '%.100s' has %d axes, and %d sizes are given", input->name, rank, s->rank);
  for (int i = 0; i < s->rank; i++) {
    const int64_t asked = given && i < given->rank ? given->dim[i] : (int64_t)ONNX_IMPORT_AS_FILE,
                  own = rank >= 0 ? declared[i] : -1;
    if (given && given->value) {
      s->dim[i] = asked;
    } else if (asked > 0) {
      if (own > 0 && own != asked && i > 0)
        return import_fail(im, "input '%.100s': size %d is %lld in the file, and %lld is given", input->name, i,
                           (long long)own, (long long)asked);
      s->dim[i] = asked;
    } else if (i == 0 && (asked == ONNX_IMPORT_BATCH || own < 0)) {
      s->dim[i] = ONNX_IMPORT_BATCH;
    } else if (own < 0) {
      return import_fail(im, "input '%.100s': size %d%s%.40s is not a number; give one for each axis but the batch",
                         input->name, i, symbol[i] ? ", " : "", symbol[i] ? symbol[i] : "");
    } else {
      s->dim[i] = own;
    }
  }
  return import_check_shape(im, s);
}

/* A value that is given is a constant; so is one without elements. */
static inline int import_input_value(Import *im, const Onnx__ValueInfoProto *input, const OnnxImportInput *given) {
  ImportValue *v = import_find(im, input->name);
  OnnxImportValue *row = &im->out->inputs[im->out->input_count];
  int whole;
  if (import_type(im, onnx_value_type(input), &v->type) != 0 || import_input_shape(im, input, given, &v->shape) != 0)
    return -1;
  v->ready = 1;
  if ((given && given->value) || import_count(&v->shape) == 0) {
    void *data = import_buffer(im, import_bytes(v));
    if (given && given->value) memcpy(data, given->value, import_bytes(v));
    v->data = data;
    return 0;
  }
  if (im->out->input_count == ONNX_IMPORT_VALUES) return import_fail(im, "more than %d inputs", ONNX_IMPORT_VALUES);
  const Shape shape = import_graph_shape(&v->shape, &whole);
  const size_t length = strlen(v->name);
  char name[2 * NODE_NAME];
  snprintf(name, sizeof name, "%.63s", length > NODE_NAME - 1 ? v->name + length - (NODE_NAME - 1) : v->name);
  v->node = graph_typed(im->g, graph_input(im->g, name, shape), v->type, whole);
  if (v->node < 0) return import_check_graph(im);
  snprintf(row->name, sizeof row->name, "%.255s", v->name);
  row->node = v->node;
  row->type = v->type;
  row->rank = v->shape.rank;
  memcpy(row->dim, v->shape.dim, sizeof row->dim);
  im->out->batched |= import_batched(&v->shape);
  im->out->input_count++;
  return 0;
}

static inline int import_inputs(Import *im, const OnnxImportInput *inputs, int count) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  for (int i = 0; i < count; i++) {
    size_t k = 0;
    while (inputs[i].name && k < graph->n_input && strcmp(graph->input[k]->name, inputs[i].name) != 0) k++;
    if (inputs[i].name && k == graph->n_input)
      return import_fail(im, "the model has no input '%.100s'", inputs[i].name);
  }
  for (size_t i = 0; i < graph->n_input; i++) {
    const ImportValue *v = import_find(im, graph->input[i]->name);
    if (v->ready) continue; /* an initializer with a name among the inputs, as old files have them */
    if (import_input_value(im, graph->input[i], import_given(inputs, count, graph->input[i]->name)) != 0) return -1;
  }
  return 0;
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

/* All operators that are missing, in one sentence. */
static inline int import_check_operators(Import *im) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  enum { MOST = 8 }; /* different ones that are named */
  const char *seen[MOST];
  char text[400] = "", node[200];
  size_t used = 0;
  int missing = 0;
  for (size_t i = 0; i < graph->n_node; i++) {
    const Onnx__NodeProto *n = graph->node[i];
    int first = missing < MOST && import_operator(im, n) == NULL;
    for (int j = 0; j < missing && first; j++) first = strcmp(seen[j], n->op_type) != 0;
    if (!first) continue;
    seen[missing++] = n->op_type;
    const char *domain = onnx_domain(n->domain);
    if (used < sizeof text - 1)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s%s%.40s at %.100s", used ? "; " : "", domain,
                               domain[0] ? "." : "", n->op_type, onnx_node_text(node, sizeof node, n, i));
  }
  if (missing == 0) return 0;
  error_set(im->err, "%.200s: %d operator%s of version %d cannot be imported: %s", im->model->path, missing,
            missing == 1 ? "" : "s", im->opset, text);
  return error_advise(im->err, "onnx_import --operators lists those that can");
}

/* What the nodes from `first` on are, for the report. */
static inline void import_report(Import *im, OnnxImportRow *row, int first, int folded) {
  size_t used = 0;
  row->fate = folded ? ONNX_FOLDED : ONNX_VANISHED;
  for (int i = first; i < im->g->count && !folded; i++) {
    const Op *op = im->g->nodes[i].op;
    if (op->flags & (OP_CONSTANT | OP_VIEW)) continue;
    if (row->fate == ONNX_VANISHED) row->fate = ONNX_OURS;
    if (op->backward == nd_no_backward) row->fate = ONNX_GENERIC;
    if (used < sizeof row->became)
      used += (size_t)snprintf(row->became + used, sizeof row->became - used, "%s%s", used ? ", " : "", op->name);
  }
}

/* Whether constants became as many as the batch: by Expand, or ConstantOfShape. Then the result is not a constant. */
static inline int import_gives_batch(Import *im) {
  for (size_t k = 0; k < im->node->n_output; k++) {
    const ImportValue *v = import_wanted(im, (int)k);
    if (v && v->ready && import_batched(&v->shape)) return 1;
  }
  return 0;
}

static inline int import_node(Import *im, size_t index) {
  const Onnx__NodeProto *node = im->model->proto->graph->node[index];
  const ImportOperator *o = import_operator(im, node);
  OnnxImportRow *row = &im->out->rows[im->out->row_count++];
  const int first = im->g->count, bound = im->out->constant_count;
  char base[NODE_NAME];
  im->node = node;
  im->index = index;
  im->kind = o->kind;
  im->named = 0;
  im->folds = 1;
  if (node->n_input > IMPORT_INPUTS)
    return import_fail(im, "%zu inputs; at most %d are possible", node->n_input, IMPORT_INPUTS);
  im->inputs = (int)node->n_input;
  for (int k = 0; k < im->inputs; k++) {
    im->in[k] = node->input[k][0] != '\0' ? import_find(im, node->input[k]) : NULL;
    if (im->in[k] && !im->in[k]->ready) return import_fail(im, "'%.100s' is not computed here", node->input[k]);
    im->folds &= im->in[k] == NULL || import_is_constant(im->in[k]);
  }
  while (im->inputs > 0 && im->in[im->inputs - 1] == NULL) im->inputs--;
  snprintf(base, sizeof base, "%s", o->name);
  for (char *c = base; *c; c++) *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
  im->base = base;
  row->name = node->name ? node->name : "";
  row->op = node->op_type;
  for (int k = 0; k < im->inputs && im->folds; k++)
    if (im->in[k] && import_data(im, im->in[k]) == NULL) return -1;
  if (o->build(im) != 0) return -1;
  if (import_check_graph(im) != 0) return -1;
  if (import_gives_batch(im)) im->folds = 0;
  import_report(im, row, first, im->folds);
  if (im->folds) import_fold(im, first, bound);
  im->g->next_name[0] = '\0';
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------- outputs */

static inline int import_outputs(Import *im) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  im->node = NULL;
  im->folds = 0;
  for (size_t i = 0; i < graph->n_output; i++) {
    ImportValue *v = import_find(im, graph->output[i]->name);
    if (im->out->output_count == ONNX_IMPORT_VALUES || im->g->output_count == GRAPH_MAX_OUTPUTS)
      return import_fail(im, "%zu outputs; at most %d are possible", graph->n_output, GRAPH_MAX_OUTPUTS);
    if (v == NULL || !v->ready) return import_fail(im, "the output '%.100s' is not computed", graph->output[i]->name);
    OnnxImportValue *row = &im->out->outputs[im->out->output_count++];
    const int node = import_node_of(im, v);
    if (node < 0) return -1;
    graph_output(im->g, node);
    snprintf(row->name, sizeof row->name, "%.255s", v->name);
    row->node = node;
    row->type = v->type;
    row->rank = v->shape.rank;
    memcpy(row->dim, v->shape.dim, sizeof row->dim);
  }
  return import_check_graph(im);
}

/* Nodes that nobody reads leave the list: views that were passed by, constants that became parameters. */
static inline void import_sweep(Import *im) {
  Graph *g = im->g;
  int *place = (int *)xcalloc((size_t)g->count, sizeof *place), kept = 0;
  for (int i = 0; i < g->output_count; i++) place[g->outputs[i]] = 1;
  for (int i = g->count - 1; i >= 0; i--)
    if (place[i] || g->nodes[i].op == NULL) {
      place[i] = 1;
      for (int k = 0; k < g->nodes[i].inputs; k++) place[g->nodes[i].input[k]] = 1;
    }
  for (int i = 0; i < g->count; i++) {
    if (!place[i]) continue;
    place[i] = kept;
    g->nodes[kept] = g->nodes[i];
    for (int k = 0; k < g->nodes[kept].inputs; k++) g->nodes[kept].input[k] = place[g->nodes[kept].input[k]];
    kept++;
  }
  g->count = kept;
  for (int i = 0; i < g->output_count; i++) g->outputs[i] = place[g->outputs[i]];
  OnnxImportValue *lists[] = {im->out->inputs, im->out->outputs};
  const int counts[] = {im->out->input_count, im->out->output_count};
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < counts[l]; i++) {
      lists[l][i].node = place[lists[l][i].node];
      memcpy(lists[l][i].node_name, g->nodes[lists[l][i].node].name, NODE_NAME);
    }
  free(place);
}

#endif /* PHASE5_PRODUCTION_IMPORT_MODEL_H */

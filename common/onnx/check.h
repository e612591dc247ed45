/* check.h - whether a model that was read makes sense: what every reader of ONNX files may then rely on.
 *
 * - The version of the format and the sets of operators are declared, and every node's operator belongs to one of them.
 * - Every name that a node reads is defined before it: by a graph input, an initializer or an earlier node; so there is
 *   no cycle. No name is defined twice. A body of If or Loop also sees the names of the graphs around it.
 * - Inputs and outputs are tensors with types and sizes that make sense; initializers hold what their shapes say.
 * - An attribute has one value, of the type that it declares.
 *
 * Whether an operator exists, and what it wants of its inputs, is for the importer to say.
 *
 * Names are looked up by bisection in a sorted list: no hash table that a hostile file could make slow.
 */
#ifndef COMMON_ONNX_CHECK_H
#define COMMON_ONNX_CHECK_H

#include "common/onnx/tensor.h"

enum { ONNX_OLDEST_IR = 3, ONNX_NEWEST_IR = 13, ONNX_MAX_BODIES = 8 /* bodies in bodies */ };

typedef enum OnnxKind { ONNX_AN_INPUT, ONNX_AN_INITIALIZER, ONNX_AN_OUTPUT } OnnxKind;

typedef struct OnnxName {
  const char *name;
  size_t ready; /* the first node that may read it: 0 for inputs and initializers, i + 1 for what node i computes */
  OnnxKind kind;
} OnnxName;

typedef struct OnnxScope { /* the names of a graph, sorted */
  const struct OnnxScope *outer;
  const char *path;
  const Onnx__GraphProto *graph;
  const Onnx__ModelProto *model;
  size_t node; /* which is being checked */
  size_t count;
  OnnxName *names;
} OnnxScope;

static inline int onnx_name_compare(const void *a, const void *b) {
  const OnnxName *x = (const OnnxName *)a, *y = (const OnnxName *)b;
  const int order = strcmp(x->name, y->name);
  if (order != 0) return order;
  if (x->ready != y->ready) return x->ready < y->ready ? -1 : 1;
  return (x->kind > y->kind) - (x->kind < y->kind);
}

static inline const OnnxName *onnx_scope_find(const OnnxScope *scope, const char *name) {
  size_t low = 0, high = scope->count;
  while (low < high) { /* the first entry that is not before `name` */
    const size_t middle = low + (high - low) / 2;
    if (strcmp(scope->names[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < scope->count && strcmp(scope->names[low].name, name) == 0 ? &scope->names[low] : NULL;
}

static inline int onnx_is_empty(const char *text) { return text == NULL || text[0] == '\0'; }

/* "node 'conv1' (Conv)", "node 12 (Conv)": how messages name a node. */
static inline const char *onnx_node_text(char *text, size_t size, const Onnx__NodeProto *node, size_t index) {
  const char *op = onnx_is_empty(node->op_type) ? "no operator" : node->op_type;
  if (onnx_is_empty(node->name))
    snprintf(text, size, "node %zu (%.60s)", index, op);
  else
    snprintf(text, size, "node '%.100s' (%.60s)", node->name, op);
  return text;
}

/* A name of a tensor, a node, a graph input ...: messages print it, so it must be printable. */
static inline int onnx_check_name(const char *path, const char *what, const char *name, Error *err) {
  if (onnx_is_empty(name)) return error_set(err, "%s: %s has no name", path, what);
  for (const char *c = name; *c != '\0'; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f)
      return error_set(err, "%s: %s has a name with the control character 0x%02x in it", path, what, (unsigned char)*c);
  return 0;
}

/* ---- names ---- */

static inline int onnx_scope_add(OnnxScope *scope, const char *what, const char *name, OnnxKind kind, size_t ready,
                                 Error *err) {
  if (onnx_check_name(scope->path, what, name, err) != 0) return -1;
  scope->names[scope->count++] = (OnnxName){name, ready, kind};
  return 0;
}

/* Collects the names that the graph defines. */
static inline int onnx_scope_fill(OnnxScope *scope, Error *err) {
  const Onnx__GraphProto *g = scope->graph;
  size_t most = g->n_input + g->n_initializer;
  char what[256];
  for (size_t i = 0; i < g->n_node; i++) most += g->node[i]->n_output;
  scope->names = (OnnxName *)xcalloc(most, sizeof *scope->names);
  for (size_t i = 0; i < g->n_input; i++) {
    snprintf(what, sizeof what, "graph input %zu", i);
    if (onnx_scope_add(scope, what, g->input[i]->name, ONNX_AN_INPUT, 0, err) != 0) return -1;
  }
  for (size_t i = 0; i < g->n_initializer; i++) {
    snprintf(what, sizeof what, "initializer %zu", i);
    if (onnx_scope_add(scope, what, g->initializer[i]->name, ONNX_AN_INITIALIZER, 0, err) != 0) return -1;
  }
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++) {
      if (g->node[i]->output[k][0] == '\0') continue; /* an output that nobody wants */
      const size_t used = (size_t)snprintf(what, sizeof what, "output %zu of ", k);
      onnx_node_text(what + used, sizeof what - used, g->node[i], i);
      if (onnx_scope_add(scope, what, g->node[i]->output[k], ONNX_AN_OUTPUT, i + 1, err) != 0) return -1;
    }
  qsort(scope->names, scope->count, sizeof *scope->names, onnx_name_compare);
  for (size_t i = 1; i < scope->count; i++) { /* an input may have an initializer: its default */
    const OnnxName *a = &scope->names[i - 1], *b = &scope->names[i];
    static const char *const kinds[] = {"a graph input", "an initializer", "the output of a node"};
    if (strcmp(a->name, b->name) != 0 || (a->kind == ONNX_AN_INPUT && b->kind == ONNX_AN_INITIALIZER)) continue;
    return error_set(err, "%s: the name '%.100s' is defined twice: as %s and as %s", scope->path, a->name,
                     kinds[a->kind], kinds[b->kind]);
  }
  return 0;
}

/* Whether node `from` needs, directly or through others, what node `to` computes. */
static inline int onnx_depends(const OnnxScope *scope, size_t from, size_t to) {
  const Onnx__GraphProto *g = scope->graph;
  char *seen = (char *)xcalloc(g->n_node, 1);
  size_t *stack = (size_t *)xcalloc(g->n_node, sizeof *stack), depth = 0;
  seen[from] = 1;
  stack[depth++] = from;
  while (depth > 0 && !seen[to]) {
    const Onnx__NodeProto *node = g->node[stack[--depth]];
    for (size_t k = 0; k < node->n_input; k++) {
      const OnnxName *name = onnx_scope_find(scope, node->input[k]);
      if (name == NULL || name->ready == 0 || seen[name->ready - 1]) continue;
      seen[name->ready - 1] = 1;
      stack[depth++] = name->ready - 1;
    }
  }
  const int found = seen[to];
  free(seen);
  free(stack);
  return found;
}

/* A name that is read in this scope, by `reader`. */
static inline int onnx_check_read(const OnnxScope *scope, const char *reader, const char *name, Error *err) {
  for (const OnnxScope *s = scope; s != NULL; s = s->outer) {
    const OnnxName *found = onnx_scope_find(s, name);
    if (found == NULL) continue;
    if (found->ready <= s->node) return 0;
    char other[256];
    const size_t maker = found->ready - 1;
    onnx_node_text(other, sizeof other, s->graph->node[maker], maker);
    if (onnx_depends(s, maker, s->node))
      return error_set(err, "%s: %s and %s need each other's results: the graph has a cycle through '%.100s'", s->path,
                       reader, other, name);
    return error_set(err,
                     "%s: %s reads '%.100s' before %s computes it; the nodes must stand in an order in which each "
                     "comes after what it reads",
                     s->path, reader, name, other);
  }
  return error_set(err, "%s: %s reads '%.100s', which no graph input, initializer or node defines", scope->path, reader,
                   name);
}

/* ---- types ---- */

/* The declared type of a graph input or output, or of a value between. `strict`: a tensor of a known type. */
static inline int onnx_check_value(const char *path, const char *what, const Onnx__ValueInfoProto *value, int strict,
                                   Error *err) {
  char name[160];
  if (onnx_check_name(path, what, value->name, err) != 0) return -1;
  snprintf(name, sizeof name, "%s '%.100s'", what, value->name);
  const Onnx__TypeProto *type = value->type;
  const int is_tensor = type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  if (!is_tensor) return strict ? error_set(err, "%s: %s is not declared as a tensor", path, name) : 0;
  const Onnx__TypeProto__Tensor *tensor = type->tensor_type;
  if (onnx_type(tensor->elem_type) == NULL && (strict || tensor->elem_type != 0))
    return error_set(err, "%s: %s has the unknown element type %d; 1 (float32) to 20 are known", path, name,
                     tensor->elem_type);
  if (tensor->shape == NULL) return 0;
  if (tensor->shape->n_dim > ONNX_MAX_RANK)
    return error_set(err, "%s: %s has %zu dimensions; up to %d are read", path, name, tensor->shape->n_dim,
                     ONNX_MAX_RANK);
  int64_t dim[ONNX_MAX_RANK];
  for (size_t i = 0; i < tensor->shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = tensor->shape->dim[i];
    dim[i] = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ? d->dim_value : 1;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && !onnx_is_empty(d->dim_param) &&
        onnx_check_name(path, "a dimension", d->dim_param, err) != 0)
      return -1;
    if (dim[i] < 0)
      return error_set(err, "%s: %s has the size %lld in dimension %zu; a size >= 0, or a name, was expected", path,
                       name, (long long)dim[i], i);
  }
  const int64_t count = onnx_element_count(tensor->shape->n_dim, dim);
  if (count < 0 || count > INT64_MAX / 16)
    return error_set(err, "%s: %s has sizes whose product is not a size in bytes below 2^63", path, name);
  return 0;
}

static inline int onnx_check_values(const OnnxScope *scope, const char *what, size_t count,
                                    Onnx__ValueInfoProto *const *values, int strict, Error *err) {
  for (size_t i = 0; i < count; i++)
    if (onnx_check_value(scope->path, what, values[i], strict, err) != 0) return -1;
  return 0;
}

/* ---- attributes ---- */

static inline int onnx_check_graph(const OnnxScope *outer, const Onnx__GraphProto *graph, int depth, Error *err);

/* How many values the fields of an attribute hold that are not of `type`: 0 is right. Single numbers of the wrong field
 * count only when they are not the default. */
static inline size_t onnx_attribute_strangers(const Onnx__AttributeProto *a, int type) {
  const size_t held[][2] = {
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, a->has_f && a->f != 0},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, a->has_i && a->i != 0},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, a->has_s && a->s.len > 0},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, a->t != NULL},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, a->g != NULL},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, a->n_floats},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, a->n_ints},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS, a->n_strings},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS, a->n_tensors},
      {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS, a->n_graphs},
  };
  size_t strangers = 0;
  for (size_t i = 0; i < sizeof held / sizeof *held; i++)
    if (held[i][0] != (size_t)type) strangers += held[i][1];
  return strangers;
}

static inline int onnx_check_attribute(const OnnxScope *scope, const char *node, const Onnx__AttributeProto *a,
                                       int depth, Error *err) {
  char where[400];
  const int type = a->has_type ? (int)a->type : 0;
  snprintf(where, sizeof where, "an attribute of %s", node);
  if (onnx_check_name(scope->path, where, a->name, err) != 0) return -1;
  snprintf(where, sizeof where, "attribute '%.60s' of %s", a->name, node);
  if (!onnx_is_empty(a->ref_attr_name))
    return error_set(err, "%s: %s refers to an attribute of a function, outside of one", scope->path, where);
  if (type < ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT || type > ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS)
    return error_set(err, "%s: %s has the type %d; 1 (float) to 10 (graphs) are read", scope->path, where, type);
  if (onnx_attribute_strangers(a, type) > 0)
    return error_set(err, "%s: %s holds a value of another type than the declared %d", scope->path, where, type);
  if ((type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR && a->t == NULL) ||
      (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH && a->g == NULL))
    return error_set(err, "%s: %s is empty; a %s was expected", scope->path, where,
                     a->g == NULL && type == 5 ? "graph" : "tensor");
  if (a->t != NULL && onnx_tensor_check(scope->path, where, a->t, err) != 0) return -1;
  for (size_t i = 0; i < a->n_tensors; i++)
    if (onnx_tensor_check(scope->path, where, a->tensors[i], err) != 0) return -1;
  if (a->g != NULL && onnx_check_graph(scope, a->g, depth + 1, err) != 0) return -1;
  for (size_t i = 0; i < a->n_graphs; i++)
    if (onnx_check_graph(scope, a->graphs[i], depth + 1, err) != 0) return -1;
  return 0;
}

static inline int onnx_compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline int onnx_check_attributes(const OnnxScope *scope, const char *node, const Onnx__NodeProto *n, int depth,
                                        Error *err) {
  for (size_t i = 0; i < n->n_attribute; i++)
    if (onnx_check_attribute(scope, node, n->attribute[i], depth, err) != 0) return -1;
  const char **names = (const char **)xcalloc(n->n_attribute, sizeof *names);
  const char *twice = NULL;
  for (size_t i = 0; i < n->n_attribute; i++) names[i] = n->attribute[i]->name;
  qsort(names, n->n_attribute, sizeof *names, onnx_compare_texts);
  for (size_t i = 1; i < n->n_attribute; i++)
    if (strcmp(names[i - 1], names[i]) == 0) twice = names[i];
  free(names);
  return twice == NULL ? 0 : error_set(err, "%s: %s has the attribute '%.60s' twice", scope->path, node, twice);
}

/* ---- nodes, graphs, the model ---- */

/* The standard operators have the domain "", also called "ai.onnx". */
static inline const char *onnx_domain(const char *domain) {
  return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* The version of a domain's operators that the model declares, 0 where it declares none. */
static inline int64_t onnx_opset(const Onnx__ModelProto *model, const char *domain) {
  for (size_t i = 0; i < model->n_opset_import; i++)
    if (strcmp(onnx_domain(model->opset_import[i]->domain), onnx_domain(domain)) == 0)
      return model->opset_import[i]->version;
  return 0;
}

static inline int onnx_check_node(const OnnxScope *scope, size_t index, int depth, Error *err) {
  const Onnx__NodeProto *n = scope->graph->node[index];
  char node[256], what[300];
  if (onnx_is_empty(n->op_type))
    return error_set(err, "%s: %s names no operator", scope->path, onnx_node_text(node, sizeof node, n, index));
  if (onnx_check_name(scope->path, "a node's operator", n->op_type, err) != 0) return -1;
  if (!onnx_is_empty(n->name) && onnx_check_name(scope->path, "a node", n->name, err) != 0) return -1;
  onnx_node_text(node, sizeof node, n, index);
  snprintf(what, sizeof what, "the domain of %s", node);
  if (!onnx_is_empty(n->domain) && onnx_check_name(scope->path, what, n->domain, err) != 0) return -1;
  if (onnx_opset(scope->model, n->domain) == 0)
    return error_set(err, "%s: %s is of the domain '%.100s', for which the file declares no version of operators",
                     scope->path, node, onnx_domain(n->domain));
  if (n->n_output == 0) return error_set(err, "%s: %s has no output", scope->path, node);
  for (size_t k = 0; k < n->n_input; k++)
    if (n->input[k][0] != '\0' && onnx_check_read(scope, node, n->input[k], err) != 0) return -1;
  return onnx_check_attributes(scope, node, n, depth, err);
}

static inline int onnx_check_contents(OnnxScope *scope, int depth, Error *err) {
  const Onnx__GraphProto *g = scope->graph;
  char where[160];
  if (g->n_sparse_initializer > 0)
    return error_set(err, "%s: the graph has sparse initializers, which are not read; export them dense", scope->path);
  if (onnx_scope_fill(scope, err) != 0) return -1;
  if (onnx_check_values(scope, "graph input", g->n_input, g->input, depth == 0, err) != 0 ||
      onnx_check_values(scope, "graph output", g->n_output, g->output, 0, err) != 0 ||
      onnx_check_values(scope, "value", g->n_value_info, g->value_info, 0, err) != 0)
    return -1;
  for (size_t i = 0; i < g->n_initializer; i++) {
    snprintf(where, sizeof where, "initializer '%.100s'", g->initializer[i]->name);
    if (onnx_tensor_check(scope->path, where, g->initializer[i], err) != 0) return -1;
  }
  for (scope->node = 0; scope->node < g->n_node; scope->node++)
    if (onnx_check_node(scope, scope->node, depth, err) != 0) return -1;
  if (g->n_output == 0) return error_set(err, "%s: the graph has no output", scope->path);
  for (size_t i = 0; i < g->n_output; i++) /* scope->node is behind the last now: all is ready */
    if (onnx_check_read(scope, "the list of graph outputs", g->output[i]->name, err) != 0) return -1;
  return 0;
}

static inline int onnx_check_graph(const OnnxScope *outer, const Onnx__GraphProto *graph, int depth, Error *err) {
  if (depth > ONNX_MAX_BODIES)
    return error_set(err, "%s: bodies of nodes are nested deeper than %d; it is damaged or hostile", outer->path,
                     ONNX_MAX_BODIES);
  OnnxScope scope = {outer, outer->path, graph, outer->model, 0, 0, NULL};
  const int status = onnx_check_contents(&scope, depth, err);
  free(scope.names);
  return status;
}

static inline int onnx_check_opsets(const Onnx__ModelProto *model, const char *path, Error *err) {
  if (model->n_opset_import == 0) return error_set(err, "%s declares no version of operators (opset_import)", path);
  if (model->n_opset_import > 64)
    return error_set(err, "%s declares %zu sets of operators; up to 64 are read", path, model->n_opset_import);
  for (size_t i = 0; i < model->n_opset_import; i++) {
    const char *domain = onnx_domain(model->opset_import[i]->domain);
    const int64_t version = model->opset_import[i]->version;
    if (version < 1 || version > INT32_MAX)
      return error_set(err, "%s declares version %lld of the operators of domain '%.100s'; 1 or more was expected",
                       path, (long long)version, domain);
    for (size_t k = 0; k < i; k++)
      if (strcmp(onnx_domain(model->opset_import[k]->domain), domain) == 0)
        return error_set(err, "%s declares two versions of the operators of domain '%.100s'", path, domain);
  }
  return 0;
}

/* The whole of a model. */
static inline int onnx_check_model(const Onnx__ModelProto *model, const char *path, Error *err) {
  if (model->ir_version < ONNX_OLDEST_IR || model->ir_version > ONNX_NEWEST_IR)
    return error_set(err, "%s has version %lld of the format (ir_version); %d to %d are read", path,
                     (long long)model->ir_version, ONNX_OLDEST_IR, ONNX_NEWEST_IR);
  if (onnx_check_opsets(model, path, err) != 0) return -1;
  if (model->n_functions > 0)
    return error_set(err, "%s defines functions of its own, which are not read; export it with them inlined", path);
  const char *const producer[] = {model->producer_name, model->producer_version};
  for (int i = 0; i < 2; i++)
    if (!onnx_is_empty(producer[i]) && onnx_check_name(path, "its producer", producer[i], err) != 0) return -1;
  if (model->graph == NULL) return error_set(err, "%s has no graph", path);
  OnnxScope scope = {NULL, path, model->graph, model, 0, 0, NULL};
  const int status = onnx_check_contents(&scope, 0, err);
  free(scope.names);
  return status;
}

#endif /* COMMON_ONNX_CHECK_H */

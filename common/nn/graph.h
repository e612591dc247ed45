/* graph.h - a network as a list of nodes, in an order in which each node comes after what it reads.
 *
 * A builder function of an operation adds one node and returns its number:
 *
 *     Graph *g = graph_create();
 *     int x = graph_input(g, "x", shape3(1, 28, 28));
 *     x = relu(g, conv2d(g, x, 6, 5, 1, 2));
 *     x = linear(g, x, 10);
 *     graph_loss(g, &cross_entropy_loss, x, 1);
 *
 * A node may be read by several others; its gradient is then the sum of theirs. The first mistake is kept in
 * graph->error, builders that get GRAPH_ERROR for an input return it, and model_open() reports the mistake: a builder
 * need not be checked at every call. One builder per statement: C leaves open which argument of add(g, conv2d(...),
 * conv2d(...)) is computed first, and with it the order and the names of the nodes.
 *
 * Names are PyTorch's. A node is called after its operation, counted within its scope ("layer1.0.conv2"), or as
 * graph_name() says.
 */
#ifndef COMMON_NN_GRAPH_H
#define COMMON_NN_GRAPH_H

#include <limits.h>

#include "common/nn/op.h"

enum { GRAPH_ERROR = -1, GRAPH_MAX_LOSSES = 4, GRAPH_MAX_OUTPUTS = 16, GRAPH_MAX_SCOPES = 8 };

typedef struct GraphLoss {
  const Loss *loss;
  int node;
  float weight; /* of this loss in the sum that is minimised */
} GraphLoss;

typedef struct Graph {
  Node *nodes;
  int count, capacity;
  GraphLoss losses[GRAPH_MAX_LOSSES];
  int loss_count;
  int outputs[GRAPH_MAX_OUTPUTS]; /* kept until the next forward, besides those that have a loss */
  int output_count;
  const Init *weight_init; /* of weights that come next; NULL: the operation's own choice */
  char scope[NODE_NAME], next_name[2 * NODE_NAME];
  size_t scope_length[GRAPH_MAX_SCOPES]; /* before each graph_enter() */
  int scopes;
  void (*fuse)(struct Graph *g); /* for programs: what else can be computed together, unless the user chooses how it is
                                    computed (fuse.h); NULL: nothing */
  const struct Lowering *lowerings; /* for programs: the operations that can be computed with 16 bits (lower.h) */
  int lowering_count;
  DType type; /* after graph_lower(): of what was lowered; else float32 */
  int failed;
  Error error;
} Graph;

static inline Graph *graph_create(void) { return (Graph *)xcalloc(1, sizeof(Graph)); }

static inline void graph_destroy(Graph *g) {
  if (g == NULL) return;
  free(g->nodes);
  free(g);
}

/* A copy, owned by the caller; what operations keep stays with the original. */
static inline Graph *graph_copy(const Graph *g) {
  Graph *copy = graph_create();
  *copy = *g;
  copy->nodes = (Node *)xmalloc((size_t)(g->capacity ? g->capacity : 1) * sizeof *copy->nodes);
  if (g->count) memcpy(copy->nodes, g->nodes, (size_t)g->count * sizeof *copy->nodes);
  for (int i = 0; i < copy->count; i++) copy->nodes[i].kept = NULL;
  return copy;
}

/* Keeps the first mistake; returns GRAPH_ERROR. */
__attribute__((format(printf, 2, 3))) static inline int graph_fail(Graph *g, const char *format, ...) {
  if (g->failed) return GRAPH_ERROR;
  va_list args;
  va_start(args, format);
  vsnprintf(g->error.message, sizeof g->error.message, format, args);
  va_end(args);
  g->failed = 1;
  return GRAPH_ERROR;
}

static inline Shape graph_shape(const Graph *g, int node) {
  static const Shape none = {0, {0, 0, 0, 0}};
  return node >= 0 && node < g->count ? g->nodes[node].shape : none;
}

/* ----------------------------------------------------------------------------------------------------------- names */

/* Names of the nodes that come next begin with "name.", until graph_leave(). Scopes nest; "layer1.0" is one. */
static inline void graph_enter(Graph *g, const char *name) {
  const size_t length = strlen(g->scope);
  if (g->scopes < GRAPH_MAX_SCOPES) g->scope_length[g->scopes] = length;
  if (++g->scopes > GRAPH_MAX_SCOPES)
    graph_fail(g, "the scope %s%s. is within %d others; at most %d scopes can nest", g->scope, name, GRAPH_MAX_SCOPES,
               GRAPH_MAX_SCOPES);
  else if (length + strlen(name) + 1 < sizeof g->scope)
    snprintf(g->scope + length, sizeof g->scope - length, "%s.", name);
  else
    graph_fail(g, "the scope %s%s. is longer than %d characters", g->scope, name, NODE_NAME - 1);
}

static inline void graph_leave(Graph *g) {
  if (g->scopes == 0) {
    graph_fail(g, "graph_leave() without graph_enter()");
    return;
  }
  if (--g->scopes < GRAPH_MAX_SCOPES) g->scope[g->scope_length[g->scopes]] = '\0';
}

/* The node that comes next is called so. */
static inline Graph *graph_name(Graph *g, const char *name) {
  snprintf(g->next_name, sizeof g->next_name, "%s", name);
  return g;
}

static inline int graph_find(const Graph *g, const char *name) {
  for (int i = 0; i < g->count; i++)
    if (strcmp(g->nodes[i].name, name) == 0) return i;
  return GRAPH_ERROR;
}

/* `base` counted from 1 within the scope: "conv1", "conv2". */
static inline int graph_set_name(Graph *g, Node *node, const char *base) {
  char full[3 * NODE_NAME];
  if (g->next_name[0]) {
    snprintf(full, sizeof full, "%s%s", g->scope, g->next_name);
    g->next_name[0] = '\0';
    if (graph_find(g, full) >= 0) return graph_fail(g, "two nodes are called %s; give one another name", full);
  } else {
    int number = 0;
    do snprintf(full, sizeof full, "%s%.*s%d", g->scope, NODE_NAME, base, ++number);
    while (graph_find(g, full) >= 0);
  }
  if (strlen(full) >= sizeof node->name)
    return graph_fail(g, "the name %s is longer than %d characters", full, NODE_NAME - 1);
  memcpy(node->name, full, strlen(full) + 1);
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- nodes */

/* There must be such a node, where `what` ("add1") reads it. */
static inline int graph_expect_node(Graph *g, const char *what, int x) {
  if (g->failed) return GRAPH_ERROR;
  if (x >= 0 && x < g->count) return 0;
  return graph_fail(g, "%s reads node %d; only the %d nodes before it can be read", what, x, g->count);
}

/* Launchers take the sizes of one sample as int. least: 1, or 0 of a node without elements, as ONNX allows. */
static inline int graph_expect_sizes(Graph *g, const char *name, Shape shape, int least) {
  int good = shape.rank >= 0 && shape.rank <= SHAPE_MAX_RANK;
  double count = 1;
  for (int i = 0; good && i < shape.rank; i++) {
    good = shape.dim[i] >= least;
    count *= shape.dim[i];
  }
  if (!good)
    return graph_fail(g, "%s has the shape %s; up to %d dimensions of at least %d are expected", name,
                      shape_text(shape).text, SHAPE_MAX_RANK, least);
  if (count > INT_MAX)
    return graph_fail(g, "%s has the shape %s; at most %d elements of one sample are possible", name,
                      shape_text(shape).text, INT_MAX);
  return 0;
}

static inline int graph_expect_shape(Graph *g, const char *name, Shape shape) {
  return graph_expect_sizes(g, name, shape, 1);
}

static inline int graph_add(Graph *g, const Node *node) {
  if (g->count == g->capacity) {
    g->capacity = g->capacity ? 2 * g->capacity : 32;
    g->nodes = (Node *)realloc(g->nodes, g->capacity * sizeof *g->nodes);
    if (g->nodes == NULL) die("out of memory: %d nodes", g->capacity);
  }
  g->nodes[g->count] = *node;
  return g->count++;
}

/* An input: (batch, shape), filled before each forward. */
static inline int graph_input(Graph *g, const char *name, Shape shape) {
  Node node;
  memset(&node, 0, sizeof node);
  node.shape = shape;
  if (g->failed || graph_set_name(graph_name(g, name), &node, name) != 0) return GRAPH_ERROR;
  if (graph_expect_shape(g, node.name, shape) != 0) return GRAPH_ERROR;
  return graph_add(g, &node);
}

/* The node has another type, in plain order, and `whole` samples however large the batch is (0: as many as the batch).
 * Returns it. */
static inline int graph_typed(Graph *g, int node, DType type, int whole) {
  if (node < 0) return node;
  g->nodes[node].type = type;
  g->nodes[node].layout = dtype_is_half(type) ? LAYOUT_PLAIN : LAYOUT_OF_TYPE;
  g->nodes[node].whole = whole;
  return node;
}

static inline void op_constant(const Context *context, const Node *node, const OpArrays *arrays) {
  (void)context, (void)node, (void)arrays;
}

static const Op constant_op = {"Constant", 0, OP_CONSTANT, NULL, NULL, op_constant, op_constant};

/* An array that is not a weight: (shape) of `type`, the same for every batch and sample. Its bytes are those of
 * parameter 0, a buffer, zero until somebody fills it (model_param()). */
static inline int graph_constant(Graph *g, const char *name, DType type, Shape shape) {
  Node node;
  memset(&node, 0, sizeof node);
  node.op = &constant_op;
  node.shape = shape;
  node.type = type;
  node.layout = dtype_is_half(type) ? LAYOUT_PLAIN : LAYOUT_OF_TYPE;
  node.whole = 1;
  if (g->failed || graph_set_name(graph_name(g, name), &node, name) != 0) return GRAPH_ERROR;
  if (graph_expect_sizes(g, node.name, shape, 0) != 0) return GRAPH_ERROR;
  Param *p = &node.param[node.params++];
  snprintf(p->name, sizeof p->name, "%s.value", node.name);
  p->rank = 1;
  p->bytes = node_bytes(&node);
  p->dim[0] = p->count = (p->bytes + 15) / 16 * 4;
  p->fan_in = p->fan_out = 1;
  p->init = &init_zero;
  return graph_add(g, &node);
}

/* A node of `op` that reads `count` others; `attributes` is copied. Its number, or GRAPH_ERROR. */
static inline int graph_node(Graph *g, const Op *op, const char *base, const int *inputs, int count, Shape shape,
                             const void *attributes, size_t attribute_bytes) {
  Node node;
  if (g->failed) return GRAPH_ERROR;
  memset(&node, 0, sizeof node);
  node.op = op;
  node.shape = shape;
  node.inputs = count;
  if (graph_set_name(g, &node, base) != 0) return GRAPH_ERROR;
  if (count < 1 || count > NODE_MAX_INPUTS)
    return graph_fail(g, "%s has %d inputs; 1 to %d are possible", node.name, count, NODE_MAX_INPUTS);
  if (attribute_bytes > sizeof node.attributes)
    return graph_fail(g, "%s has %zu bytes of attributes; raise NODE_ATTRIBUTE_BYTES", node.name, attribute_bytes);
  for (int i = 0; i < count; i++) {
    if (graph_expect_node(g, node.name, inputs[i]) != 0) return GRAPH_ERROR;
    node.input[i] = inputs[i];
  }
  if (graph_expect_shape(g, node.name, shape) != 0) return GRAPH_ERROR;
  if (attribute_bytes) memcpy(node.attributes.bytes, attributes, attribute_bytes);
  for (int i = 0; i < g->count; i++) node.order += g->nodes[i].op != NULL;
  return graph_add(g, &node);
}

/* Says what one element of the node's output depends on; returns the node. */
static inline int graph_window(Graph *g, int node, NodeWindow window) {
  if (node >= 0) g->nodes[node].window = window;
  return node;
}

/* Both must have the same shape, where `what` ("add") reads them. */
static inline int graph_expect_same_shape(Graph *g, const char *what, int a, int b) {
  if (graph_expect_node(g, what, a) != 0 || graph_expect_node(g, what, b) != 0) return GRAPH_ERROR;
  if (shape_equal(graph_shape(g, a), graph_shape(g, b))) return 0;
  return graph_fail(g, "%s: %s has the shape %s, %s has %s; the same shape is expected", what, g->nodes[a].name,
                    shape_text(graph_shape(g, a)).text, g->nodes[b].name, shape_text(graph_shape(g, b)).text);
}

/* The node must give pictures: (C,H,W). */
static inline int graph_expect_images(Graph *g, const char *what, int x) {
  if (graph_expect_node(g, what, x) != 0) return GRAPH_ERROR;
  if (graph_shape(g, x).rank == 3) return 0;
  return graph_fail(g, "%s reads %s of shape %s; (C,H,W) is expected", what, g->nodes[x].name,
                    shape_text(graph_shape(g, x)).text);
}

typedef struct ParamSpec {
  const char *name; /* "weight" */
  int rank;
  size_t dim[SHAPE_MAX_RANK];
  int fan_in, fan_out;
  const Init *init;
  int trained, decayed;
} ParamSpec;

static inline void graph_param(Graph *g, int node, ParamSpec spec) {
  if (g->failed || node < 0) return;
  Node *n = &g->nodes[node];
  double count = 1;
  for (int i = 0; i < spec.rank; i++) count *= (double)spec.dim[i];
  if (count > 0x1p40) { /* 4 TiB; their sum does not wrap */
    graph_fail(g, "%s.%s has %.0f elements; at most %.0f are possible", n->name, spec.name, count, 0x1p40);
    return;
  }
  if (n->params == NODE_MAX_PARAMS) {
    graph_fail(g, "%s has more than %d parameters; raise NODE_MAX_PARAMS", n->name, NODE_MAX_PARAMS);
    return;
  }
  Param *p = &n->param[n->params++];
  snprintf(p->name, sizeof p->name, "%s.%s", n->name, spec.name);
  p->rank = spec.rank;
  p->count = 1;
  for (int i = 0; i < spec.rank; i++) p->count *= p->dim[i] = spec.dim[i];
  p->fan_in = spec.fan_in;
  p->fan_out = spec.fan_out;
  p->init = spec.init;
  p->trained = spec.trained;
  p->decayed = spec.decayed;
  p->stream = n->order;
}

/* PyTorch's batch norm counts the batches that it was trained on, and expects the number in a state_dict. It is the
 * model's step, so nothing is computed; a checkpoint keeps it. */
static inline void graph_step_counter(Graph *g, int node, const char *name) {
  const ParamSpec spec = {name, 0, {0, 0, 0, 0}, 1, 1, &init_zero, 0, 0};
  graph_param(g, node, spec);
  if (g->failed || node < 0) return;
  Param *p = &g->nodes[node].param[g->nodes[node].params - 1];
  p->counts = 1;
  p->count = 0;
}

/* The parameters of this node are not trained from now on: backward passes through it, and they stay. */
static inline void graph_freeze(Graph *g, int node) {
  if (graph_expect_node(g, "graph_freeze", node) != 0) return;
  for (int i = 0; i < g->nodes[node].params; i++) g->nodes[node].param[i].trained = 0;
}

/* ---------------------------------------------------------------------------------------------- losses and outputs */

/* The loss of a node's output joins the sum that is minimised. Its number. */
static inline int graph_loss(Graph *g, const Loss *loss, int node, float weight) {
  if (graph_expect_node(g, loss->name, node) != 0) return GRAPH_ERROR;
  if (g->loss_count == GRAPH_MAX_LOSSES)
    return graph_fail(g, "the network has more than %d losses; raise GRAPH_MAX_LOSSES", GRAPH_MAX_LOSSES);
  for (int i = 0; i < g->loss_count; i++)
    if (g->losses[i].node == node) return graph_fail(g, "%s has two losses; one is possible", g->nodes[node].name);
  g->losses[g->loss_count].loss = loss;
  g->losses[g->loss_count].node = node;
  g->losses[g->loss_count].weight = weight;
  return g->loss_count++;
}

/* The output of this node can be read after forward(). */
static inline void graph_output(Graph *g, int node) {
  if (graph_expect_node(g, "an output", node) != 0) return;
  if (g->output_count == GRAPH_MAX_OUTPUTS)
    graph_fail(g, "the network has more than %d outputs; raise GRAPH_MAX_OUTPUTS", GRAPH_MAX_OUTPUTS);
  else
    g->outputs[g->output_count++] = node;
}

/* Whether it can be read after forward(). */
static inline int graph_is_output(const Graph *g, int node) {
  for (int i = 0; i < g->loss_count; i++)
    if (g->losses[i].node == node) return 1;
  for (int i = 0; i < g->output_count; i++)
    if (g->outputs[i] == node) return 1;
  return 0;
}

#endif /* COMMON_NN_GRAPH_H */

/* engine_constants.cuh - pass 1: what depends on no input of the network is computed once, by the operations and on the
 * device that would have computed it in every inference. So the outputs stay the same, bit by bit.
 *
 *     engine_fold_constants(g, &weights, &context, &err);
 *
 * A node all of whose inputs are constants becomes a constant node, and its value a weight "NAME.folded".
 */
#ifndef PHASE5_PRODUCTION_ENGINE_CONSTANTS_CUH
#define PHASE5_PRODUCTION_ENGINE_CONSTANTS_CUH

#include "phase5_production/08_engine/engine_weights.cuh"

/* Whether the node's value is the same for every input of the network, if those of its inputs are. */
static inline int engine_is_pure(const Node *node) {
  return node->op != NULL && node->inputs > 0 && node->whole > 0 &&
         !(node->op->flags & (OP_CONSTANT | OP_DRAWS | OP_KEEPS | OP_PASSED | OP_ABSORBED | OP_STATISTICS));
}

/* Of each node: 1 where it can be folded, 2 where it is a constant already. */
static inline void engine_mark_constants(const Graph *g, unsigned char *mark) {
  for (int i = 0; i < g->count; i++) {
    const Node *node = &g->nodes[i];
    mark[i] = 0;
    if (node->op && (node->op->flags & OP_CONSTANT)) mark[i] = 2;
    if (!engine_is_pure(node)) continue;
    int all = 1;
    for (int k = 0; k < node->inputs; k++) all &= mark[node->input[k]] != 0;
    mark[i] = (unsigned char)all;
  }
}

typedef struct EngineEvaluation {
  const Graph *g;
  const EngineWeights *weights;
  const Context *context;
  void **value; /* of each node, on the device; NULL: not computed */
} EngineEvaluation;

static inline size_t engine_value_bytes(const Node *node) { return node_bytes(node) * (size_t)node_samples(node, 1); }

/* A parameter on the device; NULL: the weights have none of this name. */
static inline float *engine_upload_weight(const EngineEvaluation *e, const Param *p) {
  const EngineWeight *weight = engine_weight(e->weights, p->name);
  const size_t bytes = p->bytes > 0 ? p->bytes : p->count * sizeof(float);
  if (weight == NULL || weight->count < (bytes + sizeof(float) - 1) / sizeof(float)) return NULL;
  float *to = (float *)device_alloc(e->context->device, bytes);
  device_upload(e->context->device, to, weight->values, bytes);
  return to;
}

/* Node i and, before it, what it reads. -1: a weight is missing. */
static inline int engine_evaluate(EngineEvaluation *e, int i, Error *err) {
  const Node *node = &e->g->nodes[i];
  const Device device = e->context->device;
  OpArrays a;
  int status = 0;
  if (e->value[i] != NULL) return 0;
  memset(&a, 0, sizeof a);
  a.batch = node_samples(node, 1);
  for (int k = 0; k < node->inputs && status == 0; k++) {
    status = engine_evaluate(e, node->input[k], err);
    a.x[k] = (const float *)e->value[node->input[k]];
  }
  if (status != 0) return -1;
  for (int k = 0; k < node->params; k++)
    if (node->param[k].count > 0 && (a.param[k] = engine_upload_weight(e, &node->param[k])) == NULL)
      status =
          error_set(err, "the network has no parameter %s of %zu numbers", node->param[k].name, node->param[k].count);
  if (status == 0 && (node->op->flags & OP_CONSTANT)) {
    e->value[i] = a.param[0];
    a.param[0] = NULL;
  } else if (status == 0) {
    const size_t bytes = engine_value_bytes(node);
    const size_t work = node->op->workspace_floats ? node->op->workspace_floats(e->context, node, a.batch) : 0;
    a.y = (float *)(e->value[i] = device_alloc(device, bytes));
    a.saved = device_alloc(device, node->op->saved_bytes ? node->op->saved_bytes(node, a.batch) : 0);
    a.workspace = (float *)device_alloc(device, work * sizeof(float));
    if (node->op->flags & OP_VIEW)
      device_copy(device, a.y, a.x[0], bytes);
    else
      node->op->forward(e->context, node, &a);
    device_synchronize(device);
    device_free(device, a.saved);
    device_free(device, a.workspace);
  }
  for (int k = 0; k < node->params; k++)
    if (a.param[k]) device_free(device, a.param[k]);
  return status;
}

/* The node becomes a constant of this name. */
static inline void engine_make_constant(Node *node, const char *name) {
  const size_t bytes = engine_value_bytes(node);
  Param p;
  memset(&p, 0, sizeof p);
  snprintf(p.name, sizeof p.name, "%.*s", (int)sizeof p.name - 1, name);
  p.rank = 1;
  p.bytes = bytes;
  p.dim[0] = p.count = (bytes + 15) / 16 * 4;
  p.fan_in = p.fan_out = 1;
  p.init = &init_zero;
  node->op = &constant_op;
  node->plain = NULL;
  node->inputs = 0;
  node->params = 1;
  node->param[0] = p;
  node->flops = 0;
}

static inline int engine_fold_constant(EngineEvaluation *e, Graph *g, EngineWeights *weights, int i, Error *err) {
  char name[ENGINE_WEIGHT_NAME];
  const size_t bytes = engine_value_bytes(&g->nodes[i]), count = (bytes + 15) / 16 * 4;
  if (engine_evaluate(e, i, err) != 0) return -1;
  float *value = (float *)xcalloc(count + 1, sizeof *value);
  device_download(e->context->device, value, e->value[i], bytes);
  snprintf(name, sizeof name, "%s.folded", g->nodes[i].name);
  engine_weight_put(weights, name, value, count, value);
  engine_make_constant(&g->nodes[i], name);
  return 0;
}

/* Returns how many nodes have become constants; -1 with a sentence. Only those that others read, or that are outputs,
 * are kept; the rest is dead, and the next pass removes it. */
static inline int engine_fold_constants(Graph *g, EngineWeights *weights, const Context *context, Error *err) {
  unsigned char *mark = (unsigned char *)xcalloc((size_t)g->count + 1, 1);
  Graph *before = graph_copy(g);
  EngineEvaluation e = {before, weights, context, (void **)xcalloc((size_t)g->count + 1, sizeof(void *))};
  int folded = 0, status = 0;
  engine_mark_constants(before, mark);
  for (int i = 0; i < before->count && status == 0; i++) {
    int needed = graph_is_output(before, i);
    for (int j = i + 1; j < before->count; j++)
      for (int k = 0; k < before->nodes[j].inputs; k++) needed |= before->nodes[j].input[k] == i && mark[j] == 0;
    if (mark[i] != 1 || !needed) continue;
    status = engine_fold_constant(&e, g, weights, i, err);
    folded++;
  }
  for (int i = 0; i < before->count; i++)
    if (e.value[i]) device_free(context->device, e.value[i]);
  free(e.value);
  free(mark);
  graph_destroy(before);
  return status == 0 ? folded : -1;
}

#endif /* PHASE5_PRODUCTION_ENGINE_CONSTANTS_CUH */

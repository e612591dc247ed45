/* engine_passes.cuh - what the engine does to a network before it runs, pass by pass. Each says what it has changed:
 *
 *     pass                       nodes  launches        MB
 *     imported                      69        60     88.21
 *     constants folded               ...
 *
 * The first two change no bit of an output. The third changes weights, and rounds once more for each of them. The
 * others choose kernels, which add up in another order.
 *
 *     constants folded     engine_constants.cuh
 *     dead nodes removed   what no output depends on, and what passes its input on: Dropout, a Flatten before Gemm
 *     batch norm folded    into the weights and the bias of the convolution before it
 *     fused                convolution + bias + ReLU + shortcut, the stem, the head: fused_rewrite.cuh of lesson 4
 *     kernels chosen       layouts, precisions, implementations: by rules, or measured (engine_choose.cuh)
 */
#ifndef PHASE5_PRODUCTION_ENGINE_PASSES_CUH
#define PHASE5_PRODUCTION_ENGINE_PASSES_CUH

#include "phase1_building_blocks/12_dropout/dropout_op.cuh"
#include "phase5_production/08_engine/engine_blocks.cuh"
#include "phase5_production/08_engine/engine_constants.cuh"

enum { ENGINE_MAX_PASSES = 16 };

/* The network behind one pass. */
typedef struct EnginePass {
  char name[32], what[160];
  int nodes, launches; /* launches: operations that compute something */
  double bytes;        /* that pass between operations, with the weights, in one inference */
} EnginePass;

typedef struct EnginePasses {
  EnginePass pass[ENGINE_MAX_PASSES];
  int count, batch;
  FILE *log; /* NULL: nothing is said */
} EnginePasses;

/* Nodes that are not inputs, constants or remains of others. */
static inline int engine_nodes(const Graph *g) {
  int nodes = 0;
  for (int i = 0; i < g->count; i++) nodes += g->nodes[i].op && !(g->nodes[i].op->flags & (OP_ABSORBED | OP_CONSTANT));
  return nodes;
}

__attribute__((format(printf, 4, 5))) static inline void engine_pass_done(EnginePasses *passes, const Graph *g,
                                                                          const char *name, const char *format, ...) {
  if (passes->count == ENGINE_MAX_PASSES) return;
  EnginePass *pass = &passes->pass[passes->count++];
  va_list args;
  va_start(args, format);
  vsnprintf(pass->what, sizeof pass->what, format, args);
  va_end(args);
  snprintf(pass->name, sizeof pass->name, "%s", name);
  pass->nodes = engine_nodes(g);
  pass->launches = fused_runs(g);
  pass->bytes = engine_graph_bytes(g, passes->batch);
  if (passes->log == NULL) return;
  if (passes->count == 1) fprintf(passes->log, "%-22s%8s%10s%10s\n", "pass", "nodes", "launches", "MB");
  fprintf(passes->log, "%-22s%8d%10d%10.2f  %s\n", pass->name, pass->nodes, pass->launches, pass->bytes * 1e-6,
          pass->what);
}

/* ----------------------------------------------------------------------------------------------- dead nodes removed */

/* Whether the node's output is that of its first input, where a model infers. */
static inline int engine_passes_on(const Node *node) { return node->op == &dropout_op || node->op == &dropout_none_op; }

/* A linear layer reads all numbers of a sample, whatever shape they have. */
static inline int engine_sees_through(const Graph *g, const Node *reader, int k) {
  const Node *view = &g->nodes[reader->input[k]];
  if (reader->op != &linear_op || k != 0 || view->op == NULL || !(view->op->flags & OP_VIEW)) return 0;
  const Node *source = &g->nodes[view->input[0]];
  return view->whole == source->whole && shape_count(view->shape) == shape_count(source->shape) &&
         view->type == source->type && !node_channels_last(source);
}

static inline int engine_behind(const Graph *g, int i) {
  while (g->nodes[i].op && engine_passes_on(&g->nodes[i])) i = g->nodes[i].input[0];
  return i;
}

/* Nodes are read past those that do nothing. */
static inline void engine_bypass(Graph *g) {
  for (int i = 0; i < g->count; i++)
    for (int k = 0; k < g->nodes[i].inputs; k++) {
      Node *node = &g->nodes[i];
      node->input[k] = engine_behind(g, node->input[k]);
      while (engine_sees_through(g, node, k)) node->input[k] = engine_behind(g, g->nodes[node->input[k]].input[0]);
    }
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = engine_behind(g, g->losses[l].node);
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = engine_behind(g, g->outputs[o]);
}

/* What leads to no output goes; inputs of the graph stay. Returns how many nodes went. */
static inline int engine_remove_dead(Graph *g) {
  unsigned char *live = (unsigned char *)xcalloc((size_t)g->count + 1, 1);
  int *place = (int *)xcalloc((size_t)g->count + 1, sizeof *place), kept = 0;
  const int before = g->count;
  engine_bypass(g);
  for (int i = g->count - 1; i >= 0; i--) {
    const Node *node = &g->nodes[i];
    live[i] |= graph_is_output(g, i) || node->op == NULL;
    for (int k = 0; k < node->inputs && live[i]; k++) live[node->input[k]] = 1;
  }
  for (int i = 0; i < before; i++) {
    if (!live[i]) continue;
    Node node = g->nodes[i];
    for (int k = 0; k < node.inputs; k++) node.input[k] = place[node.input[k]];
    place[i] = kept;
    g->nodes[kept++] = node;
  }
  g->count = kept;
  for (int l = 0; l < g->loss_count; l++) g->losses[l].node = place[g->losses[l].node];
  for (int o = 0; o < g->output_count; o++) g->outputs[o] = place[g->outputs[o]];
  free(live);
  free(place);
  return before - kept;
}

/* ------------------------------------------------------------------------------------------------ batch norm folded */

/* Whether every convolution that a batch norm would go into has its weights as parameters. */
static inline int engine_can_fold(const Graph *g) {
  for (int i = 0; i < g->count; i++)
    if (batch_norm2d_fold_into(g, i) >= 0 && g->nodes[i].op != &conv2d_op) return 0;
  return 1;
}

/* The weights of convolution `conv` with the batch norm `norm` in them. -1: one is missing. */
static inline int engine_fold_norm(EngineWeights *weights, const Node *conv, const Node *norm, Error *err) {
  char name[ENGINE_WEIGHT_NAME];
  const EngineWeight *value[4], *w = engine_weight(weights, conv->param[0].name);
  snprintf(name, sizeof name, "%s.bias", conv->name);
  const EngineWeight *old = engine_weight(weights, conv->params > 1 ? conv->param[1].name : name);
  for (int k = 0; k < 4; k++) value[k] = engine_weight(weights, norm->param[k].name);
  const int filters = conv->shape.dim[0];
  if (w == NULL || !value[0] || !value[1] || !value[2] || !value[3])
    return error_set(err, "the network has no numbers for %s and %s", conv->name, norm->name);
  float *new_w = (float *)xmalloc(w->count * sizeof *new_w), *bias = (float *)xcalloc((size_t)filters, sizeof *bias);
  if (old) memcpy(bias, old->values, (size_t)filters * sizeof *bias);
  const BatchNorm2dFold fold = {new_w,
                                bias,
                                w->values,
                                bias,
                                value[0]->values,
                                value[1]->values,
                                value[2]->values,
                                value[3]->values,
                                filters,
                                (int)(w->count / (size_t)filters)};
  batch_norm2d_fold_cpu(fold);
  engine_weight_put(weights, conv->param[0].name, new_w, w->count, new_w);
  engine_weight_put(weights, name, bias, (size_t)filters, bias);
  return 0;
}

/* Returns how many went; -1 with a sentence. */
static inline int engine_fold_norms(Graph **g, EngineWeights *weights, Error *err) {
  const Graph *before = *g;
  int folded = 0;
  if (!engine_can_fold(before)) return 0;
  for (int i = 0; i < before->count; i++) {
    const int norm = batch_norm2d_fold_into(before, i);
    if (norm < 0) continue;
    if (engine_fold_norm(weights, &before->nodes[i], &before->nodes[norm], err) != 0) return -1;
    folded++;
  }
  if (folded == 0) return 0;
  Graph *after = batch_norm2d_fold_graph(before);
  graph_destroy(*g);
  *g = after;
  return folded;
}

/* ------------------------------------------------------------------------------------------------------- the passes */

static inline int engine_graph_inputs(const Graph *g) {
  int inputs = 0;
  for (int i = 0; i < g->count; i++) inputs += g->nodes[i].op == NULL;
  return inputs;
}

/* Those that need no device: constants, dead nodes, batch norm. */
static inline int engine_simplify(Graph **g, EngineWeights *weights, const Context *context, EnginePasses *passes,
                                  Error *err) {
  engine_pass_done(passes, *g, "imported", "%d inputs, %d outputs", engine_graph_inputs(*g),
                   (*g)->output_count + (*g)->loss_count);
  const int constants = engine_fold_constants(*g, weights, context, err);
  if (constants < 0) return -1;
  engine_pass_done(passes, *g, "constants folded", "%d computed once", constants);
  const int dead = engine_remove_dead(*g);
  engine_pass_done(passes, *g, "dead nodes removed", "%d went", dead);
  const int norms = engine_fold_norms(g, weights, err);
  if (norms < 0) return -1;
  engine_pass_done(passes, *g, "batch norm folded", "%d became weights and biases", norms);
  return 0;
}

#endif /* PHASE5_PRODUCTION_ENGINE_PASSES_CUH */

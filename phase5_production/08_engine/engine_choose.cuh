/* engine_choose.cuh - passes 4 and 5: what is computed together, in which layout and precision, and by which kernels.
 *
 * A recipe is how a whole network is computed:
 *
 *     layers    operation by operation, with epilogues: fused_rewrite.cuh of lesson 4
 *     chains    as layers, but small convolutions with their pooling, and small linear layers in a row, are one kernel
 *               each: lesson 16 of phase 3
 *     blocks    on a CPU: arrays in blocks of 16 channels (engine_blocks.cuh)
 *
 * Within it each convolution of float32 is computed by one of its implementations. Which is best is measured, on the
 * device, with the largest batch; the choice is a text that a plan keeps:
 *
 *     recipe:layers,conv1:im2col,layer1.0.conv1:winograd
 */
#ifndef PHASE5_PRODUCTION_ENGINE_CHOOSE_CUH
#define PHASE5_PRODUCTION_ENGINE_CHOOSE_CUH

#include "phase3_cnn/16_one_step/one_step_op.cuh"
#include "phase5_production/08_engine/engine_extension.cuh"
#include "phase5_production/08_engine/engine_state.cuh"
#include "phase5_production/08_engine/half_infer_op.cuh"

typedef enum EngineRecipe { ENGINE_LAYERS, ENGINE_CHAINS, ENGINE_BLOCKED, ENGINE_RECIPES } EngineRecipe;

static inline const char *engine_recipe_name(EngineRecipe recipe) {
  static const char *const names[] = {"layers", "chains", "blocks"};
  return names[recipe];
}

/* ------------------------------------------------------------------------------------------------------ convolutions */

static inline int engine_conv_relu_fits(const Implementation *implementation, const Node *node, Error *err) {
  const Conv2dShape s = conv2d_op_shape(node, 1);
  if (implementation->op == &conv2d_relu_winograd_op) return conv2d_winograd_op.method->fits(s, err);
  return 0;
}

/* A convolution with its ReLU, in float32 on a GPU. */
static const Implementation engine_conv_relu_implementations[] = {
    {"implicit_gemm", &conv2d_relu_gemm_op, engine_conv_relu_fits},
    {"winograd", &conv2d_relu_winograd_op, engine_conv_relu_fits},
    {"tiled", &conv2d_relu_op, engine_conv_relu_fits}};
static const OpChoice engine_conv_relu_choice = {"conv", engine_conv_relu_implementations, 3};

static const OpChoice *const engine_choice_tables[] = {&conv2d_choice, &engine_conv_relu_choice};
enum { ENGINE_CHOICES = 2 };

/* ------------------------------------------------------------------------------------------------------------- rules */

/* max_pool(x) and then ReLU becomes ReLU and then max_pool, which are the same numbers: convolutions have an epilogue
 * for the first order. */
static inline void engine_relu_before_pool(Graph *g) {
  for (int j = 0; j < g->count; j++) {
    Node *second = &g->nodes[j];
    if (second->op != &activation_ops[ACTIVATION_RELU] || second->inputs != 1) continue;
    Node *first = &g->nodes[second->input[0]];
    if (first->op != &max_pool2d_op || graph_readers(g, second->input[0]) != 1) continue;
    const Node pool = *first, relu = *second;
    first->op = relu.op;
    first->attributes = relu.attributes;
    first->shape = g->nodes[pool.input[0]].shape;
    first->flops = relu.flops;
    first->window = relu.window;
    second->op = pool.op;
    second->attributes = pool.attributes;
    second->flops = pool.flops;
    second->window = pool.window;
  }
}

static inline unsigned engine_fusions(EnginePrecision precision) {
  return precision == ENGINE_FP32 ? FUSED_ADD_RELU | FUSED_CONV_RELU | FUSED_WINOGRAD
                                  : FUSED_FOLDED | FUSED_ENDS | FUSED_RESIDUAL;
}

static inline FusedType engine_fused_type(EnginePrecision precision) {
  static const FusedType types[] = {FUSED_FP32, FUSED_TF32, FUSED_FP16, FUSED_BF16};
  return types[precision];
}

static inline void engine_fuse(Graph *g, const EngineOptions *o, EngineRecipe recipe) {
  if (recipe == ENGINE_BLOCKED) return; /* engine_blocks() does */
  engine_relu_before_pool(g);

  static const Fusion linear[] = {FUSE_LINEAR_RELU};
  if (recipe == ENGINE_CHAINS) graph_fuse_chains(g, one_step_fusions, ONE_STEP_FUSIONS);
  graph_fuse(g, linear, 1);
  fused_together(g, engine_fused_type(o->precision), engine_fusions(o->precision));
}

static inline void engine_lower(Graph *g, const EngineOptions *o) {
  fused_kernels_with(g, engine_fused_type(o->precision), engine_fusions(o->precision), half_infer_lowerings,
                     HALF_INFER_LOWERINGS);
  half_infer_absorb(g);
}

/* ---------------------------------------------------------------------------------------------------------- choices */

/* The words of `text` that begin with a node of the graph that the choice is about: "conv1:winograd,...". Other words are
 * of other choices. */
static inline void engine_choice_words(const OpChoice *choice, const Graph *g, const char *text,
                                       char words[IMPLEMENTATION_TEXT]) {
  ImplementationWord word;
  size_t used = 0;
  words[0] = '\0';
  for (const char *at = text; implementation_next(&at, &word);) {
    char name[NODE_NAME];
    if (word.node == NULL || word.node_length >= sizeof name) continue;
    snprintf(name, sizeof name, "%.*s", (int)word.node_length, word.node);
    const int node = graph_find(g, name);
    if (node < 0 || implementation_of(choice, &g->nodes[node]) < 0) continue;
    if (used + word.node_length + word.name_length + 3 > IMPLEMENTATION_TEXT) continue;
    used += (size_t)snprintf(words + used, IMPLEMENTATION_TEXT - used, "%s%.*s:%.*s", used ? "," : "",
                             (int)word.node_length, word.node, (int)word.name_length, word.name);
  }
}

/* The recipe that the text names; -1: none. */
static inline int engine_choice_recipe(const char *text) {
  ImplementationWord word;
  for (const char *at = text; implementation_next(&at, &word);)
    for (int r = 0; r < ENGINE_RECIPES && word.node; r++)
      if (word.node_length == 6 && strncmp(word.node, "recipe", 6) == 0 &&
          strlen(engine_recipe_name((EngineRecipe)r)) == word.name_length &&
          strncmp(word.name, engine_recipe_name((EngineRecipe)r), word.name_length) == 0)
        return r;
  return -1;
}

static inline int engine_apply_choices(Graph *g, const char *text, Error *err) {
  char words[IMPLEMENTATION_TEXT];
  for (int c = 0; c < ENGINE_CHOICES; c++) {
    engine_choice_words(engine_choice_tables[c], g, text, words);
    if (words[0] && implementation_apply(engine_choice_tables[c], words, g, NULL, err) != 0) return -1;
  }
  return 0;
}

/* "recipe:layers,conv1:winograd": what the graph is computed by. */
static inline void engine_choices_text(const Graph *g, EngineRecipe recipe, char *text, size_t size) {
  char words[IMPLEMENTATION_TEXT];
  size_t used = (size_t)snprintf(text, size, "recipe:%s", engine_recipe_name(recipe));
  for (int c = 0; c < ENGINE_CHOICES; c++) {
    implementation_text(engine_choice_tables[c], g, words);
    if (words[0] && used < size) used += (size_t)snprintf(text + used, size - used, ",%s", words);
  }
}

/* --------------------------------------------------------------------------------------------------------- measured */

/* An emulated GPU has no speed. */
static inline int engine_can_measure(const EngineOptions *o) {
#ifdef SIMT_REWRITTEN
  return o->measure && o->device == DEVICE_CPU;
#else
  return o->measure;
#endif
}

/* Seconds of an inference of `batch` samples of the graph, which is taken; NAN: it cannot be opened. */
static inline double engine_time_graph(Graph *g, Context context, int batch) {
  double samples[IMPLEMENTATION_ROUNDS];
  Model m;
  Error err;
  if (model_open(&m, g, context, NULL, batch, MODEL_INFER, &err) != 0) return NAN;
  model_init(&m, 1);
  model_narrow_weights(&m);
  implementation_fill(&m);
  for (int round = -1; round < IMPLEMENTATION_ROUNDS; round++) { /* the first warms up */
    device_synchronize(context.device);
    const double start = seconds_now();
    engine_launch_nodes(&m, batch);
    device_synchronize(context.device);
    if (round >= 0) samples[round] = seconds_now() - start;
  }
  model_close(&m);
  return timer_stats(samples, IMPLEMENTATION_ROUNDS).median;
}

/* The faster recipe for a simplified graph, which stays. */
static inline EngineRecipe engine_measure_recipe(const Graph *g, const EngineOptions *o, Context context, int batch) {
  EngineRecipe best = ENGINE_LAYERS;
  double least = NAN;
  for (int r = 0; r < ENGINE_BLOCKED; r++) {
    Graph *copy = graph_copy(g);
    engine_fuse(copy, o, (EngineRecipe)r);
    engine_lower(copy, o);
    const double seconds = engine_time_graph(copy, context, batch);
    if (o->log)
      fprintf(o->log, "recipe %s: %.1f us for %d samples\n", engine_recipe_name((EngineRecipe)r), seconds * 1e6, batch);
    if (!isnan(seconds) && !(seconds >= least)) {
      least = seconds;
      best = (EngineRecipe)r;
    }
  }
  return best;
}

/* Each convolution of float32 by the fastest of its implementations. */
static inline int engine_measure_convolutions(Graph *g, const EngineOptions *o, Context context, int batch, FILE *log,
                                              Error *err) {
  int status = 0;
  if (o->precision != ENGINE_FP32) return 0;
  for (int c = 0; c < ENGINE_CHOICES && status == 0; c++) {
    int nodes = 0;
    for (int i = 0; i < g->count; i++) nodes += implementation_of(engine_choice_tables[c], &g->nodes[i]) >= 0;
    if (nodes > 0)
      status = implementation_choose(engine_choice_tables[c], IMPLEMENTATION_AUTO, g, context, NULL, batch, MODEL_INFER,
                                     log, err);
  }
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_CHOOSE_CUH */

/* engine_choose.cuh - passes 4 and 5: what is computed together, in which layout and precision, and by which kernels.
 *
 * A recipe is how a whole network is computed:
 *
 *     layers    operation by operation, with epilogues: fused_rewrite.cuh of lesson 4; on a CPU by the kernels' twins,
 *               linear layers by OpenBLAS
 *     chains    as layers, but small convolutions with their pooling, and small linear layers in a row, are one kernel
 *               each: lesson 16 of phase 3
 *     layers_fp32, chains_fp32    the same in float32, where another precision is allowed: small networks need no cast
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

typedef enum EngineRecipe {
  ENGINE_LAYERS,
  ENGINE_CHAINS,
  ENGINE_LAYERS_FP32,
  ENGINE_CHAINS_FP32,
  ENGINE_BLOCKED,
  ENGINE_RECIPES
} EngineRecipe;

static inline const char *engine_recipe_name(EngineRecipe recipe) {
  static const char *const names[] = {"layers", "chains", "layers_fp32", "chains_fp32", "blocks"};
  return names[recipe];
}

/* ----------------------------------------------------------------------------------------------------- convolutions */

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

/* ------------------------------------------------------------------------------------------------------------ rules */

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

/* What the recipe computes in. */
static inline EnginePrecision engine_recipe_precision(const EngineOptions *o, EngineRecipe recipe) {
  return recipe == ENGINE_LAYERS_FP32 || recipe == ENGINE_CHAINS_FP32 ? ENGINE_FP32 : o->precision;
}

static inline void engine_fuse(Graph *g, const EngineOptions *o, EngineRecipe recipe) {
  const EnginePrecision precision = engine_recipe_precision(o, recipe);
  if (recipe == ENGINE_BLOCKED) return; /* engine_blocks() does */
  engine_relu_before_pool(g);

  static const Fusion linear[] = {FUSE_LINEAR_RELU};
  if (recipe == ENGINE_CHAINS || recipe == ENGINE_CHAINS_FP32) graph_fuse_chains(g, one_step_fusions, ONE_STEP_FUSIONS);
  graph_fuse(g, linear, 1);
  fused_together(g, engine_fused_type(precision), engine_fusions(precision));
}

static inline void engine_lower(Graph *g, const EngineOptions *o, EngineRecipe recipe) {
  const EnginePrecision precision = engine_recipe_precision(o, recipe);
  fused_kernels_with(g, engine_fused_type(precision), engine_fusions(precision), half_infer_lowerings,
                     HALF_INFER_LOWERINGS);
  half_infer_absorb(g);
}

/* ---------------------------------------------------------------------------------------------------------- choices */

/* The words of `text` that begin with a node of the graph that the choice is about: "conv1:winograd,...". Other words
 * are of other choices. */
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

#define ENGINE_CPU_SECONDS 0.02 /* what a CPU is measured for, of a recipe and a batch */

/* On a CPU as often as fits into ENGINE_CPU_SECONDS, but at least once. OpenMP's threads spin at the end of each loop:
 * where other programs want their processors a layer takes milliseconds, and so many rounds as on a GPU a minute. */
static inline double engine_time_on_cpu(const Model *m, int batch) {
  enum { MOST = 20 };
  double samples[MOST], spent = 0;
  size_t runs = 0;
  while (runs < MOST && spent < ENGINE_CPU_SECONDS) {
    const double start = seconds_now();
    engine_launch_nodes(m, batch);
    samples[runs] = seconds_now() - start;
    spent += samples[runs++];
  }
  return timer_stats(samples, runs).median;
}

/* Seconds of an inference of `batch` samples, the median; on a GPU as one CUDA graph, as the engine runs it. */
static inline double engine_time_batch(const Model *m, int batch) {
  enum { REPEATS = 4 };
  double samples[IMPLEMENTATION_ROUNDS];
  StepGraph graph;
  if (m->context.device == DEVICE_CPU) return engine_time_on_cpu(m, batch);
  memset(&graph, 0, sizeof graph);
  engine_launch_nodes(m, batch); /* kernels are loaded, which no recording permits */
  device_synchronize(DEVICE_GPU);
  step_graph_begin(&graph);
  engine_launch_nodes(m, batch);
  step_graph_end(&graph);
  for (int round = -1; round < IMPLEMENTATION_ROUNDS; round++) { /* the first warms up */
    const double start = seconds_now();
    for (int i = 0; i < REPEATS; i++) step_graph_run(&graph);
    device_synchronize(DEVICE_GPU);
    if (round >= 0) samples[round] = (seconds_now() - start) / REPEATS;
  }
  step_graph_close(&graph);
  return timer_stats(samples, IMPLEMENTATION_ROUNDS).median;
}

/* Of one sample and of `batch`, of the graph, which is taken; NAN: it cannot be opened. The weights are random. */
static inline void engine_time_graph(Graph *g, Context context, int batch, double seconds[2]) {
  Model m;
  Error err;
  seconds[0] = seconds[1] = NAN;
  if (model_open(&m, g, context, NULL, batch, MODEL_INFER, &err) != 0) return;
  model_init(&m, 1);
  model_narrow_weights(&m);
  implementation_fill(&m);
  seconds[0] = engine_time_batch(&m, 1);
  const int slow = context.device == DEVICE_CPU && seconds[0] > ENGINE_CPU_SECONDS; /* a batch would be slower still */
  seconds[1] = batch > 1 && !slow ? engine_time_batch(&m, batch) : seconds[0];
  model_close(&m);
}

static inline int engine_recipe_is_for(EngineRecipe recipe, const EngineOptions *o) {
  if (recipe == ENGINE_LAYERS) return 1;
  if (recipe == ENGINE_BLOCKED) return o->device == DEVICE_CPU;
  return o->device == DEVICE_GPU && (recipe == ENGINE_CHAINS || o->precision != ENGINE_FP32);
}

/* The same of the recipe for a simplified graph, which stays. */
static inline void engine_time_recipe(const Graph *g, const EngineOptions *o, const EngineWeights *weights,
                                      EngineRecipe recipe, Context context, int batch, double seconds[2]) {
  Error err;
  EnginePlans plans;
  Graph *copy = graph_copy(g);
  memset(&plans, 0, sizeof plans);
  engine_fuse(copy, o, recipe);
  if (recipe != ENGINE_BLOCKED) engine_lower(copy, o, recipe);
  seconds[0] = seconds[1] = NAN;
  if (recipe == ENGINE_BLOCKED && engine_blocks(copy, weights, &plans, batch, &err) != 0)
    graph_destroy(copy);
  else
    engine_time_graph(copy, context, batch, seconds);
  engine_plans_free(&plans);
}

/* The fastest recipe for a simplified graph, which stays: the one that loses least to the best of each, for one sample
 * and for a batch. */
static inline EngineRecipe engine_measure_recipe(const Graph *g, const EngineOptions *o, const EngineWeights *weights,
                                                 Context context, int batch) {
  EngineRecipe best = o->device == DEVICE_GPU ? ENGINE_LAYERS : ENGINE_BLOCKED;
  double seconds[ENGINE_RECIPES][2], least[2] = {INFINITY, INFINITY}, score = INFINITY;
  for (int r = 0; r < ENGINE_RECIPES; r++) {
    seconds[r][0] = seconds[r][1] = NAN;
    if (!engine_recipe_is_for((EngineRecipe)r, o)) continue;
    engine_time_recipe(g, o, weights, (EngineRecipe)r, context, batch, seconds[r]);
    if (o->log)
      fprintf(o->log, "recipe %s: %.1f us for 1 sample, %.1f us for %d\n", engine_recipe_name((EngineRecipe)r),
              seconds[r][0] * 1e6, seconds[r][1] * 1e6, batch);
    for (int k = 0; k < 2; k++)
      if (seconds[r][k] < least[k]) least[k] = seconds[r][k];
  }
  for (int r = 0; r < ENGINE_RECIPES; r++) {
    const double own = seconds[r][0] / least[0] + seconds[r][1] / least[1];
    if (!(own < score)) continue;
    score = own;
    best = (EngineRecipe)r;
  }
  return best;
}

/* Each convolution of float32 by the fastest of its implementations. */
static inline int engine_measure_convolutions(Graph *g, Context context, int batch, FILE *log, Error *err) {
  int status = 0;
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

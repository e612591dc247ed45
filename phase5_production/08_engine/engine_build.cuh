/* engine_build.cuh - from a source to a Model that infers: the passes, the choices, memory, weights. */
#ifndef PHASE5_PRODUCTION_ENGINE_BUILD_CUH
#define PHASE5_PRODUCTION_ENGINE_BUILD_CUH

#include "phase5_production/08_engine/engine_choose.cuh"
#include "phase5_production/08_engine/engine_invariant.cuh"

#define ENGINE_CPU_FLOPS 2e8 /* a network is measured that needs no more for one group of samples */

/* ---------------------------------------------------------------------------------------------------------- weights */

/* Whether parameter k of the node is what the file has, number by number. */
static inline int engine_is_as_in_file(const Node *node, int k, const EngineWeight *weight) {
  const Param *p = &node->param[k];
  const int end =
      node->op == &residual_end_op || node->op == &residual_end_tf32_op || node->op == &residual_end_half_op;
  return weight && weight->count == p->count && p->bytes == 0 && !(end && k != RESIDUAL_END_WEIGHT) &&
         !(p->rank == 4 && graph_is_channels_last(node)) && node->op != &depthwise_half_op;
}

/* A parameter that has to be made of others, or turned. */
static inline int engine_fill_made(const Model *m, const Node *owner, int k, const EngineWeights *weights, Error *err) {
  const Param *p = &owner->param[k];
  float *values = (float *)xcalloc(p->count + 1, sizeof *values);
  const int status = fused_fill_one(values, owner, k, engine_weights_source(weights), err);
  if (status == 0 && owner->op == &depthwise_half_op && k == 0) half_infer_turn(values, p);
  if (status == 0) device_upload(m->context.device, model_param(m, p), values, p->count * sizeof *values);
  free(values);
  return status;
}

/* The numbers of a model with memory. owned: all of them; else only its buffers: the rest is another shape's. Most go
 * from the file's memory to the device without a copy in between. */
static inline int engine_fill(const EngineState *e, Model *m, const EngineWeights *weights, int owned, Error *err) {
  const EngineExtension *extension = e->options.extension;
  int node = 0, index = 0, status = 0;
  const Param *p;
  while (status == 0 && (p = model_next_param(m, &node, &index)) != NULL) {
    const Node *owner = &m->graph->nodes[node];
    if (p->count == 0 || (p->trained && !owned)) continue;
    const EngineWeight *weight = engine_weight(weights, p->name);
    if (extension && weight == NULL) continue; /* it fills its own */
    if (engine_is_as_in_file(owner, index - 1, weight))
      device_upload(m->context.device, model_param(m, p), weight->values, p->count * sizeof(float));
    else
      status = engine_fill_made(m, owner, index - 1, weights, err);
  }
  if (status == 0 && owned) model_narrow_weights(m); /* once: nobody changes them any more */
  return status == 0 && extension ? extension->fill(extension->state, m, err) : status;
}

/* ---------------------------------------------------------------------------------------------------------- choices */

/* A CPU would measure a large network for longer than it takes to answer: there the rule is good enough. Without a
 * convolution and a linear layer there are no blocks, and both recipes are the same. */
static inline int engine_measures(const EngineState *e, const Graph *g, int batch) {
  double flops = 0;
  int layers = 0;
  for (int i = 0; i < g->count; i++) {
    flops += g->nodes[i].flops;
    layers += g->nodes[i].op == &conv2d_op || g->nodes[i].op == &linear_op;
  }
  if (e->options.device == DEVICE_CPU && (layers == 0 || flops * batch > ENGINE_CPU_FLOPS)) return 0;
  return engine_can_measure(&e->options);
}

/* The recipe of the first shape: that of the choices, or *measured, or by a rule. */
static inline EngineRecipe engine_choose_recipe(EngineState *e, const Graph *g, const EngineWeights *weights, int batch,
                                                int *measured) {
  const EngineOptions *o = &e->options;
  const int chosen = engine_choice_recipe(e->choices);
  *measured = 0;
  if (chosen >= 0) return (EngineRecipe)chosen;
  if (o->batch_invariant && o->device == DEVICE_GPU && o->precision != ENGINE_FP32) return ENGINE_LAYERS;
  *measured = engine_measures(e, g, batch);
  if (*measured) return engine_measure_recipe(g, o, weights, e->context, batch);
  return o->device == DEVICE_GPU ? ENGINE_CHAINS : ENGINE_BLOCKED;
}

/* Samples of a launch; 0: all of a batch. On a CPU as many as a cache holds with the weights of a layer. */
static inline int engine_group(const EngineState *e, int blocks) {
  const EngineOptions *o = &e->options;
  if (e->fixed_batch > 0) return 0;
  if (o->batch_invariant) return o->device == DEVICE_CPU || o->max_batch < ENGINE_GROUP ? 1 : ENGINE_GROUP;
  if (!blocks || o->max_batch < 2) return 0;
  return o->max_batch < ENGINE_GROUP ? o->max_batch : ENGINE_GROUP;
}

/* The pass of an extension. */
static inline int engine_extend(const EngineState *e, Graph **g, EnginePasses *passes, Error *err) {
  const EngineExtension *extension = e->options.extension;
  if (extension == NULL) return 0;
  const struct OnnxImport *import = e->source.import ? e->source.import(e->source.state) : NULL;
  Graph *after = extension->rewrite(extension->state, *g, import, e->options.device, err);
  if (after == NULL) return -1;
  graph_destroy(*g);
  *g = after;
  engine_pass_done(passes, *g, extension->name, "operations of its own");
  return 0;
}

/* Fused and lowered. Of the first shape what is chosen is kept. */
static inline int engine_choose(EngineState *e, Graph **graph, const EngineWeights *weights, EnginePlans *plans,
                                int first, EnginePasses *passes, Error *err) {
  const EngineOptions *o = &e->options;
  const int batch = o->batch_invariant && o->max_batch > ENGINE_GROUP ? ENGINE_GROUP : o->max_batch;
  if (engine_extend(e, graph, passes, err) != 0) return -1;
  Graph *g = *graph;
  const int group = engine_group(e, 1) > 0 ? engine_group(e, 1) : 1;
  const int chosen = engine_choice_recipe(e->choices) >= 0;
  int measured;
  const EngineRecipe recipe = engine_choose_recipe(e, g, weights, o->device == DEVICE_CPU ? group : batch, &measured);
  if (!engine_recipe_is_for(recipe, o))
    return error_set(err, "the recipe %s is not for a %s; expected %s", engine_recipe_name(recipe),
                     device_name(o->device), o->device == DEVICE_GPU ? "layers or chains" : "layers or blocks");
  engine_fuse(g, o, recipe);
  if (recipe == ENGINE_BLOCKED && engine_blocks(g, weights, plans, group, err) != 0) return -1;
  engine_pass_done(passes, g, "fused", "recipe %s", engine_recipe_name(recipe));
  if (recipe != ENGINE_BLOCKED) engine_lower(g, o, recipe);
  if (engine_apply_choices(g, e->choices, err) != 0) return -1;
  if (!chosen && o->device == DEVICE_GPU && engine_can_measure(o) &&
      engine_recipe_precision(o, recipe) == ENGINE_FP32 &&
      engine_measure_convolutions(g, e->context, batch, o->log ? o->log : stderr, err) != 0)
    return -1;
  engine_pass_done(passes, g, "kernels chosen", "%s, %s", engine_precision_name(o->precision),
                   chosen     ? "as the plan says"
                   : measured ? "measured"
                              : "by rules");
  if (first) engine_choices_text(g, recipe, e->choices, sizeof e->choices);
  return 0;
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

enum { ENGINE_CACHED_WEIGHTS = 8 << 20 }; /* bytes */

/* The arrays of all samples, beside a model that takes a group of them. */
static inline void engine_open_groups(const EngineState *e, EngineShape *shape) {
  const Graph *g = shape->model.graph;
  for (int i = 0; i < e->inputs; i++)
    shape->x[i] = (float *)device_alloc(
        e->options.device, engine_floats(g, engine_input_node(g, i), e->options.max_batch) * sizeof(float));
  for (int i = 0; i < e->outputs; i++)
    shape->y[i] = (float *)device_alloc(
        e->options.device, engine_floats(g, engine_output_node(g, i), e->options.max_batch) * sizeof(float));
}

/* A model for each further thread, with the weights of the first. */
static inline int engine_open_lanes(const EngineState *e, EngineShape *shape, Error *err) {
  const int threads = e->options.threads > 0 ? e->options.threads : threads_most();
  const int groups = shape->group > 0 ? (e->options.max_batch + shape->group - 1) / shape->group : 1;
  if (shape->plans.bytes > ENGINE_CACHED_WEIGHTS) return 0; /* all threads share a layer's weights */
  const int most = threads < ENGINE_LANES ? threads : ENGINE_LANES;
  for (int i = 1; i < most && groups >= most; i++) {
    Model *m = &shape->lane[i - 1];
    if (model_prepare(m, graph_copy(shape->model.graph), e->context, NULL, shape->group, MODEL_INFER, err) != 0)
      return -1;
    m->arena = (unsigned char *)device_alloc(DEVICE_CPU, m->plan.arena_bytes);
    m->parameters = shape->model.parameters;
    m->buffers = shape->model.buffers;
    shape->lanes = i;
  }
  return 0;
}

/* A prepared model gets memory: its own, or that of the first shape where it suffices. */
static inline int engine_give_memory(EngineState *e, EngineShape *shape, const EngineWeights *weights, Error *err) {
  const EngineShape *owner = e->shapes > 0 ? e->shape[0] : NULL;
  Model *m = &shape->model;
  shape->borrows =
      owner && m->plan.arena_bytes <= owner->model.plan.arena_bytes && engine_same_parameters(m, &owner->model);
  if (shape->borrows)
    engine_borrow(m, &owner->model);
  else if (model_allocate(m, 0, err) != 0)
    return -1;
  if (engine_fill(e, m, weights, !shape->borrows, err) != 0) return -1;
  if (shape->group > 0) engine_open_groups(e, shape);
  return shape->plans.count > 0 ? engine_open_lanes(e, shape, err) : 0;
}

static inline int engine_check_outputs(const EngineState *e, const Graph *g, Error *err) {
  const int outputs = engine_graph_outputs(g), inputs = engine_graph_inputs(g);
  if (outputs < 1 || outputs > ENGINE_MAX_VALUES || inputs < 1 || inputs > ENGINE_MAX_VALUES)
    return error_set(err, "%s has %d inputs and %d outputs; 1 to %d of each are possible", e->source.name, inputs,
                     outputs, ENGINE_MAX_VALUES);
  const int batch_is_free = g->nodes[engine_input_node(g, 0)].whole == 0;
  for (int i = 0; i < inputs + outputs; i++) {
    const Node *node = &g->nodes[i < inputs ? engine_input_node(g, i) : engine_output_node(g, i - inputs)];
    if (node->type != DTYPE_FLOAT32)
      return error_set(err, "%s: %s is %s; inputs and outputs of float32 are possible", e->source.name, node->name,
                       dtype_name(node->type));
    if (batch_is_free && node->whole > 0)
      return error_set(
          err,
          "%s: the first size of %s is %d, and that of the first input is the batch; export the model with "
          "the batch as the first size of each input and output, or with a number in all of them",
          e->source.name, node->name, node->whole);
  }
  return 0;
}

/* What a caller knows the input or output by; a free height or width is -1. */
static inline EngineNamed engine_named(const EngineState *e, const Node *node, int is_output, int i) {
  EngineNamed named;
  memset(&named, 0, sizeof named);
  const char *name = e->source.value ? e->source.value(e->source.state, is_output, i) : node->name;
  snprintf(named.name, sizeof named.name, "%s", name);
  named.value.rank = 1 + (node->shape.rank < ENGINE_MAX_RANK ? node->shape.rank : ENGINE_MAX_RANK - 1);
  named.value.dim[0] = node->whole > 0 ? node->whole : -1;
  for (int i = 1; i < named.value.rank; i++) named.value.dim[i] = node->shape.dim[i - 1];
  if (node->shape.rank == 3 && e->source.free_height) named.value.dim[2] = -1;
  if (node->shape.rank == 3 && e->source.free_width) named.value.dim[3] = -1;
  return named;
}

static inline void engine_name_values(EngineState *e, const Graph *g) {
  e->fixed_batch = g->nodes[engine_input_node(g, 0)].whole;
  if (e->fixed_batch > 0) e->options.max_batch = e->fixed_batch;
  e->inputs = engine_graph_inputs(g);
  e->outputs = engine_graph_outputs(g);
  for (int i = 0; i < e->inputs && i < ENGINE_MAX_VALUES; i++)
    e->x[i] = engine_named(e, &g->nodes[engine_input_node(g, i)], 0, i);
  for (int i = 0; i < e->outputs && i < ENGINE_MAX_VALUES; i++)
    e->y[i] = engine_named(e, &g->nodes[engine_output_node(g, i)], 1, i);
}

/* The network for pictures of this size joins the engine's shapes. -1 with a sentence. */
static inline int engine_open_shape(EngineState *e, int height, int width, EngineShape **out, Error *err) {
  const int first = e->shapes == 0;
  EnginePasses quiet;
  EngineWeights weights;
  memset(&quiet, 0, sizeof quiet);
  memset(&weights, 0, sizeof weights);
  EnginePasses *passes = first ? &e->passes : &quiet;
  passes->count = 0;
  passes->batch = e->options.max_batch;
  passes->log = first ? e->options.log : NULL;
  Graph *g = e->source.graph(e->source.state, height, width, err);
  if (g == NULL) return -1;
  int status = e->source.weights(e->source.state, &weights, err);
  if (status == 0) status = engine_check_outputs(e, g, err);
  if (status == 0 && first) engine_name_values(e, g);
  if (status == 0) status = engine_simplify(&g, &weights, &e->context, passes, err);
  EngineShape *shape = (EngineShape *)xcalloc(1, sizeof *shape);
  if (status == 0) status = engine_choose(e, &g, &weights, &shape->plans, first, passes, err);
  if (status != 0) {
    graph_destroy(g);
    engine_shape_close(shape);
    engine_weights_free(&weights);
    return -1;
  }
  shape->height = height;
  shape->width = width;
  const int ordered = e->options.batch_invariant && e->options.device == DEVICE_GPU && e->fixed_batch == 0 &&
                      !e->needs_groups && engine_fix_order(g);
  shape->whole = e->options.batch_invariant && !ordered;
  shape->group = ordered ? 0 : engine_group(e, shape->plans.count > 0);
  status = model_prepare(&shape->model, g, e->context, NULL, shape->group ? shape->group : e->options.max_batch,
                         MODEL_INFER, err);
  if (status == 0) status = engine_give_memory(e, shape, &weights, err);
  engine_weights_free(&weights);
  if (status != 0) {
    engine_shape_close(shape);
    return -1;
  }
  if (first && ordered && !engine_order_holds(shape)) {
    e->needs_groups = 1;
    engine_shape_close(shape);
    return engine_open_shape(e, height, width, out, err);
  }
  if (first && e->options.batch_invariant)
    engine_pass_done(passes, shape->model.graph, "batch invariant", "%s",
                     ordered ? "one order of summation in every kernel" : "the same kernels for groups of samples");
  if (first)
    engine_pass_done(passes, shape->model.graph, "memory planned", "one arena of %.2f MiB; %.2f MiB are alive at once",
                     model_mib(shape->model.plan.arena_bytes), model_mib(shape->model.plan.live_bytes));
  *out = e->shape[e->shapes++] = shape;
  return 0;
}

/* The shape for this size; opened where it is new, in the place of the one that was used longest ago where there are
 * many. The first shape stays: it has the memory. */
static inline EngineShape *engine_find_shape(EngineState *e, int height, int width, Error *err) {
  EngineShape *shape = NULL;
  for (int i = 0; i < e->shapes; i++)
    if (e->shape[i]->height == height && e->shape[i]->width == width) return e->shape[i];
  if (e->shapes == ENGINE_SHAPES) {
    int oldest = 1;
    for (int i = 2; i < e->shapes; i++)
      if (e->shape[i]->used < e->shape[oldest]->used) oldest = i;
    engine_shape_close(e->shape[oldest]);
    e->shape[oldest] = e->shape[--e->shapes];
  }
  return engine_open_shape(e, height, width, &shape, err) == 0 ? shape : NULL;
}

#endif /* PHASE5_PRODUCTION_ENGINE_BUILD_CUH */

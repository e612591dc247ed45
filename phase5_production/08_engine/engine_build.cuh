/* engine_build.cuh - from a source to a Model that infers: the passes, the choices, memory, weights. */
#ifndef PHASE5_PRODUCTION_ENGINE_BUILD_CUH
#define PHASE5_PRODUCTION_ENGINE_BUILD_CUH

#include "phase5_production/08_engine/engine_choose.cuh"

/* ----------------------------------------------------------------------------------------------------------- weights */

/* The numbers of a prepared model. owned: all of them; else only its buffers: the rest is another shape's. */
static inline int engine_fill(const EngineState *e, Model *m, const EngineWeights *weights, int owned, Error *err) {
  float *host = (float *)xcalloc(m->parameter_count + m->buffer_count + 1, sizeof *host);
  const EngineExtension *extension = e->options.extension;
  int node = 0, index = 0, status = 0;
  const Param *p;
  while (status == 0 && (p = model_next_param(m, &node, &index)) != NULL) {
    float *values = batch_norm2d_fold_at(m, host, p);
    const Node *owner = &m->graph->nodes[node];
    if (p->count == 0 || (p->trained && !owned)) continue;
    if (extension && engine_weight(weights, p->name) == NULL) continue; /* it fills its own */
    status = fused_fill_one(values, owner, index - 1, engine_weights_source(weights), err);
    if (status == 0 && owner->op == &depthwise_half_op && index == 1) half_infer_turn(values, p);
  }
  if (status == 0) {
    const Device device = m->context.device;
    if (owned) device_upload(device, m->parameters, host, m->parameter_count * sizeof *host);
    device_upload(device, m->buffers, host + m->parameter_count, m->buffer_count * sizeof *host);
    if (owned) model_narrow_weights(m); /* once: nobody changes them any more */
  }
  free(host);
  return status == 0 && extension ? extension->fill(extension->state, m, err) : status;
}

/* ------------------------------------------------------------------------------------------------------------ choices */

/* The recipe of the first shape: that of the choices, or measured, or by a rule. */
static inline EngineRecipe engine_choose_recipe(EngineState *e, const Graph *g, int batch) {
  const EngineOptions *o = &e->options;
  const int chosen = engine_choice_recipe(e->choices);
  if (chosen >= 0) return (EngineRecipe)chosen;
  if (o->device == DEVICE_GPU && engine_can_measure(o)) return engine_measure_recipe(g, o, e->context, batch);
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
  const int chosen = engine_choice_recipe(e->choices) >= 0;
  const EngineRecipe recipe = engine_choose_recipe(e, g, batch);
  if (recipe == ENGINE_BLOCKED && o->device == DEVICE_GPU)
    return error_set(err, "the recipe blocks is for a CPU; expected layers or chains");
  engine_fuse(g, o, recipe);
  const int group = engine_group(e, 1);
  if (recipe == ENGINE_BLOCKED && engine_blocks(g, weights, plans, group > 0 ? group : 1, err) != 0) return -1;
  engine_pass_done(passes, g, "fused", "recipe %s", engine_recipe_name(recipe));
  if (recipe != ENGINE_BLOCKED) engine_lower(g, o);
  if (engine_apply_choices(g, e->choices, err) != 0) return -1;
  if (!chosen && o->device == DEVICE_GPU && engine_can_measure(o) &&
      engine_measure_convolutions(g, o, e->context, batch, o->log ? o->log : stderr, err) != 0)
    return -1;
  engine_pass_done(passes, g, "kernels chosen", "%s, %s", engine_precision_name(o->precision),
                   chosen                                             ? "as the plan says"
                   : o->device == DEVICE_GPU && engine_can_measure(o) ? "measured"
                                                                      : "by rules");
  if (first) engine_choices_text(g, recipe, e->choices, sizeof e->choices);
  return 0;
}

/* ------------------------------------------------------------------------------------------------------------- shapes */

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
  for (int i = 0; i < inputs + outputs; i++) {
    const Node *node = &g->nodes[i < inputs ? engine_input_node(g, i) : engine_output_node(g, i - inputs)];
    if (node->type != DTYPE_FLOAT32)
      return error_set(err, "%s: %s is %s; inputs and outputs of float32 are possible", e->source.name, node->name,
                       dtype_name(node->type));
  }
  if (outputs >= 1 && outputs <= ENGINE_MAX_VALUES && inputs >= 1 && inputs <= ENGINE_MAX_VALUES) return 0;
  return error_set(err, "%s has %d inputs and %d outputs; 1 to %d of each are possible", e->source.name, inputs,
                   outputs, ENGINE_MAX_VALUES);
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
  shape->whole = e->options.batch_invariant;
  shape->group = engine_group(e, shape->plans.count > 0);
  status = model_prepare(&shape->model, g, e->context, NULL, shape->group ? shape->group : e->options.max_batch,
                         MODEL_INFER, err);
  if (status == 0) status = engine_give_memory(e, shape, &weights, err);
  engine_weights_free(&weights);
  if (status != 0) {
    engine_shape_close(shape);
    return -1;
  }
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

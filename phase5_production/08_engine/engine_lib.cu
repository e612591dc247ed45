/* engine_lib.cu - the functions of engine.h, compiled once; those that read and write files are in engine_file.cu. */
#include "common/threads.h"
#include "phase5_production/08_engine/engine_build.cuh"
#include "phase5_production/08_engine/engine_open.cuh"

/* ---------------------------------------------------------------------------------------------------------- options */

EngineOptions engine_options(void) {
  EngineOptions o;
  memset(&o, 0, sizeof o);
  o.cuda_graphs = o.measure = 1;
  return o;
}

static const char *const engine_precisions[] = {"fp32", "tf32", "fp16", "bf16"};

const char *engine_precision_name(EnginePrecision precision) { return engine_precisions[precision]; }

int engine_precision_find(const char *name, EnginePrecision *precision) {
  for (int i = 0; i < 4; i++)
    if (strcmp(engine_precisions[i], name) == 0) {
      *precision = (EnginePrecision)i;
      return 0;
    }
  return -1;
}

static int engine_check_options(const EngineOptions *o, const EngineSource *source, Error *err) {
  if (o->device == DEVICE_CPU && o->precision != ENGINE_FP32)
    return error_set(err, "--precision=%s on a CPU: its kernels are of fp32; take fp32, or --device=gpu",
                     engine_precision_name(o->precision));
  if (o->max_batch < 1) return error_set(err, "a batch of %d; at least 1 is expected", o->max_batch);
  if ((source->free_height && o->max_height == 0) || (source->free_width && o->max_width == 0))
    return error_set(err,
                     "%s takes pictures of any size; declare the largest with --max-height and --max-width "
                     "(max_height, max_width)",
                     source->name);
  if ((o->max_height > 0 && o->max_height != source->height && !source->free_height) ||
      (o->max_width > 0 && o->max_width != source->width && !source->free_width))
    return error_set(err, "%s takes pictures of %d x %d, and %d x %d are asked for; its sizes are fixed", source->name,
                     source->height, source->width, o->max_height, o->max_width);
  return 0;
}

/* ------------------------------------------------------------------------------------------------------ open, close */

static void engine_state_close(EngineState *e) {
  for (int i = e->shapes - 1; i >= 0; i--) engine_shape_close(e->shape[i]);
  if (e->source.close) e->source.close(e->source.state);
  free(e);
}

/* OpenMP's number of threads belongs to the calling thread, and memory is planned for it: an engine takes its own
 * whoever calls, and leaves what was there. 0: none of its own. Returns what was there. */
static int engine_take_threads(int threads) {
  const int before = threads_most();
#ifdef _OPENMP
  if (threads > 0 && threads != before) omp_set_num_threads(threads);
#endif
  return before;
}

int engine_open_source(Engine *engine, EngineSource source, const EngineOptions *options, Error *err) {
  char description[256];
  EngineState *e = (EngineState *)xcalloc(1, sizeof *e);
  EngineShape *shape;
  memset(engine, 0, sizeof *engine);
  e->source = source;
  e->options = *options;
  EngineOptions *o = &e->options;
  if (o->max_batch == 0) o->max_batch = 1;
  if (engine_check_options(o, &source, err) != 0 || device_open(o->device, description, sizeof description, err) != 0) {
    engine_state_close(e);
    return -1;
  }
  if (o->max_height == 0) o->max_height = source.height;
  if (o->max_width == 0) o->max_width = source.width;
  if (o->device == DEVICE_CPU && o->threads == 0) o->threads = threads_most();
  if (o->device != DEVICE_CPU) o->threads = 0;
  if (o->choices) snprintf(e->choices, sizeof e->choices, "%s", o->choices);
  o->choices = NULL;
  e->context.device = o->device;
  e->context.gpu = o->gpu;
  e->context.seed = 1;
  const int before = engine_take_threads(o->threads);
  const int status = engine_open_shape(e, o->max_height, o->max_width, &shape, err);
  engine_take_threads(before);
  if (status != 0) {
    engine_state_close(e);
    return -1;
  }
  e->options.log = NULL;
  engine->state = e;
  return 0;
}

int engine_open_model(Engine *e, const Model *model, const EngineOptions *options, Error *err) {
  return engine_open_source(e, engine_model_source(model), options, err);
}

void engine_close(Engine *e) {
  if (e->state) engine_state_close(e->state);
  memset(e, 0, sizeof *e);
}

/* ------------------------------------------------------------------------------------------------------------- runs */

/* The shape of a call; NULL with a sentence. */
static EngineShape *engine_called(EngineState *e, int batch, int height, int width, Error *err) {
  const EngineOptions *o = &e->options;
  if (height == 0) height = o->max_height;
  if (width == 0) width = o->max_width;
  if (batch < 1 || batch > o->max_batch) {
    error_set(err, "a batch of %d for an engine of at most %d samples; declare more with max_batch (--max-batch)",
              batch, o->max_batch);
    return NULL;
  }
  if (e->fixed_batch > 0 && batch != e->fixed_batch) {
    error_set(err,
              "a batch of %d, and %s takes batches of %d: its first size is a number; export it with a dynamic batch",
              batch, e->source.name, e->fixed_batch);
    return NULL;
  }
  if (height > o->max_height || width > o->max_width || height < 0 || width < 0) {
    error_set(err,
              "a picture of %d x %d for an engine of at most %d x %d; declare more with --max-height and --max-width",
              height, width, o->max_height, o->max_width);
    return NULL;
  }
  if ((height != o->max_height && !e->source.free_height) || (width != o->max_width && !e->source.free_width)) {
    error_set(err, "%s takes pictures of %d x %d, not of %d x %d", e->source.name, o->max_height, o->max_width, height,
              width);
    return NULL;
  }
  const int before = engine_take_threads(o->threads);
  EngineShape *shape = engine_find_shape(e, height, width, err);
  engine_take_threads(before);
  return shape;
}

static void engine_infer_here(EngineState *e, EngineShape *shape, int batch) {
  const int before = engine_take_threads(e->options.threads);
  engine_infer(e, shape, batch);
  engine_take_threads(before);
}

static float *engine_shape_input(const EngineShape *shape, int i) {
  if (shape->group > 0) return shape->x[i];
  return model_output(&shape->model, engine_input_node(shape->model.graph, i));
}

static float *engine_shape_output(const EngineShape *shape, int i) {
  if (shape->group > 0) return shape->y[i];
  return model_output(&shape->model, engine_output_node(shape->model.graph, i));
}

int engine_run_all(Engine *engine, const float *const *x, int batch, int height, int width, float *const *y,
                   Error *err) {
  EngineState *e = engine->state;
  const Device device = e->options.device;
  EngineShape *shape = engine_called(e, batch, height, width, err);
  if (shape == NULL) return -1;
  const Graph *g = shape->model.graph;
  model_use_device(&shape->model);
  for (int i = 0; i < e->inputs; i++)
    device_upload(device, engine_shape_input(shape, i), x[i],
                  engine_floats(g, engine_input_node(g, i), batch) * sizeof(float));
  engine_infer_here(e, shape, batch);
  device_synchronize(device);
  for (int i = 0; i < e->outputs; i++)
    if (y[i])
      device_download(device, y[i], engine_shape_output(shape, i),
                      engine_floats(g, engine_output_node(g, i), batch) * sizeof(float));
  return 0;
}

int engine_run(Engine *e, const float *x, int batch, int height, int width, float *y, Error *err) {
  const float *const inputs[] = {x};
  float *outputs[ENGINE_MAX_VALUES] = {y};
  if (e->state->inputs != 1)
    return error_set(err, "%s has %d inputs; give all of them to engine_run_all()", e->state->source.name,
                     e->state->inputs);
  return engine_run_all(e, inputs, batch, height, width, outputs, err);
}

int engine_run_device(Engine *engine, const float *const *x, int batch, int height, int width, float *const *y,
                      Error *err) {
  EngineState *e = engine->state;
  const Device device = e->options.device;
  EngineShape *shape = engine_called(e, batch, height, width, err);
  if (shape == NULL) return -1;
  const Graph *g = shape->model.graph;
  model_use_device(&shape->model);
  for (int i = 0; i < e->inputs; i++)
    if (x && x[i] && x[i] != engine_shape_input(shape, i))
      device_copy(device, engine_shape_input(shape, i), x[i],
                  engine_floats(g, engine_input_node(g, i), batch) * sizeof(float));
  engine_infer_here(e, shape, batch);
  for (int i = 0; i < e->outputs; i++)
    if (y && y[i])
      device_copy(device, y[i], engine_shape_output(shape, i),
                  engine_floats(g, engine_output_node(g, i), batch) * sizeof(float));
  return 0;
}

float *engine_device_input(Engine *e, int i, int height, int width, Error *err) {
  EngineShape *shape =
      engine_called(e->state, e->state->fixed_batch > 0 ? e->state->fixed_batch : 1, height, width, err);
  return shape ? engine_shape_input(shape, i) : NULL;
}

const float *engine_device_output(Engine *e, int i, int height, int width, Error *err) {
  EngineShape *shape =
      engine_called(e->state, e->state->fixed_batch > 0 ? e->state->fixed_batch : 1, height, width, err);
  return shape ? engine_shape_output(shape, i) : NULL;
}

/* -------------------------------------------------------------------------------------------------------- questions */

int engine_inputs(const Engine *e) { return e->state->inputs; }
int engine_outputs(const Engine *e) { return e->state->outputs; }

static EngineValue engine_value_of(const EngineNamed *named) {
  EngineValue value = named->value;
  value.name = named->name;
  return value;
}

EngineValue engine_input(const Engine *e, int i) { return engine_value_of(&e->state->x[i]); }
EngineValue engine_output(const Engine *e, int i) { return engine_value_of(&e->state->y[i]); }

static int engine_shape_of(Engine *e, int i, int is_output, int height, int width, EngineValue *value, size_t *floats,
                           Error *err) {
  const int batch = e->state->fixed_batch > 0 ? e->state->fixed_batch : 1;
  EngineShape *shape = engine_called(e->state, batch, height, width, err);
  if (shape == NULL) return -1;
  const Graph *g = shape->model.graph;
  const int number = is_output ? engine_output_node(g, i) : engine_input_node(g, i);
  const Node *node = &g->nodes[number];
  *value = is_output ? engine_output(e, i) : engine_input(e, i);
  value->rank = 1 + node->shape.rank;
  for (int k = 1; k < value->rank; k++) value->dim[k] = node->shape.dim[k - 1];
  *floats = (engine_floats(g, number, batch) + (size_t)batch - 1) / (size_t)batch;
  return 0;
}

int engine_output_shape(Engine *e, int i, int height, int width, EngineValue *value, size_t *floats, Error *err) {
  return engine_shape_of(e, i, 1, height, width, value, floats, err);
}
int engine_input_shape(Engine *e, int i, int height, int width, EngineValue *value, size_t *floats, Error *err) {
  return engine_shape_of(e, i, 0, height, width, value, floats, err);
}

const char *engine_metadata(const Engine *e, const char *key) {
  const EngineSource *source = &e->state->source;
  return source->metadata ? source->metadata(source->state, key) : NULL;
}

EngineMemory engine_memory(const Engine *e) {
  EngineMemory memory = {0, 0, 0};
  for (int i = 0; i < e->state->shapes; i++) {
    const EngineShape *shape = e->state->shape[i];
    const Model *m = &shape->model;
    memory.weights += m->buffer_count * sizeof(float) + shape->plans.bytes;
    for (int k = 0; k < shape->lanes; k++) memory.arena += shape->lane[k].plan.arena_bytes;
    if (!shape->borrows) {
      memory.weights += m->parameter_count * sizeof(float) + m->half_runs * HALF_RUN * sizeof(uint16_t);
      memory.arena += m->plan.arena_bytes;
    }
    for (int k = 0; shape->group > 0 && k < e->state->inputs; k++)
      memory.total += engine_floats(m->graph, engine_input_node(m->graph, k), e->state->options.max_batch) * 4;
    for (int k = 0; shape->group > 0 && k < e->state->outputs; k++)
      memory.total += engine_floats(m->graph, engine_output_node(m->graph, k), e->state->options.max_batch) * 4;
  }
  memory.total += memory.weights + memory.arena;
  return memory;
}

EngineOptions engine_get_options(const Engine *e) { return e->state->options; }
const char *engine_choices(const Engine *e) { return e->state->choices; }
const Model *engine_model(const Engine *e) { return &e->state->shape[0]->model; }

/* ---------------------------------------------------------------------------------------- for the program and tests */

Graph *engine_imported(Engine *e, Error *err) {
  const EngineOptions *o = &e->state->options;
  return e->state->source.graph(e->state->source.state, o->max_height, o->max_width, err);
}

double engine_node_seconds(const Engine *e, int i, int rounds) {
  enum { MOST = 64, REPEATS = 10 };
  double samples[MOST];
  const Model *m = engine_model(e);
  const Device device = m->context.device;
#ifdef SIMT_REWRITTEN
  if (device == DEVICE_GPU) return NAN;
#endif
  if (rounds > MOST) rounds = MOST;
  const int before = engine_take_threads(e->state->options.threads);
  for (int round = -1; round < rounds; round++) { /* the first warms up */
    device_synchronize(device);
    const double start = seconds_now();
    for (int k = 0; k < REPEATS; k++) model_forward_node(m, i, m->max_batch);
    device_synchronize(device);
    if (round >= 0) samples[round] = (seconds_now() - start) / REPEATS;
  }
  engine_take_threads(before);
  return timer_stats(samples, (size_t)rounds).median;
}

int engine_kernels(const Engine *e) {
  const EngineShape *shape = e->state->shape[0];
  if (shape->model.context.device != DEVICE_GPU) return 0;
  const int batch = e->state->options.max_batch;
  engine_launch(shape, batch); /* kernels are loaded, which no recording permits */
  device_synchronize(DEVICE_GPU);
  return engine_recorded_kernels(shape, batch);
}

/* engine_file.cu - engines of files: engine_open() and engine_save() of engine.h. */
#include <pthread.h>

#include "phase5_production/08_engine/engine_onnx.cuh"
#include "phase5_production/08_engine/engine_open.cuh"
#include "phase5_production/08_engine/engine_state.cuh"

/* What a plan says holds: its precision and ranges; smaller ranges may be asked for. Its choices are those of the
 * device that it was made on. */
static int engine_take_plan(EngineOptions *o, const EnginePlanFile *plan, const char *path, const char *description,
                            Error *err) {
  FILE *log = o->log ? o->log : stderr;
  if (plan->version != ENGINE_PLAN_VERSION) {
    fprintf(log, "%s has the format %u, and this engine reads %d: it is built again; engine build writes a new one\n",
            path, plan->version, ENGINE_PLAN_VERSION);
    return 0;
  }
  if (engine_precision_find(plan->precision, &o->precision) != 0)
    return error_set(err, "%s: unknown precision \"%s\"; expected fp32, tf32, fp16 or bf16", path, plan->precision);
  if (o->max_batch == 0) o->max_batch = plan->max_batch;
  if (o->max_height == 0) o->max_height = plan->max_height;
  if (o->max_width == 0) o->max_width = plan->max_width;
  if (plan->batch_invariant) o->batch_invariant = 1;
  if (!plan->cuda_graphs) o->cuda_graphs = 0;
  if (strcmp(plan->device, description) == 0) {
    if (o->choices == NULL) o->choices = plan->choices;
  } else {
    fprintf(log, "%s was made on %s, and this is %s: it is built again; engine build writes a new one\n", path,
            plan->device, description);
  }
  return 0;
}

/* What a plan calls the device. */
static int engine_describe_device(const EngineOptions *o, char *text, size_t size, Error *err) {
  if (device_open(o->device, text, size, err) != 0) return -1;
  if (o->device == DEVICE_CPU) snprintf(text, size, "CPU %s", cpu_kernels(NULL));
  return 0;
}

/* A GPU needs a fifth of a second before it can do anything; meanwhile the file is read. */
typedef struct EngineStart {
  EngineOptions o;
  char description[256];
  Error err;
  int status, threaded;
  pthread_t thread;
} EngineStart;

static void *engine_start_device(void *argument) {
  EngineStart *start = (EngineStart *)argument;
  start->status = engine_describe_device(&start->o, start->description, sizeof start->description, &start->err);
  return NULL;
}

static void engine_start_begin(EngineStart *start, const EngineOptions *o) {
  memset(start, 0, sizeof *start);
  start->o = *o;
  start->threaded = pthread_create(&start->thread, NULL, engine_start_device, start) == 0;
  if (!start->threaded) engine_start_device(start);
}

static int engine_start_end(EngineStart *start, Error *err) {
  if (start->threaded) pthread_join(start->thread, NULL);
  if (start->status != 0) *err = start->err;
  return start->status;
}

int engine_open(Engine *e, const char *path, const EngineOptions *options, Error *err) {
  EngineStart start;
  EngineOptions o = *options;
  EngineSource source;
  const EnginePlanFile *plan;
  memset(e, 0, sizeof *e);
  engine_start_begin(&start, &o);
  const int status = engine_onnx_source(&source, path, &plan, err);
  Error device;
  if (engine_start_end(&start, &device) != 0) {
    if (status == 0) source.close(source.state);
    *err = device;
    return -1;
  }
  if (status != 0) return -1;
  if (plan && engine_take_plan(&o, plan, path, start.description, err) != 0) {
    source.close(source.state);
    return -1;
  }
  return engine_open_source(e, source, &o, err);
}

int engine_save(const Engine *engine, const char *path, Error *err) {
  const EngineState *e = engine->state;
  const EngineOptions *o = &e->options;
  EnginePlanFile *plan = (EnginePlanFile *)xcalloc(1, sizeof *plan);
  unsigned char *bytes = NULL;
  int status =
      e->source.bytes ? 0 : error_set(err, "%s is not a file of ONNX; a plan is made from one", e->source.name);
  if (status == 0) status = engine_describe_device(o, plan->device, sizeof plan->device, err);
  if (status == 0) status = e->source.bytes(e->source.state, &bytes, &plan->model_size, err);
  if (status == 0) {
    plan->model = bytes;
    plan->max_batch = o->max_batch;
    plan->max_height = o->max_height;
    plan->max_width = o->max_width;
    plan->batch_invariant = o->batch_invariant;
    plan->cuda_graphs = o->cuda_graphs;
    snprintf(plan->precision, sizeof plan->precision, "%s", engine_precision_name(o->precision));
    snprintf(plan->choices, sizeof plan->choices, "%s", e->choices);
    status = engine_plan_write(plan, path, err);
  }
  free(bytes);
  free(plan);
  return status;
}

const OnnxModel *engine_onnx_model(const Engine *e) {
  const EngineSource *source = &e->state->source;
  return source->graph == engine_onnx_graph ? &((const EngineOnnx *)source->state)->model : NULL;
}

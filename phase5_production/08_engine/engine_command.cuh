/* engine_command.cuh - engine build and engine run. */
#ifndef PHASE5_PRODUCTION_ENGINE_COMMAND_CUH
#define PHASE5_PRODUCTION_ENGINE_COMMAND_CUH

#include "common/options.h"
#include "common/philox.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase5_production/08_engine/engine_picture.cuh"

enum { ENGINE_MOST_FILES = 4096 };

typedef enum EngineVerb { ENGINE_DEMO, ENGINE_BUILD, ENGINE_RUN, ENGINE_BENCH, ENGINE_SHOW } EngineVerb;

typedef struct EngineCommand {
  CommonOptions common;
  EngineOptions options;
  EngineVerb verb;
  double start; /* seconds_now() when the program began */
  char model[PATH_MAX], output[PATH_MAX];
  int top, random, rounds, precision_given, file_count;
  const char *files[ENGINE_MOST_FILES];
} EngineCommand;

static inline double engine_mib(size_t bytes) { return (double)bytes / 1048576; }

static inline int engine_command_build(const Engine *e, const EngineCommand *c, Error *err) {
  struct stat info;
  const int kernels = engine_kernels(e);
  const EngineMemory memory = engine_memory(e);
  if (kernels > 0) printf("kernels of one inference: %d\n", kernels);
  printf("memory: %.2f MiB of weights, %.2f MiB of arrays\n", engine_mib(memory.weights), engine_mib(memory.arena));
  if (engine_save(e, c->output, err) != 0) return -1;
  printf("%s, %.2f MiB\n", c->output, stat(c->output, &info) == 0 ? engine_mib((size_t)info.st_size) : 0.0);
  if (!c->common.json) return 0;
  return json_result(json_pack("{s:s, s:s, s:s, s:s, s:i, s:f, s:f}", "program", "engine", "command", "build", "model",
                               c->model, "plan", c->output, "kernels", kernels, "weights_bytes", (double)memory.weights,
                               "arena_bytes", (double)memory.arena),
                     err);
}

/* -------------------------------------------------------------------------------------------------------------- run */

/* The numbers of largest values, the largest first; of equal ones the first. */
static inline void engine_top(const float *y, int count, int *top, int most) {
  for (int i = 0; i < most; i++) {
    top[i] = -1;
    for (int k = 0; k < count; k++) {
      int taken = 0;
      for (int j = 0; j < i; j++) taken |= top[j] == k;
      if (!taken && !isnan(y[k]) && (top[i] < 0 || y[k] > y[top[i]])) top[i] = k;
    }
  }
}

/* Shares of exp(y), as a softmax has them; of an output that has gone through one already, y itself. */
static inline double engine_share(const float *y, int count, int k) {
  double sum = 0, all = 0, most = -INFINITY;
  for (int i = 0; i < count; i++) {
    most = fmax(most, (double)y[i]);
    all += (double)y[i];
  }
  if (fabs(all - 1) < 1e-3 && most <= 1) return (double)y[k];
  for (int i = 0; i < count; i++) sum += exp((double)y[i] - most);
  return exp((double)y[k] - most) / sum;
}

/* The likeliest classes of one answer, with their names where the model has them. */
static inline json_t *engine_print_classes(const char *file, const float *y, int classes, int most,
                                           const json_t *names) {
  int *top = (int *)xmalloc((size_t)most * sizeof *top);
  json_t *list = json_array();
  engine_top(y, classes, top, most);
  printf("%s\n", file);
  for (int i = 0; i < most && top[i] >= 0; i++) {
    char number[32];
    const char *name = json_string_value(json_array_get(names, (size_t)top[i]));
    snprintf(number, sizeof number, "class %d", top[i]);
    const double share = engine_share(y, classes, top[i]);
    printf("  %6.2f %%  %s\n", 100 * share, name ? name : number);
    json_array_append_new(list, json_pack("{s:i, s:o, s:f}", "label", top[i], "name", json_text(name ? name : number),
                                          "probability", share));
  }
  free(top);
  return json_pack("{s:o, s:o}", "file", json_text(file), "top", list);
}

/* An output that is not a list of classes: its smallest and largest number, and their mean. */
static inline json_t *engine_print_range(const char *file, const EngineValue *value, const float *y, size_t count) {
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (size_t i = 0; i < count; i++) {
    least = fmin(least, (double)y[i]);
    most = fmax(most, (double)y[i]);
    sum += (double)y[i];
  }
  printf("%s: %s, %zu numbers from %.6g to %.6g, mean %.6g\n", file, value->name, count, least, most,
         sum / (double)count);
  return json_pack("{s:o, s:o, s:f, s:f, s:f}", "file", json_text(file), "output", json_text(value->name), "smallest",
                   least, "largest", most, "mean", sum / (double)count);
}

/* What the engine says of one sample: every output. */
static inline void engine_print_answer(Engine *e, const EngineCommand *c, const char *file, float *const *y, int sample,
                                       int height, int width, const json_t *names, json_t *rows) {
  for (int i = 0; i < engine_outputs(e); i++) {
    Error err;
    EngineValue value;
    size_t floats;
    if (engine_output_shape(e, i, height, width, &value, &floats, &err) != 0) die("%s", err.message);
    const float *own = y[i] + (size_t)sample * floats;
    if (i == 0 && value.rank == 2 && floats > 1) {
      const int most = (size_t)c->top < floats ? c->top : (int)floats;
      json_array_append_new(rows, engine_print_classes(file, own, (int)floats, most, names));
    } else {
      json_array_append_new(rows, engine_print_range(file, &value, own, floats));
    }
  }
}

/* Arrays for `batch` samples of every output, to be freed one by one. */
static inline void engine_output_arrays(Engine *e, int batch, int height, int width, float *y[ENGINE_MAX_VALUES]) {
  for (int i = 0; i < engine_outputs(e); i++) {
    Error err;
    EngineValue value;
    size_t floats;
    if (engine_output_shape(e, i, height, width, &value, &floats, &err) != 0) die("%s", err.message);
    y[i] = (float *)xcalloc(floats * (size_t)batch + 1, sizeof **y);
  }
}

static inline void engine_random_fill(float *x, size_t n, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < n; i++) x[i] = 2 * philox_uniform(philox4x32(seed, stream, i).word[0]) - 1;
}

/* A tensor of ONNX's test data as the first input. */
static inline int engine_run_tensor(Engine *e, const EngineCommand *c, const char *path, const json_t *names,
                                    json_t *rows, Error *err) {
  OnnxTensor t;
  float *y[ENGINE_MAX_VALUES];
  if (onnx_tensor_read(&t, path, err) != 0) return -1;
  const EngineValue x = engine_input(e, 0);
  const int most = engine_get_options(e).max_batch;
  int good = t.type == ONNX_FLOAT && t.rank == x.rank && engine_inputs(e) == 1;
  for (int i = 1; good && i < t.rank; i++) good = t.dim[i] > 0 && (x.dim[i] < 0 || x.dim[i] == t.dim[i]);
  const int height = t.rank == 4 ? (int)t.dim[2] : 0, width = t.rank == 4 ? (int)t.dim[3] : 0, batch = (int)t.dim[0];
  int status =
      good ? 0
           : error_set(err, "%s is not a float tensor of the shape that %s has, or the model has several inputs", path,
                       x.name);
  if (status == 0 && (t.dim[0] < 1 || t.dim[0] > most))
    status = error_set(err, "%s has %lld samples; 1 to %d are possible: declare more with --max-batch", path,
                       (long long)t.dim[0], most);
  if (status == 0) {
    engine_output_arrays(e, batch, height, width, y);
    const float *const inputs[] = {(const float *)t.data};
    status = engine_run_all(e, inputs, batch, height, width, y, err);
    for (int i = 0; status == 0 && i < batch; i++) engine_print_answer(e, c, path, y, i, height, width, names, rows);
    for (int i = 0; i < engine_outputs(e); i++) free(y[i]);
  }
  onnx_tensor_free(&t);
  return status;
}

static inline int engine_run_random(Engine *e, const EngineCommand *c, const json_t *names, json_t *rows, Error *err) {
  float *x[ENGINE_MAX_VALUES], *y[ENGINE_MAX_VALUES];
  const int batch = engine_get_options(e).max_batch;
  for (int i = 0; i < engine_inputs(e); i++) {
    EngineValue value;
    size_t floats;
    if (engine_input_shape(e, i, 0, 0, &value, &floats, err) != 0) return -1;
    x[i] = (float *)xmalloc(floats * (size_t)batch * sizeof **x);
    engine_random_fill(x[i], floats * (size_t)batch, c->common.seed, (uint32_t)i);
  }
  engine_output_arrays(e, batch, 0, 0, y);
  const int status = engine_run_all(e, (const float *const *)x, batch, 0, 0, y, err);
  for (int i = 0; status == 0 && i < batch; i++) engine_print_answer(e, c, "random", y, i, 0, 0, names, rows);
  for (int i = 0; i < engine_inputs(e); i++) free(x[i]);
  for (int i = 0; i < engine_outputs(e); i++) free(y[i]);
  return status;
}

static inline int engine_run_picture(Engine *e, const EngineCommand *c, const char *path, const json_t *names,
                                     json_t *rows, Error *err) {
  OnnxPreprocessing recipe;
  Image size;
  float *y[ENGINE_MAX_VALUES];
  if (engine_picture_recipe(e, &recipe, err) != 0) return -1;
  float *x = (float *)xmalloc((size_t)recipe.channels * recipe.height * recipe.width * sizeof *x);
  int status = engine_read_picture(x, path, &recipe, &size, err);
  if (status == 0) {
    engine_output_arrays(e, 1, recipe.height, recipe.width, y);
    const float *const inputs[] = {x};
    status = engine_run_all(e, inputs, 1, recipe.height, recipe.width, y, err);
    if (status == 0) engine_print_answer(e, c, path, y, 0, recipe.height, recipe.width, names, rows);
    for (int i = 0; i < engine_outputs(e); i++) free(y[i]);
  }
  free(x);
  return status;
}

static inline int engine_command_run(Engine *e, const EngineCommand *c, Error *err) {
  json_t *names = NULL, *rows = json_array();
  int status = 0;
  if (engine_onnx_model(e) && onnx_get_class_names(engine_onnx_model(e), 0, &names, err) != 0) status = -1;
  if (status == 0 && c->random) status = engine_run_random(e, c, names, rows, err);
  for (int i = 0; status == 0 && i < c->file_count; i++) {
    char path[PATH_MAX];
    const size_t length = strlen(c->files[i]);
    const int tensor = length > 3 && strcmp(c->files[i] + length - 3, ".pb") == 0;
    status = user_path(c->files[i], path, sizeof path, err);
    if (status == 0 && tensor) status = engine_run_tensor(e, c, path, names, rows, err);
    if (status == 0 && !tensor) status = engine_run_picture(e, c, path, names, rows, err);
  }
  if (status == 0 && c->common.json)
    status = json_result(json_pack("{s:s, s:s, s:s, s:O}", "program", "engine", "command", "run", "device",
                                   device_name(c->options.device), "rows", rows),
                         err);
  json_decref(names);
  json_decref(rows);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_COMMAND_CUH */

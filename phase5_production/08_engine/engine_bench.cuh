/* engine_bench.cuh - engine bench: how long an inference takes, of one sample and of the largest batch; the memory; how
 * soon the first answer came. With --batch-invariant also what that costs. */
#ifndef PHASE5_PRODUCTION_ENGINE_BENCH_CUH
#define PHASE5_PRODUCTION_ENGINE_BENCH_CUH

#include "phase5_production/08_engine/engine_command.cuh"

/* Of one batch size; seconds. host: arrays of the host, with their copies; device: arrays that are on the device. */
typedef struct EngineTimes {
  int batch;
  double host_p50, host_p99, device_p50, device_p99;
} EngineTimes;

static inline void engine_percentiles(double *samples, int rounds, double *p50, double *p99) {
  timer_stats(samples, (size_t)rounds); /* sorts */
  *p50 = timer_percentile(samples, (size_t)rounds, 0.5);
  *p99 = timer_percentile(samples, (size_t)rounds, 0.99);
}

static inline int engine_bench_batch(Engine *e, int batch, int rounds, float *const *x, float *const *y,
                                     EngineTimes *times, Error *err) {
  const Device device = engine_get_options(e).device;
  double *samples = (double *)xmalloc((size_t)rounds * sizeof *samples);
  times->batch = batch;
  int status = 0;
  for (int on_device = 0; on_device < 2 && status == 0; on_device++) {
    for (int round = -3; round < rounds && status == 0; round++) { /* three warm up: launched, recorded, replayed */
      const double start = seconds_now();
      if (on_device)
        status = engine_run_device(e, NULL, batch, 0, 0, NULL, err);
      else
        status = engine_run_all(e, (const float *const *)x, batch, 0, 0, y, err);
      if (on_device) device_synchronize(device);
      if (round >= 0) samples[round] = seconds_now() - start;
    }
    if (status == 0 && on_device) engine_percentiles(samples, rounds, &times->device_p50, &times->device_p99);
    if (status == 0 && !on_device) engine_percentiles(samples, rounds, &times->host_p50, &times->host_p99);
  }
  free(samples);
  return status;
}

static inline int engine_bench_arrays(Engine *e, int batch, float **x, float **y, Error *err) {
  for (int i = 0; i < engine_inputs(e); i++) {
    EngineValue value;
    size_t floats;
    if (engine_input_shape(e, i, 0, 0, &value, &floats, err) != 0) return -1;
    x[i] = (float *)xmalloc(floats * (size_t)batch * sizeof **x);
    engine_random_fill(x[i], floats * (size_t)batch, 1, (uint32_t)i);
  }
  engine_output_arrays(e, batch, 0, 0, y);
  return 0;
}

static inline json_t *engine_bench_row(const EngineTimes *t) {
  printf("%8d %12.1f %12.1f %12.1f %12.1f %14.1f\n", t->batch, t->device_p50 * 1e6, t->device_p99 * 1e6,
         t->host_p50 * 1e6, t->host_p99 * 1e6, t->batch / t->device_p50);
  return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f}", "batch", t->batch, "p50_us", t->device_p50 * 1e6, "p99_us",
                   t->device_p99 * 1e6, "host_p50_us", t->host_p50 * 1e6, "host_p99_us", t->host_p99 * 1e6,
                   "images_per_second", t->batch / t->device_p50);
}

/* Batches of 1 and of the largest size, a line for each. */
static inline int engine_bench_rows(Engine *e, const EngineCommand *c, EngineTimes times[2], int *count, json_t *rows,
                                    Error *err) {
  float *x[ENGINE_MAX_VALUES] = {NULL}, *y[ENGINE_MAX_VALUES] = {NULL};
  const int most = engine_get_options(e).max_batch;
  int status = engine_bench_arrays(e, most, x, y, err);
  printf("%8s %12s %12s %12s %12s %14s\n", "batch", "p50 us", "p99 us", "host p50 us", "host p99 us", "per second");
  const int fixed = engine_input(e, 0).dim[0] > 0;
  *count = most > 1 && !fixed ? 2 : 1;
  for (int i = 0; i < *count && status == 0; i++) {
    status = engine_bench_batch(e, i || fixed ? most : 1, c->rounds, x, y, &times[i], err);
    if (status == 0) json_array_append_new(rows, engine_bench_row(&times[i]));
  }
  for (int i = 0; i < ENGINE_MAX_VALUES; i++) {
    free(x[i]);
    free(y[i]);
  }
  return status;
}

/* The same without --batch-invariant, and the ratio. */
static inline int engine_bench_cost(const EngineCommand *c, const EngineTimes *own, int count, json_t *result,
                                    Error *err) {
  Engine other;
  EngineTimes times[2];
  EngineOptions o = c->options;
  json_t *rows = json_array();
  o.batch_invariant = 0;
  printf("\nwithout --batch-invariant\n");
  int status = engine_open(&other, c->model, &o, err);
  if (status == 0) {
    status = engine_bench_rows(&other, c, times, &count, rows, err);
    engine_close(&other);
  }
  for (int i = 0; i < count && status == 0; i++) {
    const double cost = own[i].device_p50 / times[i].device_p50;
    printf("batch %d: answers that do not depend on the batch take %.2f times as long\n", own[i].batch, cost);
    json_object_set_new(json_array_get(rows, (size_t)i), "batch_invariant_cost", json_real(cost));
  }
  json_object_set(result, "not_invariant", rows);
  json_decref(rows);
  return status;
}

/* A machine without a GPU emulates one, which has no speed: nothing is measured there. */
static inline int engine_has_speed(const EngineCommand *c) {
#ifdef SIMT_REWRITTEN
  return c->options.device == DEVICE_CPU;
#else
  (void)c;
  return 1;
#endif
}

static inline int engine_command_bench(Engine *e, const EngineCommand *c, Error *err) {
  float *x[ENGINE_MAX_VALUES] = {NULL}, *y[ENGINE_MAX_VALUES] = {NULL};
  EngineTimes times[2];
  int count = 0;
  if (!engine_has_speed(c))
    return error_set(err, "bench: an emulated GPU has no speed; take --device=cpu, or a machine with a GPU");
  const int one = engine_input(e, 0).dim[0] > 0 ? (int)engine_input(e, 0).dim[0] : 1;
  if (engine_bench_arrays(e, one, x, y, err) != 0 || engine_run_all(e, (const float *const *)x, one, 0, 0, y, err) != 0)
    return -1;
  const double first = seconds_now() - c->start;
  for (int i = 0; i < ENGINE_MAX_VALUES; i++) {
    free(x[i]);
    free(y[i]);
  }
  const EngineMemory memory = engine_memory(e);
  json_t *rows = json_array();
  json_t *result =
      json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:O}", "program", "engine", "command", "bench", "device",
                device_name(c->options.device), "precision", engine_precision_name(engine_get_options(e).precision),
                "first_answer_ms", first * 1e3, "weights_bytes", (double)memory.weights, "memory_bytes",
                (double)memory.total, "rows", rows);
  printf("%s, %s, %s\n", c->model, device_name(c->options.device),
         engine_precision_name(engine_get_options(e).precision));
  int status = engine_bench_rows(e, c, times, &count, rows, err);
  printf("memory %.2f MiB; first answer %.1f ms after the start\n", engine_mib(memory.total), first * 1e3);
  if (status == 0 && c->options.batch_invariant) status = engine_bench_cost(c, times, count, result, err);
  if (status == 0 && c->common.json) status = json_result(json_incref(result), err);
  json_decref(rows);
  json_decref(result);
  return status;
}

#endif /* PHASE5_PRODUCTION_ENGINE_BENCH_CUH */

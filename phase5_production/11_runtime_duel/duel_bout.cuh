/* duel_bout.cuh - a duel over one model: starts the contenders, compares their answers, measures them in turns. */
#ifndef PHASE5_PRODUCTION_DUEL_BOUT_CUH
#define PHASE5_PRODUCTION_DUEL_BOUT_CUH

#include "common/interrupt.h"
#include "common/philox.h"
#include "common/timer.h"
#include "phase5_production/11_runtime_duel/duel_compare.cuh"
#include "phase5_production/11_runtime_duel/duel_contenders.cuh"

enum { DUEL_START_SECONDS = 600, DUEL_SAMPLES = 20000 };

/* One contender on one model. What was not measured is NAN. */
typedef struct DuelRow {
  const DuelContender *contender;
  DuelProcess process;
  int fights; /* 0: reason says why not */
  int began;  /* its first answer was there */
  char reason[1024], runtime[80];
  double first; /* seconds from its start to its first answer */
  double build; /* of the engine: seconds for its plan, before */
  double p50, p99, batch_seconds;
  double host_bytes, gpu_bytes, disk_bytes;
  double difference, cosine; /* the worst of all samples: |a - b| in units of the row's largest; of the angle */
  int same, samples;         /* samples whose largest logit is that of the reference */
  double *times;             /* (count) of one sample, sorted in the end */
  size_t count;
  double *streams; /* (stream_count) seconds of a batch */
  size_t stream_count;
} DuelRow;

typedef struct DuelPlan {
  int batch, rounds, starts;
  double seconds; /* of a round, for each contender */
} DuelPlan;

typedef struct DuelBout {
  DuelSetting setting;
  DuelPlan plan;
  DuelRow row[DUEL_CONTENDERS];
  int rows, reference; /* reference: a row, or -1 */
  Device device;       /* where answers are compared */
  FILE *log;
} DuelBout;

static inline void duel_drop(DuelRow *row, const char *reason) {
  row->fights = 0;
  snprintf(row->reason, sizeof row->reason, "%s", reason);
  duel_process_end(&row->process);
}

/* NULL: the contender is out, with its sentence. */
static inline json_t *duel_ask(DuelRow *row, const char *question, double seconds) {
  Error err;
  json_t *answer = duel_process_ask(&row->process, question, seconds, &err);
  const char *missing = json_string_value(json_object_get(answer, "missing"));
  if (answer && missing == NULL) return answer;
  duel_drop(row, missing ? missing : err.message);
  json_decref(answer);
  return NULL;
}

/* Bytes of the GPU that are in use by anybody. */
static inline double duel_gpu_used(Device device) {
  size_t available = 0, total = 0;
  ON_DEVICE(device, CUDA_CHECK(cudaMemGetInfo(&available, &total)), (void)0);
  return (double)(total - available);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Starting */

/* The engine chooses its kernels in a process of its own, which writes the plan; a failure is seen at the start. */
static inline void duel_build(const DuelBout *b, DuelRow *row) {
  DuelProcess p;
  Error err;
  const DuelContender *c = row->contender;
  char plan[PATH_MAX];
  if (c->kind != DUEL_ENGINE) return;
  duel_file(plan, &b->setting, c, ".nnplan");
  const double start = seconds_now();
  if (duel_start(&p, c, &b->setting, 1, &err) != 0) return;
  json_decref(duel_process_answer(&p, DUEL_START_SECONDS, &err));
  row->build = seconds_now() - start;
  duel_process_end(&p);
}

/* From the start of the process to its first answer. More than once, because the first one reads files from the disk;
 * what compiles for minutes, once. */
static inline void duel_begin(DuelBout *b, DuelRow *row) {
  Error err;
  const DuelContender *c = row->contender;
  const int starts = c->way && strcmp(c->way, "compiled") == 0 ? 1 : b->plan.starts;
  duel_build(b, row);
  for (int i = 0; i < starts; i++) {
    if (i > 0) duel_process_end(&row->process);
    const double used = duel_gpu_used(b->device), start = seconds_now();
    if (duel_start(&row->process, c, &b->setting, 0, &err) != 0) {
      duel_drop(row, err.message);
      return;
    }
    json_t *answer = duel_process_answer(&row->process, DUEL_START_SECONDS, &err);
    row->first = seconds_now() - start;
    const char *missing = json_string_value(json_object_get(answer, "missing"));
    if (answer == NULL || missing) duel_drop(row, missing ? missing : err.message);
    json_decref(answer);
    if (row->process.pid == 0) return;
    if (b->device == DEVICE_GPU) row->gpu_bytes = duel_gpu_used(b->device) - used;
  }
  row->fights = row->began = 1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Comparing */

/* Its outputs for so many samples; NULL: they are not there. */
static inline float *duel_read_outputs(const DuelBout *b, const DuelRow *row, int samples, size_t *floats) {
  char path[PATH_MAX];
  duel_file(path, &b->setting, row->contender, ".y");
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  const long bytes = ftell(file);
  rewind(file);
  *floats = (size_t)bytes / sizeof(float) / (size_t)samples;
  float *y = (float *)xmalloc((size_t)bytes);
  const int read = bytes > 0 && fread(y, 1, (size_t)bytes, file) == (size_t)bytes;
  fclose(file);
  if (read && *floats > 0 && *floats * (size_t)samples * sizeof(float) == (size_t)bytes) return y;
  free(y);
  return NULL;
}

/* a, b (n,classes) of the host, compared on the duel's device. The worst of all rows goes into the contender's row. */
static inline void duel_compare_outputs(const DuelBout *b, DuelRow *row, const float *a, const float *reference, int n,
                                        int classes) {
  const size_t rows = (size_t)n, bytes = rows * (size_t)classes * sizeof(float);
  const Device device = b->device;
  float *x = (float *)device_alloc(device, 2 * bytes), *y = x + rows * (size_t)classes, worst;
  float *cosine = (float *)device_alloc(device, (3 * rows + 1) * sizeof *cosine), *difference = cosine + n;
  float *got = (float *)xmalloc(rows * sizeof *got);
  int *first = (int *)device_alloc(device, (2 * rows + 1) * sizeof *first);
  int *columns = (int *)xmalloc(2 * rows * sizeof *columns);
  device_upload(device, x, a, bytes);
  device_upload(device, y, reference, bytes);
  ON_DEVICE(device, duel_agreement_gpu(cosine, difference, cosine + 2 * n, x, y, n, classes),
            duel_agreement_cpu(cosine, difference, cosine + 2 * n, x, y, n, classes));
  ON_DEVICE(device, duel_top1_gpu(first, first + n, x, y, n, classes),
            duel_top1_cpu(first, first + n, x, y, n, classes));
  ON_DEVICE(device, duel_worst_gpu(cosine + 3 * n, first + 2 * n, difference, cosine + 2 * n, 1, n),
            duel_worst_cpu(cosine + 3 * n, first + 2 * n, difference, cosine + 2 * n, 1, n));
  device_download(device, got, cosine, rows * sizeof *got);
  device_download(device, &worst, cosine + 3 * n, sizeof worst);
  device_download(device, columns, first, 2 * rows * sizeof *columns);
  if (!((double)worst <= row->difference)) row->difference = (double)worst; /* NaN stays */
  for (int i = 0; i < n; i++) {
    if (!((double)got[i] >= row->cosine)) row->cosine = (double)got[i];
    row->same += columns[i] == columns[n + i];
  }
  row->samples += n;
  device_free(device, x);
  device_free(device, cosine);
  device_free(device, first);
  free(got);
  free(columns);
}

/* The first in float32 that fights, ONNX Runtime's CPU provider before others. */
static inline int duel_reference(const DuelBout *b) {
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < b->rows; i++)
      if (b->row[i].fights && (pass > 0 || duel_is(b->row[i].contender, "fp32"))) return i;
  return -1;
}

/* Chooses the reference, now: one that is gone since, or whose answer is not there, is none. NULL: nobody is left. */
static inline float *duel_reference_outputs(DuelBout *b, int samples, size_t *classes) {
  while ((b->reference = duel_reference(b)) >= 0) {
    float *y = duel_read_outputs(b, &b->row[b->reference], samples, classes);
    if (y) return y;
    duel_drop(&b->row[b->reference], "its output is not there, or is none for so many samples");
  }
  return NULL;
}

/* Who is too far from the reference is out. */
static inline void duel_compare(DuelBout *b, int samples) {
  size_t classes, others;
  float *reference = duel_reference_outputs(b, samples, &classes);
  for (int i = 0; i < b->rows && reference; i++) {
    DuelRow *row = &b->row[i];
    if (!row->fights) continue;
    const double tolerance = duel_tolerance(row->contender->precision);
    float *y = duel_read_outputs(b, row, samples, &others);
    if (y == NULL || others != classes) {
      duel_drop(row, "its output has another size than the reference's");
    } else {
      duel_compare_outputs(b, row, y, reference, samples, (int)classes);
      char text[200];
      snprintf(text, sizeof text, "its answers differ from %s by %.2g of the largest logit; up to %g was expected",
               b->row[b->reference].contender->title, row->difference, tolerance);
      if (!(row->difference <= tolerance)) duel_drop(row, text);
    }
    free(y);
  }
  free(reference);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Measuring */

static inline double *duel_grow(double *values, size_t count) {
  values = (double *)realloc(values, count * sizeof *values);
  if (values == NULL) die("out of memory: %zu times", count);
  return values;
}

/* So many runs fit into a round. */
static inline int duel_runs(const DuelBout *b, double each) {
  const double runs = b->plan.seconds / fmax(each, 1e-7);
  return runs < 1 ? 1 : runs > DUEL_SAMPLES / b->plan.rounds ? DUEL_SAMPLES / b->plan.rounds : (int)runs;
}

static inline void duel_round_times(DuelBout *b, DuelRow *row, int runs) {
  char question[64];
  snprintf(question, sizeof question, "times %d", runs);
  json_t *answer = duel_ask(row, question, DUEL_START_SECONDS), *times = json_object_get(answer, "times"), *value;
  size_t i;
  (void)b;
  row->times = duel_grow(row->times, row->count + json_array_size(times) + 1);
  json_array_foreach(times, i, value) row->times[row->count++] = json_number_value(value);
  json_decref(answer);
}

static inline void duel_round_stream(DuelBout *b, DuelRow *row, int runs) {
  char question[64];
  snprintf(question, sizeof question, "stream %d", runs);
  json_t *answer = duel_ask(row, question, DUEL_START_SECONDS);
  (void)b;
  row->streams = duel_grow(row->streams, row->stream_count + 1);
  if (answer) row->streams[row->stream_count++] = json_number_value(json_object_get(answer, "seconds")) / runs;
  json_decref(answer);
}

/* All on one batch: prepared, compared, then measured in turns, so that a machine that changes its speed does it to
 * all. `round` takes the figures. */
static inline void duel_measure(DuelBout *b, int batch, void round(DuelBout *, DuelRow *, int runs)) {
  char question[64];
  double each[DUEL_CONTENDERS];
  snprintf(question, sizeof question, "batch %d", batch);
  for (int i = 0; i < b->rows && !interrupt_requested(); i++)
    if (b->row[i].fights) json_decref(duel_ask(&b->row[i], question, DUEL_START_SECONDS));
  if (interrupt_requested()) return;
  duel_compare(b, batch);
  for (int i = 0; i < b->rows; i++) {
    json_t *answer = b->row[i].fights ? duel_ask(&b->row[i], "stream 1", DUEL_START_SECONDS) : NULL;
    each[i] = json_number_value(json_object_get(answer, "seconds"));
    json_decref(answer);
  }
  for (int r = 0; r < b->plan.rounds && !interrupt_requested(); r++)
    for (int i = 0; i < b->rows && !interrupt_requested(); i++)
      if (b->row[i].fights) round(b, &b->row[i], duel_runs(b, each[i]));
}

static inline void duel_facts(DuelBout *b, DuelRow *row) {
  char path[PATH_MAX];
  struct stat info;
  if (row->count > 0) {
    const TimerStats stats = timer_stats(row->times, row->count);
    row->p50 = stats.median;
    row->p99 = timer_percentile(row->times, row->count, 0.99);
  }
  if (row->stream_count > 0) row->batch_seconds = timer_stats(row->streams, row->stream_count).median;
  json_t *facts = row->fights ? duel_ask(row, "facts", 60) : NULL;
  if (facts) {
    row->host_bytes = json_get_number(facts, "host_bytes");
    duel_file(path, &b->setting, row->contender, ".nnplan");
    if (row->contender->kind != DUEL_ENGINE || access(path, R_OK) != 0) duel_path(path, &b->setting, row->contender);
    row->disk_bytes = json_get_number(facts, "loaded_bytes") + (stat(path, &info) == 0 ? (double)info.st_size : NAN);
    snprintf(row->runtime, sizeof row->runtime, "%s", json_string_value(json_object_get(facts, "name")));
  }
  json_decref(facts);
}

static inline void duel_write_samples(const DuelSetting *s, uint64_t seed) {
  char path[PATH_MAX];
  const size_t count = (size_t)s->most * duel_model_floats(&s->model);
  float *x = (float *)xmalloc(count * sizeof *x);
  for (size_t i = 0; i < count; i++) /* mean 0, variance 1 */
    x[i] = 3.4641016f * (philox_uniform(philox4x32(seed, 11, i).word[0]) - 0.5f);
  duel_file(path, s, NULL, ".bin");
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(x, sizeof *x, count, file) != count || fclose(file) != 0)
    die("cannot write %s: %s; TMPDIR names another folder", path, strerror(errno));
  free(x);
}

/* The folder for files that contenders share. */
static inline void duel_folder_make(DuelSetting *s) {
  const char *tmp = getenv("TMPDIR");
  snprintf(s->folder, sizeof s->folder, "%.4000s/nn_duel_XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
  if (mkdtemp(s->folder) == NULL) die("no folder %s can be made: %s; TMPDIR names another", s->folder, strerror(errno));
}

static inline void duel_folder_remove(const DuelSetting *s) {
  static const char *const ends[] = {".y", ".nnplan"};
  char path[PATH_MAX];
  duel_file(path, s, NULL, ".bin");
  unlink(path);
  duel_file(path, s, NULL, ".fp16.onnx");
  unlink(path);
  for (int i = 0; i < 2 * DUEL_CONTENDERS; i++) {
    duel_file(path, s, &duel_contenders[i / 2], ends[i % 2]);
    unlink(path);
  }
  rmdir(s->folder);
}

/* The model in float16, where a contender wants it. One that cannot be made is seen when it is opened. */
static inline void duel_make_half(const DuelBout *b) {
  char path[PATH_MAX];
  Error err;
  for (int i = 0; i < b->rows; i++) {
    const DuelContender *c = b->row[i].contender;
    if (c->kind != DUEL_ORT || !duel_is(c, "fp16")) continue;
    duel_path(path, &b->setting, c);
    if (duel_write_half(b->setting.model.path, path, &err) != 0) fprintf(b->log, "float16: %s\n", err.message);
    return;
  }
}

/* What each has shown so far, for whoever waits. */
static inline void duel_say_times(DuelBout *b, int batch) {
  for (int i = 0; i < b->rows; i++) {
    DuelRow *row = &b->row[i];
    const size_t count = batch == 1 ? row->count : row->stream_count;
    if (count > 0)
      fprintf(b->log, "%s, %s, batch %d: %.1f us\n", row->contender->title, row->contender->precision, batch,
              1e6 * timer_stats(batch == 1 ? row->times : row->streams, count).median);
  }
}

static inline void duel_say_state(const DuelBout *b, const DuelRow *row) {
  if (row->fights && isfinite(row->build))
    fprintf(b->log, "%s, %s: plan after %.2f s; with it the first answer after %.2f s\n", row->contender->title,
            row->contender->precision, row->build, row->first);
  else if (row->fights)
    fprintf(b->log, "%s, %s: first answer after %.2f s\n", row->contender->title, row->contender->precision,
            row->first);
  else
    fprintf(b->log, "%s, %s: left out: %s\n", row->contender->title, row->contender->precision, row->reason);
}

/* Why it cannot fight here; NULL: it may try. */
static inline const char *duel_absent(const DuelBout *b, const DuelContender *c) {
  if (c->kind == DUEL_RESERVED) return "its lesson comes later in the course: this row is kept for it";
  if (c->device == DEVICE_GPU && b->device == DEVICE_CPU) return "it computes on a GPU; give --device=gpu";
  if (duel_is(c, "int8") && b->setting.int8[0] == '\0')
    return "there is no quantised model, NAME.int8.onnx beside NAME.onnx; lesson 9 (int8) writes it";
  return NULL;
}

/* The rows, with their contenders, are there; setting and plan, too. */
static inline void duel_fight(DuelBout *b, uint64_t seed) {
  duel_folder_make(&b->setting);
  duel_write_samples(&b->setting, seed);
  duel_make_half(b);
  for (int i = 0; i < b->rows && !interrupt_requested(); i++) {
    DuelRow *row = &b->row[i];
    row->build = row->first = row->p50 = row->p99 = row->batch_seconds = row->host_bytes = row->gpu_bytes =
        row->disk_bytes = NAN;
    row->difference = 0;
    row->cosine = 1;
    const char *absent = duel_absent(b, row->contender);
    if (absent)
      duel_drop(row, absent);
    else
      duel_begin(b, row);
    duel_say_state(b, row);
  }
  b->reference = -1;
  duel_measure(b, 1, duel_round_times);
  duel_say_times(b, 1);
  if (b->plan.batch > 1) duel_measure(b, b->plan.batch, duel_round_stream);
  if (b->plan.batch > 1) duel_say_times(b, b->plan.batch);
  for (int i = 0; i < b->rows; i++) {
    duel_facts(b, &b->row[i]);
    duel_process_end(&b->row[i].process);
  }
  duel_folder_remove(&b->setting);
}

static inline void duel_free(DuelBout *b) {
  for (int i = 0; i < b->rows; i++) {
    free(b->row[i].times);
    free(b->row[i].streams);
  }
}

#endif /* PHASE5_PRODUCTION_DUEL_BOUT_CUH */

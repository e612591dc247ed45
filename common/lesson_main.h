/* lesson_main.h - the program of a lesson: checks every version, times or counts it, and prints the ladder.
 *
 *     int main(int argc, char **argv) {
 *       Lesson lesson = transpose_lesson();
 *       const LessonVersion versions[] = {
 *           transpose_version("naive", transpose_naive, "32 sectors a store; write along rows instead"),
 *           transpose_version("tiled", transpose_tiled, "bank conflicts; pad the tile's rows"),
 *           lesson_copy_version("the matrix, copied")};
 *       const LessonTable table = {"Transposing", versions, 3};
 *       return lesson_main(argc, argv, &lesson, &table, 1);
 *     }
 *
 * A table may be of another lesson of the same sizes: {"Backward", backward, 3, &backward_lesson}. Versions have
 * different names in all tables, so that --only finds them.
 *
 * On a GPU the table has times: against the roof (what the GPU's memory and its multipliers can do, measured in the
 * same minute), against the vendor's version, against the rung before. Without one, where times would say nothing, it
 * has the inspector's counts. `--json` prints the same for programs, `--plot` draws it, and `--only=tiled` runs that
 * version alone, once, for a profiler.
 */
#ifndef COMMON_LESSON_MAIN_H
#define COMMON_LESSON_MAIN_H

#include <malloc.h>

#include "common/lesson.h"
#include "common/lesson_plot.h"
#include "common/lesson_time.h"
#include "common/options.h"
#include "common/train_log.h"

/* Versions that belong together, from the first rung to the last. */
typedef struct LessonTable {
  const char *title;
  const LessonVersion *versions;
  int count;
  const Lesson *lesson = NULL; /* the program's; or another of the same sizes, a backward pass beside a forward one */
} LessonTable;

static inline const Lesson *lesson_of_table(const LessonTable *table, const Lesson *program) {
  return table->lesson != NULL ? table->lesson : program;
}

static inline LessonVersion lesson_copy_version(const char *limit) {
  LessonVersion version = lesson_version("device copy", NULL, limit);
  version.kind = LESSON_COPY;
  return version;
}

/* The vendor's: made like any other version of the lesson, then passed through here. */
static inline LessonVersion lesson_library_version(LessonVersion version) {
  version.kind = LESSON_LIBRARY;
  return version;
}

/* As fast as it may be, this computes something else: the same random numbers in another order, say. Made as above. */
static inline LessonVersion lesson_peer_version(LessonVersion version) {
  version.kind = LESSON_PEER;
  return version;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Options */

typedef struct LessonOptions {
  CommonOptions common;
  const Lesson *lesson;
  const char *only;                 /* NULL: all */
  LessonShape shape[LESSON_SHAPES]; /* instead of the lesson's */
  int shapes, check_only, plotted;
  char plot[PATH_MAX]; /* "": in the output folder */
} LessonOptions;

enum { OPTION_ONLY = 1, OPTION_SHAPE, OPTION_CHECK_ONLY, OPTION_PLOT };

/* "4096x4096,8192x4096" */
static inline void lesson_parse_shapes(const struct argp_state *state, const char *arg, LessonOptions *options) {
  const Lesson *lesson = options->lesson;
  const char *at = arg;
  do {
    LessonShape shape;
    memset(&shape, 0, sizeof shape);
    for (int i = 0; i < lesson->sizes; i++) {
      char *end;
      errno = 0;
      long size = strtol(at, &end, 10);
      char stop = i + 1 < lesson->sizes ? 'x' : '\0';
      if (end == at || size < 1 || (*end != stop && !(stop == '\0' && *end == ','))) {
        char example[80];
        lesson_shape_text(lesson, &lesson->counted, example);
        if (lesson->sizes == 1)
          argp_error(state, "--shape=%s: a size of at least 1 is expected, as in %s, or several with commas", arg,
                     example);
        argp_error(state,
                   "--shape=%s: %d sizes of at least 1 are expected, as in %s, or several such shapes with commas", arg,
                   lesson->sizes, example);
      }
      if (errno != 0 || size > INT_MAX) argp_error(state, "--shape=%s: a size is at most %d", arg, INT_MAX);
      shape.size[i] = (int)size;
      at = *end == '\0' ? end : end + 1;
    }
    if (options->shapes == LESSON_SHAPES) argp_error(state, "--shape: at most %d shapes", LESSON_SHAPES);
    options->shape[options->shapes++] = shape;
  } while (*at != '\0');
}

static inline error_t lesson_parse(int key, char *arg, struct argp_state *state) {
  LessonOptions *options = (LessonOptions *)state->input;
  switch (key) {
    case OPTION_ONLY:
      options->only = arg;
      return 0;
    case OPTION_SHAPE:
      lesson_parse_shapes(state, arg, options);
      return 0;
    case OPTION_CHECK_ONLY:
      options->check_only = 1;
      return 0;
    case OPTION_PLOT: {
      Error err;
      options->plotted = 1;
      if (arg == NULL) return 0;
      const char *end = strrchr(arg, '.');
      if (end == NULL || (strcmp(end, ".svg") != 0 && strcmp(end, ".png") != 0))
        argp_error(state, "--plot=%s: a name that ends in .svg or .png is expected", arg);
      if (user_path(arg, options->plot, sizeof options->plot, &err) != 0) argp_error(state, "--plot: %s", err.message);
      return 0;
    }
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What is too large */

/* An emulated GPU that counts every access takes two minutes for either, and 1 GiB is more than it gets through. */
#define LESSON_EMULATED_ELEMENTS 16777216.0
#define LESSON_EMULATED_FLOPS 1073741824.0
#define LESSON_EMULATED_BYTES 1073741824.0

/* Bytes that the arrays may take: the GPU's memory, and the host's, which holds a copy of them. */
static inline double lesson_memory(Device device, int real) {
  const double host = device_memory(DEVICE_CPU);
  if (device == DEVICE_CPU) return host;
  return fmin(host, real ? device_memory(DEVICE_GPU) : LESSON_EMULATED_BYTES);
}

/* 0, or -1 and one sentence: the shape is more than the versions, the memory or the reader's patience can take. */
static inline int lesson_fits(const Lesson *lesson, const LessonOptions *options, const LessonShape *shape, int real,
                              Error *err) {
  const Device device = options->common.device;
  const double gib = 1073741824.0;
  char text[80], smaller[80];
  lesson_shape_text(lesson, shape, text);
  lesson_shape_text(lesson, &lesson->counted, smaller);
  for (int i = 0; i < lesson->sizes && device == DEVICE_GPU; i++)
    if (shape->size[i] > lesson->most.size[i])
      return error_set(err,
                       "%s is too large a shape: %d is more than %d, the most that all versions of this lesson take "
                       "there; try --shape=%s",
                       text, shape->size[i], lesson->most.size[i], smaller);

  double bytes = 0, largest = 0;
  for (int a = 0; a < lesson->arrays; a++) {
    double elements = 1; /* not a size_t, which could overflow */
    for (const char *letter = lesson->array[a].letters; *letter != '\0'; letter++)
      elements *= (double)lesson_extent(lesson, *letter, shape->size);
    bytes += (double)lesson_element_bytes(&lesson->array[a]) * elements;
    largest = fmax(largest, elements);
  }
  double needed = bytes, memory = lesson_memory(device, real);
  if (device == DEVICE_GPU && options->only == NULL) {
    needed = 2 * bytes; /* two runs are compared */
    if (real && !options->check_only) needed = fmax(needed, lesson_time_bytes(bytes));
  }
  if (needed > memory)
    return error_set(err,
                     "%s is too large a shape: it needs %.1f GiB of memory, and there are %.1f GiB; try --shape=%s",
                     text, needed / gib, memory / gib, smaller);

  if (device == DEVICE_CPU || real) return 0;
  const char *advice = "the counts follow the geometry, so a small shape tells as much; try --shape=";
  if (largest > LESSON_EMULATED_ELEMENTS)
    return error_set(err, "%s is too large a shape: on an emulated GPU %.0f elements take minutes (at most %.0f); %s%s",
                     text, largest, LESSON_EMULATED_ELEMENTS, advice, smaller);
  double flops = lesson_flops(lesson, shape->size);
  if (flops > LESSON_EMULATED_FLOPS)
    return error_set(err, "%s is too large a shape: on an emulated GPU %.3g FLOPs take minutes (at most %.3g); %s%s",
                     text, flops, LESSON_EMULATED_FLOPS, advice, smaller);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Rows */

typedef struct LessonRow {
  const LessonVersion *version;
  int checked, counted;
  LessonResult check; /* the worst of all shapes */
  LessonCounts counts;
  double memory;  /* bytes beside the arrays, where the lesson tells */
  double seconds; /* 0: not measured, here and below */
  double rate;    /* FLOP/s, or bytes/s where the lesson only moves them */
  double roof_fraction, vs_library, vs_previous;
} LessonRow;

typedef struct LessonRun {
  const Lesson *lesson;
  const LessonOptions *options;
  char device[512];
  LessonTimes times;
  json_t *rows;
  int wrong, pictures;
} LessonRun;

/* What is said of the versions while there is somebody to read it. */
static inline void lesson_progress(const char *what, const char *name) {
  if (!isatty(2)) return;
  if (name == NULL)
    fputs("\r\033[K", stderr);
  else
    fprintf(stderr, "\r\033[K%s %s ...", what, name);
}

static inline void lesson_check_rows(LessonRun *run, const LessonShape *shape, LessonRow *rows, int count) {
  const Lesson *lesson = run->lesson;
  uint64_t seed = run->options->common.seed;
  LessonHost host;
  lesson_host_open(lesson, shape, seed, &host);
  lesson_expect(lesson, shape, &host);
  for (int i = 0; i < count; i++) {
    LessonRow *row = &rows[i];
    if (row->version->kind == LESSON_COPY || row->version->kind == LESSON_PEER) continue;
    lesson_progress("checking", row->version->name);
    nvtxRangePushA(row->version->name);
    row->checked = 1;
    if (lesson_verify_all(lesson, row->version, seed, &row->check) == 0) {
      LessonResult result;
      if (lesson_verify_on(lesson, row->version, shape, &host, &result) != 0 ||
          result.error * row->check.tolerance > row->check.error * result.tolerance)
        row->check = result;
      row->counted = result.inspected && row->version->kind == LESSON_RUNG; /* a library's kernels are not seen */
      row->counts = result.counts;
      if (lesson->memory != NULL) row->memory = lesson->memory();
    }
    if (!row->check.ok) run->wrong++;
    nvtxRangePop();
  }
  lesson_progress(NULL, NULL);
  lesson_host_close(lesson, &host);
}

/* Bytes that a version moves at least, or the FLOPs where the lesson counts them. */
static inline double lesson_work(const Lesson *lesson, const LessonVersion *version, const int *size) {
  if (version->kind != LESSON_COPY) return lesson->flops != NULL ? lesson->flops(size) : lesson_bytes(lesson, size);
  int to, from;
  return 2.0 * (double)lesson_copied_bytes(lesson, size, &to, &from);
}

static inline void lesson_time_rows(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                                    LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  lesson_progress("timing", table->title);
  lesson_time(lesson, table->versions, table->count, shape, run->options->common.seed, &run->times);
  lesson_progress(NULL, NULL);
  double library = 0, previous = 0;
  double seconds_of_flops = lesson_flops(lesson, shape->size) / run->times.flops_per_second;
  double seconds_of_bytes = lesson_bytes(lesson, shape->size) / run->times.copy_bytes_per_second;
  for (int i = 0; i < table->count; i++) {
    LessonRow *row = &rows[i];
    row->seconds = run->times.seconds[i];
    row->rate = lesson_work(lesson, row->version, shape->size) / row->seconds;
    if (row->version->kind != LESSON_RUNG) library = row->rate;
  }
  for (int i = 0; i < table->count; i++) {
    LessonRow *row = &rows[i];
    row->roof_fraction = fmax(seconds_of_flops, seconds_of_bytes) / row->seconds;
    if (row->version->kind == LESSON_COPY) row->roof_fraction = row->rate / run->times.copy_bytes_per_second;
    if (row->version->kind != LESSON_RUNG) continue;
    if (library > 0) row->vs_library = row->rate / library;
    if (previous > 0) row->vs_previous = row->rate / previous;
    previous = row->rate;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The table */

/* What the error columns say: nothing is compared with a copy. */
static inline void lesson_print_check(const LessonRow *row) {
  if (!row->checked)
    printf("%9s %9s", "-", "-");
  else if (!row->check.ok)
    printf("%9s %9s", "WRONG", "-");
  else
    printf("%9.2g %9.2g", row->check.error, row->check.tolerance);
}

static inline void lesson_print_limit(const LessonVersion *version) {
  putchar('\n');
  if (version->limit[0] != '\0') printf("    %s\n", version->limit);
}

static inline void lesson_print_factor(double factor) {
  if (factor > 0)
    printf(" %9.2fx", factor);
  else
    printf(" %10s", "-");
}

/* The last column, if the lesson has it: of the header (row NULL), or of a row. */
static inline void lesson_print_memory(const Lesson *lesson, const LessonRow *row) {
  if (lesson->memory == NULL) return;
  if (row == NULL)
    printf(" %13s", "more memory");
  else
    printf(" %9.2f MiB", row->memory / 1048576);
}

static inline void lesson_print_times(const LessonRun *run, const LessonRow *rows, int count) {
  const Lesson *lesson = run->lesson;
  printf("%-20s %9s %9s %12s %10s %8s %10s %10s", "version", "error", "tolerance", "time",
         lesson->flops != NULL ? "GFLOP/s" : "GB/s", "of roof", "x library", "x above");
  lesson_print_memory(lesson, NULL);
  putchar('\n');
  for (int i = 0; i < count; i++) {
    const LessonRow *row = &rows[i];
    printf("%-20s ", row->version->name);
    lesson_print_check(row);
    if (row->seconds > 0) {
      printf(" %9.1f us %10.1f %6.1f %%", row->seconds * 1e6, row->rate * 1e-9, 100 * row->roof_fraction);
      lesson_print_factor(row->vs_library);
      lesson_print_factor(row->vs_previous);
      lesson_print_memory(lesson, row);
    }
    lesson_print_limit(row->version);
  }
  printf("Roofs, measured in between: %.0f GB/s copied, %.0f GFLOP/s multiplied and added at %.0f to %.0f MHz.\n",
         run->times.copy_bytes_per_second * 1e-9, run->times.flops_per_second * 1e-9, run->times.slowest_clock * 1e-6,
         run->times.fastest_clock * 1e-6);
  if (run->times.short_launches > 0)
    printf("Times below %.0f us: %s\n", LESSON_SHORT * 1e6,
           LESSON_GRAPHS
               ? "of many launches in one CUDA graph."
               : "with the gap between two launches; nvcc --default-stream per-thread times them in a graph.");
}

/* "4.00", or "-" where there were no requests */
static inline void lesson_print_ratio(double cost, double requests) {
  if (requests > 0)
    printf(" %8.2f", cost / requests);
  else
    printf(" %8s", "-");
}

/* Sectors that carry what was asked for, were it packed: 12.5 % when each lane uses 4 of 32 bytes. */
static inline double lesson_sectors_used(const LessonCounts *c) {
  double sectors = c->global_load_sectors + c->global_store_sectors;
  return sectors > 0 ? (c->global_load_ideal_sectors + c->global_store_ideal_sectors) / sectors : 1;
}

static inline void lesson_print_counts(const Lesson *lesson, const LessonRow *rows, int count) {
  printf("%-20s %9s %9s |         global memory sectors       |        shared memory wavefronts\n", "", "", "");
  printf("%-20s %9s %9s | %9s %7s %8s %8s | %9s %8s %8s %10s", "version", "error", "tolerance", "all", "needed",
         "a load", "a store", "all", "a load", "a store", "conflicts");
  lesson_print_memory(lesson, NULL);
  putchar('\n');
  for (int i = 0; i < count; i++) {
    const LessonRow *row = &rows[i];
    const LessonCounts *c = &row->counts;
    if (!row->checked && row->version->kind != LESSON_RUNG) continue; /* no kernel of ours, no counts */
    printf("%-20s ", row->version->name);
    lesson_print_check(row);
    if (row->counted) {
      printf(" | %9.0f %5.0f %%", c->global_load_sectors + c->global_store_sectors, 100 * lesson_sectors_used(c));
      lesson_print_ratio(c->global_load_sectors, c->global_load_requests);
      lesson_print_ratio(c->global_store_sectors, c->global_store_requests);
      printf(" | %9.0f", c->shared_load_wavefronts + c->shared_store_wavefronts);
      lesson_print_ratio(c->shared_load_wavefronts, c->shared_load_requests);
      lesson_print_ratio(c->shared_store_wavefronts, c->shared_store_requests);
      printf(" %10.0f", c->shared_load_conflicts + c->shared_store_conflicts);
      lesson_print_memory(lesson, row);
    }
    lesson_print_limit(row->version);
  }
}

static inline void lesson_print_wrong(const LessonRow *rows, int count) {
  for (int i = 0; i < count; i++)
    if (rows[i].checked && !rows[i].check.ok) printf("\nWRONG: %s\n", rows[i].check.message);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* JSON */

/* LessonCounts under the names that Nsight Compute gives them; NULL: it has no such count. */
static inline void lesson_json_counts(json_t *object, const LessonCounts *counts) {
  static const char *const names[] = {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                      NULL,
                                      "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
                                      "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                      NULL,
                                      "smsp__inst_executed_op_shared_ld.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                      "smsp__inst_executed_op_shared_st.sum",
                                      "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                                      "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"};
  const double *count = &counts->global_load_requests; /* doubles one after the other */
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i] != NULL) json_object_set_new(object, names[i], json_integer((json_int_t)count[i]));
}

static inline void lesson_json_rows(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                                    const LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  char text[80];
  for (int i = 0; i < table->count; i++) {
    const LessonRow *row = &rows[i];
    json_t *object = json_pack("{s:s, s:s, s:s}", "version", row->version->name, "table", table->title, "shape",
                               lesson_shape_text(lesson, shape, text));
    if (row->checked) {
      json_object_set_new(object, "ok", json_boolean(row->check.ok));
      json_object_set_new(object, "error", json_number(row->check.error));
      json_object_set_new(object, "tolerance", json_number(row->check.tolerance));
      if (!row->check.ok) json_object_set_new(object, "message", json_text(row->check.message));
      if (row->check.ok && lesson->memory != NULL)
        json_object_set_new(object, "memory_bytes", json_integer((json_int_t)row->memory));
    }
    if (row->seconds > 0) {
      json_object_set_new(object, "time_us", json_real(row->seconds * 1e6));
      if (lesson->flops != NULL && row->version->kind != LESSON_COPY)
        json_object_set_new(object, "gflops", json_real(row->rate * 1e-9));
      else
        json_object_set_new(object, "gbps", json_real(row->rate * 1e-9));
      json_object_set_new(object, "roof_fraction", json_real(row->roof_fraction));
    }
    if (row->vs_library > 0) json_object_set_new(object, "vs_library", json_real(row->vs_library));
    if (row->vs_previous > 0) json_object_set_new(object, "vs_previous", json_real(row->vs_previous));
    if (row->counted) lesson_json_counts(object, &row->counts);
    json_array_append_new(run->rows, object);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Pictures */

static inline void lesson_draw(LessonRun *run, const LessonTable *table, const LessonShape *shape,
                               const LessonRow *rows) {
  const Lesson *lesson = run->lesson;
  LessonPlot plot;
  char text[80], path[PATH_MAX + 16];
  Error err;
  memset(&plot, 0, sizeof plot);
  snprintf(plot.title, sizeof plot.title, "%.100s, %s, %.100s", table->title, lesson_shape_text(lesson, shape, text),
           rows[0].seconds > 0 ? run->device : "counted by the inspector");
  for (int i = 0; i < table->count; i++) {
    const LessonRow *row = &rows[i];
    const LessonCounts *c = &row->counts;
    if (row->seconds <= 0 && !row->counted) continue;
    LessonBar *bar = &plot.bar[plot.bars++];
    bar->name = row->version->name;
    bar->library = row->version->kind != LESSON_RUNG;
    bar->rate = row->rate;
    bar->sectors = c->global_load_sectors + c->global_store_sectors;
    bar->wavefronts = c->shared_load_wavefronts + c->shared_store_wavefronts;
    bar->intensity = lesson_flops(lesson, shape->size) / lesson_bytes(lesson, shape->size);
    plot.timed |= row->seconds > 0;
  }
  plot.flops = lesson->flops != NULL;
  plot.copy_bytes_per_second = run->times.copy_bytes_per_second;
  plot.flops_per_second = run->times.flops_per_second;
  if (plot.bars == 0) return;
  const char *end = strrchr(run->options->plot, '.'); /* the second picture is ladder_2.svg */
  if (run->pictures++ == 0)
    snprintf(path, sizeof path, "%s", run->options->plot);
  else
    snprintf(path, sizeof path, "%.*s_%d%s", (int)(end - run->options->plot), run->options->plot, run->pictures, end);
  if (lesson_plot(&plot, path, &err) != 0) die("%s", err.message);
  printf("Drawn: %s\n", path);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The program */

static inline const LessonVersion *lesson_find(const LessonTable *tables, int count, const char *name,
                                               const Lesson **lesson) {
  for (int t = 0; t < count; t++)
    for (int v = 0; v < tables[t].count; v++) {
      if (strcmp(tables[t].versions[v].name, name) != 0) continue;
      *lesson = lesson_of_table(&tables[t], *lesson);
      return &tables[t].versions[v];
    }
  fprintf(stderr, "%s: --only=%s: there is no such version; there are\n", program_invocation_short_name, name);
  for (int t = 0; t < count; t++)
    for (int v = 0; v < tables[t].count; v++) fprintf(stderr, "  %s\n", tables[t].versions[v].name);
  exit(2);
}

/* One launch and nothing else, so that a profiler sees what it came for. */
static inline void lesson_run_only(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                                   uint64_t seed) {
  float *array[LESSON_ARRAYS];
  LessonHost host;
  char text[80];
  lesson_host_open(lesson, shape, seed, &host);
  lesson_gpu_open(lesson, &host, 0, array);
  printf("%s on %s, one launch\n", version->name, lesson_shape_text(lesson, shape, text));
  nvtxRangePushA(version->name);
  if (version->kind == LESSON_COPY)
    lesson_copy(lesson, array, shape->size);
  else
    lesson->call(version->launch, array, shape->size);
  CUDA_CHECK(cudaDeviceSynchronize());
  nvtxRangePop();
  lesson_gpu_close(lesson, 0, array);
  lesson_host_close(lesson, &host);
}

/* --device=cpu: the definition alone. */
static inline void lesson_run_reference(LessonRun *run, const LessonShape *shape) {
  const Lesson *lesson = run->lesson;
  LessonHost host;
  char text[80];
  lesson_host_open(lesson, shape, run->options->common.seed, &host);
  double start = seconds_now();
  lesson->call(lesson->reference, host.array, shape->size);
  double seconds = seconds_now() - start;
  lesson_shape_text(lesson, shape, text);
  printf("The reference, in plain loops, on %s: %.3f ms\n", text, seconds * 1e3);
  json_array_append_new(run->rows,
                        json_pack("{s:s, s:s, s:f}", "version", "reference", "shape", text, "time_us", seconds * 1e6));
  lesson_host_close(lesson, &host);
}

/* All versions of a table on one shape. */
static inline void lesson_run_table(LessonRun *run, const LessonTable *table, const LessonShape *shape, int real) {
  static LessonRow rows[LESSON_VERSIONS];
  char text[80];
  if (table->count > LESSON_VERSIONS) die("lesson %s: more than %d versions", run->lesson->name, LESSON_VERSIONS);
  memset(rows, 0, sizeof rows);
  memset(&run->times, 0, sizeof run->times);
  run->lesson = lesson_of_table(table, run->options->lesson);
  for (int i = 0; i < table->count; i++) rows[i].version = &table->versions[i];
  int wrong_before = run->wrong;
  lesson_check_rows(run, shape, rows, table->count);
  if (real && !run->options->check_only && run->wrong == wrong_before) lesson_time_rows(run, table, shape, rows);

  printf("\n%s, %s; checked on %d shapes\n\n", table->title, lesson_shape_text(run->lesson, shape, text),
         run->lesson->checks + 1);
  if (rows[0].seconds > 0)
    lesson_print_times(run, rows, table->count);
  else
    lesson_print_counts(run->lesson, rows, table->count);
  lesson_print_wrong(rows, table->count);
  lesson_json_rows(run, table, shape, rows);
  if (run->options->plotted && table->count > 1 && run->wrong == wrong_before) lesson_draw(run, table, shape, rows);
}

static inline int lesson_main(int argc, char **argv, const Lesson *lesson, const LessonTable *tables, int count) {
  static const struct argp_option help[] = {
      {"only", OPTION_ONLY, "VERSION", 0, "Run this version alone, once, for a profiler", 0},
      {"shape", OPTION_SHAPE, "AxB...", 0, "Instead of the lesson's shape; several with commas", 0},
      {"check-only", OPTION_CHECK_ONLY, NULL, 0, "Check, but do not measure", 0},
      {"plot", OPTION_PLOT, "FILE", OPTION_ARG_OPTIONAL, "Draw the ladder (default: into the output folder, as SVG)",
       0},
      OPTION_END};
  static char doc[512];
  snprintf(doc, sizeof doc, "%s: every version checked, measured, and beside the others.", tables[0].title);
  static const struct argp own = {help, lesson_parse, NULL, doc, NULL, NULL, NULL};
  static LessonOptions options;
  /* Each version gets arrays of its own, and new pages take as long as the work: keep those of the last one. */
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#ifdef SIMT_REWRITTEN
  const int real = 0;
#else
  const int real = 1;
#endif
  const int quiet = getenv("SIMT_REPORT") == NULL && setenv("SIMT_REPORT", "none", 1) == 0; /* the table says it all */
  options.lesson = lesson;
  options.common = options_default(OPTIONS_LESSON | OPTIONS_OUTPUT_DIR);
  options.common.device = DEVICE_GPU; /* real or emulated: kernels are what a lesson is about */
  options_parse(&options.common, &own, &options, argc, argv);

  const Lesson *only_lesson = lesson;
  const LessonVersion *only = options.only != NULL ? lesson_find(tables, count, options.only, &only_lesson) : NULL;
  if (only != NULL && quiet) unsetenv("SIMT_REPORT"); /* then the inspector is the profiler */
  Error err;
  static LessonRun run;
  run.lesson = lesson;
  run.options = &options;
  run.rows = json_array();
  if (device_open(options.common.device, run.device, sizeof run.device, &err) != 0) die("%s", err.message);
  printf("%s on %s\n", lesson->name, run.device);
  if (options.shapes == 0) options.shape[options.shapes++] = real ? lesson->timed : lesson->counted;
  for (int s = 0; s < options.shapes; s++) {
    int fits = 1;
    for (int t = 0; t < count && fits; t++)
      fits = lesson_fits(lesson_of_table(&tables[t], lesson), &options, &options.shape[s], real, &err) == 0;
    if (fits) continue;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, err.message);
    exit(2);
  }
  if (options.plotted && options.plot[0] == '\0') {
    if (make_directories(options.common.output_dir, &err) != 0) die("%s", err.message);
    if ((size_t)snprintf(options.plot, sizeof options.plot, "%s/%s.svg", options.common.output_dir, lesson->name) >=
        sizeof options.plot)
      die("--output-dir: the path is too long");
  }
  if (options.plotted && lesson_plot_possible(options.plot, &err) != 0) die("%s", err.message);

  if (options.common.device == DEVICE_CPU) {
    for (int s = 0; s < options.shapes; s++) lesson_run_reference(&run, &options.shape[s]);
  } else if (options.only != NULL) {
    for (int s = 0; s < options.shapes; s++) lesson_run_only(only_lesson, only, &options.shape[s], options.common.seed);
  } else {
    fflush(stdout); /* it writes on stderr */
    if (lesson->before != NULL) lesson->before();
    for (int s = 0; s < options.shapes; s++)
      for (int t = 0; t < count; t++) lesson_run_table(&run, &tables[t], &options.shape[s], real);
  }
  if (options.common.json) {
    json_t *object = json_pack("{s:s, s:s, s:O}", "lesson", lesson->name, "device", device_name(options.common.device),
                               "rows", run.rows);
    if (options.common.device == DEVICE_GPU) json_object_set_new(object, "gpu", json_text(run.device));
    if (json_result(object, &err) != 0) die("%s", err.message);
  }
  json_decref(run.rows);
  stdout_finish();
  return run.wrong > 0;
}

#endif /* COMMON_LESSON_MAIN_H */

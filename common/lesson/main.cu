/* main.cu - main.h: the program of a lesson. Compiled once, and not in every lesson. */
#include "common/lesson/main.h"

#include <malloc.h>

#include "common/lesson/table.h"
#include "common/threads_begin.h"

static const LessonVersion *lesson_find(const LessonTable *tables, int count, const char *name, const Lesson **lesson) {
  for (int t = 0; t < count; t++)
    for (int v = 0; v < tables[t].count; v++) {
      if (strcmp(tables[t].versions[v].name, name) != 0) continue;
      *lesson = lesson_of_table(&tables[t], *lesson);
      return &tables[t].versions[v];
    }
  fprintf(stderr, "%s: --only=%s: there is no such version; there are\n", program_invocation_short_name, name);
  for (int t = 0; t < count; t++)
    for (int v = 0; v < tables[t].count; v++) fprintf(stderr, "  %s\n", tables[t].versions[v].name);
  fprintf(stderr, "  all: each of them, once\n");
  if ((*lesson)->before) (*lesson)->before(); /* names those that this machine cannot run */
  exit(2);
}

/* One launch and nothing else, so that a profiler sees what it came for. */
static void lesson_run_only(const Lesson *lesson, const LessonVersion *version, const LessonShape *shape,
                            uint64_t seed) {
  float *array[LESSON_ARRAYS];
  LessonHost host;
  char text[LESSON_TEXT];
  lesson_host_open(lesson, shape, seed, &host);
  lesson_gpu_open(lesson, &host, 0, array);
  lesson_workspace_open(lesson, version, shape->size, 0, array);
  printf("%s on %s, one launch\n", version->name, lesson_shape_text(lesson, shape, text));
  nvtxRangePushA(version->name);
  if (version->kind == LESSON_COPY)
    lesson_copy(lesson, array, shape->size);
  else
    lesson->call(version->launch, array, shape->size);
  CUDA_CHECK(cudaDeviceSynchronize());
  nvtxRangePop();
  lesson_workspace_close(lesson, 0, array);
  lesson_gpu_close(lesson, 0, array);
  lesson_host_close(lesson, &host);
}

/* --only=all: every version that takes the shape. */
static void lesson_run_each(const Lesson *lesson, const LessonTable *tables, int count, const LessonShape *shape,
                            uint64_t seed) {
  Error err;
  for (int t = 0; t < count; t++) {
    const Lesson *of = lesson_of_table(&tables[t], lesson);
    for (int v = 0; v < tables[t].count; v++) {
      const LessonVersion *version = &tables[t].versions[v];
      if (lesson_refuses(of, version, shape, &err) == 0)
        lesson_run_only(of, version, shape, seed);
      else
        printf("%s: %s\n", version->name, err.message);
    }
  }
}

/* --device=cpu: the definition alone. */
static void lesson_run_reference(LessonRun *run, const LessonShape *shape) {
  const Lesson *lesson = run->lesson;
  LessonHost host;
  char text[LESSON_TEXT];
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

/* Does each version take all shapes that are checked? */
static int lesson_takes_all(const Lesson *lesson, const LessonTable *table) {
  Error err;
  for (int i = 0; i < table->count; i++)
    for (int s = 0; s < lesson->checks; s++)
      if (lesson_version_fits(lesson, &table->versions[i], lesson->check[s].size, &err) != 0) return 0;
  return 1;
}

/* All versions of a table on one shape. */
static void lesson_run_table(LessonRun *run, const LessonTable *table, const LessonShape *shape, int real) {
  static LessonRow rows[LESSON_VERSIONS];
  char text[LESSON_TEXT];
  if (table->count > LESSON_VERSIONS) die("lesson %s: more than %d versions", run->lesson->name, LESSON_VERSIONS);
  memset(rows, 0, sizeof rows);
  memset(&run->times, 0, sizeof run->times);
  run->lesson = lesson_of_table(table, run->options->lesson);
  for (int i = 0; i < table->count; i++) rows[i].version = &table->versions[i];
  int wrong_before = run->wrong;
  lesson_check_rows(run, shape, rows, table->count);
  if (real && !run->options->check_only && run->wrong == wrong_before) lesson_time_rows(run, table, shape, rows);

  const int alone = run->options->alone, shapes = alone ? 1 : run->lesson->checks + 1;
  printf("\n%s, %s; checked on %d shape%s%s\n\n", table->title, lesson_shape_text(run->lesson, shape, text), shapes,
         shapes == 1 ? "" : "s",
         alone || lesson_takes_all(run->lesson, table) ? "" : ", or those of them that a version takes");
  if (lesson_rows_timed(rows, table->count))
    lesson_print_times(run, rows, table->count);
  else
    lesson_print_counts(run->lesson, rows, table->count);
  lesson_print_wrong(rows, table->count);
  lesson_json_rows(run, table, shape, rows);
  if (run->options->plotted && table->count > 1 && run->wrong == wrong_before) lesson_draw(run, table, shape, rows);
}

int lesson_main(int argc, char **argv, const Lesson *lesson, const LessonTable *tables, int count) {
  const struct argp_option help[] = {
      {"only", OPTION_ONLY, "VERSION", 0, "Run this version alone, once, for a profiler; all: each version once", 0},
      {"shape", OPTION_SHAPE, "AxB...", 0, lesson_shape_help(lesson), 0},
      {"shape-alone", OPTION_ALONE, NULL, 0, "Check on this shape alone, and not on the lesson's ragged ones, too", 0},
      {"check-only", OPTION_CHECK_ONLY, NULL, 0, "Check, but do not measure", 0},
      {"plot", OPTION_PLOT, "FILE", OPTION_ARG_OPTIONAL, "Draw the ladder (default: into the output folder, as SVG)",
       0},
      OPTION_END};
  static char doc[512];
  snprintf(doc, sizeof doc, "%s: every version checked, measured, and beside the others.", tables[0].title);
  const struct argp own = {help, lesson_parse, NULL, doc, NULL, NULL, NULL};
  static LessonOptions options;
  threads_begin();
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
  const int each = options.only != NULL && strcmp(options.only, "all") == 0;
  const LessonVersion *only =
      options.only != NULL && !each ? lesson_find(tables, count, options.only, &only_lesson) : NULL;
  if (options.only != NULL && quiet) unsetenv("SIMT_REPORT"); /* then the inspector is the profiler */
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
    for (int t = 0; t < count && fits; t++) {
      const Lesson *of = lesson_of_table(&tables[t], lesson);
      if (only == NULL || of == only_lesson) fits = lesson_fits(of, &options, &options.shape[s], real, &err) == 0;
    }
    if (fits && only != NULL) fits = lesson_refuses(only_lesson, only, &options.shape[s], &err) == 0;
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
  } else if (each) {
    for (int s = 0; s < options.shapes; s++)
      lesson_run_each(lesson, tables, count, &options.shape[s], options.common.seed);
  } else if (only != NULL) {
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

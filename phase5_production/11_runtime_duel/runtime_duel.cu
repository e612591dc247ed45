/* runtime_duel.cu - the same model in several runtimes: our engine, ONNX Runtime, PyTorch.
 *
 *     bazel run //phase5_production:runtime_duel -- lenet.onnx resnet18.onnx
 *     bazel run --config=cuda //phase5_production:runtime_duel -- --device=gpu resnet18.onnx
 *     bazel run //phase5_production:runtime_duel -- --only=ort_cpu,engine_cpu --threads=2 resnet18.onnx
 *
 * One command, one table and one chart for each model. First all answer the same samples, and their answers are
 * compared: who is wrong is not measured. Then they are measured in turns. Who is not installed has a row that says
 * why it is empty.
 */
#include "common/options.h"
#include "common/plot.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase5_production/11_runtime_duel/duel_bout.cuh"

enum { DUEL_MODELS = 64 };

typedef struct Options {
  CommonOptions common;
  const char *only, *python, *int8, *draw, *be, *folder, *shape;
  const char *models[DUEL_MODELS];
  int model_count, threads, gpu, rounds, starts, side, most, build;
  double seconds;
} Options;

enum {
  ONLY = 1,
  PYTHON,
  INT8,
  DRAW,
  THREADS,
  GPU,
  ROUNDS,
  STARTS,
  SECONDS,
  SIDE,
  BE,
  FOLDER,
  SHAPE,
  MOST,
  BUILD,
  FIGHT
};

static error_t parse_contender(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case BE:
      o->be = arg;
      if (duel_contender_named(arg) == NULL) argp_error(state, "--be=%s: unknown contender", arg);
      return 0;
    case FOLDER:
      o->folder = arg;
      return 0;
    case SHAPE:
      o->shape = arg;
      return 0;
    case MOST:
      o->most = (int)option_int(state, arg, "--most", 1, 65536);
      return 0;
    case BUILD:
      o->build = 1;
      return 0;
    case FIGHT:
      return 0;
    case ARGP_KEY_ARG:
      if (o->model_count == DUEL_MODELS) argp_error(state, "at most %d models are possible", (int)DUEL_MODELS);
      o->models[o->model_count++] = arg;
      return 0;
    case ARGP_KEY_END:
      if (o->int8 && o->model_count > 1)
        argp_error(state, "--int8=%s: of one model; there are %d", o->int8, o->model_count);
      if (o->model_count == 0 && o->draw == NULL) argp_error(state, "the .onnx files of models are expected");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* Whether `name` is one of the words of a list with commas. */
static int listed(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
    if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ',')) return 1;
  return 0;
}

static void parse_only(const struct argp_state *state, const char *arg) {
  for (const char *at = arg; *at != '\0';) {
    char word[64];
    const size_t length = strcspn(at, ",");
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    if (duel_contender_named(word) == NULL) {
      char names[512] = "";
      for (int i = 0; i < DUEL_CONTENDERS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", duel_contenders[i].name);
      argp_error(state, "--only=%s: there is no contender \"%s\"; there are %s", arg, word, names);
    }
    at += length + (at[length] == ',');
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case ONLY:
      parse_only(state, arg);
      o->only = arg;
      return 0;
    case PYTHON:
      o->python = arg;
      return 0;
    case INT8:
      o->int8 = arg;
      return 0;
    case DRAW:
      o->draw = arg;
      return 0;
    case THREADS:
      o->threads = (int)option_int(state, arg, "--threads", 0, 1024);
      return 0;
    case GPU:
      o->gpu = (int)option_int(state, arg, "--gpu", 0, 63);
      return 0;
    case ROUNDS:
      o->rounds = (int)option_int(state, arg, "--rounds", 1, 100);
      return 0;
    case STARTS:
      o->starts = (int)option_int(state, arg, "--starts", 1, 100);
      return 0;
    case SECONDS:
      o->seconds = option_float(state, arg, "--seconds", 0.001, 60);
      return 0;
    case SIDE:
      o->side = (int)option_int(state, arg, "--side", 1, 4096);
      return 0;
    default:
      return parse_contender(key, arg, state);
  }
}

static void options_read(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"only", ONLY, "NAME,...", 0, "Only these contenders (a wrong name prints all)", 0},
      {"threads", THREADS, "N", 0, "Of the contenders on the CPU (default: one per core)", 0},
      {"gpu", GPU, "N", 0, "Which GPU, from 0 (default: 0)", 0},
      {"rounds", ROUNDS, "N", 0, "How often each is measured, in turns (default: 5)", 0},
      {"starts", STARTS, "N", 0, "How often each is started; the last start counts (default: 2)", 0},
      {"seconds", SECONDS, "S", 0, "How long, each time (default: 0.3)", 0},
      {"side", SIDE, "N", 0, "Height and width of pictures where the model leaves them open (default: 224)", 0},
      {"python", PYTHON, "FILE", 0, "The Python that has PyTorch (default: python3)", 0},
      {"int8", INT8, "FILE", 0, "The one model, quantised by lesson 9 (default: NAME.int8.onnx beside NAME.onnx)", 0},
      {"draw", DRAW, "FILE", 0, "Only draw the charts of what another machine has printed with --json", 0},
      {"be", BE, "NAME", OPTION_HIDDEN, "", 0},
      {"folder", FOLDER, "DIR", OPTION_HIDDEN, "", 0},
      {"shape", SHAPE, "N,...", OPTION_HIDDEN, "", 0},
      {"most", MOST, "N", OPTION_HIDDEN, "", 0},
      {"build", BUILD, NULL, OPTION_HIDDEN, "", 0},
      {"fight", FIGHT, NULL, OPTION_HIDDEN, "", 0},
      OPTION_END};
  static const struct argp own = {
      rows, parse, "MODEL.onnx...", "Compares runtimes on the same models: time, memory, size, answers.", NULL,
      NULL, NULL};
  memset(o, 0, sizeof *o);
  o->common = options_default(OPTIONS_DEVICE | OPTIONS_SEED | OPTIONS_BATCH_SIZE | OPTIONS_OUTPUT_DIR | OPTIONS_JSON);
  o->python = "python3";
  o->rounds = 5;
  o->starts = 2;
  o->seconds = 0.3;
  o->side = 224;
  options_parse(&o->common, &own, o, argc, argv);
#ifdef SIMT_REWRITTEN
  if (o->common.device == DEVICE_GPU)
    die("this program was built for an emulated GPU, whose times say nothing; build it with --config=cuda");
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void print_bytes(double bytes) {
  if (isfinite(bytes))
    printf("%9.0f", bytes / (1 << 20));
  else
    printf("%9s", "-");
}

static void print_row(const DuelBout *b, const DuelRow *row) {
  printf("%-31s %-5s", row->contender->title, row->contender->precision);
  if (!isfinite(row->p50)) {
    printf("  %s\n", row->reason);
    return;
  }
  printf("%10.1f%10.1f", 1e6 * row->p50, 1e6 * row->p99);
  if (isfinite(row->batch_seconds))
    printf("%11.1f", b->plan.batch / row->batch_seconds);
  else
    printf("%11s", "-");
  printf("%8.2f", row->first);
  print_bytes(row->host_bytes);
  print_bytes(row->gpu_bytes);
  print_bytes(row->disk_bytes);
  printf("%10.1e%10d/%d\n", row->difference, row->same, row->samples);
  if (row->reason[0]) printf("%37s  left out then: %s\n", "", row->reason);
}

static void print_table(const DuelBout *b) {
  const DuelModel *m = &b->setting.model;
  char images[32];
  printf("\n%s, a sample of", m->name);
  for (int i = 1; i < m->rank; i++) printf("%s%lld", i > 1 ? " x " : " ", (long long)m->dim[i]);
  if (b->reference >= 0) printf("; answers are compared with those of %s", b->row[b->reference].contender->title);
  snprintf(images, sizeof images, "/s by %d", b->plan.batch);
  printf("\n%-37s%10s%10s%11s%8s%9s%9s%9s%10s%12s\n", "", "p50 us", "p99 us", images, "first s", "host MiB", "GPU MiB",
         "disk MiB", "differs", "same class");
  for (int i = 0; i < b->rows; i++) print_row(b, &b->row[i]);
}

enum { PERCENTILES = 101 };

/* The share of runs (batch 1) that took at most so long, a line for each contender of a model: from the JSON, so that a
 * machine without gnuplot can leave it to another. */
static void draw(const json_t *rows, const char *model, const char *folder) {
  static double x[DUEL_CONTENDERS][PERCENTILES], y[PERCENTILES];
  static char names[DUEL_CONTENDERS][64], title[128], path[2 * PATH_MAX];
  PlotSeries series[DUEL_CONTENDERS];
  size_t count = 0, i;
  json_t *row;
  for (int k = 0; k < PERCENTILES; k++) y[k] = k;
  json_array_foreach(rows, i, row) {
    const json_t *times = json_object_get(row, "batch1_percentiles_us");
    const char *of = json_string_value(json_object_get(row, "model"));
    if (of == NULL || strcmp(of, model) != 0 || json_array_size(times) != PERCENTILES || count == DUEL_CONTENDERS)
      continue;
    for (int k = 0; k < PERCENTILES; k++) x[count][k] = json_number_value(json_array_get(times, (size_t)k));
    snprintf(names[count], sizeof names[0], "%.50s, %.10s", json_string_value(json_object_get(row, "title")),
             json_string_value(json_object_get(row, "precision")));
    const PlotSeries one = {names[count], x[count], y, PERCENTILES, 0};
    series[count++] = one;
  }
  snprintf(title, sizeof title, "%.60s, one sample", model);
  snprintf(path, sizeof path, "%s/%.60s.svg", folder, model);
  const Plot plot = {title, "microseconds", "% of the runs", NULL, 1, 0, series, count};
  if (count > 0) plot_or_note(&plot, path);
}

static json_t *percentiles_json(const DuelRow *row) {
  json_t *times = json_array();
  for (int k = 0; k < PERCENTILES; k++)
    json_array_append_new(times, json_real(round(1e9 * timer_percentile(row->times, row->count, k / 100.0)) / 1e3));
  return times;
}

/* --draw: the last line of the file. */
static int draw_file(const Options *o) {
  char path[PATH_MAX], *line = NULL, *last = NULL;
  size_t room = 0, i;
  Error err;
  if (user_path(o->draw, path, sizeof path, &err) != 0) die("--draw: %s", err.message);
  FILE *file = fopen(path, "r");
  if (file == NULL) die("cannot open %s: %s", path, strerror(errno));
  for (; getline(&line, &room, file) > 0;)
    if (line[0] == '{') {
      free(last);
      last = strdup(line);
    }
  fclose(file);
  json_t *result = last ? json_loads(last, 0, NULL) : NULL, *rows = json_object_get(result, "rows"), *row;
  if (!json_is_array(rows)) die("%s: a line of JSON that runtime_duel has printed was expected", path);
  json_array_foreach(rows, i, row) {
    const char *model = json_string_value(json_object_get(row, "model"));
    const char *before = i > 0 ? json_string_value(json_object_get(json_array_get(rows, i - 1), "model")) : NULL;
    if (model && strchr(model, '/') == NULL && (before == NULL || strcmp(before, model) != 0))
      draw(rows, model, o->common.output_dir);
  }
  printf("charts in %s\n", o->common.output_dir);
  json_decref(result);
  free(line);
  free(last);
  return 0;
}

static void json_add(json_t *object, const char *key, double value) {
  if (isfinite(value)) json_object_set_new(object, key, json_real(value));
}

static json_t *row_json(const DuelBout *b, const DuelRow *row) {
  json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "model", b->setting.model.name, "contender", row->contender->name,
                        "title", row->contender->title, "precision", row->contender->precision);
  if (row->reason[0]) json_object_set_new(o, "reason", json_text(row->reason));
  if (!isfinite(row->p50)) return o;
  json_add(o, "batch1_p50_us", 1e6 * row->p50);
  json_add(o, "batch1_p99_us", 1e6 * row->p99);
  json_add(o, "batch_us", 1e6 * row->batch_seconds);
  json_add(o, "images_per_second", b->plan.batch / row->batch_seconds);
  json_add(o, "first_answer_seconds", row->first);
  json_add(o, "build_seconds", row->build);
  json_add(o, "host_bytes", row->host_bytes);
  json_add(o, "gpu_bytes", row->gpu_bytes);
  json_add(o, "disk_bytes", row->disk_bytes);
  json_add(o, "difference", row->difference);
  json_add(o, "cosine", row->cosine);
  if (row->count > 0) json_object_set_new(o, "batch1_percentiles_us", percentiles_json(row));
  json_object_set_new(o, "same_class", json_integer(row->same));
  json_object_set_new(o, "samples", json_integer(row->samples));
  json_object_set_new(o, "runtime", json_text(row->runtime));
  return o;
}

/* --int8, or NAME.int8.onnx beside NAME.onnx. */
static void setting_int8(DuelSetting *s, const char *typed) {
  Error err;
  if (typed) {
    if (user_path(typed, s->int8, sizeof s->int8, &err) != 0) die("--int8: %s", err.message);
    if (access(s->int8, R_OK) != 0) die("--int8: cannot open %s: %s", s->int8, strerror(errno));
    return;
  }
  const size_t length = strlen(s->model.path), stem = length > 5 ? length - 5 : 0;
  if (strcmp(s->model.path + stem, ".onnx") != 0) return;
  if ((size_t)snprintf(s->int8, sizeof s->int8, "%.*s.int8.onnx", (int)stem, s->model.path) >= sizeof s->int8 ||
      access(s->int8, R_OK) != 0)
    s->int8[0] = '\0';
}

static void setting_fill(DuelSetting *s, const Options *o, const char *typed) {
  Error err;
  char path[PATH_MAX];
  if (user_path(typed, path, sizeof path, &err) != 0 || duel_model_open(&s->model, path, o->side, &err) != 0)
    die("%s", err.message);
  setting_int8(s, o->int8);
  s->threads = o->threads;
  s->gpu = o->gpu;
  s->python = o->python;
  s->most = o->common.batch_size;
}

/* The contender NAME of another run of this program. */
static int be(const Options *o) {
  DuelSetting s;
  Error err;
  const DuelContender *c = duel_contender_named(o->be);
  memset(&s, 0, sizeof s);
  if (duel_model_given(&s.model, o->models[0], o->shape ? o->shape : "", &err) != 0) die("%s", err.message);
  snprintf(s.folder, sizeof s.folder, "%s", o->folder ? o->folder : ".");
  s.threads = o->threads;
  s.gpu = o->gpu;
  s.most = o->most;
  if (o->threads > 0) threads_set(o->threads);
  return o->build ? duel_be_builder(c, &s) : duel_be(c, &s);
}

/* 1: somebody fell out that had begun to fight. */
static int fight(const Options *o, const char *typed, json_t *rows) {
  static DuelBout b;
  int failed = 0;
  memset(&b, 0, sizeof b);
  setting_fill(&b.setting, o, typed);
  b.plan.batch = o->common.batch_size;
  b.plan.rounds = o->rounds;
  b.plan.starts = o->starts;
  b.plan.seconds = o->seconds;
  b.device = o->common.device;
  b.log = stderr;
  for (int i = 0; i < DUEL_CONTENDERS; i++) {
    const DuelContender *c = &duel_contenders[i];
    const int usual = c->kind == DUEL_RESERVED || ((c->device == b.device || i == 0) && !duel_absent(&b, c));
    if (o->only ? listed(o->only, c->name) : usual) b.row[b.rows++].contender = c;
  }
  duel_fight(&b, o->common.seed);
  print_table(&b);
  for (int i = 0; i < b.rows; i++) {
    json_array_append_new(rows, row_json(&b, &b.row[i]));
    failed |= !b.row[i].fights && b.row[i].began; /* it has answered, and wrongly, or not to the end */
  }
  draw(rows, b.setting.model.name, o->common.output_dir);
  duel_free(&b);
  return failed;
}

int main(int argc, char **argv) {
  static Options options;
  Error err;
  char description[512];
  int status = 0;
  threads_begin();
  options_read(&options, argc, argv);
  if (options.be) return be(&options);
  signal(SIGPIPE, SIG_IGN); /* a contender that has ended is a row of the table */
  if (!options.draw && device_open(options.common.device, description, sizeof description, &err) != 0)
    die("%s", err.message);
  if (make_directories(options.common.output_dir, &err) != 0) die("%s", err.message);
  if (options.draw) return draw_file(&options);
  interrupt_install();
  printf("Runtimes on %s\n", description);
  json_t *rows = json_array();
  for (int i = 0; i < options.model_count && !interrupt_requested(); i++)
    status |= fight(&options, options.models[i], rows);
  printf("\ncharts in %s\n", options.common.output_dir);
  if (options.common.json &&
      json_result(json_pack("{s:s, s:s, s:i, s:O}", "program", program_invocation_short_name, "device",
                            device_name(options.common.device), "batch", options.common.batch_size, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  stdout_finish();
  return interrupt_requested() ? interrupt_status() : status;
}

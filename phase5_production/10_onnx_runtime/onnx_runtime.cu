/* onnx_runtime.cu - a folder of pictures through an ONNX model: classes, or processed pictures, come out.
 *
 *     bazel run //phase5_production:onnx_runtime -- --model=resnet18.onnx photos/                    classes as CSV
 *     bazel run //phase5_production:onnx_runtime -- --model=resnet18.onnx photos/ --format=jsonl --output=classes.jsonl
 *     bazel run //phase5_production:onnx_runtime -- --model=mosaic.onnx photos/ --output-dir=mosaics     pictures
 *     bazel run //phase5_production:onnx_runtime -- --model=resnet18.onnx --show                     what the model is
 *     bazel run //phase5_production:onnx_runtime -- --model=resnet18.onnx --runtime=engine photos/   ours computes
 *     bazel run --config=cuda //phase5_production:onnx_runtime -- --model=resnet18.onnx --provider=cuda photos/
 *
 * ONNX Runtime computes, found when the program starts (ort_library.h). Where it is not there, the program says what it
 * has looked for and how to get it.
 */
#include "common/options.h"
#include "common/threads_begin.h"
#include "phase5_production/10_onnx_runtime/picture_runner_engine.cuh"
#include "phase5_production/10_onnx_runtime/pipeline_run.cuh"

typedef struct Options {
  CommonOptions common;
  OrtNetOptions net;
  RecipeWishes wishes;
  ResultFormat format;
  char model[PATH_MAX], output[PATH_MAX], classes[PATH_MAX];
  EnginePrecision precision;
  int engine, max_side, top, readers, sequential, show, typed_count;
  char **typed;
} Options;

enum {
  MODEL = 1,
  RUNTIME,
  PRECISION,
  MAX_SIDE,
  PROVIDER,
  GPU,
  THREADS,
  OPTIMIZATION,
  READERS,
  SEQUENTIAL,
  TOP,
  FORMAT,
  OUTPUT,
  CLASSES,
  MEAN,
  STDDEV,
  RESIZE,
  CROP,
  RANGE,
  SHOW
};

static void parse_numbers(const struct argp_state *state, const char *arg, const char *name, float number[3]) {
  if (recipe_numbers(arg, number) != 0)
    argp_error(state, "%s=%s: a number, or one for each of three channels, is expected, such as 0.485,0.456,0.406",
               name, arg);
}

/* One word of several; their number. */
static int parse_word(const struct argp_state *state, const char *arg, const char *name, const char *first,
                      const char *second) {
  if (strcmp(arg, first) != 0 && strcmp(arg, second) != 0)
    argp_error(state, "%s=%s: %s or %s is expected", name, arg, first, second);
  return strcmp(arg, second) == 0;
}

static error_t parse_recipe(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case MEAN:
      parse_numbers(state, arg, "--mean", o->wishes.mean);
      return 0;
    case STDDEV:
      parse_numbers(state, arg, "--stddev", o->wishes.stddev);
      return 0;
    case RESIZE:
      o->wishes.resize = (int)option_int(state, arg, "--resize", 0, RECIPE_LARGEST);
      return 0;
    case CROP:
      o->wishes.crop = (int)option_int(state, arg, "--crop", 1, RECIPE_LARGEST);
      return 0;
    case RANGE:
      o->wishes.range = option_float(state, arg, "--range", 1e-6, 1e6);
      return 0;
    case CLASSES:
      option_path(state, arg, "--classes", o->classes);
      return 0;
    case ARGP_KEY_ARGS:
      o->typed = state->argv + state->next;
      o->typed_count = state->argc - state->next;
      return 0;
    case ARGP_KEY_END:
      if (o->model[0] == '\0') argp_error(state, "--model=FILE is missing: the .onnx file of a network");
      if (o->typed_count == 0 && !o->show) argp_error(state, "pictures, or folders of them, are expected (or --show)");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case MODEL:
      option_path(state, arg, "--model", o->model);
      return 0;
    case RUNTIME:
      o->engine = parse_word(state, arg, "--runtime", "onnxruntime", "engine");
      return 0;
    case PRECISION:
      if (engine_precision_find(arg, &o->precision) != 0)
        argp_error(state, "--precision=%s: fp32, tf32, fp16 or bf16 is expected", arg);
      return 0;
    case MAX_SIDE:
      o->max_side = (int)option_int(state, arg, "--max-side", 1, RECIPE_LARGEST);
      return 0;
    case PROVIDER:
      o->net.cuda = parse_word(state, arg, "--provider", "cpu", "cuda");
      return 0;
    case GPU:
      o->net.gpu = (int)option_int(state, arg, "--gpu", 0, 63);
      return 0;
    case THREADS:
      o->net.threads = (int)option_int(state, arg, "--threads", 0, 1024);
      return 0;
    case OPTIMIZATION:
      o->net.optimization = (int)option_int(state, arg, "--optimization", 0, 3);
      return 0;
    case READERS:
      o->readers = (int)option_int(state, arg, "--readers", 1, PIPELINE_READERS);
      return 0;
    case SEQUENTIAL:
      o->sequential = 1;
      return 0;
    case TOP:
      o->top = (int)option_int(state, arg, "--top", 1, TOP_K_MOST);
      return 0;
    case FORMAT:
      o->format = parse_word(state, arg, "--format", "csv", "jsonl") ? RESULT_JSONL : RESULT_CSV;
      return 0;
    case OUTPUT:
      option_path(state, arg, "--output", o->output);
      return 0;
    case SHOW:
      o->show = 1;
      return 0;
    default:
      return parse_recipe(key, arg, state);
  }
}

static void options_read(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"model", MODEL, "FILE", 0, "The network, an .onnx file", 0},
      {"show", SHOW, NULL, 0, "Print the model's inputs and outputs, and which provider computes it", 0},
      {"runtime", RUNTIME, "NAME", 0, "onnxruntime, or engine, ours (default: onnxruntime)", 0},
      {"provider", PROVIDER, "cpu|cuda", 0, "Where is computed (default: cpu)", 0},
      {"gpu", GPU, "N", 0, "Which GPU, from 0 (default: 0)", 0},
      {"threads", THREADS, "N", 0, "Threads of the network on a CPU (default: one per core)", 0},
      {"optimization", OPTIMIZATION, "0..3", 0, "How much ONNX Runtime changes the graph (default: 3, all)", 0},
      {"precision", PRECISION, "TYPE", 0, "Of the engine: fp32, tf32, fp16 or bf16 (default: fp32)", 0},
      {"max-side", MAX_SIDE, "N", 0, "Of the engine: the largest picture that keeps its size (default: 512)", 0},
      {"readers", READERS, "N", 0, "Threads that decode pictures (default: half of the cores)", 0},
      {"sequential", SEQUENTIAL, NULL, 0, "One stage after the other, to compare", 0},
      {"top", TOP, "N", 0, "How many classes of each picture (default: 5)", 0},
      {"format", FORMAT, "csv|jsonl", 0, "Of the classes (default: csv)", 0},
      {"output", OUTPUT, "FILE", 0, "Where the classes go (default: stdout)", 0},
      {"classes", CLASSES, "FILE", 0, "Names of the classes, one in each line (default: the model's)", 0},
      {"mean", MEAN, "M[,M,M]", 0, "x = (pixel / 255 - mean) / stddev (default: the model's, else ImageNet's)", 0},
      {"stddev", STDDEV, "S[,S,S]", 0, "The same", 0},
      {"resize", RESIZE, "N", 0,
       "The shorter side becomes N pixels; 0: scale to fit (default: the model's, else 256 for 224)", 0},
      {"crop", CROP, "N", 0, "N x N pixels of the middle are kept (default: the model's size, else 224)", 0},
      {"range", RANGE, "R", 0, "White, in networks that make pictures (default: the model's, else 1)", 0},
      OPTION_END};
  static const struct argp own = {rows,
                                  parse,
                                  "[PICTURE|FOLDER...]",
                                  "Pictures through an ONNX model, with ONNX Runtime: classes or pictures come out.",
                                  NULL,
                                  NULL,
                                  NULL};
  Error err;
  char typed[PATH_MAX], *paths[] = {o->model, o->output, o->classes};
  memset(o, 0, sizeof *o);
  o->common = options_default(OPTIONS_BATCH_SIZE | OPTIONS_OUTPUT_DIR | OPTIONS_JSON);
  o->common.batch_size = 8;
  o->net = ort_net_options();
  o->wishes = recipe_no_wishes();
  o->top = 5;
  o->max_side = 512;
  options_parse(&o->common, &own, o, argc, argv);
  if (o->common.batch_size > PIPELINE_BATCH_MOST) die("--batch-size: up to %d are possible", (int)PIPELINE_BATCH_MOST);
  for (int i = 0; i < 3; i++) {
    memcpy(typed, paths[i], sizeof typed);
    if (typed[0] && user_path(typed, paths[i], PATH_MAX, &err) != 0) die("%s", err.message);
  }
  if (o->readers == 0) o->readers = (int)(sysconf(_SC_NPROCESSORS_ONLN) + 1) / 2;
  if (o->readers > PIPELINE_READERS) o->readers = PIPELINE_READERS;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static void print_recipe(const PictureRecipe *r) {
  if (r->height > 0)
    printf("pictures: %d x %d pixels, %d channel%s\n", r->width, r->height, r->channels, r->channels > 1 ? "s" : "");
  else
    printf("pictures: of any size, %d channel%s\n", r->channels, r->channels > 1 ? "s" : "");
  if (r->resize > 0)
    printf("the shorter side is resized to %d, and the middle kept\n", r->resize);
  else if (r->height > 0)
    printf("scaled to fit\n");
  printf("x = (pixel / 255 - mean) / stddev, mean");
  for (int c = 0; c < r->channels; c++) printf(" %g", (double)r->mean[c]);
  printf(", stddev");
  for (int c = 0; c < r->channels; c++) printf(" %g", (double)r->stddev[c]);
  printf("\n");
}

/* Whether the height of its pictures is open. */
static int model_is_open(const OnnxModel *model) {
  const Onnx__GraphProto *g = model->proto->graph;
  const char *symbol[ONNX_MAX_RANK];
  int64_t dim[ONNX_MAX_RANK];
  for (size_t i = 0; i < g->n_input; i++)
    if (onnx_is_input(model, i)) return onnx_value_shape(g->input[i], dim, symbol) == 4 && dim[2] < 0;
  return 0;
}

/* Memory is planned for the largest pictures: of a model whose height and width are open, those of its metadata, or of
 * --crop, or of --max-side. */
static int open_engine(const Options *o, const OnnxModel *model, Runner *runner, Error *err) {
  OnnxPreprocessing p;
  EngineOptions options = engine_options();
  options.device = o->net.cuda ? DEVICE_GPU : DEVICE_CPU;
  options.gpu = o->net.gpu;
  options.precision = o->precision;
  options.threads = o->net.threads;
  options.measure = o->net.cuda; /* on a CPU kernels are chosen by a rule: the pictures would wait for the measuring */
  options.max_batch = o->common.batch_size;
  const int said = onnx_get_preprocessing(model, &p, err);
  if (said < 0) return -1;
  if (model_is_open(model)) {
    options.max_height = said > 0 ? p.height : o->max_side;
    options.max_width = said > 0 ? p.width : o->max_side;
    if (o->wishes.crop > 0) options.max_height = options.max_width = o->wishes.crop;
  }
  return runner_open_engine(runner, o->model, &options, err);
}

/* --show: inputs, outputs, and who computes what. */
static void show(const Options *o, Runner *runner, const PictureRecipe *r) {
  Error err;
  char text[256];
  OrtPlacement placement;
  const int side = r->height > 0 ? 0 : 64;
  printf("%s\n", runner->name);
  if (!o->engine) printf("%s\n", runner->ort.path);
  printf("input   %s\n", ort_port_text(&runner->input, text, sizeof text));
  printf("output  %s\n", ort_port_text(&runner->output, text, sizeof text));
  for (int i = 1; i < runner->net.outputs; i++)
    printf("output  %s, not used\n", ort_port_text(&runner->net.output[i], text, sizeof text));
  print_recipe(r);
  if (o->engine) return;
  OrtArray in = ort_floats(NULL, 4, runner->batch ? runner->batch : 1, r->channels, side ? side : r->height,
                           side ? side : r->width);
  in.data = xcalloc(in.bytes, 1);
  if (ort_placement(&runner->ort, o->model, &o->net, &in, &placement, &err) != 0) die("%s", err.message);
  free(in.data);
  printf("in a run, %d operators were computed by the CUDA provider and %d by the CPU provider", placement.cuda,
         placement.cpu);
  printf(placement.on_cpu[0] && placement.cuda > 0 ? ": %s\n" : "\n", placement.on_cpu);
}

static void classes_open(const Options *o, Pipeline *p, const OnnxModel *model) {
  Error err;
  json_t *names = NULL;
  int rank = 0;
  int64_t dim[ORT_RANK];
  if (p->runner->shape(p->runner, NULL, 0, p->recipe.height, p->recipe.width, &rank, dim, &err) != 0)
    die("%s", err.message);
  p->recipe.classes = 1;
  for (int i = 1; i < rank; i++) p->recipe.classes *= (int)dim[i];
  if (p->recipe.classes < 1) die("%s: its output has no classes", o->model);
  if (p->top > p->recipe.classes) p->top = p->recipe.classes;
  if (!o->classes[0] && onnx_get_class_names(model, p->recipe.classes, &names, &err) != 0) die("%s", err.message);
  if (names) results_model_names(&p->results.names, names);
  json_decref(names);
  if (p->results.names.count == 0 && class_names_open(o->classes, p->recipe.classes, &p->results.names, &err) != 0)
    die("--classes: %s", err.message);
}

static void pipeline_open(Pipeline *p, const Options *o, const OnnxModel *model, Runner *runner, PictureList *list) {
  Error err;
  p->runner = runner;
  p->list = list;
  p->readers = o->readers;
  p->top = o->top;
  p->probabilities = -1;
  p->batch_size = runner->batch ? runner->batch : o->common.batch_size;
  pthread_mutex_init(&p->times_lock, NULL);
  snprintf(p->output_dir, sizeof p->output_dir, "%s", o->common.output_dir);
  if (p->recipe.task == RECIPE_PICTURES) {
    if (o->output[0]) die("--output: this model makes pictures; --output-dir names a folder for them");
    if (picture_list_outputs(list, &err) != 0 || make_directories(p->output_dir, &err) != 0) die("%s", err.message);
    p->results.format = RESULT_CSV;
    p->results.out = stdout;
  } else {
    classes_open(o, p, model);
    if (results_open(&p->results, o->format, o->output, &err) != 0) die("--output: %s", err.message);
  }
  for (int i = 0; i < PIPELINE_BATCHES; i++) batch_open(&p->batch[i], p);
}

static void pipeline_close(Pipeline *p) {
  for (int i = 0; i < PIPELINE_BATCHES; i++) batch_close(&p->batch[i], p->runner->device);
  picture_staging_free(&p->staging);
  pthread_mutex_destroy(&p->times_lock);
}

/* Where the time went: with stages that overlap, what did not wait is what limits. */
static void print_summary(const Options *o, const Pipeline *p, double seconds) {
  const StageTimes *t = &p->times;
  const long good = p->written - p->failed;
  fprintf(stderr, "%s: %ld pictures in %.2f s, %.1f images/s", p->runner->name, good, seconds,
          seconds > 0 ? (double)good / seconds : 0);
  if (p->failed > 0) fprintf(stderr, "; %ld failed", p->failed);
  if (p->list->others > 0) fprintf(stderr, "; %ld other files left out", p->list->others);
  fprintf(stderr, "\nat work: reading %.2f s (%d thread%s), batches %.2f s, network %.2f s, writing %.2f s%s\n",
          t->read, o->sequential ? 1 : p->readers, o->sequential || p->readers == 1 ? "" : "s", t->batch, t->infer,
          t->write, o->sequential ? "; one after the other" : "");
}

static json_t *summary_json(const Options *o, const Pipeline *p, double seconds) {
  const long good = p->written - p->failed;
  return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "program",
                   program_invocation_short_name, "runtime", p->runner->name, "provider", o->net.cuda ? "cuda" : "cpu",
                   "task", p->recipe.task == RECIPE_CLASSES ? "classes" : "pictures", "batch_size", p->batch_size,
                   "readers", o->sequential ? 1 : p->readers, "sequential", o->sequential, "pictures", (int)good,
                   "failed", (int)p->failed, "seconds", seconds, "images_per_second",
                   seconds > 0 ? (double)good / seconds : 0.0, "read_seconds", p->times.read, "network_seconds",
                   p->times.infer, "write_seconds", p->times.write);
}

/* The exit status. */
static int run(const Options *o, const OnnxModel *model, Runner *runner, const PictureRecipe *recipe,
               PictureList *list) {
  static Pipeline p;
  Error err;
  p.recipe = *recipe;
  pipeline_open(&p, o, model, runner, list);
  interrupt_install();
  progress_begin(&p.progress, "pictures", "images", 0, list->count);
  const double start = seconds_now();
  if (o->sequential)
    pipeline_run_sequential(&p);
  else
    pipeline_run_overlapped(&p);
  const double seconds = seconds_now() - start;
  progress_end(&p.progress);
  int status = p.failed > 0 ? 1 : 0;
  if (results_close(&p.results, &err) != 0) die("%s", err.message);
  if (p.fatal.code != ERROR_NONE) {
    fprintf(stderr, "%s: error: %s; %ld of %ld pictures were done before\n", program_invocation_short_name,
            p.fatal.message, p.written, list->count);
    status = 1;
  }
  if (interrupt_requested()) {
    fprintf(stderr, "%s: stopped; %ld of %ld pictures were done, and their results are written\n",
            program_invocation_short_name, p.written, list->count);
    status = interrupt_status();
  }
  print_summary(o, &p, seconds);
  if (o->common.json && json_result(summary_json(o, &p, seconds), &err) != 0) die("%s", err.message);
  pipeline_close(&p);
  return status;
}

int main(int argc, char **argv) {
  static Options options;
  static Runner runner;
  static OnnxModel model;
  PictureRecipe recipe;
  PictureList list = {NULL, 0, 0, 0};
  Error err;
  int status = 0;
  threads_begin();
  options_read(&options, argc, argv);
  if (onnx_model_read(&model, options.model, &err) != 0) die("%s", err.message);
  status = options.engine ? open_engine(&options, &model, &runner, &err)
                          : runner_open_ort(&runner, options.model, &options.net, &err);
  if (status != 0) die("%s", err.message);
  if (recipe_open(&recipe, &runner.input, &runner.output, &model, &options.wishes, &err) != 0)
    die("%s: %s", options.model, err.message);
  if (options.engine && recipe.height == 0) recipe.largest = options.max_side;
  if (options.show) show(&options, &runner, &recipe);
  for (int i = 0; i < options.typed_count; i++)
    if (picture_list_typed(&list, options.typed[i], &err) != 0) die("%s", err.message);
  if (options.typed_count > 0 && list.count == 0)
    die("%s: there is no picture in it; .png, .jpg and .jpeg files were expected (%ld other files)", options.typed[0],
        list.others);
  if (list.count > 0) status = run(&options, &model, &runner, &recipe, &list);
  picture_list_free(&list);
  runner.close(&runner);
  onnx_model_close(&model);
  stdout_finish();
  return status;
}

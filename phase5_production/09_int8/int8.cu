/* int8.cu - a trained network with 8 bits per number: how good it still is, and its ONNX file.
 *
 *     bazel run //phase5_production:int8 -- runs/lenet_mnist/best.safetensors
 *     bazel run //phase5_production:int8 -- runs/fashion_mnist/best.safetensors --calibrator=entropy --layers
 *     bazel run //phase5_production:int8 -- resnet18.pth --images=photos/ --device=gpu
 *
 * The scales come from pictures of the training set, or of a folder. The table has the accuracy of each rung on the
 * test set, and how close its logits are to float32's. The best int8 rung becomes NETWORK.int8.onnx.
 */
#include "common/atomic_file.h"
#include "common/nn/step_graph.h"
#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase3_cnn/half_ops.cuh"
#include "phase5_production/06_onnx_export/export_weights.cuh"
#include "phase5_production/06_onnx_export/onnx_export.cuh"
#include "phase5_production/09_int8/int8_judge.cuh"
#include "phase5_production/09_int8/int8_onnx.cuh"

typedef struct Options {
  CommonOptions common;
  char weights[PATH_MAX], output[PATH_MAX], shown[PATH_MAX], images[PATH_MAX];
  char network[CHECKPOINT_NETWORK], data[CHECKPOINT_NAME];
  int side, calibration, test, only, layers; /* only: a CalibrateMethod; -1: all */
  Int8Choice choice;
} Options;

enum { NETWORK = 'N', DATA = 1, IMAGES, SIDE, CALIBRATION, TEST, CALIBRATOR, SHARE, FIRST, WHOLE_SUMS, LAYERS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case NETWORK:
      if (strlen(arg) >= sizeof o->network) argp_error(state, "--network: the text is too long");
      snprintf(o->network, sizeof o->network, "%s", arg);
      return 0;
    case DATA:
      if (data_source_named(arg) == NULL)
        argp_error(state, "--data=%.80s: one of mnist, fashion_mnist, cifar10 and cifar100 is expected", arg);
      snprintf(o->data, sizeof o->data, "%s", arg);
      return 0;
    case IMAGES:
      option_path(state, arg, "--images", o->images);
      return 0;
    case 'o':
      option_path(state, arg, "--output", o->output);
      return 0;
    case SIDE:
      o->side = (int)option_int(state, arg, "--side", 8, 1024);
      return 0;
    case CALIBRATION:
      o->calibration = (int)option_int(state, arg, "--calibration-images", 1, 1 << 20);
      return 0;
    case TEST:
      o->test = (int)option_int(state, arg, "--test-images", 1, 1 << 20);
      return 0;
    case CALIBRATOR:
      o->only = strcmp(arg, "all") == 0 ? -1 : calibrate_find(arg);
      if (o->only < 0 && strcmp(arg, "all") != 0)
        argp_error(state, "--calibrator=%.80s: minmax, percentile, entropy or all is expected", arg);
      return 0;
    case SHARE:
      o->choice.share = option_float(state, arg, "--share", 50, 100) / 100;
      return 0;
    case FIRST:
      o->choice.first = 0;
      return 0;
    case WHOLE_SUMS:
      o->choice.sums_whole = 1;
      return 0;
    case LAYERS:
      o->layers = 1;
      return 0;
    case ARGP_KEY_ARG:
      if (o->weights[0]) argp_error(state, "one file of weights is expected; \"%s\" is the second", arg);
      option_path(state, arg, "WEIGHTS", o->weights);
      return 0;
    case ARGP_KEY_END:
      if (!o->weights[0] && !o->network[0])
        argp_error(state, "a file of weights, or --network=NAME for random ones, is expected");
      if (o->images[0] && (o->data[0] || o->common.data_dir[0]))
        argp_error(state, "--images and a data set exclude each other; leave one of them out");
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void read_options(Options *o, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"network", NETWORK, "NAME", 0, "Which network it is (default: what the file says); alone: its random weights",
       0},
      {"data", DATA, "NAME", 0, "The data set: mnist, fashion_mnist, cifar10 or cifar100 (default: what the file says)",
       0},
      {"images", IMAGES, "DIR", 0, "Pictures of this folder instead of a data set", 0},
      {"output", 'o', "FILE", 0, "The ONNX file (default: NETWORK.int8.onnx)", 0},
      {"side", SIDE, "N", 0, "Height and width of the pictures, where the network takes any", 0},
      {"calibration-images", CALIBRATION, "N", 0,
       "Pictures that the scales come from (default: 512; of random ones at most 32)", 0},
      {"test-images", TEST, "N", 0, "Pictures that the accuracy is measured with (default: all)", 0},
      {"calibrator", CALIBRATOR, "NAME", 0, "minmax, percentile, entropy or all (default: all)", 0},
      {"share", SHARE, "P", 0, "Of the percentile, in per cent (default: 99.99)", 0},
      {"float-first", FIRST, NULL, 0, "A first convolution that reads few channels stays float32", 0},
      {"whole-sums", WHOLE_SUMS, NULL, 0, "Do not round a convolution before a residual block's sum", 0},
      {"layers", LAYERS, NULL, 0, "Print how far each layer is from float32", 0},
      OPTION_END};
  static const struct argp own = {rows,
                                  parse,
                                  "[WEIGHTS]",
                                  "Gives a trained network 8 bits per number, measures what that costs, and writes it "
                                  "as ONNX. WEIGHTS is a checkpoint of a training program, a .safetensors or a .pth "
                                  "file.",
                                  NULL,
                                  NULL,
                                  NULL};
  Error err;
  char typed[PATH_MAX], *paths[] = {o->weights, o->output, o->images};
  memset(o, 0, sizeof *o);
  o->common = options_default(OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_DATA_DIR | OPTIONS_JSON);
  o->common.batch_size = 128;
  o->calibration = 512;
  o->only = -1;
  o->choice.first = 1;
  options_parse(&o->common, &own, o, argc, argv);
  memcpy(o->shown, o->output, sizeof o->shown);
  for (int i = 0; i < 3; i++) {
    memcpy(typed, paths[i], sizeof typed);
    if (typed[0] && user_path(typed, paths[i], PATH_MAX, &err) != 0) die("%s", err.message);
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* As the ONNX file will say it: pictures of a folder have any size, and become the network's. */
static PreprocessRecipe folder_recipe(const ExportSource *source, Shape shape) {
  OnnxPreprocessing p;
  PreprocessRecipe recipe;
  if (!export_preprocessing(source, &p)) die("--images: %s does not read pictures", source->choice.network->title);
  recipe.crop = shape.dim[1];
  recipe.resize = p.resize > 0 ? p.resize : recipe.crop;
  for (int c = 0; c < 3; c++) recipe.mean[c] = p.mean[c], recipe.stddev[c] = p.stddev[c];
  return recipe;
}

/* What the scales come from, and what the rungs are judged by. */
static void open_pictures(const Options *o, const ExportSource *source, Pictures *scales, Pictures *test) {
  Error err;
  const Shape shape = graph_shape(source->net.graph, model_input_node(&source->net, 0));
  DataNorm norm = {source->data != NULL ? source->data->shape.dim[0] : shape.dim[0], {0}, {1, 1, 1, 1}};
  int status = 0;
  if (o->images[0]) {
    if (shape.rank != 3 || shape.dim[0] != 3)
      die("--images: the network reads %s; it must read colour pictures, (3,H,W)", shape_text(shape).text);
    const PreprocessRecipe recipe = folder_recipe(source, shape);
    status = pictures_open_folder(scales, o->images, shape, recipe, o->calibration, &err) != 0 ||
             pictures_open_folder(test, o->images, shape, recipe, o->test, &err) != 0;
  } else if (source->data != NULL) {
    for (int c = 0; c < norm.channels && c < DATA_MAX_CHANNELS && source->state.stddev[c] > 0; c++) {
      norm.mean[c] = (float)source->state.mean[c];
      norm.stddev[c] = (float)source->state.stddev[c];
    }
    status = pictures_open_set(scales, source->data, o->common.data_dir, DATA_TRAIN, norm, o->calibration, &err) != 0 ||
             pictures_open_set(test, source->data, o->common.data_dir, DATA_TEST, norm, o->test, &err) != 0;
    scales->shape = test->shape = shape; /* an MLP reads their pixels as features */
    if (status == 0 && shape_count(shape) != shape_count(scales->set.shape))
      die("the network reads %s, and a picture of %s is %s", shape_text(shape).text, source->data->title,
          shape_text(scales->set.shape).text);
  } else {
    printf("neither a data set nor --images: the pictures are random\n");
    pictures_open_random(scales, shape, o->calibration < 32 ? o->calibration : 32, o->common.seed);
    pictures_open_random(test, shape, o->test > 0 ? o->test : 32, o->common.seed + 1);
  }
  if (status != 0) die("%s", err.message);
}

static void open_half(Model *m, const Model *whole, DType type, int batch) {
  Error err;
  Context context = whole->context;
  Graph *g = graph_copy(whole->graph);
  context.shared = NULL;
  cnn_can_be_lowered(g);
  graph_lower(g, type);
  if (model_open(m, g, context, NULL, batch, MODEL_INFER, &err) != 0) die("%s: %s", dtype_name(type), err.message);
  int8_copy_parameters(m, whole);
  model_narrow_weights(m);
}

static void write_onnx(const Options *o, const ExportSource *source, const Model *whole, const Int8Scale *scale,
                       const char *path) {
  Error err;
  OnnxModel onnx;
  const ExportRequest request = {o->weights, o->network, o->data, "", o->side, o->common.seed, 1};
  const OnnxExportOptions options = {source->choice.network->name, 0, 0};
  const Int8ModelWeights from = {whole, batch_norm2d_fold_host(whole)};
  const Int8Weights weights = {int8_find_in_model, &from, NULL};
  if (onnx_export(&onnx, whole, &options, &err) != 0) die("%s", err.message);
  export_describe(source, &request, &onnx);
  if (int8_onnx_write(&onnx, whole->graph, scale, weights, &err) != 0 || onnx_model_write(onnx.proto, path, &err) != 0)
    die("%s", err.message);
  onnx_model_close(&onnx);
  free(from.host);
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* All rungs of one network. */
typedef struct Climb {
  Options *o;
  ExportSource source;
  Pictures scales, test;
  Model whole; /* float32, without batch norms */
  int batch;
  float *expected; /* its logits */
  JudgedRung rung[3 + CALIBRATE_METHODS];
  int count, best;          /* best: of the int8 rungs; -1: there is none yet */
  Int8Scale *scale, *tried; /* of the best one; of the one at work */
  char description[512];    /* of the device */
} Climb;

/* NETWORK.int8.onnx in the folder where the command was typed, unless the user says where. Whether it can be written
 * there is asked before the minutes of the table. */
static void choose_output(Options *o, const char *network) {
  Error err;
  AtomicFile file;
  char name[128];
  if (!o->output[0]) {
    snprintf(name, sizeof name, "%.100s.int8.onnx", network);
    snprintf(o->shown, sizeof o->shown, "%s", name);
    if (user_path(name, o->output, sizeof o->output, &err) != 0) die("%s", err.message);
  }
  if (atomic_file_open(&file, o->output, &err) != 0) die("%s", err.message);
  atomic_file_abandon(&file);
}

static void open_climb(Climb *climb, Options *o) {
  Error err;
  Context context;
  const ExportRequest request = {o->weights, o->network, o->data, "", o->side, o->common.seed, 1};
  memset(climb, 0, sizeof *climb);
  memset(&context, 0, sizeof context);
  climb->o = o;
  climb->best = -1;
  context.device = o->common.device;
  if (device_open(context.device, climb->description, sizeof climb->description, &err) != 0) die("%s", err.message);
  if (export_open(&climb->source, &request, &err) != 0) die("%s", err.message);
  choose_output(o, climb->source.choice.network->name);
  open_pictures(o, &climb->source, &climb->scales, &climb->test);
  climb->batch = o->common.batch_size < climb->test.count ? o->common.batch_size : climb->test.count;
  if (model_open(&climb->whole, int8_prepare(climb->source.net.graph), context, NULL, climb->batch, MODEL_INFER,
                 &err) != 0 ||
      batch_norm2d_fold_parameters(&climb->whole, &climb->source.net, &err) != 0)
    die("%s", err.message);
  const size_t nodes = (size_t)climb->whole.graph->count;
  climb->scale = (Int8Scale *)xcalloc(nodes, sizeof *climb->scale);
  climb->tried = (Int8Scale *)xcalloc(nodes, sizeof *climb->tried);
}

static void close_climb(Climb *climb) {
  free(climb->scale);
  free(climb->tried);
  free(climb->expected);
  pictures_close(&climb->scales);
  pictures_close(&climb->test);
  model_close(&climb->whole);
  export_close(&climb->source);
}

/* The next line of the table. */
static const JudgedRung *add_rung(Climb *climb, const char *name, const Model *m) {
  JudgedRung *rung = &climb->rung[climb->count++];
  *rung = judge_rung(name, m, &climb->test, climb->expected);
  judge_print(rung, &climb->rung[0]);
  return rung;
}

static void climb_floats(Climb *climb) {
  Model half;
  printf("%s, %d picture%s for the scales, %d to test\n\n", climb->source.choice.network->title, climb->scales.count,
         climb->scales.count == 1 ? "" : "s", climb->test.count);
  printf("%-12s%12s%10s%12s%12s%10s%12s\n", "", "accuracy", "points", "as float32", "cosine", "SQNR, dB",
         "weights, MB");
  add_rung(climb, "float32", &climb->whole);
  climb->expected = judge_logits(&climb->whole, &climb->test);
  for (int type = 0; type < 2; type++) {
    open_half(&half, &climb->whole, type ? DTYPE_BF16 : DTYPE_FP16, climb->batch);
    add_rung(climb, type ? "bf16" : "fp16", &half);
    model_close(&half);
  }
}

/* A tenth of a point is chance; within it the logits decide. */
static int is_better(const JudgedRung *rung, const JudgedRung *best) {
  const double ahead = isnan(rung->accuracy) ? 0 : rung->accuracy - best->accuracy;
  return ahead > 0.001 || (ahead >= -0.001 && rung->difference.cosine > best->difference.cosine);
}

static int has_scales(const Int8Scale *scale, int nodes) {
  for (int i = 0; i < nodes; i++)
    if (scale[i].step > 0) return 1;
  return 0;
}

static void climb_int8(Climb *climb) {
  static const char *const names[] = {"int8 minmax", "int8 perc.", "int8 entropy"};
  Error err;
  Model narrow;
  Int8Choice choice = climb->o->choice;
  Int8Calibration c = judge_calibrate(&climb->whole, &climb->scales);
  for (int method = 0; method < CALIBRATE_METHODS; method++) {
    if (climb->o->only >= 0 && method != climb->o->only) continue;
    choice.method = (CalibrateMethod)method;
    int8_scales(climb->tried, &c, climb->whole.graph, &choice);
    if (!has_scales(climb->tried, climb->whole.graph->count))
      die("no layer of %s can become int8%s", climb->source.choice.network->title,
          choice.first ? "" : " with --float-first; leave that option out");
    if (int8_open(&narrow, &climb->whole, climb->tried, climb->batch, &err) != 0) die("%s", err.message);
    const JudgedRung *rung = add_rung(climb, names[method], &narrow);
    model_close(&narrow);
    if (climb->best >= 0 && !is_better(rung, &climb->rung[climb->best])) continue;
    climb->best = climb->count - 1;
    memcpy(climb->scale, climb->tried, (size_t)climb->whole.graph->count * sizeof *climb->scale);
  }
  int8_calibration_free(&c);
}

static void print_layers(const Climb *climb) {
  Error err;
  Model narrow;
  if (int8_open_model(&narrow, &climb->whole, climb->scale, climb->batch, false, 0, &err) != 0) die("%s", err.message);
  Int8Layer *layers = (Int8Layer *)xmalloc((size_t)narrow.graph->count * sizeof *layers);
  judge_upload(&climb->test, &climb->whole, 0, climb->batch);
  judge_upload(&climb->test, &narrow, 0, climb->batch);
  printf("\n%s, the first %d test pictures\n", climb->rung[climb->best].name, climb->batch);
  int8_print_layers(stdout, &narrow, layers, int8_compare(layers, &climb->whole, &narrow, climb->scale, climb->batch));
  free(layers);
  model_close(&narrow);
}

static void write_best(const Climb *climb) {
  const Options *o = climb->o;
  write_onnx(o, &climb->source, &climb->whole, climb->scale, o->output);
  printf("\n%s: %s\n", o->shown, climb->rung[climb->best].name);
}

static void print_json(const Climb *climb) {
  Error err;
  json_t *rows = json_array();
  for (int i = 0; i < climb->count; i++)
    if (json_array_append_new(rows, judge_json(&climb->rung[i])) != 0) die("no memory for the rows of --json");
  if (json_result(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "program", "int8", "device",
                            device_name(climb->o->common.device), "gpu", climb->description, "network",
                            climb->source.choice.network->name, "written", climb->rung[climb->best].name, "file",
                            climb->o->shown, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
}

int main(int argc, char **argv) {
  static Options o;
  static Climb climb;
  threads_begin();
  read_options(&o, argc, argv);
  open_climb(&climb, &o);
  climb_floats(&climb);
  climb_int8(&climb);
  if (o.layers) print_layers(&climb);
  write_best(&climb);
  if (o.common.json) print_json(&climb);
  close_climb(&climb);
  stdout_finish();
  return 0;
}

/* int8.cu - a trained network with 8 bits per number: how good it still is, and its ONNX file.
 *
 *     bazel run //phase5_production:int8 -- runs/lenet_mnist/best.safetensors
 *     bazel run //phase5_production:int8 -- runs/fashion_mnist/best.safetensors --calibrator=entropy --layers
 *     bazel run //phase5_production:int8 -- resnet18.pth --images=photos/ --device=gpu
 *
 * The scales come from pictures of the training set, or of a folder. The table has the accuracy of each rung on the test
 * set, and how close its logits are to float32's. The best int8 rung becomes NETWORK.int8.onnx.
 */
#include "common/nn/step_graph.h"
#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase3_cnn/half_ops.cuh"
#include "phase5_production/06_onnx_export/export_weights.cuh"
#include "phase5_production/06_onnx_export/onnx_export.cuh"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/int8_compare.cuh"
#include "phase5_production/09_int8/int8_onnx.cuh"
#include "phase5_production/09_int8/int8_pictures.cuh"

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
      {"calibration-images", CALIBRATION, "N", 0, "Pictures that the scales come from (default: 512)", 0},
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

/* What the scales come from, and what the rungs are judged by. */
static void open_pictures(const Options *o, const ExportSource *source, Pictures *scales, Pictures *test) {
  Error err;
  const Shape shape = graph_shape(source->net.graph, model_input_node(&source->net, 0));
  DataNorm norm = {shape.dim[0], {0}, {1, 1, 1, 1}};
  int status = 0;
  if (o->images[0]) {
    if (shape.rank != 3 || shape.dim[0] != 3)
      die("--images: the network reads %s; it must read colour pictures, (3,H,W)", shape_text(shape).text);
    status = pictures_open_folder(scales, o->images, shape, o->calibration, &err) != 0 ||
             pictures_open_folder(test, o->images, shape, o->test, &err) != 0;
  } else if (source->data != NULL) {
    for (int c = 0; c < shape.dim[0] && c < DATA_MAX_CHANNELS && source->state.stddev[c] > 0; c++) {
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

static void upload(const Pictures *p, const Model *m, int first, int count) {
  Error err;
  const size_t n = (size_t)count * shape_count(p->shape);
  float *x = (float *)xmalloc(n * sizeof *x);
  if (pictures_read(p, first, count, x, &err) != 0) die("%s", err.message);
  device_upload(m->context.device, model_input(m, 0), x, n * sizeof *x);
  free(x);
}

static int logits_node(const Model *m) {
  return m->graph->loss_count > 0 ? m->graph->losses[0].node : m->graph->outputs[0];
}

/* The logits of all test pictures, (count, classes). */
static float *logits_of(const Model *m, const Pictures *test) {
  const size_t classes = shape_count(graph_shape(m->graph, logits_node(m)));
  float *y = (float *)xmalloc((size_t)test->count * classes * sizeof *y);
  for (int first = 0; first < test->count; first += m->max_batch) {
    const int count = test->count - first < m->max_batch ? test->count - first : m->max_batch;
    upload(test, m, first, count);
    for (int i = 0; i < m->graph->count; i++)
      if (m->graph->nodes[i].op) model_forward_node(m, i, count);
    device_download(m->context.device, y + first * classes, model_output(m, logits_node(m)),
                    (size_t)count * classes * sizeof *y);
  }
  return y;
}

static Int8Calibration calibrate(const Model *whole, const Pictures *p) {
  Int8Calibration c = int8_calibration(whole->graph);
  for (int pass = 0; pass < 2; pass++)
    for (int first = 0; first < p->count; first += whole->max_batch) {
      const int count = p->count - first < whole->max_batch ? p->count - first : whole->max_batch;
      upload(p, whole, first, count);
      int8_observe(&c, whole, count, pass);
    }
  return c;
}

/* ---------------------------------------------------------------------------------------------------------------- */

typedef struct Rung {
  const char *name;
  double accuracy, agreement; /* NaN without labels; with the answers of float32 */
  Int8Difference difference;  /* of the logits to float32's */
  double weight_bytes;
} Rung;

static int largest(const float *y, size_t n) {
  int best = 0;
  for (size_t i = 1; i < n; i++)
    if (y[i] > y[best]) best = (int)i;
  return best;
}

static double weight_bytes(const Model *m) {
  double bytes = 0;
  for (int i = 0; i < m->graph->count; i++)
    for (int k = 0; k < m->graph->nodes[i].params; k++) {
      const Param *p = &m->graph->nodes[i].param[k];
      bytes += p->bytes ? (double)p->bytes : (double)p->count * (p->half_channels > 0 ? 2 : 4);
    }
  return bytes;
}

static Rung judge(const char *name, const Model *m, const Pictures *test, const float *expected) {
  const size_t classes = shape_count(graph_shape(m->graph, logits_node(m)));
  float *y = logits_of(m, test);
  int right = 0, same = 0;
  for (int i = 0; i < test->count; i++) {
    const int answer = largest(y + i * classes, classes);
    if (pictures_have_labels(test)) right += answer == test->set.labels[i];
    if (expected != NULL) same += answer == largest(expected + i * classes, classes);
  }
  Rung rung = {name, NAN, 1, {1, 0, INFINITY}, weight_bytes(m)};
  if (pictures_have_labels(test)) rung.accuracy = (double)right / test->count;
  if (expected != NULL) {
    rung.agreement = (double)same / test->count;
    rung.difference = int8_difference(expected, y, (size_t)test->count * classes);
  }
  free(y);
  return rung;
}

static void print_rung(const Rung *r, const Rung *whole) {
  printf("%-12s", r->name);
  if (isnan(r->accuracy))
    printf("%12s%10s", "-", "-");
  else
    printf("%11.2f%%%+10.2f", 100 * r->accuracy, 100 * (r->accuracy - whole->accuracy));
  printf("%11.2f%%%12.6f%10.1f%12.3f\n", 100 * r->agreement, r->difference.cosine, r->difference.sqnr,
         r->weight_bytes * 1e-6);
  fflush(stdout);
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
  const Int8Weights weights = {int8_find_in_model, &from};
  if (onnx_export(&onnx, whole, &options, &err) != 0) die("%s", err.message);
  export_describe(source, &request, &onnx);
  if (int8_onnx_write(&onnx, whole->graph, scale, weights, &err) != 0 || onnx_model_write(onnx.proto, path, &err) != 0)
    die("%s", err.message);
  onnx_model_close(&onnx);
  free(from.host);
}

static json_t *rung_json(const Rung *r) {
  json_t *row = json_pack("{s:s, s:f, s:f, s:f}", "version", r->name, "agreement", r->agreement, "cosine",
                          r->difference.cosine, "weight_bytes", r->weight_bytes);
  if (!isnan(r->accuracy)) json_object_set_new(row, "test_accuracy", json_real(r->accuracy));
  if (isfinite(r->difference.sqnr)) json_object_set_new(row, "sqnr_db", json_real(r->difference.sqnr));
  return row;
}

int main(int argc, char **argv) {
  static Options o;
  static ExportSource source;
  static const char *const names[] = {"int8 minmax", "int8 perc.", "int8 entropy"};
  Error err;
  Model whole, other;
  Pictures scales, test;
  char description[512], file[128];
  threads_begin();
  read_options(&o, argc, argv);
  if (device_open(o.common.device, description, sizeof description, &err) != 0) die("%s", err.message);
  const ExportRequest request = {o.weights, o.network, o.data, "", o.side, o.common.seed, 1};
  if (export_open(&source, &request, &err) != 0) die("%s", err.message);
  open_pictures(&o, &source, &scales, &test);
  int batch = o.common.batch_size < test.count ? o.common.batch_size : test.count;
  source.net.context.device = DEVICE_CPU;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = o.common.device;
  if (model_open(&whole, int8_prepare(source.net.graph), context, NULL, batch, MODEL_INFER, &err) != 0 ||
      batch_norm2d_fold_parameters(&whole, &source.net, &err) != 0)
    die("%s", err.message);
  printf("%s, %d pictures for the scales, %d to test\n\n", source.choice.network->title, scales.count, test.count);
  printf("%-12s%12s%10s%12s%12s%10s%12s\n", "", "accuracy", "points", "as float32", "cosine", "SQNR, dB",
         "weights, MB");

  Rung rung[3 + CALIBRATE_METHODS];
  int count = 0, best = -1;
  float *expected = logits_of(&whole, &test);
  rung[count++] = judge("float32", &whole, &test, NULL);
  print_rung(&rung[0], &rung[0]);
  for (int type = 0; type < 2; type++) {
    open_half(&other, &whole, type ? DTYPE_BF16 : DTYPE_FP16, batch);
    rung[count] = judge(type ? "bf16" : "fp16", &other, &test, expected);
    print_rung(&rung[count++], &rung[0]);
    model_close(&other);
  }
  Int8Calibration c = calibrate(&whole, &scales);
  Int8Scale *scale[CALIBRATE_METHODS];
  for (int method = 0; method < CALIBRATE_METHODS; method++) {
    scale[method] = (Int8Scale *)xmalloc((size_t)whole.graph->count * sizeof *scale[method]);
    if (o.only >= 0 && method != o.only) continue;
    o.choice.method = (CalibrateMethod)method;
    int8_scales(scale[method], &c, whole.graph, &o.choice);
    if (int8_open(&other, &whole, scale[method], batch, &err) != 0) die("%s", err.message);
    rung[count] = judge(names[method], &other, &test, expected);
    print_rung(&rung[count], &rung[0]);
    const int better =
        best < 0 || rung[count].accuracy > rung[best].accuracy ||
        (!(rung[count].accuracy < rung[best].accuracy) && rung[count].difference.cosine > rung[best].difference.cosine);
    if (better) best = count, o.choice.method = (CalibrateMethod)method;
    count++;
    model_close(&other);
  }
  int method = 0;
  while (strcmp(names[method], rung[best].name) != 0) method++;
  if (o.layers) {
    if (int8_open_model(&other, &whole, scale[method], batch, false, &err) != 0) die("%s", err.message);
    Int8Layer *layers = (Int8Layer *)xmalloc((size_t)other.graph->count * sizeof *layers);
    upload(&test, &whole, 0, batch);
    upload(&test, &other, 0, batch);
    printf("\n%s, the first %d test pictures\n", rung[best].name, batch);
    int8_print_layers(stdout, &other, layers, int8_compare(layers, &whole, &other, scale[method], batch));
    free(layers);
    model_close(&other);
  }
  if (!o.output[0]) {
    snprintf(file, sizeof file, "%.100s.int8.onnx", source.choice.network->name);
    snprintf(o.shown, sizeof o.shown, "%s", file);
    if (user_path(file, o.output, sizeof o.output, &err) != 0) die("%s", err.message);
  }
  write_onnx(&o, &source, &whole, scale[method], o.output);
  printf("\n%s: %s\n", o.shown, rung[best].name);
  if (o.common.json) {
    json_t *rows = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(rows, rung_json(&rung[i]));
    if (json_result(json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "program", "int8", "device",
                              device_name(o.common.device), "network", source.choice.network->name, "written",
                              rung[best].name, "file", o.shown, "rows", rows),
                    &err) != 0)
      die("%s", err.message);
  }
  for (int i = 0; i < CALIBRATE_METHODS; i++) free(scale[i]);
  free(expected);
  int8_calibration_free(&c);
  pictures_close(&scales);
  pictures_close(&test);
  model_close(&whole);
  export_close(&source);
  stdout_finish();
  return 0;
}

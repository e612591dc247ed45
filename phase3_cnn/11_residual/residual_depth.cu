/* residual_depth.cu - what the shortcut of a residual block does: the same network deeper and deeper, with and without.
 *
 *     bazel run //phase3_cnn:residual_depth
 *     bazel run //phase3_cnn:residual_depth -- --depth=32 --init=he_normal --epochs=3
 *
 * Networks of 3 x 3 convolutions that differ in three things only: their depth, whether each pair of convolutions has a
 * shortcut, and whether batch normalisation follows each convolution. All start from the same kind of weights. The
 * program measures the gradient of each layer's filters in the first batch, before anything has been learned, trains
 * all networks on a part of MNIST, and says what they have learned. */
#include "common/nn/train_options.h"
#include "common/plot.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/11_residual/residual_depth.cuh"

enum { MOST_DEPTHS = 8, MOST_LAYERS = 128, KINDS = 4 };

typedef struct DepthOptions {
  TrainOptions train;
  int depth[MOST_DEPTHS], depths, channels;
  const Init *init;
} DepthOptions;

typedef struct DepthResult {
  DepthNetwork network;
  double layer[MOST_LAYERS], gradient[MOST_LAYERS]; /* of layer i + 1, in the first batch */
  double loss, accuracy;                            /* of the last epoch; of the test. NAN: it has diverged */
} DepthResult;

/* ---- options ---- */

/* "4,8,16" */
static void parse_depths(DepthOptions *options, char *arg, const struct argp_state *state) {
  const char *at = arg;
  options->depths = 0;
  do {
    char *end;
    const long depth = strtol(at, &end, 10);
    if (end == at || (*end != ',' && *end != '\0') || depth < 2 || depth > MOST_LAYERS || depth % 2 != 0 ||
        options->depths == MOST_DEPTHS)
      argp_error(state, "--depth=%s: up to %d even numbers from 2 to %d are expected, as in 4,16", arg, MOST_DEPTHS,
                 MOST_LAYERS);
    options->depth[options->depths++] = (int)depth;
    at = end + (*end == ',');
    if (*end == '\0') return;
  } while (1);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  DepthOptions *options = (DepthOptions *)state->input;
  Error err;
  switch (key) {
    case 'd':
      parse_depths(options, arg, state);
      return 0;
    case 'c':
      options->channels = (int)option_int(state, arg, "--channels", 1, 256);
      return 0;
    case 'i':
      if (init_named(arg, &options->init, &err) != 0) argp_error(state, "--init: %s", err.message);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ---- training ---- */

static void measure_gradients(Model *net, DeviceSet *train, int batch, DepthResult *result) {
  device_set_gather(train, net, 0, batch);
  net->context.training = 1;
  model_forward(net, batch);
  model_score(net, batch);
  model_backward(net, batch);
  for (int i = 0; i < result->network.layers; i++) {
    result->layer[i] = i + 1;
    result->gradient[i] = depth_gradient_norm(net, i + 1);
  }
}

/* The mean loss of the last epoch; NAN where it has diverged. */
static double train_network(const DepthOptions *options, Model *net, DeviceSet *train) {
  const int batch = options->train.common.batch_size;
  double loss = NAN;
  for (int epoch = 0; epoch < options->train.common.epochs; epoch++) {
    const Totals none = {0, 0};
    device_set_shuffle(train, options->train.common.seed, epoch);
    model_reset_totals(net, 0, none);
    for (int start = 0; start < train->count; start += batch) {
      const int size = batches_size_at(train->count, batch, start);
      device_set_gather(train, net, start, size);
      sgd_train_step(net, size, (float)options->train.lr, (float)options->train.momentum);
    }
    loss = model_read_totals(net, 0).loss / train->count;
    if (!isfinite(loss)) return NAN;
  }
  return loss;
}

static void run_network(const DepthOptions *options, DeviceSet *train, const DeviceSet *test, DepthResult *result) {
  const int batch = options->train.common.batch_size;
  Model net;
  sgd_model_open(&net, depth_graph(result->network), options->train.common.device, batch);
  model_init(&net, options->train.common.seed);
  device_set_shuffle(train, options->train.common.seed, 0);
  measure_gradients(&net, train, batch < train->count ? batch : train->count, result);
  model_init(&net, options->train.common.seed); /* batch norm has moved its running statistics */
  result->loss = train_network(options, &net, train);
  const Totals totals = device_set_evaluate(test, &net, NULL);
  result->accuracy = isfinite(result->loss) && isfinite(totals.loss) ? totals.correct / test->count : NAN;
  model_close(&net);
}

/* ---- tables, charts ---- */

static void print_result(const DepthResult *r) {
  const double first = r->gradient[0], last = r->gradient[r->network.layers - 1];
  printf("%5d  %-21s %10.1e %10.1e %10.1e", r->network.layers, depth_name(r->network), first, last, first / last);
  if (isfinite(r->accuracy))
    printf(" %10.3f %9.1f %%\n", r->loss, 100 * r->accuracy);
  else
    printf(" %10s %11s\n", "-", "diverged");
  fflush(stdout);
}

/* Layer by layer, of the four networks of one depth. */
static void print_layers(const DepthResult *r) {
  const int layers = r[0].network.layers, step = layers > 8 ? layers / 8 : 1;
  printf("\nNorm of the gradient of each layer's filters in the first batch, %d layers\n\n%5s", layers, "layer");
  for (int k = 0; k < KINDS; k++) printf(" %21s", depth_name(r[k].network));
  printf("\n");
  for (int i = 0; i < layers; i += i == 0 && step > 1 ? step - 1 : step) {
    printf("%5d", i + 1);
    for (int k = 0; k < KINDS; k++) printf(" %21.1e", r[k].gradient[i]);
    printf("\n");
  }
}

static void draw(const DepthOptions *options, const char *name, const Plot *plot) {
  static const char *const formats[] = {"svg", "png"};
  char path[PATH_MAX + 32];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s.%s", options->train.common.output_dir, name, formats[i]);
    if (plot_or_note(plot, path) != 0) return;
  }
  printf("Drawn: %s\n", path);
}

static void draw_all(const DepthOptions *options, const DepthResult *results) {
  const DepthResult *deepest = results + (options->depths - 1) * KINDS;
  PlotSeries gradients[KINDS], accuracies[KINDS];
  double depth[MOST_DEPTHS], accuracy[KINDS][MOST_DEPTHS];
  char title[128];
  for (int k = 0; k < KINDS; k++) {
    const char *name = depth_name(deepest[k].network);
    for (int d = 0; d < options->depths; d++) {
      depth[d] = options->depth[d];
      accuracy[k][d] = 100 * results[d * KINDS + k].accuracy;
    }
    const PlotSeries one = {name, deepest[k].layer, deepest[k].gradient, (size_t)deepest[k].network.layers, 0};
    const PlotSeries other = {name, depth, accuracy[k], (size_t)options->depths, 0};
    gradients[k] = one;
    accuracies[k] = other;
  }
  snprintf(title, sizeof title, "Gradient of each layer's filters in the first batch, %d layers, %s",
           deepest->network.layers, options->init->name);
  const Plot first = {title, "layer", "norm of the gradient", NULL, 0, 1, gradients, KINDS};
  const Plot second = {"After training", "layers", "test accuracy, %", NULL, 1, 0, accuracies, KINDS};
  printf("\n");
  draw(options, "gradients", &first);
  if (options->depths > 1) draw(options, "accuracy", &second);
}

static void print_json(const DepthOptions *options, const DepthResult *results) {
  Error err;
  json_t *networks = json_array();
  for (int i = 0; i < options->depths * KINDS; i++) {
    const DepthResult *r = &results[i];
    json_t *gradients = json_array();
    for (int l = 0; l < r->network.layers; l++) json_array_append_new(gradients, json_number(r->gradient[l]));
    json_t *row = json_pack("{s:i, s:b, s:b, s:o}", "layers", r->network.layers, "shortcut", r->network.shortcut,
                            "batch_norm", r->network.batch_norm, "gradients", gradients);
    if (isfinite(r->loss)) json_object_set_new(row, "train_loss", json_real(r->loss));
    if (isfinite(r->accuracy)) json_object_set_new(row, "test_accuracy", json_real(r->accuracy));
    json_array_append_new(networks, row);
  }
  if (json_result(json_pack("{s:s, s:s, s:I, s:i, s:s, s:o}", "program", "residual_depth", "device",
                            device_name(options->train.common.device), "seed", (json_int_t)options->train.common.seed,
                            "epochs", options->train.common.epochs, "init", options->init->name, "networks", networks),
                  &err) != 0)
    die("%s", err.message);
}

/* ---- the program ---- */

static void load_sets(const DepthOptions *options, DataSet *train, DataSet *test, DataNorm *norm) {
  Error err;
  if (data_load_both(&data_mnist, options->train.common.data_dir, options->train.train_images,
                     options->train.test_images, train, test, norm, &err) != 0)
    die("%s", err.message);
}

static void default_options(DepthOptions *options) {
  static const int depths[] = {4, 8, 16, 32};
  train_options_default(&options->train, OPTIONS_TRAINER,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS);
  options->train.common.epochs = 2;
  options->train.common.batch_size = 32;
  options->train.train_images = 2000;
  options->train.test_images = 1000;
  options->train.lr = 0.01;
  options->train.momentum = 0.9;
  options->channels = 8;
  options->init = &torch_default;
  options->depths = 4;
  memcpy(options->depth, depths, sizeof depths);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"depth", 'd', "N,N", 0, "Convolutions of each network behind its stem (default: 4,8,16,32)", 0},
      {"channels", 'c', "N", 0, "Filters of each convolution (default: 8)", 0},
      {"init", 'i', "NAME", 0, "How weights start: torch, he_normal, xavier_normal, ... (default: torch)", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Trains networks with and without shortcuts, deeper and deeper.",
                                  NULL, NULL,  NULL};
  static DepthOptions options;
  static DepthResult results[MOST_DEPTHS * KINDS];
  char device[512];
  Error err;
  threads_begin();
  default_options(&options);
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);
  const CommonOptions *common = &options.train.common;
  DataSet train_host, test_host;
  DataNorm norm;
  load_sets(&options, &train_host, &test_host, &norm);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  if (device_open(common->device, device, sizeof device, &err) != 0) die("%s", err.message);
  printf(
      "residual_depth on %s\n%d channels of 7 x 7, weights %s, learning rate %g; %d images of MNIST in batches of "
      "%d, %d epoch%s; %d for the test\n\n%5s  %-21s %32s %10s %11s\n%5s  %-21s %10s %10s %10s\n",
      device, options.channels, options.init->name, options.train.lr, train_host.count, common->batch_size,
      common->epochs, common->epochs == 1 ? "" : "s", test_host.count, "", "", "gradient of the first batch, layer",
      "training", "test", "depth", "network", "first", "last", "ratio");
  DeviceSet train, test;
  device_set_create(&train, common->device, &batch_kernels, &train_host, train_host.count, &norm);
  device_set_create(&test, common->device, &batch_kernels, &test_host, test_host.count, &norm);
  for (int i = 0; i < options.depths * KINDS; i++) {
    const DepthNetwork network = {options.depth[i / KINDS], options.channels, i % KINDS / 2, i % 2, options.init};
    results[i].network = network;
    run_network(&options, &train, &test, &results[i]);
    print_result(&results[i]);
  }
  print_layers(results + (options.depths - 1) * KINDS);
  draw_all(&options, results);
  if (common->json) print_json(&options, results);
  device_set_destroy(&train);
  device_set_destroy(&test);
  data_free(&train_host);
  data_free(&test_host);
  stdout_finish();
  return 0;
}

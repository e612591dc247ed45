/* int8_bench.cu - the inference of ResNet-18 with int8 beside the best rung of fp16 (lesson 4), in one run.
 *
 *     bazel run --config=cuda //phase5_production:int8_bench -- --operations
 *
 * Weights are random, and so are the pictures, which the scales come from, too: the times are those of any others. The
 * cosine is of the logits beside float32's.
 */
#include "common/options.h"
#include "common/threads_begin.h"
#include "common/train_log.h"
#include "phase5_production/04_resnet18_fused/fused_measure.cuh"
#include "phase5_production/04_resnet18_fused/fused_reference.cuh"
#include "phase5_production/09_int8/int8_calibrate.cuh"
#include "phase5_production/09_int8/int8_compare.cuh"

typedef struct Options {
  CommonOptions common;
  Resnet18Shape shape;
  int operations, layers, stem_int8;
  Int8Choice choice;
} Options;

enum { SIDE = 1, WIDTH, OPERATIONS, LAYERS, STEM_INT8, WHOLE_SUMS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case SIDE:
      options->shape.side = (int)option_int(state, arg, "--side", 8, 1024);
      return 0;
    case WIDTH:
      options->shape.width = (int)option_int(state, arg, "--width", 16, 256);
      if (options->shape.width % 16 != 0) argp_error(state, "--width=%s: a multiple of 16 is expected", arg);
      return 0;
    case OPERATIONS:
      options->operations = 1;
      return 0;
    case LAYERS:
      options->layers = 1;
      return 0;
    case STEM_INT8:
      options->stem_int8 = 1;
      return 0;
    case WHOLE_SUMS:
      options->choice.sums_whole = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static Options read_options(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"side", SIDE, "N", 0, "Pictures of N x N pixels (default: 224; on an emulated GPU 32)", 0},
      {"width", WIDTH, "N", 0, "Channels of the first convolution (default: 64; on an emulated GPU 16)", 0},
      {"operations", OPERATIONS, NULL, 0, "Time each operation (on a GPU)", 0},
      {"layers", LAYERS, NULL, 0, "Print how far each layer is from float32", 0},
      {"stem-int8", STEM_INT8, NULL, 0, "The first layers have products of int8, not fp16", 0},
      {"whole-sums", WHOLE_SUMS, NULL, 0, "Do not round a convolution before a residual block's sum", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Times ResNet-18 with int8 beside fp16.", NULL, NULL, NULL};
  Options options = {options_default(OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED),
                     resnet18_imagenet,
                     0,
                     0,
                     0,
                     {CALIBRATE_MIN_MAX, 0, 1, 0}};
  options.common.device = DEVICE_GPU;
#ifdef SIMT_REWRITTEN
  options.common.batch_size = 2;
  options.shape.side = 32;
  options.shape.width = 16;
  options.shape.classes = 10;
#endif
  options_parse(&options.common, &own, &options, argc, argv);
  return options;
}

static FusedResult measure(Fused *f, const float *pictures, size_t numbers, float *logits, int operations) {
  const size_t count = (size_t)f->batch * shape_count(graph_shape(f->model.graph, f->model.graph->losses[0].node));
  FusedResult result = {f->rung, 0, fused_bytes(f), NAN, model_bytes(&f->model), NAN, NAN, NAN};
  device_upload(f->model.context.device, model_input(&f->model, 0), pictures, numbers * sizeof *pictures);
  fused_infer(f);
  device_download(f->model.context.device, logits, fused_logits(f), count * sizeof *logits);
  if (f->model.context.device == DEVICE_GPU) result.kernels = fused_kernels(f);
#ifndef SIMT_REWRITTEN
  if (f->model.context.device == DEVICE_GPU) fused_measure_times(&result, f);
  if (f->model.context.device == DEVICE_GPU && operations) fused_print_operations(stdout, f);
#else
  (void)operations;
#endif
  return result;
}

/* The scales from these pictures. */
static Int8Scale *calibrated(const Model *whole, const float *pictures, size_t numbers, int batch, Int8Choice choice) {
  Int8Calibration c = int8_calibration(whole->graph);
  Int8Scale *scale = (Int8Scale *)xmalloc((size_t)whole->graph->count * sizeof *scale);
  for (int pass = 0; pass < 2; pass++) {
    device_upload(whole->context.device, model_input(whole, 0), pictures, numbers * sizeof *pictures);
    int8_observe(&c, whole, batch, pass);
  }
  int8_scales(scale, &c, whole->graph, &choice);
  int8_calibration_free(&c);
  return scale;
}

static void print_result(const FusedResult *r, double cosine, double first) {
  printf("%-8s%8d kernels %9.2f MB", r->rung->name, r->kernels, r->bytes * 1e-6);
  if (!isnan(r->gpu))
    printf(" %9.1f us, host %6.1f us, %.2f times as fast", r->gpu * 1e6, r->host * 1e6, first / r->gpu);
  printf("   cosine %.6f\n", cosine);
  fflush(stdout);
}

int main(int argc, char **argv) {
  static const FusedRung int8_rung = {"int8", "int8", FUSED_FP16, FUSED_GRAPH};
  Error err;
  Model trained, whole;
  Fused half, narrow;
  char description[512];
  threads_begin();
  const Options options = read_options(argc, argv);
  const Device device = options.common.device;
  const int batch = options.common.batch_size;
  const size_t numbers = (size_t)batch * 3 * options.shape.side * options.shape.side;
  const size_t logits = (size_t)batch * options.shape.classes;
  if (device_open(device, description, sizeof description, &err) != 0) die("%s", err.message);
#ifdef SIMT_REWRITTEN
  if (device == DEVICE_GPU) snprintf(description, sizeof description, "an emulated GPU"); /* not which CPU */
#endif
  printf("ResNet-18, width %d, batch %d, pictures of %d x %d, on %s\n", options.shape.width, batch, options.shape.side,
         options.shape.side, description);
  if (fused_trained_open(&trained, options.shape, device, options.common.seed, &err) != 0) die("%s", err.message);
  if (batch_norm2d_fold_open(&whole, int8_prepare(trained.graph), &trained, batch, &err) != 0) die("%s", err.message);
  float *pictures = (float *)xmalloc(numbers * sizeof *pictures), *y[3];
  for (int i = 0; i < 3; i++) y[i] = (float *)xmalloc(logits * sizeof *y[i]);
  fused_uniform(pictures, numbers, options.common.seed, 1, -1.7320508f, 3.4641016f);
  Int8Scale *scale = calibrated(&whole, pictures, numbers, batch, options.choice);
  device_upload(device, model_input(&whole, 0), pictures, numbers * sizeof *pictures);
  model_forward(&whole, batch);
  device_download(device, y[0], model_logits(&whole, 0), logits * sizeof *y[0]);

  if (fused_open(&half, fused_rung("fp16_graph"), &trained, batch, &err) != 0) die("fp16: %s", err.message);
  const FusedResult first = measure(&half, pictures, numbers, y[1], options.operations);
  print_result(&first, int8_difference(y[0], y[1], logits).cosine, first.gpu);
  fused_close(&half);

  memset(&narrow, 0, sizeof narrow);
  narrow.rung = &int8_rung;
  narrow.batch = batch;
  if (int8_open_model(&narrow.model, &whole, scale, batch, options.layers == 0, options.stem_int8, &err) != 0)
    die("int8: %s", err.message);
  if (device == DEVICE_GPU) fused_record(&narrow);
  const FusedResult result = measure(&narrow, pictures, numbers, y[2], options.operations);
  print_result(&result, int8_difference(y[0], y[2], logits).cosine, first.gpu);
  if (options.layers) {
    Int8Layer *layers = (Int8Layer *)xmalloc((size_t)narrow.model.graph->count * sizeof *layers);
    device_upload(device, model_input(&whole, 0), pictures, numbers * sizeof *pictures);
    int8_print_layers(stdout, &narrow.model, layers, int8_compare(layers, &whole, &narrow.model, scale, batch));
    free(layers);
  }
  fused_close(&narrow);
  for (int i = 0; i < 3; i++) free(y[i]);
  free(pictures);
  free(scale);
  model_close(&whole);
  model_close(&trained);
  stdout_finish();
  return 0;
}

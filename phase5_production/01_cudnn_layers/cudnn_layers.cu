/* cudnn_layers.cu - each layer of a convolutional network, by ours and by cuDNN: time, memory, and the difference.
 *
 *     bazel run //phase5_production:cudnn_layers                        on a GPU: times; else emulated: memory, errors
 *     bazel run //phase5_production:cudnn_layers -- --only=conv3x3 --batch-size=256
 *
 * Each line is one layer of a network, forward and backward, as common/nn calls it; of our convolutions it is the
 * fastest, as --conv=auto chooses. Behind them convolution + bias + ReLU: as three calls of cuDNN's older interface, as
 * its one fused call, as one graph of the new interface, and as ours.
 */
#include "common/options.h"
#include "common/train_log.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_relu_op.cuh"
#include "phase5_production/01_cudnn_layers/cudnn_layers_lesson.cuh"
#include "phase5_production/01_cudnn_layers/dnn_activation.cuh"
#include "phase5_production/01_cudnn_layers/dnn_conv2d_graph.cuh"

typedef struct Options {
  CommonOptions common;
  const char *only; /* NULL: all */
} Options;

enum { KEY_ONLY = 1 };

/* Of the networks of phase 3 and of ResNet-18; emulated they have fewer channels. */
static const LayerCase cases[] = {
    {"conv5x5", layer_conv5x5, {3, {6, 14, 14, 0}}, 64},
    {"conv3x3", layer_conv3x3, {3, {64, 56, 56, 0}}, 64},
    {"stride2", layer_conv_stride, {3, {64, 56, 56, 0}}, 64},
    {"conv1x1", layer_conv1x1, {3, {64, 56, 56, 0}}, 64},
    {"relu", layer_relu, {3, {64, 56, 56, 0}}, 64},
    {"sigmoid", layer_sigmoid, {3, {64, 56, 56, 0}}, 64},
    {"tanh", layer_tanh, {3, {64, 56, 56, 0}}, 64},
    {"max_pool", layer_max_pool, {3, {64, 56, 56, 0}}, 64},
    {"mean_pool", layer_avg_pool, {3, {64, 56, 56, 0}}, 64},
    {"plane", layer_global_pool, {3, {512, 7, 7, 0}}, 64},
    {"batch_norm", layer_batch_norm, {3, {64, 56, 56, 0}}, 64},
    {"add", layer_add, {3, {64, 56, 56, 0}}, 64},
    {"softmax", layer_softmax, {1, {1000, 0, 0, 0}}, 64},
};

enum { CASES = sizeof cases / sizeof *cases };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  if (key != KEY_ONLY) return ARGP_ERR_UNKNOWN;
  int found = strcmp(arg, "fused") == 0;
  for (int i = 0; i < CASES; i++) found |= strcmp(arg, cases[i].name) == 0;
  if (!found) argp_failure(state, 2, 0, "--only=%s: expected conv3x3, relu, fused or another name of the table", arg);
  options->only = arg;
  return 0;
}

/* What an emulated GPU can do in a second. */
static LayerCase scaled(LayerCase c, const Options *options) {
  c.batch = options->common.batch_size;
#ifdef SIMT_REWRITTEN
  if (c.in.dim[0] > 8) c.in.dim[0] = c.in.rank == 1 ? 100 : 8;
  for (int i = 1; i < 3; i++)
    if (c.in.dim[i] > 14) c.in.dim[i] = 14;
#endif
  return c;
}

/* --------------------------------------------------------------------------------------------------- layer by layer */

static void print_header(int has_times) {
  printf("%-10s %-18s", "layer", "shape");
  if (has_times) printf(" %9s %9s %6s %9s %9s %6s", "ours us", "cuDNN us", "ratio", "back", "cuDNN", "ratio");
  printf(" %12s %12s %12s %12s %9s  %s\n", "ours kB", "scratch kB", "cuDNN kB", "scratch kB", "differ by",
         "algorithms");
}

static double kilobytes(size_t bytes) { return (double)bytes / 1e3; }

/* Emulated, the order of a sum depends on the processor's vectors, and so does the last digit. */
static const char *difference_text(double difference, char text[16]) {
#ifdef SIMT_REWRITTEN
  if (difference < 1e-5) return "< 1e-5";
#endif
  snprintf(text, 16, "%.1e", difference);
  return text;
}

/* best: what ours is, where it was chosen; else "ours". */
static void print_pair(const char *best, const LayerRun *ours, const LayerRun *theirs, const LayerCase *c,
                       json_t *rows) {
  const char *const name = c->name;
  const int chosen = strcmp(best, "ours") != 0;
  const int has_times = ours->forward > 0;
  char shape[160], text[16];
  const double difference = theirs ? layer_difference(theirs, ours) : NAN;
  snprintf(shape, sizeof shape, "%d x %s", c->batch, shape_text(c->in).text);
  printf("%-10s %-18s", name, shape);
  json_t *row = json_pack("{s:s, s:s, s:I, s:I}", "version", name, "shape", shape, "kept_bytes",
                          (json_int_t)(ours->kept + ours->saved), "workspace_bytes", (json_int_t)ours->workspace);
  if (chosen) json_object_set_new(row, "ours", json_string(best));
  for (int back = 0; back < 2 && has_times; back++) {
    const double us = 1e6 * (back ? ours->backward : ours->forward);
    json_object_set_new(row, back ? "backward_us" : "time_us", json_real(us));
    printf(" %9.1f", us);
    if (theirs == NULL) {
      printf(" %9s %6s", "-", "-");
      continue;
    }
    const double other = 1e6 * (back ? theirs->backward : theirs->forward);
    printf(" %9.1f %5.2fx", other, other / us);
    json_object_set_new(row, back ? "cudnn_backward_us" : "cudnn_us", json_real(other));
    json_object_set_new(row, back ? "backward_vs_library" : "vs_library", json_real(other / us));
  }
  printf(" %12.1f %12.1f", kilobytes(ours->kept + ours->saved), kilobytes(ours->workspace));
  if (theirs == NULL) {
    printf(" %12s %12s %9s%s%s\n", "-", "-", "-", chosen ? "  " : "", chosen ? best : "");
  } else {
    printf(" %12.1f %12.1f %9s", kilobytes(theirs->kept + theirs->saved), kilobytes(theirs->workspace),
           difference_text(difference, text));
    if (chosen) printf("  %s |", best);
    for (int pass = 0; pass < 3; pass++)
      if (theirs->algorithm[pass]) printf("%s %s", pass ? "," : " ", theirs->algorithm[pass]);
    putchar('\n');
    json_object_set_new(row, "cudnn_kept_bytes", json_integer((json_int_t)(theirs->kept + theirs->saved)));
    json_object_set_new(row, "cudnn_workspace_bytes", json_integer((json_int_t)theirs->workspace));
    json_object_set_new(row, "error", json_real(difference));
    json_object_set_new(row, "ok", json_boolean(difference <= 1e-4));
  }
  json_array_append_new(rows, row);
}

/* 1: the results differ. Without cuDNN a note says why ours stand alone. */
static int compare_layers(const Options *options, json_t *rows) {
  Error err;
  int wrong = 0, first = 1;
  for (int i = 0; i < CASES; i++) {
    if (options->only && strcmp(options->only, cases[i].name) != 0) continue;
    const LayerCase c = scaled(cases[i], options);
    LayerRun ours, theirs;
    const char *const best = layer_best(&c);
    if (layer_run(&ours, &c, best, DEVICE_GPU, 0, LAYER_LAUNCHES, &err) != 0) die("%s", err.message);
    const int have = layer_run(&theirs, &c, "cudnn", DEVICE_GPU, 0, LAYER_LAUNCHES, &err) == 0;
    if (first && !have) printf("%s\n\n", err.message);
    if (first) print_header(ours.forward > 0);
    first = 0;
    print_pair(best, &ours, have ? &theirs : NULL, &c, rows);
    if (have && !(layer_difference(&theirs, &ours) <= 1e-4)) wrong = 1;
    layer_free(&ours);
    if (have) layer_free(&theirs);
  }
  return wrong;
}

/* ------------------------------------------------------------------------------------- convolution + bias + ReLU */

#if CUDNN_COMPILED

typedef struct Fused {
  Conv2dShape shape;
  const Conv2dMethod *method; /* of ours, with ReLU behind it; NULL: one kernel does all */
  float *x, *w, *bias, *y;
  void *workspace;
  DnnConv2d conv;
  DnnConv2dGraph graph;
  DnnElements relu;
  cudnnActivationDescriptor_t fused_relu; /* of the one call, which takes no other than CUDNN_NOT_PROPAGATE_NAN */
} Fused;

static void fused_ours(const Fused *f) {
  if (f->method == NULL) {
    conv2d_relu_forward_gpu(f->y, f->x, f->w, f->bias, f->shape);
    return;
  }
  f->method->forward(f->y, f->x, f->w, f->bias, f->shape, (float *)f->workspace);
  relu_forward_gpu(f->y, f->y, conv2d_y_count(f->shape));
}

static void fused_three_calls(const Fused *f) {
  dnn_conv2d_forward(&f->conv, f->y, f->x, f->w, f->bias, f->workspace);
  dnn_activation_forward(&f->relu, f->y, f->y);
}

/* y = relu(conv(x) + 0 * y + bias). Of all algorithms it takes IMPLICIT_PRECOMP_GEMM alone. */
static void fused_one_call(const Fused *f) {
  const Cudnn *api = f->conv.dnn.api;
  const float one = 1, zero = 0;
  CUDNN_CHECK(api, api->cudnnConvolutionBiasActivationForward(
                       f->conv.dnn.handle, &one, f->conv.x, f->x, f->conv.w, f->w, f->conv.convolution,
                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, f->workspace, DNN_WORKSPACE_MOST, &zero,
                       f->conv.y, f->y, f->conv.bias, f->bias, f->fused_relu, f->conv.y, f->y));
}

static void fused_graph(const Fused *f) {
  dnn_conv2d_graph_forward(&f->graph, f->y, f->x, f->w, f->bias, f->workspace);
}

static double fused_time(const Fused *f, void (*launch)(const Fused *)) {
#ifdef SIMT_REWRITTEN
  (void)f, (void)launch;
  return 0;
#else
  double samples[LAYER_ROUNDS];
  enum { REPEATS = 20 };
  GpuTimer timer = gpu_timer_open();
  for (int round = -1; round < LAYER_ROUNDS; round++) {
    gpu_timer_start(&timer);
    for (int i = 0; i < REPEATS; i++) launch(f);
    const double seconds = gpu_timer_stop(&timer) / REPEATS;
    if (round >= 0) samples[round] = seconds;
  }
  gpu_timer_close(&timer);
  return timer_stats(samples, LAYER_ROUNDS).median;
#endif
}

/* The fastest of ours: a method of --conv with ReLU behind it may be faster than the usual one with ReLU in it. */
static void fused_choose(Fused *f) {
  double least = fused_time(f, fused_ours);
  const Conv2dMethod *best = NULL;
  for (int k = 0; k < conv2d_choice.count && least > 0; k++) {
    if (conv2d_choice.list[k].fits != conv2d_method_fits) continue; /* the usual one, and the naive one */
    Error why;
    f->method = ((const Conv2dMethodOp *)conv2d_choice.list[k].op)->method;
    const size_t floats = f->method->workspace_floats ? f->method->workspace_floats(f->shape) : 0;
    if ((f->method->fits && f->method->fits(f->shape, &why) != 0) || floats > DNN_WORKSPACE_MOST / sizeof(float))
      continue;
    const double seconds = fused_time(f, fused_ours);
    if (seconds < least) least = seconds, best = f->method;
  }
  f->method = best;
}

/* The largest difference to the definition, of the largest value. */
static double fused_error(const Fused *f, const float *expected) {
  const size_t n = conv2d_y_count(f->shape);
  float *got = (float *)xmalloc(n * sizeof *got);
  double worst = 0, largest = 0;
  device_synchronize(DEVICE_GPU);
  device_download(DEVICE_GPU, got, f->y, n * sizeof *got);
  for (size_t i = 0; i < n; i++) {
    const double d = fabs((double)got[i] - expected[i]);
    if (!(d <= worst)) worst = d;
    largest = fmax(largest, fabs((double)expected[i]));
  }
  free(got);
  return worst / fmax(largest, FLT_MIN);
}

static float *fused_expected(const Fused *f) {
  const Conv2dShape s = f->shape;
  const size_t x = conv2d_x_count(s), w = conv2d_w_count(s), y = conv2d_y_count(s);
  float *host = (float *)xmalloc((x + w + (size_t)s.k) * sizeof *host), *expected = (float *)xmalloc(y * sizeof *host);
  device_download(DEVICE_GPU, host, f->x, x * sizeof *host);
  device_download(DEVICE_GPU, host + x, f->w, w * sizeof *host);
  device_download(DEVICE_GPU, host + x + w, f->bias, (size_t)s.k * sizeof *host);
  float *workspace = (float *)xmalloc((conv2d_workspace_floats(DEVICE_CPU, s) + 1) * sizeof *workspace);
  conv2d_forward_cpu_fast(expected, host, host + x, host + x + w, s, workspace);
  free(workspace);
  for (size_t i = 0; i < y; i++) expected[i] = fmaxf(expected[i], 0);
  free(host);
  return expected;
}

static int fused_row(const Fused *f, const char *name, void (*launch)(const Fused *), const float *expected,
                     const char *note, json_t *rows) {
  device_zero(DEVICE_GPU, f->y, conv2d_y_count(f->shape) * sizeof *f->y);
  launch(f);
  char text[16];
  const double error = fused_error(f, expected), seconds = fused_time(f, launch);
  printf("%-12s", name);
  if (seconds > 0) printf(" %9.1f us", 1e6 * seconds);
  printf(" %9s  %s\n", difference_text(error, text), note);
  json_t *row = json_pack("{s:s, s:s, s:f, s:b}", "version", name, "shape", conv2d_shape_text(f->shape).text, "error",
                          error, "ok", error <= 1e-4);
  if (seconds > 0) json_object_set_new(row, "time_us", json_real(1e6 * seconds));
  json_array_append_new(rows, row);
  return !(error <= 1e-4);
}

static int compare_fused(const Options *options, json_t *rows) {
  Fused f;
  Dnn dnn;
  Error err;
  const LayerCase c = scaled(cases[1], options);
  memset(&f, 0, sizeof f);
  f.shape = conv2d_shape(c.batch, c.in.dim[0], c.in.dim[1], c.in.dim[2], c.in.dim[0], 3, 3, 1, 1);
  if (dnn_open(&dnn, &err) != 0) return 0; /* said before */
  if (dnn_conv2d_open(&f.conv, &dnn, f.shape, 0, DNN_WORKSPACE_MOST, &err) != 0) die("%s", err.message);
  dnn_activation_open(&f.relu, &dnn, ACTIVATION_RELU, c.batch, (int)(conv2d_y_count(f.shape) / (size_t)c.batch));
  CUDNN_CHECK(dnn.api, dnn.api->cudnnCreateActivationDescriptor(&f.fused_relu));
  CUDNN_CHECK(dnn.api,
              dnn.api->cudnnSetActivationDescriptor(f.fused_relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  f.x = layer_array(DEVICE_GPU, conv2d_x_count(f.shape), 1);
  f.w = layer_array(DEVICE_GPU, conv2d_w_count(f.shape), 2);
  f.bias = layer_array(DEVICE_GPU, (size_t)f.shape.k, 3);
  f.y = layer_array(DEVICE_GPU, conv2d_y_count(f.shape), 0);
  f.workspace = device_alloc(DEVICE_GPU, DNN_WORKSPACE_MOST);
  float *expected = fused_expected(&f);
  printf("\nconvolution + bias + ReLU of %s\n", conv2d_shape_text(f.shape).text);
  char note[64] = "one kernel";
  fused_choose(&f);
  if (f.method) snprintf(note, sizeof note, "%s, then ReLU in its place", f.method->name);
  int wrong = fused_row(&f, "ours", fused_ours, expected, note, rows);
  wrong |=
      fused_row(&f, "three calls", fused_three_calls, expected, "y is written, read, written, read, written", rows);
  wrong |= fused_row(&f, "one call", fused_one_call, expected, "cudnnConvolutionBiasActivationForward", rows);
  if (dnn_conv2d_graph_open(&f.graph, &dnn, f.shape, DNN_WORKSPACE_MOST, &err) == 0)
    wrong |= fused_row(&f, "graph", fused_graph, expected, f.graph.plan.name, rows);
  else
    printf("%-12s %s\n", "graph", err.message);
  dnn_conv2d_graph_close(&f.graph);
  dnn_conv2d_close(&f.conv);
  dnn_elements_close(&f.relu);
  CUDNN_CHECK(dnn.api, dnn.api->cudnnDestroyActivationDescriptor(f.fused_relu));
  dnn_close(&dnn);
  float *const arrays[] = {f.x, f.w, f.bias, f.y, (float *)f.workspace};
  for (int i = 0; i < 5; i++) device_free(DEVICE_GPU, arrays[i]);
  free(expected);
  return wrong;
}

#else

static int compare_fused(const Options *options, json_t *rows) {
  (void)options;
  (void)rows;
  return 0;
}

#endif

int main(int argc, char **argv) {
  static const struct argp_option rows_of[] = {
      {"only", KEY_ONLY, "NAME", 0, "One line of the table: conv3x3, relu, ..., or fused", 0}, OPTION_END};
  static const struct argp own = {rows_of, parse, NULL, "Compares each layer of ours with cuDNN's.", NULL, NULL, NULL};
  Options options;
  char description[512];
  Error err;
  memset(&options, 0, sizeof options);
  options.common = options_default(OPTIONS_DEVICE | OPTIONS_JSON | OPTIONS_BATCH_SIZE);
  options.common.device = DEVICE_GPU;
#ifdef SIMT_REWRITTEN
  options.common.batch_size = 2;
#endif
  options_parse(&options.common, &own, &options, argc, argv);
  if (options.common.device != DEVICE_GPU) die("cuDNN computes on GPUs alone; leave --device=cpu out");
  if (device_open(DEVICE_GPU, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("cuDNN's layers and ours on %s\n", description);
  json_t *result = json_pack("{s:s, s:s}", "lesson", "cudnn_layers", "device", "gpu"), *rows = json_array();
  int wrong = 0;
  if (options.only == NULL || strcmp(options.only, "fused") != 0) wrong |= compare_layers(&options, rows);
  if (options.only == NULL || strcmp(options.only, "fused") == 0) wrong |= compare_fused(&options, rows);
  printf(
      "\nours kB, cuDNN kB: x, y and what is saved that stay in memory from forward to backward; scratch: workspace of "
      "one call;\ndiffer by: the largest difference of all outputs, of the largest value of each; ours of a "
      "convolution, "
      "on a GPU: the\nfastest way of --conv, as auto chooses it, by its name before cuDNN's algorithms\n");
  json_object_set_new(result, "rows", rows);
  if (options.common.json && json_result(result, &err) != 0) die("%s", err.message);
  if (!options.common.json) json_decref(result);
  stdout_finish();
  return wrong;
}

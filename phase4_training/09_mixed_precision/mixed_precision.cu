/* mixed_precision.cu - the same small network trained in float32, bf16 and fp16: what becomes of its gradients, of its
 * weights, and of a step that overflows.
 *
 *     bazel run //phase4_training:mixed_precision
 *     bazel run //phase4_training:mixed_precision -- --device=gpu --steps=200
 *
 * The first table looks at one gradient of the first step, that of the first convolution's output, which all others
 * have been before: how much of it is 0, and how much is below the normal numbers of fp16, where digits are missing.
 * The second trains. Its last row keeps no float32 weights: after each step they are rounded to bf16. */
#include "common/nn/optimizer.h"
#include "common/options.h"
#include "common/threads.h"
#include "common/train_log.h"
#include "phase4_training/09_mixed_precision/stripes.cuh"

enum { BATCH = 32, TEST_STEPS = 8, TEST_FROM = 1 << 20 };

typedef struct Run {
  const char *name;
  DType type;
  float scale;  /* of fp16, in the first step */
  int unmasked; /* weights are rounded after each step */
  float lr;
} Run;

typedef struct MixedOptions {
  CommonOptions common;
  int steps;
} MixedOptions;

static error_t parse(int key, char *arg, struct argp_state *state) {
  MixedOptions *options = (MixedOptions *)state->input;
  if (key != 's') return ARGP_ERR_UNKNOWN;
  options->steps = (int)option_int(state, arg, "--steps", 1, 100000);
  return 0;
}

static void open_run(Model *net, const Run *run, const MixedOptions *options) {
  stripes_open(net, run->type, options->common.device, &optimizer_sgd_momentum, BATCH, options->common.seed);
  net->hyper.momentum = 0.9f;
  net->hyper.lr = run->lr;
  if (net->loss_scale) model_set_loss_scale(net, run->scale);
}

/* ---- the gradient of the first convolution's output ---- */

static void print_gradient(const Run *run, const MixedOptions *options) {
  Model net;
  size_t zeros = 0, small = 0, infinite = 0;
  double largest = 0;
  open_run(&net, run, options);
  stripes_batch(&net, BATCH, options->common.seed, 0);
  model_gradients(&net, BATCH);
  const int node = graph_find(net.graph, "conv1");
  const Node *conv = &net.graph->nodes[node];
  const size_t bytes = node_bytes(conv) * BATCH, size = conv->type == DTYPE_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
  void *gradient = xmalloc(bytes);
  device_download(options->common.device, gradient, model_array(&net, net.plan.node[node].gradient), bytes);
  for (size_t i = 0; i < bytes / size; i++) {
    const float g = size == sizeof(float) ? ((float *)gradient)[i] : half_widen(conv->type, ((uint16_t *)gradient)[i]);
    zeros += g == 0;
    small += g != 0 && fabsf(g) < 0x1p-14f;
    infinite += !isfinite(g);
    if (isfinite(g)) largest = fmax(largest, fabsf(g));
  }
  printf("%-24s %12.1e %11.1f %% %19.1f %% %14zu\n", run->name, largest, 100.0 * (double)zeros / (double)(bytes / size),
         100.0 * (double)small / (double)(bytes / size), infinite);
  free(gradient);
  model_close(&net);
}

/* ---- training ---- */

/* No float32 masters: what a step changes by less than a 256th of a weight is lost. */
static void round_weights(Model *net) {
  const size_t bytes = net->parameter_count * sizeof(float);
  float *w = (float *)xmalloc(bytes);
  device_download(net->context.device, w, net->parameters, bytes);
  for (size_t i = 0; i < net->parameter_count; i++) w[i] = half_round(DTYPE_BF16, w[i]);
  device_upload(net->context.device, net->parameters, w, bytes);
  free(w);
}

/* What was skipped in the step that has just ended. */
static void tell_skipped(const Model *net, int *before) {
  LossScale s;
  if (net->loss_scale == NULL) return;
  device_download(net->context.device, &s, net->loss_scale, sizeof s);
  if (s.skipped > *before)
    printf("    step %d overflowed with the scale %.0f: no weight has changed, the next step has the scale %.0f\n",
           s.steps, s.event[(s.skipped - 1) % LOSS_SCALE_EVENTS].scale, s.scale);
  *before = s.skipped;
}

static void train(const Run *run, const MixedOptions *options) {
  Model net;
  const Totals none = {0, 0};
  int skipped = 0;
  open_run(&net, run, options);
  printf("%s\n", run->name);
  for (int step = 0; step < options->steps; step++) {
    stripes_batch(&net, BATCH, options->common.seed, step);
    if (step == options->steps - 10) model_reset_totals(&net, 0, none);
    model_train_step(&net, BATCH);
    if (run->unmasked) round_weights(&net);
    tell_skipped(&net, &skipped);
  }
  const int last = options->steps < 10 ? options->steps : 10;
  const Totals trained = model_read_totals(&net, 0);
  model_reset_totals(&net, 0, none);
  for (int step = 0; step < TEST_STEPS; step++) {
    stripes_batch(&net, BATCH, options->common.seed, TEST_FROM + step);
    model_evaluate_step(&net, BATCH);
  }
  const Totals tested = model_read_totals(&net, 0);
  printf("    loss of the last %d steps %.3f, test loss %.3f, accuracy %.1f %%, %d steps skipped\n", last,
         trained.loss / (last * BATCH), tested.loss / (TEST_STEPS * BATCH), 100 * tested.correct / (TEST_STEPS * BATCH),
         skipped);
  model_close(&net);
}

int main(int argc, char **argv) {
  static MixedOptions options;
  static const struct argp_option rows[] = {{"steps", 's', "N", 0, "Training steps of each network (default: 60)", 0},
                                            OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Trains a small network in float32, bf16 and fp16.",
                                  NULL, NULL,  NULL};
  const Run runs[] = {
      {"float32", DTYPE_FLOAT32, 0, 0, 0.05f},
      {"bf16", DTYPE_BF16, 0, 0, 0.05f},
      {"fp16, scale 1", DTYPE_FP16, 1, 0, 0.05f},
      {"fp16, scale 65536", DTYPE_FP16, 65536, 0, 0.05f},
      {"fp16, scale 16777216", DTYPE_FP16, 16777216, 0, 0.05f},
  };
  const Run slow[] = {{"float32, learning rate 0.0005", DTYPE_FLOAT32, 0, 0, 0.0005f},
                      {"bf16, learning rate 0.0005", DTYPE_BF16, 0, 0, 0.0005f},
                      {"bf16, learning rate 0.0005, weights of 16 bits", DTYPE_BF16, 0, 1, 0.0005f}};
  Error err;
  char description[512];
  threads_set(1); /* layers this small take less time than waking another thread */
  options.common = options_default(OPTIONS_DEVICE | OPTIONS_SEED);
  options.steps = 60;
  options_parse(&options.common, &own, &options, argc, argv);
  if (device_open(options.common.device, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("mixed precision on %s\n\n", description);
  printf("the gradient of conv1's output  largest       zero     below 2^-14, not 0       infinite\n");
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) print_gradient(&runs[i], &options);
  printf("\n%d steps on %d pictures each\n", options.steps, BATCH);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) train(&runs[i], &options);
  printf("\nsmall steps\n");
  for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) train(&slow[i], &options);
  stdout_finish();
  return 0;
}

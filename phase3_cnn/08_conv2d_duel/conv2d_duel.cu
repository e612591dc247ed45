/* conv2d_duel.cu - every way to compute a convolution, on the layers of four networks, beside cuDNN.
 *
 *     bazel run //phase3_cnn:conv2d_duel                                     on a GPU: times with 1 and with 64 images
 *     bazel run //phase3_cnn:conv2d_duel -- --network=vgg --batch-size=64 --pass=backward_input
 *
 * No method wins everywhere. Each line is one layer: the fastest of ours, the fastest of cuDNN's engines, and the
 * reason. Without a GPU times would say nothing: then the layers are scaled down, every method computes them emulated
 * and is compared with the plain kernels, and the model of conv2d_duel.cuh says who should win the full layer.
 */
#include "common/options.h"
#include "common/train_log.h"
#include "phase3_cnn/08_conv2d_duel/conv2d_duel_lesson.cuh"

typedef struct DuelOptions {
  CommonOptions common;
  const char *network; /* NULL: all */
  int pass;            /* -1: all */
  int heuristic;       /* of cuDNN only what its heuristic proposes first */
} DuelOptions;

enum { DUEL_NETWORK = 1, DUEL_PASS, DUEL_HEURISTIC };

static error_t duel_parse(int key, char *arg, struct argp_state *state) {
  DuelOptions *options = (DuelOptions *)state->input;
  switch (key) {
    case DUEL_NETWORK: {
      Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS];
      const int count = conv2d_duel_layers(layers);
      for (int i = 0; i < count; i++)
        if (strcmp(layers[i].network, arg) == 0) options->network = arg;
      if (options->network == NULL)
        argp_failure(state, 2, 0, "--network=%s: expected lenet, fashion, resnet18, vgg or other", arg);
      return 0;
    }
    case DUEL_PASS:
      for (int i = 0; i < 3; i++)
        if (strcmp(conv2d_pass_name((Conv2dPass)i), arg) == 0) options->pass = i;
      if (options->pass < 0)
        argp_failure(state, 2, 0, "--pass=%s: expected forward, backward_input or backward_weight", arg);
      return 0;
    case DUEL_HEURISTIC:
      options->heuristic = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static int duel_wants(const DuelOptions *options, const Conv2dDuelLayer *layer, int pass) {
  return (options->network == NULL || strcmp(options->network, layer->network) == 0) &&
         (options->pass < 0 || options->pass == pass);
}

#ifndef SIMT_REWRITTEN

/* ------------------------------------------------------------------------------------------------------ on a GPU */

typedef struct DuelPeer {
  const Cudnn *dnn; /* NULL: there is none */
#if CUDNN_COMPILED
  cudnnHandle_t handle;
#endif
} DuelPeer;

static DuelCudnn duel_peer_best(const DuelPeer *peer, const DuelCase *c, const DuelOptions *options) {
#if CUDNN_COMPILED
  if (peer->dnn) return duel_search_cudnn(c, peer->dnn, peer->handle, !options->heuristic);
#endif
  (void)peer;
  (void)c;
  (void)options;
  DuelCudnn none;
  memset(&none, 0, sizeof none);
  none.heuristic = none.best = -1;
  return none;
}

/* One layer, one pass: a line of the table, and an object of the JSON rows. The wins of each method are counted. */
static void duel_contest(const DuelOptions *options, const DuelPeer *peer, const Conv2dDuelLayer *layer,
                         Conv2dPass pass, int batch, float *workspace, json_t *rows) {
  DuelCase c;
  Conv2dShape s = layer->shape;
  double best = 1e9, best_error = 0;
  const Conv2dMethod *winner = NULL;
  json_t *times = json_object();
  s.n = batch;
  duel_open(&c, s, pass, workspace);
  for (int i = CONV2D_DUEL_METHODS - 1; i >= 0; i--) { /* the slow ones come last: they are timed roughly */
    double error = 0;
    const double seconds = duel_time_method(&c, conv2d_duel_method(i), best, &error);
    if (seconds < 0) continue;
    json_object_set_new(times, conv2d_duel_method(i)->name, json_real(1e6 * seconds));
    if (!(error < 1e-2))
      die("%s computes %s wrong: an error of %g of the largest value", conv2d_duel_method(i)->name,
          conv2d_shape_text(s).text, error);
    if (seconds >= best) continue;
    best = seconds;
    best_error = error;
    winner = conv2d_duel_method(i);
  }
  const DuelCudnn theirs = duel_peer_best(peer, &c, options);
  duel_close(&c);
  json_t *row = json_pack("{s:s, s:s, s:i, s:s, s:s, s:f, s:f, s:o}", "network", layer->network, "layer", layer->name,
                          "batch_size", batch, "pass", conv2d_pass_name(pass), "winner", winner->name, "time_us",
                          1e6 * best, "error", best_error, "times_us", times);
  printf("%-8s %-14s %4d %-15s %-13s %9.1f", layer->network, layer->name, batch, conv2d_pass_name(pass), winner->name,
         1e6 * best);
  if (theirs.best > 0) {
    if (theirs.heuristic > 0)
      printf(" %9.1f", 1e6 * theirs.heuristic);
    else
      printf(" %9s", "-"); /* what it proposes takes more memory than there is */
    printf(" %9.1f %6.2fx  %-44s", 1e6 * theirs.best, theirs.best / best, theirs.best_name);
    json_object_set_new(row, "cudnn_us", json_real(1e6 * theirs.best));
    if (theirs.heuristic > 0) json_object_set_new(row, "cudnn_heuristic_us", json_real(1e6 * theirs.heuristic));
    json_object_set_new(row, "cudnn", json_string(theirs.best_name));
    json_object_set_new(row, "vs_library", json_real(theirs.best / best));
  }
  printf(" %s\n", conv2d_duel_reason(winner->name, s).text);
  fflush(stdout);
  json_array_append_new(rows, row);
}

static void duel_all(const DuelOptions *options, json_t *rows) {
  static const int batches[] = {1, 64};
  Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS];
  const int count = conv2d_duel_layers(layers), given = options->common.given & OPTIONS_BATCH_SIZE;
  DuelPeer peer;
  Error err;
  float *workspace;
  memset(&peer, 0, sizeof peer);
  peer.dnn = cudnn_load(&err);
  if (peer.dnn == NULL) printf("Only our own methods compete: %s\n", err.message);
#if CUDNN_COMPILED
  if (peer.dnn) {
    peer.handle = cudnn_handle(peer.dnn);
    printf("cuDNN %zu: %s\n", peer.dnn->cudnnGetVersion(),
           options->heuristic ? "what its heuristic proposes first" : "its heuristic, and the best of all its engines");
  }
#endif
  printf("float32 without tensor cores; 1 GiB of workspace; microseconds of one call in a CUDA graph, L2 warm\n\n");
  printf("%-8s %-14s %4s %-15s %-13s %9s", "network", "layer", "n", "pass", "ours", "us");
  if (peer.dnn) printf(" %9s %9s %7s  %-44s", "heuristic", "cuDNN", "ratio", "cuDNN's best");
  printf(" why\n");
  CUDA_CHECK(cudaMalloc(&workspace, DUEL_WORKSPACE));
  for (int i = 0; i < count; i++)
    for (int b = 0; b < (given ? 1 : 2); b++)
      for (int pass = 0; pass < 3; pass++)
        if (duel_wants(options, &layers[i], pass))
          duel_contest(options, &peer, &layers[i], (Conv2dPass)pass, given ? options->common.batch_size : batches[b],
                       workspace, rows);
  CUDA_CHECK(cudaFree(workspace));
#if CUDNN_COMPILED
  if (peer.dnn) CUDNN_CHECK(peer.dnn, peer.dnn->cudnnDestroy(peer.handle));
#endif
}

#else

/* ------------------------------------------------------------------------------------------------------ emulated */

/* Every method on the layer, scaled down. How many can compute it; the largest error of them. */
static int duel_emulate(Conv2dShape s, Conv2dPass pass, double *error) {
  DuelCase c;
  size_t floats = 0;
  float *workspace;
  int computed = 0;
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++) {
    const Conv2dMethod *m = conv2d_duel_method(i);
    const size_t own = m->workspace_floats && (!m->fits || m->fits(s, NULL) == 0) ? m->workspace_floats(s) : 0;
    if (own > floats) floats = own;
  }
  CUDA_CHECK(cudaMalloc(&workspace, (floats + 1) * sizeof(float)));
  duel_open(&c, s, pass, workspace);
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++) {
    if (!duel_takes(&c, conv2d_duel_method(i))) continue;
    duel_poison(&c);
    duel_launch(&c, conv2d_duel_method(i));
    const double e = duel_error(&c);
    if (!(e < 1e-4))
      die("%s computes %s wrong: an error of %g of the largest value", conv2d_duel_method(i)->name,
          conv2d_shape_text(s).text, e);
    if (e > *error) *error = e;
    computed++;
  }
  duel_close(&c);
  CUDA_CHECK(cudaFree(workspace));
  return computed;
}

/* What the model says of the full layer: how long each method takes, and who should win. */
static void duel_print_model(const Conv2dDuelLayer *layer, int batch, int computed, json_t *rows) {
  Conv2dShape s = layer->shape;
  s.n = batch;
  const int winner = conv2d_duel_choose(s, conv2d_duel_machine);
  printf("%-8s %-14s %7d", layer->network, layer->name, computed);
  json_t *row = json_pack("{s:s, s:s, s:i, s:i, s:s}", "network", layer->network, "layer", layer->name, "batch_size",
                          batch, "computed", computed, "expected_winner", conv2d_duel_method(winner)->name);
  json_t *model = json_object();
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++) {
    const Conv2dMethod *m = conv2d_duel_method(i);
    if (m->fits && m->fits(s, NULL) != 0) {
      printf(" %13s", "-");
      continue;
    }
    const double us = 1e6 * conv2d_cost_seconds(conv2d_cost(m, s), conv2d_duel_machine);
    printf(" %12.0f%s", us, i == winner ? "*" : " ");
    json_object_set_new(model, m->name, json_real(us));
  }
  printf("\n%-8s   * %s: %s\n", "", conv2d_duel_method(winner)->name,
         conv2d_duel_reason(conv2d_duel_method(winner)->name, s).text);
  json_object_set_new(row, "model_us", model);
  json_array_append_new(rows, row);
}

static void duel_all(const DuelOptions *options, json_t *rows) {
  Conv2dDuelLayer layers[CONV2D_DUEL_LAYERS];
  const int count = conv2d_duel_layers(layers);
  double error = 0;
  int total = 0;
  Error err;
  cudnn_load(&err);
  printf("No times and no cuDNN here: %s.\n", err.message);
  printf(
      "methods: how many compute the layer, scaled down and emulated. The others: microseconds that the model expects\n"
      "of the full layer, %d image%s, forward, on an H200; * is the least, - a method that cannot compute it.\n\n",
      options->common.batch_size, options->common.batch_size == 1 ? "" : "s");
  printf("%-8s %-14s %7s", "network", "layer", "methods");
  for (int i = 0; i < CONV2D_DUEL_METHODS; i++) printf(" %12s ", conv2d_duel_method(i)->name);
  printf("\n");
  for (int i = 0; i < count; i++) {
    int computed = 0;
    for (int pass = 0; pass < 3; pass++) {
      if (!duel_wants(options, &layers[i], pass)) continue;
      const int methods = duel_emulate(conv2d_duel_scaled(layers[i].shape), (Conv2dPass)pass, &error);
      if (methods > computed) computed = methods;
      total += methods;
    }
    if (computed) duel_print_model(&layers[i], options->common.batch_size, computed, rows);
  }
  printf(
      "\n%d results of %d methods agree with those of the plain kernels: the largest error is below 1e-4 of the "
      "largest value.\n",
      total, CONV2D_DUEL_METHODS);
}

#endif

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"network", DUEL_NETWORK, "NAME", 0, "lenet, fashion, resnet18, vgg or other (default: all)", 0},
      {"pass", DUEL_PASS, "NAME", 0, "forward, backward_input or backward_weight (default: all three)", 0},
      {"heuristic", DUEL_HEURISTIC, NULL, 0, "Of cuDNN only what its heuristic proposes first", 0},
      OPTION_END};
  static const struct argp own = {
      rows, duel_parse, NULL, "Compares all ways to compute a convolution, and cuDNN's engines.", NULL, NULL, NULL};
  DuelOptions options;
  char description[512];
  Error err;
  memset(&options, 0, sizeof options);
  options.pass = -1;
  options.common = options_default(OPTIONS_JSON | OPTIONS_BATCH_SIZE);
  options.common.batch_size = 64;
  options_parse(&options.common, &own, &options, argc, argv);
  if (device_open(DEVICE_GPU, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("Convolutions on %s\n", description);
  json_t *lines = json_array();
  duel_all(&options, lines);
  if (options.common.json && json_result(json_pack("{s:s, s:s, s:O}", "program", program_invocation_short_name,
                                                   "description", description, "rows", lines),
                                         &err) != 0)
    die("%s", err.message);
  json_decref(lines);
  return 0;
}

/* cpu_bench.cu - how long the layers of three networks take on the CPU: ours (cpu_conv2d.h) beside im2col with
 * OpenBLAS, oneDNN, and what trains (phase3_cnn/01_conv2d_naive/conv2d_cpu_fast.cuh).
 *
 *     bazel run //phase5_production:cpu_bench -- --batch-size=1 --threads=2
 *
 * All versions of a layer run in turns, so that what else the machine does meets all of them; the fastest of the rounds
 * counts. Convolution, bias and ReLU are timed together. Weights are packed before, and ours and oneDNN's arrays are in
 * the layouts in which they go from layer to layer.
 */
#include <omp.h>

#include "common/options.h"
#include "common/threads.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase5_production/08_engine/cpu_bench_peers.h"

enum Version { TRAINS, OPENBLAS, ONEDNN, OURS, VERSIONS };

static const char *const version_names[VERSIONS] = {"training", "im2col + OpenBLAS", "oneDNN", "ours"};

typedef struct Options {
  CommonOptions common;
  int threads, rounds;
  const char *kernels;
} Options;

typedef struct Layer {
  const char *name;
  Conv2dShape shape;
} Layer;

typedef struct Bench {
  Conv2dShape shape;
  float *x, *w, *bias, *y, *training, *matrix;
  float *x_blocks, *y_blocks, *workspace;
  CpuConv2d *conv;
  OnednnConv onednn;
  bool has_onednn;
  int threads;
} Bench;

static float *fill(size_t n) {
  float *x = (float *)aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64 + 64);
  if (x == NULL) die("out of memory: %zu floats", n);
  for (size_t i = 0; i < n; i++) x[i] = (float)(i * 2654435761u % 2048) / 1024 - 1; /* scattered over [-1, 1) */
  return x;
}

static void bench_open(Bench *b, Conv2dShape s, int threads) {
  const bool plain = s.c <= 4;
  const CpuShape x = cpu_shape(s.c, s.h, s.w, plain ? -1 : s.padding_h);
  const CpuShape y = cpu_shape(s.k, conv2d_out_h(s), conv2d_out_w(s), 1);
  Error err;
  b->shape = s;
  b->threads = threads;
  b->x = fill(conv2d_x_count(s));
  b->w = fill(conv2d_w_count(s));
  b->bias = fill(s.k);
  b->y = fill(conv2d_y_count(s));
  b->training = fill(conv2d_workspace_floats(DEVICE_CPU, s));
  b->matrix = fill((size_t)s.c * s.r * s.s * y.h * y.w);
  if (cpu_conv2d_open(&b->conv, s, x, y, b->w, b->bias, CPU_RELU, &err) != 0) die("%s", err.message);
  b->x_blocks = plain ? NULL : fill(cpu_count(x) * s.n);
  if (!plain) cpu_pack(b->x_blocks, b->x, x, s.n, threads);
  b->y_blocks = fill(cpu_count(y) * s.n);
  b->workspace = fill(cpu_conv2d_workspace(b->conv, s.n, threads));
  b->has_onednn = onednn_open(&b->onednn, s);
}

static void bench_close(Bench *b) {
  float *all[] = {b->x, b->w, b->bias, b->y, b->training, b->matrix, b->x_blocks, b->y_blocks, b->workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  cpu_conv2d_close(b->conv);
  if (b->has_onednn) onednn_close(&b->onednn);
}

static void bench_run(Bench *b, int version) {
  switch (version) {
    case TRAINS:
      conv2d_relu_forward_cpu_fast(b->y, b->x, b->w, b->bias, b->shape, b->training);
      break;
    case OPENBLAS:
      bench_openblas(b->y, b->x, b->w, b->bias, b->shape, b->matrix);
      break;
    case ONEDNN:
      onednn_run(&b->onednn);
      break;
    default:
      cpu_conv2d_run(b->conv, b->y_blocks, b->x_blocks ? b->x_blocks : b->x, NULL, b->workspace, b->shape.n,
                     b->threads);
  }
}

static void print_layer(json_t *rows, const Layer *layer, const Bench *b, const double *best) {
  const double flops = conv2d_flops(b->shape);
  for (int v = 0; v < VERSIONS; v++) {
    if (!isfinite(best[v])) continue;
    const char *method = v == OURS ? cpu_conv2d_method(b->conv) : "";
    printf("%-16s %-18s %-10s %10.1f us %8.1f GFLOP/s %6.2fx\n", layer->name, version_names[v], method, best[v] * 1e6,
           flops / best[v] * 1e-9, best[v] / best[OURS]);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "layer", layer->name, "version",
                                          version_names[v], "method", method, "time_us", best[v] * 1e6, "gflops",
                                          flops / best[v] * 1e-9, "ours_is_faster", best[v] / best[OURS]));
  }
}

static void bench_layer(json_t *rows, const Layer *layer, const Options *o) {
  Bench b;
  double best[VERSIONS];
  bench_open(&b, layer->shape, o->threads);
  for (int v = 0; v < VERSIONS; v++) best[v] = INFINITY;
  for (int round = 0; round < o->rounds; round++)
    for (int v = 0; v < VERSIONS; v++) {
      if (v == ONEDNN && !b.has_onednn) continue;
      bench_run(&b, v); /* caches and threads are this version's */
      const double start = seconds_now();
      bench_run(&b, v);
      best[v] = fmin(best[v], seconds_now() - start);
    }
  print_layer(rows, layer, &b, best);
  bench_close(&b);
}

enum { OPTION_THREADS = 1, OPTION_ROUNDS, OPTION_KERNELS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *o = (Options *)state->input;
  switch (key) {
    case OPTION_THREADS:
      o->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case OPTION_ROUNDS:
      o->rounds = (int)option_int(state, arg, "--rounds", 1, 100000);
      return 0;
    case OPTION_KERNELS:
      if (cpu_kernels(arg) == NULL)
        argp_error(state, "--kernels=%s: avx512, avx2 or portable is expected, and this processor must have it", arg);
      o->kernels = arg;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option options_help[] = {
      {"threads", OPTION_THREADS, "N", 0, "CPU threads (default: one per core)", 0},
      {"rounds", OPTION_ROUNDS, "N", 0, "The fastest of so many counts (default: 20)", 0},
      {"kernels", OPTION_KERNELS, "NAME", 0, "Ours for avx512, avx2 or portable (default: the best)", 0},
      OPTION_END};
  static const struct argp own = {
      options_help, parse, NULL, "Times the convolutions of three networks on the CPU, beside OpenBLAS and oneDNN.",
      NULL,         NULL,  NULL};
  static Options o;
  threads_begin();
  o.common = options_default(OPTIONS_BATCH_SIZE | OPTIONS_JSON);
  o.common.batch_size = 1;
  o.rounds = 20;
  o.kernels = cpu_kernels(NULL);
  options_parse(&o.common, &own, &o, argc, argv);
  o.threads = threads_set(o.threads);
  openblas_set_num_threads(o.threads);
  const int n = o.common.batch_size;
  const Layer layers[] = {{"LeNet 1", conv2d_shape(n, 1, 28, 28, 6, 5, 5, 1, 2)},
                          {"LeNet 2", conv2d_shape(n, 6, 14, 14, 16, 5, 5, 1, 0)},
                          {"Fashion 1", conv2d_shape(n, 1, 28, 28, 64, 3, 3, 1, 0)},
                          {"Fashion 2", conv2d_shape(n, 64, 13, 13, 128, 3, 3, 1, 0)},
                          {"ResNet stem", conv2d_shape(n, 3, 224, 224, 64, 7, 7, 2, 3)},
                          {"ResNet 56", conv2d_shape(n, 64, 56, 56, 64, 3, 3, 1, 1)},
                          {"ResNet 28", conv2d_shape(n, 128, 28, 28, 128, 3, 3, 1, 1)},
                          {"ResNet 14", conv2d_shape(n, 256, 14, 14, 256, 3, 3, 1, 1)},
                          {"ResNet 7", conv2d_shape(n, 512, 7, 7, 512, 3, 3, 1, 1)},
                          {"ResNet 1x1 / 2", conv2d_shape(n, 64, 56, 56, 128, 1, 1, 2, 0)}};
  json_t *rows = json_array();
  printf("Convolution, bias and ReLU, batch %d, %d CPU threads, ours for %s\n", n, o.threads, o.kernels);
  printf("%-16s %-18s %-10s %13s %16s %7s\n", "", "", "method", "fastest", "", "ours is");
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) bench_layer(rows, &layers[i], &o);
  Error err;
  if (o.common.json && json_result(json_pack("{s:s, s:s, s:i, s:i, s:s, s:O}", "program", "cpu_bench", "device", "cpu",
                                             "batch_size", n, "threads", o.threads, "kernels", o.kernels, "rows", rows),
                                   &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  return 0;
}

/* conv2d_cpu_bench.cu - how fast the CPU convolves and pools at the shapes of LeNet-5 and of the Fashion CNN.
 *
 *     bazel run //phase3_cnn:conv2d_cpu_bench -- --batch-size=64 --threads=2
 *     python3 tools/peers/conv2d_torch.py --ours=bazel-bin/phase3_cnn/01_conv2d_naive/conv2d_cpu_bench
 *
 * Each operation alone: the reference, then the fast path with vectors of 4, 8 (AVX2) and 16 floats (AVX-512), as far
 * as the processor has them. FLOPs are counted for the products that the formula has, two for each. The last column is
 * the processor time per run, of all threads together: other programs on the machine change it less than the time on
 * the clock.
 */
static int bench_lanes;
#define CONV2D_LANES bench_lanes
#include "phase3_cnn/01_conv2d_naive/conv2d.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"

#include "common/options.h"
#include "common/threads.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"

#include <time.h>

typedef enum Operation { FORWARD, BACKWARD_WEIGHT, BACKWARD_INPUT, OPERATIONS } Operation;

static const char *const operation_names[OPERATIONS] = {"forward", "backward_weight", "backward_input"};

typedef struct Bench {
  Conv2dShape conv;
  Pool2dShape pool; /* of what the convolution gives */
  float *x, *w, *bias, *y, *pooled, *dw, *dbias, *workspace;
  uint8_t *argmax;
} Bench;

static float *fill(size_t n) {
  float *x = (float *)device_alloc(DEVICE_CPU, n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (float)(i * 2654435761u % 2048) / 1024 - 1; /* scattered over [-1, 1) */
  return x;
}

static Bench bench_create(Conv2dShape conv) {
  Pool2dShape pool = pool2d_shape(conv.n, conv.k, conv2d_out_h(conv), conv2d_out_w(conv), 2, 2);
  size_t outputs = (size_t)conv.n * conv.k * pool.h * pool.w;
  Bench bench = {conv,
                 pool,
                 fill((size_t)conv.n * conv.c * conv.h * conv.w),
                 fill((size_t)conv.k * conv.c * conv.r * conv.s),
                 fill(conv.k),
                 fill(outputs),
                 fill(outputs / 4),
                 fill((size_t)conv.k * conv.c * conv.r * conv.s),
                 fill(conv.k),
                 fill(conv2d_workspace_floats(DEVICE_CPU, conv)),
                 (uint8_t *)device_alloc(DEVICE_CPU, outputs / 4)};
  return bench;
}

static void bench_free(Bench *b) {
  float *all[] = {b->x, b->w, b->bias, b->y, b->pooled, b->dw, b->dbias, b->workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) device_free(DEVICE_CPU, all[i]);
  device_free(DEVICE_CPU, b->argmax);
}

/* Gradients are put where the activations stood: the time does not depend on the values. */
static void convolve(Bench *b, Operation operation, int reference) {
  switch (operation) {
    case FORWARD:
      if (reference)
        conv2d_forward_cpu(b->y, b->x, b->w, b->bias, b->conv);
      else
        conv2d_forward_cpu_fast(b->y, b->x, b->w, b->bias, b->conv, b->workspace);
      break;
    case BACKWARD_WEIGHT:
      if (reference)
        conv2d_backward_weight_cpu(b->dw, b->dbias, b->y, b->x, b->conv);
      else
        conv2d_backward_weight_cpu_fast(b->dw, b->dbias, b->y, b->x, b->conv, b->workspace);
      break;
    default:
      if (reference)
        conv2d_backward_input_cpu(b->x, b->y, b->w, b->conv);
      else
        conv2d_backward_input_cpu_fast(b->x, b->y, b->w, b->conv, b->workspace);
  }
}

static void pool(Bench *b, Operation operation, int reference) {
  if (operation == FORWARD) {
    if (reference)
      max_pool2d_forward_cpu(b->pooled, b->argmax, b->y, b->pool);
    else
      max_pool2d_forward_cpu_fast(b->pooled, b->argmax, b->y, b->pool);
  } else {
    if (reference)
      max_pool2d_backward_cpu(b->y, b->pooled, b->argmax, b->pool);
    else
      max_pool2d_backward_cpu_fast(b->y, b->pooled, b->argmax, b->pool);
  }
}

/* Of `rounds` runs after one that warms the caches; the slow reference runs once. */
typedef struct Seconds {
  TimerStats clock;
  double processor; /* the mean, of all threads together */
} Seconds;

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static Seconds measure(void run(Bench *, Operation, int), Bench *bench, Operation operation, int reference,
                       int rounds) {
  double samples[1001];
  if (reference)
    rounds = 1;
  else
    run(bench, operation, 0);
  double before = processor_seconds();
  for (int i = 0; i < rounds; i++) {
    double start = seconds_now();
    run(bench, operation, reference);
    samples[i] = seconds_now() - start;
  }
  Seconds seconds = {timer_stats(samples, (size_t)rounds), (processor_seconds() - before) / rounds};
  return seconds;
}

static void print_row(json_t *rows, const char *layer, const char *operation, const char *version, Seconds seconds,
                      double flops) {
  const double median = seconds.clock.median, least = seconds.clock.min;
  printf("%-13s %-16s %-10s %10.1f %10.1f us", layer, operation, version, median * 1e6, least * 1e6);
  json_t *row = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "layer", layer, "operation", operation, "version", version,
                          "time_us", median * 1e6, "fastest_us", least * 1e6, "processor_us", seconds.processor * 1e6);
  if (flops > 0) {
    printf(" %8.1f GFLOP/s", flops / median * 1e-9);
    json_object_set_new(row, "gflops", json_real(flops / median * 1e-9));
  } else {
    printf(" %16s", "");
  }
  printf(" %10.1f us\n", seconds.processor * 1e6);
  json_array_append_new(rows, row);
}

/* "LeNet 1": a convolution and the pool after it. With `usual` only what networks run on this processor. */
static void bench_layer(json_t *rows, const char *name, int number, Conv2dShape conv, int widest, int usual,
                        int rounds) {
  Bench bench = bench_create(conv);
  char layer[32], version[32];
  const double flops = conv2d_flops(conv);
  snprintf(layer, sizeof layer, "%s conv%d", name, number);
  for (int o = FORWARD; o < OPERATIONS; o++) {
    if (!usual)
      print_row(rows, layer, operation_names[o], "reference", measure(convolve, &bench, (Operation)o, 1, rounds),
                flops);
    for (bench_lanes = usual ? CONV2D_USUAL_LANES : 4; bench_lanes <= widest; bench_lanes *= 2) {
      snprintf(version, sizeof version, "%d lanes", bench_lanes);
      print_row(rows, layer, operation_names[o], version, measure(convolve, &bench, (Operation)o, 0, rounds), flops);
      if (usual) break;
    }
  }
  snprintf(layer, sizeof layer, "%s pool%d", name, number);
  for (int backward = 0; backward < 2; backward++)
    for (int fast = usual; fast < 2; fast++)
      print_row(rows, layer, backward ? "backward" : "forward", fast ? "fast" : "reference",
                measure(pool, &bench, backward ? BACKWARD_INPUT : FORWARD, !fast, rounds), 0);
  bench_free(&bench);
}

typedef struct BenchOptions {
  CommonOptions common;
  int threads, rounds, usual;
} BenchOptions;

enum { OPTION_THREADS = 1, OPTION_ROUNDS, OPTION_USUAL };

static error_t parse(int key, char *arg, struct argp_state *state) {
  BenchOptions *options = (BenchOptions *)state->input;
  switch (key) {
    case OPTION_THREADS:
      options->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case OPTION_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, 1001);
      return 0;
    case OPTION_USUAL:
      options->usual = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option rows_of_help[] = {
      {"threads", OPTION_THREADS, "N", 0, "CPU threads (default: one per core)", 0},
      {"rounds", OPTION_ROUNDS, "N", 0, "Measurements, of which the median is printed (default: 101)", 0},
      {"usual", OPTION_USUAL, NULL, 0, "Only what networks run here: no reference, the vectors of this processor", 0},
      OPTION_END};
  static const struct argp own = {
      rows_of_help, parse, NULL, "Times convolution and pooling on the CPU at the shapes of two networks.",
      NULL,         NULL,  NULL};
  static BenchOptions options;
  threads_begin();
  options.common = options_default(OPTIONS_BATCH_SIZE | OPTIONS_JSON);
  options.rounds = 101;
  options_parse(&options.common, &own, &options, argc, argv);
  options.threads = threads_set(options.threads);

  int batch = options.common.batch_size, widest = 4;
#if defined(__x86_64__)
  widest = __builtin_cpu_supports("x86-64-v4") ? 16 : __builtin_cpu_supports("x86-64-v3") ? 8 : 4;
#endif
  const struct {
    const char *network;
    int number;
    Conv2dShape shape;
  } layers[] = {{"LeNet", 1, conv2d_shape(batch, 1, 28, 28, 6, 5, 5, 1, 2)},
                {"LeNet", 2, conv2d_shape(batch, 6, 14, 14, 16, 5, 5, 1, 0)},
                {"Fashion", 1, conv2d_shape(batch, 1, 28, 28, 64, 3, 3, 1, 0)},
                {"Fashion", 2, conv2d_shape(batch, 64, 13, 13, 128, 3, 3, 1, 0)}};
  json_t *rows = json_array();
  printf("Convolutions and pools of LeNet-5 and the Fashion CNN, batch %d, %d CPU threads%s\n", batch, options.threads,
         options.usual ? "" : " (the reference uses one)");
  printf("%-13s %-16s %-10s %10s %10s %30s\n", "", "", "", "median", "fastest", "processor");
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    bench_layer(rows, layers[i].network, layers[i].number, layers[i].shape, widest, options.usual, options.rounds);
  Error err;
  if (options.common.json &&
      json_result(json_pack("{s:s, s:s, s:i, s:i, s:O}", "program", "conv2d_cpu_bench", "device", "cpu", "batch_size",
                            batch, "threads", options.threads, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  return 0;
}

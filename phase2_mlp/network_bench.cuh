/* network_bench.cuh - how long a training step of a network takes, and which operation takes it.
 *
 * A benchmark says what its network is, and hands over its main():
 *
 *     static Graph *lenet_graph(void) { ... }
 *
 *     int main(int argc, char **argv) {
 *       static const NetworkBench bench = {"LeNet-5", "Times a training step of LeNet-5 ...", lenet_graph, NULL};
 *       return network_bench_main(&bench, argc, argv);
 *     }
 *
 * A step is what a classifier does: gather a batch from the data set on the device, forward, loss, backward, update;
 * with --resident the batch lies there already. The table below it times each operation alone, many times in a row, so
 * its sum differs a little from the step: caches are warmer, and on a GPU an operation shorter than a launch (about
 * 2 us) is bounded by the launch.
 */
#ifndef PHASE2_MLP_NETWORK_BENCH_CUH
#define PHASE2_MLP_NETWORK_BENCH_CUH

#include "common/options.h"
#include "common/threads.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/03_mlp/sgd_op.cuh"
#include "phase2_mlp/05_batches/batches.cuh"

enum { BENCH_IMAGES = 8192, BENCH_PIXELS = 28 * 28, BENCH_MAX_ROUNDS = 101 };

typedef struct NetworkBench {
  const char *name, *description; /* the network, and for --help */
  Graph *(*graph)(void);
  const struct argp *network_options; /* its own, or NULL */
} NetworkBench;

typedef struct Bench {
  Model *net;
  Device device;
  int resident;
  int batch;
  uint8_t *pixels, *image_labels; /* on the device */
  uint32_t *order;
} Bench;

static inline void bench_create(Bench *bench, Model *net, int batch, uint64_t seed) {
  Device device = net->context.device;
  if (model_input_width(net, 0) != BENCH_PIXELS || model_classes(net) < 10)
    die("a network from %zu inputs to %d classes; the images of this benchmark have %d pixels and are of 10 classes",
        model_input_width(net, 0), model_classes(net), BENCH_PIXELS);
  bench->net = net;
  bench->device = device;
  bench->batch = batch;
  model_init(bench->net, seed);

  uint8_t *pixels = (uint8_t *)xmalloc(BENCH_IMAGES * BENCH_PIXELS), labels[BENCH_IMAGES];
  uint32_t order[BENCH_IMAGES];
  for (size_t i = 0; i < BENCH_IMAGES * BENCH_PIXELS; i += 4) {
    PhiloxBlock block = philox4x32(seed, 1, i);
    for (int j = 0; j < 4; j++) pixels[i + j] = (uint8_t)block.word[j];
  }
  for (int i = 0; i < BENCH_IMAGES; i++) labels[i] = (uint8_t)(philox4x32(seed, 2, i).word[0] % 10);
  batches_shuffle(order, BENCH_IMAGES, seed, 0);
  bench->pixels = (uint8_t *)device_alloc(device, BENCH_IMAGES * BENCH_PIXELS);
  bench->image_labels = (uint8_t *)device_alloc(device, BENCH_IMAGES);
  bench->order = (uint32_t *)device_alloc(device, sizeof order);
  device_upload(device, bench->pixels, pixels, BENCH_IMAGES * BENCH_PIXELS);
  device_upload(device, bench->image_labels, labels, BENCH_IMAGES);
  device_upload(device, bench->order, order, sizeof order);
  free(pixels);
}

static inline void bench_gather(Bench *bench, int step) {
  Model *net = bench->net;
  const uint32_t *order = bench->order + (size_t)step * bench->batch % (BENCH_IMAGES - bench->batch + 1);
  ON_DEVICE(bench->device,
            batch_gather_gpu(model_input(net, 0), model_labels(net), bench->pixels, bench->image_labels, order,
                             bench->batch, BENCH_PIXELS, 0.5f, 0.29f),
            batch_gather_cpu_fast(model_input(net, 0), model_labels(net), bench->pixels, bench->image_labels, order,
                                  bench->batch, BENCH_PIXELS, 0.5f, 0.29f));
}

/* ---------------------------------------------------------------------------------------- what is timed */

typedef enum Operation { STEP, GATHER, FORWARD, LOSS, BACKWARD, UPDATE } Operation;

/* One operation, `repeats` times over; a node's backward gives dx except in the first one, as in training. */
static inline void bench_run(Bench *bench, Operation operation, int node, int repeats) {
  Model *net = bench->net;
  for (int i = 0; i < repeats; i++) {
    switch (operation) {
      case STEP:
        if (!bench->resident) bench_gather(bench, i);
        sgd_train_step(net, bench->batch, 0.01f, 0.9f);
        break;
      case GATHER:
        bench_gather(bench, i);
        break;
      case FORWARD:
        model_forward_node(net, node, bench->batch);
        break;
      case LOSS:
        model_score(net, bench->batch);
        break;
      case BACKWARD:
        model_backward_node(net, node, bench->batch);
        break;
      case UPDATE:
        sgd_update(net, 0.0f, 0.9f);
        break;
    }
  }
  device_synchronize(bench->device);
}

/* Median over `rounds` of the seconds that one run takes. */
static inline double bench_time(Bench *bench, Operation operation, int node, int repeats, int rounds) {
  double samples[BENCH_MAX_ROUNDS];
  bench_run(bench, operation, node, repeats / 4 + 1);
  for (int i = 0; i < rounds; i++) {
    double start = seconds_now();
    bench_run(bench, operation, node, repeats);
    samples[i] = (seconds_now() - start) / repeats;
  }
  return timer_stats(samples, (size_t)rounds).median;
}

typedef struct BenchOptions {
  CommonOptions common;
  int threads, rounds, resident;
} BenchOptions;

enum { BENCH_THREADS = 1, BENCH_ROUNDS, BENCH_RESIDENT };

static inline error_t bench_parse(int key, char *arg, struct argp_state *state) {
  BenchOptions *options = (BenchOptions *)state->input;
  switch (key) {
    case BENCH_THREADS:
      options->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case BENCH_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, BENCH_MAX_ROUNDS);
      return 0;
    case BENCH_RESIDENT:
      options->resident = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* One line of the table, and one object of the JSON rows. FLOPs are counted for the products alone. */
static inline void bench_print_row(json_t *rows, const char *layer, const char *direction, double seconds, double flops,
                                   double step) {
  printf("  %-6s %-8s %10.1f us %6.1f %%", layer, direction, seconds * 1e6, 100.0 * seconds / step);
  if (flops > 0) printf(" %9.1f GFLOP/s", flops / seconds * 1e-9);
  putchar('\n');
  json_t *row = json_pack("{s:s, s:s, s:f}", "layer", layer, "direction", direction, "time_us", seconds * 1e6);
  if (flops > 0) json_object_set_new(row, "gflops", json_real(flops / seconds * 1e-9));
  json_array_append_new(rows, row);
}

/* Every operation of a step alone. */
static inline void bench_print_operations(Bench *bench, int rounds, double step, json_t *rows) {
  Model *net = bench->net;
  int repeats = bench->device == DEVICE_GPU ? 200 : 20;
  printf("\neach operation alone                per cent of the step\n");
  bench_print_row(rows, "batch", "gather", bench_time(bench, GATHER, 0, repeats, rounds), 0, step);
  for (int i = 0; i < net->graph->count; i++) {
    const Node *node = &net->graph->nodes[i];
    if (node->op == NULL) continue;
    const double flops = node->flops * bench->batch;
    bench_print_row(rows, node->name, "forward", bench_time(bench, FORWARD, i, repeats, rounds), flops, step);
  }
  bench_print_row(rows, "loss", "forward", bench_time(bench, LOSS, 0, repeats, rounds), 0, step);
  for (int i = net->graph->count - 1; i >= 0; i--) {
    const Node *node = &net->graph->nodes[i];
    if (node->op == NULL || net->plan.node[i].gradient == PLAN_NONE) continue;
    const double flops = (net->plan.node[i].writes[0] ? 2 : 1) * node->flops * bench->batch; /* dw, and dx */
    bench_print_row(rows, node->name, "backward", bench_time(bench, BACKWARD, i, repeats, rounds), flops, step);
  }
  bench_print_row(rows, "sgd", "update", bench_time(bench, UPDATE, 0, repeats, rounds), 0, step);
}

static inline int network_bench_main(const NetworkBench *what, int argc, char **argv) {
  static const struct argp_option rows_of_help[] = {
      {"threads", BENCH_THREADS, "N", 0, "CPU threads (default: one a core)", 0},
      {"rounds", BENCH_ROUNDS, "N", 0, "Measurements, of which the median is printed (default: 7)", 0},
      {"resident", BENCH_RESIDENT, NULL, 0, "Time a step without gathering its batch", 0},
      OPTION_END};
  const struct argp_child children[] = {{what->network_options, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp own = {rows_of_help, bench_parse, NULL, what->description, children, NULL, NULL};
  static BenchOptions options;
  threads_begin();
  options.common = options_default(OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_JSON);
  options.rounds = 7;
  options_parse(&options.common, &own, &options, argc, argv);
  options.threads = threads_set(options.threads);
  Error err;
  char description[512];
  Device device = options.common.device;
  int batch = options.common.batch_size;
  if (batch > BENCH_IMAGES) die("--batch-size=%d: this benchmark has %d images", batch, BENCH_IMAGES);
  if (device_open(device, description, sizeof description, &err) != 0) die("%s", err.message);

  static Bench bench;
  static Model model;
  sgd_model_open(&model, what->graph(), device, batch);
  bench_create(&bench, &model, batch, options.common.seed);
  bench.resident = options.resident;
  bench_gather(&bench, 0);
  int steps = device == DEVICE_GPU ? 500 : 60;
  double step = bench_time(&bench, STEP, 0, steps, options.rounds);
  printf("%s, one training step, batch %d, on %s", what->name, batch, description);
  if (device == DEVICE_CPU) printf(", %d threads", options.threads);
  printf(": %.1f us, %.0f images/s\n", step * 1e6, batch / step);

  json_t *rows = json_array();
  if (options.rounds > 1) bench_print_operations(&bench, options.rounds, step, rows);
  if (options.common.json &&
      json_result(json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:O}", "program", program_invocation_short_name,
                            "device", device_name(device), "description", description, "batch_size", batch, "threads",
                            options.threads, "step_us", step * 1e6, "images_per_second", batch / step, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  return 0;
}

#endif /* PHASE2_MLP_NETWORK_BENCH_CUH */

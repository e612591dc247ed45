/* lenet_bench.cu - how long a training step of LeNet-5 takes, and which operation takes it.
 *
 *     bazel run //phase3_cnn:lenet_bench -- --device=cpu --batch-size=64
 *     python3 tools/peers/lenet_torch.py --ours=bazel-bin/phase3_cnn/lenet_bench      against PyTorch, in turns
 *
 * A step is what lenet_mnist does: gather a batch from the data set on the device, forward, loss, backward, update. The
 * table below it times each operation alone, many times in a row, so its sum differs a little from the step: caches are
 * warmer, and on a GPU an operation shorter than a launch (about 2 us) is bounded by the launch.
 */
#include "common/options.h"
#include "common/threads.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/batches.cuh"
#include "phase3_cnn/lenet.cuh"

enum { IMAGES = 8192, PIXELS = 28 * 28, MAX_ROUNDS = 101 };

typedef struct Bench {
  Lenet lenet;
  Device device;
  int batch;
  uint8_t *pixels, *image_labels; /* on the device */
  uint32_t *order;
} Bench;

static void bench_create(Bench *bench, Device device, int batch, uint64_t seed) {
  bench->device = device;
  bench->batch = batch;
  lenet_create(&bench->lenet, device, batch);
  network_init(&bench->lenet.network, seed);

  uint8_t *pixels = (uint8_t *)xmalloc(IMAGES * PIXELS), labels[IMAGES];
  uint32_t order[IMAGES];
  for (size_t i = 0; i < IMAGES * PIXELS; i += 4) {
    PhiloxBlock block = philox4x32(seed, 1, i);
    for (int j = 0; j < 4; j++) pixels[i + j] = (uint8_t)block.word[j];
  }
  for (int i = 0; i < IMAGES; i++) labels[i] = (uint8_t)(philox4x32(seed, 2, i).word[0] % 10);
  batches_shuffle(order, IMAGES, seed, 0);
  bench->pixels = (uint8_t *)device_alloc(device, IMAGES * PIXELS);
  bench->image_labels = (uint8_t *)device_alloc(device, IMAGES);
  bench->order = (uint32_t *)device_alloc(device, sizeof order);
  device_upload(device, bench->pixels, pixels, IMAGES * PIXELS);
  device_upload(device, bench->image_labels, labels, IMAGES);
  device_upload(device, bench->order, order, sizeof order);
  free(pixels);
}

static void gather(Bench *bench, int step) {
  Network *net = &bench->lenet.network;
  const uint32_t *order = bench->order + (size_t)step * bench->batch % (IMAGES - bench->batch + 1);
  ON_DEVICE(bench->device,
            batch_gather_gpu(net->activations[0], net->labels, bench->pixels, bench->image_labels, order, bench->batch,
                             PIXELS, 0.5f, 0.29f),
            batch_gather_cpu_fast(net->activations[0], net->labels, bench->pixels, bench->image_labels, order,
                                  bench->batch, PIXELS, 0.5f, 0.29f));
}

/* ---------------------------------------------------------------------------------------- what is timed */

typedef enum Operation { STEP, GATHER, FORWARD, LOSS, BACKWARD, UPDATE } Operation;

/* One operation, `repeats` times over; a layer's backward gives dx except in the first layer, as in training. */
static void run_operation(Bench *bench, Operation operation, int layer, int repeats) {
  Network *net = &bench->lenet.network;
  Layer *l = net->layers[layer];
  for (int i = 0; i < repeats; i++) {
    switch (operation) {
      case STEP:
        gather(bench, i);
        network_train_step(net, bench->batch, 0.01f, 0.9f);
        break;
      case GATHER:
        gather(bench, i);
        break;
      case FORWARD:
        l->forward(l, net->activations[layer + 1], net->activations[layer], bench->batch);
        break;
      case LOSS:
        network_score(net, bench->batch);
        break;
      case BACKWARD: {
        float *dx = layer == 0 ? NULL : net->gradient[l->in_place ? 0 : 1];
        l->backward(l, dx, net->gradient[0], net->activations[layer], net->activations[layer + 1], bench->batch);
        break;
      }
      case UPDATE:
        network_update(net, 0.0f, 0.9f);
        break;
    }
  }
  device_synchronize(bench->device);
}

/* Median over `rounds` of the seconds that one run takes. */
static double time_operation(Bench *bench, Operation operation, int layer, int repeats, int rounds) {
  double samples[MAX_ROUNDS];
  run_operation(bench, operation, layer, repeats / 4 + 1);
  for (int i = 0; i < rounds; i++) {
    double start = seconds_now();
    run_operation(bench, operation, layer, repeats);
    samples[i] = (seconds_now() - start) / repeats;
  }
  return timer_stats(samples, (size_t)rounds).median;
}

typedef struct BenchOptions {
  CommonOptions common;
  int threads, rounds;
} BenchOptions;

enum { OPTION_THREADS = 1, OPTION_ROUNDS };

static error_t parse(int key, char *arg, struct argp_state *state) {
  BenchOptions *options = (BenchOptions *)state->input;
  switch (key) {
    case OPTION_THREADS:
      options->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case OPTION_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, MAX_ROUNDS);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* One line of the table, and one object of the JSON rows. FLOPs are counted for the products alone. */
static void print_row(json_t *rows, const char *layer, const char *direction, double seconds, double flops,
                      double step) {
  printf("  %-6s %-8s %10.1f us %6.1f %%", layer, direction, seconds * 1e6, 100.0 * seconds / step);
  if (flops > 0) printf(" %9.1f GFLOP/s", flops / seconds * 1e-9);
  putchar('\n');
  json_t *row = json_pack("{s:s, s:s, s:f}", "layer", layer, "direction", direction, "time_us", seconds * 1e6);
  if (flops > 0) json_object_set_new(row, "gflops", json_real(flops / seconds * 1e-9));
  json_array_append_new(rows, row);
}

/* Every operation of a step alone. */
static void print_operations(Bench *bench, int rounds, double step, json_t *rows) {
  Network *net = &bench->lenet.network;
  int repeats = bench->device == DEVICE_GPU ? 200 : 20;
  printf("\neach operation alone                per cent of the step\n");
  print_row(rows, "batch", "gather", time_operation(bench, GATHER, 0, repeats, rounds), 0, step);
  for (int i = 0; i < net->layer_count; i++) {
    const Layer *l = net->layers[i];
    double flops = 2.0 * l->fan_in * l->out_size * bench->batch;
    print_row(rows, l->name, "forward", time_operation(bench, FORWARD, i, repeats, rounds), flops, step);
  }
  print_row(rows, "loss", "forward", time_operation(bench, LOSS, 0, repeats, rounds), 0, step);
  for (int i = net->layer_count - 1; i >= 0; i--) {
    const Layer *l = net->layers[i];
    double flops =
        (i == 0 ? 2.0 : 4.0) * l->fan_in * l->out_size * bench->batch; /* dw, and dx but in the first layer */
    print_row(rows, l->name, "backward", time_operation(bench, BACKWARD, i, repeats, rounds), flops, step);
  }
  print_row(rows, "sgd", "update", time_operation(bench, UPDATE, 0, repeats, rounds), 0, step);
}

int main(int argc, char **argv) {
  static const struct argp_option rows_of_help[] = {
      {"threads", OPTION_THREADS, "N", 0, "CPU threads (default: one a core)", 0},
      {"rounds", OPTION_ROUNDS, "N", 0, "Measurements, of which the median is printed (default: 7)", 0},
      OPTION_END};
  static const struct argp own = {
      rows_of_help, parse, NULL, "Times a training step of LeNet-5 and each of its operations.", NULL, NULL, NULL};
  static BenchOptions options;
  threads_begin(argv);
  options.common = options_default(OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_JSON);
  options.rounds = 7;
  options_parse(&options.common, &own, &options, argc, argv);
  options.threads = threads_set(options.threads);
  Error err;
  char description[512];
  Device device = options.common.device;
  int batch = options.common.batch_size;
  if (batch > IMAGES) die("--batch-size=%d: this benchmark has %d images", batch, IMAGES);
  if (device_open(device, description, sizeof description, &err) != 0) die("%s", err.message);

  static Bench bench;
  bench_create(&bench, device, batch, options.common.seed);
  int steps = device == DEVICE_GPU ? 500 : 60;
  double step = time_operation(&bench, STEP, 0, steps, options.rounds);
  printf("LeNet-5, one training step, batch %d, on %s", batch, description);
  if (device == DEVICE_CPU) printf(", %d threads", options.threads);
  printf(": %.1f us, %.0f images/s\n", step * 1e6, batch / step);

  json_t *rows = json_array();
  if (options.rounds > 1) print_operations(&bench, options.rounds, step, rows);
  if (options.common.json &&
      json_result(json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:O}", "program", "lenet_bench", "device",
                            device_name(device), "description", description, "batch_size", batch, "threads",
                            options.threads, "step_us", step * 1e6, "images_per_second", batch / step, "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  return 0;
}

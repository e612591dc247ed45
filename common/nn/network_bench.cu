/* network_bench.cu - network_bench.h: options, timing, the table. Compiled once, and not in every benchmark. */
#include "common/nn/network_bench.h"

#include "common/nn/step_graph.h"
#include "common/nn/step_parts.h"
#include "common/nn/trainer.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"

enum { BENCH_MAX_ROUNDS = 101, BENCH_EPOCH_IMAGES = 60000, BENCH_EPOCH_BYTES = 200000000 };

typedef struct Bench {
  Model net;
  Device device;
  int resident, in_graph, inference;
  StepGraph graph; /* of a step */
  StepParts parts;
} Bench;

enum { BENCH_STEP = -1 };

/* What is timed, but for the gathering. */
static void bench_step(Bench *bench) {
  if (bench->inference)
    model_forward(&bench->net, bench->parts.batch);
  else
    model_train_step(&bench->net, bench->parts.batch);
}

/* Part `part` of a step, or a whole one, `repeats` times over. */
static void bench_run(Bench *bench, int part, int repeats) {
  for (int i = 0; i < repeats; i++) {
    if (part != BENCH_STEP) {
      step_part_run(&bench->parts, part);
    } else if (bench->in_graph) {
      CUDA_CHECK(cudaGraphLaunch(bench->graph.exec, cudaStreamPerThread));
    } else {
      if (!bench->resident) step_parts_gather(&bench->parts);
      bench_step(bench);
    }
  }
  device_synchronize(bench->device);
}

/* Median over `rounds` of the seconds that one run takes. */
static double bench_time(Bench *bench, int part, int repeats, int rounds) {
  double samples[BENCH_MAX_ROUNDS];
  bench_run(bench, part, repeats / 4 + 1);
  for (int i = 0; i < rounds; i++) {
    double start = seconds_now();
    bench_run(bench, part, repeats);
    samples[i] = (seconds_now() - start) / repeats;
  }
  return timer_stats(samples, (size_t)rounds).median;
}

typedef struct BenchOptions {
  TrainOptions train;
  int rounds, resident, in_graph, inference, trainer;
} BenchOptions;

enum { BENCH_ROUNDS = 1, BENCH_RESIDENT, BENCH_GRAPH, BENCH_INFERENCE, BENCH_TRAINER };

static error_t bench_parse(int key, char *arg, struct argp_state *state) {
  BenchOptions *options = (BenchOptions *)state->input;
  switch (key) {
    case BENCH_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, BENCH_MAX_ROUNDS);
      return 0;
    case BENCH_RESIDENT:
      options->resident = 1;
      return 0;
    case BENCH_GRAPH:
      options->in_graph = 1;
      return 0;
    case BENCH_TRAINER:
      options->trainer = 1;
      return 0;
    case BENCH_INFERENCE:
      options->inference = options->resident = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* One line of the table, and one object of the JSON rows. FLOPs are counted for the products alone. */
static void bench_print_row(json_t *rows, const char *layer, const char *direction, double seconds, double flops,
                            double step) {
  printf("  %-6s %-8s %10.1f us %6.1f %%", layer, direction, seconds * 1e6, 100.0 * seconds / step);
  if (flops > 0) printf(" %9.1f GFLOP/s", flops / seconds * 1e-9);
  putchar('\n');
  json_t *row = json_pack("{s:s, s:s, s:f}", "layer", layer, "direction", direction, "time_us", seconds * 1e6);
  if (flops > 0) json_object_set_new(row, "gflops", json_real(flops / seconds * 1e-9));
  json_array_append_new(rows, row);
}

/* Every operation of a step alone. */
static void bench_print_operations(Bench *bench, int rounds, double step, json_t *rows) {
  const StepParts *parts = &bench->parts;
  const int repeats = bench->device == DEVICE_GPU ? 200 : 20;
  printf("\neach operation alone                per cent of the step\n");
  bench->net.hyper.lr = 0;
  for (int i = 0; i < parts->count; i++) {
    const StepPart *part = &parts->part[i];
    if (step_part_works(parts, i))
      bench_print_row(rows, part->layer, part->direction, bench_time(bench, i, repeats, rounds), part->flops, step);
  }
}

static void bench_options(BenchOptions *options, const Task *task, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"rounds", BENCH_ROUNDS, "N", 0, "Measurements, of which the median is printed (default: 7)", 0},
      {"resident", BENCH_RESIDENT, NULL, 0, "Time a step without gathering its batch", 0},
      {"graph", BENCH_GRAPH, NULL, 0, "Time such a step as one CUDA graph (with --device=gpu)", 0},
      {"trainer", BENCH_TRAINER, NULL, 0,
       "Time a step of the training loop, with its shuffling, logs and progress, beside the step alone", 0},
      {"inference", BENCH_INFERENCE, NULL, 0, "Time the forward pass alone, of a model that is opened to infer", 0},
      OPTION_END};
  const struct argp_child children[] = {{task->networks ? task->networks->options : NULL, 0, NULL, 0},
                                        {NULL, 0, NULL, 0}};
  const struct argp own = {rows, bench_parse, NULL, NULL, children, NULL, NULL};
  TrainOptions *train = &options->train;
  train_options_default(train, OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_JSON,
                        TRAIN_THREADS | TRAIN_UNFUSED | TRAIN_PRECISION);
  options->rounds = 7;
  options->resident = options->in_graph = options->inference = options->trainer = 0;
  train->momentum = 0.9;
  train->data = task->data;
  train->choices = task->choices;
  train->choice_count = task->choice_count;
  train_options_parse(train, &own, options, task->description, argc, argv);
  if (options->in_graph && train->common.device != DEVICE_GPU) die("--graph: a CUDA graph needs --device=gpu");
  if (train->common.batch_size > STEP_PARTS_IMAGES)
    die("--batch-size=%d: this benchmark has %d images", train->common.batch_size, STEP_PARTS_IMAGES);
}

/* ---------------------------------------------------------------------------------------------- the training loop */

/* Steps of one epoch, each by itself: gather, forward, loss, backward, update; on a GPU captured once. Seconds. */
static double bench_bare_epoch(Bench *bench, const DeviceSet *set, int steps) {
  Model *net = &bench->net;
  const int batch = bench->parts.batch;
  const double start = seconds_now();
  for (int i = 0; i < steps; i++)
    ON_DEVICE(bench->device, step_graph_run(&bench->graph), device_set_train_step(set, net, i * batch, batch, batch));
  device_synchronize(bench->device);
  return seconds_now() - start;
}

/* The next epoch of the training loop, in whole batches. Seconds. */
static double bench_trainer_epoch(Trainer *t) {
  Error err;
  const double start = seconds_now();
  if (trainer_train_epoch(t, &err) != TRAIN_FINISHED) die("%s", err.message);
  const double seconds = seconds_now() - start;
  t->state.epoch++;
  t->state.position = 0;
  t->state.epoch_totals.loss = t->state.epoch_totals.correct = 0;
  return seconds;
}

static void bench_trainer_state(TrainState *state, const CommonOptions *common, int images) {
  memset(state, 0, sizeof *state);
  state->seed = common->seed;
  state->epochs = 1000000;
  state->batch_size = common->batch_size;
  state->train_images = images;
  state->lr = 0.01;
  state->momentum = 0.9;
}

/* The two in turns; the medians, and by how many per cent a step of the loop takes longer. */
static void bench_trainer(Bench *bench, const Task *task, const BenchOptions *options, const char *description) {
  Error err;
  DeviceSet set;
  TrainLog log;
  Trainer t;
  StepReplay replay;
  StepGraph recorded;
  char folder[] = "/tmp/nn_bench_XXXXXX", command[64];
  double bare[BENCH_MAX_ROUNDS], loop[BENCH_MAX_ROUNDS];
  const CommonOptions *common = &options->train.common;
  const int batch = common->batch_size, room = (int)(BENCH_EPOCH_BYTES / shape_count(task->data->shape));
  const int steps = (room < BENCH_EPOCH_IMAGES ? room : BENCH_EPOCH_IMAGES) / batch;
  memset(&t, 0, sizeof t);
  memset(&replay, 0, sizeof replay);
  memset(&recorded, 0, sizeof recorded);
  step_parts_create_set(&set, bench->device, task, task->data, steps * batch, common->seed);
  if (mkdtemp(folder) == NULL || train_log_open(&log, folder, -1, &err) != 0) die("no log can be written in /tmp");
  t.net = &bench->net;
  t.train = &set;
  t.schedule = lr_schedule(&schedule_linear);
  t.output_dir = folder;
  t.log = &log;
  bench_trainer_state(&t.state, common, steps * batch);
  ON_DEVICE(
      bench->device,
      {
        trainer_record(&t, &replay, &recorded);
        step_graph_begin(&bench->graph);
        device_set_train_step(&set, &bench->net, 0, batch, batch);
        step_graph_launch(&bench->graph);
      },
      (void)0);
  for (int i = -1; i < options->rounds; i++) { /* the first of each warms up */
    const double alone = bench_bare_epoch(bench, &set, steps) / steps, whole = bench_trainer_epoch(&t) / steps;
    bare[i < 0 ? 0 : i] = alone;
    loop[i < 0 ? 0 : i] = whole;
  }
  const double alone = timer_stats(bare, (size_t)options->rounds).median;
  const double whole = timer_stats(loop, (size_t)options->rounds).median;
  printf(
      "%s, batch %d, epochs of %d steps, on %s\n  the step alone%s: %.2f us; in the training loop: %.2f us, %+.2f %%\n",
      task->title, batch, steps, description, bench->device == DEVICE_GPU ? ", captured once" : "", alone * 1e6,
      whole * 1e6, 100 * (whole / alone - 1));
  if (common->json && json_result(json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f}", "program",
                                            program_invocation_short_name, "device", device_name(bench->device),
                                            "description", description, "batch_size", batch, "steps", steps, "bare_us",
                                            alone * 1e6, "trainer_us", whole * 1e6, "overhead", whole / alone - 1),
                                  &err) != 0)
    die("%s", err.message);
  train_log_close(&log, &err);
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) fprintf(stderr, "%s is left\n", folder);
  ON_DEVICE(bench->device, step_replay_close(&replay), (void)0);
  step_graph_close(&recorded);
  step_graph_close(&bench->graph);
  trainer_close(&t);
  free(t.values);
  device_set_destroy(&set);
}

int network_bench_main(const Task *task, int argc, char **argv) {
  static BenchOptions options;
  static Bench bench;
  Error err;
  char description[512];
  TrainState state;
  memset(&state, 0, sizeof state);
  threads_begin();
  bench_options(&options, task, argc, argv);
  const CommonOptions *common = &options.train.common;
  const Device device = common->device;
  const int batch = common->batch_size;
  if (device_open(device, description, sizeof description, &err) != 0) die("%s", err.message);

  const ModelUse use = options.inference ? MODEL_INFER : MODEL_TRAIN;
  if (session_open(task, &options.train, &state, batch, use, 0, &bench.net, &err) != 0) die("%s", err.message);
  bench.net.hyper.momentum = 0.9f;
  model_init(&bench.net, common->seed);
  bench.device = device;
  bench.net.hyper.lr = 0.01f;
  bench.resident = options.resident;
  bench.inference = options.inference;
  step_parts_open(&bench.parts, task, task->data, &bench.net, batch, common->seed);
  step_parts_gather(&bench.parts);
  if (options.trainer) {
    bench_trainer(&bench, task, &options, description);
    step_parts_close(&bench.parts);
    model_close(&bench.net);
    return 0;
  }
  if (options.in_graph) {
    bench_step(&bench); /* loads the kernels */
    step_graph_begin(&bench.graph);
    bench_step(&bench);
    step_graph_launch(&bench.graph);
    bench.in_graph = 1;
  }
  const int steps = device == DEVICE_GPU ? 500 : 60;
  const double step = bench_time(&bench, BENCH_STEP, steps, options.rounds);
  printf("%s, %s, batch %d, on %s", task->title, options.inference ? "inference" : "one training step", batch,
         description);
  if (device == DEVICE_CPU) printf(", %d threads", options.train.threads);
  printf(": %.1f us, %.0f images/s\n", step * 1e6, batch / step);

  json_t *rows = json_array();
  if (options.rounds > 1) bench_print_operations(&bench, options.rounds, step, rows);
  if (common->json &&
      json_result(json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:O}", "program", program_invocation_short_name,
                            "device", device_name(device), "description", description, "batch_size", batch, "threads",
                            options.train.threads, "step_us", step * 1e6, "images_per_second", batch / step,
                            "memory_bytes", model_bytes(&bench.net), "rows", rows),
                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  if (options.in_graph) step_graph_close(&bench.graph);
  step_parts_close(&bench.parts);
  model_close(&bench.net);
  return 0;
}

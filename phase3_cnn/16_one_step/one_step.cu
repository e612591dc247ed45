/* one_step.cu - one training step of LeNet-5, from 36 launches to 11.
 *
 *     bazel run //phase3_cnn:one_step
 *
 * The ladder: each operation by itself; pairs of operations in one kernel; the same as a CUDA graph, recorded for each
 * step and recorded once; convolution with pooling, the three linear layers and the loss in one kernel each. Every rung
 * trains the same ten steps, and must come to the same loss. Then the profile of the first rung and of the last one. */
#include "common/nn/profile.h"
#include "common/nn/step_replay.h"
#include "common/threads_begin.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/lenet.cuh"
#include "phase3_cnn/16_one_step/one_step_op.cuh"

enum { STEPS = STEP_REPLAY_STEPS, ROUNDS = 9, TIMED_STEPS = 200, RUNGS = 6 };

typedef enum Way { KERNELS, RECORDED, REPLAYED } Way;

typedef struct Rung {
  const char *name;
  Graph *(*graph)(void);
  Way way;
  const char *next;
} Rung;

static Graph *chains(void) {
  Graph *g = lenet_graph();
  one_step_fuse(g);
  return g;
}

static const Rung rungs[RUNGS] = {
    {"operations", lenet_layers, KERNELS, "Most of these kernels are shorter than their launch."},
    {"pairs", lenet_graph, KERNELS, "ReLU costs no launch any more. The host still launches each kernel."},
    {"pairs, recorded", lenet_graph, RECORDED, "One launch, but the host records every step and updates the graph."},
    {"pairs, replayed", lenet_graph, REPLAYED, "The host does next to nothing. Now the gaps between kernels count."},
    {"chains", chains, KERNELS, "Forward, what passed between operations is never stored."},
    {"chains, replayed", chains, REPLAYED, "Half of the kernels, no host: what is left is the kernels' own time."},
};

typedef struct Result {
  int ran, launches;
  double kilobytes, loss, seconds; /* seconds: NAN where there are none */
} Result;

typedef struct Step {
  Model net;
  StepParts parts;
  StepReplay replay;
  StepGraph graph;
  Way way;
} Step;

static const Task task = {"LeNet-5",
                          "Takes one training step of LeNet-5 apart, and makes it faster.",
                          lenet_graph,
                          NULL,
                          &data_mnist,
                          &batch_kernels,
                          &sgd,
                          NULL,
                          1,
                          64,
                          {0.01, 0.9, 0},
                          NULL,
                          0,
                          NULL,
                          NULL};

/* `count` steps on the next images of the set, which begins again where the steps of a graph would go beyond it. */
static void run_steps(Step *step, int count) {
  StepParts *parts = &step->parts;
  static StepValues values[STEP_PARTS_IMAGES];
  const int in_set = STEP_PARTS_IMAGES / parts->batch;
  for (int done = 0; done < count;) {
    if (parts->step == 0 && step->way == REPLAYED) {
      for (int i = 0; i < in_set; i++) values[i].lr = step->net.hyper.lr;
      ON_DEVICE(step->net.context.device, step_replay_load(&step->replay, values, in_set, 0), (void)0);
    }
    int steps = 1;
    if (step->way == REPLAYED) {
      ON_DEVICE(step->net.context.device, steps = step_replay_launch(&step->replay, in_set - parts->step), (void)0);
    } else {
      if (step->way == RECORDED) step_graph_begin(&step->graph);
      device_set_gather(&parts->set, &step->net, parts->step * parts->batch, parts->batch);
      model_train_step(&step->net, parts->batch);
      if (step->way == RECORDED) step_graph_launch(&step->graph);
    }
    parts->step = (parts->step + steps) % in_set;
    done += steps;
  }
}

static void open_step(Step *step, const Rung *rung, const CommonOptions *options) {
  Error err;
  Context context;
  memset(step, 0, sizeof *step);
  memset(&context, 0, sizeof context);
  context.device = options->device;
  if (model_open(&step->net, rung->graph(), context, &sgd, options->batch_size, MODEL_TRAIN, &err) != 0)
    die("%s", err.message);
  model_init(&step->net, options->seed);
  step->net.hyper.lr = 0.01f;
  step->net.hyper.momentum = 0.9f;
  step->way = rung->way;
  step_parts_open(&step->parts, &task, task.data, &step->net, options->batch_size, options->seed);
  if (rung->way == REPLAYED)
    ON_DEVICE(options->device,
              step_replay_open(&step->replay, &step->net, &step->parts.set, options->batch_size, options->batch_size,
                               STEP_PARTS_IMAGES / options->batch_size),
              (void)0);
}

static void close_step(Step *step) {
  ON_DEVICE(step->net.context.device, step_replay_close(&step->replay), (void)0);
  step_graph_close(&step->graph);
  step_parts_close(&step->parts);
  model_close(&step->net);
}

static Result climb(const Rung *rung, const CommonOptions *options) {
  Result result = {1, 0, 0, 0, NAN};
  static Step step;
  const Totals none = {0, 0};
  open_step(&step, rung, options);
  model_reset_totals(&step.net, 0, none);
  run_steps(&step, STEPS);
  result.loss = model_read_totals(&step.net, 0).loss / (STEPS * options->batch_size);
  for (int i = 0; i < step.parts.count; i++) result.kilobytes += step.parts.part[i].bytes * 1e-3;
  ON_DEVICE(
      options->device,
      {
        Profile profile = Profile();
        profile.parts = step.parts;
        profile.row = (ProfileRow *)xcalloc((size_t)step.parts.count, sizeof *profile.row);
        profile_count_launches(&profile);
        result.launches = profile.launches;
        free(profile.row);
      },
      (void)0);
  if (profile_has_times(options->device)) {
    double samples[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first warms up */
      const double start = seconds_now();
      run_steps(&step, options->device == DEVICE_GPU ? TIMED_STEPS : STEPS);
      device_synchronize(options->device);
      if (round >= 0) samples[round] = (seconds_now() - start) / (options->device == DEVICE_GPU ? TIMED_STEPS : STEPS);
    }
    result.seconds = timer_stats(samples, ROUNDS).median;
  }
  close_step(&step);
  return result;
}

/* Every rung comes to the first one's loss. */
static int right(const Result *result, const Result *first) {
  return fabs(result->loss - first->loss) <= 1e-4 * first->loss;
}

static int print_ladder(const Result *results, json_t *rows) {
  int wrong = 0;
  double before = NAN;
  printf("%-18s%9s%11s  %5s", "", "launches", "kB", "right");
  if (isfinite(results[0].seconds)) printf("%10s%10s", "us", "gain");
  putchar('\n');
  for (int r = 0; r < RUNGS; r++) {
    const Result *result = &results[r];
    if (!result->ran) continue;
    const int ok = right(result, &results[0]);
    wrong += !ok;
    json_t *row = json_pack("{s:s, s:b, s:f, s:f}", "version", rungs[r].name, "ok", ok, "kilobytes", result->kilobytes,
                            "loss", result->loss);
    printf("%-18s", rungs[r].name);
    if (result->launches > 0) json_object_set_new(row, "launches", json_integer(result->launches));
    if (result->launches > 0)
      printf("%9d", result->launches);
    else
      printf("%9s", "");
    printf("%11.1f  %5s", result->kilobytes, ok ? "yes" : "NO");
    if (isfinite(result->seconds)) {
      printf("%10.2f", result->seconds * 1e6);
      json_object_set_new(row, "time_us", json_real(result->seconds * 1e6));
      if (isfinite(before)) printf("%9.2fx", before / result->seconds);
      if (isfinite(before)) json_object_set_new(row, "vs_previous", json_real(before / result->seconds));
      before = result->seconds;
    }
    printf("\n    %s\n", rungs[r].next);
    json_array_append_new(rows, row);
  }
  return wrong;
}

static void print_profile(const Rung *rung, const CommonOptions *options) {
  Error err;
  Model net;
  Profile profile;
  Context context;
  memset(&context, 0, sizeof context);
  context.device = options->device;
  context.ranges = 1;
  if (model_open(&net, rung->graph(), context, &sgd, options->batch_size, MODEL_TRAIN, &err) != 0)
    die("%s", err.message);
  model_init(&net, options->seed);
  profile_open(&profile, &task, task.data, &net, options->batch_size, options->seed);
  profile_measure(&profile);
  printf("\n%s: ", rung->name);
  profile_print(stdout, &profile);
  profile_close(&profile);
  model_close(&net);
}

int main(int argc, char **argv) {
  static TrainOptions options;
  Error err;
  char description[512];
  Result results[RUNGS];
  memset(results, 0, sizeof results);
  threads_begin();
  train_options_default(&options, OPTIONS_DEVICE | OPTIONS_BATCH_SIZE | OPTIONS_SEED | OPTIONS_JSON, TRAIN_THREADS);
  options.common.device = DEVICE_GPU;
  options.common.batch_size = 64;
  train_options_parse(&options, NULL, NULL, task.description, argc, argv);
  const CommonOptions *common = &options.common;
  if (common->batch_size * STEPS > STEP_PARTS_IMAGES)
    die("--batch-size=%d: %d steps of up to %d images are possible", common->batch_size, STEPS,
        STEP_PARTS_IMAGES / STEPS);
  if (device_open(common->device, description, sizeof description, &err) != 0) die("%s", err.message);
#ifdef SIMT_REWRITTEN
  if (common->device == DEVICE_GPU) snprintf(description, sizeof description, "an emulated GPU"); /* not which CPU */
#endif
  printf("one training step of LeNet-5, batch %d, on %s\n\n", common->batch_size, description);
  for (int r = 0; r < RUNGS; r++)
    if (common->device == DEVICE_GPU || rungs[r].way == KERNELS) results[r] = climb(&rungs[r], common);
  json_t *rows = json_array();
  const int wrong = print_ladder(results, rows);
  print_profile(&rungs[0], common);
  print_profile(&rungs[RUNGS - 1], common);
  if (common->json && json_result(json_pack("{s:s, s:s, s:s, s:i, s:O}", "program", program_invocation_short_name,
                                            "device", device_name(common->device), "description", description,
                                            "batch_size", common->batch_size, "rows", rows),
                                  &err) != 0)
    die("%s", err.message);
  json_decref(rows);
  stdout_finish();
  return wrong > 0;
}

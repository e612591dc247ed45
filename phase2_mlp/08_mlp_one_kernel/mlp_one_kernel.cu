/* mlp_one_kernel.cu - what takes time in a training step that has little arithmetic: an epoch of MNIST as one kernel.
 *
 *     bazel run //phase2_mlp:mlp_one_kernel                    on an NVIDIA GPU
 *     bazel run //phase2_mlp:mlp_one_kernel -- --device=cpu    the same network by the CPU, for its time
 *
 * 784-128-10 on 64 images is 26 million floating point operations per step: half a microsecond for a GPU with 50
 * TFLOP/s. The layers of this phase, launched one by one, take a hundred times as long: they wait for the host, for the
 * kernel before to end, and for weights that they have read before. Each version of mlp_one_kernel.cuh removes one of
 * these waits, and computes the same: the losses of its first hundred steps are compared with the CPU's.
 *
 * Without a GPU the emulated one runs a smaller network (its 16 multiprocessors hold 16 tiles); it is checked, not
 * timed. */
#include "common/compare.h"
#include "common/nn/train_options.h"
#include "common/threads_begin.h"
#include "common/timer.h"
#include "common/train_log.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel.cuh"
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_layers.cuh"

typedef struct Rung {
  const char *name;
  void (*train)(MlpRun *run); /* one epoch */
  const char *limit;
  int (*fits)(const MlpRun *run, Error *err); /* NULL: anywhere; else -1 and why it does not run on this GPU */
} Rung;

static const Rung rungs[] = {
    {"layers", mlp_epoch_layers, "The host launches each kernel, and the GPU waits for the launches.", NULL},
    {"step_graph", mlp_epoch_step_graph, "One launch per step. Each kernel still waits for the end of the one before.",
     NULL},
    {"fused", mlp_epoch_fused, "Three kernels per step, and no gradient is stored. The host still launches every step.",
     mlp_fits_shared},
    {"graph", mlp_epoch_graph, "One launch per epoch. Each kernel reads its weights and images again: keep them.",
     mlp_fits_shared},
    {"grid_sync", mlp_epoch_grid_sync,
     "One kernel per epoch keeps the weights. Twice per step all blocks wait for all.", mlp_fits<MLP_GRID_SYNC, float>},
    {"barrier", mlp_epoch_barrier,
     "The barrier written out: a counter in the L2 cache; then the data are read from L2.",
     mlp_fits<MLP_BARRIER, float>},
    {"flags", mlp_epoch_flags, "No barrier: each number carries the number of its step. Two trips through L2 are left.",
     mlp_fits<MLP_FLAGS, MlpWord>},
};
enum { RUNGS = sizeof rungs / sizeof *rungs, MAX_ROUNDS = 100, CHECKED_STEPS = 100 };

/* Losses of a step may differ from the CPU's by so much, or by so much of a loss above 1; sums are taken in other
 * orders. */
#define TOLERANCE 1e-4

typedef struct Options {
  TrainOptions train;
  int hidden, rounds;
  const char *only;
} Options;

typedef struct Measured {
  double error;                     /* largest difference of the first steps' losses */
  double accuracy;                  /* on the test set, after one epoch */
  double launches, kernels;         /* an epoch */
  double seconds[MAX_ROUNDS], time; /* of an epoch; the median */
} Measured;

/* All that the versions share, on the GPU, and the CPU's losses. */
typedef struct Course {
  const Options *options;
  Model cpu;
  DeviceSet train, test; /* on the CPU */
  MlpEpoch epoch;        /* on the GPU */
  DeviceSet gpu_train, gpu_test;
  Model judge;    /* evaluates on the GPU */
  float *initial; /* parameters before the first step */
  int steps, checked;
  double expected[CHECKED_STEPS]; /* mean losses */
} Course;

/* ---------------------------------------------------------------------------------------------------------------- */
/* Command line */

enum { KEY_HIDDEN = 1, KEY_ROUNDS, KEY_ONLY };

static error_t parse(int key, char *arg, struct argp_state *state) {
  Options *options = (Options *)state->input;
  switch (key) {
    case KEY_HIDDEN:
      options->hidden = (int)option_int(state, arg, "--hidden", 1, MLP_HIDDEN);
      return 0;
    case KEY_ROUNDS:
      options->rounds = (int)option_int(state, arg, "--rounds", 1, MAX_ROUNDS);
      return 0;
    case KEY_ONLY:
      options->only = arg;
      for (int i = 0; i < RUNGS; i++)
        if (strcmp(rungs[i].name, arg) == 0) return 0;
      argp_error(state, "--only=%s: there are layers, step_graph, fused, graph, grid_sync, barrier and flags", arg);
      return 0;
    case ARGP_KEY_END:
      if (options->train.common.batch_size > MLP_BATCH && options->train.common.device == DEVICE_GPU)
        argp_error(state, "--batch-size=%d: these kernels take at most %d images per step",
                   options->train.common.batch_size, MLP_BATCH);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static void read_options(Options *options, int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"hidden", KEY_HIDDEN, "N", 0, "Hidden units (default: 128; 16 on an emulated GPU)", 0},
      {"rounds", KEY_ROUNDS, "N", 0, "Time N epochs of each version, in turns (default: 7)", 0},
      {"only", KEY_ONLY, "NAME", 0, "Train with this version alone: for a profiler", 0},
      OPTION_END};
  static const struct argp own = {
      rows,
      parse,
      NULL,
      "Trains a network with one hidden layer on MNIST, from a launch for every kernel to one kernel "
      "for an epoch, and compares their time.",
      NULL,
      NULL,
      NULL};
  train_options_default(&options->train, OPTIONS_LESSON | OPTIONS_EPOCHS | OPTIONS_BATCH_SIZE | OPTIONS_DATA_DIR,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS);
  options->train.common.device = DEVICE_GPU; /* real or emulated: kernels are what this lesson is about */
  options->train.common.epochs = 10;
#ifdef SIMT_REWRITTEN
  options->hidden = 16;
  options->train.train_images = options->train.test_images = 512;
  options->train.common.epochs = 2;
#else
  options->hidden = 128;
#endif
  options->train.lr = 0.03;
  options->train.momentum = 0.9;
  options->rounds = 7;
  train_options_parse(&options->train, &own, options, own.doc, argc, argv);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Data, and the CPU's run */

static void load(Course *course, Device device) {
  const Options *o = course->options;
  Error err;
  DataSet train, test;
  DataNorm norm;
  const char *directory = o->train.common.data_dir;
  if (data_load(&data_mnist, directory, DATA_TRAIN, &train, &err) != 0 ||
      data_load(&data_mnist, directory, DATA_TEST, &test, &err) != 0 || data_statistics(&train, &norm, &err) != 0)
    die("%s", err.message);
  const int count = o->train.train_images > 0 ? o->train.train_images : train.count;
  const int test_count = o->train.test_images > 0 ? o->train.test_images : test.count;
  if (count > train.count) die("--train-images=%d: %s has %d", count, data_mnist.title, train.count);
  if (test_count > test.count) die("--test-images=%d: %s has %d", test_count, data_mnist.title, test.count);
  device_set_create(&course->train, DEVICE_CPU, &batch_kernels, &train, count, &norm);
  device_set_create(&course->test, DEVICE_CPU, &batch_kernels, &test, test_count, &norm);
  if (device == DEVICE_GPU) {
    device_set_create(&course->gpu_train, DEVICE_GPU, &batch_kernels, &train, count, &norm);
    device_set_create(&course->gpu_test, DEVICE_GPU, &batch_kernels, &test, test_count, &norm);
  }
  data_free(&train);
  data_free(&test);
}

static void create(Model *mlp, const Course *course, Device device, int max_batch) {
  const MlpShape shape = {3, {course->train.pixels, course->options->hidden, MNIST_CLASSES}, ACTIVATION_RELU};
  mlp_create(mlp, &shape, device, max_batch);
}

/* Training step `i`, from 0: the mean loss before it. */
static double cpu_step(Course *course, int i) {
  const Options *o = course->options;
  const int position = i * o->train.common.batch_size;
  Model *net = &course->cpu;
  int batch = batches_size_at(course->train.count, o->train.common.batch_size, position);
  Totals none = {0, 0};
  model_reset_totals(net, 0, none);
  device_set_gather(&course->train, net, position, batch);
  sgd_train_step(net, batch, (float)o->train.lr, (float)o->train.momentum);
  double loss = model_read_totals(net, 0).loss / batch;
  if (!isfinite(loss))
    die("the loss is not finite at step %d; try a learning rate below --lr=%g, or less than --momentum=%g", i + 1,
        o->train.lr, o->train.momentum);
  return loss;
}

static void begin(Course *course, Device device) {
  const Options *o = course->options;
  const int batch = o->train.common.batch_size;
  load(course, device);
  course->steps = batches_steps(course->train.count, batch);
  create(&course->cpu, course, DEVICE_CPU, batch);
  const Model *net = &course->cpu;
  model_init(&course->cpu, o->train.common.seed);
  course->initial = (float *)xcalloc(net->parameter_count, sizeof(float));
  memcpy(course->initial, net->parameters, net->parameter_count * sizeof(float));
  device_set_shuffle(&course->train, o->train.common.seed, 0);
}

static void expect(Course *course) {
  course->checked = course->steps < CHECKED_STEPS ? course->steps : CHECKED_STEPS;
  for (int i = 0; i < course->checked; i++) course->expected[i] = cpu_step(course, i);
}

/* The same epoch on the CPU: its time and its test accuracy. */
static void run_cpu(Course *course, json_t *json) {
  double start = seconds_now();
  for (int i = 0; i < course->steps; i++) cpu_step(course, i);
  double seconds = seconds_now() - start;
  Totals totals = device_set_evaluate(&course->test, &course->cpu, NULL);
  double accuracy = totals.correct / course->test.count;
  printf("layer by layer on the CPU: %.1f us per step, %.1f ms per epoch; test accuracy after it %.2f %%\n",
         1e6 * seconds / course->steps, 1e3 * seconds, 100 * accuracy);
  json_object_set_new(json, "step_us", json_real(1e6 * seconds / course->steps));
  json_object_set_new(json, "test_accuracy", json_real(accuracy));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The GPU's */

static void begin_gpu(Course *course) {
  const Options *o = course->options;
  MlpEpoch *e = &course->epoch;
  e->inputs = course->train.pixels;
  e->hidden = o->hidden;
  e->classes = MNIST_CLASSES;
  e->batch = o->train.common.batch_size;
  e->count = course->train.count;
  e->images = course->gpu_train.images;
  e->labels = course->gpu_train.labels;
  e->order = course->gpu_train.order;
  e->mean = course->train.norm.mean[0];
  e->stddev = course->train.norm.stddev[0];
  e->lr = (float)o->train.lr;
  e->momentum = (float)o->train.momentum;
  e->parameters = (float *)device_alloc(DEVICE_GPU, mlp_parameter_count(e) * sizeof(float));
  e->velocity = (float *)device_alloc(DEVICE_GPU, mlp_parameter_count(e) * sizeof(float));
  e->losses = (float *)device_alloc(DEVICE_GPU, e->count * sizeof(float));
  create(&course->judge, course, DEVICE_GPU, course->test.count < 1000 ? course->test.count : 1000);
}

static void restart(const Course *course) {
  const MlpEpoch *e = &course->epoch;
  device_upload(DEVICE_GPU, e->parameters, course->initial, mlp_parameter_count(e) * sizeof(float));
  device_zero(DEVICE_GPU, e->velocity, mlp_parameter_count(e) * sizeof(float));
  device_synchronize(DEVICE_GPU); /* versions have streams of their own */
}

static void train_epoch(Course *course, const Rung *rung, MlpRun *run, int epoch) {
  device_set_shuffle(&course->gpu_train, course->options->train.common.seed, epoch);
  device_synchronize(DEVICE_GPU);
  rung->train(run);
  device_synchronize(DEVICE_GPU);
}

static double test_accuracy(Course *course) {
  Model *judge = &course->judge;
  device_copy(DEVICE_GPU, judge->parameters, course->epoch.parameters,
              mlp_parameter_count(&course->epoch) * sizeof(float));
  return device_set_evaluate(&course->gpu_test, judge, NULL).correct / course->test.count;
}

/* One epoch from the first weights: how far its losses are from the CPU's. */
static void check(Course *course, const Rung *rung, MlpRun *run, Measured *row) {
  const MlpEpoch *e = &course->epoch;
  float *losses = (float *)xmalloc(e->count * sizeof *losses);
  compare_poison(losses, e->count);
  device_upload(DEVICE_GPU, e->losses, losses, e->count * sizeof *losses);
  restart(course);
  train_epoch(course, rung, run, 0);
  device_download(DEVICE_GPU, losses, e->losses, e->count * sizeof *losses);
  row->error = 0;
  for (int i = 0; i < course->checked; i++) {
    int first = i * e->batch, batch = batches_size_at(e->count, e->batch, first);
    double sum = 0;
    for (int j = 0; j < batch; j++) sum += losses[first + j];
    double error = fabs(sum / batch - course->expected[i]) / fmax(1, course->expected[i]);
    if (error > row->error || isnan(error)) row->error = error; /* of NaN, nothing is greater: it stays */
  }
  free(losses);
  row->accuracy = test_accuracy(course);
}

/* What the host launches in an epoch, and the GPU runs. */
static void count(const Course *course, const Rung *rung, const MlpRun *run, Measured *row, double step_kernels) {
  row->launches = row->kernels = 1;
  if (rung->train == mlp_epoch_layers) {
    row->launches = row->kernels = step_kernels * course->steps;
  } else if (run->graph != NULL || run->tail != NULL) { /* the tail alone: one batch has all images */
    int of_a_step = rung->train != mlp_epoch_graph;
    row->launches = of_a_step ? course->steps : 1;
    row->kernels = (double)run->nodes * (of_a_step ? course->steps : 1);
  }
}

/* Kernels of a step of layers: of the graph of such a step, without the one that moves its counter on. */
static double step_kernels(Course *course) {
  MlpRun *run = (MlpRun *)xmalloc(sizeof *run);
  mlp_open(run, &course->epoch);
  mlp_layers_open(run);
  run->graph = mlp_capture_layers(run, course->epoch.batch);
  double kernels = (double)run->nodes - 1;
  mlp_close(run);
  free(run);
  return kernels;
}

static void print_rows(const Course *course, const Measured *rows, json_t *array, int real) {
  printf("%-12s %9s %9s %10s %10s %10s", "version", "error", "tolerance", "launches", "kernels", "accuracy");
  if (real) printf(" %10s %10s %9s %9s", "a step", "an epoch", "x above", "x first");
  putchar('\n');
  for (int i = 0; i < RUNGS; i++) {
    const Measured *row = &rows[i];
    if (row->launches == 0) continue; /* it was not asked for, or does not fit */
    int ok = row->error <= TOLERANCE;
    printf("%-12s %9.2g %9.2g %10.0f %10.0f %8.2f %%", rungs[i].name, row->error, TOLERANCE, row->launches,
           row->kernels, 100 * row->accuracy);
    json_t *object = json_pack("{s:s, s:b, s:o, s:f, s:f, s:f, s:f}", "version", rungs[i].name, "ok", ok, "error",
                               json_number(row->error), "tolerance", TOLERANCE, "launches", row->launches, "kernels",
                               row->kernels, "test_accuracy", row->accuracy);
    if (real) {
      printf(" %7.2f us %7.2f ms", 1e6 * row->time / course->steps, 1e3 * row->time);
      json_object_set_new(object, "time_us", json_real(1e6 * row->time / course->steps));
      json_object_set_new(object, "epoch_ms", json_real(1e3 * row->time));
      if (i > 0 && rows[i - 1].time > 0) {
        printf(" %8.2fx %8.2fx", rows[i - 1].time / row->time, rows[0].time / row->time);
        json_object_set_new(object, "vs_previous", json_real(rows[i - 1].time / row->time));
      }
    }
    printf("\n    %s%s\n", ok ? "" : "WRONG. ", rungs[i].limit);
    json_array_append_new(array, object);
  }
}

/* Epoch by epoch, by the first version and by the last that fits, from the same weights and in the same orders. */
static void train(Course *course, MlpRun *const *runs, int last, json_t *json) {
  const int epochs = course->options->train.common.epochs, pair[2] = {0, last};
  double *accuracy[2], seconds[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    accuracy[i] = (double *)xcalloc(epochs, sizeof(double));
    restart(course);
    for (int epoch = 0; epoch < epochs; epoch++) {
      double start = seconds_now(); /* with the shuffling */
      train_epoch(course, &rungs[pair[i]], runs[pair[i]], epoch);
      seconds[i] += seconds_now() - start;
      accuracy[i][epoch] = test_accuracy(course);
    }
  }
  printf("\nTest accuracy, by %s and by %s:\n", rungs[pair[0]].name, rungs[pair[1]].name);
  for (int epoch = 0; epoch < epochs; epoch++)
    printf("epoch %3d   %6.2f %%   %6.2f %%\n", epoch + 1, 100 * accuracy[0][epoch], 100 * accuracy[1][epoch]);
  json_object_set_new(json, "epochs", json_integer(epochs));
  json_object_set_new(json, "test_accuracy", json_real(accuracy[1][epochs - 1]));
  json_object_set_new(json, "layers_test_accuracy", json_real(accuracy[0][epochs - 1]));
#ifndef SIMT_REWRITTEN
  printf("Shuffled on the host and trained in %.3f s, and in %.3f s.\n", seconds[0], seconds[1]);
  json_object_set_new(json, "layers_seconds", json_real(seconds[0]));
  json_object_set_new(json, "seconds", json_real(seconds[1]));
#endif
  for (int i = 0; i < 2; i++) free(accuracy[i]);
}

static int run_gpu(Course *course, json_t *json) {
  const Options *o = course->options;
  static Measured rows[RUNGS];
  MlpRun *runs[RUNGS];
  int wrong = 0, real = 1, last = 0;
  Error err;
#ifdef SIMT_REWRITTEN
  real = 0; /* a time of an emulated GPU means nothing */
#endif
  begin_gpu(course);
  expect(course);
  double kernels = step_kernels(course);
  for (int i = 0; i < RUNGS; i++) {
    runs[i] = (MlpRun *)xmalloc(sizeof **runs);
    mlp_open(runs[i], &course->epoch);
    if (o->only != NULL && strcmp(o->only, rungs[i].name) != 0) continue;
    if (rungs[i].fits != NULL && rungs[i].fits(runs[i], &err) != 0) {
      if (o->only != NULL) die("%s", err.message);
      fprintf(stderr, "%s: note: without %s: %s\n", program_invocation_short_name, rungs[i].name, err.message);
      continue;
    }
    last = i;
    check(course, &rungs[i], runs[i], &rows[i]);
    count(course, &rungs[i], runs[i], &rows[i], kernels);
    wrong += !(rows[i].error <= TOLERANCE);
  }
  for (int round = 0; round < o->rounds && real && o->only == NULL; round++)
    for (int i = 0; i < RUNGS; i++) {
      if (rows[i].launches == 0) continue;
      double start = seconds_now();
      rungs[i].train(runs[i]);
      device_synchronize(DEVICE_GPU);
      rows[i].seconds[round] = seconds_now() - start;
    }
  for (int i = 0; i < RUNGS; i++)
    if (rows[i].seconds[0] > 0) rows[i].time = timer_stats(rows[i].seconds, o->rounds).median;
  json_t *array = json_array();
  print_rows(course, rows, array, real && o->only == NULL);
  json_object_set_new(json, "rows", array);
  if (o->only == NULL) train(course, runs, last, json);
  for (int i = 0; i < RUNGS; i++) {
    mlp_close(runs[i]);
    free(runs[i]);
  }
  model_close(&course->judge);
  device_free(DEVICE_GPU, course->epoch.parameters);
  device_free(DEVICE_GPU, course->epoch.velocity);
  device_free(DEVICE_GPU, course->epoch.losses);
  device_set_destroy(&course->gpu_train);
  device_set_destroy(&course->gpu_test);
  return wrong;
}

int main(int argc, char **argv) {
  static Options options;
  static Course course;
  char device[512];
  Error err;
  threads_begin();
  read_options(&options, argc, argv);
  threads_set(0);
  if (device_open(options.train.common.device, device, sizeof device, &err) != 0) die("%s", err.message);
  course.options = &options;
  printf("mlp_one_kernel on %s\n", device);
  begin(&course, options.train.common.device);
  printf("%d-%d-%d, %d images in %d steps of %d; learning rate %g, momentum %g, seed %llu\n\n", course.train.pixels,
         options.hidden, MNIST_CLASSES, course.train.count, course.steps, options.train.common.batch_size,
         options.train.lr, options.train.momentum, (unsigned long long)options.train.common.seed);
  fflush(stdout);
  json_t *json = json_pack("{s:s, s:s, s:i, s:i, s:i}", "lesson", "mlp_one_kernel", "device",
                           device_name(options.train.common.device), "hidden", options.hidden, "batch_size",
                           options.train.common.batch_size, "steps", course.steps);
  int wrong = 0;
  if (options.train.common.device == DEVICE_GPU) {
    json_object_set_new(json, "gpu", json_text(device));
    wrong = run_gpu(&course, json);
  } else {
    run_cpu(&course, json);
  }
  if (!options.train.common.json)
    json_decref(json);
  else if (json_result(json, &err) != 0)
    die("%s", err.message);
  model_close(&course.cpu);
  device_set_destroy(&course.train);
  device_set_destroy(&course.test);
  free(course.initial);
  stdout_finish();
  return wrong > 0;
}

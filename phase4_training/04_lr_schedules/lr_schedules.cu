/* lr_schedules.cu - what a learning rate that changes is good for: the same network, trained with each schedule.
 *
 *     bazel run //phase4_training:lr_schedules
 *     bazel run //phase4_training:lr_schedules -- --lr=0.01
 *     bazel run //phase4_training:lr_schedules -- --schedule=constant --schedule=cosine:cycles=3,growth=2,warmup=0
 *
 * A multi-layer perceptron of 784, 64 and 10 units learns a part of MNIST, always from the same weights and in the same
 * order of images. Only the learning rate differs: by the schedules of common/nn/schedule.h, which all programs of this
 * course take. The program draws the rates (schedules.png) and the losses of the test set (losses.png). */
#include "common/nn/train_options.h"
#include "common/nn/trainer.h"
#include "common/plot.h"
#include "common/threads_begin.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

enum { MOST_SCHEDULES = 16 };

typedef struct ScheduleRun {
  LrSchedule schedule;
  char name[SCHEDULE_TEXT];
  double *done, *rate;                    /* of each step: its middle, in epochs */
  double *epoch, *test;                   /* of each epoch: its end, the loss on the test set */
  size_t steps, epochs;                   /* as many there are: fewer than were asked for where it has diverged */
  double train_loss, test_loss, accuracy; /* at the end; NAN: it has diverged */
} ScheduleRun;

typedef struct ScheduleOptions {
  TrainOptions train;
  ScheduleRun run[MOST_SCHEDULES];
  int runs;
} ScheduleOptions;

/* ---- options ---- */

static void add_schedule(ScheduleOptions *options, const LrSchedule *schedule) {
  ScheduleRun *run = &options->run[options->runs++];
  run->schedule = *schedule;
  snprintf(run->name, sizeof run->name, "%s", lr_schedule_text(schedule).text);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  ScheduleOptions *options = (ScheduleOptions *)state->input;
  LrSchedule schedule;
  Error err;
  if (key != 's') return ARGP_ERR_UNKNOWN;
  if (lr_schedule_parse(arg, &schedule, &err) != 0) argp_error(state, "--schedule=%s: %s", arg, err.message);
  if (options->runs == MOST_SCHEDULES) argp_error(state, "--schedule: at most %d are compared", MOST_SCHEDULES);
  add_schedule(options, &schedule);
  return 0;
}

/* One of each; and the cosine with restarts. */
static void usual_schedules(ScheduleOptions *options) {
  LrSchedule schedule;
  Error err;
  for (int i = 0; schedule_at(i); i++) {
    schedule = lr_schedule(schedule_at(i));
    add_schedule(options, &schedule);
  }
  if (lr_schedule_parse("cosine:cycles=3", &schedule, &err) != 0) die("%s", err.message);
  add_schedule(options, &schedule);
}

/* ---- training ---- */

static void open_run(const ScheduleOptions *options, ScheduleRun *run, int images) {
  const CommonOptions *common = &options->train.common;
  const size_t steps = (size_t)common->epochs * (size_t)((images + common->batch_size - 1) / common->batch_size);
  run->done = (double *)xcalloc(steps, sizeof(double));
  run->rate = (double *)xcalloc(steps, sizeof(double));
  run->epoch = (double *)xcalloc((size_t)common->epochs, sizeof(double));
  run->test = (double *)xcalloc((size_t)common->epochs, sizeof(double));
}

/* One epoch; its mean loss, NAN where the network has diverged. */
static double train_epoch(Trainer *t, ScheduleRun *run) {
  const Totals none = {0, 0};
  TrainState *state = &t->state;
  device_set_shuffle(t->train, state->seed, state->epoch);
  model_reset_totals(t->net, 0, none);
  for (int start = 0; start < t->train->count; start += state->batch_size) {
    const int left = t->train->count - start;
    t->lr = trainer_learning_rate(&t->schedule, state);
    run->done[state->step] = (state->step + 0.5) / checkpoint_steps_per_epoch(state);
    run->rate[state->step] = t->lr;
    trainer_one_step(t, start, left < state->batch_size ? left : state->batch_size);
  }
  const double loss = model_read_totals(t->net, 0).loss / t->train->count;
  return isfinite(loss) ? loss : NAN;
}

/* The whole run, or until it diverges. */
static void train_network(Trainer *t, ScheduleRun *run) {
  TrainState *state = &t->state;
  run->train_loss = run->test_loss = run->accuracy = NAN;
  for (; state->epoch < state->epochs; state->epoch++) {
    run->train_loss = train_epoch(t, run);
    const Totals totals = device_set_evaluate(t->test, t->net, NULL);
    run->test_loss = totals.loss / t->test->count;
    run->accuracy = totals.correct / t->test->count;
    run->steps = (size_t)state->step;
    if (!isfinite(run->train_loss) || !isfinite(run->test_loss)) {
      run->accuracy = NAN;
      return;
    }
    run->epoch[run->epochs] = state->epoch + 1;
    run->test[run->epochs++] = run->test_loss;
    schedule_plateau_watch(&run->schedule, &state->plateau, run->test_loss);
  }
}

static void run_schedule(const ScheduleOptions *options, DeviceSet *train, DeviceSet *test, ScheduleRun *run) {
  const CommonOptions *common = &options->train.common;
  static const MlpShape shape = {3, {784, 64, 10}, ACTIVATION_RELU};
  Model net;
  Trainer t;
  memset(&t, 0, sizeof t);
  mlp_create(&net, &shape, common->device, common->batch_size);
  model_init(&net, common->seed);
  t.net = &net;
  t.train = train;
  t.test = test;
  t.schedule = run->schedule;
  t.state.seed = common->seed;
  t.state.epochs = common->epochs;
  t.state.batch_size = common->batch_size;
  t.state.train_images = train->count;
  t.state.lr = options->train.lr;
  t.state.momentum = options->train.momentum;
  train_network(&t, run);
  if (isfinite(run->accuracy))
    printf("%-34s %12.4f %11.4f %13.2f %%\n", run->name, run->train_loss, run->test_loss, 100 * run->accuracy);
  else
    printf("%-34s %12s %11s %15s\n", run->name, "-", "-", "diverged");
  fflush(stdout);
  model_close(&net);
}

/* ---- results ---- */

static void draw(const ScheduleOptions *options, const char *name, const Plot *plot) {
  static const char *const formats[] = {"svg", "png"};
  char path[PATH_MAX + 32];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s.%s", options->train.common.output_dir, name, formats[i]);
    if (plot_or_note(plot, path) != 0) return;
  }
  printf("Drawn: %s\n", path);
}

static void draw_all(const ScheduleOptions *options) {
  PlotSeries rates[MOST_SCHEDULES], losses[MOST_SCHEDULES];
  for (int i = 0; i < options->runs; i++) {
    const ScheduleRun *run = &options->run[i];
    const PlotSeries rate = {run->name, run->done, run->rate, run->steps, 0};
    const PlotSeries loss = {run->name, run->epoch, run->test, run->epochs, 0};
    rates[i] = rate;
    losses[i] = loss;
  }
  const Plot first = {
      "The learning rate of each step", "epoch", "learning rate", NULL, 0, 0, rates, (size_t)options->runs};
  const Plot second = {"After each epoch", "epoch", "loss of the test set", NULL, 0, 1, losses, (size_t)options->runs};
  printf("\n");
  draw(options, "schedules", &first);
  size_t points = 0;
  for (int i = 0; i < options->runs; i++) points += options->run[i].epochs;
  if (points > 0) draw(options, "losses", &second);
}

static void print_json(const ScheduleOptions *options) {
  Error err;
  json_t *runs = json_array();
  for (int i = 0; i < options->runs; i++) {
    const ScheduleRun *run = &options->run[i];
    json_t *row = json_pack("{s:s}", "schedule", run->name);
    if (isfinite(run->accuracy)) {
      json_object_set_new(row, "train_loss", json_real(run->train_loss));
      json_object_set_new(row, "test_loss", json_real(run->test_loss));
      json_object_set_new(row, "test_accuracy", json_real(run->accuracy));
    }
    json_array_append_new(runs, row);
  }
  if (json_result(json_pack("{s:s, s:s, s:I, s:i, s:f, s:o}", "program", "lr_schedules", "device",
                            device_name(options->train.common.device), "seed", (json_int_t)options->train.common.seed,
                            "epochs", options->train.common.epochs, "lr", options->train.lr, "runs", runs),
                  &err) != 0)
    die("%s", err.message);
}

/* ---- the program ---- */

static void load_sets(const ScheduleOptions *options, DataSet *train, DataSet *test, DataNorm *norm) {
  Error err;
  if (data_load_both(&data_mnist, options->train.common.data_dir, options->train.train_images,
                     options->train.test_images, train, test, norm, &err) != 0)
    die("%s", err.message);
}

static void default_options(ScheduleOptions *options) {
  train_options_default(&options->train, OPTIONS_TRAINER,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS);
  options->train.common.epochs = 12;
  options->train.common.batch_size = 32;
  options->train.train_images = 4000;
  options->train.test_images = 2000;
  options->train.lr = 0.05;
  options->train.momentum = 0.9;
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {{"schedule", 's', "NAME[:KEY=VALUE,...]", 0,
                                             "Compare this schedule, and others that are named so; by default all", 0},
                                            OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Trains a network with each schedule of the learning rate.",
                                  NULL, NULL,  NULL};
  static ScheduleOptions options;
  char device[512];
  Error err;
  threads_begin();
  default_options(&options);
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);
  if (options.runs == 0) usual_schedules(&options);
  const CommonOptions *common = &options.train.common;
  DataSet train_host, test_host;
  DataNorm norm;
  load_sets(&options, &train_host, &test_host, &norm);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  if (device_open(common->device, device, sizeof device, &err) != 0) die("%s", err.message);
  printf(
      "lr_schedules on %s\n%d images of MNIST in batches of %d, %d epochs, highest rate %g, momentum %g; %d for the "
      "test\n\n%-34s %12s %11s %15s\n",
      device, train_host.count, common->batch_size, common->epochs, options.train.lr, options.train.momentum,
      test_host.count, "schedule", "train loss", "test loss", "test accuracy");
  DeviceSet train, test;
  device_set_create(&train, common->device, &batch_kernels, &train_host, train_host.count, &norm);
  device_set_create(&test, common->device, &batch_kernels, &test_host, test_host.count, &norm);
  for (int i = 0; i < options.runs; i++) {
    open_run(&options, &options.run[i], train_host.count);
    run_schedule(&options, &train, &test, &options.run[i]);
  }
  draw_all(&options);
  if (common->json) print_json(&options);
  for (int i = 0; i < options.runs; i++) {
    free(options.run[i].done);
    free(options.run[i].rate);
    free(options.run[i].epoch);
    free(options.run[i].test);
  }
  device_set_destroy(&train);
  device_set_destroy(&test);
  data_free(&train_host);
  data_free(&test_host);
  stdout_finish();
  return 0;
}

/* training_loop.cu - the whole of a training run in one file: what trainer.h and app.h do for every program, without
 * the tables and options of a real one.
 *
 *     bazel run //phase4_training:training_loop
 *     bazel run //phase4_training:training_loop -- --stop-after=2       and then: --resume
 *
 * A perceptron of 784, 64 and 10 units learns a part of MNIST. After each epoch the loss of images that are not trained
 * on says whether it is the best one so far, and when to stop; the test set is looked at once, at the end, with the
 * best weights. A run that was stopped and resumed ends with the same bits as one that was not. */
#include "common/interrupt.h"
#include "common/nn/run_folder.h"
#include "common/nn/train_options.h"
#include "common/nn/trainer.h"
#include "common/threads_begin.h"
#include "phase2_mlp/03_mlp/mlp.cuh"
#include "phase2_mlp/05_batches/batches_op.cuh"

typedef struct LoopOptions {
  TrainOptions train;
  int stop_after; /* epochs; 0: the run ends by itself */
} LoopOptions;

typedef struct Loop {
  Model net;
  DeviceSet train, validation, test;
  LrSchedule schedule;
  TrainState state; /* all that a checkpoint keeps beside the weights */
  TrainLog log;
  int log_every;
  char last[PATH_MAX + 32], best[PATH_MAX + 32];
  unsigned moved;                                      /* files of an earlier run, into previous/ */
  double train_loss, gradient_norm, images_per_second; /* of the last epoch; NAN: not measured */
} Loop;

/* ---- a step ---- */

/* Images start .. start + count - 1 of the epoch's order. In parts, if they are more than the network takes at once:
 * then the gradients of the parts are added up, and the last one clips them and steps. */
static void one_step(Loop *l, int start, int count) {
  const int part = checkpoint_part(&l->state);
  l->net.hyper.lr = (float)trainer_learning_rate(&l->schedule, &l->state);
  l->net.hyper.momentum = (float)l->state.momentum;
  if (count <= part) {
    device_set_gather(&l->train, &l->net, start, count);
    model_gradients(&l->net, count); /* forward, loss, backward */
    model_clip(&l->net);
    model_update(&l->net);
  } else {
    for (int begin = 0, i = 0; begin < count; begin += part, i++) {
      const int size = count - begin < part ? count - begin : part;
      device_set_gather(&l->train, &l->net, start + begin, size);
      model_train_part(&l->net, size, i, begin, count);
    }
  }
  l->state.step++;
}

/* ---- an epoch ---- */

static void log_record(Loop *l, const char *split, double loss, double correct, double images, double norm) {
  TrainRecord record = train_record();
  snprintf(record.split, sizeof record.split, "%s", split);
  record.step = l->state.step;
  record.epoch = l->state.epoch + 1;
  record.loss = loss / images;
  record.accuracy = correct / images;
  record.lr = l->net.hyper.lr;
  record.gradient_norm = norm;
  train_log_write(&l->log, &record);
}

/* The sums are on the device, and are fetched every log_every steps: each look waits for it. -1: the loss is not a
 * number any more, and what was saved before is the run's result. */
static int train_epoch(Loop *l, Error *err) {
  TrainState *state = &l->state;
  const double started = seconds_now();
  const Totals none = {0, 0};
  const double zero = 0;
  StepTotals before = {{0, 0}, 0};
  int from = 0;
  long from_step = state->step;
  const long first = state->step;
  device_set_shuffle(&l->train, state->seed, state->epoch);
  model_reset_totals(&l->net, 0, none);
  device_upload(l->net.context.device, l->net.totals + MODEL_NORMS, &zero, sizeof zero);
  TotalsFetch fetch;
  totals_fetch_open(&fetch, &l->net);
  for (int start = 0; start < l->train.count;) {
    const int left = l->train.count - start, count = left < state->batch_size ? left : state->batch_size;
    one_step(l, start, count);
    start += count;
    if (interrupt_requested()) {
      totals_fetch_close(&fetch);
      return state->epoch == 0
                 ? error_set_code(err, ERROR_INTERRUPTED, "stopped in epoch 1; nothing is saved before its end")
                 : error_set_code(err, ERROR_INTERRUPTED, "stopped in epoch %d; to go on after epoch %d say --resume",
                                  state->epoch + 1, state->epoch);
    }
    if (start < l->train.count && state->step % l->log_every != 0) continue;
    totals_fetch_begin(&fetch, &l->net);
    const StepTotals now = totals_fetch_end(&fetch);
    if (!isfinite(now.totals.loss)) {
      totals_fetch_close(&fetch);
      return error_set(err, "the loss is not finite at step %ld: the learning rate %g is too high; try --lr=%g",
                       state->step, state->lr, state->lr / 10);
    }
    const double norms = state->clip_norm > 0 ? now.norms - before.norms : NAN;
    log_record(l, "train", now.totals.loss - before.totals.loss, now.totals.correct - before.totals.correct,
               start - from, norms / (double)(state->step - from_step));
    from = start;
    from_step = state->step;
    before = now;
  }
  totals_fetch_close(&fetch);
  l->train_loss = before.totals.loss / l->train.count;
  l->gradient_norm = state->clip_norm > 0 ? before.norms / (double)(state->step - first) : NAN;
  const double seconds = seconds_now() - started;
  l->images_per_second = l->train.count / seconds;
  state->seconds += seconds;
  return 0;
}

/* Validates, notes whether the epoch is the best one, and saves: the weights of the best epoch, and all that the run
 * needs to go on. A file is replaced in one step, so that a kill leaves either the old one or the new one. */
static int finish_epoch(Loop *l, Error *err) {
  TrainState *state = &l->state;
  const Totals totals = device_set_evaluate(&l->validation, &l->net, NULL);
  state->validation_loss = totals.loss / l->validation.count;
  log_record(l, "validation", totals.loss, totals.correct, l->validation.count, NAN);
  state->epoch++;
  const int best = state->best_epoch == 0 || state->validation_loss < state->best_loss;
  if (best) {
    state->best_epoch = state->epoch;
    state->best_loss = state->validation_loss;
  }
  printf("%5d %12.4f %17.4f %15.4f %s\n", state->epoch, l->train_loss, state->validation_loss, l->gradient_norm,
         best ? "  the best so far" : "");
  fflush(stdout);
  train_log_sync(&l->log);
  if (best && checkpoint_save(l->best, CHECKPOINT_MODEL, &l->net, state, err) != 0) return -1;
  return checkpoint_save(l->last, CHECKPOINT_STATE, &l->net, state, err);
}

/* ---- a run ---- */

/* A setting that was typed must be the checkpoint's. */
static int same_settings(const TrainOptions *options, const TrainState *state, const char *path, Error *err) {
  const struct {
    const char *option;
    uint64_t bit;
    double typed, saved;
  } settings[] = {{"lr", TRAIN_LR, options->lr, state->lr},
                  {"momentum", TRAIN_MOMENTUM, options->momentum, state->momentum},
                  {"validation", TRAIN_VALIDATION, options->validation, state->validation},
                  {"patience", TRAIN_PATIENCE, (double)options->patience, (double)state->patience},
                  {"clip-norm", TRAIN_CLIP, options->clip_norm, state->clip_norm},
                  {"clip-value", TRAIN_CLIP_VALUE, options->clip_value, state->clip_value},
                  {"accumulate", TRAIN_ACCUMULATE, (double)options->accumulate,
                   (double)(state->accumulate ? state->accumulate : 1)}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char typed[64], saved[64];
    if (!(options->given & settings[i].bit) || settings[i].typed == settings[i].saved) continue;
    config_number(settings[i].typed, typed, sizeof typed);
    config_number(settings[i].saved, saved, sizeof saved);
    if (settings[i].bit == TRAIN_CLIP_VALUE && state->clip_value == 0)
      return error_set(err, "--resume: %s was started without --clip-value, here it is %s; leave the option out", path,
                       typed);
    return error_set(err, "--resume: %s was started with --%s=%s, here it is %s; leave the option out", path,
                     settings[i].option, saved, typed);
  }
  return 0;
}

/* The settings become those of the checkpoint, but for the number of epochs. */
static int resume(Loop *l, const TrainOptions *options, Error *err) {
  const CommonOptions *common = &options->common;
  TrainState *state = &l->state;
  if (checkpoint_load(l->last, CHECKPOINT_STATE, &l->net, state, err) != 0) return -1;
  if (state->train_images != l->train.count || state->seed != common->seed ||
      checkpoint_part(state) != common->batch_size)
    return error_set(err,
                     "%s is of %d training images in batches of %d with the seed %llu, here %d, %d and %llu; give the "
                     "options with which the run was started",
                     l->last, state->train_images, checkpoint_part(state), (unsigned long long)state->seed,
                     l->train.count, common->batch_size, (unsigned long long)common->seed);
  if (same_settings(options, state, l->last, err) != 0) return -1;
  state->epochs = common->epochs;
  return 0;
}

/* One run at a time has the folder. What an earlier run has left there moves into previous/ when the new one begins. */
static int open_folder(const Loop *l, const TrainOptions *options, Error *err) {
  const char *folder = options->common.output_dir;
  if (make_directories(folder, err) != 0 || run_folder_lock(folder, err) != 0) return -1;
  return options->resume || options->restart ? 0 : run_folder_protect_unfinished(folder, l->last, err);
}

/* Settings and images. */
static int open_loop(Loop *l, const LoopOptions *options, Error *err) {
  const CommonOptions *common = &options->train.common;
  const char *folder = common->output_dir;
  static const MlpShape shape = {3, {784, 64, 10}, ACTIVATION_RELU};
  TrainState *state = &l->state;
  DataSet train, validation, test;
  DataNorm norm;
  snprintf(l->last, sizeof l->last, "%s/last.state.safetensors", folder);
  snprintf(l->best, sizeof l->best, "%s/best.safetensors", folder);
  if (data_load(&data_mnist, common->data_dir, DATA_TRAIN, &train, err) != 0 ||
      data_load(&data_mnist, common->data_dir, DATA_TEST, &test, err) != 0 || open_folder(l, &options->train, err) != 0)
    return -1;
  data_keep_first(&train, options->train.train_images);
  data_keep_first(&test, options->train.test_images);
  if (data_split(&train, &validation, options->train.validation, common->seed, err) != 0 ||
      data_statistics(&train, &norm, err) != 0)
    return -1;
  device_set_create(&l->train, common->device, &batch_kernels, &train, train.count, &norm);
  device_set_create(&l->validation, common->device, &batch_kernels, &validation, validation.count, &norm);
  device_set_create(&l->test, common->device, &batch_kernels, &test, test.count, &norm);
  data_free(&train);
  data_free(&validation);
  data_free(&test);

  const int parts = options->train.accumulate > 1 ? options->train.accumulate : 1;
  state->seed = common->seed;
  state->epochs = common->epochs;
  state->accumulate = parts > 1 ? parts : 0;
  state->batch_size = parts * common->batch_size;
  state->train_images = l->train.count;
  state->test_images = l->test.count;
  state->validation_images = l->validation.count;
  state->lr = options->train.lr;
  state->momentum = options->train.momentum;
  state->clip_norm = options->train.clip_norm;
  state->clip_value = options->train.clip_value;
  state->validation = options->train.validation;
  state->patience = options->train.patience;
  state->validation_loss = state->best_loss = NAN;
  for (int c = 0; c < norm.channels; c++) {
    state->mean[c] = norm.mean[c];
    state->stddev[c] = norm.stddev[c];
  }
  mlp_create(&l->net, &shape, common->device, common->batch_size);
  model_init(&l->net, state->seed);
  if (options->train.resume && resume(l, &options->train, err) != 0) return -1;
  if (state->accumulate > 1) model_accumulate_open(&l->net);
  l->net.clip_norm = (float)state->clip_norm;
  l->net.clip_value = (float)state->clip_value;
  l->schedule = options->train.schedule;
  l->log_every = options->train.log_every;
  interrupt_install();
  if (!options->train.resume) l->moved = run_folder_set_aside(folder);
  return train_log_open(&l->log, folder, options->train.resume ? state->step : -1, err);
}

static int run(Loop *l, int stop_after, Error *err) {
  int epochs = 0;
  printf("\nepoch   train loss   validation loss   gradient norm\n");
  while (!checkpoint_finished(&l->state)) {
    if (stop_after > 0 && epochs++ == stop_after) return 0;
    if (train_epoch(l, err) != 0 || finish_epoch(l, err) != 0) return -1;
  }
  return 0;
}

/* With the weights of the best epoch: the only time that the test set is looked at. */
static int test_best(Loop *l, double *loss, double *accuracy, Error *err) {
  TrainState of_best;
  if (checkpoint_load(l->best, CHECKPOINT_MODEL, &l->net, &of_best, err) != 0) return -1;
  const Totals totals = device_set_evaluate(&l->test, &l->net, NULL);
  *loss = totals.loss / l->test.count;
  *accuracy = totals.correct / l->test.count;
  printf("\nbest validation loss %.4f in epoch %d of %d; with these weights %.2f %% of %d test images are right\n",
         l->state.best_loss, l->state.best_epoch, l->state.epoch, 100 * *accuracy, l->test.count);
  return 0;
}

/* ---- the program ---- */

static error_t parse(int key, char *arg, struct argp_state *state) {
  LoopOptions *options = (LoopOptions *)state->input;
  if (key != 's') return ARGP_ERR_UNKNOWN;
  options->stop_after = (int)option_int(state, arg, "--stop-after", 1, 100000);
  return 0;
}

static void default_options(LoopOptions *options) {
  TrainOptions *train = &options->train;
  train_options_default(train, OPTIONS_TRAINER,
                        TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES | TRAIN_TEST_IMAGES | TRAIN_THREADS | TRAIN_RESUME |
                            TRAIN_VALIDATION | TRAIN_CLIP | TRAIN_ACCUMULATE);
  train->common.epochs = 20;
  train->common.batch_size = 32;
  train->train_images = 6000;
  train->test_images = 10000;
  train->lr = 0.1;
  train->momentum = 0.9;
  train->validation = 0.2;
  train->patience = 3;
  train->clip_norm = 1;
  train->log_every = 25;
  train->schedule = lr_schedule(&schedule_linear);
}

/* What was not measured is left out: the test set of a run that was stopped. */
static int print_json(const Loop *l, const CommonOptions *common, double loss, double accuracy, Error *err) {
  const TrainState *state = &l->state;
  const double figures[] = {accuracy, loss, l->train_loss, state->best_loss, l->images_per_second, state->seconds};
  const char *const names[] = {"test_accuracy",        "test_loss",         "train_loss",
                               "best_validation_loss", "images_per_second", "seconds"};
  json_t *result =
      json_pack("{s:s, s:s, s:I, s:i, s:i}", "program", "training_loop", "device", device_name(common->device), "seed",
                (json_int_t)state->seed, "epochs", state->epoch, "best_epoch", state->best_epoch);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (isfinite(figures[i])) json_object_set_new(result, names[i], json_real(figures[i]));
  json_object_set_new(result, "checkpoint", json_text(l->best));
  return json_result(result, err);
}

static void close_loop(Loop *l, Error *err) {
  if (train_log_close(&l->log, err) != 0) die("%s", err->message);
  device_set_destroy(&l->train);
  device_set_destroy(&l->validation);
  device_set_destroy(&l->test);
  model_close(&l->net);
}

int main(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"stop-after", 's', "N", 0, "Stop after N epochs, as if the program had been killed; --resume goes on", 0},
      OPTION_END};
  static const struct argp own = {rows, parse, NULL, "Trains a perceptron, by a loop in one file.", NULL, NULL, NULL};
  static LoopOptions options;
  static Loop l;
  char device[512];
  Error err;
  double loss = NAN, accuracy = NAN;
  interrupt_begin();
  threads_begin();
  l.train_loss = l.images_per_second = NAN;
  default_options(&options);
  train_options_parse(&options.train, &own, &options, own.doc, argc, argv);
  const CommonOptions *common = &options.train.common;
  if (device_open(common->device, device, sizeof device, &err) != 0 || open_loop(&l, &options, &err) != 0)
    die("%s", err.message);
  printf("training_loop on %s\n%d training images, %d validation images; steps of %d images, learning rate %g\n",
         device, l.train.count, l.validation.count, l.state.batch_size, l.state.lr);
  if (options.train.resume) printf("resuming after epoch %d, step %ld\n", l.state.epoch, l.state.step);
  if (run(&l, options.stop_after, &err) != 0) {
    if (!options.train.resume) run_folder_take_back(common->output_dir, l.moved);
    if (err.code != ERROR_INTERRUPTED) die("%s", err.message);
    printf("\n%s\n", err.message);
    if (common->json && l.state.epoch > 0 && print_json(&l, common, loss, accuracy, &err) != 0) die("%s", err.message);
    stdout_finish();
    return interrupt_status();
  }
  if (!checkpoint_finished(&l.state))
    printf("\nstopped after epoch %d, step %ld; to go on say --resume\n", l.state.epoch, l.state.step);
  else if (test_best(&l, &loss, &accuracy, &err) != 0)
    die("%s", err.message);
  if (common->json && print_json(&l, common, loss, accuracy, &err) != 0) die("%s", err.message);
  close_loop(&l, &err);
  stdout_finish();
  return 0;
}

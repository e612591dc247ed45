/* app.cu - app.h: options, data, the run, results. Compiled once, and not in every program that trains. */
#include "common/nn/app.h"

#include "common/nn/app_data.h"
#include "common/nn/app_looks.h"
#include "common/nn/find_lr.h"
#include "common/nn/predict.h"
#include "common/nn/run_config.h"
#include "common/nn/run_folder.h"
#include "common/nn/run_page.h"
#include "common/nn/show.h"
#include "common/nn/trainer.h"
#include "common/threads_begin.h"

/* --------------------------------------------------------------------------------------------------- a training run */

/* "learning rate 0.03, momentum 0.9", "adam, learning rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-08" */
static void app_optimizer_text(const TrainOptions *options, char *text, size_t size) {
  const unsigned reads = options->optimizer->reads;
  const int sgd = options->optimizer == optimizer_named("sgd");
  size_t used = (size_t)snprintf(text, size, "%s%slearning rate %g", sgd ? "" : options->optimizer->name,
                                 sgd ? "" : ", ", options->lr);
  if (sgd || (reads & OPTIMIZER_MOMENTUM && options->momentum > 0))
    used += (size_t)snprintf(text + used, size - used, ", momentum %g", options->momentum);
  if (options->nesterov) used += (size_t)snprintf(text + used, size - used, " (Nesterov)");
  if (options->dampening > 0) used += (size_t)snprintf(text + used, size - used, ", dampening %g", options->dampening);
  if (reads & OPTIMIZER_BETA1) used += (size_t)snprintf(text + used, size - used, ", beta1 %g", options->beta1);
  if (reads & OPTIMIZER_BETA2) used += (size_t)snprintf(text + used, size - used, ", beta2 %g", options->beta2);
  if (reads & OPTIMIZER_EPSILON) used += (size_t)snprintf(text + used, size - used, ", epsilon %g", options->epsilon);
  if (options->centered) snprintf(text + used, size - used, ", centered");
}

static void app_print_header(const TrainOptions *options, const Trainer *t) {
  const TrainState *state = &t->state;
  char more[512 + AUGMENT_TEXT] = "", optimizer[256], validation[64] = "";
  size_t used = 0;
  if (state->weight_decay > 0)
    used += (size_t)snprintf(more + used, sizeof more - used, ", weight decay %g", state->weight_decay);
  if (state->precision[0]) used += (size_t)snprintf(more + used, sizeof more - used, ", %s", state->precision);
  if (state->accumulate > 1)
    used += (size_t)snprintf(more + used, sizeof more - used, ", in %d parts of %d", state->accumulate,
                             checkpoint_part(state));
  if (state->clip_norm > 0)
    used += (size_t)snprintf(more + used, sizeof more - used, ", gradients clipped to the norm %g", state->clip_norm);
  if (state->clip_value > 0)
    used += (size_t)snprintf(more + used, sizeof more - used, ", each gradient clipped to %g", state->clip_value);
  if (state->label_smoothing > 0)
    used += (size_t)snprintf(more + used, sizeof more - used, ", labels smoothed by %g", state->label_smoothing);
  if (state->mixup > 0) used += (size_t)snprintf(more + used, sizeof more - used, ", mixup %g", state->mixup);
  if (state->ema > 0) used += (size_t)snprintf(more + used, sizeof more - used, ", weights averaged by %g", state->ema);
  if (augment_changes(&options->augment->most))
    used += (size_t)snprintf(more + used, sizeof more - used, ", augmented by %s", options->augment->name);
  if (options->given & TRAIN_SCHEDULE)
    snprintf(more + used, sizeof more - used, ", schedule %s", lr_schedule_text(&options->schedule).text);
  if (t->validation) snprintf(validation, sizeof validation, ", %d validation images", t->validation->count);
  app_optimizer_text(options, optimizer, sizeof optimizer);
  printf("%d training images%s, %d test images; batch %d, %s%s, seed %llu\n\n", t->train->count, validation,
         t->test->count, state->batch_size, optimizer, more, (unsigned long long)state->seed);
  printf("epoch   train loss   train accuracy%s   test loss   test accuracy    images/s   time left\n",
         t->validation ? "   validation loss" : "");
  fflush(stdout);
}

/* Mean loss and accuracy of a set after an epoch, into the log by its name. -1 where the network has diverged. */
static int app_evaluate(Trainer *t, const DeviceSet *set, const char *split, double *loss, double *accuracy,
                        Error *err) {
  const double start = seconds_now();
  const Totals totals = device_set_evaluate(set, t->net, NULL);
  if (trainer_check_loss(t, t->state.step, t->state.epoch, totals.loss, err) != 0) return -1;
  *loss = totals.loss / set->count;
  *accuracy = totals.correct / set->count;
  trainer_log(t, t->state.step, t->state.epoch, split, totals, set->count, seconds_now() - start, t->lr, NAN);
  return 0;
}

/* Of the validation set and the test set, by the average of the weights where there is one. */
static int app_evaluate_sets(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  int status = 0;
  model_swap_average(t->net);
  if (t->validation)
    status = app_evaluate(t, t->validation, "validation", &state->validation_loss, &t->validation_accuracy, err);
  if (status == 0) status = app_evaluate(t, t->test, "test", &t->test_loss, &state->test_accuracy, err);
  model_swap_average(t->net);
  return status;
}

/* Evaluates after an epoch, and saves. The best epoch is that of the lowest validation loss, or, without a validation
 * set, of the highest test accuracy. */
static int app_finish_epoch(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  if (app_evaluate_sets(t, err) != 0) return -1;
  schedule_plateau_watch(&t->schedule, &state->plateau, t->validation ? state->validation_loss : t->test_loss);
  const int better =
      t->validation ? state->validation_loss < state->best_loss : state->test_accuracy > state->best_accuracy;
  const int best = state->best_epoch == 0 || better;
  if (best) {
    state->best_loss = state->validation_loss;
    state->best_accuracy = state->test_accuracy;
    state->best_epoch = state->epoch;
  }
  train_log_sync(t->log);
  return run_folder_save(t->output_dir, t->net, state, best, err);
}

/* Trains to the last epoch or to Ctrl-C. */
static TrainResult app_train(const TrainOptions *options, Trainer *t, HtmlReport *page, Error *err) {
  TrainState *state = &t->state;
  const double started = seconds_now();
  const int first = state->epoch;
  if (!checkpoint_finished(state)) app_print_header(options, t);
  while (!checkpoint_finished(state)) {
    const TrainResult result = trainer_train_epoch(t, err);
    if (result == TRAIN_FAILED) return result;
    if (result == TRAIN_INTERRUPTED)
      return run_folder_save(t->output_dir, t->net, state, 0, err) == 0 ? result : TRAIN_FAILED;
    t->train_loss = state->epoch_totals.loss / t->train->count;
    t->train_accuracy = state->epoch_totals.correct / t->train->count;
    state->epoch++;
    state->position = 0;
    state->epoch_totals.loss = state->epoch_totals.correct = 0;
    if (app_finish_epoch(t, err) != 0) return TRAIN_FAILED;
    const double left = (seconds_now() - started) / (state->epoch - first) * (state->epochs - state->epoch);
    printf("%5d %12.4f %14.2f %%", state->epoch, t->train_loss, 100 * t->train_accuracy);
    if (t->validation) printf(" %17.4f", state->validation_loss);
    printf(" %11.4f %13.2f %% %11.0f %8d:%02d\n", t->test_loss, 100 * state->test_accuracy, t->images_per_second,
           (int)left / 60, (int)left % 60);
    fflush(stdout);
    if (!checkpoint_finished(state)) run_page_grow(page, t);
  }
  if (state->epoch < state->epochs)
    printf("stopped early: the validation loss was lowest in epoch %d, %.4f, and has not fallen for %d epoch%s\n",
           state->best_epoch, state->best_loss, state->epoch - state->best_epoch,
           state->epoch - state->best_epoch == 1 ? "" : "s");
  return TRAIN_FINISHED;
}

/* A figure that was not measured, because the run was stopped before, is left out. */
static void app_print_json(const TrainOptions *options, const Trainer *t) {
  Error err;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/last.safetensors", t->output_dir);
  json_t *result = json_object();
  json_object_set_new(result, "program", json_string(program_invocation_short_name));
  json_object_set_new(result, "device", json_string(device_name(options->common.device)));
  json_object_set_new(result, "seed", json_integer((json_int_t)t->state.seed));
  json_object_set_new(result, "optimizer", json_string(t->state.optimizer));
  json_object_set_new(result, "epochs", json_integer(t->state.epoch));
  /* seconds: of training steps alone, since the run began; startup_seconds: of this program, before its first step */
  const double figures[] = {t->state.test_accuracy, t->test_loss,      t->train_loss, t->train_accuracy,
                            t->images_per_second,   t->state.seconds,  t->startup,    t->state.validation_loss,
                            t->validation_accuracy, t->state.best_loss};
  const char *const names[] = {
      "test_accuracy", "test_loss",       "train_loss",      "train_accuracy",      "images_per_second",
      "seconds",       "startup_seconds", "validation_loss", "validation_accuracy", "best_validation_loss"};
  for (int i = 0; i < 10; i++)
    if (isfinite(figures[i])) json_object_set_new(result, names[i], json_real(figures[i]));
  if (t->state.best_epoch > 0) {
    json_object_set_new(result, "best_test_accuracy", json_real(t->state.best_accuracy));
    json_object_set_new(result, "best_epoch", json_integer(t->state.best_epoch));
  }
  if (t->state.precision[0]) json_object_set_new(result, "precision", json_string(t->state.precision));
  if (t->net->loss_scale) {
    json_object_set_new(result, "loss_scale", json_real(t->state.loss_scale));
    json_object_set_new(result, "skipped_steps", json_integer(t->state.skipped_steps));
  }
  json_object_set_new(result, "checkpoint", json_text(path));
  if (json_result(result, &err) != 0) die("%s", err.message);
}

/* The only failure with an object: to a search it is a result. */
static void app_print_diverged(const TrainOptions *options, const Error *why) {
  Error err;
  json_t *result = json_pack("{s:s, s:s, s:b, s:o}", "program", program_invocation_short_name, "device",
                             device_name(options->common.device), "diverged", 1, "error", json_text(why->message));
  if (json_result(result, &err) != 0) die("%s", err.message);
}

/* Room for the larger of a training batch and an evaluation batch, no more than there are images. */
static int app_max_batch(const TrainOptions *options, const TrainState *state) {
  const int evaluation = options->common.device == DEVICE_GPU ? 1000 : checkpoint_part(state);
  const int part = checkpoint_part(state), train = part < state->train_images ? part : state->train_images;
  const int held = state->test_images > state->validation_images ? state->test_images : state->validation_images;
  const int test = evaluation < held ? evaluation : held;
  return train > test ? train : test;
}

/* Bytes of a set of so many images. */
static double app_set_bytes(const TrainOptions *options, Shape shape, int count, int most) {
  return options->stream ? device_set_streamed_bytes(shape, count, most) : device_set_bytes(shape, count);
}

/* The first `count` images of `host`, which must live as long as the set where they are streamed. */
static void app_create_set(const Task *task, const TrainOptions *options, DeviceSet *set, const DataSet *host,
                           int count, const DataNorm *norm, int most) {
  if (options->stream)
    device_set_create_streamed(set, options->common.device, task->batches, host, count, norm, most);
  else
    device_set_create(set, options->common.device, task->batches, host, count, norm);
}

/* The last batch of an epoch has what is left of the images: that may be too little for an operation. */
static int app_check_batches(const Graph *g, const TrainState *state, Error *err) {
  Error why;
  const int part = checkpoint_part(state), left = state->train_images % part, smallest = left > 0 ? left : part;
  if (model_check_batch(g, smallest, &why) == 0) return 0;
  error_drop_advice(&why);
  error_set(err, "of %d training images in batches of %d the last batch has %d: %.700s", state->train_images, part,
            smallest, why.message);
  return error_advise(err, "give another --batch-size or --train-images");
}

/* The model of this run with its parameters: fresh, or as the checkpoint has them. */
static int app_open_model(const Task *task, const TrainOptions *options, const char *path, Shape shape, Model *net,
                          TrainState *state, Error *err) {
  const int most = app_max_batch(options, state);
  const double also = app_set_bytes(options, shape, state->train_images, most) +
                      app_set_bytes(options, shape, state->test_images, most) +
                      app_set_bytes(options, shape, state->validation_images, most);
  if (augment_check(options->augment, shape, err) != 0) return -1;
  if (session_open(task, options, state, most, MODEL_TRAIN, also, net, err) != 0) return -1;
  if (app_check_batches(net->graph, state, err) != 0) {
    model_close(net);
    return -1;
  }
  net->context.seed = state->seed;
  model_init(net, state->seed);
  if (!options->resume) return 0;
  TrainState saved; /* the settings were taken over before */
  Error why;
  if (checkpoint_load(path, CHECKPOINT_STATE, net, &saved, &why) != 0)
    return error_set(err, "--resume: %.1000s", why.message);
  if (state->epoch >= state->epochs)
    printf("the run in %s has its %d epochs already; ask for more with --epochs\n", options->common.output_dir,
           state->epoch);
  else if (checkpoint_finished(state))
    printf("the run in %s stopped early, after epoch %d; to go on, ask for more --patience than %d\n",
           options->common.output_dir, state->epoch, state->patience);
  else
    printf("resuming at epoch %d, image %d, step %ld\n", state->epoch + 1, state->position, state->step);
  return 0;
}

/* Before a folder is made for it. */
static int app_expect_stopped_run(const char *path, Error *err) {
  if (access(path, F_OK) == 0) return 0;
  return error_set(
      err, "--resume: there is no %s; start the run without --resume, or name its folder with --output-dir", path);
}

static int app_lock(const char *directory, Error *err) {
  Error why;
  if (make_directories(directory, &why) != 0) return error_set(err, "--output-dir: %.1000s", why.message);
  return run_folder_lock(directory, err);
}

/* The folder and the state of this run, and the images. */
static int app_prepare(const Task *task, TrainOptions *options, const char *path, AppData *data, TrainState *state,
                       Error *err) {
  const char *directory = options->common.output_dir;
  TrainState saved;
  if (options->resume && (app_expect_stopped_run(path, err) != 0 || app_lock(directory, err) != 0 ||
                          app_recall(task, options, path, &saved, err) != 0))
    return -1;
  if (app_load(options, data, options->resume ? saved.seed : options->common.seed, err) != 0) return -1;
  app_begin(options, data, state);
  if (options->resume) {
    if (app_resume(task, options, path, &saved, state, err) != 0) return -1;
  } else {
    if (app_lock(directory, err) != 0) return -1;
    if (!options->restart && run_folder_protect_unfinished(directory, path, err) != 0) return -1;
  }
  session_names(options, state);
  return 0;
}

/* What is left of a run: on stdout, as pictures, as a page. Of one that was stopped the test set is not looked at. */
static void app_report(const TrainOptions *options, Trainer *t, const DataSet *test, TrainResult result,
                       HtmlReport *page) {
  ReportAnswers answers;
  if (result == TRAIN_INTERRUPTED) {
    printf("\nstopped in epoch %d at image %d of %d; to go on, add --resume to the same command\n", t->state.epoch + 1,
           t->state.position, t->train->count);
    run_page_close(page, t, result, NULL);
    return;
  }
  model_swap_average(t->net); /* the model is the average where there is one */
  report_answers(&answers, t->net, t->test, test, options->data);
  report_write(page->title, t->net, &answers, &t->state, t->output_dir);
  model_swap_average(t->net);
  run_page_close(page, t, result, &answers);
  report_answers_free(&answers);
}

/* `started`: when the program was, for what it took to begin. device_text: what the device is. */
static int app_run(const Task *task, TrainOptions *options, double started, const char *device_text) {
  Error err;
  char path[PATH_MAX + 64], title[256];
  AppData data;
  Model net;
  DeviceSet train, validation, test;
  TrainLog log;
  StepGraph step_graph;
  StepReplay replay;
  Trainer t;
  static HtmlReport page;
  memset(&t, 0, sizeof t);
  memset(&step_graph, 0, sizeof step_graph);
  memset(&replay, 0, sizeof replay);
  const char *directory = options->common.output_dir;
  const Device device = options->common.device;
  snprintf(path, sizeof path, "%s/%s", directory, run_files[RUN_STATE]);
  if (app_prepare(task, options, path, &data, &t.state, &err) != 0 ||
      app_open_model(task, options, path, data.train.shape, &net, &t.state, &err) != 0)
    die("%s", err.message);
  checkpoint_take_loss_scale(&net, &t.state);
  app_create_set(task, options, &train, &data.train, t.state.train_images, &data.norm, net.max_batch);
  app_create_set(task, options, &test, &data.test, t.state.test_images, &data.norm, net.max_batch);
  if (data.validation.count > 0)
    app_create_set(task, options, &validation, &data.validation, data.validation.count, &data.norm, net.max_batch);
  device_set_augment(&train, options->augment);
  if (!options->stream) data_free(&data.train);
  snprintf(title, sizeof title, "%s on %s", task->title, options->data->title);
  t.net = &net;
  t.skipped = t.state.skipped_steps;
  t.train = &train;
  t.test = &test;
  t.validation = data.validation.count > 0 ? &validation : NULL;
  t.schedule = options->schedule;
  t.output_dir = directory;
  t.log = &log;
  t.log_every = options->log_every;
  t.images_per_second = t.train_loss = t.train_accuracy = t.test_loss = t.validation_accuracy = NAN;
  net.context.ranges = options->nvtx;
  if (options->graph && !checkpoint_finished(&t.state))
    ON_DEVICE(device, trainer_record(&t, &replay, &step_graph), (void)0);
  device_synchronize(device);
  t.startup = seconds_now() - started;

  TrainResult result = TRAIN_FAILED;
  interrupt_install();
  const unsigned moved = options->resume ? 0 : run_folder_set_aside(directory);
  if (run_config_write(task, options, &t.state, directory, &err) == 0 &&
      train_log_open(&log, directory, options->resume ? t.state.step : -1, &err) == 0) {
    run_page_open(&page, task, options, &t, title, device_text);
    run_page_log_settings(&page, &t);
    result = app_train(options, &t, &page, &err);
  }
  if (result == TRAIN_FAILED) {
    Error why;
    if (page.title) run_page_write(&page, &t, "Stopped by an error, which the terminal shows.", 0, NULL, &why);
    if (!options->resume) run_folder_take_back(directory, moved);
    if (options->common.json && t.diverged) app_print_diverged(options, &err);
    die("%s", err.message);
  }
  printf("\nstart-up %.2f s, training steps %.2f s\n", t.startup, t.state.seconds);
  app_report(options, &t, &data.test, result, &page);
  if (train_log_close(&log, &err) != 0) die("%s", err.message);
  if (options->common.json) app_print_json(options, &t);
  step_graph_close(&step_graph);
  ON_DEVICE(device, step_replay_close(&replay), (void)0);
  free(t.values);
  trainer_close(&t);
  device_set_destroy(&train);
  device_set_destroy(&test);
  if (t.validation) device_set_destroy(&validation);
  data_free(&data.train);
  data_free(&data.validation);
  data_free(&data.test);
  model_close(&net);
  return result == TRAIN_INTERRUPTED ? interrupt_status() : 0;
}

/* -------------------------------------------------------------------------------------------------------- --find-lr */

static void app_find_lr_json(const TrainOptions *options, const FindLr *test) {
  Error err;
  json_t *result =
      json_pack("{s:s, s:s, s:I, s:i}", "program", program_invocation_short_name, "device",
                device_name(options->common.device), "seed", (json_int_t)options->common.seed, "steps", test->count);
  if (test->suggested > 0) {
    json_object_set_new(result, "lowest_loss_lr", json_real(test->lowest));
    json_object_set_new(result, "suggested_lr", json_real(test->suggested));
  }
  if (json_result(result, &err) != 0) die("%s", err.message);
}

/* A range test on a fresh network, which is then forgotten: no model, no log, and no run in the folder is touched. */
static int app_find_lr(const Task *task, TrainOptions *options) {
  Error err, none;
  AppData data;
  Model net;
  DeviceSet train;
  Trainer t;
  FindLr test;
  char title[256];
  memset(&t, 0, sizeof t);
  if (app_load(options, &data, options->common.seed, &err) != 0) die("%s", err.message);
  app_begin(options, &data, &t.state);
  if (app_open_model(task, options, "", data.train.shape, &net, &t.state, &err) != 0) die("%s", err.message);
  app_create_set(task, options, &train, &data.train, t.state.train_images, &data.norm, net.max_batch);
  device_set_augment(&train, options->augment);
  t.net = &net;
  t.train = &train;
  interrupt_install();
  find_lr_open(&test, options->find_lr);
  find_lr_run(&test, &t);
  if (interrupt_requested()) {
    printf("stopped; no learning rate is suggested, and nothing was written\n");
    return interrupt_status();
  }
  const int found = find_lr_suggest(&test, &none) == 0;
  snprintf(title, sizeof title, "%s on %s, batch %d: the loss at rising learning rates", task->title,
           options->data->title, t.state.batch_size);
  if (found)
    printf("%d steps from a learning rate of %.2g to %.2g: the average loss was lowest at %.2g\nsuggested: --lr=%g\n",
           test.count, test.lr[0], test.lr[test.count - 1], test.lowest, test.suggested);
  if (test.count > 0 && find_lr_write(&test, title, options->common.output_dir, &err) != 0) die("%s", err.message);
  if (!found) die("%s", none.message);
  printf("find_lr.csv is in %s, and where gnuplot is installed find_lr.svg and find_lr.png\n",
         options->common.output_dir);
  if (options->common.json) app_find_lr_json(options, &test);
  find_lr_close(&test);
  device_set_destroy(&train);
  data_free(&data.train);
  data_free(&data.validation);
  data_free(&data.test);
  model_close(&net);
  return 0;
}

/* ------------------------------------------------------------------------------------------------------ the program */

static void app_options(const Task *task, TrainOptions *options, int argc, char **argv) {
  train_options_default(options, OPTIONS_TRAINER, TRAIN_ALL);
  options->common.epochs = task->epochs;
  options->common.batch_size = task->batch_size;
  options->lr = task->hyper.lr;
  options->momentum = task->hyper.momentum;
  options->weight_decay = task->hyper.weight_decay;
  options->optimizer = optimizer_named(task->optimizer->name);
  options->schedule = lr_schedule(task->schedule ? task->schedule : &schedule_constant);
  options->data = task->data;
  if (task->augment) options->augment = task->augment;
  options->choices = task->choices;
  options->choice_count = task->choice_count;
  train_options_parse(options, task->networks ? task->networks->options : NULL, NULL, task->description, argc, argv);
}

/* The data set of this run: that of the checkpoint which it goes on from, or with which it predicts, where the user
 * has typed none. What is wrong with the checkpoint is said later. */
static const DataSource *app_data_source(const TrainOptions *options) {
  Error err;
  char path[PATH_MAX + 64];
  TrainState saved;
  const int uses = options->predict || train_options_shows(options);
  if ((options->given & TRAIN_DATA) || !(options->resume || uses)) return options->data;
  snprintf(path, sizeof path, "%s/%s", options->common.output_dir, run_files[RUN_STATE]);
  if (uses && predict_checkpoint(options, path, sizeof path, &err) != 0) return options->data;
  if (access(path, F_OK) != 0 || checkpoint_peek(path, CHECKPOINT_MODEL, &saved, &err) != 0) return options->data;
  const DataSource *named = data_source_named(saved.data);
  return named ? named : options->data;
}

/* "LeNet-5 (61,706 parameters) on MNIST on CPU, 2 threads". Ends the program when the device cannot be had. */
static void app_open_device(const Task *task, const TrainOptions *options, char *description, size_t size) {
  Error err;
  const Device device = options->common.device;
  if (device_open(device, description, size, &err) != 0) die("%s", err.message);
  printf("%s on %s on %s", task->title, app_data_source(options)->title, description);
  if (device == DEVICE_CPU) printf(", %d thread%s", options->threads, options->threads == 1 ? "" : "s");
  putchar('\n');
  fflush(stdout);
}

void app_begin_signals(void) {
  interrupt_begin();
  threads_begin();
}

void app_begin_program(const Task *task, TrainOptions *options, int argc, char **argv) {
  app_begin_signals();
  app_options(task, options, argc, argv);
}

int app_do(const Task *task, TrainOptions *options, double started) {
  char device_text[512];
  app_open_device(task, options, device_text, sizeof device_text);
  const int status = options->predict               ? predict_run(task, options)
                     : train_options_shows(options) ? show_run(task, options)
                     : options->summary             ? app_summary(task, options)
                     : options->profile             ? app_profile(task, options)
                     : options->find_lr             ? app_find_lr(task, options)
                                                    : app_run(task, options, started, device_text);
  stdout_finish();
  return status;
}

int app_main(const Task *task, int argc, char **argv) {
  static TrainOptions options;
  const double started = seconds_now();
  app_begin_program(task, &options, argc, argv);
  return app_do(task, &options, started);
}

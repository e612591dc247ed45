/* classifier.cuh - the program around a network that classifies images: command line, training run, results, --predict.
 *
 * A program describes itself in a Classifier and hands over its main():
 *
 *     static Network *create(Device device, int max_batch) { ... }
 *
 *     int main(int argc, char **argv) {
 *       static const Classifier classifier = {"LeNet-5 on MNIST", "Trains ...", "third_party/data/mnist", create,
 *                                             5, 64, 0.03, 0.9};      // epochs, batch, learning rate, momentum
 *       return classifier_main(&classifier, argc, argv);
 *     }
 *
 * and has --device --epochs --batch-size --lr --momentum --seed --data-dir --output-dir --resume --json and --predict.
 */
#ifndef PHASE2_MLP_CLASSIFIER_CUH
#define PHASE2_MLP_CLASSIFIER_CUH

#include "common/options.h"
#include "common/threads.h"
#include "phase2_mlp/report.cuh"
#include "phase2_mlp/trainer.cuh"

typedef struct Classifier {
  const char *title;                                /* "LeNet-5 on MNIST" */
  const char *description;                          /* for --help */
  const char *data;                                 /* runfiles folder with the four IDX files */
  Network *(*create)(Device device, int max_batch); /* called once; the network lives as long as the program */
  int epochs, batch_size;                           /* defaults */
  double lr, momentum;
} Classifier;

typedef struct ClassifierOptions {
  CommonOptions common;
  const Classifier *classifier;
  double lr, momentum;
  int lr_given, momentum_given;
  int resume, threads, train_images, test_images;
  int predict;
  char checkpoint[PATH_MAX]; /* of --predict; "": best.safetensors of the output folder */
  char **files;
  int file_count;
} ClassifierOptions;

/* ------------------------------------------------------------------------------------------ command line */

enum { CLASSIFIER_THREADS = 1, CLASSIFIER_TRAIN_IMAGES, CLASSIFIER_TEST_IMAGES, CLASSIFIER_CHECKPOINT };

static inline error_t classifier_parse(int key, char *arg, struct argp_state *state) {
  ClassifierOptions *options = (ClassifierOptions *)state->input;
  switch (key) {
    case 'l':
      options->lr = option_float(state, arg, "--lr", 1e-9, 1e6);
      options->lr_given = 1;
      return 0;
    case 'm':
      options->momentum = option_float(state, arg, "--momentum", 0, 0.9999);
      options->momentum_given = 1;
      return 0;
    case 'r':
      options->resume = 1;
      return 0;
    case 'p':
      options->predict = 1;
      return 0;
    case CLASSIFIER_CHECKPOINT:
      option_path(state, arg, "--checkpoint", options->checkpoint);
      return 0;
    case CLASSIFIER_THREADS:
      options->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case CLASSIFIER_TRAIN_IMAGES:
      options->train_images = (int)option_int(state, arg, "--train-images", 1, INT_MAX);
      return 0;
    case CLASSIFIER_TEST_IMAGES:
      options->test_images = (int)option_int(state, arg, "--test-images", 1, INT_MAX);
      return 0;
    case ARGP_KEY_ARGS:
      options->files = state->argv + state->next;
      options->file_count = state->argc - state->next;
      return 0;
    case ARGP_KEY_END:
      if (options->predict && options->file_count == 0) argp_error(state, "--predict: name the images to classify");
      if (!options->predict && options->file_count > 0)
        argp_error(state, "\"%s\" is not an option; to classify images say --predict FILE...", options->files[0]);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static inline void classifier_options(ClassifierOptions *options, const Classifier *classifier, int argc, char **argv) {
  static char lr_text[160], momentum_text[64];
  snprintf(lr_text, sizeof lr_text,
           "Highest learning rate; it rises over the first 5 %% of the run and falls to zero (default: %g)",
           classifier->lr);
  snprintf(momentum_text, sizeof momentum_text, "Momentum of SGD (default: %g)", classifier->momentum);
  const struct argp_option rows[] = {
      {"lr", 'l', "RATE", 0, lr_text, 0},
      {"momentum", 'm', "M", 0, momentum_text, 0},
      {"resume", 'r', NULL, 0, "Go on from the output folder's last checkpoint, to --epochs in all", 0},
      {"train-images", CLASSIFIER_TRAIN_IMAGES, "N", 0, "Train on the first N images only", 0},
      {"test-images", CLASSIFIER_TEST_IMAGES, "N", 0, "Test on the first N images only", 0},
      {"threads", CLASSIFIER_THREADS, "N", 0, "CPU threads (default: one a core)", 0},
      {"predict", 'p', NULL, 0, "Train nothing: classify the images FILE... (PNG or JPEG, any size)", 0},
      {"checkpoint", CLASSIFIER_CHECKPOINT, "FILE", 0,
       "The model that --predict uses (default: best.safetensors in the output folder)", 0},
      OPTION_END};
  const struct argp own = {rows, classifier_parse, "[--predict FILE...]", classifier->description, NULL, NULL, NULL};
  memset(options, 0, sizeof *options);
  options->classifier = classifier;
  options->common = options_default(OPTIONS_TRAINER);
  options->common.epochs = classifier->epochs;
  options->common.batch_size = classifier->batch_size;
  options->lr = classifier->lr;
  options->momentum = classifier->momentum;
  options_parse(&options->common, &own, options, argc, argv);
  options->threads = threads_set(options->threads);
}

/* "Title: 61,706 parameters, on CPU, 2 threads". Ends the program when the device cannot be had. */
static inline void classifier_open_device(const ClassifierOptions *options) {
  Error err;
  char description[512];
  if (device_open(options->common.device, description, sizeof description, &err) != 0) die("%s", err.message);
  printf("%s on %s", options->classifier->title, description);
  if (options->common.device == DEVICE_CPU) printf(", %d thread%s", options->threads, options->threads == 1 ? "" : "s");
  putchar('\n');
  fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------- predict */

static inline int classifier_predict(const ClassifierOptions *options) {
  Error err;
  char path[PATH_MAX + 32], typed[PATH_MAX];
  if (options->checkpoint[0]) {
    if (user_path(options->checkpoint, path, PATH_MAX, &err) != 0) die("--checkpoint: %s", err.message);
  } else {
    snprintf(path, sizeof path, "%s/best.safetensors", options->common.output_dir);
    if (access(path, F_OK) != 0)
      die("%s: there is no trained model yet; train one first (run %s without --predict), or name one with "
          "--checkpoint",
          path, program_invocation_short_name);
  }
  Network *net = options->classifier->create(options->common.device, 1);
  TrainState state;
  if (checkpoint_load_model(path, net, &state, &err) != 0) die("%s", err.message);
  printf("model %s (epoch %d, test accuracy %.2f %%)\n\n", path, state.epoch, 100 * state.test_accuracy);

  int failed = 0;
  json_t *predictions = json_array();
  for (int i = 0; i < options->file_count; i++) {
    Image image;
    unsigned char digit[28 * 28];
    const char *file = options->files[i];
    int status = user_path(file, typed, sizeof typed, &err);
    if (status == 0) status = image_read_gray(typed, &image, &err);
    if (status == 0) {
      status = mnist_from_image(&image, digit, &err);
      image_free(&image);
    }
    if (status != 0) {
      fflush(stdout);
      fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
      failed++;
      continue;
    }
    float input[28 * 28], probabilities[REPORT_MAX_CLASSES];
    for (int j = 0; j < 28 * 28; j++) input[j] = batch_normalize(digit[j], (float)state.mean, (float)state.stddev);
    int label = 0;
    device_upload(net->device, net->activations[0], input, sizeof input);
    device_upload(net->device, net->labels, &label, sizeof label);
    network_forward(net, 1);
    network_score(net, 1);
    device_download(net->device, probabilities, net->probabilities, net->classes * sizeof(float));
    report_prediction(file, probabilities, net->classes, predictions);
  }
  if (options->common.json &&
      json_result(json_pack("{s:s, s:s, s:s, s:O}", "program", program_invocation_short_name, "device",
                            device_name(options->common.device), "checkpoint", path, "predictions", predictions),
                  &err) != 0)
    die("%s", err.message);
  json_decref(predictions);
  return failed ? 1 : 0;
}

/* --------------------------------------------------------------------------------------------------- train */

static inline void classifier_load(const ClassifierOptions *options, MnistSet *train, MnistSet *test) {
  Error err;
  char directory[PATH_MAX];
  if (options->common.data_dir[0])
    snprintf(directory, sizeof directory, "%s", options->common.data_dir);
  else if (runfiles_find(options->classifier->data, directory, sizeof directory, &err) != 0)
    die("%s", err.message);
  if (mnist_load(directory, "train", train, &err) != 0 || mnist_load(directory, "t10k", test, &err) != 0)
    die("%s", err.message);
  if (train->height != MNIST_SIDE || train->width != MNIST_SIDE || test->height != MNIST_SIDE ||
      test->width != MNIST_SIDE)
    die("%s: the images are %dx%d (train) and %dx%d (test), this network takes 28x28", directory, train->height,
        train->width, test->height, test->width);
  if (train->count > INT_MAX || test->count > INT_MAX) die("%s: more than %d images", directory, INT_MAX);
}

/* A run that was started with other settings cannot be continued bit by bit: say so instead of doing something else. */
static inline void classifier_resume(const ClassifierOptions *options, Trainer *trainer, const char *path) {
  Error err;
  TrainState saved, *state = &trainer->state;
  const Classifier *defaults = options->classifier;
  if (access(path, F_OK) != 0)
    die("--resume: there is no %s; start the run without --resume, or name its folder with --output-dir", path);
  if (checkpoint_load_state(path, trainer->net, &saved, &err) != 0) die("--resume: %s", err.message);
  if (saved.seed != state->seed && state->seed != 1)
    die("--resume: %s was started with --seed=%llu; leave the option out, or start a new run in another --output-dir",
        path, (unsigned long long)saved.seed);
  if (saved.batch_size != state->batch_size && state->batch_size != defaults->batch_size)
    die("--resume: %s was started with --batch-size=%d; leave the option out, or start a new run in another "
        "--output-dir",
        path, saved.batch_size);
  if (saved.train_images != state->train_images || fabs(saved.mean - state->mean) > 1e-12)
    die("--resume: %s was trained on other data (%d images with mean %.4f, here %d with mean %.4f); name the same "
        "--data-dir and --train-images",
        path, saved.train_images, saved.mean, state->train_images, state->mean);
  if (state->epochs != defaults->epochs) saved.epochs = state->epochs;
  if (options->lr_given) saved.lr = options->lr;
  if (options->momentum_given) saved.momentum = options->momentum;
  *state = saved;
}

/* A run that was stopped half-way is about to be replaced: the user may have meant to go on with it. */
static inline void classifier_note_unfinished(const ClassifierOptions *options, const char *path) {
  SafetensorsFile file;
  TrainState saved;
  if (access(path, F_OK) != 0 || safetensors_open(path, &file, NULL) != 0) return;
  if (checkpoint_read_state(&file, &saved, NULL) == 0 && saved.epoch < saved.epochs)
    fprintf(
        stderr,
        "%s: note: %s holds a run that was stopped in epoch %d of %d; this one starts anew and will replace it. To go "
        "on with it: Ctrl-C now, then --resume\n",
        program_invocation_short_name, options->common.output_dir, saved.epoch + 1, saved.epochs);
  safetensors_close(&file);
}

/* Ends the program with a sentence when a checkpoint cannot be written: the files that are there stay as they were. */
static inline void classifier_save(const Trainer *trainer, int best) {
  Error err;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/last.state.safetensors", trainer->output_dir);
  if (checkpoint_save_state(path, trainer->net, &trainer->state, &err) != 0) die("%s", err.message);
  snprintf(path, sizeof path, "%s/last.safetensors", trainer->output_dir);
  if (checkpoint_save_model(path, trainer->net, &trainer->state, &err) != 0) die("%s", err.message);
  snprintf(path, sizeof path, "%s/best.safetensors", trainer->output_dir);
  if (best && checkpoint_save_model(path, trainer->net, &trainer->state, &err) != 0) die("%s", err.message);
}

static inline void classifier_print_header(const Trainer *t) {
  printf("%d training images, %d test images; batch %d, learning rate %g, momentum %g, seed %llu\n\n", t->train->count,
         t->test->count, t->state.batch_size, t->state.lr, t->state.momentum, (unsigned long long)t->state.seed);
  printf("epoch   train loss   train accuracy   test loss   test accuracy    images/s   time left\n");
  fflush(stdout);
}

/* Trains to the last epoch or to Ctrl-C. */
static inline TrainResult classifier_train(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  double started = seconds_now();
  int first = state->epoch;
  classifier_print_header(t);
  while (state->epoch < state->epochs) {
    TrainResult result = trainer_train_epoch(t, err);
    if (result == TRAIN_FAILED) return result;
    if (result == TRAIN_INTERRUPTED) {
      classifier_save(t, 0);
      return result;
    }
    t->train_loss = state->epoch_totals.loss / t->train->count;
    t->train_accuracy = state->epoch_totals.correct / t->train->count;
    state->epoch++;
    state->position = 0;
    state->epoch_totals.loss = state->epoch_totals.correct = 0;

    double evaluation = seconds_now();
    Totals totals = image_set_evaluate(t->test, t->net, NULL);
    t->test_loss = totals.loss / t->test->count;
    state->test_accuracy = totals.correct / t->test->count;
    trainer_log(t, state->epoch, "test", totals, t->test->count, seconds_now() - evaluation);
    int best = state->best_epoch == 0 || state->test_accuracy > state->best_accuracy;
    if (best) {
      state->best_accuracy = state->test_accuracy;
      state->best_epoch = state->epoch;
    }
    classifier_save(t, best);

    double left = (seconds_now() - started) / (state->epoch - first) * (state->epochs - state->epoch);
    printf("%5d %12.4f %14.2f %% %11.4f %13.2f %% %11.0f %8d:%02d\n", state->epoch, t->train_loss,
           100 * t->train_accuracy, t->test_loss, 100 * state->test_accuracy, t->images_per_second, (int)left / 60,
           (int)left % 60);
    fflush(stdout);
  }
  return TRAIN_FINISHED;
}

/* A figure that was not measured, because the run was stopped before, is left out. */
static inline void classifier_print_json(const ClassifierOptions *options, const Trainer *t) {
  Error err;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/last.safetensors", t->output_dir);
  json_t *result = json_object();
  json_object_set_new(result, "program", json_string(program_invocation_short_name));
  json_object_set_new(result, "device", json_string(device_name(options->common.device)));
  json_object_set_new(result, "seed", json_integer((json_int_t)t->state.seed));
  json_object_set_new(result, "epochs", json_integer(t->state.epoch));
  const double figures[] = {t->test_loss < INFINITY ? t->state.test_accuracy : NAN,
                            t->test_loss,
                            t->train_loss,
                            t->train_accuracy,
                            t->images_per_second,
                            t->state.seconds};
  const char *const names[] = {"test_accuracy",  "test_loss",         "train_loss",
                               "train_accuracy", "images_per_second", "seconds"};
  for (int i = 0; i < 6; i++)
    if (isfinite(figures[i])) json_object_set_new(result, names[i], json_real(figures[i]));
  if (t->state.best_epoch > 0) {
    json_object_set_new(result, "best_test_accuracy", json_real(t->state.best_accuracy));
    json_object_set_new(result, "best_epoch", json_integer(t->state.best_epoch));
  }
  json_object_set_new(result, "checkpoint", json_string(path));
  if (json_result(result, &err) != 0) die("%s", err.message);
}

static inline int classifier_run(const ClassifierOptions *options) {
  Error err;
  const CommonOptions *common = &options->common;
  char path[PATH_MAX + 64];
  MnistSet train_set, test_set;
  classifier_load(options, &train_set, &test_set);
  int train_images = (int)train_set.count, test_images = (int)test_set.count;
  if (options->train_images && options->train_images < train_images) train_images = options->train_images;
  if (options->test_images && options->test_images < test_images) test_images = options->test_images;

  Trainer trainer = Trainer();
  trainer.images_per_second = trainer.train_loss = trainer.train_accuracy = trainer.test_loss = NAN;
  TrainState *state = &trainer.state;
  float mean, stddev;
  mnist_statistics(&train_set, &mean, &stddev);
  state->mean = mean;
  state->stddev = stddev;
  state->seed = common->seed;
  state->epochs = common->epochs;
  state->batch_size = common->batch_size;
  state->lr = options->lr;
  state->momentum = options->momentum;
  state->train_images = train_images;
  trainer.output_dir = common->output_dir;

  int evaluation_batch = common->device == DEVICE_GPU ? 1000 : common->batch_size;
  trainer.net = options->classifier->create(
      common->device, common->batch_size > evaluation_batch ? common->batch_size : evaluation_batch);
  network_init(trainer.net, state->seed);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  snprintf(path, sizeof path, "%s/last.state.safetensors", common->output_dir);
  if (!options->resume) classifier_note_unfinished(options, path);
  if (options->resume) {
    classifier_resume(options, &trainer, path);
    printf("resuming at epoch %d, image %d, step %ld\n", state->epoch + 1, state->position, state->step);
    if (state->epoch >= state->epochs)
      die("--resume: the run in %s has its %d epochs already; ask for more with --epochs", common->output_dir,
          state->epoch);
  }

  ImageSet train, test;
  image_set_create(&train, common->device, &train_set, train_images, (float)state->mean, (float)state->stddev);
  image_set_create(&test, common->device, &test_set, test_images, (float)state->mean, (float)state->stddev);
  mnist_free(&train_set);
  trainer.train = &train;
  trainer.test = &test;

  TrainLog log;
  if (train_log_open(&log, common->output_dir, options->resume ? state->step : -1, &err) != 0) die("%s", err.message);
  trainer.log = &log;

  interrupt_install();
  TrainResult result = classifier_train(&trainer, &err);
  if (result == TRAIN_FAILED) die("%s", err.message);
  if (result == TRAIN_INTERRUPTED)
    printf("\nstopped in epoch %d at image %d of %d; go on with: %s --resume --output-dir=%s\n", state->epoch + 1,
           state->position, train.count, program_invocation_short_name, common->output_dir);
  else
    report_write(options->classifier->title, trainer.net, &test, &test_set, state, common->output_dir);

  if (train_log_close(&log, &err) != 0) die("%s", err.message);
  if (common->json) classifier_print_json(options, &trainer);
  image_set_destroy(&train);
  image_set_destroy(&test);
  mnist_free(&test_set);
  network_destroy(trainer.net);
  return result == TRAIN_INTERRUPTED ? 130 : 0;
}

static inline int classifier_main(const Classifier *classifier, int argc, char **argv) {
  static ClassifierOptions options;
  threads_begin(argv);
  classifier_options(&options, classifier, argc, argv);
  classifier_open_device(&options);
  return options.predict ? classifier_predict(&options) : classifier_run(&options);
}

#endif /* PHASE2_MLP_CLASSIFIER_CUH */

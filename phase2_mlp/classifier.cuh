/* classifier.cuh - the program around a network that classifies images: command line, training run, results, --predict.
 *
 * A program describes itself in a Classifier and hands over its main():
 *
 *     static Graph *lenet_graph(void) { ... }
 *
 *     int main(int argc, char **argv) {
 *       static const Classifier classifier = {"LeNet-5 on MNIST", "Trains ...", "third_party/data/mnist", lenet_graph,
 *                                             5, 64, 0.03, 0.9, 0};   // epochs, batch, rate, momentum, weight decay
 *       return classifier_main(&classifier, argc, argv);
 *     }
 *
 * and has the options that classifier_options() lists, --predict among them.
 */
#ifndef PHASE2_MLP_CLASSIFIER_CUH
#define PHASE2_MLP_CLASSIFIER_CUH

#include <fcntl.h>
#include <sys/file.h>

#include "common/options.h"
#include "common/threads.h"
#include "common/threads_begin.h"
#include "phase2_mlp/report.cuh"
#include "phase2_mlp/trainer.cuh"

typedef struct Classifier {
  const char *title;       /* "LeNet-5 on MNIST" */
  const char *description; /* for --help */
  const char *data;        /* runfiles folder with the four IDX files */
  Graph *(*graph)(void);   /* the network; called once */
  int epochs, batch_size;  /* defaults */
  double lr, momentum, weight_decay;

  /* Where the program can make several networks, all three of these: their options; the network that was chosen in a
   * few words, which a checkpoint keeps; and back from these words, -1 with a sentence when the user has asked for
   * another one or when they cannot be understood. */
  const struct argp *network_options;
  void (*network_text)(char text[CHECKPOINT_NETWORK]);
  int (*network_from_text)(const char *text, Error *err);
} Classifier;

typedef struct ClassifierOptions {
  CommonOptions common;
  const Classifier *classifier;
  double lr, momentum, weight_decay;
  int lr_given, momentum_given, weight_decay_given;
  int resume, restart, threads, train_images, test_images, hold_out;
  int predict;
  char checkpoint[PATH_MAX]; /* of --predict; "": best.safetensors of the output folder */
  char **files;
  int file_count;
} ClassifierOptions;

/* ------------------------------------------------------------------------------------------ command line */

enum {
  CLASSIFIER_RESTART = 1,
  CLASSIFIER_THREADS,
  CLASSIFIER_TRAIN_IMAGES,
  CLASSIFIER_TEST_IMAGES,
  CLASSIFIER_HOLD_OUT,
  CLASSIFIER_WEIGHT_DECAY,
  CLASSIFIER_CHECKPOINT
};

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
    case CLASSIFIER_WEIGHT_DECAY:
      options->weight_decay = option_float(state, arg, "--weight-decay", 0, 1);
      options->weight_decay_given = 1;
      return 0;
    case 'r':
      options->resume = 1;
      return 0;
    case 'p':
      options->predict = 1;
      return 0;
    case CLASSIFIER_RESTART:
      options->restart = 1;
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
    case CLASSIFIER_HOLD_OUT:
      options->hold_out = (int)option_int(state, arg, "--hold-out", 1, INT_MAX);
      return 0;
    case ARGP_KEY_ARGS:
      options->files = state->argv + state->next;
      options->file_count = state->argc - state->next;
      return 0;
    case ARGP_KEY_END:
      if (options->resume && options->restart) argp_error(state, "--resume and --restart: one of the two");
      if (options->predict && options->file_count == 0) argp_error(state, "--predict: name the images to classify");
      if (!options->predict && options->checkpoint[0])
        argp_error(state, "--checkpoint is the model of --predict; to go on with a run say --resume");
      if (!options->predict && options->file_count > 0)
        argp_error(state, "\"%s\" is not an option; to classify images say --predict FILE...", options->files[0]);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

static inline void classifier_options(ClassifierOptions *options, const Classifier *classifier, int argc, char **argv) {
  static char lr_text[160], momentum_text[64], decay_text[96];
  snprintf(lr_text, sizeof lr_text,
           "Highest learning rate; it rises over the first 5 %% of the run and falls to zero (default: %g)",
           classifier->lr);
  snprintf(momentum_text, sizeof momentum_text, "Momentum of SGD (default: %g)", classifier->momentum);
  snprintf(decay_text, sizeof decay_text, "Share of each weight that its gradient gets in addition (default: %g)",
           classifier->weight_decay);
  const struct argp_option rows[] = {
      {"lr", 'l', "RATE", 0, lr_text, 0},
      {"momentum", 'm', "M", 0, momentum_text, 0},
      {"weight-decay", CLASSIFIER_WEIGHT_DECAY, "W", 0, decay_text, 0},
      {"resume", 'r', NULL, 0, "Go on from the output folder's last checkpoint, to --epochs in all", 0},
      {"restart", CLASSIFIER_RESTART, NULL, 0, "Start anew although the output folder holds an unfinished run", 0},
      {"train-images", CLASSIFIER_TRAIN_IMAGES, "N", 0, "Train on the first N images only", 0},
      {"test-images", CLASSIFIER_TEST_IMAGES, "N", 0, "Test on the first N images only", 0},
      {"hold-out", CLASSIFIER_HOLD_OUT, "N", 0,
       "Don't train on the last N training images, and test on them instead of the test set: for choosing settings", 0},
      {"threads", CLASSIFIER_THREADS, "N", 0, "CPU threads (default: one a core)", 0},
      {"predict", 'p', NULL, 0, "Train nothing: classify the images FILE... (PNG or JPEG, any size)", 0},
      {"checkpoint", CLASSIFIER_CHECKPOINT, "FILE", 0,
       "The model that --predict uses (default: best.safetensors in the output folder)", 0},
      OPTION_END};
  const struct argp_child children[] = {{classifier->network_options, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp own = {rows, classifier_parse, "[--predict FILE...]", classifier->description, children, NULL,
                           NULL};
  memset(options, 0, sizeof *options);
  options->classifier = classifier;
  options->common = options_default(OPTIONS_TRAINER);
  options->common.epochs = classifier->epochs;
  options->common.batch_size = classifier->batch_size;
  options->lr = classifier->lr;
  options->momentum = classifier->momentum;
  options->weight_decay = classifier->weight_decay;
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

/* The network for what this program feeds it, with all the answers that the labels ask for. It lives as long as the
 * program. */
static inline Model *classifier_create(const ClassifierOptions *options, int max_batch) {
  static Model model;
  Model *net = &model;
  sgd_model_open(net, options->classifier->graph(), options->common.device, max_batch);
  if (model_input_width(net, 0) != MNIST_SIDE * MNIST_SIDE || model_classes(net) < MNIST_CLASSES ||
      model_classes(net) > REPORT_MAX_CLASSES)
    die("a network from %zu inputs to %d classes; the images have %d pixels, the labels %d classes, and up to %d are "
        "possible",
        model_input_width(net, 0), model_classes(net), MNIST_SIDE * MNIST_SIDE, MNIST_CLASSES, REPORT_MAX_CLASSES);
  if (options->classifier->network_text) {
    char text[CHECKPOINT_NETWORK];
    options->classifier->network_text(text);
    printf("network %s: %zu parameters\n", text, net->parameter_count);
  }
  return net;
}

/* Makes graph() build the network that a checkpoint is of. */
static inline void classifier_recall_network(const ClassifierOptions *options, const char *path,
                                             const TrainState *saved) {
  Error err;
  if (options->classifier->network_from_text && options->classifier->network_from_text(saved->network, &err) != 0)
    die("%s: %s", path, err.message);
}

/* ------------------------------------------------------------------------------------------------- predict */

/* What the network makes of one picture: probabilities (classes). */
static inline int classifier_predict_file(Model *net, const TrainState *state, const char *file, float *probabilities,
                                          Error *err) {
  Image image;
  Error why;
  char path[PATH_MAX];
  unsigned char digit[MNIST_SIDE * MNIST_SIDE];
  float input[MNIST_SIDE * MNIST_SIDE];
  if (user_path(file, path, sizeof path, err) != 0 || image_read_gray(path, &image, err) != 0) return -1;
  int status = mnist_from_image(&image, digit, &why);
  image_free(&image);
  if (status != 0) return error_set(err, "%s: %.700s", file, why.message);
  for (int i = 0; i < MNIST_SIDE * MNIST_SIDE; i++)
    input[i] = batch_normalize(digit[i], (float)state->mean, (float)state->stddev);
  int label = 0; /* the score wants one; only the probabilities are read */
  device_upload(net->context.device, model_input(net, 0), input, sizeof input);
  device_upload(net->context.device, model_labels(net), &label, sizeof label);
  model_evaluate_step(net, 1);
  device_download(net->context.device, probabilities, model_loss_saved(net, 0), model_classes(net) * sizeof(float));
  if (!checkpoint_all_finite(probabilities, model_classes(net)))
    return error_set(err,
                     "%s: the network's answer is not finite: the weights of its model are too large; use another "
                     "--checkpoint",
                     file);
  return 0;
}

static inline int classifier_predict(const ClassifierOptions *options) {
  Error err;
  char path[PATH_MAX + 32];
  if (options->checkpoint[0]) {
    if (user_path(options->checkpoint, path, PATH_MAX, &err) != 0) die("--checkpoint: %s", err.message);
  } else {
    snprintf(path, sizeof path, "%s/best.safetensors", options->common.output_dir);
    if (access(path, F_OK) != 0)
      die("%s: there is no trained model yet; train one first (run %s without --predict), or name one with "
          "--checkpoint",
          path, program_invocation_short_name);
  }
  TrainState state;
  if (checkpoint_peek(path, CHECKPOINT_MODEL, &state, &err) != 0) die("%s", err.message);
  classifier_recall_network(options, path, &state);
  Model *net = classifier_create(options, 1);
  if (checkpoint_load(path, CHECKPOINT_MODEL, net, &state, &err) != 0) die("%s", err.message);
  printf("model %s", path);
  if (!isnan(state.test_accuracy)) printf(" (epoch %d, test accuracy %.2f %%)", state.epoch, 100 * state.test_accuracy);
  printf("\n\n");

  int failed = 0;
  json_t *predictions = json_array();
  for (int i = 0; i < options->file_count; i++) {
    const char *file = options->files[i];
    float probabilities[REPORT_MAX_CLASSES];
    if (classifier_predict_file(net, &state, file, probabilities, &err) == 0) {
      json_array_append_new(predictions, report_prediction(file, probabilities, model_classes(net)));
      continue;
    }
    fflush(stdout);
    fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
    json_array_append_new(predictions,
                          json_pack("{s:o, s:o}", "file", json_text(file), "error", json_text(err.message)));
    failed = 1;
  }
  if (options->common.json && json_result(json_pack("{s:s, s:s, s:o, s:O}", "program", program_invocation_short_name,
                                                    "device", device_name(options->common.device), "checkpoint",
                                                    json_text(path), "predictions", predictions),
                                          &err) != 0)
    die("%s", err.message);
  json_decref(predictions);
  model_close(net);
  return failed;
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
  if (options->hold_out == 0) return;

  size_t held = options->hold_out, pixels = MNIST_SIDE * MNIST_SIDE;
  if (held >= train->count)
    die("--hold-out=%zu: of %zu training images at least one must be left to train on", held, train->count);
  mnist_free(test);
  train->count -= held;
  *test = *train;
  test->count = held;
  test->images = (unsigned char *)xmalloc(held * pixels);
  test->labels = (unsigned char *)xmalloc(held);
  memcpy(test->images, train->images + train->count * pixels, held * pixels);
  memcpy(test->labels, train->labels + train->count, held);
}

/* One run at a time writes into a folder: two would mix their logs and models. The lock goes with the process. */
static inline void classifier_lock(const char *directory) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/.lock", directory);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) die("%s cannot be written: %s; name another --output-dir", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    die("another run is writing into %s; wait for it, or name another --output-dir", directory);
}

/* The settings of a new run: the command line's, and the normalisation of this training set. */
static inline void classifier_begin(const ClassifierOptions *options, const MnistSet *train_set,
                                    const MnistSet *test_set, TrainState *state) {
  float mean, stddev;
  mnist_statistics(train_set, &mean, &stddev);
  if (!(stddev >= 1e-6f))
    die("all pixels of the training images are equal: there is nothing to learn; check --data-dir");
  memset(state, 0, sizeof *state);
  state->mean = mean;
  state->stddev = stddev;
  state->seed = options->common.seed;
  state->epochs = options->common.epochs;
  state->batch_size = options->common.batch_size;
  state->lr = options->lr;
  state->momentum = options->momentum;
  state->weight_decay = options->weight_decay;
  state->train_images = (int)train_set->count;
  state->test_images = (int)test_set->count;
  if (options->train_images && options->train_images < state->train_images) state->train_images = options->train_images;
  if (options->test_images && options->test_images < state->test_images) state->test_images = options->test_images;
  state->test_accuracy = state->best_accuracy = NAN;
}

/* A stopped run is worth a question before a new one replaces it. */
static inline void classifier_protect_unfinished(const ClassifierOptions *options, const char *path) {
  TrainState saved;
  if (options->restart || checkpoint_peek(path, CHECKPOINT_STATE, &saved, NULL) != 0) return;
  if (saved.epoch < saved.epochs)
    die("%s holds a run that was stopped in epoch %d of %d; go on with it by --resume, replace it by --restart, or "
        "name "
        "another --output-dir",
        options->common.output_dir, saved.epoch + 1, saved.epochs);
}

/* What a run leaves. The log moves away first and comes back last: it is never alone where the models are not. */
enum { CLASSIFIER_LOGS = 2, CLASSIFIER_STATE = 4, CLASSIFIER_FILES = 9 };
static const char *const classifier_files[CLASSIFIER_FILES] = {
    "log.jsonl", "log.csv",   "best.safetensors", "last.safetensors", "last.state.safetensors",
    "curve.svg", "curve.png", "filters.png",      "misclassified.png"};

static inline int classifier_has_model(const char *directory) {
  char path[PATH_MAX + 64];
  for (int i = CLASSIFIER_LOGS; i <= CLASSIFIER_STATE; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, classifier_files[i]);
    if (access(path, F_OK) == 0) return 1;
  }
  return 0;
}

static inline void classifier_remove_files(const char *directory, int begin, int end) {
  char path[PATH_MAX + 64];
  for (int i = begin; i < end; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, classifier_files[i]);
    if (unlink(path) != 0 && errno != ENOENT) die("%s cannot be removed: %s", path, strerror(errno));
  }
}

/* An earlier run's files move into DIRECTORY/previous, in place of what lay there: two runs must not mix, and a new one
 * that fails must not cost the old one. Bit i of the result: classifier_files[i] was there. */
static inline unsigned classifier_set_aside(const char *directory) {
  Error err;
  char from[PATH_MAX + 64], to[PATH_MAX + 64];
  unsigned moved = 0;
  snprintf(to, sizeof to, "%s/previous", directory);
  /* A run that was killed before its first checkpoint left its log: the run before it has its own in previous/. */
  if (!classifier_has_model(directory) && classifier_has_model(to))
    classifier_remove_files(directory, 0, CLASSIFIER_LOGS);
  for (int i = 0; i < CLASSIFIER_FILES; i++) {
    snprintf(from, sizeof from, "%s/%s", directory, classifier_files[i]);
    snprintf(to, sizeof to, "%s/previous", directory);
    if (access(from, F_OK) != 0) continue;
    if (make_directories(to, &err) != 0) die("%s", err.message);
    snprintf(to, sizeof to, "%s/previous/%s", directory, classifier_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved to %s: %s", from, to, strerror(errno));
    moved |= 1u << i;
  }
  if (moved) fprintf(stderr, "%s: note: the earlier run is in %s/previous\n", program_invocation_short_name, directory);
  return moved;
}

/* A new run failed. Where it has saved no state to go on with, its files go, and what it set aside comes back; what
 * else lies in previous/ is of a run before that. */
static inline void classifier_take_back(const char *directory, unsigned moved) {
  char from[PATH_MAX + 64], to[PATH_MAX + 64];
  snprintf(to, sizeof to, "%s/%s", directory, classifier_files[CLASSIFIER_STATE]);
  if (access(to, F_OK) == 0) return;
  classifier_remove_files(directory, 0, CLASSIFIER_STATE);
  if (!moved) return;
  for (int i = CLASSIFIER_FILES - 1; i >= 0; i--) {
    if (!(moved & 1u << i)) continue;
    snprintf(from, sizeof from, "%s/previous/%s", directory, classifier_files[i]);
    snprintf(to, sizeof to, "%s/%s", directory, classifier_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved back to %s: %s", from, to, strerror(errno));
  }
  snprintf(from, sizeof from, "%s/previous", directory);
  rmdir(from); /* unless something else lies there */
  fprintf(stderr, "%s: note: the earlier run is back in %s\n", program_invocation_short_name, directory);
}

/* Takes over the settings of the stopped run. One that was started with other data, seed or batch size cannot be
 * continued bit by bit: say so instead of doing something else. */
static inline void classifier_resume(const ClassifierOptions *options, const char *path, TrainState *state) {
  Error err;
  TrainState saved;
  unsigned given = options->common.given;
  if (access(path, F_OK) != 0)
    die("--resume: there is no %s; start the run without --resume, or name its folder with --output-dir", path);
  if (checkpoint_peek(path, CHECKPOINT_STATE, &saved, &err) != 0) die("--resume: %s", err.message);
  if ((given & OPTIONS_SEED) && saved.seed != state->seed)
    die("--resume: %s was started with --seed=%llu; leave the option out, or start a new run in another --output-dir",
        path, (unsigned long long)saved.seed);
  if ((given & OPTIONS_BATCH_SIZE) && saved.batch_size != state->batch_size)
    die("--resume: %s was started with --batch-size=%d; leave the option out, or start a new run in another "
        "--output-dir",
        path, saved.batch_size);
  if (saved.train_images != state->train_images || saved.test_images != state->test_images ||
      fabs(saved.mean - state->mean) > 1e-12 || fabs(saved.stddev - state->stddev) > 1e-12)
    die("--resume: %s was started with other data (%d training and %d test images of mean %.4f, here %d and %d of mean "
        "%.4f); name the same --data-dir, --train-images and --test-images",
        path, saved.train_images, saved.test_images, saved.mean, state->train_images, state->test_images, state->mean);
  if (given & OPTIONS_EPOCHS) saved.epochs = state->epochs;
  if (options->lr_given) saved.lr = options->lr;
  if (options->momentum_given) saved.momentum = options->momentum;
  if (options->weight_decay_given) saved.weight_decay = options->weight_decay;
  classifier_recall_network(options, path, &saved);
  *state = saved;
}

/* -1 with a sentence when a checkpoint cannot be written: the files that are there stay as they were. The state comes
 * last: a kill before it costs an epoch, and the resumed run writes the others again. */
static inline int classifier_save(const Trainer *t, int best, Error *err) {
  if (make_directories(t->output_dir, err) != 0) return -1;
  for (int i = CLASSIFIER_LOGS + (best ? 0 : 1); i <= CLASSIFIER_STATE; i++) {
    const CheckpointKind kind = i == CLASSIFIER_STATE ? CHECKPOINT_STATE : CHECKPOINT_MODEL;
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", t->output_dir, classifier_files[i]);
    if (checkpoint_save(path, kind, t->net, &t->state, err) != 0) return -1;
  }
  return 0;
}

static inline void classifier_print_header(const Trainer *t) {
  const TrainState *state = &t->state;
  char decay[48] = "";
  if (state->weight_decay > 0) snprintf(decay, sizeof decay, ", weight decay %g", state->weight_decay);
  printf("%d training images, %d test images; batch %d, learning rate %g, momentum %g%s, seed %llu\n\n",
         t->train->count, t->test->count, state->batch_size, state->lr, state->momentum, decay,
         (unsigned long long)state->seed);
  printf("epoch   train loss   train accuracy   test loss   test accuracy    images/s   time left\n");
  fflush(stdout);
}

/* Trains to the last epoch or to Ctrl-C. */
static inline TrainResult classifier_train(Trainer *t, Error *err) {
  TrainState *state = &t->state;
  double started = seconds_now();
  int first = state->epoch;
  if (state->epoch < state->epochs) classifier_print_header(t);
  while (state->epoch < state->epochs) {
    TrainResult result = trainer_train_epoch(t, err);
    if (result == TRAIN_FAILED) return result;
    if (result == TRAIN_INTERRUPTED) return classifier_save(t, 0, err) == 0 ? result : TRAIN_FAILED;
    t->train_loss = state->epoch_totals.loss / t->train->count;
    t->train_accuracy = state->epoch_totals.correct / t->train->count;
    state->epoch++;
    state->position = 0;
    state->epoch_totals.loss = state->epoch_totals.correct = 0;

    double evaluation = seconds_now();
    Totals totals = image_set_evaluate(t->test, t->net, NULL);
    if (trainer_check_loss(t, totals.loss, err) != 0) return TRAIN_FAILED;
    t->test_loss = totals.loss / t->test->count;
    state->test_accuracy = totals.correct / t->test->count;
    trainer_log(t, state->epoch, "test", totals, t->test->count, seconds_now() - evaluation);
    int best = state->best_epoch == 0 || state->test_accuracy > state->best_accuracy;
    if (best) {
      state->best_accuracy = state->test_accuracy;
      state->best_epoch = state->epoch;
    }
    if (classifier_save(t, best, err) != 0) return TRAIN_FAILED;

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
  const double figures[] = {t->state.test_accuracy, t->test_loss,         t->train_loss,
                            t->train_accuracy,      t->images_per_second, t->state.seconds};
  const char *const names[] = {"test_accuracy",  "test_loss",         "train_loss",
                               "train_accuracy", "images_per_second", "seconds"};
  for (int i = 0; i < 6; i++)
    if (isfinite(figures[i])) json_object_set_new(result, names[i], json_real(figures[i]));
  if (t->state.best_epoch > 0) {
    json_object_set_new(result, "best_test_accuracy", json_real(t->state.best_accuracy));
    json_object_set_new(result, "best_epoch", json_integer(t->state.best_epoch));
  }
  json_object_set_new(result, "checkpoint", json_text(path));
  if (json_result(result, &err) != 0) die("%s", err.message);
}

static inline int classifier_run(const ClassifierOptions *options) {
  Error err;
  const CommonOptions *common = &options->common;
  char path[PATH_MAX + 64];
  MnistSet train_set, test_set;
  classifier_load(options, &train_set, &test_set);
  if (make_directories(common->output_dir, &err) != 0) die("--output-dir: %s", err.message);
  classifier_lock(common->output_dir);

  Trainer trainer = Trainer();
  TrainState *state = &trainer.state;
  trainer.output_dir = common->output_dir;
  trainer.images_per_second = trainer.train_loss = trainer.train_accuracy = trainer.test_loss = NAN;
  classifier_begin(options, &train_set, &test_set, state);
  snprintf(path, sizeof path, "%s/last.state.safetensors", common->output_dir);
  if (options->resume)
    classifier_resume(options, path, state);
  else
    classifier_protect_unfinished(options, path);

  /* Room for the larger of a training batch and an evaluation batch, no more than there are images. */
  int evaluation = common->device == DEVICE_GPU ? 1000 : state->batch_size;
  int train_batch = state->batch_size < state->train_images ? state->batch_size : state->train_images;
  int test_batch = evaluation < state->test_images ? evaluation : state->test_images;
  trainer.net = classifier_create(options, train_batch > test_batch ? train_batch : test_batch);
  if (options->classifier->network_text) options->classifier->network_text(state->network);
  trainer.net->hyper.weight_decay = (float)state->weight_decay;
  trainer.net->context.seed = state->seed;
  model_init(trainer.net, state->seed);
  if (options->resume) {
    TrainState saved; /* the settings were taken over above */
    if (checkpoint_load(path, CHECKPOINT_STATE, trainer.net, &saved, &err) != 0) die("--resume: %s", err.message);
    if (state->epoch >= state->epochs)
      printf("the run in %s has its %d epochs already; ask for more with --epochs\n", common->output_dir, state->epoch);
    else
      printf("resuming at epoch %d, image %d, step %ld\n", state->epoch + 1, state->position, state->step);
  }

  ImageSet train, test;
  float mean = (float)state->mean, stddev = (float)state->stddev;
  image_set_create(&train, common->device, &train_set, state->train_images, mean, stddev);
  image_set_create(&test, common->device, &test_set, state->test_images, mean, stddev);
  mnist_free(&train_set);
  trainer.train = &train;
  trainer.test = &test;
  TrainLog log;
  trainer.log = &log;
  TrainResult result = TRAIN_FAILED;
  interrupt_install();
  const unsigned moved = options->resume ? 0 : classifier_set_aside(common->output_dir);
  if (train_log_open(&log, common->output_dir, options->resume ? state->step : -1, &err) == 0)
    result = classifier_train(&trainer, &err);
  if (result == TRAIN_FAILED) {
    if (!options->resume) classifier_take_back(common->output_dir, moved);
    die("%s", err.message);
  }
  if (result == TRAIN_INTERRUPTED)
    printf("\nstopped in epoch %d at image %d of %d; to go on, add --resume to the same command\n", state->epoch + 1,
           state->position, train.count);
  else
    report_write(options->classifier->title, trainer.net, &test, &test_set, state, common->output_dir);

  if (train_log_close(&log, &err) != 0) die("%s", err.message);
  if (common->json) classifier_print_json(options, &trainer);
  image_set_destroy(&train);
  image_set_destroy(&test);
  mnist_free(&test_set);
  model_close(trainer.net);
  return result == TRAIN_INTERRUPTED ? interrupt_status() : 0;
}

static inline int classifier_main(const Classifier *classifier, int argc, char **argv) {
  static ClassifierOptions options;
  interrupt_begin();
  threads_begin();
  classifier_options(&options, classifier, argc, argv);
  classifier_open_device(&options);
  int status = options.predict ? classifier_predict(&options) : classifier_run(&options);
  stdout_finish();
  return status;
}

#endif /* PHASE2_MLP_CLASSIFIER_CUH */

/* train_options.h - the options of every program that trains, in one place; beside those of common/options.h.
 *
 * A program says which of them it has, sets its defaults, and describes its own in a `struct argp` or has none:
 *
 *     static TrainOptions options;
 *     train_options_default(&options, OPTIONS_TRAINER, TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES);
 *     options.lr = 0.05;
 *     train_options_parse(&options, &own, &own_options, "Trains ...", argc, argv);
 *
 * A new option of all trainers is a bit, a member, a row and a case here.
 */
#ifndef COMMON_NN_TRAIN_OPTIONS_H
#define COMMON_NN_TRAIN_OPTIONS_H

#include "common/nn/augment_text.h"
#include "common/nn/config.h"
#include "common/nn/data_folder.h"
#include "common/nn/implementation.h"
#include "common/nn/optimizer.h"
#include "common/nn/schedule.h"
#include "common/options.h"
#include "common/threads.h"

/* Which options a program has. */
enum {
  TRAIN_LR = 1 << 0,
  TRAIN_MOMENTUM = 1 << 1,
  TRAIN_WEIGHT_DECAY = 1 << 2,
  TRAIN_SCHEDULE = 1 << 3,
  TRAIN_DATA = 1 << 4,
  TRAIN_AUGMENT = 1 << 5,
  TRAIN_IMAGES = 1 << 6,
  TRAIN_TEST_IMAGES = 1 << 7,
  TRAIN_HOLD_OUT = 1 << 8,
  TRAIN_THREADS = 1 << 9,
  TRAIN_RESUME = 1 << 10,  /* and --restart, --log-every */
  TRAIN_PREDICT = 1 << 11, /* and --checkpoint */
  TRAIN_SUMMARY = 1 << 12,
  TRAIN_GRAPH = 1 << 13,
  TRAIN_STREAM = 1 << 14,
  TRAIN_SHOW = 1 << 15,    /* --show-features, --show-excited and --checkpoint */
  TRAIN_PROFILE = 1 << 16, /* and --nvtx */
  TRAIN_UNFUSED = 1 << 17,
  TRAIN_OPTIMIZER = 1 << 18, /* and its settings: */
  TRAIN_DAMPENING = 1 << 19,
  TRAIN_BETA1 = 1 << 20,
  TRAIN_BETA2 = 1 << 21,
  TRAIN_EPSILON = 1 << 22,
  TRAIN_NESTEROV = 1 << 23,
  TRAIN_CENTERED = 1 << 24,
  TRAIN_FIND_LR = 1 << 25,
  TRAIN_VALIDATION = 1 << 26, /* and --patience */
  TRAIN_CLIP = 1 << 27,       /* --clip-norm and --clip-value */
  TRAIN_ACCUMULATE = 1 << 28,
  TRAIN_LABEL_SMOOTHING = UINT64_C(1) << 29,
  TRAIN_MIXUP = UINT64_C(1) << 30,
  TRAIN_EMA = UINT64_C(1) << 31,
  TRAIN_PATIENCE = UINT64_C(1) << 32,   /* only in `given` */
  TRAIN_CLIP_VALUE = UINT64_C(1) << 33, /* only in `given` */
  TRAIN_CONFIG = UINT64_C(1) << 41,
  TRAIN_PRECISION = UINT64_C(1) << 46, /* and --loss-scale */
  TRAIN_ALL = ((UINT64_C(1) << 32) - 1) | TRAIN_CONFIG | TRAIN_PRECISION
};

enum { TRAIN_MAX_CHOICES = 8, TRAIN_MAX_ROWS = 64 };

/* Of --find-lr: without a number; at least and at most. */
enum { TRAIN_FIND_STEPS = 100, TRAIN_LEAST_FIND = 20, TRAIN_MOST_FIND = 10000 };

/* Of --show-excited: without a number, and at most. */
enum { TRAIN_EXCITED = 8, TRAIN_MOST_EXCITED = 32 };

typedef struct TrainOptions {
  CommonOptions common;
  uint64_t supported, given; /* TRAIN_..., or'ed */
  Config *config;            /* all options of the program, and what was given of them; NULL without TRAIN_CONFIG */
  double lr, lr_most, momentum, weight_decay, dampening, beta1, beta2, epsilon;
  int nesterov, centered;
  const OptimizerChoice *optimizer; /* NULL: the program's own, and no other is offered */
  LrSchedule schedule;              /* kind NULL: the learning rate is constant, and no other is offered */
  const DataSource *data;
  char data_folder[PATH_MAX]; /* where --data named one; it becomes common.data_dir */
  const Augment *augment;
  Augment own_augment;           /* the one that was typed, or that a checkpoint had */
  int train_images, test_images; /* the first so many; 0: all of them */
  int train_images_least, hold_out, threads;
  int resume, restart, predict, summary, graph, stream, profile, nvtx, unfused;
  char checkpoint[PATH_MAX];    /* of --predict and the like; "": best.safetensors of the output folder */
  char features[PATH_MAX];      /* the picture of --show-features; "": none */
  double validation;            /* share of the training images that are not trained on; 0: none */
  int patience;                 /* epochs without a lower validation loss until the run stops; 0: it does not */
  double clip_norm, clip_value; /* of gradients; 0: they are not clipped */
  double label_smoothing;       /* 0: labels are as they are */
  double mixup;                 /* alpha of the distribution of shares; 0: samples are not mixed */
  double ema;                   /* decay of the average of the weights; 0: there is none */
  DType precision;              /* of what graph_lower() lowers */
  double loss_scale;            /* of the first step in fp16; 0: the usual one */
  int accumulate;               /* batches whose gradients are added up for a step; 0: one */
  int log_every;                /* steps between two records of the log; 0: TRAINER_LOG_EVERY */
  int find_lr;                  /* steps of --find-lr; 0: it is not asked for */
  int excited;                  /* pictures for each filter, of --show-excited; 0: none are asked for */
  char **files;                 /* of --predict */
  int file_count;
  /* One option for each operation that has several implementations: --conv=NAME,NODE:NAME,auto */
  const OpChoice *const *choices;
  int choice_count;
  char chosen[TRAIN_MAX_CHOICES][IMPLEMENTATION_TEXT]; /* as typed; "": the first of each */
} TrainOptions;

/* Keys of argp: those of one letter, and these. A program's own are below. */
enum {
  TRAIN_KEY_WEIGHT_DECAY = 0x100000,
  TRAIN_KEY_SCHEDULE,
  TRAIN_KEY_DATA,
  TRAIN_KEY_AUGMENT,
  TRAIN_KEY_IMAGES,
  TRAIN_KEY_TEST_IMAGES,
  TRAIN_KEY_HOLD_OUT,
  TRAIN_KEY_THREADS,
  TRAIN_KEY_RESTART,
  TRAIN_KEY_CHECKPOINT,
  TRAIN_KEY_SUMMARY,
  TRAIN_KEY_GRAPH,
  TRAIN_KEY_STREAM,
  TRAIN_KEY_FEATURES,
  TRAIN_KEY_EXCITED,
  TRAIN_KEY_PROFILE,
  TRAIN_KEY_NVTX,
  TRAIN_KEY_UNFUSED,
  TRAIN_KEY_OPTIMIZER,
  TRAIN_KEY_DAMPENING,
  TRAIN_KEY_BETA1,
  TRAIN_KEY_BETA2,
  TRAIN_KEY_EPSILON,
  TRAIN_KEY_NESTEROV,
  TRAIN_KEY_CENTERED,
  TRAIN_KEY_FIND_LR,
  TRAIN_KEY_VALIDATION,
  TRAIN_KEY_PATIENCE,
  TRAIN_KEY_CLIP_NORM,
  TRAIN_KEY_CLIP_VALUE,
  TRAIN_KEY_ACCUMULATE,
  TRAIN_KEY_LOG_EVERY,
  TRAIN_KEY_LABEL_SMOOTHING,
  TRAIN_KEY_MIXUP,
  TRAIN_KEY_EMA,
  TRAIN_KEY_CONFIG,
  TRAIN_KEY_CONFIG_LINE,
  TRAIN_KEY_PRECISION,
  TRAIN_KEY_LOSS_SCALE,
  TRAIN_KEY_CHOICE /* and those after it */
};

static inline void train_options_default(TrainOptions *options, unsigned common, uint64_t supported) {
  memset(options, 0, sizeof *options);
  options->common = options_default(common);
  options->supported = supported;
  options->lr_most = 1e6;
  options->train_images_least = 1;
  options->data = &data_mnist;
  options->augment = &augment_none;
}

/* -------------------------------------------------------------------------------------------------------- reading */

/* What is typed of an optimizer, without the learning rate's schedule. */
static inline OptimizerSettings train_options_settings(const TrainOptions *options) {
  const OptimizerSettings settings = {options->lr,        options->momentum, options->weight_decay,
                                      options->dampening, options->beta1,    options->beta2,
                                      options->epsilon,   options->nesterov, options->centered};
  return settings;
}

/* Which settings of optimizer.h were given. */
static inline unsigned train_options_given_settings(const TrainOptions *options) {
  static const unsigned bits[OPTIMIZER_SETTINGS] = {TRAIN_MOMENTUM, TRAIN_DAMPENING, TRAIN_BETA1,   TRAIN_BETA2,
                                                    TRAIN_EPSILON,  TRAIN_NESTEROV,  TRAIN_CENTERED};
  unsigned given = 0;
  for (int i = 0; i < OPTIMIZER_SETTINGS; i++)
    if (options->given & bits[i]) given |= 1u << i; /* g++ 12 with -fsanitize=undefined mistakes (x ? 1u : 0) << i */
  return given;
}

/* What was not given becomes what is usual for this optimizer. */
static inline void train_options_usual(TrainOptions *options) {
  const OptimizerSettings *usual = &options->optimizer->usual;
  const uint64_t given = options->given;
  if (!(given & TRAIN_LR)) options->lr = usual->lr;
  if (!(given & TRAIN_MOMENTUM)) options->momentum = usual->momentum;
  if (!(given & TRAIN_WEIGHT_DECAY)) options->weight_decay = usual->weight_decay;
  if (!(given & TRAIN_DAMPENING)) options->dampening = usual->dampening;
  if (!(given & TRAIN_BETA1)) options->beta1 = usual->beta1;
  if (!(given & TRAIN_BETA2)) options->beta2 = usual->beta2;
  if (!(given & TRAIN_EPSILON)) options->epsilon = usual->epsilon;
}

static inline int train_options_check_optimizer(const TrainOptions *options, Error *err) {
  const OptimizerSettings settings = train_options_settings(options);
  return options->optimizer == NULL
             ? 0
             : optimizer_check(options->optimizer, &settings, train_options_given_settings(options), err);
}

/* "mnist, fashion_mnist, cifar10 or cifar100" */
typedef const char *TrainOptionsName(int i);
static inline const char *train_options_data(int i) { return data_source_at(i) ? data_source_at(i)->name : NULL; }
static inline const char *train_options_precision(int i) { return i <= DTYPE_FP16 ? dtype_name((DType)i) : NULL; }
static inline const char *train_options_optimizer(int i) { return optimizer_at(i) ? optimizer_at(i)->name : NULL; }

typedef struct TrainOptionsList {
  char text[160];
} TrainOptionsList;

static inline TrainOptionsList train_options_list(TrainOptionsName *name) {
  TrainOptionsList list = {""};
  size_t used = 0;
  for (int i = 0; name(i) && used < sizeof list.text; i++)
    used += (size_t)snprintf(list.text + used, sizeof list.text - used, "%s%s",
                             i == 0        ? ""
                             : name(i + 1) ? ", "
                                           : " or ",
                             name(i));
  return list;
}

/* The index of the table's entry of this name; ends the program where there is none. */
static inline int train_options_find(const struct argp_state *state, const char *option, const char *arg,
                                     TrainOptionsName *name) {
  for (int i = 0; name(i); i++)
    if (strcmp(name(i), arg) == 0) return i;
  argp_error(state, "%s=%s: %s is expected", option, arg, train_options_list(name).text);
  return 0;
}

/* Whether the program only shows what a trained network sees (show.h). */
static inline int train_options_shows(const TrainOptions *options) {
  return options->features[0] != '\0' || options->excited > 0;
}

/* The option because of which nothing is trained; NULL: there is none. */
static inline const char *train_options_mode(const TrainOptions *options) {
  return options->predict       ? "predict"
         : options->features[0] ? "show-features"
         : options->excited     ? "show-excited"
         : options->summary     ? "summary"
         : options->profile     ? "profile"
         : options->find_lr     ? "find-lr"
                                : NULL;
}

/* The given option that says how training goes on; NULL: none. --profile names the operations for a profiler, too. */
static inline const char *train_options_training(const TrainOptions *options) {
  const int reads = options->predict || train_options_shows(options);
  return options->resume                      ? "resume"
         : options->precision && reads        ? "precision"
         : options->restart                   ? "restart"
         : options->graph                     ? "graph"
         : options->stream                    ? "stream"
         : options->nvtx && !options->profile ? "nvtx"
                                              : NULL;
}

/* Where nothing is trained, what a file says of training alone does not count: the file may be that of a run. What is
 * typed stays, and is refused. */
static inline void train_options_leave_out(TrainOptions *options) {
  const Config *config = options->config;
  static const char *const names[] = {"resume", "restart", "graph", "stream", "nvtx"};
  int *const flags[] = {&options->resume, &options->restart, &options->graph, &options->stream, &options->nvtx};
  if (train_options_mode(options) == NULL) return;
  for (int i = 0; i < 5; i++)
    if (config_is_from_file(config, names[i])) *flags[i] = 0;
  if (options->excited && config_is_from_file(config, "hold-out")) options->hold_out = 0;
  if (!options->predict && !train_options_shows(options)) return;
  if (config_is_from_file(config, "precision")) options->precision = DTYPE_FLOAT32;
  if (config_is_from_file(config, "loss-scale")) options->loss_scale = 0;
}

static inline void train_options_end(const TrainOptions *options, const struct argp_state *state) {
  const char *mode = train_options_mode(options), *training = train_options_training(options);
  Error err;
  /* --resume: the checkpoint's is not known yet */
  if (!options->resume && train_options_check_optimizer(options, &err) != 0) argp_error(state, "%s", err.message);
  if (options->data_folder[0] && options->common.given & OPTIONS_DATA_DIR)
    argp_error(state, "--data=%s and --data-dir: one of the two", options->data_folder);
  if (options->resume && options->restart) argp_error(state, "--resume and --restart: one of the two");
  if (options->predict && train_options_shows(options))
    argp_error(state, "--predict and --show-%s: one of the two", options->features[0] ? "features" : "excited");
  if (options->profile && strcmp(mode, "profile") != 0) argp_error(state, "--%s and --profile: one of the two", mode);
  if (options->summary && strcmp(mode, "summary") != 0) argp_error(state, "--%s and --summary: one of the two", mode);
  if (options->find_lr && strcmp(mode, "find-lr") != 0) argp_error(state, "--%s and --find-lr: one of the two", mode);
  if (options->patience && !options->validation && !options->resume)
    argp_error(state, "--patience=%d: give --validation=SHARE, too; the run stops by the loss of these images",
               options->patience);
  if (mode && training) argp_error(state, "--%s trains nothing; leave --%s out", mode, training);
  if (options->loss_scale > 0 && options->precision != DTYPE_FP16 && !options->resume)
    argp_error(state, "--loss-scale=%g: give --precision=fp16, too; %s", options->loss_scale,
               "gradients of float32 and bf16 need no scale");
  for (int i = 0; i < options->choice_count && options->precision; i++)
    if (options->chosen[i][0])
      argp_error(state, "--%s=%s chooses how float32 is computed; leave it out, or --precision=%s",
                 options->choices[i]->option, options->chosen[i], dtype_name(options->precision));
  if (options->excited && options->hold_out)
    argp_error(state, "--show-excited looks at the test set; leave --hold-out out");
  if (options->graph && options->common.device == DEVICE_CPU)
    argp_error(state, "--graph: a CUDA graph needs a GPU; say --device=gpu, or leave --graph out");
  if (options->accumulate > 1 && options->stream && options->graph)
    argp_error(state, "--accumulate with --stream and --graph: leave one of them out");
  if (options->accumulate > 65536 / options->common.batch_size)
    argp_error(state, "--accumulate=%d batches of %d images: a step of at most 65536 images is expected",
               options->accumulate, options->common.batch_size);
  if (options->predict && options->file_count == 0) argp_error(state, "--predict: name the images to classify");
  if (!options->predict && !train_options_shows(options) && options->checkpoint[0])
    argp_error(state, "--checkpoint is the model of --predict%s; to go on with a run say --resume",
               options->supported & TRAIN_SHOW ? ", --show-features and --show-excited" : "");
  if (!options->predict && options->file_count > 0)
    argp_error(state, "\"%s\" is not an option; to classify images say --predict FILE...", options->files[0]);
}

/* --conv=NAME: appended to what was typed before. */
static inline int train_options_choose(TrainOptions *options, int i, const char *arg, const struct argp_state *state) {
  Error err;
  char *text = options->chosen[i];
  const size_t used = strlen(text);
  if (used + strlen(arg) + 2 > IMPLEMENTATION_TEXT)
    argp_error(state, "--%s=%.40s...: at most %d characters are expected", options->choices[i]->option, arg,
               IMPLEMENTATION_TEXT - 1);
  snprintf(text + used, IMPLEMENTATION_TEXT - used, "%s%s", used ? "," : "", arg);
  if (implementation_check(options->choices[i], arg, &err) != 0) argp_error(state, "%s", err.message);
  return 0;
}

static inline error_t train_options_parse_one(int key, char *arg, struct argp_state *state);

typedef struct TrainOptionsParser {
  TrainOptions *options;
  void *own_input;
} TrainOptionsParser;

static inline uint64_t train_options_bit(int key) {
  static const struct {
    int key;
    uint64_t bit;
  } bits[] = {{'l', TRAIN_LR},
              {'m', TRAIN_MOMENTUM},
              {TRAIN_KEY_WEIGHT_DECAY, TRAIN_WEIGHT_DECAY},
              {TRAIN_KEY_SCHEDULE, TRAIN_SCHEDULE},
              {TRAIN_KEY_DATA, TRAIN_DATA},
              {TRAIN_KEY_AUGMENT, TRAIN_AUGMENT},
              {TRAIN_KEY_OPTIMIZER, TRAIN_OPTIMIZER},
              {TRAIN_KEY_DAMPENING, TRAIN_DAMPENING},
              {TRAIN_KEY_BETA1, TRAIN_BETA1},
              {TRAIN_KEY_BETA2, TRAIN_BETA2},
              {TRAIN_KEY_EPSILON, TRAIN_EPSILON},
              {TRAIN_KEY_NESTEROV, TRAIN_NESTEROV},
              {TRAIN_KEY_CENTERED, TRAIN_CENTERED},
              {TRAIN_KEY_VALIDATION, TRAIN_VALIDATION},
              {TRAIN_KEY_PATIENCE, TRAIN_PATIENCE},
              {TRAIN_KEY_CLIP_NORM, TRAIN_CLIP},
              {TRAIN_KEY_CLIP_VALUE, TRAIN_CLIP_VALUE},
              {TRAIN_KEY_ACCUMULATE, TRAIN_ACCUMULATE},
              {TRAIN_KEY_LABEL_SMOOTHING, TRAIN_LABEL_SMOOTHING},
              {TRAIN_KEY_MIXUP, TRAIN_MIXUP},
              {TRAIN_KEY_EMA, TRAIN_EMA},
              {TRAIN_KEY_PRECISION, TRAIN_PRECISION}};
  for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
    if (bits[i].key == key) return bits[i].bit;
  return 0;
}

static inline error_t train_options_parse_one(int key, char *arg, struct argp_state *state) {
  const TrainOptionsParser *parser = (const TrainOptionsParser *)state->input;
  TrainOptions *options = parser->options;
  Error err;
  options->given |= train_options_bit(key);
  if (key >= TRAIN_KEY_CHOICE && key < TRAIN_KEY_CHOICE + options->choice_count)
    return train_options_choose(options, key - TRAIN_KEY_CHOICE, arg, state);
  switch (key) {
    case ARGP_KEY_INIT:
      state->child_inputs[0] = parser->own_input;
      return 0;
    case 'l':
      options->lr = option_float(state, arg, "--lr", 1e-9, options->lr_most);
      return 0;
    case 'm':
      options->momentum = option_float(state, arg, "--momentum", 0, 0.9999);
      return 0;
    case TRAIN_KEY_WEIGHT_DECAY:
      options->weight_decay = option_float(state, arg, "--weight-decay", 0, 1);
      return 0;
    case TRAIN_KEY_OPTIMIZER:
      options->optimizer = optimizer_at(train_options_find(state, "--optimizer", arg, train_options_optimizer));
      return 0;
    case TRAIN_KEY_DAMPENING:
      options->dampening = option_float(state, arg, "--dampening", 0, 1);
      return 0;
    case TRAIN_KEY_BETA1:
      options->beta1 = option_float(state, arg, "--beta1", 0, 0.999999);
      return 0;
    case TRAIN_KEY_BETA2:
      options->beta2 = option_float(state, arg, "--beta2", 0, 0.999999);
      return 0;
    case TRAIN_KEY_EPSILON:
      options->epsilon = option_float(state, arg, "--epsilon", 1e-30, 1);
      return 0;
    case TRAIN_KEY_NESTEROV:
      options->nesterov = 1;
      return 0;
    case TRAIN_KEY_CENTERED:
      options->centered = 1;
      return 0;
    case TRAIN_KEY_SCHEDULE:
      if (lr_schedule_parse(arg, &options->schedule, &err) != 0)
        argp_error(state, "--schedule=%s: %s", arg, err.message);
      return 0;
    case TRAIN_KEY_VALIDATION:
      options->validation = option_float(state, arg, "--validation", 0, 1);
      return 0;
    case TRAIN_KEY_PATIENCE:
      options->patience = (int)option_int(state, arg, "--patience", 1, 100000);
      return 0;
    case TRAIN_KEY_CLIP_NORM:
      options->clip_norm = option_float(state, arg, "--clip-norm", 1e-9, 1e9);
      return 0;
    case TRAIN_KEY_CLIP_VALUE:
      options->clip_value = option_float(state, arg, "--clip-value", 1e-9, 1e9);
      return 0;
    case TRAIN_KEY_ACCUMULATE:
      options->accumulate = (int)option_int(state, arg, "--accumulate", 1, 65536);
      return 0;
    case TRAIN_KEY_LOG_EVERY:
      options->log_every = (int)option_int(state, arg, "--log-every", 1, 1000000);
      return 0;
    case TRAIN_KEY_LABEL_SMOOTHING:
      options->label_smoothing = option_float(state, arg, "--label-smoothing", 0, 0.99);
      return 0;
    case TRAIN_KEY_MIXUP:
      options->mixup = option_float(state, arg, "--mixup", 0, 100);
      return 0;
    case TRAIN_KEY_EMA:
      options->ema = option_float(state, arg, "--ema", 0, AVERAGE_MOST);
      return 0;
    case TRAIN_KEY_CONFIG:
      return 0; /* it has been read */
    case TRAIN_KEY_CONFIG_LINE:
      if (options->config) config_at(options->config, arg, state);
      return 0;
    case TRAIN_KEY_PRECISION:
      options->precision = (DType)train_options_find(state, "--precision", arg, train_options_precision);
      return 0;
    case TRAIN_KEY_LOSS_SCALE:
      options->loss_scale = option_float(state, arg, "--loss-scale", LOSS_SCALE_LEAST, LOSS_SCALE_MOST);
      if (options->loss_scale != exp2(round(log2(options->loss_scale))))
        argp_error(state, "--loss-scale=%s: a power of two is expected, such as 65536: it rounds nothing", arg);
      return 0;
    case TRAIN_KEY_FIND_LR:
      options->find_lr =
          arg ? (int)option_int(state, arg, "--find-lr", TRAIN_LEAST_FIND, TRAIN_MOST_FIND) : TRAIN_FIND_STEPS;
      return 0;
    case TRAIN_KEY_DATA:
      options->data_folder[0] = '\0';
      if (data_choose(arg, &options->data, options->data_folder, &err) != 0)
        argp_error(state, "--data=%s: %s", arg, err.message);
      return 0;
    case TRAIN_KEY_AUGMENT:
      if (augment_parse(arg, &options->own_augment, &err) != 0) argp_error(state, "--augment=%s: %s", arg, err.message);
      options->augment = &options->own_augment;
      return 0;
    case TRAIN_KEY_IMAGES:
      options->train_images = (int)option_int(state, arg, "--train-images", options->train_images_least, INT_MAX);
      return 0;
    case TRAIN_KEY_TEST_IMAGES:
      options->test_images = (int)option_int(state, arg, "--test-images", 1, INT_MAX);
      return 0;
    case TRAIN_KEY_HOLD_OUT:
      options->hold_out = (int)option_int(state, arg, "--hold-out", 1, INT_MAX);
      return 0;
    case TRAIN_KEY_THREADS:
      options->threads = (int)option_int(state, arg, "--threads", 1, 1024);
      return 0;
    case 'r':
      options->resume = 1;
      return 0;
    case TRAIN_KEY_RESTART:
      options->restart = 1;
      return 0;
    case 'p':
      options->predict = 1;
      return 0;
    case TRAIN_KEY_FEATURES:
      option_path(state, arg, "--show-features", options->features);
      return 0;
    case TRAIN_KEY_EXCITED:
      options->excited = arg ? (int)option_int(state, arg, "--show-excited", 1, TRAIN_MOST_EXCITED) : TRAIN_EXCITED;
      return 0;
    case TRAIN_KEY_CHECKPOINT:
      option_path(state, arg, "--checkpoint", options->checkpoint);
      return 0;
    case TRAIN_KEY_SUMMARY:
      options->summary = 1;
      return 0;
    case TRAIN_KEY_GRAPH:
      options->graph = 1;
      return 0;
    case TRAIN_KEY_STREAM:
      options->stream = 1;
      return 0;
    case TRAIN_KEY_PROFILE:
      options->profile = 1;
      return 0;
    case TRAIN_KEY_UNFUSED:
      options->unfused = 1;
      return 0;
    case TRAIN_KEY_NVTX:
      options->nvtx = 1;
      return 0;
    case ARGP_KEY_ARGS:
      options->files = state->argv + state->next;
      options->file_count = state->argc - state->next;
      return 0;
    case ARGP_KEY_END:
      train_options_leave_out(options);
      train_options_end(options, state);
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* ----------------------------------------------------------------------------------------------------------- --help */

typedef struct TrainOptionsHelp {
  struct argp_option rows[TRAIN_MAX_ROWS];
  char texts[TRAIN_MAX_ROWS][1024];
  int count;
} TrainOptionsHelp;

/* A row of --help; the text is formatted. */
__attribute__((format(printf, 5, 6))) static inline void train_options_row(TrainOptionsHelp *help, int key,
                                                                           const char *name, const char *arg,
                                                                           const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(help->texts[help->count], sizeof help->texts[0], format, args);
  va_end(args);
  const struct argp_option row = {name, key, arg, 0, help->texts[help->count], 0};
  help->rows[help->count++] = row;
}

/* " (default: 0.2)", or "" for 0, which is as if the option did not exist. */
static inline TrainOptionsList train_options_number(double value) {
  TrainOptionsList list = {""};
  if (value != 0) snprintf(list.text, sizeof list.text, " (default: %g)", value);
  return list;
}

/* "N images only (default: 10000)" */
static inline void train_options_images_row(TrainOptionsHelp *help, int key, const char *name, const char *verb,
                                            int count) {
  if (count > 0)
    train_options_row(help, key, name, "N", "%s on the first N images only (default: %d)", verb, count);
  else
    train_options_row(help, key, name, "N", "%s on the first N images only", verb);
}

/* --optimizer and its settings. */
static inline void train_options_optimizer_rows(TrainOptionsHelp *help, const TrainOptions *o) {
  const OptimizerChoice *adam = optimizer_named("adam"), *rmsprop = optimizer_named("rmsprop");
  train_options_row(
      help, TRAIN_KEY_OPTIMIZER, "optimizer", "NAME",
      "How the weights follow their gradients (default: %s); each has its own default settings: ", o->optimizer->name);
  char *text = help->texts[help->count - 1];
  for (int i = 0; optimizer_at(i); i++)
    snprintf(text + strlen(text), sizeof help->texts[0] - strlen(text), "%s%s", i ? ", " : "", optimizer_at(i)->name);
  train_options_row(help, TRAIN_KEY_BETA1, "beta1", "B", "Adam's running mean of the gradient (default: %g)",
                    adam->usual.beta1);
  train_options_row(help, TRAIN_KEY_BETA2, "beta2", "B",
                    "Running mean of the gradient's square (default: %g of adam, %g of rmsprop)", adam->usual.beta2,
                    rmsprop->usual.beta2);
  train_options_row(help, TRAIN_KEY_EPSILON, "epsilon", "E", "What is added to the root of it (default: %g)",
                    adam->usual.epsilon);
  train_options_row(help, TRAIN_KEY_DAMPENING, "dampening", "D",
                    "Of sgd's momentum: 1 - D times the gradient comes in");
  train_options_row(help, TRAIN_KEY_NESTEROV, "nesterov", NULL, "With --optimizer=sgd: Nesterov's momentum");
  train_options_row(help, TRAIN_KEY_CENTERED, "centered", NULL,
                    "With --optimizer=rmsprop: the variance of the gradient instead of its mean square");
}

static inline void train_options_rows(TrainOptionsHelp *help, const TrainOptions *o) {
  const uint64_t has = o->supported;
  if (has & TRAIN_CONFIG) {
    train_options_row(help, TRAIN_KEY_CONFIG, "config", "FILE",
                      "Take options from this JSON file, such as config.json of an earlier run; what is typed comes "
                      "first");
    train_options_row(help, TRAIN_KEY_CONFIG_LINE, CONFIG_LINE, "N", "%s", "");
    help->rows[help->count - 1].flags = OPTION_HIDDEN;
  }
  if (has & TRAIN_LR && has & TRAIN_SCHEDULE)
    train_options_row(help, 'l', "lr", "RATE", "Highest learning rate; --schedule says how it changes (default: %g)",
                      o->lr);
  else if (has & TRAIN_LR)
    train_options_row(help, 'l', "lr", "RATE", "%s, %s (default: %g)",
                      o->schedule.kind ? "Highest learning rate" : "Learning rate",
                      o->schedule.kind ? o->schedule.kind->help : "constant", o->lr);
  if (has & TRAIN_SCHEDULE) {
    train_options_row(help, TRAIN_KEY_SCHEDULE, "schedule", "NAME[:KEY=VALUE,...]",
                      "Learning rate over the run (default: %s): ", lr_schedule_text(&o->schedule).text);
    char *text = help->texts[help->count - 1];
    for (int i = 0; schedule_at(i); i++) {
      char keys[160];
      schedule_param_names(schedule_at(i), keys, sizeof keys);
      snprintf(text + strlen(text), sizeof help->texts[0] - strlen(text), "%s%s, %s (%s)", i ? "; " : "",
               schedule_at(i)->name, schedule_at(i)->help, keys);
    }
  }
  if (has & TRAIN_FIND_LR) {
    train_options_row(
        help, TRAIN_KEY_FIND_LR, "find-lr", "STEPS",
        "Train nothing: try rising learning rates on fresh networks, one for each of STEPS steps (default: "
        "%d), suggest one, and draw the losses into find_lr.png in the output folder",
        TRAIN_FIND_STEPS);
    help->rows[help->count - 1].flags = OPTION_ARG_OPTIONAL;
  }
  if (has & TRAIN_OPTIMIZER) train_options_optimizer_rows(help, o);
  if (has & TRAIN_MOMENTUM)
    train_options_row(help, 'm', "momentum", "M", "Momentum%s (default: %g)",
                      has & TRAIN_OPTIMIZER ? " of sgd, rmsprop and muon" : " of SGD", o->momentum);
  if (has & TRAIN_WEIGHT_DECAY)
    train_options_row(help, TRAIN_KEY_WEIGHT_DECAY, "weight-decay", "W",
                      "Share of each weight that its gradient gets in addition (default: %g)", o->weight_decay);
  if (has & TRAIN_LABEL_SMOOTHING)
    train_options_row(help, TRAIN_KEY_LABEL_SMOOTHING, "label-smoothing", "S",
                      "Spread the share S of each training label evenly over all classes; validation and test losses "
                      "are those of the plain labels");
  if (has & TRAIN_MIXUP)
    train_options_row(help, TRAIN_KEY_MIXUP, "mixup", "ALPHA",
                      "Train on mixtures of two images and their labels, by shares from the distribution "
                      "Beta(ALPHA, ALPHA): 0.2 mixes little, 1 much");
  if (has & TRAIN_EMA)
    train_options_row(help, TRAIN_KEY_EMA, "ema", "DECAY",
                      "Average the weights over about 1 / (1 - DECAY) steps; the average is evaluated, saved as the "
                      "model, and used by --predict");
  if (has & TRAIN_DATA)
    train_options_row(help, TRAIN_KEY_DATA, "data", "NAME|FOLDER",
                      "Data set: %s, or a folder of IDX or CIFAR files (default: %s)",
                      train_options_list(train_options_data).text, o->data->name);
  if (has & TRAIN_AUGMENT) {
    train_options_row(help, TRAIN_KEY_AUGMENT, "augment", "NAME,...",
                      "Random changes of the training images (default: %s): ", o->augment->name);
    char *text = help->texts[help->count - 1];
    for (int i = 0; i < AUGMENT_NAMES; i++)
      snprintf(text + strlen(text), sizeof help->texts[0] - strlen(text), "%s%s, %s", i ? "; " : "",
               augment_names[i].name, augment_names[i].help);
  }
  if (has & TRAIN_RESUME) {
    train_options_row(help, 'r', "resume", NULL, "Go on from the output folder's last checkpoint, to --epochs in all");
    train_options_row(help, TRAIN_KEY_RESTART, "restart", NULL,
                      "Start anew although the output folder holds an unfinished run");
    train_options_row(help, TRAIN_KEY_LOG_EVERY, "log-every", "N",
                      "Steps between two records of the log%s (default: %d)",
                      has & TRAIN_GRAPH ? "; --graph likes a multiple of 10" : "", o->log_every ? o->log_every : 100);
  }
  if (has & TRAIN_IMAGES) {
    train_options_images_row(help, TRAIN_KEY_IMAGES, "train-images", "Train", o->train_images);
    train_options_row(help, 0, "images", NULL, "%s", "");
    help->rows[help->count - 1].flags = OPTION_ALIAS | OPTION_HIDDEN;
  }
  if (has & TRAIN_TEST_IMAGES)
    train_options_images_row(help, TRAIN_KEY_TEST_IMAGES, "test-images", "Test", o->test_images);
  if (has & TRAIN_HOLD_OUT)
    train_options_row(help, TRAIN_KEY_HOLD_OUT, "hold-out", "N",
                      "Don't train on the last N training images, and test on them instead of the test set: for "
                      "choosing settings");
  if (has & TRAIN_VALIDATION) {
    train_options_row(help, TRAIN_KEY_VALIDATION, "validation", "SHARE",
                      "Don't train on this share of the training images, chosen at random by --seed; their loss says "
                      "which epoch is the best one, and when a plateau is reached%s",
                      train_options_number(o->validation).text);
    train_options_row(help, TRAIN_KEY_PATIENCE, "patience", "N",
                      "Stop when the validation loss has not fallen for N epochs%s",
                      train_options_number(o->patience).text);
  }
  if (has & TRAIN_CLIP) {
    train_options_row(help, TRAIN_KEY_CLIP_NORM, "clip-norm", "NORM",
                      "Scale the gradients of a step down where their norm is larger%s",
                      train_options_number(o->clip_norm).text);
    train_options_row(help, TRAIN_KEY_CLIP_VALUE, "clip-value", "VALUE",
                      "Bring each gradient into the range from -VALUE to VALUE%s",
                      train_options_number(o->clip_value).text);
  }
  if (has & TRAIN_ACCUMULATE)
    train_options_row(help, TRAIN_KEY_ACCUMULATE, "accumulate", "N",
                      "Add up the gradients of N batches for each step: as --batch-size times N, in the memory of one");
  if (has & TRAIN_PRECISION) {
    train_options_row(help, TRAIN_KEY_PRECISION, "precision", "NAME",
                      "What the layers compute with: float32 (default), or numbers of 16 bits, bf16 or fp16; weights, "
                      "sums and the loss stay float32");
    train_options_row(
        help, TRAIN_KEY_LOSS_SCALE, "loss-scale", "S",
        "With --precision=fp16: by how much the gradients are multiplied in the first step, a power of two "
        "(default: %g); it adapts",
        (double)LOSS_SCALE_FIRST);
  }
  if (has & TRAIN_THREADS)
    train_options_row(help, TRAIN_KEY_THREADS, "threads", "N", "CPU threads (default: one per core)");
  if (has & TRAIN_GRAPH)
    train_options_row(help, TRAIN_KEY_GRAPH, "graph", NULL,
                      "With --device=gpu: launch each training step as one CUDA graph; the results are the same");
  if (has & TRAIN_STREAM)
    train_options_row(help, TRAIN_KEY_STREAM, "stream", NULL,
                      "Leave the data set in the host's memory, and copy each batch to the GPU while it computes the "
                      "step before; the results are the same");
  if (has & TRAIN_UNFUSED)
    train_options_row(help, TRAIN_KEY_UNFUSED, "unfused", NULL,
                      "Compute by itself what this program computes together, such as a convolution and its pooling");
  if (has & TRAIN_PROFILE) {
    train_options_row(help, TRAIN_KEY_PROFILE, "profile", NULL,
                      "Train nothing: print how long each operation of a training step takes, and how long it must");
    train_options_row(
        help, TRAIN_KEY_NVTX, "nvtx", NULL,
        "Name the operations for a profiler: ncu --nvtx --nvtx-include \"conv1 forward/\" (--profile does)");
  }
  if (has & TRAIN_SUMMARY)
    train_options_row(help, TRAIN_KEY_SUMMARY, "summary", NULL,
                      "Train nothing: print every node of the network, its FLOPs and its memory. As with the other "
                      "options that train nothing, those that say how to train are read and checked, and not used");
  for (int i = 0; i < o->choice_count; i++)
    train_options_row(help, TRAIN_KEY_CHOICE + i, o->choices[i]->option, "NAME",
                      "Implementation: %s (default: %s), or auto: measure them and take the fastest for each node; "
                      "NODE:NAME chooses for one node",
                      implementation_names(o->choices[i]).text, o->choices[i]->list[0].name);
  if (has & TRAIN_PREDICT) {
    train_options_row(help, 'p', "predict", NULL, "Train nothing: classify the images FILE... (PNG or JPEG, any size)");
  }
  if (has & TRAIN_SHOW) {
    train_options_row(help, TRAIN_KEY_FEATURES, "show-features", "FILE",
                      "Train nothing: draw what each layer of the trained network makes of the image FILE, into "
                      "features.png in the output folder");
    train_options_row(help, TRAIN_KEY_EXCITED, "show-excited", "N",
                      "Train nothing: draw the N test images that excite each filter of a convolution most, into "
                      "excited.png (default: %d, at most %d)",
                      TRAIN_EXCITED, TRAIN_MOST_EXCITED);
    help->rows[help->count - 1].flags = OPTION_ARG_OPTIONAL;
  }
  if (has & (TRAIN_PREDICT | TRAIN_SHOW))
    train_options_row(help, TRAIN_KEY_CHECKPOINT, "checkpoint", "FILE",
                      "The model that %s (default: best.safetensors in the output folder)",
                      has & TRAIN_SHOW ? "--predict, --show-features and --show-excited use" : "--predict uses");
}

/* What --config says. Where another --optimizer was typed than the file's, the file's settings of that one do not
 * count: the typed one has its own. */
static inline void train_options_config(void *input, const struct argp *all, int *argc, char ***argv) {
  static const char *const settings[] = {"lr",    "momentum", "weight-decay", "dampening", "beta1",
                                         "beta2", "epsilon",  "nesterov",     "centered"};
  Config *config = (Config *)input;
  config_open(config, all, *argc, *argv);
  const int optimizer = config_find(config, "optimizer");
  for (int i = 0; i < 9 && optimizer >= 0 && config->rows[optimizer].replaced; i++) {
    const int row = config_find(config, settings[i]);
    if (row >= 0 && !config->rows[row].typed) config_set(config, settings[i], NULL);
  }
  config_arguments(config, argc, argv);
}

/* Reads the command line into `options` and, through own->parser, into `own_input`; own may be NULL. Sets the number
 * of threads where --threads is an option. */
static inline void train_options_parse(TrainOptions *options, const struct argp *own, void *own_input,
                                       const char *description, int argc, char **argv) {
  static TrainOptionsHelp help; /* argp keeps pointers to it */
  static Config config;
  if (options->choice_count > TRAIN_MAX_CHOICES)
    die("this program chooses for %d operations; train_options.h has room for %d: raise TRAIN_MAX_CHOICES",
        options->choice_count, TRAIN_MAX_CHOICES);
  TrainOptionsParser parser = {options, own_input};
  memset(&help, 0, sizeof help);
  train_options_rows(&help, options);
  const struct argp_child children[] = {{own, 0, NULL, 0}, {NULL, 0, NULL, 0}};
  const struct argp all = {help.rows,
                           train_options_parse_one,
                           options->supported & TRAIN_PREDICT ? "[--predict FILE...]" : NULL,
                           description,
                           children,
                           NULL,
                           NULL};
  const OptimizerChoice *before = options->optimizer;
  if (options->supported & TRAIN_CONFIG) {
    options->config = &config;
    options->common.rewrite = train_options_config;
    options->common.rewrite_input = &config;
  }
  options_parse(&options->common, &all, &parser, argc, argv);
  if (options->data_folder[0]) memcpy(options->common.data_dir, options->data_folder, sizeof options->data_folder);
  if (options->optimizer != before) train_options_usual(options);
  if (options->supported & TRAIN_THREADS) options->threads = threads_set(options->threads);
}

#endif /* COMMON_NN_TRAIN_OPTIONS_H */

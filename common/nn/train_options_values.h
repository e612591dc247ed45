/* train_options_values.h - what the options of a program that trains (train_options.h) say, and what is usual. */
#ifndef COMMON_NN_TRAIN_OPTIONS_VALUES_H
#define COMMON_NN_TRAIN_OPTIONS_VALUES_H

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

#endif /* COMMON_NN_TRAIN_OPTIONS_VALUES_H */

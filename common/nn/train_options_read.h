/* train_options_read.h - argp's parser of the options of a program that trains (train_options.h), and what does not fit
 * together. */
#ifndef COMMON_NN_TRAIN_OPTIONS_READ_H
#define COMMON_NN_TRAIN_OPTIONS_READ_H

#include "common/nn/train_options_values.h"

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

#endif /* COMMON_NN_TRAIN_OPTIONS_READ_H */

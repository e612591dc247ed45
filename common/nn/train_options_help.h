/* train_options_help.h - the rows of --help of a program that trains (train_options.h). */
#ifndef COMMON_NN_TRAIN_OPTIONS_HELP_H
#define COMMON_NN_TRAIN_OPTIONS_HELP_H

#include "common/nn/train_options_values.h"

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

#endif /* COMMON_NN_TRAIN_OPTIONS_HELP_H */

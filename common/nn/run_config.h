/* run_config.h - config.json of a run folder: the settings of the run, as a file for --config (config.h).
 *
 * It holds what was given, by a file or on the command line, and the settings that follow from the program, the
 * optimizer or a checkpoint. What it leaves out has its usual value: an option is there when somebody gave it. Together
 * with the same program and images the file gives the same run, bit for bit.
 */
#ifndef COMMON_NN_RUN_CONFIG_H
#define COMMON_NN_RUN_CONFIG_H

#include "common/nn/run_folder.h"
#include "common/nn/session.h"

/* Of the command and not of the run. */
static const char *const run_config_without[] = {"output-dir", "json", "resume", "restart", NULL};

/* The number, or nothing where it is 0. */
static inline void run_config_number(Config *config, const char *name, double value) {
  char text[64];
  config_set(config, name, value != 0 ? config_number(value, text, sizeof text) : NULL);
}

static inline void run_config_count(Config *config, const char *name, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  config_set(config, name, value != 0 ? text : NULL);
}

static inline void run_config_optimizer(Config *config, const TrainOptions *options) {
  char text[64];
  const unsigned reads = options->optimizer ? options->optimizer->reads : (unsigned)OPTIMIZER_MOMENTUM;
  const struct {
    unsigned bit;
    double value;
  } setting[] = {{OPTIMIZER_MOMENTUM, options->momentum},
                 {OPTIMIZER_BETA1, options->beta1},
                 {OPTIMIZER_BETA2, options->beta2},
                 {OPTIMIZER_EPSILON, options->epsilon}};
  const char *const names[] = {"momentum", "beta1", "beta2", "epsilon"};
  if (options->optimizer) config_set(config, "optimizer", options->optimizer->name);
  config_set(config, "lr", config_number(options->lr, text, sizeof text));
  config_set(config, "weight-decay", config_number(options->weight_decay, text, sizeof text));
  for (int i = 0; i < 4; i++)
    config_set(config, names[i], reads & setting[i].bit ? config_number(setting[i].value, text, sizeof text) : NULL);
  run_config_number(config, "dampening", options->dampening);
  config_set(config, "nesterov", options->nesterov ? "" : NULL);
  config_set(config, "centered", options->centered ? "" : NULL);
}

/* What of the state's implementations a choice knows by name; where that is nothing, its usual one. */
static inline const char *run_config_words(const OpChoice *choice, const TrainState *state,
                                           char text[CHECKPOINT_IMPLEMENTATIONS]) {
  ImplementationWord word;
  size_t used = 0;
  for (const char *at = state->implementations; implementation_next(&at, &word);) {
    if (implementation_find(choice, word.name, word.name_length) < 0) continue;
    const char *begin = word.node ? word.node : word.name;
    used += (size_t)snprintf(text + used, CHECKPOINT_IMPLEMENTATIONS - used, "%s%.*s", used ? "," : "",
                             (int)(word.name + word.name_length - begin), begin);
  }
  return used ? text : choice->list[0].name;
}

/* --conv=auto measures, and may choose something else the next time: what it has chosen is kept. An implementation that
 * was asked for also decides what is computed together (session_fuse()), so the usual one is named, too. */
static inline void run_config_choices(Config *config, const TrainOptions *options, const TrainState *state) {
  char text[CHECKPOINT_IMPLEMENTATIONS];
  for (int c = 0; c < options->choice_count; c++) {
    const int one = options->choice_count == 1;
    if (options->chosen[c][0] == '\0' && (state->implementations[0] == '\0' || !one)) continue;
    config_set(config, options->choices[c]->option,
               one || implementation_wants_measuring(options->chosen[c])
                   ? run_config_words(options->choices[c], state, text)
                   : options->chosen[c]);
  }
}

/* Puts the settings of a run that begins or goes on into the options' Config. */
static inline void run_config_fill(const Task *task, const TrainOptions *options, const TrainState *state) {
  Config *config = options->config;
  char seed[32];
  if (task->networks && task->networks->settings) task->networks->settings(config);
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)state->seed);
  config_set(config, "seed", seed);
  config_set(config, "device", device_name(options->common.device));
  run_config_count(config, "epochs", state->epochs);
  run_config_count(config, "batch-size", checkpoint_part(state));
  run_config_count(config, "accumulate", state->accumulate);
  run_config_optimizer(config, options);
  config_set(config, "schedule", lr_schedule_text(&options->schedule).text);
  config_set(config, "augment", options->augment->name);
  const int folder = options->data_folder[0] != '\0';
  config_set(config, "data", folder ? options->data_folder : options->data->name);
  config_set(config, "data-dir", options->common.data_dir[0] && !folder ? options->common.data_dir : NULL);
  run_config_count(config, "train-images", options->train_images);
  run_config_count(config, "test-images", options->test_images);
  run_config_count(config, "hold-out", options->hold_out);
  run_config_number(config, "validation", state->validation);
  run_config_count(config, "patience", state->patience);
  run_config_number(config, "clip-norm", state->clip_norm);
  run_config_number(config, "clip-value", state->clip_value);
  run_config_number(config, "label-smoothing", state->label_smoothing);
  run_config_number(config, "mixup", state->mixup);
  run_config_number(config, "ema", state->ema);
  config_set(config, "precision", state->precision[0] ? state->precision : NULL);
  config_set(config, "graph", options->graph ? "" : NULL);
  config_set(config, "stream", options->stream ? "" : NULL);
  run_config_choices(config, options, state);
}

/* What the folder's file says of options that were not given now: of a run that goes on. */
static inline void run_config_recall(Config *config, const char *path) {
  Error none;
  size_t size;
  char *text = config_read_text(path, &size, &none), number[64];
  json_t *object = text ? config_parse(path, text, size, &none) : NULL, *value;
  const char *key;
  json_object_foreach(object, key, value) {
    const int i = config_find(config, key);
    const char *said = i >= 0 ? config_text(&config->rows[i], value, number, sizeof number) : NULL;
    if (said && config->rows[i].value == NULL) config_set(config, key, said);
  }
  json_decref(object);
  free(text);
}

/* Writes the folder's config.json, which must be possible before anything is trained. */
static inline int run_config_write(const Task *task, const TrainOptions *options, const TrainState *state,
                                   const char *directory, Error *err) {
  char path[PATH_MAX + 32];
  if (options->config == NULL) return 0;
  snprintf(path, sizeof path, "%s/%s", directory, run_files[RUN_CONFIG]);
  if (options->resume) run_config_recall(options->config, path);
  run_config_fill(task, options, state);
  return config_write(options->config, path, run_config_without, err);
}

#endif /* COMMON_NN_RUN_CONFIG_H */

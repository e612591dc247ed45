/* train_options.h - the options of every program that trains, in one place; beside those of common/options.h.
 *
 * A program says which of them it has, sets its defaults, and describes its own in a `struct argp` or has none:
 *
 *     static TrainOptions options;
 *     train_options_default(&options, OPTIONS_TRAINER, TRAIN_LR | TRAIN_MOMENTUM | TRAIN_IMAGES);
 *     options.lr = 0.05;
 *     train_options_parse(&options, &own, &own_options, "Trains ...", argc, argv);
 *
 * A new option of all trainers is a bit and a member in train_options_values.h, a case in train_options_read.h, and a
 * row in train_options_help.h.
 */
#ifndef COMMON_NN_TRAIN_OPTIONS_H
#define COMMON_NN_TRAIN_OPTIONS_H

#include "common/nn/train_options_help.h"
#include "common/nn/train_options_read.h"

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

/* train_main.cuh - the program around train_networks.cuh: its options, which network is meant, and what is done
 * with it.
 *
 *     int main(int argc, char **argv) {
 *       static const OpChoice *const choices[] = {&conv2d_choice};
 *       return train_main(argc, argv, choices, 1);
 *     }
 *
 * Included by one file of a program. A later phase gives it other implementations of the operations. */
#ifndef PHASE4_TRAINING_TRAIN_MAIN_CUH
#define PHASE4_TRAINING_TRAIN_MAIN_CUH

#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/map_peaks_op.cuh"
#include "phase4_training/08_train/search.cuh"
#include "phase4_training/08_train/train_list.cuh"

enum { TRAIN_KEY_LIST = 0x101, TRAIN_KEY_SEARCH, TRAIN_KEY_YES };

static int train_wants_list, train_sure;
static SearchGrid train_grid;
static TrainOptions train_options;
static const struct argp *train_own[TRAIN_NETWORKS]; /* the networks' own options; NULL: none */

/* Whether a network has an option that is the name of one of the program's choices: then the program is not for it. */
static inline const char *train_clash(const TrainNetwork *network, const OpChoice *const *choices, int count) {
  for (const struct argp_option *o = network->own ? network->own()->options->options : NULL; o && o->name; o++)
    for (int c = 0; c < count; c++)
      if (strcmp(o->name, choices[c]->option) == 0) return o->name;
  return NULL;
}

static error_t train_parse(int key, char *arg, struct argp_state *state) {
  Error err;
  switch (key) {
    case 'N':
      if (train_choose(arg, &err) != 0) argp_error(state, "%s", err.message);
      train_choice.given = 1;
      return 0;
    case TRAIN_KEY_LIST:
      train_wants_list = 1;
      return 0;
    case TRAIN_KEY_SEARCH:
      if (search_take(&train_grid, arg, train_options.config, &err) != 0) argp_error(state, "%s", err.message);
      return 0;
    case TRAIN_KEY_YES:
      train_sure = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* The rows of --help, and the networks' own options behind them. */
static const struct argp *train_own_options(const OpChoice *const *choices, int choice_count) {
  static struct argp_child children[TRAIN_NETWORKS + 1];
  static char text[256], known[160];
  static struct argp_option rows[] = {
      {"network", 'N', "NAME", 0, text, 0},
      {"list", TRAIN_KEY_LIST, NULL, 0, "Train nothing: describe the networks and the data sets", 0},
      {"search", TRAIN_KEY_SEARCH, "OPTION:VALUES", 0,
       "Train once with each value of an option, and compare the validation losses: lr:1e-4..1e-1,log,7 or "
       "optimizer:sgd|adam; several make a grid",
       0},
      {"yes", TRAIN_KEY_YES, NULL, 0, "Search a large grid without asking", 0},
      OPTION_END};
  static const struct argp all = {rows, train_parse, NULL, NULL, children, NULL, NULL};
  const TrainNetwork *n;
  int count = 0;
  snprintf(text, sizeof text, "Network: %s (default: %s)", train_network_names(NULL, known, sizeof known),
           train_choice.network->name);
  for (int i = 0; (n = train_network_at(i)) != NULL; i++)
    if (n->own && train_clash(n, choices, choice_count) == NULL)
      children[count++].argp = train_own[i] = n->own()->options;
  return &all;
}

/* ---------------------------------------------------------------------------------- the network, before all options
 *
 * The defaults of all other options are those of the network. So it must be known first: from the command line, from
 * the file of --config, or from the checkpoint that is used. What is wrong there is said later. */

static Config train_early;

static void train_read_early(int argc, char **argv) {
  static const struct argp_option rows[] = {{"network", 'N', "NAME", 0, "", 0},
                                            {"config", 1, "FILE", 0, "", 0},
                                            {"data", 2, "NAME", 0, "", 0},
                                            {"output-dir", 3, "DIR", 0, "", 0},
                                            {"resume", 'r', NULL, 0, "", 0},
                                            {"predict", 'p', NULL, 0, "", 0},
                                            {"checkpoint", 4, "FILE", 0, "", 0},
                                            {"show-features", 5, "FILE", 0, "", 0},
                                            {"show-excited", 6, "N", OPTION_ARG_OPTIONAL, "", 0},
                                            OPTION_END};
  static const struct argp all = {rows, NULL, NULL, NULL, NULL, NULL, NULL};
  char path[PATH_MAX];
  Error none;
  config_collect(&train_early, &all);
  config_scan(&train_early, argc, argv);
  const char *file = config_value(&train_early, "config");
  if (file && user_path(file, path, sizeof path, &none) == 0) run_config_recall(&train_early, path);
}

/* The network of the checkpoint that is used; NULL: none is. */
static const TrainNetwork *train_network_of_checkpoint(void) {
  TrainState state;
  char typed[PATH_MAX], path[PATH_MAX];
  Error none;
  const int resume = config_value(&train_early, "resume") != NULL;
  const char *folder = config_value(&train_early, "output-dir"),
             *file = resume ? NULL : config_value(&train_early, "checkpoint");
  if (!resume && !config_value(&train_early, "predict") && !config_value(&train_early, "show-features") &&
      !config_value(&train_early, "show-excited"))
    return NULL;
  if (file)
    snprintf(typed, sizeof typed, "%s", file);
  else
    snprintf(typed, sizeof typed, "%s%s/%s", folder ? "" : "runs/", folder ? folder : program_invocation_short_name,
             resume ? "last.state.safetensors" : "best.safetensors");
  if (user_path(typed, path, sizeof path, &none) != 0 ||
      checkpoint_peek(path, resume ? CHECKPOINT_STATE : CHECKPOINT_MODEL, &state, &none) != 0)
    return NULL;
  return train_network_named(state.network, strcspn(state.network, " "));
}

static const Task *train_choose_task(int argc, char **argv, const OpChoice *const *choices, int choice_count) {
  static TaskNetworks networks = {NULL, train_text, train_from_text, train_fit, NULL, train_settings};
  static Task task;
  train_read_early(argc, argv);
  const char *name = config_value(&train_early, "network"), *data = config_value(&train_early, "data");
  const TrainNetwork *saved = train_network_of_checkpoint();
  train_choice.network = train_network_named("lenet", 5);
  if (name && train_network_named(name, strlen(name)))
    train_choice.network = train_network_named(name, strlen(name));
  else if (saved)
    train_choice.network = saved;
  const TrainNetwork *n = train_choice.network;
  const char *clash = train_clash(n, choices, choice_count);
  if (clash) {
    fprintf(stderr, "%s: --network=%s has an option --%s of its own; train trains it, in phase4_training\n",
            program_invocation_short_name, n->name, clash);
    exit(2);
  }
  networks.options = train_own_options(choices, choice_count);
  networks.infer = n->infer ? train_infer : NULL;
  const Task chosen = {
      n->title,
      "Trains a network of this course on a data set, tests it, and keeps the model, a log, the learning "
      "curve and the settings in the output folder. The defaults are those of the network's lesson.",
      train_graph,
      &networks,
      n->data,
      &batch_kernels,
      &sgd,
      n->schedule,
      n->epochs,
      n->batch_size,
      n->hyper,
      choices,
      choice_count,
      data == NULL || strncmp(data, "cifar", 5) == 0 ? n->augment : NULL,
      map_peaks};
  task = chosen;
  return &task;
}

/* An option of another network would do nothing. */
static void train_expect_own_options(void) {
  const TrainNetwork *n;
  for (int i = 0; (n = train_network_at(i)) != NULL; i++) {
    if (train_own[i] == NULL || n == train_choice.network) continue;
    for (const struct argp_option *o = train_own[i]->options; o->name; o++)
      if (config_value(train_options.config, o->name)) {
        fprintf(stderr, "%s: --%s is an option of --network=%s; here the network is %s\n",
                program_invocation_short_name, o->name, n->name, train_choice.network->name);
        exit(2);
      }
  }
}

/* The program: the choices are those of its options beside the usual ones, --conv among them. */
static inline int train_main(int argc, char **argv, const OpChoice *const *choices, int choice_count) {
  Error err;
  const double started = seconds_now();
  app_begin_signals(); /* the file of --config may be a pipe that somebody has to wait for */
  const Task *task = train_choose_task(argc, argv, choices, choice_count);
  app_begin_program(task, &train_options, argc, argv);
  if (train_wants_list) return train_list(&train_options);
  train_expect_own_options();
  const int saved = train_options.resume || train_options.predict || train_options_shows(&train_options);
  if (!saved && train_check_fit(train_options.data, &err) != 0) die("%s", err.message);
  if (train_sure && train_grid.axes == 0) die("--yes is for a large --search; leave it out");
  if (train_grid.axes > 0) return search_run(&train_grid, &train_options, train_choice.network->title, train_sure);
  return app_do(task, &train_options, started);
}

#endif /* PHASE4_TRAINING_TRAIN_MAIN_CUH */

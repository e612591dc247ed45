/* train.cu - trains any network of phases 2 and 3 on any data set.
 *
 *     bazel run //phase4_training:train -- --list                                networks and data sets
 *     bazel run //phase4_training:train -- --network=lenet --data=fashion_mnist --summary
 *     bazel run //phase4_training:train -- --network=lenet --data=fashion_mnist --optimizer=adam
 *     bazel run //phase4_training:train -- --config=my_run.json                  the same from a file
 *     bazel run //phase4_training:train -- --network=mlp --search=lr:1e-3..1,log,7 --epochs=1
 *
 * The networks are in train_networks.cuh, the search is in search*.h; the program around them is common/nn/app.h, as
 * for every network of this course.
 */
#include "common/nn/app.h"
#include "phase2_mlp/05_batches/batches_op.cuh"
#include "phase3_cnn/12_lenet_mnist/map_peaks_op.cuh"
#include "phase4_training/08_train/search.cuh"
#include "phase4_training/08_train/train_list.cuh"

enum { KEY_LIST = 0x101, KEY_SEARCH, KEY_YES };

static int list, yes;
static SearchGrid grid;
static TrainOptions options;
static const struct argp *own[TRAIN_NETWORKS]; /* the networks' own options; NULL: none */

static error_t parse(int key, char *arg, struct argp_state *state) {
  Error err;
  switch (key) {
    case 'N':
      if (train_choose(arg, &err) != 0) argp_error(state, "%s", err.message);
      train_choice.given = 1;
      return 0;
    case KEY_LIST:
      list = 1;
      return 0;
    case KEY_SEARCH:
      if (search_take(&grid, arg, options.config, &err) != 0) argp_error(state, "%s", err.message);
      return 0;
    case KEY_YES:
      yes = 1;
      return 0;
    default:
      return ARGP_ERR_UNKNOWN;
  }
}

/* The rows of --help, and the networks' own options behind them. */
static const struct argp *own_options(void) {
  static struct argp_child children[TRAIN_NETWORKS + 1];
  static char text[256], known[160];
  static struct argp_option rows[] = {
      {"network", 'N', "NAME", 0, text, 0},
      {"list", KEY_LIST, NULL, 0, "Train nothing: describe the networks and the data sets", 0},
      {"search", KEY_SEARCH, "OPTION:VALUES", 0,
       "Train once with each value of an option, and compare the validation losses: lr:1e-4..1e-1,log,7 or "
       "optimizer:sgd|adam; several make a grid",
       0},
      {"yes", KEY_YES, NULL, 0, "Search a large grid without asking", 0},
      OPTION_END};
  static const struct argp all = {rows, parse, NULL, NULL, children, NULL, NULL};
  const TrainNetwork *n;
  int count = 0;
  snprintf(text, sizeof text, "Network: %s (default: %s)", train_network_names(NULL, known, sizeof known),
           train_choice.network->name);
  for (int i = 0; (n = train_network_at(i)) != NULL; i++)
    if (n->own) children[count++].argp = own[i] = n->own()->options;
  return &all;
}

/* ---------------------------------------------------------------------------------- the network, before all options
 *
 * The defaults of all other options are those of the network. So it must be known first: from the command line, from
 * the file of --config, or from the checkpoint that is used. What is wrong there is said later. */

static Config early;

static void read_early(int argc, char **argv) {
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
  config_collect(&early, &all);
  config_scan(&early, argc, argv);
  const char *file = config_value(&early, "config");
  if (file && user_path(file, path, sizeof path, &none) == 0) run_config_recall(&early, path);
}

/* The network of the checkpoint that is used; NULL: none is. */
static const TrainNetwork *network_of_checkpoint(void) {
  TrainState state;
  char typed[PATH_MAX], path[PATH_MAX];
  Error none;
  const int resume = config_value(&early, "resume") != NULL;
  const char *folder = config_value(&early, "output-dir"), *file = resume ? NULL : config_value(&early, "checkpoint");
  if (!resume && !config_value(&early, "predict") && !config_value(&early, "show-features") &&
      !config_value(&early, "show-excited"))
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

static const Task *choose_task(int argc, char **argv) {
  static const OpChoice *const choices[] = {&conv2d_choice};
  static TaskNetworks networks = {NULL, train_text, train_from_text, train_fit, NULL, train_settings};
  static Task task;
  read_early(argc, argv);
  const char *name = config_value(&early, "network"), *data = config_value(&early, "data");
  const TrainNetwork *saved = network_of_checkpoint();
  train_choice.network = train_network_named("lenet", 5);
  if (name && train_network_named(name, strlen(name)))
    train_choice.network = train_network_named(name, strlen(name));
  else if (saved)
    train_choice.network = saved;
  const TrainNetwork *n = train_choice.network;
  networks.options = own_options();
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
      1,
      data == NULL || strncmp(data, "cifar", 5) == 0 ? n->augment : NULL,
      map_peaks};
  task = chosen;
  return &task;
}

/* An option of another network would do nothing. */
static void expect_own_options(void) {
  const TrainNetwork *n;
  for (int i = 0; (n = train_network_at(i)) != NULL; i++) {
    if (own[i] == NULL || n == train_choice.network) continue;
    for (const struct argp_option *o = own[i]->options; o->name; o++)
      if (config_value(options.config, o->name)) {
        fprintf(stderr, "%s: --%s is an option of --network=%s; here the network is %s\n",
                program_invocation_short_name, o->name, n->name, train_choice.network->name);
        exit(2);
      }
  }
}

int main(int argc, char **argv) {
  Error err;
  const double started = seconds_now();
  app_begin_signals(); /* the file of --config may be a pipe that somebody has to wait for */
  const Task *task = choose_task(argc, argv);
  app_begin_program(task, &options, argc, argv);
  if (list) return train_list(&options);
  expect_own_options();
  const int saved = options.resume || options.predict || train_options_shows(&options);
  if (!saved && train_check_fit(options.data, &err) != 0) die("%s", err.message);
  if (yes && grid.axes == 0) die("--yes is for a large --search; leave it out");
  if (grid.axes > 0) return search_run(&grid, &options, train_choice.network->title, yes);
  return app_do(task, &options, started);
}

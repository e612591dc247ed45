/* search.cuh - --search: every combination of some options' values, each an ordinary run in a folder of its own.
 *
 *     train --network=mlp --search=lr:1e-3..1,log,7 --search=optimizer:sgd|adam --epochs=1
 */
#ifndef PHASE4_TRAINING_SEARCH_CUH
#define PHASE4_TRAINING_SEARCH_CUH

#include "common/nn/run_config.h"
#include "phase4_training/08_train/search_report.h"

#define SEARCH_VALIDATION "0.1" /* where no --validation was given */
enum { SEARCH_ASK = 32 };       /* more trials need --yes */
enum { SEARCH_LOOK = 300 };     /* seconds for a look at the values */

/* Of the search, or of what is done with a run: a trial gets none of these, and they cannot be searched. */
static const char *const search_without[] = {"search",        "yes",          "list",    "config",  "output-dir",
                                             "json",          "resume",       "restart", "predict", "checkpoint",
                                             "show-features", "show-excited", "summary", "profile", "nvtx",
                                             "find-lr",       "validation",   "graph",   "stream",  NULL};
enum { SEARCH_OWN = 16 }; /* of these the first so many are no trial's */

static inline int search_is_without(const char *name, int count) {
  for (int i = 0; i < count && search_without[i]; i++)
    if (strcmp(search_without[i], name) == 0) return 1;
  return 0;
}

/* --search=TEXT: the option must be one with a value that says how a run trains. */
static inline int search_take(SearchGrid *grid, const char *text, const Config *config, Error *err) {
  char name[SEARCH_TEXT];
  const char *nearest;
  if (search_name(text, name, err) != 0) return -1;
  const int i = config_find(config, name);
  if (i < 0) {
    error_set(err, "--search=%s: there is no such option", name);
    nearest = config_nearest(config, name);
    return nearest ? error_advise(err, "do you mean %s?", nearest) : error_advise(err, "--help lists them");
  }
  if (search_is_without(name, 1000) || config->rows[i].arg == NULL || !config_is_key(&config->rows[i]))
    return error_set(err,
                     "--search=%s: it cannot be searched; an option with a value that says how to train is expected, "
                     "such as lr",
                     name);
  for (int a = 0; a < grid->axes; a++) /* by another of its names, too */
    if (config_find(config, grid->axis[a].name) == i)
      return error_set(err, "--search=%s is there twice; give all its values in one", name);
  return search_add(grid, text, config_is_whole(&config->rows[i]), err);
}

/* Whether the options beside it allow a search. */
static inline int search_check(const SearchGrid *grid, const TrainOptions *options, int yes, Error *err) {
  const Config *config = options->config;
  const char *mode = train_options_mode(options);
  for (int a = 0; a < grid->axes; a++) {
    const char *name = grid->axis[a].name;
    if (config->rows[config_find(config, name)].typed)
      return error_set(err, "--%s and --search=%s: one of the two", name, name);
  }
  if (mode) return error_set(err, "--search and --%s: one of the two", mode);
  if (options->resume) return error_set(err, "--search goes on by itself where it was stopped; leave --resume out");
  if (grid->trials > SEARCH_ASK && !yes)
    return error_set(err, "the grid has %d trials, each a training run; add --yes, or ask for %d or fewer",
                     grid->trials, (int)SEARCH_ASK);
  return 0;
}

/* The arguments of a trial: what was given, the validation images, and the trial's values. */
static inline json_t *search_arguments(const SearchGrid *grid, int trial, const Config *config) {
  char text[PATH_MAX + 128];
  json_t *arguments = json_array();
  for (int i = 0; i < config->count; i++) {
    const ConfigRow *row = &config->rows[i];
    int searched = 0;
    for (int a = 0; a < grid->axes; a++) searched |= config_find(config, grid->axis[a].name) == i;
    if (row->value == NULL || row->same != i || searched || search_is_without(row->name, SEARCH_OWN)) continue;
    snprintf(text, sizeof text, "--%s%s%s", row->name, row->arg ? "=" : "", row->value);
    json_array_append_new(arguments, json_string(text));
  }
  for (int a = 0; a < grid->axes && trial >= 0; a++) {
    snprintf(text, sizeof text, "--%s=%s", grid->axis[a].name, search_value(grid, trial, a));
    json_array_append_new(arguments, json_string(text));
  }
  return arguments;
}

/* Whether each value is one that its option can have, before the first trial: this program, started to read its options
 * and to end, says so in the option's own words. What depends on the values of other options is for the trials. Returns
 * an exit status. */
static inline int search_check_values(const SearchGrid *grid, const Config *config, const char *program) {
  char text[2 * SEARCH_TEXT + 16];
  json_t *arguments = search_arguments(grid, -1, config), *argument;
  size_t i;
  for (int a = 0; a < grid->axes; a++)
    for (int v = 0; v < grid->axis[a].count; v++) {
      snprintf(text, sizeof text, "--%s=%s", grid->axis[a].name, grid->axis[a].value[v]);
      json_array_append_new(arguments, json_string(text));
    }
  json_array_append_new(arguments, json_string("--" CONFIG_LINE "=" CONFIG_END));
  const char **argv = (const char **)xcalloc(json_array_size(arguments) + 2, sizeof *argv);
  argv[0] = program;
  json_array_foreach(arguments, i, argument) argv[i + 1] = json_string_value(argument);
  Subprocess run = subprocess_run(argv, SEARCH_LOOK);
  const int wrong = run.status == 2;
  if (wrong) fputs(run.err, stderr);
  if (run.status != 0 && !wrong) die("%s, started to look at the values, ended with status %d", program, run.status);
  subprocess_free(&run);
  free(argv);
  json_decref(arguments);
  return wrong ? 2 : 0;
}

/* For a shell; what it would not understand as it is stands between ''. */
static inline void search_print_word(FILE *file, const char *word) {
  const int plain =
      word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+")] == '\0';
  fputs(plain ? " " : " '", file);
  for (; *word; word++)
    if (*word == '\'')
      fputs("'\\''", file);
    else
      fputc(*word, file);
  if (!plain) fputc('\'', file);
}

static inline char *search_repeat(const SearchGrid *grid, const Config *config) {
  char *text = NULL;
  size_t size = 0, i;
  json_t *arguments = search_arguments(grid, -1, config), *argument;
  FILE *file = open_memstream(&text, &size);
  if (file == NULL) die("out of memory");
  fputs("bazel run //phase4_training:train --", file);
  json_array_foreach(arguments, i, argument) search_print_word(file, json_string_value(argument));
  fclose(file);
  json_decref(arguments);
  return text;
}

static inline void search_note(const Search *search, int t) {
  char text[SEARCH_AXES * 2 * SEARCH_TEXT + 16];
  const SearchTrial *trial = &search->trials[t];
  fprintf(stderr, "trial %d of %d: %s: ", t + 1, search->grid->trials,
          search_trial_text(search->grid, t, text, sizeof text));
  if (trial->state == SEARCH_DONE)
    fprintf(stderr, "validation loss %.4f%s\n", trial->loss, trial->again ? ", from before" : "");
  else
    fprintf(stderr, "%s%s\n", search_state_name(trial), trial->again ? ", from before" : "");
}

/* All trials that have no result. -1 as search_trial(). */
static inline int search_trials(Search *search, const TrainOptions *options, const char *program, Error *err) {
  for (int t = 0; t < search->grid->trials; t++) {
    SearchTrial *trial = &search->trials[t];
    if (interrupt_requested()) return error_set_code(err, ERROR_INTERRUPTED, "stopped");
    trial->loss = NAN;
    search_trial_folder(search->grid, t, options->common.output_dir, trial->folder);
    json_t *arguments = search_arguments(search->grid, t, options->config);
    const int begun = !options->restart && search_trial_recall(trial, arguments);
    const int status = trial->again ? 0 : search_trial(trial, program, arguments, begun, err);
    json_decref(arguments);
    if (status != 0) return -1;
    search_note(search, t);
  }
  return 0;
}

static inline void search_print_best(const Search *search, const char *directory) {
  char text[8192];
  const int best = search_best(search);
  search_command(search, best, text, sizeof text);
  printf("\nThe lowest validation loss, %.4f: %s\n", search->trials[best].loss,
         search_trial_text(search->grid, best, text, 1024));
  search_command(search, best, text, sizeof text);
  printf("to train it again: %s\n\n", text);
  printf(
      "search.csv and search.json are in %s, and where gnuplot is installed search.svg and search.png; a folder for "
      "each trial\n",
      directory);
}

/* All trials have ended. */
static inline void search_finish(const Search *search, const TrainOptions *options) {
  Error err;
  const char *directory = options->common.output_dir;
  search_sort(search);
  search_print_table(search);
  if (search_best(search) >= 0) search_print_best(search, directory);
  if (search_write(search, directory, &err) != 0) die("%s", err.message);
  if (search_best(search) < 0) die("no trial of the grid has a loss; look at the rows above, and search elsewhere");
  if (options->common.json && json_result(search_json(search), &err) != 0) die("%s", err.message);
}

/* The whole search. Returns the program's exit status. */
static inline int search_run(const SearchGrid *grid, TrainOptions *options, const char *network, int yes) {
  Error err;
  char program[PATH_MAX], title[256];
  const char *directory = options->common.output_dir;
  if (search_check(grid, options, yes, &err) != 0) {
    fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
    return 2;
  }
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) die("/proc/self/exe cannot be read: %s", strerror(errno));
  program[length] = '\0';
  if (search_check_values(grid, options->config, program) != 0) return 2;
  if (config_value(options->config, "validation") == NULL) config_set(options->config, "validation", SEARCH_VALIDATION);
  if (make_directories(directory, &err) != 0 || run_folder_lock(directory, &err) != 0)
    die("--output-dir: %s", err.message);
  snprintf(title, sizeof title, "%s on %s", network, options->data->title);
  printf("%s: %d trials; %g %% of the training images are the validation images\n", title, grid->trials,
         100 * atof(config_value(options->config, "validation")));
  fflush(stdout);
  interrupt_install();
  Search search = {grid, (SearchTrial *)xcalloc((size_t)grid->trials, sizeof(SearchTrial)),
                   (int *)xcalloc((size_t)grid->trials, sizeof(int)), title, search_repeat(grid, options->config)};
  const int status = search_trials(&search, options, program, &err);
  if (status == 0)
    search_finish(&search, options);
  else if (err.code == ERROR_INTERRUPTED)
    printf("\nstopped; to go on, give the same command again: what has been trained is kept in %s\n", directory);
  else
    die("%s", err.message);
  free(search.trials);
  free(search.order);
  free((void *)search.repeat);
  stdout_finish();
  return status == 0 ? 0 : interrupt_status();
}

#endif /* PHASE4_TRAINING_SEARCH_CUH */

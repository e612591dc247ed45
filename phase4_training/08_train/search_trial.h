/* search_trial.h - one trial of a search: this program again, in a process and a folder of its own.
 *
 * So a trial is an ordinary run, with checkpoints and a log, and one that diverges or fails takes nothing with it.
 * Beside the run's files lies trial.json: the arguments, and, when the run has ended, what came of it. A search that is
 * started again does not repeat trials that have ended with the same arguments, and goes on with the one that was
 * stopped.
 */
#ifndef PHASE4_TRAINING_SEARCH_TRIAL_H
#define PHASE4_TRAINING_SEARCH_TRIAL_H

#include <sys/prctl.h>

#include "common/atomic_file.h"
#include "common/interrupt.h"
#include "common/runfiles.h"
#include "common/subprocess.h"
#include "common/train_log.h"
#include "phase4_training/08_train/search_grid.h"

enum { SEARCH_ARGUMENTS = 192 };

typedef enum SearchState { SEARCH_WAITING, SEARCH_DONE, SEARCH_DIVERGED, SEARCH_REFUSED } SearchState;

typedef struct SearchTrial {
  char folder[PATH_MAX];
  SearchState state;
  int again; /* 1: the result is of an earlier search */
  double loss, accuracy,
      train_loss; /* of the validation images in the best epoch and in the last one; of the last one */
  int best_epoch;
  char why[512]; /* it was refused */
} SearchTrial;

/* DIRECTORY/lr=0.01,optimizer=adam. What a name of a folder had better not have is replaced, and a number says what it
 * was. */
static inline void search_trial_folder(const SearchGrid *grid, int trial, const char *directory, char out[PATH_MAX]) {
  char text[SEARCH_AXES * 2 * SEARCH_TEXT + 16], name[sizeof text];
  unsigned hash = 2166136261u, replaced = 0;
  size_t n = 0;
  search_trial_text(grid, trial, text, sizeof text);
  for (const char *c = text; *c; c++) {
    hash = (hash ^ (unsigned char)*c) * 16777619u; /* FNV-1a */
    if (*c == ' ') continue;
    const int plain = strchr("=,.+-_", *c) || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z');
    name[n++] = plain ? *c : '_';
    replaced |= !plain;
  }
  name[n] = '\0';
  if (replaced)
    snprintf(out, PATH_MAX, "%.3000s/%s,%08x", directory, name, hash);
  else
    snprintf(out, PATH_MAX, "%.3000s/%s", directory, name);
}

static inline void search_trial_path(const SearchTrial *trial, const char *name, char out[PATH_MAX]) {
  snprintf(out, PATH_MAX, "%.4000s/%s", trial->folder, name);
}

/* Takes over what came of a run: the object that it printed with --json. -1: it is something else. */
static inline int search_trial_result(SearchTrial *trial, const json_t *result) {
  if (json_is_true(json_object_get(result, "diverged"))) {
    trial->state = SEARCH_DIVERGED;
    trial->loss = trial->accuracy = trial->train_loss = NAN;
    return 0;
  }
  trial->loss = json_get_number(result, "best_validation_loss");
  trial->accuracy = json_get_number(result, "validation_accuracy");
  trial->train_loss = json_get_number(result, "train_loss");
  trial->best_epoch = (int)json_integer_value(json_object_get(result, "best_epoch"));
  if (!isfinite(trial->loss)) return -1;
  trial->state = SEARCH_DONE;
  return 0;
}

/* 1: the trial has begun before with these arguments; its result, where there is one, is taken over. */
static inline int search_trial_recall(SearchTrial *trial, const json_t *arguments) {
  char path[PATH_MAX];
  search_trial_path(trial, "trial.json", path);
  json_t *saved = json_load_file(path, 0, NULL);
  const int same = json_equal(json_object_get(saved, "arguments"), arguments);
  if (same && search_trial_result(trial, json_object_get(saved, "result")) == 0) trial->again = 1;
  json_decref(saved);
  return same;
}

/* Writes trial.json; `result` NULL: it has none yet. */
static inline int search_trial_write(const SearchTrial *trial, json_t *arguments, json_t *result, Error *err) {
  char path[PATH_MAX];
  AtomicFile file;
  search_trial_path(trial, "trial.json", path);
  if (atomic_file_open(&file, path, err) != 0) return -1;
  json_t *object = json_pack("{s:O}", "arguments", arguments);
  if (result) json_object_set(object, "result", result);
  json_dumpf(object, file.stream, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  fputc('\n', file.stream);
  json_decref(object);
  return atomic_file_commit(&file, err);
}

/* In the process of the trial: Ctrl-C is for the search, which passes it on; when the search dies, the trial stops
 * after its step. */
static pid_t search_process;

static inline void search_trial_begin(void) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != search_process) _exit(143); /* it died before that */
}

/* Runs it to its end. The first Ctrl-C is passed on, so that it saves what it has. */
static inline Subprocess search_trial_run(const char *const *argv) {
  const struct timespec nap = {0, 5 * 1000 * 1000};
  search_process = getpid();
  Subprocess run = subprocess_start_with(argv, 0, search_trial_begin);
  int passed = 0;
  while (!subprocess_ended(&run)) {
    if (interrupt_requested() && !passed) passed = kill(run.pid, SIGTERM) == 0;
    nanosleep(&nap, NULL);
  }
  return run;
}

/* The object on the last line; NULL: there is none. */
static inline json_t *search_last_object(const char *text) {
  size_t end = strlen(text);
  while (end > 0 && text[end - 1] == '\n') end--;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] != '\n') begin--;
  return json_loadb(text + begin, end - begin, 0, NULL);
}

/* The sentence on stderr: its last line but argp's advice, less the program's name. */
static inline void search_sentence(const char *text, char *out, size_t size) {
  const char *line = text, *next;
  snprintf(out, size, "no message");
  for (; *line; line = next) {
    const size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    const char *colon = strstr(line, ": ");
    if (length == 0 || strncmp(line, "Try `", 5) == 0) continue;
    const char *from = colon && colon < line + length ? colon + 2 : line;
    if (strncmp(from, "error: ", 7) == 0) from += 7;
    snprintf(out, size, "%.*s", (int)(line + length - from), from);
  }
}

/* A trial that has no result yet. `arguments`: of the program; the folder and what belongs to the run come besides. -1
 * with a sentence: the search cannot go on; code ERROR_INTERRUPTED: the user stopped it. */
static inline int search_trial(SearchTrial *trial, const char *program, json_t *arguments, int begun, Error *err) {
  const char *argv[SEARCH_ARGUMENTS + 6] = {program}, *text;
  char folder[PATH_MAX + 16], state[PATH_MAX];
  int n = 1;
  size_t i;
  json_t *argument;
  if (make_directories(trial->folder, err) != 0) return -1;
  if (!begun && search_trial_write(trial, arguments, NULL, err) != 0) return -1;
  json_array_foreach(arguments, i, argument) if ((text = json_string_value(argument)) != NULL && n <= SEARCH_ARGUMENTS)
      argv[n++] = text;
  snprintf(folder, sizeof folder, "--output-dir=%s", trial->folder);
  search_trial_path(trial, "last.state.safetensors", state);
  argv[n++] = folder;
  argv[n++] = "--json";
  if (access(state, F_OK) == 0) argv[n++] = begun ? "--resume" : "--restart";
  Subprocess run = search_trial_run(argv);
  json_t *result = search_last_object(run.out);
  int status = 0;
  search_sentence(run.err, trial->why, sizeof trial->why);
  if (interrupt_requested())
    status = error_set_code(err, ERROR_INTERRUPTED, "stopped");
  else if (search_trial_result(trial, result) == 0)
    status = search_trial_write(trial, arguments, result, err);
  else if (run.status == 2)
    trial->state = SEARCH_REFUSED;
  else if (run.status > 128)
    status = error_set(err, "the run in %s was ended by signal %d; give the same command again to go on", trial->folder,
                       run.status - 128);
  else
    status = error_set(err, "the run in %s failed: %s", trial->folder, trial->why);
  json_decref(result);
  subprocess_free(&run);
  return status;
}

#endif /* PHASE4_TRAINING_SEARCH_TRIAL_H */

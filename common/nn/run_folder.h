/* run_folder.h - the folder that a training run writes into: what lies there, who may write, and what becomes of the
 * run before.
 *
 *     log.jsonl, log.csv                      the history (common/train_log.h)
 *     best.safetensors, last.safetensors      the model (checkpoint.h)
 *     last.state.safetensors                  what --resume needs
 *     curve.svg, curve.png, filters.png, misclassified.png
 *     features.png, excited.png               of --show-features and --show-excited
 *     profile.*                               of --profile
 *     config.json                             the settings, for --config (run_config.h)
 *     find_lr.*                               of --find-lr, which comes before a run and stays when one begins
 *     previous/                               the same of the run before
 */
#ifndef COMMON_NN_RUN_FOLDER_H
#define COMMON_NN_RUN_FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/nn/checkpoint.h"
#include "common/runfiles.h"

/* The log moves away first and comes back last: it is never alone where the models are not. */
enum { RUN_LOGS = 2, RUN_STATE = 4, RUN_CONFIG = 14, RUN_FILES = 15 };
static const char *const run_files[RUN_FILES] = {
    "log.jsonl",   "log.csv",     "best.safetensors", "last.safetensors",  "last.state.safetensors",
    "curve.svg",   "curve.png",   "filters.png",      "misclassified.png", "features.png",
    "excited.png", "profile.csv", "profile.svg",      "profile.png",       "config.json"};

/* One run at a time writes into a folder: two would mix their logs and models. The lock goes with the process. */
static inline int run_folder_lock(const char *directory, Error *err) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/.lock", directory);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return error_set(err, "%s cannot be written: %s; name another --output-dir", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return error_set(err, "another run is writing into %s; wait for it, or name another --output-dir", directory);
  return 0;
}

/* A stopped run is worth a question before a new one replaces it: -1 where the folder holds one. */
static inline int run_folder_protect_unfinished(const char *directory, const char *state_path, Error *err) {
  TrainState saved;
  if (checkpoint_peek(state_path, CHECKPOINT_STATE, &saved, NULL) != 0 || checkpoint_finished(&saved)) return 0;
  return error_set(err,
                   "%s holds a run that was stopped in epoch %d of %d; go on with it by --resume, replace it by "
                   "--restart, or name another --output-dir",
                   directory, saved.epoch + 1, saved.epochs);
}

static inline int run_folder_has_model(const char *directory) {
  char path[PATH_MAX + 64];
  for (int i = RUN_LOGS; i <= RUN_STATE; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, run_files[i]);
    if (access(path, F_OK) == 0) return 1;
  }
  return 0;
}

static inline void run_folder_remove(const char *directory, int begin, int end) {
  char path[PATH_MAX + 64];
  for (int i = begin; i < end; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, run_files[i]);
    if (unlink(path) != 0 && errno != ENOENT) die("%s cannot be removed: %s", path, strerror(errno));
  }
}

/* An earlier run's files move into DIRECTORY/previous, in place of what lay there: two runs must not mix, and a new one
 * that fails must not cost the old one. Bit i of the result: run_files[i] was there. */
static inline unsigned run_folder_set_aside(const char *directory) {
  Error err;
  char from[PATH_MAX + 64], to[PATH_MAX + 64];
  unsigned moved = 0;
  snprintf(to, sizeof to, "%s/previous", directory);
  /* A run that was killed before its first checkpoint left its log: the run before it has its own in previous/. */
  if (!run_folder_has_model(directory) && run_folder_has_model(to)) run_folder_remove(directory, 0, RUN_LOGS);
  for (int i = 0; i < RUN_FILES; i++) {
    snprintf(from, sizeof from, "%s/%s", directory, run_files[i]);
    snprintf(to, sizeof to, "%s/previous", directory);
    if (access(from, F_OK) != 0) continue;
    if (make_directories(to, &err) != 0) die("%s", err.message);
    snprintf(to, sizeof to, "%s/previous/%s", directory, run_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved to %s: %s", from, to, strerror(errno));
    moved |= 1u << i;
  }
  if (moved) fprintf(stderr, "%s: note: the earlier run is in %s/previous\n", program_invocation_short_name, directory);
  return moved;
}

/* A new run failed. Where it has saved no state to go on with, its files go, and what it set aside comes back; what
 * else lies in previous/ is of a run before that. */
static inline void run_folder_take_back(const char *directory, unsigned moved) {
  char from[PATH_MAX + 64], to[PATH_MAX + 64];
  snprintf(to, sizeof to, "%s/%s", directory, run_files[RUN_STATE]);
  if (access(to, F_OK) == 0) return;
  run_folder_remove(directory, 0, RUN_STATE);
  run_folder_remove(directory, RUN_CONFIG, RUN_CONFIG + 1);
  if (!moved) return;
  for (int i = RUN_FILES - 1; i >= 0; i--) {
    if (!(moved & 1u << i)) continue;
    snprintf(from, sizeof from, "%s/previous/%s", directory, run_files[i]);
    snprintf(to, sizeof to, "%s/%s", directory, run_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved back to %s: %s", from, to, strerror(errno));
  }
  snprintf(from, sizeof from, "%s/previous", directory);
  rmdir(from); /* unless something else lies there */
  fprintf(stderr, "%s: note: the earlier run is back in %s\n", program_invocation_short_name, directory);
}

/* -1 with a sentence when a checkpoint cannot be written: the files that are there stay as they were. The state comes
 * last: a kill before it costs an epoch, and the resumed run writes the others again. */
static inline int run_folder_save(const char *directory, const Model *net, const TrainState *state, int best,
                                  Error *err) {
  if (make_directories(directory, err) != 0) return -1;
  for (int i = RUN_LOGS + (best ? 0 : 1); i <= RUN_STATE; i++) {
    const CheckpointKind kind = i == RUN_STATE ? CHECKPOINT_STATE : CHECKPOINT_MODEL;
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, run_files[i]);
    if (checkpoint_save(path, kind, net, state, err) != 0) return -1;
  }
  return 0;
}

#endif /* COMMON_NN_RUN_FOLDER_H */

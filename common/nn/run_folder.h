/* run_folder.h - the folder that a training run writes into: what lies there, who may write, and what becomes of the
 * run before.
 *
 *     log.jsonl, log.csv, events.out.tfevents.*  the history (common/train_log.h)
 *     report.html                             what came of it, for people (html_report.h)
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
#include "common/train_log.h"

/* The log moves away first and comes back last: it is never alone where the models are not. */
enum { RUN_LOGS = 2, RUN_STATE = 4, RUN_CONFIG = 14, RUN_FILES = 16, RUN_EVENTS = RUN_FILES };
static const char *const run_files[RUN_FILES] = {
    "log.jsonl",   "log.csv",     "best.safetensors", "last.safetensors",  "last.state.safetensors",
    "curve.svg",   "curve.png",   "filters.png",      "misclassified.png", "features.png",
    "excited.png", "profile.csv", "profile.svg",      "profile.png",       "config.json",
    "report.html"};

/* Who holds the lock wrote it there: ": process 1234, started 2026-11-28 19:20:11"; "" where nobody did. */
static inline void run_folder_holder(int fd, char *text, size_t size) {
  const ssize_t length = pread(fd, text, size - 1, 0);
  text[length > 0 ? length : 0] = '\0';
  for (char *at = text; *at != '\0'; at++)
    if ((unsigned char)*at < ' ') *at = ' ';
}

/* One run at a time writes into a folder: two would mix their logs and models. The lock goes with the process. */
static inline int run_folder_lock(const char *directory, Error *err) {
  char path[PATH_MAX + 16], holder[128], when[32];
  snprintf(path, sizeof path, "%s/.lock", directory);
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return error_set(err, "%s cannot be written: %s; name another --output-dir", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    run_folder_holder(fd, holder, sizeof holder);
    close(fd);
    return error_set(err, "another run is writing into %s%s; wait for it, or name another --output-dir", directory,
                     holder);
  }
  const time_t now = time(NULL);
  struct tm local;
  strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
  const int length = snprintf(holder, sizeof holder, ": process %ld, started %s", (long)getpid(), when);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, holder, (size_t)length, 0) != length)
    return error_set(err, "%s cannot be written: %s; make room, or name another --output-dir", path, strerror(errno));
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
  char path[PATH_MAX + 512];
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

/* The event files of one folder take the place of those of another. 1: there were some. */
static inline int run_folder_move_events(const char *from, const char *to) {
  char old_path[PATH_MAX + NAME_MAX + 32], new_path[PATH_MAX + NAME_MAX + 32];
  EventFileName name = {""};
  if (!event_file_next(from, &name)) return 0;
  train_log_remove_events(to, "");
  do {
    snprintf(old_path, sizeof old_path, "%s/%s", from, name.text);
    snprintf(new_path, sizeof new_path, "%s/%s", to, name.text);
    if (rename(old_path, new_path) != 0) die("%s cannot be moved to %s: %s", old_path, new_path, strerror(errno));
  } while (event_file_next(from, &name));
  return 1;
}

/* An earlier run's files move into DIRECTORY/previous, in place of what lay there: two runs must not mix, and a new one
 * that fails must not cost the old one. Bit i of the result: run_files[i] was there. */
static inline unsigned run_folder_set_aside(const char *directory) {
  Error err;
  char from[PATH_MAX + 64], to[PATH_MAX + 64];
  unsigned moved = 0;
  snprintf(to, sizeof to, "%s/previous", directory);
  /* A run that was killed before its first checkpoint left its log: the run before it has its own in previous/. */
  if (!run_folder_has_model(directory) && run_folder_has_model(to)) {
    run_folder_remove(directory, 0, RUN_LOGS);
    run_folder_remove(directory, RUN_CONFIG, RUN_FILES);
    train_log_remove_events(directory, "");
  }
  for (int i = 0; i < RUN_FILES; i++) {
    snprintf(from, sizeof from, "%s/%s", directory, run_files[i]);
    snprintf(to, sizeof to, "%s/previous", directory);
    if (access(from, F_OK) != 0) continue;
    if (make_directories(to, &err) != 0) die("%s", err.message);
    snprintf(to, sizeof to, "%s/previous/%s", directory, run_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved to %s: %s", from, to, strerror(errno));
    moved |= 1u << i;
  }
  snprintf(to, sizeof to, "%s/previous", directory);
  if (moved && run_folder_move_events(directory, to)) moved |= 1u << RUN_EVENTS;
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
  train_log_remove_events(directory, "");
  snprintf(to, sizeof to, "%s/report.html", directory);
  unlink(to);
  run_folder_remove(directory, RUN_CONFIG, RUN_CONFIG + 1);
  if (!moved) return;
  for (int i = RUN_FILES - 1; i >= 0; i--) {
    if (!(moved & 1u << i)) continue;
    snprintf(from, sizeof from, "%s/previous/%s", directory, run_files[i]);
    snprintf(to, sizeof to, "%s/%s", directory, run_files[i]);
    if (rename(from, to) != 0) die("%s cannot be moved back to %s: %s", from, to, strerror(errno));
  }
  snprintf(from, sizeof from, "%s/previous", directory);
  if (moved & 1u << RUN_EVENTS) run_folder_move_events(from, directory);
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

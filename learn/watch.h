/* watch.h - waits until an exercise is saved or a key is pressed.
 *
 * inotify tells of changes; where it cannot, on a network's file systems or with --poll, the files' times are looked at
 * twice a second. Folders are watched, not files: many editors write a new file and rename it.
 */
#ifndef LEARN_WATCH_H
#define LEARN_WATCH_H

#include "learn/process.h"
#include "learn/tree_lines.h"

#include <sys/inotify.h>
#include <sys/vfs.h>
#include <termios.h>

typedef struct Watch {
  const Tree *tree;
  int inotify; /* -1: polling */
  struct termios before;
  bool raw, keys;
  struct timespec seen[EXERCISES_MAX];                   /* when the exercise's file was written */
  uint64_t lines[EXERCISES_MAX], helpers[EXERCISES_MAX]; /* what stood in its place, and in its file's, then */
  int saved;                                             /* the exercise that was saved last */
} Watch;

/* Changes made on another machine reach no inotify. */
static inline bool watch_is_remote(const char *path) {
  static const unsigned long remote[] = {0x6969 /* NFS */,      0xFF534D42 /* CIFS */,
                                         0xFE534D42 /* SMB2 */, 0x517B /* SMB */,
                                         0x65735546 /* FUSE */, 0x01021997 /* 9p */,
                                         0x00C36400 /* Ceph */, 0x5346414F /* AFS */,
                                         0x47504653 /* GPFS */, 0x0BD00BD0 /* Lustre */};
  struct statfs info;
  if (statfs(path, &info) != 0) return false;
  for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
    if (((unsigned long)info.f_type & 0xFFFFFFFF) == remote[i]) return true;
  return false;
}

static inline uint64_t watch_hash(const char *lines) {
  return lines == NULL ? 0 : hash_of(HASH_BEGIN, lines, strlen(lines));
}

/* Has an exercise's file been saved since this was last asked? Then `saved` is the exercise: the one whose lines are
 * others now, or whose helpers are; where none is, the current one if it is in that file, else that file's first that
 * has not passed. Of several that changed, the current one comes first. */
static inline bool watch_changed(Watch *watch) {
  enum { NOTHING, SAVED, SAVED_UNPASSED, SAVED_CURRENT, HELPERS, HELPERS_CURRENT, LINES, LINES_CURRENT };
  const Tree *tree = watch->tree;
  int best = NOTHING;
  for (int i = 0; i < tree->exercises.count; i++) {
    const Exercise *exercise = &tree->exercises.item[i];
    struct stat info;
    struct timespec now = {0, 0};
    if (stat(tree_path(tree, exercise->file), &info) == 0) now = info.st_mtim;
    if (now.tv_sec == watch->seen[i].tv_sec && now.tv_nsec == watch->seen[i].tv_nsec) continue;
    const uint64_t lines = watch_hash(tree_lines(tree, exercise));
    const uint64_t helpers = watch_hash(tree_helpers(tree, exercise->file));
    const bool current = i == tree->current;
    int rank = current ? SAVED_CURRENT : tree->progress[i].passed ? SAVED : SAVED_UNPASSED;
    if (helpers != watch->helpers[i]) rank = current ? HELPERS_CURRENT : HELPERS;
    if (lines != watch->lines[i]) rank = current ? LINES_CURRENT : LINES;
    watch->seen[i] = now;
    watch->lines[i] = lines;
    watch->helpers[i] = helpers;
    if (rank <= best) continue;
    best = rank;
    watch->saved = i;
  }
  return best != NOTHING;
}

static inline void watch_open(Watch *watch, const Tree *tree, bool poll_files) {
  memset(watch, 0, sizeof *watch);
  watch->tree = tree;
  watch->inotify = poll_files || watch_is_remote(tree->root) ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  for (int i = 0; i < tree->exercises.count && watch->inotify >= 0; i++) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", tree_path(tree, tree->exercises.item[i].file));
    *strrchr(folder, '/') = '\0';
    if (inotify_add_watch(watch->inotify, folder, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM) < 0) {
      close(watch->inotify);
      watch->inotify = -1; /* the system's number of watches is used up */
    }
  }
  watch->keys = true;
  if (tcgetattr(STDIN_FILENO, &watch->before) == 0) {
    struct termios raw = watch->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* keys as they are pressed; Ctrl-C still ends the program */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    watch->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  watch_changed(watch);
}

static inline void watch_close(Watch *watch) {
  if (watch->raw) tcsetattr(STDIN_FILENO, TCSANOW, &watch->before);
  if (watch->inotify >= 0) close(watch->inotify);
}

/* The key that was pressed, 0 when an exercise has been saved (`saved`), -1 when neither happened within the time, 'q'
 * when there is nobody left to press keys. */
static inline int watch_wait(Watch *watch, double seconds) {
  double end = seconds_now() + seconds;
  for (;;) {
    struct pollfd ready[] = {{watch->keys ? STDIN_FILENO : -1, POLLIN, 0}, {watch->inotify, POLLIN, 0}};
    double left = end - seconds_now();
    int nap = (int)(1000 * (left < 0 ? 0 : left));
    if (watch->inotify < 0 && nap > 500) nap = 500;
    if (poll(ready, 2, nap) < 0 && errno != EINTR) return 'q';
    if (ready[0].revents != 0) {
      char key;
      if (read(STDIN_FILENO, &key, 1) == 1) return (unsigned char)key;
      return 'q';
    }
    if (ready[1].revents != 0) {
      char events[4096];
      while (read(watch->inotify, events, sizeof events) > 0) {
      }
      struct timespec settle = {0, 50000000}; /* an editor may write more than one file */
      nanosleep(&settle, NULL);
      while (read(watch->inotify, events, sizeof events) > 0) {
      }
    }
    if (watch_changed(watch)) return 0;
    if (seconds_now() >= end) return -1;
  }
}

#endif /* LEARN_WATCH_H */

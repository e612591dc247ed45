/* prepare.h - compiles what the first check of each lesson would compile of ours: judges, workers without the student's
 * part, references. `init` lets this run in the background, at the lowest priority; what is compiled already stays, so
 * that it can be ended at any time and goes on where it was.
 */
#ifndef LEARN_PREPARE_H
#define LEARN_PREPARE_H

#include "learn/init.h"
#include "learn/view.h"

#include <sys/mman.h>
#include <sys/resource.h>

/* Held, and rewritten, by whoever prepares: "PID DONE COUNT". */
static inline const char *prepare_file(const Tree *tree) { return tree_path(tree, ".learn/build/prepare"); }

typedef struct Prepare {
  int pid, done, count; /* pid: 0 when nobody prepares */
} Prepare;

static inline Prepare prepare_look(const Tree *tree) {
  Prepare prepare = {0, 0, 0};
  Text text = {0};
  const int file = open(prepare_file(tree), O_RDONLY | O_CLOEXEC);
  if (file < 0) return prepare;
  const bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  if (!held || text_read_file(&text, prepare_file(tree), NULL) != 0) return prepare;
  if (sscanf(text.bytes, "%d %d %d", &prepare.pid, &prepare.done, &prepare.count) != 3) prepare.pid = 0;
  text_free(&text);
  return prepare;
}

/* "" when nobody prepares. */
static inline const char *prepare_text(const Tree *tree) {
  const Prepare prepare = prepare_look(tree);
  if (prepare.pid == 0) return "";
  return keep_printf(
      "The checks' own programs are being compiled in the background: %d of %d are done. `%s prepare "
      "--stop` ends that.",
      prepare.done, prepare.count, command_name());
}

static inline int prepare_stop(const Tree *tree) {
  const Prepare prepare = prepare_look(tree);
  if (prepare.pid == 0) printf("\n  Nothing is being prepared.\n\n");
  if (prepare.pid == 0) return 0;
  kill(prepare.pid, SIGTERM); /* the others end with it */
  for (int i = 0; i < 500 && prepare_look(tree).pid != 0; i++) usleep(10000);
  printf("\n  Stopped: %d of %d are done. `%s prepare` continues.\n\n", prepare.done, prepare.count, command_name());
  return 0;
}

typedef struct Shared {
  int next, done, failed; /* check programs */
} Shared;

/* Takes one check program after the other, until none is left. */
static inline void prepare_work(const Tree *tree, const int *first, int count, Shared *shared) {
  const Exercise *exercises = tree->exercises.item;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (int mine; (mine = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < count;) {
    Error err;
    for (int i = first[mine]; i < tree->exercises.count; i++) {
      if (strcmp(exercises[i].check, exercises[first[mine]].check) != 0) continue;
      if (verdict_prepare(tree, &exercises[i], &err) == 0) continue;
      fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, err.message);
      __atomic_fetch_add(&shared->failed, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&shared->done, 1, __ATOMIC_RELAXED);
  }
}

static inline void prepare_note(int file, int done, int count) {
  const char *line = keep_printf("%d %d %d\n", (int)getpid(), done, count);
  if (pwrite(file, line, strlen(line), 0) > 0 && view_is_terminal()) printf("\r  %d of %d check programs", done, count);
  fflush(stdout);
}

/* One process per core; a check program's exercises are one process's, for they share its judge. */
static inline int prepare_all(const Tree *tree) {
  int first[EXERCISES_MAX], count = 0, status;
  for (int i = 0, j; i < tree->exercises.count; i++) {
    for (j = 0; strcmp(tree->exercises.item[j].check, tree->exercises.item[i].check) != 0;) j++;
    if (j == i) first[count++] = i;
  }
  Error err;
  if (make_parent(prepare_file(tree), &err) != 0) die("%s", err.message);
  const int file = open(prepare_file(tree), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) die("cannot write %s: %s", prepare_file(tree), strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    printf("\n");
    say_indented(2, prepare_text(tree));
    printf("\n");
    return 0;
  }
  Shared *shared = (Shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) die("out of memory");
  int cores = (int)sysconf(_SC_NPROCESSORS_ONLN), working = 0, shown = -1;
  for (int core = 0; core < cores; core++) {
    const pid_t child = fork();
    if (child == 0) {
      close(file); /* the lock is the parent's alone */
      prepare_work(tree, first, count, shared);
      _exit(0);
    }
    working += child > 0;
  }
  while (working > 0) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      working--;
      shared->failed += status != 0;
    }
    if (shown != shared->done) prepare_note(file, shown = shared->done, count);
    if (ended <= 0) usleep(100000);
  }
  if (view_is_terminal()) printf("\r\033[K");
  if (shared->failed == 0)
    printf("\n  %d exercises: the programs that their checks need are compiled.\n\n", tree->exercises.count);
  return shared->failed == 0 ? 0 : 1;
}

/* Goes on after this program has ended. */
static inline void prepare_in_background(const Tree *tree) {
  fflush(stdout);
  if (fork() != 0) return;
  setsid();
  if (nice(19) == -1) errno = 0;
  if (make_parent(prepare_file(tree), NULL) != 0) _exit(1);
  const int none = open("/dev/null", O_RDONLY);
  const int log = open(tree_path(tree, ".learn/build/prepare.log"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  dup2(none, 0);
  dup2(log >= 0 ? log : none, 1);
  dup2(log >= 0 ? log : none, 2);
  if (chdir("/") != 0) errno = 0;
  _exit(prepare_all(tree));
}

/* The emulator's runtime, where Bazel has built it: into simtcc's cache, as if simtcc had. Without it the first check
 * builds it, too. */
static inline void prepare_runtime(void) {
  char archive[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (runfiles_find("simt/simtcc_cache.tar", archive, sizeof archive, NULL) != 0) return;
  if (cache == NULL || cache[0] == '\0') cache = keep_printf("%s/.cache", home != NULL ? home : "/tmp");
  const char *fresh = keep_printf("%s/simtcc/.unpack.%d", cache, (int)getpid());
  if (make_directories(fresh, NULL) != 0) return;
  const char *argv[] = {"tar", "-x", "-m", "-f", archive, "-C", fresh, NULL};
  ProcessSpec spec = process_spec(argv);
  Process process;
  spec.seconds = 60;
  const char *unpacked = keep_printf("%s/simtcc", fresh);
  DIR *dir = process_run(&process, &spec, NULL) == 0 && process.status == 0 ? opendir(unpacked) : NULL;
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
    if (entry->d_name[0] != '.') /* it fails where there is one already, and that is as good */
      rename(keep_printf("%s/%s", unpacked, entry->d_name), keep_printf("%s/simtcc/%s", cache, entry->d_name));
  if (dir != NULL) closedir(dir);
  remove_folder(fresh);
}

#endif /* LEARN_PREPARE_H */

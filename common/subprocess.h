/* subprocess.h - runs a program and keeps what it printed: in tests above all.
 *
 *     const char *argv[] = {program, "--epochs=1", NULL};
 *     Subprocess run = subprocess_run(argv, 60);
 *     assert_int_equal(run.status, 0);
 *     assert_non_null(strstr(run.out, "test accuracy"));
 *     subprocess_free(&run);
 *
 * subprocess_start() and subprocess_wait() are the two halves, for a test that sends signals in between.
 */
#ifndef COMMON_SUBPROCESS_H
#define COMMON_SUBPROCESS_H

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"

typedef struct Subprocess {
  pid_t pid;
  int status; /* exit status; 128 + n when signal n ended it; 124 when the time was up */
  int out_fd, err_fd;
  char *out, *err; /* what it printed on stdout and stderr */
} Subprocess;

/* An unnamed file; a file never fills up as a pipe does, so nobody has to read while the program runs. */
static inline int subprocess_file(void) {
  FILE *file = tmpfile();
  if (file == NULL) die("cannot make a temporary file: %s", strerror(errno));
  int fd = dup(fileno(file));
  fclose(file);
  return fd;
}

static inline char *subprocess_text(int fd) {
  off_t size = lseek(fd, 0, SEEK_END);
  char *text = (char *)xcalloc((size_t)size + 1, 1);
  ssize_t got = pread(fd, text, (size_t)size, 0);
  text[got < 0 ? 0 : got] = '\0';
  close(fd);
  return text;
}

/* max_file_bytes > 0 limits the size of any file that the program writes, as a full disk would. `begin`, where it is
 * not NULL, is called in the new process. */
static inline Subprocess subprocess_start_with(const char *const *argv, long max_file_bytes, void (*begin)(void)) {
  Subprocess run;
  memset(&run, 0, sizeof run);
  run.out_fd = subprocess_file();
  run.err_fd = subprocess_file();
  fflush(NULL);
  run.pid = fork();
  if (run.pid < 0) die("cannot fork: %s", strerror(errno));
  if (run.pid == 0) {
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(run.out_fd, 1);
    dup2(run.err_fd, 2);
    if (max_file_bytes > 0) {
      struct rlimit limit = {(rlim_t)max_file_bytes, (rlim_t)max_file_bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (begin) begin();
    execv(argv[0], (char *const *)argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  return run;
}

static inline Subprocess subprocess_start(const char *const *argv, long max_file_bytes) {
  return subprocess_start_with(argv, max_file_bytes, NULL);
}

/* Whether it has ended; then its status and what it printed are there. */
static inline int subprocess_ended(Subprocess *run) {
  int status = 0;
  const pid_t ended = waitpid(run->pid, &status, WNOHANG);
  if (ended == 0) return 0;
  if (ended != run->pid) die("cannot wait for process %ld: %s", (long)run->pid, strerror(errno));
  run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run->out = subprocess_text(run->out_fd);
  run->err = subprocess_text(run->err_fd);
  return 1;
}

/* Waits at most `seconds`, then kills. */
static inline void subprocess_wait(Subprocess *run, double seconds) {
  struct timespec nap = {0, 5 * 1000 * 1000};
  int killed = 0;
  for (double waited = 0; !subprocess_ended(run); waited += 0.005) {
    if (waited > seconds && !killed) {
      kill(run->pid, SIGKILL);
      killed = 1;
    }
    nanosleep(&nap, NULL);
  }
  if (killed) run->status = 124;
}

static inline Subprocess subprocess_run(const char *const *argv, double seconds) {
  Subprocess run = subprocess_start(argv, 0);
  subprocess_wait(&run, seconds);
  return run;
}

static inline void subprocess_free(Subprocess *run) {
  free(run->out);
  free(run->err);
}

#endif /* COMMON_SUBPROCESS_H */

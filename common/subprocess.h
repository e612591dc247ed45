/* subprocess.h - runs a program from a test and keeps what it printed.
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

/* max_file_bytes > 0 limits the size of any file that the program writes, as a full disk would. */
static inline Subprocess subprocess_start(const char *const *argv, long max_file_bytes) {
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
    execv(argv[0], (char *const *)argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  return run;
}

/* Waits at most `seconds`, then kills. */
static inline void subprocess_wait(Subprocess *run, double seconds) {
  struct timespec nap = {0, 5 * 1000 * 1000};
  int status = 0, killed = 0;
  pid_t ended;
  for (double waited = 0; (ended = waitpid(run->pid, &status, WNOHANG)) == 0; waited += 0.005) {
    if (waited > seconds && !killed) {
      kill(run->pid, SIGKILL);
      killed = 1;
    }
    nanosleep(&nap, NULL);
  }
  if (ended != run->pid) die("cannot wait for process %ld: %s", (long)run->pid, strerror(errno));
  run->status = killed ? 124 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run->out = subprocess_text(run->out_fd);
  run->err = subprocess_text(run->err_fd);
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

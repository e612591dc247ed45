/* pool.h - work for several processors: each piece in a process of its own, as many at a time as there are slots.
 *
 *     static void work(int piece, int slot, FILE *result, void *context);     // in the child
 *
 *     pool_open(&pool, 4);
 *     while (more || pool.running > 0) {
 *       while (more && pool_has_room(&pool)) pool_start(&pool, piece, work, context, &err);
 *       PoolDone done;
 *       if (pool_wait(&pool, 0.2, &done)) ...               // done.piece has ended; done.result is what it wrote
 *     }
 *
 * A child is a copy of its parent: it sees all that the parent knew when it started. What it writes to `result` comes
 * back; all else is lost. A process that crashes is only a piece without a whole result.
 */
#ifndef LEARN_POOL_H
#define LEARN_POOL_H

#include "learn/process.h"

enum { POOL_SLOTS = 256 };

typedef struct Pool {
  int slots, running;
  struct {
    pid_t pid; /* 0: free */
    int piece, fd;
    double begin;
  } slot[POOL_SLOTS];
} Pool;

typedef struct PoolDone {
  int piece;
  char *result; /* to be freed */
  size_t length;
  int status; /* exit status, or 128 + the signal */
  double seconds;
} PoolDone;

/* The processors that this process may use. */
static inline int pool_processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count < 1 ? 1 : count > POOL_SLOTS ? POOL_SLOTS : count;
}

static inline void pool_open(Pool *pool, int slots) {
  sigset_t ended;
  memset(pool, 0, sizeof *pool);
  pool->slots = slots;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL); /* pool_wait() asks for it: none is missed between a look and a wait */
}

static inline bool pool_has_room(const Pool *pool) { return pool->running < pool->slots; }

static inline int pool_start(Pool *pool, int piece, void (*work)(int, int, FILE *, void *), void *context, Error *err) {
  int slot = 0;
  while (pool->slot[slot].pid != 0) slot++;
  int fd = memfd_create("result", MFD_CLOEXEC);
  if (fd < 0) return error_set(err, "no file in memory: %s", strerror(errno));
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &ended, NULL); /* or all that it starts would inherit that */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    FILE *result = fdopen(fd, "wb");
    work(piece, slot, result, context);
    _exit(fclose(result) == 0 ? 0 : 1);
  }
  if (pid < 0) {
    close(fd);
    return error_set(err, "cannot start a process: %s", strerror(errno));
  }
  pool->slot[slot].pid = pid;
  pool->slot[slot].piece = piece;
  pool->slot[slot].fd = fd;
  pool->slot[slot].begin = seconds_now();
  pool->running++;
  return 0;
}

/* For how long the pieces that `wanted` is true for have been at work, together. */
static inline double pool_seconds(const Pool *pool, bool (*wanted)(int piece, void *context), void *context) {
  double sum = 0;
  for (int i = 0; i < pool->slots; i++)
    if (pool->slot[i].pid != 0 && wanted(pool->slot[i].piece, context)) sum += seconds_now() - pool->slot[i].begin;
  return sum;
}

static inline void pool_signal(const Pool *pool, int number) {
  for (int i = 0; i < pool->slots; i++)
    if (pool->slot[i].pid != 0) kill(pool->slot[i].pid, number);
}

/* A piece that has ended, if there is one. */
static inline bool pool_collect(Pool *pool, PoolDone *done) {
  for (int i = 0; i < pool->slots; i++) {
    int status;
    struct stat info;
    if (pool->slot[i].pid == 0 || waitpid(pool->slot[i].pid, &status, WNOHANG) <= 0) continue;
    done->piece = pool->slot[i].piece;
    done->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    done->seconds = seconds_now() - pool->slot[i].begin;
    done->length = fstat(pool->slot[i].fd, &info) == 0 ? (size_t)info.st_size : 0;
    done->result = (char *)xcalloc(done->length + 1, 1);
    ssize_t got = pread(pool->slot[i].fd, done->result, done->length, 0);
    done->length = got > 0 ? (size_t)got : 0;
    close(pool->slot[i].fd);
    pool->slot[i].pid = 0;
    pool->running--;
    return true;
  }
  return false;
}

/* Waits until a piece has ended, at most so long, or until a signal comes. False: none has. */
static inline bool pool_wait(Pool *pool, double seconds, PoolDone *done) {
  const double end = seconds_now() + seconds;
  sigset_t ended;
  memset(done, 0, sizeof *done);
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  while (!pool_collect(pool, done)) {
    double left = end - seconds_now();
    if (left <= 0) return false;
    const struct timespec time = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
    if (sigtimedwait(&ended, NULL, &time) < 0 && errno == EINTR) return false;
  }
  return true;
}

#endif /* LEARN_POOL_H */

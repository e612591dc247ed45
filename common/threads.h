/* threads.h - how many CPU threads, and whether their memory fits.
 *
 *     int threads = threads_set(0);      // 0: one per core
 *
 * A program that uses them begins with threads_begin.h.
 */
#ifndef COMMON_THREADS_H
#define COMMON_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/error.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static inline int threads_can_map(size_t mebibytes) {
  void *probe = mmap(NULL, mebibytes << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) munmap(probe, mebibytes << 20);
  return probe != MAP_FAILED;
}

/* Ends the program with a sentence where a limit (ulimit -v) leaves less than so much address space to `what`: OpenBLAS
 * tries again for ever instead. */
static inline void threads_expect_memory(size_t mebibytes, const char *what) {
  if (threads_can_map(mebibytes)) return;
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  size_t fits = 0;
  for (size_t fails = mebibytes; fails - fits > 1;) {
    size_t middle = fits + (fails - fits) / 2;
    if (threads_can_map(middle))
      fits = middle;
    else
      fails = middle;
  }
  die("%s need %zu MiB of address space, and the limit of this shell (ulimit -v: %zu MiB in all) leaves %zu MiB; raise "
      "it "
      "by %zu MiB, or use fewer threads (OMP_NUM_THREADS=1)",
      what, mebibytes, (size_t)limit.rlim_cur >> 20, fits, mebibytes - fits);
}

/* The number of threads of a parallel region. */
static inline int threads_most(void) {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

#ifdef _OPENMP
static inline void *threads_wait(void *gate) {
  pthread_mutex_lock((pthread_mutex_t *)gate);
  pthread_mutex_unlock((pthread_mutex_t *)gate);
  return NULL;
}

/* How many of `wanted` threads can be there at once, this one included. *reason: what pthread_create() says, or 0. */
static inline int threads_possible(int wanted, int *reason) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_t *thread = (pthread_t *)xcalloc((size_t)wanted, sizeof *thread);
  int count = 1;
  pthread_mutex_lock(&gate);
  *reason = 0;
  while (count < wanted && (*reason = pthread_create(&thread[count], NULL, threads_wait, &gate)) == 0) count++;
  pthread_mutex_unlock(&gate);
  for (int i = 1; i < count; i++) pthread_join(thread[i], NULL);
  free(thread);
  return count;
}
#endif

/* Uses `wanted` threads, or one per core for 0. Returns how many. Ends the program with a sentence where they cannot
 * all be started; OpenMP's runtime would end it without naming the cause. */
static inline int threads_set(int wanted) {
#ifdef _OPENMP
  int reason;
  if (wanted > 0) omp_set_num_threads(wanted);
  wanted = omp_get_max_threads();
  const int possible = threads_possible(wanted, &reason);
  if (possible < wanted)
    die("of %d threads only %d can be started (%s): a limit on memory (ulimit -v) or on processes (ulimit -u) is in "
        "the "
        "way; raise it, or use fewer threads (--threads, OMP_NUM_THREADS)",
        wanted, possible, strerror(reason));
  return wanted;
#else
  (void)wanted;
  return 1;
#endif
}

#endif /* COMMON_THREADS_H */

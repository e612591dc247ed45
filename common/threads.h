/* threads.h - CPU threads that wait politely.
 *
 *     int main(int argc, char **argv) {
 *       threads_begin(argv);              // first of all: it may start the program anew
 *       ...
 *       int threads = threads_set(0);     // 0: one a core
 *
 * A thread that waits at the end of an OpenMP loop spins before it sleeps; GCC's runtime lets it spin for milliseconds.
 * That is right on an idle machine and a disaster beside one other busy program: the spinning thread holds the core
 * that the thread it waits for needs. Try it: with something else busy, a training step of LeNet-5 on two cores
 *
 *     GOMP_SPINCOUNT=300000 bazel-bin/phase3_cnn/lenet_bench --device=cpu        OpenMP's habit: some 100 ms
 *     bazel-bin/phase3_cnn/lenet_bench --device=cpu                              ours: 3 or 4 ms
 *
 * The runtime reads that limit when the program is loaded and never again, so threads_begin() sets it and executes the
 * program a second time. A user's own setting is respected.
 */
#ifndef COMMON_THREADS_H
#define COMMON_THREADS_H

#include <stdlib.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* Returns in a program whose threads wait politely, or, when /proc is not there, in one that does not. */
static inline void threads_begin(char **argv) {
#ifdef _OPENMP
  if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL) return;
  if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0) execv("/proc/self/exe", argv);
#else
  (void)argv;
#endif
}

/* Uses `wanted` threads, or one a core for 0. Returns how many. */
static inline int threads_set(int wanted) {
#ifdef _OPENMP
  if (wanted > 0) omp_set_num_threads(wanted);
  return omp_get_max_threads();
#else
  (void)wanted;
  return 1;
#endif
}

#endif /* COMMON_THREADS_H */

/* threads_begin.h - for the file with main(): libraries begin with threads that wait politely.
 *
 *     #include "common/threads_begin.h"
 *
 *     int main(void) {
 *       threads_begin();                  // first of all; Ctrl-C and SIGTERM come from here on
 *
 * A thread that waits at the end of an OpenMP loop spins before it sleeps; GCC's runtime lets it spin for milliseconds.
 * That is right on an idle machine and a disaster beside one other busy program: the spinning thread holds the core
 * that the thread it waits for needs. Try it: with something else busy, a training step of LeNet-5 on two cores
 *
 *     GOMP_SPINCOUNT=300000 .../lenet_bench --device=cpu        OpenMP's habit: some 100 ms
 *     .../lenet_bench --device=cpu                              ours: 3 or 4 ms
 *
 * OpenBLAS starts a thread per core when it is loaded, with 128 MiB of address space each; where a limit (ulimit -v)
 * leaves less, it tries for ever or ends the program without a sentence. The programs call it from threads of their
 * own, so it is asked for one.
 *
 * Both libraries read their settings once, before main(). So this header puts a function into .preinit_array, which the
 * loader calls before any library begins. It completes the environment and executes the program a second time. A
 * user's own settings are respected, except for threads of OpenBLAS that do not fit.
 */
#ifndef COMMON_THREADS_BEGIN_H
#define COMMON_THREADS_BEGIN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/threads.h"

static inline void threads_hold_signals(int how) {
  sigset_t stopping;
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGINT);
  sigaddset(&stopping, SIGTERM);
  sigprocmask(how, &stopping, NULL);
}

/* Ctrl-C and SIGTERM were held back while the program was executed again, because a handler does not survive that. */
static inline void threads_begin(void) { threads_hold_signals(SIG_UNBLOCK); }

/* The value of `name`, which ends in =; NULL if it is not set. getenv() does not work yet. */
static inline const char *threads_setting(char **env, const char *name) {
  for (; *env != NULL; env++)
    if (strncmp(*env, name, strlen(name)) == 0) return *env + strlen(name);
  return NULL;
}

static inline void threads_before_libraries(int argc, char **argv, char **env) {
  static char politely[] = "GOMP_SPINCOUNT=1000", alone[] = "OPENBLAS_NUM_THREADS=1";
  enum { MEBIBYTES = 128 + 8 }; /* of a thread of OpenBLAS: its buffer, its stack */
  const int spins = !threads_setting(env, "GOMP_SPINCOUNT=") && !threads_setting(env, "OMP_WAIT_POLICY=");
  const char *wanted = threads_setting(env, "OPENBLAS_NUM_THREADS=");
  int count = 0, kept = 0;
  (void)argc;
  if (wanted != NULL) {
    const long cores = sysconf(_SC_NPROCESSORS_CONF), asked = atol(wanted), threads = asked < cores ? asked : cores;
    if (threads > 1 && !threads_can_map((size_t)threads * MEBIBYTES)) {
      dprintf(2,
              "OPENBLAS_NUM_THREADS=%s needs %ld MiB of address space, more than the limit of this shell (ulimit -v) "
              "leaves; using OPENBLAS_NUM_THREADS=1\n",
              wanted, threads * MEBIBYTES);
      wanted = NULL;
    }
  }
  if (!spins && wanted != NULL) return;
  while (env[count] != NULL) count++;
  char **const completed = (char **)malloc(((size_t)count + 3) * sizeof *completed);
  if (completed == NULL) return;
  for (int i = 0; i < count; i++)
    if (wanted != NULL || strncmp(env[i], alone, strlen(alone) - 1) != 0) completed[kept++] = env[i];
  if (spins) completed[kept++] = politely;
  if (wanted == NULL) completed[kept++] = alone;
  completed[kept] = NULL;
  threads_hold_signals(SIG_BLOCK);
  execve("/proc/self/exe", argv, completed);
  threads_hold_signals(SIG_UNBLOCK); /* no /proc: an impolite program is better than none */
  free(completed);
}

__attribute__((section(".preinit_array"), used)) static void (*threads_preinit)(int, char **,
                                                                                char **) = threads_before_libraries;

#endif /* COMMON_THREADS_BEGIN_H */

/* cpu_threads.c - cpu_threads.h: one number says what there is to do, and a thread takes a task by changing it.
 *
 *     ticket   job << 32 | threads << 24 | tasks that nobody has taken yet
 *
 * A compare-and-swap of the whole number takes a task of this job and no other. From then on the caller waits for
 * it, so what `run` and `arg` are stays. A thread that comes late finds no tasks, or those of the next job.
 */
#define _GNU_SOURCE
#include "phase5_production/08_engine/cpu_threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum { SPIN = 2000, TASK_BITS = 24 };

static struct {
  uint64_t ticket;
  long done; /* tasks of the job */
  CpuTask run;
  void *arg;
  long tasks;
  int started;  /* threads beside the caller */
  int sleepers; /* of them, those that wait for `wake` */
  pthread_mutex_t lock, caller;
  pthread_cond_t wake;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .caller = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static __thread bool in_task;

static void cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("" ::: "memory");
#endif
}

static uint64_t ticket_now(void) { return __atomic_load_n(&pool.ticket, __ATOMIC_SEQ_CST); }
static long ticket_tasks(uint64_t ticket) { return (long)(ticket & ((1u << TASK_BITS) - 1)); }
static int ticket_threads(uint64_t ticket) { return (int)(ticket >> TASK_BITS & 255); }

/* One task of the job that is there; false: there is none for this thread. */
static bool take_task(int thread) {
  uint64_t ticket = ticket_now();
  do {
    if (ticket_tasks(ticket) == 0 || thread >= ticket_threads(ticket)) return false;
  } while (!__atomic_compare_exchange_n(&pool.ticket, &ticket, ticket - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  pool.run(pool.arg, pool.tasks - ticket_tasks(ticket), thread);
  __atomic_add_fetch(&pool.done, 1, __ATOMIC_RELEASE);
  return true;
}

static bool work_for(int thread) {
  const uint64_t ticket = ticket_now();
  return ticket_tasks(ticket) > 0 && thread < ticket_threads(ticket);
}

static void *thread_main(void *number) {
  const int thread = (int)(intptr_t)number;
  in_task = true;
  for (;;) {
    while (take_task(thread)) continue;
    int spins = 0;
    while (spins < SPIN && !work_for(thread)) {
      cpu_pause();
      spins++;
    }
    if (spins < SPIN) continue;
    pthread_mutex_lock(&pool.lock);
    __atomic_add_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    while (!work_for(thread)) pthread_cond_wait(&pool.wake, &pool.lock);
    __atomic_sub_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.lock);
  }
  return NULL;
}

/* As many threads as are wanted, or as the system gives. */
static void start_threads(int wanted) {
  while (pool.started + 1 < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)(pool.started + 1)) != 0) return;
    pthread_detach(thread);
    pool.started++;
  }
}

static void run_alone(long tasks, CpuTask run, void *arg) {
  for (long task = 0; task < tasks; task++) run(arg, task, 0);
}

void cpu_parallel(long tasks, int threads, CpuTask run, void *arg) {
  if (threads > CPU_MOST_THREADS) threads = CPU_MOST_THREADS;
  if (threads > tasks) threads = (int)tasks;
  if (threads <= 1 || in_task || tasks >= 1l << TASK_BITS || pthread_mutex_trylock(&pool.caller) != 0) {
    run_alone(tasks, run, arg);
    return;
  }
  start_threads(threads);
  in_task = true; /* also the caller's tasks */
  pool.run = run;
  pool.arg = arg;
  pool.tasks = tasks;
  __atomic_store_n(&pool.done, 0, __ATOMIC_RELAXED); /* all tasks of the last job are done: nobody else writes it */
  const uint64_t job = (ticket_now() >> 32) + 1;
  __atomic_store_n(&pool.ticket, job << 32 | (uint64_t)threads << TASK_BITS | (uint64_t)tasks, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) > 0) {
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
  }
  while (take_task(0)) continue;
  for (int spins = 0; __atomic_load_n(&pool.done, __ATOMIC_ACQUIRE) < tasks; spins++)
    if (spins < SPIN)
      cpu_pause();
    else
      sched_yield(); /* who has taken a task may wait for this processor */
  in_task = false;
  pthread_mutex_unlock(&pool.caller);
}

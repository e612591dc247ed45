/* cpu_threads_test.cu - tasks are done once each, by threads of their own numbers, from one caller or from several. */
#include "common/test.h"

#include "phase5_production/08_engine/cpu_threads.h"

#include <pthread.h>

enum { TASKS = 1000, ROUNDS = 300 };

typedef struct Work {
  int done[TASKS], running[CPU_MOST_THREADS], wrong;
  int most; /* threads */
} Work;

static void count_task(void *arg, long task, int thread) {
  Work *work = (Work *)arg;
  if (thread < 0 || thread >= work->most) __atomic_add_fetch(&work->wrong, 1, __ATOMIC_RELAXED);
  /* a thread's number is nobody else's as long as its task runs */
  if (__atomic_exchange_n(&work->running[thread], 1, __ATOMIC_ACQ_REL) != 0)
    __atomic_add_fetch(&work->wrong, 1, __ATOMIC_RELAXED);
  work->done[task]++; /* no other thread has this task */
  __atomic_store_n(&work->running[thread], 0, __ATOMIC_RELEASE);
}

static void each_task_is_done_once(void **state) {
  (void)state;
  static const int threads[] = {1, 2, 3, 8, 2, 1000};
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    Work work;
    memset(&work, 0, sizeof work);
    work.most = threads[t] < CPU_MOST_THREADS ? threads[t] : CPU_MOST_THREADS;
    long expected[TASKS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
      const long tasks = round % 7 == 0 ? TASKS : round % 11;
      cpu_parallel(tasks, threads[t], count_task, &work);
      for (long i = 0; i < tasks; i++) expected[i]++;
      for (int i = 0; i < TASKS; i++)
        if (work.done[i] != expected[i])
          fail_msg("%d threads, round %d: task %d was done %d times, %ld were expected", threads[t], round, i,
                   work.done[i], expected[i]);
    }
    assert_int_equal(work.wrong, 0);
  }
}

static void add_inner(void *arg, long, int thread) {
  assert_int_equal(thread, 0); /* alone */
  ++*(int *)arg;
}

static void add_outer(void *arg, long task, int) { cpu_parallel(3, 4, add_inner, (int *)arg + task); }

static void a_task_computes_its_own_tasks_alone(void **state) {
  (void)state;
  int sums[5] = {0};
  cpu_parallel(5, 2, add_outer, sums);
  for (int i = 0; i < 5; i++) assert_int_equal(sums[i], 3);
}

static void *call_often(void *arg) {
  for (int round = 0; round < ROUNDS; round++) cpu_parallel(TASKS / 10, 2, count_task, arg);
  return NULL;
}

static void several_callers_do_not_disturb_each_other(void **state) {
  (void)state;
  enum { CALLERS = 3 };
  pthread_t caller[CALLERS];
  static Work work[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    work[i].most = 2;
    assert_int_equal(pthread_create(&caller[i], NULL, call_often, &work[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(caller[i], NULL);
    assert_int_equal(work[i].wrong, 0);
    for (int task = 0; task < TASKS; task++) assert_int_equal(work[i].done[task], task < TASKS / 10 ? ROUNDS : 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_task_is_done_once),
      cmocka_unit_test(a_task_computes_its_own_tasks_alone),
      cmocka_unit_test(several_callers_do_not_disturb_each_other),
  };
  return TEST_MAIN("cpu_threads", tests);
}

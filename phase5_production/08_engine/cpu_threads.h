/* cpu_threads.h - the tasks of a layer, shared out to threads.
 *
 *     cpu_parallel(tasks, threads, run, arg);       // run(arg, task, thread) for each task from 0 to tasks - 1
 *
 * OpenMP's parallel region ends when each of its threads has been there. Where a machine does other work as well,
 * one of them may have to wait for a processor for milliseconds, and a network of 20 layers waits with it 20 times.
 * Here a thread takes the next task, and the caller waits for tasks that somebody has taken, not for threads that
 * have taken none: it computes all of a layer itself before it waits for a thread that is not there.
 *
 * Threads are made when they are first wanted, and kept. Between layers they spin for a tenth of a millisecond, then
 * they sleep. One caller at a time has them; a second one, or a task that calls cpu_parallel(), computes alone.
 */
#ifndef PHASE5_PRODUCTION_CPU_THREADS_H
#define PHASE5_PRODUCTION_CPU_THREADS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_MOST_THREADS = 128 };

/* thread: 0 to threads - 1, for its own part of a workspace; at most `threads` run at a time, the caller among them. */
typedef void (*CpuTask)(void *arg, long task, int thread);

void cpu_parallel(long tasks, int threads, CpuTask run, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* PHASE5_PRODUCTION_CPU_THREADS_H */

/* timer.h - how long things take.
 *
 *     double start = seconds_now();
 *     ...
 *     printf("%.3f s\n", seconds_now() - start);
 *
 * A launch returns at once, so the GPU is timed by events that it records itself:
 *
 *     GpuTimer timer = gpu_timer_open();
 *     for (int i = 0; i < 100; i++) {
 *       gpu_timer_start(&timer);
 *       relu_forward_gpu(x, y, n);
 *       samples[i] = gpu_timer_stop(&timer);     // seconds; waits for the GPU
 *     }
 *     TimerStats stats = timer_stats(samples, 100);
 *
 * Quote the median: the mean belongs to whatever else the machine was doing. The minimum tells how quiet it was.
 */
#ifndef COMMON_TIMER_H
#define COMMON_TIMER_H

#include <stddef.h>
#include <stdlib.h>
#include <time.h>

/* Wall clock that never jumps, in seconds since some moment. */
static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct TimerStats {
  double min, median, p95;
} TimerStats;

static inline int timer_compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The value below which `fraction` (0..1) of n >= 1 sorted samples lie; between two of them, on the line. */
static inline double timer_percentile(const double *sorted, size_t n, double fraction) {
  double position = fraction * (double)(n - 1);
  size_t below = (size_t)position;
  if (below + 1 >= n) return sorted[n - 1];
  return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Sorts the n >= 1 samples in place. */
static inline TimerStats timer_stats(double *samples, size_t n) {
  TimerStats stats;
  qsort(samples, n, sizeof *samples, timer_compare);
  stats.min = samples[0];
  stats.median = timer_percentile(samples, n, 0.5);
  stats.p95 = timer_percentile(samples, n, 0.95);
  return stats;
}

#ifdef __CUDACC__
#include "common/check.h"

typedef struct GpuTimer {
  cudaEvent_t start, stop;
} GpuTimer;

static inline GpuTimer gpu_timer_open(void) {
  GpuTimer timer;
  CUDA_CHECK(cudaEventCreate(&timer.start));
  CUDA_CHECK(cudaEventCreate(&timer.stop));
  return timer;
}

static inline void gpu_timer_close(GpuTimer *timer) {
  CUDA_CHECK(cudaEventDestroy(timer->start));
  CUDA_CHECK(cudaEventDestroy(timer->stop));
}

static inline void gpu_timer_start(GpuTimer *timer) { CUDA_CHECK(cudaEventRecord(timer->start, 0)); }

/* Seconds of GPU time since gpu_timer_start(). */
static inline double gpu_timer_stop(GpuTimer *timer) {
  float milliseconds = 0;
  CUDA_CHECK(cudaEventRecord(timer->stop, 0));
  CUDA_CHECK(cudaEventSynchronize(timer->stop));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, timer->start, timer->stop));
  return 1e-3 * milliseconds;
}
#endif

#endif /* COMMON_TIMER_H */

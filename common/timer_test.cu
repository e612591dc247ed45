#include "common/timer.h"

#include "common/test.h"

static void clock_counts_seconds(void **state) {
  (void)state;
  struct timespec nap = {0, 20000000};
  double start = seconds_now();
  nanosleep(&nap, NULL);
  double elapsed = seconds_now() - start;
  assert_true(elapsed >= 0.02 && elapsed < 5);
}

static void stats_of_known_samples(void **state) {
  (void)state;
  double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7}, many[101];
  assert_true(timer_stats(odd, 3).median == 3);
  assert_true(odd[0] == 1 && odd[2] == 5);
  assert_true(timer_stats(even, 4).median == 2.5);
  TimerStats stats = timer_stats(one, 1);
  assert_true(stats.min == 7 && stats.median == 7 && stats.p95 == 7);
  for (int i = 0; i <= 100; i++) many[i] = 100 - i;
  stats = timer_stats(many, 101);
  assert_true(stats.min == 0 && stats.median == 50);
  assert_true(fabs(stats.p95 - 95) < 1e-9);
  assert_true(timer_percentile(many, 101, 0) == 0 && timer_percentile(many, 101, 1) == 100);
}

/* No GPU's clock is faster than 4 GHz; the emulator's counts nanoseconds. */
__global__ void wait_kernel(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) continue;
}

static void gpu_timer_measures_the_kernel(void **state) {
  (void)state;
  test_requires_gpu();
  GpuTimer timer = gpu_timer_open();
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    gpu_timer_start(&timer);
    wait_kernel<<<1, 1>>>(i * 80000000LL);
    CUDA_CHECK_LAUNCH();
    seconds[i] = gpu_timer_stop(&timer);
  }
  print_message("%g s, %g s\n", seconds[0], seconds[1]);
  assert_true(seconds[0] > 0 && seconds[1] > 0.019 && seconds[1] < 5);
  gpu_timer_close(&timer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clock_counts_seconds),
      cmocka_unit_test(stats_of_known_samples),
      cmocka_unit_test(gpu_timer_measures_the_kernel),
  };
  return TEST_MAIN("timer", tests);
}

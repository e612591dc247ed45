/* What the versions move, by the inspector, and how many blocks do it. */
#include "common/lesson/test_counts.h"
#include "phase4_training/04_lr_schedules/lr_schedules_lesson.cuh"

enum { N = 1 << 15, PARTS = N / SMOOTH_PART };

static LessonCounts rates(RatesLauncher *launch) {
  const Lesson lesson = rates_lesson();
  return counts_of(&lesson, rates_version("rates", launch, ""), lesson.counted);
}

static LessonCounts smooth(SmoothLauncher *launch) {
  const Lesson lesson = smooth_lesson();
  return counts_of(&lesson, smooth_version("smooth", launch, ""), lesson.counted);
}

static void a_thread_per_step_stores_whole_sectors(void **state) {
  (void)state;
  const LessonCounts one = rates(rates_one_thread), all = rates(rates_gpu);
  counts_required();
  assert_count(one.global_store_requests, N);
  assert_count(all.global_store_requests, N / 32);
  assert_count(all.global_store_sectors, N / 8);
}

/* Each block but the first reads the window in front of its part. */
static void only_the_windows_are_read_twice(void **state) {
  (void)state;
  const LessonCounts one = smooth(smooth_one_thread), block = smooth(smooth_one_block), all = smooth(smooth_gpu);
  counts_required();
  assert_count(one.global_load_requests, N);
  assert_count(block.global_load_requests, N / 32);
  assert_count(all.global_load_requests, (N + (PARTS - 1) * SMOOTH_WINDOW) / 32);
  assert_count(all.global_load_sectors, (N + (PARTS - 1) * SMOOTH_WINDOW) / 8);
  assert_count(all.global_store_sectors, N / 8);
  assert_count(all.shared_load_conflicts + all.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_per_step_stores_whole_sectors),
      cmocka_unit_test(only_the_windows_are_read_twice),
  };
  return TEST_MAIN("lr_schedules_counts", tests);
}

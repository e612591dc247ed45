/* What the versions move, by the inspector. */
#include "common/lesson/test_counts.h"
#include "phase4_training/08_train/search_kernels_lesson.cuh"

enum { K = 32, N = 1 << 12, T = 1 << 8, E = 1 << 8 };

static LessonCounts steps(TrialStepsLauncher *launch) {
  const Lesson lesson = trial_steps_lesson();
  return counts_of(&lesson, trial_steps_version("steps", launch, ""), lesson.counted);
}

static LessonCounts lowest(LowestLauncher *launch) {
  const Lesson lesson = lowest_lesson();
  return counts_of(&lesson, lowest_version("lowest", launch, ""), lesson.counted);
}

static void weights_and_gradients_are_read_once(void **state) {
  (void)state;
  const LessonCounts each = steps(trial_steps_each), all = steps(trial_steps_all);
  counts_required();
  assert_count(each.global_load_requests, K * 2 * N / 32);
  assert_count(all.global_load_requests, 2 * N / 32);
  assert_count(all.global_load_sectors, 2 * N / 8);
  assert_count(each.global_store_sectors, K * N / 8);
  assert_count(all.global_store_sectors, K * N / 8);
}

static void a_warp_per_trial_reads_whole_sectors(void **state) {
  (void)state;
  const LessonCounts thread = lowest(lowest_thread), warp = lowest(lowest_warp);
  counts_required();
  assert_count(thread.global_load_requests, T * E / 32);
  assert_count(thread.global_load_sectors, T * E);
  assert_count(warp.global_load_requests, T * E / 32);
  assert_count(warp.global_load_sectors, T * E / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_and_gradients_are_read_once),
      cmocka_unit_test(a_warp_per_trial_reads_whole_sectors),
  };
  return TEST_MAIN("search_kernels_counts", tests);
}

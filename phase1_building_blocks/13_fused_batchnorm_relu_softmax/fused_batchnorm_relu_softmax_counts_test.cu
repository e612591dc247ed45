/* The sectors that fusing saves: an array of ROWS x COLS floats has WARPS pieces of 128 bytes, 4 sectors each. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax_lesson.cuh"

enum { ROWS = 64, COLS = 512, WARPS = ROWS * COLS / 32, PARAMETERS = 4 * COLS / 32 };

static LessonCounts counts(FusedLauncher *launch) {
  Lesson lesson = fused_lesson();
  return counts_of(&lesson, fused_version("fused", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}

/* Each block of BATCHNORM_ROWS rows loads the parameters once. */
static void separate_reads_and_writes_three_times(void **state) {
  (void)state;
  LessonCounts c = counts(batchnorm_relu_softmax_separate);
  counts_required();
  assert_count(c.global_load_sectors, 4 * (3 * WARPS + ROWS / BATCHNORM_ROWS * PARAMETERS));
  assert_count(c.global_store_sectors, 4 * 3 * WARPS);
}

static void two_reads_and_writes_twice(void **state) {
  (void)state;
  LessonCounts c = counts(batchnorm_relu_softmax_two);
  counts_required();
  assert_count(c.global_load_sectors, 4 * (2 * WARPS + ROWS / BATCHNORM_ROWS * PARAMETERS));
  assert_count(c.global_store_sectors, 4 * 2 * WARPS);
}

static void online_loads_parameters_for_every_element(void **state) {
  (void)state;
  LessonCounts c = counts(batchnorm_relu_softmax_online);
  counts_required();
  assert_count(c.global_load_sectors, 4 * 2 * (1 + 4) * WARPS);
  assert_count(c.global_store_sectors, 4 * WARPS);
}

/* A block takes 8 rows and folds the parameters once. */
static void fused_reads_and_writes_once(void **state) {
  (void)state;
  LessonCounts c = counts(batchnorm_relu_softmax_fused);
  counts_required();
  assert_count(c.global_load_sectors, 4 * (WARPS + ROWS / 8 * PARAMETERS));
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS / 4);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

/* A block takes two rows and loads the parameters once: most of these loads the L1 cache serves. */
static void pairs_share_the_parameters(void **state) {
  (void)state;
  LessonCounts c = counts(batchnorm_relu_softmax_gpu);
  counts_required();
  assert_count(c.global_load_sectors, 4 * (WARPS + ROWS / BATCHNORM_PAIR * PARAMETERS));
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS / 4);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(separate_reads_and_writes_three_times),
      cmocka_unit_test(two_reads_and_writes_twice),
      cmocka_unit_test(online_loads_parameters_for_every_element),
      cmocka_unit_test(fused_reads_and_writes_once),
      cmocka_unit_test(pairs_share_the_parameters),
  };
  return TEST_MAIN("fused_batchnorm_relu_softmax_counts", tests);
}

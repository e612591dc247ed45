/* Softmax and cross-entropy: how often each version reads the logits. Every thread of a row loads the label and the
 * logit there: two requests of one sector per warp. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy_lesson.cuh"

enum { ROWS = 32, COLS = 2048, N = ROWS * COLS, WARPS = ROWS * SOFTMAX_SHORT_ROW_BLOCK / 32 };

static LessonCounts counts(SoftmaxCrossEntropy *launch, int cols) {
  Lesson lesson = softmax_cross_entropy_lesson();
  return counts_of(&lesson, softmax_cross_entropy_version("version", launch, ""), lesson_shape(&lesson, ROWS, cols));
}

static void separate_kernels_read_four_times_and_write_twice(void **state) {
  (void)state;
  LessonCounts c = counts(softmax_cross_entropy_separate, COLS);
  counts_required();
  assert_count(c.global_load_sectors, 4 * N / 8 + 2 * ROWS + N / 32); /* backward: one label per warp */
  assert_count(c.global_store_sectors, 2 * N / 8 + ROWS);
}

static void online_reads_twice(void **state) {
  (void)state;
  LessonCounts c = counts(softmax_cross_entropy_online, COLS);
  counts_required();
  assert_count(c.global_load_sectors, 2 * N / 8 + 2 * WARPS);
  assert_count(c.global_load_requests, 2 * N / 32 + 2 * WARPS);
  assert_count(c.global_store_sectors, N / 8 + ROWS);
}

static void shared_reads_once(void **state) {
  (void)state;
  LessonCounts c = counts(softmax_cross_entropy_shared, COLS);
  counts_required();
  assert_count(c.global_load_sectors, N / 8 + 2 * WARPS);
  assert_count(c.global_load_requests, N / 32 + 2 * WARPS);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void quads_read_four_at_a_time(void **state) {
  (void)state;
  LessonCounts quads = counts(softmax_cross_entropy_quads, COLS);
  LessonCounts fused = counts(softmax_cross_entropy_fused, COLS);
  counts_required();
  assert_count(quads.global_load_sectors, N / 8 + 2 * WARPS);
  assert_count(quads.global_load_requests, N / 128 + 2 * WARPS);
  assert_count(quads.global_store_requests, N / 128 + ROWS);
  assert_count(quads.shared_load_conflicts + quads.shared_store_conflicts, 0);
  assert_count(fused.global_load_requests, quads.global_load_requests);
  assert_count(fused.global_store_requests, quads.global_store_requests);
}

static void a_short_row_needs_no_shared_memory(void **state) {
  (void)state;
  LessonCounts c = counts(softmax_cross_entropy_fused, 1024);
  counts_required();
  assert_count(c.global_load_sectors, ROWS * 1024 / 8 + 2 * ROWS);
  assert_count(c.global_store_sectors, ROWS * 1024 / 8 + ROWS);
  assert_count(c.shared_load_requests + c.shared_store_requests, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(separate_kernels_read_four_times_and_write_twice),
      cmocka_unit_test(online_reads_twice),
      cmocka_unit_test(shared_reads_once),
      cmocka_unit_test(quads_read_four_at_a_time),
      cmocka_unit_test(a_short_row_needs_no_shared_memory),
  };
  return TEST_MAIN("softmax_cross_entropy_counts", tests);
}

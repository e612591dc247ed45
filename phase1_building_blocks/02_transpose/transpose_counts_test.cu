/* The versions of the transpose: each removes exactly what it claims to remove. The matrix consists of whole tiles, so
 * that every warp is full: one float for each of 32 lanes is 128 bytes, 4 sectors, one wavefront. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/02_transpose/transpose_lesson.cuh"

enum { ROWS = 192, COLS = 128, WARPS = ROWS * COLS / 32 };

static LessonCounts counts(TransposeLauncher *launch) {
  Lesson lesson = transpose_lesson();
  return counts_of(&lesson, transpose_version("transpose", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}

static void naive_rows_scatters_its_stores(void **state) {
  (void)state;
  LessonCounts c = counts(transpose_naive_rows);
  counts_required();
  assert_count(c.global_load_requests, WARPS);
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS);
  assert_count(c.global_store_sectors,
               32 * WARPS); /* a row of `out` is 192 floats: each lane has a sector of its own */
  assert_count(c.shared_load_requests, 0);
}

static void naive_columns_scatters_its_loads(void **state) {
  (void)state;
  LessonCounts c = counts(transpose_naive_columns);
  counts_required();
  assert_count(c.global_load_requests, WARPS);
  assert_count(c.global_load_sectors, 32 * WARPS);
  assert_count(c.global_store_requests, WARPS);
  assert_count(c.global_store_sectors, 4 * WARPS);
}

static void tiled_has_whole_sectors_and_32_way_conflicts(void **state) {
  (void)state;
  LessonCounts c = counts(transpose_tiled);
  counts_required();
  assert_count(c.global_load_sectors, 4 * c.global_load_requests);
  assert_count(c.global_store_sectors, 4 * c.global_store_requests);
  assert_count(c.global_load_requests, WARPS);
  assert_count(c.shared_store_requests, WARPS);
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.shared_load_requests, WARPS);
  assert_count(c.shared_load_conflicts, 31 * WARPS); /* 32 lanes in one bank: 31 more turns */
}

static void padded_has_no_conflicts(void **state) {
  (void)state;
  LessonCounts c = counts(transpose_padded);
  counts_required();
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.shared_load_wavefronts, WARPS);
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
}

static void vectorised_asks_four_times_less_often(void **state) {
  (void)state;
  LessonCounts c = counts(transpose_vectorised);
  counts_required();
  assert_count(c.global_load_requests, WARPS / 4);
  assert_count(c.global_load_sectors, 4 * WARPS); /* the same bytes */
  assert_count(c.global_store_requests, WARPS / 4);
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.shared_load_wavefronts, WARPS); /* 512 bytes per request: four turns of the banks */
  assert_count(c.shared_store_wavefronts, WARPS);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_rows_scatters_its_stores),
      cmocka_unit_test(naive_columns_scatters_its_loads),
      cmocka_unit_test(tiled_has_whole_sectors_and_32_way_conflicts),
      cmocka_unit_test(padded_has_no_conflicts),
      cmocka_unit_test(vectorised_asks_four_times_less_often),
  };
  return TEST_MAIN("transpose_counts", tests);
}

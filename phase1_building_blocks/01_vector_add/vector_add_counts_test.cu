/* Vector addition: all versions move the same sectors; they differ in the number of requests. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/01_vector_add/vector_add_lesson.cuh"

static LessonCounts counts(VectorAddLauncher *launch, int n) {
  Lesson lesson = vector_add_lesson();
  return counts_of(&lesson, vector_add_version("vector_add", launch, ""), lesson_shape(&lesson, n));
}

/* One request per 32 elements and one sector per 8, rounded up; two arrays are read, one is written. */
static void expect_scalar(LessonCounts c, int n) {
  assert_count(c.global_load_requests, 2 * ((n + 31) / 32));
  assert_count(c.global_load_sectors, 2 * ((n + 7) / 8));
  assert_count(c.global_store_requests, (n + 31) / 32);
  assert_count(c.global_store_sectors, (n + 7) / 8);
}

static void a_thread_an_element_is_coalesced(void **state) {
  (void)state;
  LessonCounts whole = counts(vector_add, 8192), ragged = counts(vector_add, 8191 - 40);
  counts_required();
  expect_scalar(whole, 8192);
  expect_scalar(ragged, 8191 - 40);
}

static void a_grid_stride_keeps_it_coalesced(void **state) {
  (void)state;
  LessonCounts c = counts(vector_add_stride, 100003); /* more than three times the 32768 threads of the emulated GPU */
  counts_required();
  expect_scalar(c, 100003);
}

static void float4_asks_four_times_less_often(void **state) {
  (void)state;
  const int n = 65536;
  LessonCounts c = counts(vector_add_float4, n), odd = counts(vector_add_float4, n + 3);
  counts_required();
  assert_count(c.global_load_requests, 2 * n / 128);
  assert_count(c.global_load_sectors, 2 * n / 8);
  assert_count(c.global_store_requests, n / 128);
  assert_count(c.global_store_sectors, n / 8);
  /* the last three elements are neighbours: one warp loads them */
  assert_count(odd.global_load_requests, 2 * n / 128 + 2);
  assert_count(odd.global_store_sectors, n / 8 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_an_element_is_coalesced),
      cmocka_unit_test(a_grid_stride_keeps_it_coalesced),
      cmocka_unit_test(float4_asks_four_times_less_often),
  };
  return TEST_MAIN("vector_add_counts", tests);
}

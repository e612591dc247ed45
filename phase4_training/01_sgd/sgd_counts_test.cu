/* SGD: how many launches, requests and sectors the versions need; each is right on all shapes before it is counted. */
#include "common/lesson/test_counts.h"
#include "phase4_training/01_sgd/sgd_lesson.cuh"

enum { TENSORS = 12, N = 32768 };

static LessonCounts counts(SgdLauncher *launch) {
  const Lesson lesson = sgd_momentum_lesson();
  return counts_of(&lesson, sgd_version("version", launch, ""), lesson_shape(&lesson, TENSORS, N));
}

/* Without the copies of the five arrays to the GPU. */
static double launches(LessonCounts c) { return c.stream_steps - 5; }

static void one_launch_serves_all_tensors(void **state) {
  (void)state;
  const LessonCounts each = counts(sgd_each), table = counts(sgd_table), quads = counts(sgd_table_float4);
  const LessonCounts flat = counts(sgd_flat);
  counts_required();
  assert_count(launches(each), TENSORS);
  assert_count(launches(table), 1);
  assert_count(launches(quads), 1);
  /* Four weights of 7678 floats, two chunks each; eight vectors of one. */
  assert_count(table.launched_blocks, 4 * 2 + 8);
  assert_count(each.launched_blocks, 4 * 30 + 8 * 2);

  /* Three arrays are read, two written. A lane of the flat version moves four floats; so does one of the table's, but
   * for the ends of tensors. A sector at an end belongs to two tensors: it is read for both. */
  assert_count(flat.global_load_requests, 3 * N / 128);
  assert_count(flat.global_load_sectors, 3 * N / 8);
  assert_count(flat.global_store_requests, 2 * N / 128);
  assert_count(flat.global_store_sectors, 2 * N / 8);
  assert_true(table.global_load_requests >= 3 * N / 32);
  assert_true(quads.global_load_requests >= 3 * N / 128 && quads.global_load_requests < 3 * N / 128 * 1.2);
  assert_true(quads.global_load_sectors < 3 * N / 8 * 1.02);
}

static void plain_sgd_moves_three_floats(void **state) {
  (void)state;
  const Lesson plain = sgd_plain_lesson(), nesterov = sgd_nesterov_lesson();
  const LessonShape shape = lesson_shape(&plain, TENSORS, N);
  const LessonCounts flat = counts_of(&plain, sgd_plain_version("flat", sgd_plain_flat, ""), shape);
  const LessonCounts ahead = counts_of(&nesterov, sgd_version("flat", sgd_flat, ""), shape);
  counts_of(&plain, sgd_plain_version("table", sgd_plain_table, ""), shape); /* it is right */
  counts_of(&nesterov, sgd_version("each", sgd_each, ""), shape);
  counts_required();
  assert_count(flat.global_load_sectors + flat.global_store_sectors, 3 * N / 8);
  assert_count(ahead.global_load_sectors + ahead.global_store_sectors, 5 * N / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_serves_all_tensors),
                                     cmocka_unit_test(plain_sgd_moves_three_floats)};
  return TEST_MAIN("sgd_counts", tests);
}

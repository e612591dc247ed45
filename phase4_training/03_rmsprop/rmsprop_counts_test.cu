/* RMSprop and Muon: launches, requests and sectors of the versions; each is right on all shapes before it is counted.
 * */
#include "common/lesson/test_counts.h"
#include "phase4_training/03_rmsprop/muon_lesson.cuh"
#include "phase4_training/03_rmsprop/rmsprop_lesson.cuh"

enum { TENSORS = 12, N = 32768 };

static void what_it_keeps_decides_what_moves(void **state) {
  (void)state;
  const Lesson plain = rmsprop_lesson(), all = rmsprop_all_lesson();
  const LessonShape shape = lesson_shape(&plain, TENSORS, N);
  const LessonCounts each = counts_of(&plain, rmsprop_version("each", rmsprop_each, ""), shape);
  const LessonCounts flat = counts_of(&plain, rmsprop_version("flat", rmsprop_flat, ""), shape);
  const LessonCounts table = counts_of(&plain, rmsprop_version("table", rmsprop_table_float4, ""), shape);
  const LessonCounts all_flat = counts_of(&all, rmsprop_all_version("flat", rmsprop_all_flat, ""), shape);
  const LessonCounts all_table = counts_of(&all, rmsprop_all_version("table", rmsprop_all_table, ""), shape);
  counts_of(&all, rmsprop_all_version("each", rmsprop_all_each, ""), shape);
  counts_required();
  assert_count(each.stream_steps - 5, TENSORS); /* without the copies of the arrays to the GPU */
  assert_count(table.stream_steps - 5, 1);
  assert_count(all_table.stream_steps - 9, 1);
  assert_count(flat.global_load_sectors + flat.global_store_sectors, 5 * N / 8);
  assert_count(all_flat.global_load_sectors + all_flat.global_store_sectors, 9 * N / 8);
  assert_count(all_flat.global_load_requests, 5 * N / 128);
  assert_count(all_flat.global_store_requests, 4 * N / 128);
}

/* Two copies, momentum, normalisation, 15 products, the step. */
static void muon_launches_do_not_depend_on_the_matrices(void **state) {
  (void)state;
  enum { MATRICES = 3, PRODUCTS = 3 * MUON_STEPS };
  const Lesson lesson = muon_lesson();
  const LessonShape shape = lesson_shape(&lesson, MATRICES, 32, 40);
  const LessonCounts each = counts_of(&lesson, muon_version("each", muon_each, ""), shape);
  const LessonCounts all = counts_of(&lesson, muon_version("all", muon_all, ""), shape);
  counts_required();
  assert_count(each.stream_steps - 5, 2 + MATRICES * (3 + PRODUCTS));
  assert_count(all.stream_steps - 5, 2 + 3 + PRODUCTS);
  assert_true(all.global_load_sectors < each.global_load_sectors / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_keeps_decides_what_moves),
                                     cmocka_unit_test(muon_launches_do_not_depend_on_the_matrices)};
  return TEST_MAIN("rmsprop_counts", tests);
}

/* Adam: launches, requests and sectors of the versions; each is right on all shapes before it is counted. */
#include "common/lesson/test_counts.h"
#include "phase4_training/02_adam/adam_lesson.cuh"

enum { TENSORS = 12, N = 32768 };

static LessonCounts counts(Lesson lesson, AdamLauncher *launch) {
  return counts_of(&lesson, adam_version("version", launch, ""), lesson_shape(&lesson, TENSORS, N));
}

/* Four arrays are read, three written. */
static void seven_floats_move_in_one_launch(void **state) {
  (void)state;
  const LessonCounts each = counts(adam_lesson(), adam_each), table = counts(adam_lesson(), adam_table);
  const LessonCounts quads = counts(adam_lesson(), adam_table_float4), flat = counts(adam_lesson(), adam_flat);
  counts_required();
  assert_count(each.stream_steps - 7, TENSORS); /* without the copies of seven arrays to the GPU */
  assert_count(table.stream_steps - 7, 1);
  assert_count(flat.global_load_requests, 4 * N / 128);
  assert_count(flat.global_load_sectors, 4 * N / 8);
  assert_count(flat.global_store_requests, 3 * N / 128);
  assert_count(flat.global_store_sectors, 3 * N / 8);
  assert_true(table.global_load_requests >= 4 * N / 32);
  assert_true(quads.global_load_requests < 4 * N / 128 * 1.2 && quads.global_load_sectors < 4 * N / 8 * 1.02);
}

static void decoupled_decay_costs_nothing(void **state) {
  (void)state;
  const LessonCounts flat = counts(adamw_lesson(), adam_flat), quads = counts(adamw_lesson(), adam_table_float4);
  counts(adamw_lesson(), adam_each); /* it is right */
  counts_required();
  assert_count(flat.global_load_sectors + flat.global_store_sectors, 7 * N / 8);
  assert_count(quads.stream_steps - 7, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(seven_floats_move_in_one_launch),
                                     cmocka_unit_test(decoupled_decay_costs_nothing)};
  return TEST_MAIN("adam_counts", tests);
}

/* The memory traffic of dropout beside x and y: the bytes of a mask, or nothing. Whole warps. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/12_dropout/dropout_lesson.cuh"
#include "phase1_building_blocks/12_dropout/softmax_dropout_lesson.cuh"

enum { ROWS = 128, COLS = 512, WARPS = ROWS * COLS / 32 };

static LessonCounts drop(DropoutLauncher *launch) {
  Lesson lesson = dropout_lesson();
  return counts_of(&lesson, dropout_version("dropout", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}
static LessonCounts drop_step(DropoutStepLauncher *launch) {
  Lesson lesson = dropout_step_lesson();
  return counts_of(&lesson, dropout_step_version("step", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}
static LessonCounts fused(SoftmaxDropoutLauncher *launch) {
  Lesson lesson = softmax_dropout_lesson();
  return counts_of(&lesson, softmax_dropout_version("fused", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}
static LessonCounts fused_step(SoftmaxDropoutStepLauncher *launch) {
  Lesson lesson = softmax_dropout_step_lesson();
  return counts_of(&lesson, softmax_dropout_step_version("step", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}

static void mask_moves_a_byte_more(void **state) {
  (void)state;
  LessonCounts c = drop(dropout_mask);
  counts_required();
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, 2 * WARPS);
  assert_count(c.global_store_sectors, (4 + 1) * WARPS); /* 32 bytes of the mask are a sector */
  c = drop_step(dropout_step_mask);
  assert_count(c.global_load_sectors, (4 + 4 + 1) * WARPS);
  assert_count(c.global_store_sectors, (4 + 1 + 4) * WARPS);
}

static void asking_again_moves_no_mask(void **state) {
  (void)state;
  LessonCounts c = drop(dropout_one_each);
  counts_required();
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS);
  c = drop_step(dropout_step_gpu);
  assert_count(c.global_load_sectors, (4 + 4) * WARPS);
  assert_count(c.global_store_sectors, (4 + 4) * WARPS);
}

static void float4_asks_four_times_less_often(void **state) {
  (void)state;
  LessonCounts c = drop(dropout_gpu);
  counts_required();
  assert_count(c.global_load_requests, WARPS / 4);
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS / 4);
  assert_count(c.global_store_sectors, 4 * WARPS);
}

/* Counted in passes over the matrix: one read and one write instead of two of each; five instead of nine in a step. */
static void fused_moves_the_matrix_less_often(void **state) {
  (void)state;
  LessonCounts one = fused(softmax_dropout_forward_fused), first = fused(softmax_dropout_forward_gpu),
               two = fused(softmax_dropout_separate);
  counts_required();
  assert_count(one.global_load_sectors, 4 * WARPS);
  assert_count(one.global_store_sectors, 4 * WARPS);
  assert_count(first.global_load_sectors, 4 * WARPS);
  assert_count(first.global_store_sectors, 4 * WARPS);
  assert_count(two.global_load_sectors, 2 * 4 * WARPS);
  assert_count(two.global_store_sectors, 2 * 4 * WARPS);
  one = fused_step(softmax_dropout_step_gpu);
  two = fused_step(softmax_dropout_step_separate);
  assert_count(one.global_load_sectors, 3 * 4 * WARPS);
  assert_count(one.global_store_sectors, 2 * 4 * WARPS);
  assert_count(two.global_load_sectors, 5 * 4 * WARPS);
  assert_count(two.global_store_sectors, 4 * 4 * WARPS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mask_moves_a_byte_more),
      cmocka_unit_test(asking_again_moves_no_mask),
      cmocka_unit_test(float4_asks_four_times_less_often),
      cmocka_unit_test(fused_moves_the_matrix_less_often),
  };
  return TEST_MAIN("dropout_counts", tests);
}

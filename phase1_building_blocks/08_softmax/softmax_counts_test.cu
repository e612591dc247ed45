/* The softmax versions: how often each reads a row, and with how many sectors per request. One float for each of 32
 * lanes is 128 bytes, 4 sectors; an array has WARPS such pieces. */
#include "common/lesson/test_counts.h"
#include "phase1_building_blocks/08_softmax/softmax_lesson.cuh"

enum { ROWS = 32, COLS = 512, WARPS = ROWS * COLS / 32 };

static LessonCounts forward(SoftmaxForwardLauncher *launch) {
  Lesson lesson = softmax_forward_lesson();
  return counts_of(&lesson, softmax_forward_version("softmax", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}

static LessonCounts backward(SoftmaxBackwardLauncher *launch) {
  Lesson lesson = softmax_backward_lesson();
  return counts_of(&lesson, softmax_backward_version("softmax", launch, ""), lesson_shape(&lesson, ROWS, COLS));
}

/* `reads`: how often the input is loaded, a float at a time. */
static void assert_reads(const LessonCounts *c, int reads) {
  assert_count(c->global_load_requests, reads * WARPS);
  assert_count(c->global_load_sectors, 4 * reads * WARPS);
  assert_count(c->global_store_requests, WARPS);
  assert_count(c->global_store_sectors, 4 * WARPS);
}

static void naive_has_a_sector_for_each_lane(void **state) {
  (void)state;
  LessonCounts c = forward(softmax_forward_naive);
  counts_required();
  assert_count(c.global_load_requests, 3 * WARPS);
  assert_count(c.global_load_sectors, 32 * 3 * WARPS);
  assert_count(c.global_store_sectors, 32 * WARPS);
}

static void shared_reads_three_times(void **state) {
  (void)state;
  LessonCounts c = forward(softmax_forward_shared);
  counts_required();
  assert_reads(&c, 3);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

/* A tree of 256 floats is written by 8 warps, then by 4, 2 and 1 warps, then five times by a part of one warp; the
 * shuffle version stores one float for each of the 8 warps. There are two reductions per row. */
static void shuffle_hardly_needs_shared_memory(void **state) {
  (void)state;
  LessonCounts tree = forward(softmax_forward_shared), c = forward(softmax_forward_shuffle);
  counts_required();
  assert_reads(&c, 3);
  assert_count(tree.shared_store_requests, 2 * ROWS * (8 + 4 + 2 + 1 + 5));
  assert_count(c.shared_store_requests, 2 * ROWS * 8);
  assert_count(c.shared_load_requests, 2 * ROWS * 8);
}

static void online_reads_twice(void **state) {
  (void)state;
  LessonCounts c = forward(softmax_forward_online);
  counts_required();
  assert_reads(&c, 2);
}

static void staged_reads_once(void **state) {
  (void)state;
  LessonCounts c = forward(softmax_forward_staged);
  counts_required();
  assert_reads(&c, 1);
  assert_true(c.shared_store_requests >= WARPS);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void registers_ask_four_times_less_often(void **state) {
  (void)state;
  LessonCounts c = forward(softmax_forward_gpu);
  counts_required();
  assert_count(c.global_load_requests, WARPS / 4);
  assert_count(c.global_load_sectors, 4 * WARPS);
  assert_count(c.global_store_requests, WARPS / 4);
  assert_count(c.global_store_sectors, 4 * WARPS);
  assert_count(c.shared_load_requests + c.shared_store_requests, 0); /* one warp per row */
}

static void the_jacobian_is_read_by_every_element(void **state) {
  (void)state;
  LessonCounts c = backward(softmax_backward_jacobian);
  counts_required();
  assert_count(c.global_load_requests, (2.0 * COLS + 1) * WARPS);
  assert_count(c.global_store_requests, WARPS);
}

static void backward_reads_twice_then_once(void **state) {
  (void)state;
  LessonCounts twice = backward(softmax_backward_shuffle), once = backward(softmax_backward_gpu);
  counts_required();
  assert_count(twice.global_load_requests, 2 * 2 * WARPS);
  assert_count(twice.global_load_sectors, 4 * 2 * 2 * WARPS);
  assert_count(once.global_load_requests, 2 * WARPS / 4);
  assert_count(once.global_load_sectors, 4 * 2 * WARPS);
  assert_count(once.global_store_requests, WARPS / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_has_a_sector_for_each_lane),
      cmocka_unit_test(shared_reads_three_times),
      cmocka_unit_test(shuffle_hardly_needs_shared_memory),
      cmocka_unit_test(online_reads_twice),
      cmocka_unit_test(staged_reads_once),
      cmocka_unit_test(registers_ask_four_times_less_often),
      cmocka_unit_test(the_jacobian_is_read_by_every_element),
      cmocka_unit_test(backward_reads_twice_then_once),
  };
  return TEST_MAIN("softmax_counts", tests);
}

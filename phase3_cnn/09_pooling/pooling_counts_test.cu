/* What the versions load and store, by the inspector. The counted shape has 32 planes of 16 x 64 pixels, windows of 3 x
 * 3 with stride 2 and one pixel of padding: planes of 8 x 32 outputs. A warp of naive has one row of outputs, one of
 * strip four, and one of tiles two rows of 16 tiles each. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/09_pooling/pooling_lesson.cuh"

enum { PLANES = 32, H = 16, W = 64, P = 8, Q = 32, K = 3, OUTPUTS = PLANES * P * Q, INPUTS = PLANES * H * W };

/* The first row of outputs has one row of its windows in the padding. To the left only the first lane skips a load; the
 * other lanes request it. */
static void naive_loads_each_window(void **state) {
  (void)state;
  const Lesson lesson = max_pool2d_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, max_pool2d_forward_version("naive", max_pool2d_forward_naive, ""), lesson.counted);
  counts_required();
  assert_count(c.global_load_requests, PLANES * (P * K - 1) * K);
  assert_count(c.global_store_requests, 2 * OUTPUTS / 32); /* y and argmax */
}

/* (4 - 1) * 2 + 3 rows of three floats for four outputs. Loads in the padding are done, too, from its edge. */
static void a_strip_loads_each_row_once(void **state) {
  (void)state;
  const Lesson lesson = max_pool2d_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, max_pool2d_forward_version("strip", max_pool2d_forward_strip, ""), lesson.counted);
  counts_required();
  assert_count(c.global_load_requests, OUTPUTS / 32 / MAX_POOL2D_TALL * 9 * 3);
  assert_count(c.global_store_requests, 2 * OUTPUTS / 32);
}

/* A float4 and the float before it for each of five rows; a float2 and two bytes for each of two rows. */
static void a_tile_loads_float4s(void **state) {
  (void)state;
  const Lesson lesson = max_pool2d_forward_lesson();
  const LessonCounts c =
      counts_of(&lesson, max_pool2d_forward_version("tiles", max_pool2d_forward_gpu, ""), lesson.counted);
  counts_required();
  const int warps = OUTPUTS / 4 / 32;
  assert_count(c.global_load_requests, warps * 5 * 2);
  assert_count(c.global_store_requests, warps * 2 * 2);
  assert_count(c.global_store_sectors, OUTPUTS * 5 / 32); /* every byte of a sector is used */
}

/* Each input is written once, and by nobody else: four rows of a float4 each. dy and argmax have three rows of two
 * windows and the one behind. */
static void gradients_are_gathered(void **state) {
  (void)state;
  const Lesson lesson = max_pool2d_backward_lesson();
  const LessonCounts naive =
      counts_of(&lesson, max_pool2d_backward_version("naive", max_pool2d_backward_naive, ""), lesson.counted);
  const LessonCounts tiles =
      counts_of(&lesson, max_pool2d_backward_version("tiles", max_pool2d_backward_gpu, ""), lesson.counted);
  counts_required();
  assert_count(naive.global_atomic_requests + tiles.global_atomic_requests, 0);
  assert_count(naive.global_store_sectors, INPUTS / 8);
  assert_count(tiles.global_store_sectors, INPUTS / 8);
  const int warps = INPUTS / 16 / 32;
  assert_count(tiles.global_store_requests, warps * 4);
  assert_count(tiles.global_load_requests, warps * 3 * 2 * 2);
}

static void averages_load_and_store_as_much(void **state) {
  (void)state;
  const Lesson forward = avg_pool2d_forward_lesson(), backward = avg_pool2d_backward_lesson();
  const LessonCounts y = counts_of(&forward, avg_pool2d_version("tiles", avg_pool2d_forward_gpu, ""), forward.counted);
  const LessonCounts dx =
      counts_of(&backward, avg_pool2d_version("dx tiles", avg_pool2d_backward_gpu, ""), backward.counted);
  counts_required();
  assert_count(y.global_load_requests, OUTPUTS / 4 / 32 * 5 * 2);
  assert_count(y.global_store_sectors, OUTPUTS / 8);
  assert_count(dx.global_load_requests, INPUTS / 16 / 32 * 3 * 2);
  assert_count(dx.global_store_sectors, INPUTS / 8);
}

/* 1024 pixels of eight planes: each lane has eight float4s of each. The naive kernel's lanes read 32 planes. */
static void planes_are_read_by_float4s(void **state) {
  (void)state;
  const Lesson lesson = global_avg_pool2d_forward_lesson();
  const LessonCounts naive =
      counts_of(&lesson, global_avg_pool2d_version("naive", global_avg_pool2d_forward_naive, ""), lesson.counted);
  const LessonCounts warp =
      counts_of(&lesson, global_avg_pool2d_version("warp", global_avg_pool2d_forward_warp, ""), lesson.counted);
  const LessonCounts eights =
      counts_of(&lesson, global_avg_pool2d_version("eights", global_avg_pool2d_forward_gpu, ""), lesson.counted);
  counts_required();
  assert_count(naive.global_load_sectors, INPUTS);
  assert_count(warp.global_load_sectors, INPUTS / 8);
  assert_count(eights.global_load_sectors, INPUTS / 8);
  assert_count(warp.global_load_requests, INPUTS / 32);
  assert_count(eights.global_load_requests, INPUTS / 4 / 32);
  assert_count(eights.global_store_requests, PLANES / GLOBAL_POOL_PLANES);
  const Lesson backward = global_avg_pool2d_backward_lesson();
  const LessonCounts fours =
      counts_of(&backward, global_avg_pool2d_version("fours", global_avg_pool2d_backward_gpu, ""), backward.counted);
  assert_count(fours.global_store_requests, INPUTS / 4 / 32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_loads_each_window),
      cmocka_unit_test(a_strip_loads_each_row_once),
      cmocka_unit_test(a_tile_loads_float4s),
      cmocka_unit_test(gradients_are_gathered),
      cmocka_unit_test(averages_load_and_store_as_much),
      cmocka_unit_test(planes_are_read_by_float4s),
  };
  return TEST_MAIN("pooling_counts", tests);
}

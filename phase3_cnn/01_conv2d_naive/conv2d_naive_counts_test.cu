/* What the versions of lesson 1 read how often: 1 image of 8 channels, 16 rows and 32 columns, 16 filters of 3 x 3,
 * padding 1. An output row is 32 pixels, those of a warp. Of the 16 x 3 pairs of an output row and a row of a filter
 * all but two lie in the image. A line of 32 inputs that begins one column before or after a sector's begin still has 4
 * sectors, as its first or last lane is in the padding. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"

enum { K = 16, C = 8, P = 16, PAIRS = P * 3 - 2, OUTPUTS = K * P * 32 };

static LessonCounts counts(const Conv2dMethod *method) {
  Lesson lesson = conv2d_forward_lesson("conv2d");
  conv2d_take_few(&lesson);
  return counts_of(&lesson, conv2d_forward_version_of(method->name, method, ""),
                   lesson_shape_of(&lesson, "1x8x16x32x16x3x3:padding=1"));
}

static void naive_loads_an_input_and_a_weight_for_each_product(void **state) {
  (void)state;
  LessonCounts c = counts(&conv2d_naive_method);
  counts_required();
  const double products = (double)K * C * PAIRS * 3, bias = (double)K * P; /* of a warp: 32 at a time; one per warp */
  assert_count(c.global_load_requests, 2 * products + bias);
  assert_count(c.global_load_sectors, (4 + 1) * products + bias);
  assert_count(c.global_store_requests, OUTPUTS / 32);
  assert_count(c.global_store_sectors, OUTPUTS / 8);
}

/* A quarter of the warps, each of four rows of 8 threads. */
static void row_has_fewer_loads_and_more_sectors(void **state) {
  (void)state;
  LessonCounts c = counts(&conv2d_row_method);
  counts_required();
  const double warps = (double)K * P / 4, inputs = (double)K * C * PAIRS * 6; /* of one row: 4 + 3 - 1 per filter row */
  assert_count(c.global_load_requests, warps * (C * 3 * (6 + 3) + 1));        /* 6 inputs, 3 weights for 12 products */
  assert_count(c.global_load_sectors, inputs * 4 + warps * (C * 3 * 3 + 1));
  assert_count(c.global_store_requests, OUTPUTS / 32);
  assert_count(c.global_store_sectors, 4 * OUTPUTS / 8); /* a sector in four parts */
}

/* A quarter of the warps, each of 32 columns, 4 rows high: of its 6 rows of inputs the image lacks one at either
 * end. */
static void column_has_fewer_loads_and_fewer_sectors(void **state) {
  (void)state;
  LessonCounts c = counts(&conv2d_column_method);
  counts_required();
  const double inputs = (double)K * C * 3 * (6 * P / 4 - 2), weights = (double)K * C * 3 * 3 * P / 4;
  assert_count(c.global_load_requests, inputs + weights + K * P / 4);
  assert_count(c.global_load_sectors, 4 * inputs + weights + K * P / 4);
  assert_count(c.global_store_requests, OUTPUTS / 32);
  assert_count(c.global_store_sectors, OUTPUTS / 8);
}

/* An input is loaded once for 8 filters; weights come from shared memory, four per request. */
static void tiled_loads_an_input_once_for_eight_filters(void **state) {
  (void)state;
  LessonCounts naive = counts(&conv2d_naive_method), tiled = counts(&conv2d_tiled_method);
  counts_required();
  const double products = (double)K * C * PAIRS * 3;
  assert_true(tiled.global_load_sectors >= 4 * products / 8);
  assert_true(tiled.global_load_sectors < naive.global_load_sectors / 8);
  assert_true(tiled.shared_load_requests > 0 && naive.shared_load_requests == 0);
}

/* Without the sliding window each of the four outputs loads its own input for each tap; weights are still shared. */
static void another_stride_than_dilation_has_no_window(void **state) {
  (void)state;
  Lesson lesson = conv2d_forward_lesson("conv2d");
  conv2d_take_few(&lesson);
  LessonCounts c = counts_of(&lesson, conv2d_forward_version_of("column", &conv2d_column_method, ""),
                             lesson_shape_of(&lesson, "1x1x16x32x1x3x1:stride=4x1"));
  counts_required();
  assert_count(c.global_load_requests, 4 * 3 + 3 + 1); /* one warp, 4 outputs in a column: 4 inputs per tap */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(naive_loads_an_input_and_a_weight_for_each_product),
      cmocka_unit_test(row_has_fewer_loads_and_more_sectors),
      cmocka_unit_test(column_has_fewer_loads_and_fewer_sectors),
      cmocka_unit_test(tiled_loads_an_input_once_for_eight_filters),
      cmocka_unit_test(another_stride_than_dilation_has_no_window),
  };
  return TEST_MAIN("conv2d_naive_counts", tests);
}

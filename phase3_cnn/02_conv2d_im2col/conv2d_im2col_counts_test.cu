/* What the copies and the products of lesson 2 move: 4 images of 8 channels, 16 rows and 32 columns, 16 filters of
 * 3 x 3, padding 1. The matrix has 72 rows and 2048 columns; an output row is 32 pixels, those of a warp. Of the 3 x 16
 * pairs of a row of a filter and an output row, two read a row outside the image: 46 are left per image. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_lesson.cuh"

enum { N = 4, C = 8, P = 16, PAIRS = 3 * P - 2, ELEMENTS = C * 9 * N * P * 32 };

static LessonCounts counts(Lesson lesson, const char *name, Conv2dIm2colCopy *launch) {
  conv2d_take_few(&lesson);
  return counts_of(&lesson, conv2d_im2col_version(name, launch, ""),
                   lesson_shape_of(&lesson, "4x8x16x32x16x3x3:padding=1"));
}

/* A line of 32 inputs that begins one column before or after that of a sector still has 4 sectors: its first or last
 * lane is in the padding. */
static void both_plain_versions_copy_whole_sectors(void **state) {
  (void)state;
  LessonCounts naive = counts(conv2d_im2col_lesson("im2col"), "naive", conv2d_im2col_naive);
  LessonCounts column = counts(conv2d_im2col_lesson("im2col"), "column", conv2d_im2col_column);
  counts_required();
  const double loads = (double)N * C * PAIRS * 3;
  assert_count(naive.global_load_requests, loads);
  assert_count(naive.global_load_sectors, 4 * loads);
  assert_count(naive.global_store_requests, ELEMENTS / 32);
  assert_count(naive.global_store_sectors, ELEMENTS / 8);
  assert_count(column.global_load_requests, loads);
  assert_count(column.global_load_sectors, 4 * loads);
  assert_count(column.global_store_requests, ELEMENTS / 32);
  assert_count(column.global_store_sectors, ELEMENTS / 8);
}

/* A warp has 128 columns, four output rows; its stores move 512 bytes. In each of its four loads per tap the lanes are
 * four floats apart; together the four need whole sectors, and three of them find these in the L1 cache. */
static void four_columns_per_thread_quarter_the_stores(void **state) {
  (void)state;
  LessonCounts c = counts(conv2d_im2col_lesson("im2col"), "im2col", conv2d_im2col);
  counts_required();
  assert_count(c.global_store_requests, ELEMENTS / 128);
  assert_count(c.global_store_sectors, ELEMENTS / 8);
  assert_count(c.global_load_requests, N * C * 9 * P / 4 * 4); /* four rows of outputs: never all in the padding */
}

/* Each element of the matrix that is a copy of an input is read once, and each input is written once. */
static void col2im_reads_each_element_once(void **state) {
  (void)state;
  LessonCounts c = counts(conv2d_col2im_lesson("col2im"), "col2im", conv2d_col2im);
  counts_required();
  const double loads = (double)N * C * PAIRS * 3;
  assert_count(c.global_load_requests, loads);
  assert_count(c.global_load_sectors, 4 * loads);
  assert_count(c.global_store_requests, N * C * P);
  assert_count(c.global_store_sectors, 4 * N * C * P);
}

static LessonCounts forward_counts(const Conv2dMethod *method) {
  Lesson lesson = conv2d_forward_lesson("im2col");
  conv2d_take_few(&lesson);
  return counts_of(&lesson, conv2d_forward_version_of(method->name, method, ""),
                   lesson_shape_of(&lesson, "4x8x16x32x16x3x3:padding=1"));
}

/* The matrix is stored and loaded; one image at a time or all, that is the same number of sectors. */
static void a_product_reads_the_matrix_once(void **state) {
  (void)state;
  LessonCounts one = forward_counts(&conv2d_im2col_one_method), all = forward_counts(&conv2d_im2col_all_method);
  counts_required();
  const double matrix = ELEMENTS / 8, outputs = (double)N * 16 * P * 32 / 8;
  assert_count(one.global_store_sectors, matrix + 2 * outputs); /* the product, and y */
  assert_count(all.global_store_sectors, matrix + 2 * outputs);
  assert_true(all.global_load_sectors >= matrix + outputs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_plain_versions_copy_whole_sectors),
      cmocka_unit_test(four_columns_per_thread_quarter_the_stores),
      cmocka_unit_test(col2im_reads_each_element_once),
      cmocka_unit_test(a_product_reads_the_matrix_once),
  };
  return TEST_MAIN("conv2d_im2col_counts", tests);
}

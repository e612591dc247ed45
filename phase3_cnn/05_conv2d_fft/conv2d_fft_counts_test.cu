/* What the versions of lesson 5 read and write: 2 images of 4 channels and 14 x 14, 32 filters of 3 x 3, padding 1.
 * Each plane is one tile of 16 x 16, which has 130 frequencies; the two tiles of a channel are padded to 32 lanes. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_cufft.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft_lesson.cuh"

enum { C = 4, K = 32, PLANES = 2 * K, FREQUENCIES = 130, LANES = 32 };

/* As counts_of(), but only the shape that is counted is checked: emulation is slow. */
static LessonCounts counts(Lesson lesson, LessonVersion version) {
  return counts_alone_of(&lesson, version, lesson_shape_of(&lesson, "2x4x14x14x32x3x3:padding=1"));
}

static LessonCounts forward_counts(const Conv2dMethod *method) {
  return counts(conv2d_fft_forward_lesson("conv2d"), conv2d_forward_version_of(method->name, method, ""));
}

/* Of the method's three functions, counted once. */
static const LessonCounts *method_counts(void) {
  static LessonCounts c[3];
  if (c[0].launched_blocks != 0) return c;
  c[0] = forward_counts(&conv2d_fft_method);
  c[1] = counts(conv2d_fft_backward_input_lesson("dx"), conv2d_backward_input_version_of("dx", &conv2d_fft_method, ""));
  c[2] =
      counts(conv2d_fft_backward_weight_lesson("dw"), conv2d_backward_weight_version_of("dw", &conv2d_fft_method, ""));
  return c;
}

/* 16 rows of y, of which 14 are in the image, are two per warp: 28 neighbouring floats, in 4 sectors. */
static void spectra_are_written_in_whole_sectors(void **state) {
  (void)state;
  LessonCounts c = method_counts()[0];
  counts_required();
  assert_count(c.launched_blocks, C + C + FREQUENCIES + K); /* filters, images, products, back */
  assert_count(c.global_store_requests, 2 * C * FREQUENCIES + FREQUENCIES * K * LANES / 2 / 32 + PLANES * 7);
  assert_count(c.global_store_sectors, (2 * C + K) * FREQUENCIES * LANES / 4 + PLANES * 7 * 4);
}

static void there_are_no_bank_conflicts(void **state) {
  (void)state;
  const LessonCounts *c = method_counts();
  counts_required();
  for (int i = 0; i < 3; i++) {
    assert_count(c[i].shared_load_conflicts, 0);
    assert_count(c[i].shared_store_conflicts, 0);
  }
}

static void tiled_products_load_less(void **state) {
  (void)state;
  LessonCounts naive = forward_counts(&conv2d_fft_whole_method), tiled = forward_counts(&conv2d_fft_whole_tiled_method);
  counts_required();
  assert_true(naive.shared_load_requests == 0 && tiled.shared_load_requests > 0);
  assert_true(tiled.global_load_requests < naive.global_load_requests / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spectra_are_written_in_whole_sectors),
      cmocka_unit_test(there_are_no_bank_conflicts),
      cmocka_unit_test(tiled_products_load_less),
  };
  return TEST_MAIN("conv2d_fft_counts", tests);
}

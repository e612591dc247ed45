/* What mma.sync asks of memory: 16 bytes per lane, each number of x once per tap, no conflicts; what a change of
 * layout moves. One tile: 64 pixels, 64 filters, 9 taps of 64 channels, no padding. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_core_lesson.cuh"

enum { PIXELS = 64, FILTERS = 64, CHANNELS = 64, TAPS = 9, BYTES = 2 };

static LessonCounts counts(Conv2dBfloat16 *launch) {
  static const char *const shapes[] = {"2x8x9x7x6x3x3:padding=1", "1x3x7x6x4x2x2:stride=3"}; /* the rest: nhwc_test */
  Lesson lesson = conv2d_bfloat16_lesson();
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return counts_of(&lesson, conv2d_bfloat16_version("conv2d", launch, ""), lesson.counted);
}

static void tensor_cores_are_fed_16_bytes_at_a_time(void **state) {
  (void)state;
  LessonCounts c = counts(conv2d_forward_nhwc_mma<__nv_bfloat16>);
  counts_required();
  const int copies = (PIXELS + FILTERS) * TAPS * CHANNELS * BYTES / 16 / 32, stores = PIXELS * FILTERS / 2 / 32;
  assert_count(c.global_load_requests, copies + 2 * stores); /* the bias as well, for each pair of outputs */
  assert_count(c.global_store_requests, stores);
  assert_count(c.global_store_sectors, 8 * stores); /* 8 pixels, 16 bytes of each */
  assert_count(c.shared_store_requests, copies);
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
}

static void a_layout_is_changed_in_whole_sectors(void **state) {
  (void)state;
  Lesson lesson = conv2d_layout_lesson();
  LessonCounts c = counts_of(&lesson, conv2d_layout_version("layout", conv2d_to_nhwc<__nv_bfloat16>, ""),
                             lesson_shape_of(&lesson, "1x64x8x16x1x1x1"));
  counts_required();
  assert_count(c.global_load_sectors, CHANNELS * 8 * 16 * 4 / 32);
  assert_count(c.global_store_sectors, CHANNELS * 8 * 16 * BYTES / 32);
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensor_cores_are_fed_16_bytes_at_a_time),
      cmocka_unit_test(a_layout_is_changed_in_whole_sectors),
  };
  return TEST_MAIN("conv2d_tensor_core_counts", tests);
}

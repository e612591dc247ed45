/* What the versions claim, by the inspector's counts. A filter has T = C R S taps, and there are W = N K P Q T / 32
 * products of a warp. The sizes are multiples of every tile, so that no lane is idle; the last versions compute whole
 * tiles. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm_lesson.cuh"

enum { C = 8, H = 8, WIDTH = 32, K = 128, TAPS = C * 9, PIXELS = H * WIDTH, W = K * PIXELS * TAPS / 32 };
enum { PACKING = K * TAPS / 32 }; /* requests for the filters, which are transposed through shared memory */

static LessonCounts counts(Lesson lesson, LessonVersion version) {
  const char *const few[] = {"2x3x9x8x5x3x3:padding=1", "1x1x1x1x1x1x1",
                             "2x16x9x10x34x3x3:stride=1x2:padding=2x1:dilation=2x1:groups=2"};
  lesson_check_shapes(&lesson, few, sizeof few / sizeof *few);
  return counts_of(&lesson, version, lesson_shape_of(&lesson, "1x8x8x32x128x3x3:padding=1"));
}

static LessonCounts forward(const Conv2dMethod *method) {
  return counts(conv2d_forward_lesson("conv2d_implicit_gemm"), conv2d_forward_version_of(method->name, method, ""));
}

static void a_tile_with_its_halo_serves_eight_filters(void **state) {
  (void)state;
  LessonCounts c = forward(&conv2d_halo_method);
  counts_required();
  assert_count(c.shared_load_requests, 3 * W / 8); /* an input and two float4 of weights for 8 products */
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
  assert_count(c.global_store_requests, K * PIXELS / 32);
  /* 8 x 32 pixels need 10 x 34 inputs: 11 requests of a warp, in the padding fewer; and 72 weights, 3 requests */
  const int blocks = PIXELS / 256 * K / 8 * C;
  if (c.global_load_requests > blocks * (11 + 3) + K * PIXELS / 32)
    fail_msg("%.0f requests to load; at most %d are expected", c.global_load_requests,
             blocks * (11 + 3) + K * PIXELS / 32);
}

static void the_plain_product_loads_two_floats_per_product_from_shared_memory(void **state) {
  (void)state;
  LessonCounts c = forward(&conv2d_gemm_tiled_method);
  counts_required();
  const int steps = (TAPS + 31) / 32;
  assert_count(c.shared_load_requests, 2 * (K * PIXELS / 32) * steps * 32); /* the last step is filled up with zeros */
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void a_patch_of_64_needs_16_floats(void **state) {
  (void)state;
  LessonCounts c = forward(&conv2d_gemm_register_method);
  counts_required();
  assert_count(c.shared_load_requests, 16 / 4 * W / 64 + PACKING);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

static void a_patch_of_128_needs_24_floats(void **state) {
  (void)state;
  LessonCounts c = counts(conv2d_forward_lesson("conv2d_implicit_gemm"), conv2d_configuration_version(0));
  counts_required();
  assert_count(c.shared_load_requests, 24 / 4 * W / 128 + PACKING);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
  /* The matrix with TAPS x PIXELS floats is in no memory: y alone is stored, and once the packed filters. */
  assert_count(c.global_store_requests, K * PIXELS / 128 + PACKING);
}

static void one_kernel_saves_a_pass_over_y(void **state) {
  (void)state;
  LessonCounts two =
      counts(conv2d_bias_relu_lesson(), conv2d_forward_version_of("two", &conv2d_then_bias_relu_method, ""));
  LessonCounts one = counts(conv2d_bias_relu_lesson(), conv2d_forward_version_of("one", &conv2d_bias_relu_method, ""));
  counts_required();
  assert_count(two.global_store_sectors - one.global_store_sectors, K * PIXELS / 8);
  if (two.global_load_sectors - one.global_load_sectors < K * PIXELS / 8)
    fail_msg("one kernel loads %.0f sectors, two %.0f", one.global_load_sectors, two.global_load_sectors);
}

/* No race, nothing uninitialised. */
static void every_configuration_is_right(void **state) {
  (void)state;
  for (int i = 0; i < CONV2D_GEMM_CONFIGURATIONS; i++) {
    Lesson lesson = conv2d_forward_lesson("conv2d_implicit_gemm");
    const char *const few[] = {"1x16x5x6x18x3x3:padding=1", "2x3x9x8x5x3x3:padding=1:stride=2"};
    lesson_check_shapes(&lesson, few, sizeof few / sizeof *few);
    counts_of(&lesson, conv2d_configuration_version(i), lesson_shape_of(&lesson, "1x1x1x1x1x1x1"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tile_with_its_halo_serves_eight_filters),
      cmocka_unit_test(the_plain_product_loads_two_floats_per_product_from_shared_memory),
      cmocka_unit_test(a_patch_of_64_needs_16_floats),
      cmocka_unit_test(a_patch_of_128_needs_24_floats),
      cmocka_unit_test(one_kernel_saves_a_pass_over_y),
      cmocka_unit_test(every_configuration_is_right),
  };
  return TEST_MAIN("conv2d_implicit_gemm_counts", tests);
}

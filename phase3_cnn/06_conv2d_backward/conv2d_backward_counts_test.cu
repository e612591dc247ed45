/* What the versions claim, by the inspector's counts. The shapes fill the tiles of every version, and with filters of
 * 1 x 1 no load is left out at an edge. A warp does 32 products at a time. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_lesson.cuh"

static LessonCounts input_counts(const Conv2dMethod *method, const char *shape) {
  Lesson lesson = conv2d_backward_input_lesson("conv2d_backward");
  conv2d_take_few(&lesson);
  return counts_of(&lesson, conv2d_backward_input_version_of(method->name, method, ""),
                   lesson_shape_of(&lesson, shape));
}

static LessonCounts weight_counts(const Conv2dMethod *method, bool any_order, const char *shape) {
  Lesson lesson = conv2d_backward_weight_lesson("conv2d_backward");
  LessonVersion version = conv2d_backward_weight_version_of(method->name, method, "");
  conv2d_take_few(&lesson);
  return counts_of(&lesson, any_order ? lesson_any_order_version(version) : version, lesson_shape_of(&lesson, shape));
}

/* ---- the gradient of the input ---- */

static const Conv2dMethod gather = {"gather", NULL, NULL, NULL, conv2d_backward_input_gather, NULL};

template <typename Tile>
static void input_of_tile(float *dx, const float *dy, const float *w, Conv2dShape s, float *workspace) {
  conv2d_backward_input_gemm_run<Tile>(dx, dy, w, s, s.n, workspace);
}
static const Conv2dMethod input_small = {"small", NULL, conv2d_input_gemm_floats, NULL, input_of_tile<Conv2dInputSmall>,
                                         NULL};
static const Conv2dMethod input_tiny = {"tiny", NULL, conv2d_input_gemm_floats, NULL, input_of_tile<Conv2dInputTiny>,
                                        NULL};

/* 64 channels of 8 x 8 inputs, 64 filters: one tile of each version, 64 deep. */
static void patches_of_the_input_load_8_floats_for_16_products_and_16_for_64(void **state) {
  (void)state;
  const char *shape = "1x64x8x8x64x1x1";
  LessonCounts of_gather = input_counts(&gather, shape), of_gemm = input_counts(&input_small, shape);
  counts_required();
  const int products = 64 * 64 * 64 / 32;
  assert_count(of_gather.shared_load_requests, products / 16 * 2);
  assert_count(of_gemm.shared_load_requests, products / 64 * 4);
  assert_count(of_gather.shared_load_conflicts + of_gather.shared_store_conflicts, 0);
  assert_count(of_gemm.shared_load_conflicts + of_gemm.shared_store_conflicts, 0);
}

/* Stride 2 and four taps: an input has been read by one of them. gather multiplies by zeros for the other three, and
 * for 32 rows of its tile, because there are 32 channels. */
static void phases_compute_no_product_in_vain(void **state) {
  (void)state;
  const char *shape = "1x32x16x16x64x2x2:stride=2";
  LessonCounts of_gather = input_counts(&gather, shape), of_gemm = input_counts(&input_tiny, shape);
  counts_required();
  const int products = 32 * 256 * 64 / 32;
  assert_count(of_gather.shared_load_requests, 4 * 2 * products / 16 * 2);
  assert_count(of_gemm.shared_load_requests, products / 32 * 3);
}

/* ---- the gradient of the filters: 64 filters, 64 weights of each, 4 images of 128 pixels ---- */

#define WEIGHT_SHAPE "4x64x8x16x64x1x1"

enum {
  PIXELS = 4 * 128,
  PRODUCTS = 64 * 64 * PIXELS / 32,
  SPLITS = PIXELS / CONV2D_SPLIT_PIXELS,
  STORES = 64 * 64 / 32,               /* of dw, each to 32 of 64 neighbours in two rows */
  BIAS_LOADS = 64 * PIXELS / 32 + 2,   /* dy; and the sums, of one slice */
  BIAS_SHARED = 64 * CONV2D_BIAS_WARPS /* one thread per block adds up the warps' sums */
};

static void one_block_loads_dy_and_x_once_and_the_bias_dy_again(void **state) {
  (void)state;
  LessonCounts c = weight_counts(&conv2d_backward_blocks_method, false, WEIGHT_SHAPE);
  counts_required();
  assert_count(c.shared_load_requests, PRODUCTS / 16 * 2 + BIAS_SHARED);
  assert_count(c.global_load_requests, 2 * 64 * PIXELS / 32 + BIAS_LOADS);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

/* No version loads more than the others: the pixels are divided. What differs is how the parts come together. */
static void splits_store_their_parts_or_add_them(void **state) {
  (void)state;
  LessonCounts blocks = weight_counts(&conv2d_backward_blocks_method, false, WEIGHT_SHAPE);
  LessonCounts atomic = weight_counts(&conv2d_backward_atomic_method, true, WEIGHT_SHAPE);
  LessonCounts split = weight_counts(&conv2d_backward_split_method, false, WEIGHT_SHAPE);
  counts_required();
  assert_count(atomic.shared_load_requests, blocks.shared_load_requests);
  assert_count(split.shared_load_requests, blocks.shared_load_requests);
  assert_count(atomic.launched_blocks - blocks.launched_blocks, SPLITS - 1);
  assert_count(blocks.global_atomic_requests, 0);
  assert_count(atomic.global_atomic_requests, SPLITS * STORES);
  assert_count(blocks.global_store_requests - atomic.global_store_requests, STORES);
  assert_count(split.global_atomic_requests, 0);
  assert_count(split.global_store_requests - blocks.global_store_requests, (SPLITS - 1) * STORES + 64 * 64 / 32);
  assert_count(split.global_load_requests - blocks.global_load_requests, SPLITS * 64 * 64 / 32);
}

/* A patch of 16 x 8 is 6 float4 for 128 products. */
static void weight_of_warps(float *dw, float *dbias, const float *dy, const float *x, Conv2dShape s, float *workspace) {
  conv2d_backward_bias(dbias, dy, s, workspace);
  conv2d_backward_weight_gemm_run<Conv2dWeightWarp>(dw, dy, x, s, workspace, true);
}

static void patches_of_the_filters_load_24_floats_for_128_products(void **state) {
  (void)state;
  const Conv2dMethod warp = {"warp", NULL, conv2d_backward_gemm_weight_floats, NULL, NULL, weight_of_warps};
  LessonCounts c = weight_counts(&warp, true, WEIGHT_SHAPE);
  counts_required();
  assert_count(c.shared_load_requests, PRODUCTS / 128 * 6 + BIAS_SHARED);
  assert_count(c.shared_load_conflicts + c.shared_store_conflicts, 0);
}

/* The order is fixed where there are no atomics; the parts take the way through the workspace. */
static void equal_shares_need_no_atomics(void **state) {
  (void)state;
  LessonCounts stored = weight_counts(&conv2d_backward_gemm_weight_method, false, WEIGHT_SHAPE);
  LessonCounts atomic = weight_counts(&conv2d_backward_gemm_atomic_method, true, WEIGHT_SHAPE);
  counts_required();
  assert_count(stored.global_atomic_requests, 0);
  if (!(atomic.global_atomic_requests > 0)) fail_msg("gemm_atomic has no atomics");
  if (!(stored.global_load_requests > atomic.global_load_requests))
    fail_msg("gemm loads %.0f times, gemm_atomic %.0f times", stored.global_load_requests, atomic.global_load_requests);
  assert_count(stored.shared_load_conflicts + stored.shared_store_conflicts, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(patches_of_the_input_load_8_floats_for_16_products_and_16_for_64),
      cmocka_unit_test(phases_compute_no_product_in_vain),
      cmocka_unit_test(one_block_loads_dy_and_x_once_and_the_bias_dy_again),
      cmocka_unit_test(splits_store_their_parts_or_add_them),
      cmocka_unit_test(patches_of_the_filters_load_24_floats_for_128_products),
      cmocka_unit_test(equal_shares_need_no_atomics),
  };
  return TEST_MAIN("conv2d_backward_counts", tests);
}

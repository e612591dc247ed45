/* What Winograd's algorithm moves: 8 channels of 16 x 32, 16 filters, padding 1. */
#include "common/lesson/test_counts.h"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_fused.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd_lesson.cuh"

enum {
  TILES = 16 * 32 / 4,        /* of 2 x 2 outputs */
  Y = 16 * 16 * 32 * 4 / 32,  /* sectors of y */
  U = 8 * 64 * 4 / 32,        /* of the transformed filters, per point: padded to 64 filters */
  V = 8 * TILES * 4 / 32,     /* of the transformed input, per point */
  M = 64 * TILES * 4 / 32,    /* of the products, per point */
  PADDED = 64 * 128 * 4 / 32, /* the same for F(4x4): 32 tiles, padded to 128 */
};

/* Of one launch; no version has bank conflicts. */
static LessonCounts counts(const Conv2dMethod *method) {
  Lesson lesson = conv2d_winograd4_lesson();
  LessonCounts c = counts_of(&lesson, conv2d_forward_version_of(method->name, method, ""), lesson.counted);
  counts_required();
  assert_count(c.shared_load_conflicts, 0);
  assert_count(c.shared_store_conflicts, 0);
  return c;
}

/* Each transformed array is written once, in whole sectors. */
static void transforms_store_whole_sectors(void **state) {
  (void)state;
  LessonCounts c = counts(&winograd2_forward);
  assert_count(c.global_store_sectors, Y + 16 * (U + V + M));
}

/* 2.25 times as many points, and a quarter of the tiles, which here are too few: they are padded. */
static void few_tiles_are_padded(void **state) {
  (void)state;
  LessonCounts c = counts(&winograd4_forward);
  assert_count(c.global_store_sectors, Y + 36 * (U + 8 * 128 * 4 / 32 + PADDED));
}

/* In one kernel v and m stay on the chip. */
static void fused_stores_filters_and_outputs(void **state) {
  (void)state;
  LessonCounts square = counts(&winograd2_fused_forward), wide = counts(&winograd2x4_forward);
  assert_count(square.global_store_sectors, Y + 16 * U);
  assert_count(wide.global_store_sectors, Y + 24 * U);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transforms_store_whole_sectors),
      cmocka_unit_test(few_tiles_are_padded),
      cmocka_unit_test(fused_stores_filters_and_outputs),
  };
  return TEST_MAIN("conv2d_winograd_counts", tests);
}

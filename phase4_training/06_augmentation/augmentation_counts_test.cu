/* What the versions load and store, by the inspector, on 4 images of 3 x 32 x 32: 12288 values, 4096 pixels. The order
 * and the key are small. */
#include "common/lesson/test_counts.h"
#include "phase4_training/06_augmentation/augmentation_frame_lesson.cuh"

enum { N = 4, C = 3, H = 32, W = 32, VALUES = N * C * H * W, PIXELS = N * H * W, SQUARE = 6 };

static LessonCounts counts(LessonVersion version) {
  const Lesson lesson = augmentation_lesson();
  return counts_of(&lesson, version, lesson.counted);
}

/* Four passes write every value, a float each; the squares are written besides. */
static void passes_write_every_value_four_times(void **state) {
  (void)state;
  const LessonCounts passes = counts(augmentation_version("passes", augmentation_passes, "")),
                     drawn = counts(augmentation_version("drawn", augmentation_drawn, ""));
  counts_required();
  assert_true(passes.global_store_requests >= 4 * VALUES / 32);
  assert_true(passes.global_store_requests <= 4 * VALUES / 32 + (N * C * SQUARE * SQUARE + 31) / 32);
  /* one more store for each number of a draw, of one warp */
  assert_count(drawn.global_store_requests - passes.global_store_requests, sizeof(AugmentDraw) / sizeof(int));
}

static void fused_writes_every_value_once(void **state) {
  (void)state;
  const LessonCounts c = counts(augmentation_version("fused", augmentation_fused, "")),
                     drawn = counts(augmentation_version("drawn", augmentation_drawn, ""));
  counts_required();
  assert_count(c.global_store_requests, VALUES / 32 + sizeof(AugmentDraw) / sizeof(int));
  assert_true(c.global_load_sectors + c.global_store_sectors <
              (drawn.global_load_sectors + drawn.global_store_sectors) / 2);
}

/* Loads: each byte once, a word of four per lane; an image's place for each warp that loads, its number for the one
 * that draws, and the key, 3 words. Stores: a float4 per lane. */
static void the_frame_is_loaded_once(void **state) {
  (void)state;
  const LessonCounts c = counts(augmentation_frame_version(""));
  counts_required();
  assert_count(c.global_store_requests, VALUES / 4 / 32);
  assert_count(c.global_store_sectors, VALUES / 8);
  const int image = VALUES / 4 / 32, few = N * (AUGMENT_LOADERS + 1 + 3);
  assert_count(c.global_load_requests, image + few);
  assert_count(c.global_load_sectors, VALUES / 32 + few);
}

/* Only moved, the words that a warp reads and writes lie in 32 banks. */
static void rows_of_the_frame_have_no_conflicts(void **state) {
  (void)state;
  Lesson lesson = augmentation_lesson_alone<AUGMENTATION_FLIP>();
  const LessonCounts c = counts_of(&lesson, augmentation_frame_version(""), lesson_shape_of(&lesson, "4x3x32x32"));
  counts_required();
  assert_count(c.shared_store_conflicts, 0);
  assert_count(c.shared_load_conflicts, 0);
  /* loads: a word per pixel; a draw per warp */
  assert_true(c.shared_load_requests >= PIXELS / 32);
  assert_true(c.shared_load_requests <= PIXELS / 32 + N * AUGMENT_WARPS * 32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(passes_write_every_value_four_times),
      cmocka_unit_test(fused_writes_every_value_once),
      cmocka_unit_test(the_frame_is_loaded_once),
      cmocka_unit_test(rows_of_the_frame_have_no_conflicts),
  };
  return TEST_MAIN("augmentation_counts", tests);
}

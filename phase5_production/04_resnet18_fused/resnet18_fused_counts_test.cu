/* The kernels of this lesson on all their shapes, and what they move, by the inspector; the stem, which is slow to
 * emulate, on one of them: resnet18_fused_test has the others. */
#include "common/lesson/test_counts.h"
#include "phase5_production/04_resnet18_fused/add_relu_half_lesson.cuh"
#include "phase5_production/04_resnet18_fused/fold_shortcut_lesson.cuh"
#include "phase5_production/04_resnet18_fused/pool_linear_lesson.cuh"
#include "phase5_production/04_resnet18_fused/stem_pool_lesson.cuh"

/* 512 x 64 numbers of 2 bytes are 2048 sectors. */
static void one_kernel_moves_three_arrays_of_five(void **state) {
  (void)state;
  const Lesson lesson = add_relu_half_lesson();
  const LessonCounts two =
      counts_of(&lesson, add_relu_half_version("two", add_relu_half_two<__nv_bfloat16>, ""), lesson.counted);
  const LessonCounts one =
      counts_of(&lesson, add_relu_half_version("one", add_relu_half<__nv_bfloat16>, ""), lesson.counted);
  counts_required();
  assert_count(two.global_load_sectors + two.global_store_sectors, 5 * 2048);
  assert_count(one.global_load_sectors + one.global_store_sectors, 3 * 2048);
}

/* One picture of 28 x 32: 7 x 8 windows of 64 filters, 56 x 64 numbers of 2 bytes, are written once, and nothing else
 * is: the 14 x 16 outputs of the convolution are not. */
static void the_stem_writes_its_windows_alone(void **state) {
  (void)state;
  const Lesson lesson = stem_pool_lesson();
  const LessonCounts c =
      counts_alone_of(&lesson, stem_pool_version("stem", stem_pool_forward_gpu<__nv_bfloat16>, ""), lesson.counted);
  counts_required();
  assert_count(c.global_store_sectors, 56 * 64 * 2 / 32);
}

/* 8 images of 4 x 512 numbers: without clusters both blocks of 64 classes read them, in a cluster each reads half of
 * them; the weights are read once for 8 images. */
static void means_are_not_stored(void **state) {
  (void)state;
  const Lesson lesson = pool_linear_lesson();
  const LessonCounts c =
      counts_of(&lesson, pool_linear_version("head", pool_linear_forward_gpu<__nv_bfloat16>, ""), lesson.counted);
  counts_required();
  const int x = 8 * 4 * 512 * 2 / 32, w = 128 * 512 * 4 / 32, bias = 8 * 128;
  assert_true(c.global_load_sectors >= (pool_linear_clusters() ? 1 : 2) * x + w);
  assert_true(c.global_load_sectors <= (pool_linear_clusters() ? 1 : 2) * x + w + bias);
  assert_true(c.global_store_sectors <= 8 * 128);
}

static void two_folds_are_one(void **state) {
  (void)state;
  const Lesson lesson = fold_shortcut_lesson();
  counts_of(&lesson, fold_shortcut_version("fold", fold_shortcut_gpu, ""), lesson.counted);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_kernel_moves_three_arrays_of_five),
                                     cmocka_unit_test(the_stem_writes_its_windows_alone),
                                     cmocka_unit_test(means_are_not_stored), cmocka_unit_test(two_folds_are_one)};
  return TEST_MAIN("resnet18_fused_counts", tests);
}

/* duel_compare.cuh: the kernels against the loops, and the loops against what can be said in words. */
#include "common/lesson/verify.h"
#include "common/test.h"
#include "phase5_production/11_runtime_duel/duel_compare_lesson.cuh"

static void verify(Lesson lesson, LessonVersion version) {
  static LessonResult result; /* large */
  test_requires_gpu();
  if (lesson_verify_all(&lesson, &version, 1, &result) != 0) fail_msg("%s: %s", version.name, result.message);
}

static void a_warp_per_row_finds_the_angle(void **state) {
  (void)state;
  verify(duel_agreement_lesson(), duel_agreement_version("warp", duel_agreement_gpu, NULL));
}

static void a_warp_per_row_finds_the_largest(void **state) {
  (void)state;
  verify(duel_top1_lesson(), duel_top1_version("warp", duel_top1_gpu, NULL));
}

static void a_warp_per_group_finds_the_worst(void **state) {
  (void)state;
  verify(duel_worst_lesson(), duel_worst_version("warp", duel_worst_gpu, NULL));
}

static void a_nan_is_worse_than_all_numbers(void **state) {
  (void)state;
  const float difference[] = {1, 2, 0, 3, NAN, INFINITY, 0, 0, 4, 4, 1, 4},
              ones[] = {1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  float worst[3];
  int row[3];
  duel_worst_cpu(worst, row, difference, ones, 3, 4);
  assert_true(worst[0] == 3 && row[0] == 3 && isnan(worst[1]) && row[1] == 0 && worst[2] == 4 && row[2] == 0);
}

static void angles_are_those_of_geometry(void **state) {
  (void)state;
  const float a[] = {1, 0, 3, 4, 1, 1, 0, 0, NAN, 1}, b[] = {0, 2, 6, 8, -1, -1, 0, 0, 1, 1};
  const float expected[] = {0, 1, -1, 1};
  float cosine[5], difference[5], largest[5];
  duel_agreement_cpu(cosine, difference, largest, a, b, 5, 2);
  for (int i = 0; i < 4; i++) assert_float_equal(cosine[i], expected[i], 1e-6f);
  assert_true(isnan(cosine[4]));
  assert_true(difference[1] == 4 && largest[1] == 8 && largest[2] == 1 && difference[2] == 2);
}

static void of_equal_numbers_the_first_is_the_largest(void **state) {
  (void)state;
  const float a[] = {1, 5, 5, 2, 5, 5, 0, 0}, b[] = {7, 7, 7, 7, -3, -1, -2, -1};
  int first[2], second[2];
  duel_top1_cpu(first, second, a, b, 2, 4);
  assert_true(first[0] == 1 && second[0] == 0 && first[1] == 0 && second[1] == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(angles_are_those_of_geometry),    cmocka_unit_test(of_equal_numbers_the_first_is_the_largest),
      cmocka_unit_test(a_nan_is_worse_than_all_numbers), cmocka_unit_test(a_warp_per_group_finds_the_worst),
      cmocka_unit_test(a_warp_per_row_finds_the_angle),  cmocka_unit_test(a_warp_per_row_finds_the_largest)};
  return TEST_MAIN("duel_compare", tests);
}

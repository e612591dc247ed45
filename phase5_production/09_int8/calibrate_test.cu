/* Ranges: what is left out, where a share ends, what one outlier does to each method. */
#include "phase5_production/09_int8/calibrate.h"

#include "common/philox.h"
#include "common/test.h"

enum { MANY = 20000 };

/* The sum of twelve uniform numbers, less 6: nearly normal, of variance 1. */
static float nearly_normal(uint32_t stream, size_t i) {
  float sum = -6;
  for (int k = 0; k < 3; k++) {
    const PhiloxBlock block = philox4x32(1, stream, 3 * i + (size_t)k);
    for (int j = 0; j < 4; j++) sum += philox_uniform(block.word[j]);
  }
  return sum;
}

static CalibrateRange *range_of(const float *x, size_t count, size_t batch) {
  CalibrateRange *range = (CalibrateRange *)xcalloc(1, sizeof *range);
  for (size_t i = 0; i < count; i += batch) calibrate_largest(range, x + i, i + batch < count ? batch : count - i);
  for (size_t i = 0; i < count; i += batch) calibrate_count(range, x + i, i + batch < count ? batch : count - i);
  return range;
}

static void expect_between(const char *what, double value, double low, double high) {
  if (!(value >= low && value <= high)) fail_msg("%s is %g; from %g to %g was expected", what, value, low, high);
}

static void the_largest_number_that_is_one(void **state) {
  (void)state;
  const float x[] = {0.5f, -3, NAN, INFINITY, 2, -INFINITY};
  CalibrateRange *range = range_of(x, 6, 4);
  assert_true(calibrate_most(range, CALIBRATE_MIN_MAX, 0, 128) == 3);
  free(range);
  const float zeros[4] = {0, -0.0f, 0, 0};
  range = range_of(zeros, 4, 4);
  assert_true(calibrate_most(range, CALIBRATE_MIN_MAX, 0, 128) == 0);
  assert_true(calibrate_most(range, CALIBRATE_PERCENTILE, 0, 128) == 0);
  assert_true(calibrate_most(range, CALIBRATE_ENTROPY, 0, 128) == 0);
  free(range);
}

static void a_share_of_the_numbers(void **state) {
  (void)state;
  float *x = (float *)xmalloc(MANY * sizeof *x);
  for (int i = 0; i < MANY; i++) x[i] = (i % 2 ? 1 : -1) * (i + 1) / (float)MANY; /* |x| is uniform up to 1 */
  CalibrateRange *range = range_of(x, MANY, 999);
  uint64_t all = 0;
  for (int i = 0; i < CALIBRATE_BINS; i++) all += range->bin[i];
  assert_int_equal(all, MANY);
  expect_between("half", calibrate_most(range, CALIBRATE_PERCENTILE, 0.5, 128), 0.5, 0.501);
  expect_between("nine tenths", calibrate_most(range, CALIBRATE_PERCENTILE, 0.9, 128), 0.9, 0.901);
  expect_between("all", calibrate_most(range, CALIBRATE_PERCENTILE, 1, 128), 1, 1);
  expect_between("entropy of what is uniform", calibrate_most(range, CALIBRATE_ENTROPY, 0, 128), 0.99, 1);
  free(range);
  free(x);
}

static void one_outlier(void **state) {
  (void)state;
  float *x = (float *)xmalloc(MANY * sizeof *x);
  for (int i = 0; i < MANY; i++) x[i] = nearly_normal(3, (size_t)i);
  x[77] = 40;
  CalibrateRange *range = range_of(x, MANY, MANY);
  expect_between("min-max", calibrate_most(range, CALIBRATE_MIN_MAX, 0, 128), 40, 40);
  expect_between("percentile", calibrate_most(range, CALIBRATE_PERCENTILE, 0, 128), 3, 5);
  expect_between("entropy", calibrate_most(range, CALIBRATE_ENTROPY, 0, 128), 2.4, 6);
  free(range);
  free(x);
}

/* Half of what is behind a ReLU is 0: the range is that of the other half. */
static void zeros_do_not_count(void **state) {
  (void)state;
  float *x = (float *)xmalloc(2 * MANY * sizeof *x);
  for (int i = 0; i < MANY; i++) x[i] = fabsf(nearly_normal(4, (size_t)i));
  memset(x + MANY, 0, MANY * sizeof *x);
  CalibrateRange *some = range_of(x, MANY, 100), *all = range_of(x, 2 * MANY, 100);
  assert_int_equal(all->zeros, MANY);
  assert_true(calibrate_most(some, CALIBRATE_ENTROPY, 0, 256) == calibrate_most(all, CALIBRATE_ENTROPY, 0, 256));
  free(some);
  free(all);
  free(x);
}

static void names(void **state) {
  (void)state;
  for (int i = 0; i < CALIBRATE_METHODS; i++) assert_int_equal(calibrate_find(calibrate_name((CalibrateMethod)i)), i);
  assert_int_equal(calibrate_find("largest"), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_largest_number_that_is_one),
      cmocka_unit_test(a_share_of_the_numbers),
      cmocka_unit_test(one_outlier),
      cmocka_unit_test(zeros_do_not_count),
      cmocka_unit_test(names),
  };
  return TEST_MAIN("calibrate", tests);
}

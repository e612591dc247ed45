/* When is an array right, and which is the worst of its wrong elements? */
#include "common/compare_fixture.h"

static float next_up(float x) { return nextafterf(x, INFINITY); }
static void equal_is_right(void **state) {
  (void)state;
  for (size_t n = 1; n <= N; n = 2 * n + 1) {
    Comparison c = compare_shape(1, n);
    assert_true(c.ok);
    assert_int_equal(c.wrong, 0);
    assert_true(c.error == 0);
    assert_int_equal(c.values, DIAGNOSIS_NONE);
  }
}

static void within_tolerance_is_right_and_reported(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = next_up(expected[i]);
  expected[40] = 1;
  actual[40] = 1 + 5e-6f;
  Comparison c = compare();
  assert_true(c.ok);
  assert_int_equal(c.worst_row, 1);
  assert_int_equal(c.worst_col, 3);
  assert_true(c.error > 4.5e-6 && c.error < 5.5e-6);
  assert_true(c.tolerance > 1e-6 && c.tolerance < 3.1e-5);
}

static void infinity_equals_itself_only(void **state) {
  (void)state;
  expected[5] = actual[5] = INFINITY;
  expected[6] = actual[6] = -INFINITY;
  assert_true(compare().ok);
  actual[6] = INFINITY;
  assert_diagnosis(compare(), DIAGNOSIS_INFINITE, DIAGNOSIS_SCATTERED);
  actual[6] = 3e38f;
  assert_false(compare().ok);
}

static void nan_equals_nan_only_when_asked(void **state) {
  (void)state;
  expected[5] = actual[5] = NAN;
  assert_diagnosis(compare(), DIAGNOSIS_REFERENCE_NAN, DIAGNOSIS_SCATTERED);
  Tolerance nan_equal = {1e-5, 1e-6, 1};
  assert_true(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
  actual[5] = 1;
  assert_false(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
  compare_poison(&actual[5], 1);
  assert_false(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
}

static void beyond_tolerance_is_wrong(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i += 1 + i % 7) {
    memcpy(actual, expected, sizeof actual);
    actual[i] += 0.5f;
    Comparison c = compare();
    assert_false(c.ok);
    assert_int_equal(c.wrong, 1);
    assert_int_equal(c.worst_row * COLS + c.worst_col, i);
  }
}

static void empty_is_not_right(void **state) {
  (void)state;
  assert_false(compare_shape(0, 3).ok);
  assert_false(compare_shape(3, 0).ok);
}

static void zero_tolerance_wants_equality(void **state) {
  (void)state;
  actual[17] = next_up(actual[17]);
  Comparison c = compare_arrays(actual, expected, ROWS, COLS, tolerance_make(0, 0));
  assert_false(c.ok);
  assert_int_equal(c.worst_col, 17);
}

static void nan_is_wrong(void **state) {
  (void)state;
  actual[N - 3] = NAN;
  Comparison c = compare();
  assert_diagnosis(c, DIAGNOSIS_NAN, DIAGNOSIS_SCATTERED);
  assert_int_equal(c.worst_row, ROWS - 1);
  actual[3] = 1e30f; /* the NaN is worse, and what the message is about */
  c = compare();
  assert_diagnosis(c, DIAGNOSIS_NAN, DIAGNOSIS_SCATTERED);
  assert_int_equal(c.worst_row, ROWS - 1);
  for (size_t i = 0; i < N; i++) actual[i] = -NAN;
  assert_diagnosis(compare(), DIAGNOSIS_NAN, DIAGNOSIS_EVERYWHERE);
}

static void two_runs(void **state) {
  (void)state;
  assert_true(compare_runs(actual, expected, N).ok);
  actual[9] = next_up(actual[9]);
  actual[99] = next_up(actual[99]);
  Comparison c = compare_runs(expected, actual, N);
  print_message("%s\n", c.message);
  assert_false(c.ok);
  assert_int_equal(c.values, DIAGNOSIS_NOT_REPEATED);
  assert_int_equal(c.worst_col, 9);
  assert_int_equal(c.wrong, 2);
  assert_non_null(strstr(c.message, "race"));
  assert_false(compare_runs(expected, actual, 0).ok);
  actual[9] = expected[9] = NAN; /* the same NaN twice is no race */
  actual[99] = expected[99];
  assert_true(compare_runs(expected, actual, N).ok);
}

/* The bound holds for float sums in three orders, and is tight enough to see one missing product. */
static void dot_tolerance_holds_and_bites(void **state) {
  (void)state;
  const size_t lengths[] = {1, 3, 31, 33, 127, 400, 1021, 4096};
  static float a[4096], b[4096];
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (uint64_t seed = 0; seed < 20; seed++) {
      size_t n = lengths[l];
      test_random_fill(a, n, 100 + seed);
      test_random_fill(b, n, 200 + seed);
      double exact = 0;
      float forward = 0, backward = 0, lanes[8] = {0};
      for (size_t i = 0; i < n; i++) {
        exact += (double)a[i] * b[i];
        forward += a[i] * b[i];
        backward += a[n - 1 - i] * b[n - 1 - i];
        lanes[i % 8] += a[i] * b[i];
      }
      float reference = (float)exact;
      float wide = lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
      Tolerance t = tolerance_dot(n, 1);
      assert_true(compare_arrays(&forward, &reference, 1, 1, t).ok);
      assert_true(compare_arrays(&backward, &reference, 1, 1, t).ok);
      assert_true(compare_arrays(&wide, &forward, 1, 1, t).ok);
      float missing = forward - 0.6f; /* the mean of |a b| */
      assert_false(compare_arrays(&missing, &reference, 1, 1, t).ok);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(equal_is_right),
      CASE(within_tolerance_is_right_and_reported),
      CASE(infinity_equals_itself_only),
      CASE(nan_equals_nan_only_when_asked),
      CASE(beyond_tolerance_is_wrong),
      CASE(empty_is_not_right),
      CASE(zero_tolerance_wants_equality),
      CASE(nan_is_wrong),
      CASE(two_runs),
      CASE(dot_tolerance_holds_and_bites),
  };
  return TEST_MAIN("compare", tests);
}

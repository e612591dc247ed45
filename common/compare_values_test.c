/* Feeds compare.h one array for each way to compute wrong values, and asserts that it is rejected with the right
 * diagnosis. */
#include "common/compare_fixture.h"

static void untouched(void **state) {
  (void)state;
  compare_poison(actual, N);
  assert_diagnosis(compare(), DIAGNOSIS_NEVER_WRITTEN, DIAGNOSIS_EVERYWHERE);
  for (size_t i = 0; i < N; i++) assert_true(compare_is_poison(&actual[i]) && isnan(actual[i]));
}

static void accumulated_into_the_poison(void **state) {
  (void)state;
  compare_poison(actual, N);
  for (size_t i = 0; i < N; i++) {
    volatile float sum = actual[i];
    actual[i] = sum + expected[i];
  }
  assert_diagnosis(compare(), DIAGNOSIS_READ_BEFORE_WRITTEN, DIAGNOSIS_EVERYWHERE);
}

static void zeros(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i += 3) expected[i] = 0; /* as after a ReLU */
  memset(actual, 0, sizeof actual);
  Comparison c = compare();
  assert_false(c.ok);
  assert_int_equal(c.values, DIAGNOSIS_ZERO);
}

static void one_value_everywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = 0.1f;
  expected[3] = 0.1f;
  assert_int_equal(compare().values, DIAGNOSIS_ONE_VALUE);
}

static void opposite_sign(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = -expected[i];
  assert_diagnosis(compare(), DIAGNOSIS_SIGN, DIAGNOSIS_EVERYWHERE);
}

static void sign_lost(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = fabsf(expected[i]);
  Comparison c = compare();
  assert_int_equal(c.values, DIAGNOSIS_SIGN);
  assert_non_null(strstr(c.message, "the opposite where a negative value is expected: a sign is lost"));
}

static void constant_factor(void **state) {
  (void)state;
  const float factors[] = {64, 2, 0.5f, 1.0f / 64, -3, 1.01f};
  for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
    for (size_t i = 0; i < N; i++) actual[i] = factors[f] * expected[i];
    Comparison c = compare();
    assert_diagnosis(c, DIAGNOSIS_FACTOR, DIAGNOSIS_EVERYWHERE);
    if (f == 0) assert_non_null(strstr(c.message, "64 times"));
    if (f == 3) assert_non_null(strstr(c.message, "1/64 "));
  }
}

static void constant_offset_and_affine(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] - 0.25f;
  Comparison c = compare();
  assert_diagnosis(c, DIAGNOSIS_OFFSET, DIAGNOSIS_EVERYWHERE);
  assert_non_null(strstr(c.message, "The values are x - 0.25 where x is expected"));
  for (size_t i = 0; i < N; i++) actual[i] = 1 - expected[i];
  assert_non_null(strstr(compare().message, "The values are 1 - x where x is expected"));
  for (size_t i = 0; i < N; i++) actual[i] = (expected[i] + 2) * 3;
  c = compare();
  assert_diagnosis(c, DIAGNOSIS_AFFINE, DIAGNOSIS_EVERYWHERE);
  assert_non_null(strstr(c.message, "The values are 3 * x + 6 where x is expected"));
}

static double one_over(double x) { return 1 / x; }

static void function_of_what_is_expected(void **state) {
  (void)state;
  static const struct {
    double (*of)(double);
    const char *says;
  } functions[] = {
      {sqrt, "sqrt(x) where"}, {exp, "is a logarithm missing?"}, {log, "is exp() missing?"}, {one_over, "1 / x where"}};
  for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
    for (size_t i = 0; i < N; i++) {
      expected[i] = 0.1f + fabsf(expected[i]);
      actual[i] = (float)functions[f].of(expected[i]);
    }
    Comparison c = compare();
    assert_false(c.ok);
    assert_int_equal(c.values, DIAGNOSIS_FUNCTION);
    assert_non_null(strstr(c.message, functions[f].says));
  }
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] * expected[i];
  assert_non_null(strstr(compare().message, "x * x where x is expected: is a root missing?"));
}

static void a_factor_or_a_term_for_each_line(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] * (2 + (float)(i / COLS));
  Comparison c = compare();
  assert_diagnosis(c, DIAGNOSIS_LINE_FACTOR, DIAGNOSIS_EVERYWHERE);
  assert_non_null(strstr(c.message, "Each row is what is expected times a factor of its own (row 0: 2, row 1: 3)"));
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] + 2 + (float)(i % COLS);
  c = compare();
  assert_diagnosis(c, DIAGNOSIS_LINE_FACTOR, DIAGNOSIS_EVERYWHERE);
  assert_non_null(
      strstr(c.message, "Each column is what is expected plus a term of its own (column 0: 2, column 1: 3)"));
}

static void nan_has_no_sign(void **state) {
  (void)state;
  actual[3] = -NAN;
  Comparison c = compare();
  assert_non_null(strstr(c.message, "column 3: NaN where"));
  assert_null(strstr(c.message, "-nan"));
}

/* Each row has a factor, and some elements are so small that they are right nearly enough. */
static void lines_with_small_elements(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) {
    if (i % 5 == 0) expected[i] = 4e-6f;
    actual[i] = expected[i] * (2 + (float)(i / COLS));
  }
  assert_sentence(compare(), DIAGNOSIS_LINE_FACTOR, "Each row is what is expected times a factor of its own");
}

static void one_value_where_one_is_expected(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i += 300) expected[i] = 0.1f;
  memcpy(actual, expected, sizeof actual);
  for (size_t i = 0; i < N; i += 300) actual[i] = 0.2f;
  Comparison c = compare();
  assert_int_not_equal(c.values, DIAGNOSIS_ONE_VALUE);
  assert_null(strstr(c.message, "depend on the thread's index"));
}

static void rounding_beside_the_values(void **state) {
  (void)state;
  const Tolerance exact = {0, 0, 0}, wide = {0, 0.02, 0};
  for (size_t i = 0; i < N; i += 2) actual[i] = nextafterf(expected[i], 0);
  Comparison c = compare_arrays(actual, expected, 1, N, exact);
  assert_int_equal(c.values, DIAGNOSIS_ROUNDING);
  assert_non_null(strstr(c.message, "All go towards zero."));
  for (size_t i = 0; i < N; i += 2) actual[i] = nextafterf(expected[i], 2 * expected[i]);
  assert_non_null(strstr(compare_arrays(actual, expected, 1, N, exact).message, "All go away from zero."));
  actual[0] = nextafterf(expected[0], 0);
  c = compare_arrays(actual, expected, 1, N, exact);
  assert_int_equal(c.values, DIAGNOSIS_ROUNDING);
  assert_null(strstr(c.message, "All go"));
  test_random_fill(actual, N, 2); /* errors as large as the values are not rounding, however wide the tolerance is */
  assert_int_equal(compare_arrays(actual, expected, ROWS, COLS, wide).values, DIAGNOSIS_WRONG_VALUES);
}

static void rounding(void **state) {
  (void)state;
  float noise[N];
  test_random_fill(noise, N, 2);
  for (size_t i = 0; i < N; i++) actual[i] += 3e-5f * noise[i];
  assert_int_equal(compare().values, DIAGNOSIS_ROUNDING);
}

static void unrelated(void **state) {
  (void)state;
  test_random_fill(actual, N, 2);
  assert_diagnosis(compare(), DIAGNOSIS_WRONG_VALUES, DIAGNOSIS_EVERYWHERE);
}

/* A lone wrong element must not be explained by a pattern that any number would fit. */
static void no_pattern_in_one_element(void **state) {
  (void)state;
  actual[100] *= 2;
  assert_diagnosis(compare(), DIAGNOSIS_WRONG_VALUES, DIAGNOSIS_SCATTERED);
  actual[100] = expected[101];
  assert_diagnosis(compare(), DIAGNOSIS_WRONG_VALUES, DIAGNOSIS_SCATTERED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(untouched),
      CASE(accumulated_into_the_poison),
      CASE(zeros),
      CASE(one_value_everywhere),
      CASE(opposite_sign),
      CASE(sign_lost),
      CASE(constant_factor),
      CASE(constant_offset_and_affine),
      CASE(function_of_what_is_expected),
      CASE(a_factor_or_a_term_for_each_line),
      CASE(nan_has_no_sign),
      CASE(lines_with_small_elements),
      CASE(one_value_where_one_is_expected),
      CASE(rounding_beside_the_values),
      CASE(rounding),
      CASE(unrelated),
      CASE(no_pattern_in_one_element),
  };
  return TEST_MAIN("compare_values", tests);
}

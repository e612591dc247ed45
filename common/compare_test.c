/* Feeds compare.h one array for each way to be wrong, and asserts that it is rejected with the right diagnosis. */
#include "common/compare.h"
#include "common/formula.h"

#include "common/test.h"

enum { ROWS = 33, COLS = 37, N = ROWS * COLS };

static float expected[N], actual[N];
static const Tolerance tolerance = {1e-5, 1e-6, 0};

static int setup(void **state) {
  (void)state;
  test_random_fill(expected, N, 1);
  memcpy(actual, expected, sizeof actual);
  return 0;
}

static Comparison compare_shape(size_t rows, size_t cols) {
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance);
  print_message("%s\n", c.message);
  return c;
}

static Comparison compare(void) { return compare_shape(ROWS, COLS); }

#define assert_diagnosis(comparison, wanted_values, wanted_places)                   \
  do {                                                                               \
    Comparison diagnosis = (comparison);                                             \
    if (diagnosis.ok) fail_msg("a wrong array was accepted: %s", diagnosis.message); \
    assert_int_equal(diagnosis.values, wanted_values);                               \
    assert_int_equal(diagnosis.places, wanted_places);                               \
  } while (0)

static float next_up(float x) { return nextafterf(x, INFINITY); }

/* ---- right ---- */

static void equal_is_right(void **state) {
  (void)state;
  for (size_t n = 1; n <= N; n = 2 * n + 1) {
    Comparison c = compare_shape(1, n);
    assert_true(c.ok);
    assert_int_equal(c.wrong, 0);
    assert_true(c.error == 0);
    assert_int_equal(c.values, VALUES_RIGHT);
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
  assert_diagnosis(compare(), VALUES_INFINITE, PLACES_SCATTERED);
  actual[6] = 3e38f;
  assert_false(compare().ok);
}

static void nan_equals_nan_only_when_asked(void **state) {
  (void)state;
  expected[5] = actual[5] = NAN;
  assert_diagnosis(compare(), VALUES_REFERENCE_NAN, PLACES_SCATTERED);
  Tolerance nan_equal = {1e-5, 1e-6, 1};
  assert_true(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
  actual[5] = 1;
  assert_false(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
  compare_poison(&actual[5], 1);
  assert_false(compare_arrays(actual, expected, ROWS, COLS, nan_equal).ok);
}

/* ---- wrong values ---- */

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
  assert_diagnosis(c, VALUES_NAN, PLACES_SCATTERED);
  assert_int_equal(c.worst_row, ROWS - 1);
  actual[3] = 1e30f; /* the NaN is worse, and what the message is about */
  c = compare();
  assert_diagnosis(c, VALUES_NAN, PLACES_SCATTERED);
  assert_int_equal(c.worst_row, ROWS - 1);
  for (size_t i = 0; i < N; i++) actual[i] = -NAN;
  assert_diagnosis(compare(), VALUES_NAN, PLACES_ALL);
}

static void untouched(void **state) {
  (void)state;
  compare_poison(actual, N);
  assert_diagnosis(compare(), VALUES_NEVER_WRITTEN, PLACES_ALL);
  for (size_t i = 0; i < N; i++) assert_true(compare_is_poison(&actual[i]) && isnan(actual[i]));
}

static void accumulated_into_the_poison(void **state) {
  (void)state;
  compare_poison(actual, N);
  for (size_t i = 0; i < N; i++) {
    volatile float sum = actual[i];
    actual[i] = sum + expected[i];
  }
  assert_diagnosis(compare(), VALUES_READ_BEFORE_WRITTEN, PLACES_ALL);
}

static void zeros(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i += 3) expected[i] = 0; /* as after a ReLU */
  memset(actual, 0, sizeof actual);
  Comparison c = compare();
  assert_false(c.ok);
  assert_int_equal(c.values, VALUES_ZERO);
}

static void one_value_everywhere(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = 0.1f;
  expected[3] = 0.1f;
  assert_int_equal(compare().values, VALUES_CONSTANT);
}

static void opposite_sign(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = -expected[i];
  assert_diagnosis(compare(), VALUES_SIGN, PLACES_ALL);
}

static void sign_lost(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = fabsf(expected[i]);
  Comparison c = compare();
  assert_int_equal(c.values, VALUES_SIGN);
  assert_non_null(strstr(c.message, "the opposite where a negative value is expected: a sign is lost"));
}

static void constant_factor(void **state) {
  (void)state;
  const float factors[] = {64, 2, 0.5f, 1.0f / 64, -3, 1.01f};
  for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
    for (size_t i = 0; i < N; i++) actual[i] = factors[f] * expected[i];
    Comparison c = compare();
    assert_diagnosis(c, VALUES_FACTOR, PLACES_ALL);
    if (f == 0) assert_non_null(strstr(c.message, "64 times"));
    if (f == 3) assert_non_null(strstr(c.message, "1/64 "));
  }
}

static void constant_offset_and_affine(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] - 0.25f;
  Comparison c = compare();
  assert_diagnosis(c, VALUES_OFFSET, PLACES_ALL);
  assert_non_null(strstr(c.message, "The values are x - 0.25 where x is expected"));
  for (size_t i = 0; i < N; i++) actual[i] = 1 - expected[i];
  assert_non_null(strstr(compare().message, "The values are 1 - x where x is expected"));
  for (size_t i = 0; i < N; i++) actual[i] = (expected[i] + 2) * 3;
  c = compare();
  assert_diagnosis(c, VALUES_AFFINE, PLACES_ALL);
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
    assert_int_equal(c.values, VALUES_FUNCTION);
    assert_non_null(strstr(c.message, functions[f].says));
  }
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] * expected[i];
  assert_non_null(strstr(compare().message, "x * x where x is expected: is a root missing?"));
}

static void a_factor_or_a_term_for_each_line(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] * (2 + (float)(i / COLS));
  Comparison c = compare();
  assert_diagnosis(c, VALUES_LINES, PLACES_ALL);
  assert_non_null(strstr(c.message, "Each row is what is expected times a factor of its own (row 0: 2, row 1: 3)"));
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] + 2 + (float)(i % COLS);
  c = compare();
  assert_diagnosis(c, VALUES_LINES, PLACES_ALL);
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

/* ---- which formula do the numbers follow? ---- */

enum { STEP = 33 };
static float old_w[STEP], old_velocity[STEP], grad[STEP], w[STEP], velocity[STEP], your_w[STEP], your_velocity[STEP];

/* A step with momentum, as it should be; yours is to be filled in. */
static void step_setup(void) {
  test_random_fill(old_w, STEP, 11);
  test_random_fill(old_velocity, STEP, 12);
  test_random_fill(grad, STEP, 13);
  for (int i = 0; i < STEP; i++) {
    velocity[i] = 0.8125f * old_velocity[i] + (grad[i] + 0.125f * old_w[i]);
    w[i] = old_w[i] - 0.375f * velocity[i];
  }
}

static char said[2048];

static FormulaKind explain_step(int of_w) {
  Formula formula;
  said[0] = '\0';
  formula_open(&formula, of_w ? your_w : your_velocity, of_w ? w : velocity, STEP, tolerance_make(0, 3e-6));
  formula_input(&formula, "old w", old_w);
  formula_input(&formula, "old velocity", old_velocity);
  formula_input(&formula, "grad", grad);
  formula_output(&formula, of_w ? "velocity" : "w", of_w ? velocity : w, of_w ? your_velocity : your_w);
  formula_scalar(&formula, "lr", 0.375);
  formula_scalar(&formula, "momentum", 0.8125);
  formula_scalar(&formula, "decay", 0.125);
  FormulaKind kind = formula_explain(&formula, said, sizeof said);
  print_message("%s\n", said);
  return kind;
}

#define assert_said(words) assert_non_null(strstr(said, words))

static void a_term_with_the_wrong_sign(void **state) {
  (void)state;
  step_setup();
  memcpy(your_velocity, velocity, sizeof velocity);
  for (int i = 0; i < STEP; i++) your_w[i] = old_w[i] + 0.375f * velocity[i];
  assert_int_equal(explain_step(1), FORMULA_TERMS_DIFFER);
  assert_said("In all 33 wrong elements your value is old w + 0.375 (lr) * velocity");
  assert_said("the term 0.375 (lr) * velocity has the wrong sign.");
}

static void a_missing_term_and_what_follows(void **state) {
  (void)state;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    your_velocity[i] = 0.8125f * old_velocity[i] + grad[i];
    your_w[i] = old_w[i] - 0.375f * your_velocity[i];
  }
  assert_int_equal(explain_step(0), FORMULA_TERMS_DIFFER);
  assert_said("the term 0.125 (decay) * old w is missing.");
  assert_int_equal(explain_step(1), FORMULA_FOLLOWS);
  assert_said("it follows from another output, which is wrong.");
}

static void a_term_with_another_factor_or_array(void **state) {
  (void)state;
  step_setup();
  memcpy(your_velocity, velocity, sizeof velocity);
  for (int i = 0; i < STEP; i++) your_w[i] = old_w[i] - velocity[i];
  explain_step(1);
  assert_said("the term velocity has the factor -1 where -0.375 (lr) is expected.");
  for (int i = 0; i < STEP; i++) your_w[i] = old_w[i] - 0.375f * old_velocity[i];
  explain_step(1);
  assert_said("the term -0.375 (lr) * old velocity is superfluous, the term -0.375 (lr) * velocity is missing.");
}

static void a_copy(void **state) {
  (void)state;
  step_setup();
  memcpy(your_velocity, old_velocity, sizeof velocity);
  memcpy(your_w, old_w, sizeof w);
  assert_int_equal(explain_step(0), FORMULA_COPY);
  assert_said("your value is old velocity, unchanged.");
}

/* Half of the elements wrong, or half for one reason and half for another. */
static void a_case_for_each_sign(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int exchanged = 0; exchanged < 2; exchanged++) {
    for (int i = 0; i < STEP; i++) {
      w[i] = old_w[i] < 0 ? 0.01f * grad[i] : grad[i];
      your_w[i] = exchanged && old_w[i] > 0 ? 0.01f * grad[i] : grad[i];
    }
    said[0] = '\0';
    formula_open(&formula, your_w, w, STEP, tolerance_make(0, 3e-6));
    formula_input(&formula, "dy", grad);
    formula_input(&formula, "y", old_w);
    assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_TERMS_DIFFER);
    print_message("%s\n", said);
    assert_said("the term dy has the factor 1 where 0.01 is expected.");
    if (exchanged)
      assert_said("with y > 0 your value is 0.01 * dy");
    else
      assert_said("All wrong elements have y <= 0, and none of those are right.");
  }
}

static void a_mask_of_other_elements(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    w[i] = i % 3 == 0 ? 0 : 1.25f * grad[i];
    your_w[i] = i % 3 == 0 || i % 2 == 0 ? 1.25f * grad[i] : 0;
  }
  said[0] = '\0';
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-6, 1e-6));
  formula_input(&formula, "x", grad);
  formula_scalar(&formula, "p", 0.2);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_TERMS_DIFFER);
  print_message("%s\n", said);
  assert_said("wrong elements that are 0 your value is 0: the term 1.25 (1 / (1 - p)) * x is missing.");
  assert_said("wrong elements where 0 is expected your value is 1.25 (1 / (1 - p)) * x: the term ");
  assert_said("is superfluous.");
}

/* One element that is wrong in ten places follows no formula: y(-90) of a sigmoid that overflows is 0. */
static void one_element_many_times(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    if (i % 3 == 0) grad[i] = -90;
    w[i] = i % 3 == 0 ? 8.19401e-40f : expf(grad[i]);
    your_w[i] = i % 3 == 0 ? 0 : w[i];
  }
  said[0] = '\0';
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-6, 0));
  formula_input(&formula, "x", grad);
  formula_explain(&formula, said, sizeof said);
  if (strstr(said, "the term") != NULL) fail_msg("%s", said);
}

/* The right formula, with a difference of nearly equal numbers: no other output is to blame. */
static void the_same_formula_rounded(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    w[i] = grad[i] * old_w[i];
    your_w[i] = w[i] * (1 + (i % 2 ? 2e-6f : -2e-6f));
  }
  said[0] = '\0';
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-7, 0));
  formula_input(&formula, "x", grad);
  formula_input(&formula, "y", old_w);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_ROUNDED);
  assert_said("as it should be: what differs is the rounding");
}

/* The label is forgotten in the gradient of cross-entropy. */
static void wrong_at_the_labels(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    grad[i] = i % 5 == 2;
    w[i] = expf(old_w[i]) - 0.25f * grad[i];
    your_w[i] = expf(old_w[i]);
  }
  said[0] = '\0';
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-6, 1e-6));
  formula_label(&formula, "(1 at the label)", grad);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_TERMS_DIFFER);
  print_message("%s\n", said);
  assert_said("All wrong elements are in the label's column.");
  assert_said("your value is the expected one plus 0.25");
}

/* What belongs to a sum over a row is no formula of the inputs, but the factor before it is. */
static void a_factor_that_depends_on_an_input(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  for (int i = 0; i < STEP; i++) {
    your_w[i] = expf(old_velocity[i]) + (float)(i % 5);
    w[i] = your_w[i] * (1 - old_w[i] * old_w[i]);
  }
  said[0] = '\0';
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-6, 1e-6));
  formula_input(&formula, "h", old_w);
  formula_input(&formula, "dy", grad);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_TIMES);
  assert_said("(your value) * (1 - h * h) is expected: a factor is missing.");
  formula_open(&formula, w, your_w, STEP, tolerance_make(1e-6, 1e-6));
  said[0] = '\0';
  formula_input(&formula, "h", old_w);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_TIMES);
  assert_said("your value is (the expected value) * (1 - h * h): a factor is superfluous.");
  for (int i = 0; i < STEP; i++) w[i] = your_w[i] + 2 * grad[i];
  formula_open(&formula, your_w, w, STEP, tolerance_make(1e-6, 1e-6));
  said[0] = '\0';
  formula_input(&formula, "bias", grad);
  formula_explain(&formula, said, sizeof said);
  assert_said("your value is the expected one minus 2 * bias: that term is missing or too small.");
}

/* Numbers that follow nothing are not explained, nor are too few, however well a formula with enough factors fits. */
static void no_formula(void **state) {
  (void)state;
  Formula formula;
  step_setup();
  test_random_fill(your_w, STEP, 14);
  memcpy(your_velocity, velocity, sizeof velocity);
  assert_int_equal(explain_step(1), FORMULA_UNKNOWN);
  assert_string_equal(said, "");
  formula_open(&formula, your_w, w, 3, tolerance_make(0, 3e-6));
  formula_input(&formula, "old w", old_w);
  formula_input(&formula, "grad", grad);
  assert_int_equal(formula_explain(&formula, said, sizeof said), FORMULA_UNKNOWN);
}

static void transpose(void **state) {
  (void)state;
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLS; c++) actual[c * ROWS + r] = expected[r * COLS + c];
  assert_int_equal(compare().values, VALUES_TRANSPOSED);
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < ROWS; c++) actual[c * ROWS + r] = expected[r * ROWS + c];
  assert_int_equal(compare_shape(ROWS, ROWS).values, VALUES_TRANSPOSED);
}

static void shifted_by_one(void **state) {
  (void)state;
  memcpy(actual, expected + 1, (N - 1) * sizeof *actual);
  Comparison c = compare();
  assert_int_equal(c.values, VALUES_SHIFTED);
  assert_non_null(strstr(c.message, "one column: elements hold the value of their successor"));
  c = compare_shape(N, 1);
  assert_int_equal(c.values, VALUES_SHIFTED);
  assert_non_null(strstr(c.message, "one element"));
  memcpy(actual + 1, expected, (N - 1) * sizeof *actual);
  assert_int_equal(compare_shape(1, N).values, VALUES_SHIFTED);
  memcpy(actual, expected, COLS * sizeof *actual);
  memcpy(actual + COLS, expected, (N - COLS) * sizeof *actual);
  c = compare();
  assert_int_equal(c.values, VALUES_SHIFTED);
  assert_non_null(strstr(c.message, "one row: elements hold the value of their predecessor"));
}

static void rows_exchanged(void **state) {
  (void)state;
  memcpy(actual + 3 * COLS, expected + 20 * COLS, COLS * sizeof *actual);
  memcpy(actual + 20 * COLS, expected + 3 * COLS, COLS * sizeof *actual);
  Comparison c = compare();
  assert_diagnosis(c, VALUES_PERMUTED, PLACES_SCATTERED);
  assert_non_null(strstr(c.message, "Rows"));
  assert_non_null(strstr(c.message, "Rows are permuted: row 3 holds the values of row 20."));
}

static void columns_reversed(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / COLS * COLS + COLS - 1 - i % COLS];
  Comparison c = compare();
  assert_int_equal(c.values, VALUES_PERMUTED);
  assert_non_null(strstr(c.message, "Columns"));
}

/* An order of 0 to N - 1, none of them where it was. */
static void make_order(void) {
  for (size_t i = 0; i < N; i++) actual[i] = expected[i] = (float)((7 * i + 5) % N); /* 7 does not divide N */
}

static void assert_sentence(Comparison c, CompareValues values, const char *words) {
  assert_int_equal(c.values, values);
  assert_non_null(strstr(c.message, words));
}

static void order_with_a_number_twice(void **state) {
  (void)state;
  make_order();
  actual[4] = actual[2];
  assert_sentence(compare_shape(1, N), VALUES_REPEATED,
                  "The number 19 stands there twice, in elements 2 and 4: each from 0 to 1220 must stand there once.");
  make_order();
  actual[8] = N;
  assert_sentence(compare_shape(1, N), VALUES_REPEATED,
                  "Element 8 is 1221: each number from 0 to 1220 must stand there once.");
}

static void another_order(void **state) {
  (void)state;
  make_order();
  for (size_t i = 0; i < N; i++) actual[i] = (float)((5 * i + 1) % N);
  Comparison c = compare_shape(1, N);
  assert_int_equal(c.values, VALUES_REORDERED);
  make_order(); /* what is no order is not said to be one */
  expected[3] = expected[4];
  actual[9] = 0.5f;
  assert_int_not_equal(compare_shape(1, N).values, VALUES_REPEATED);
}

static void elements_of_other_places(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) actual[i] = 4 * i < N ? expected[4 * i] : -3 - (float)i;
  assert_sentence(compare_shape(1, N), VALUES_MOVED,
                  "Each element i holds what belongs into 4 i: the index is multiplied by 4.");
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / 3];
  assert_sentence(compare_shape(1, N), VALUES_MOVED, "the index is divided by 3");
  for (size_t i = 0; i < N; i++) actual[i] = expected[i / 4 * 4];
  assert_sentence(compare_shape(1, N), VALUES_MOVED, "Each 4 neighbours hold what belongs into the first of them.");
  for (size_t i = 0; i < N; i++) actual[i] = 4 * (i / 4) * 4 + i % 4 < N ? expected[4 * (i / 4) * 4 + i % 4] : -3;
  assert_sentence(compare_shape(1, N), VALUES_MOVED, "Each group of four, number i, holds what belongs into 4 i");
}

static void zeros_in_wrong_places(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) {
    if (i % 3 == 0) expected[i] = 0;
    actual[i] = i % 3 == 0 ? 2 : 0;
  }
  assert_sentence(compare(), VALUES_MASK, "It is zero exactly where it should not be");
  for (size_t i = 0; i < N; i++) actual[i] = i % 5 == 0 ? 0 : i % 3 == 0 ? 2 : expected[i];
  assert_sentence(compare(), VALUES_MASK, "the choice of the zeros is wrong");
  for (size_t i = 0; i < N; i++) actual[i] = i % 3 == 0 ? 2 + (float)i : expected[i];
  assert_sentence(compare(), VALUES_MASK, "All wrong elements should be zero; all others are right.");
  for (size_t i = 0; i < N; i++) actual[i] = i % 3 == 0 ? 2 + (float)i : 0.5f * expected[i];
  assert_sentence(compare(), VALUES_MASK,
                  "407 elements should be zero, and the others are 0.5 times what they should be.");
  test_random_fill(actual, N, 2);
  for (size_t i = 0; i < N; i += 7) actual[i] = 0;
  assert_int_equal(compare().values, VALUES_UNKNOWN);
}

static void neighbours_exchanged(void **state) {
  (void)state;
  for (size_t i = 0; i + 1 < N; i += 2) {
    actual[i] = expected[i + 1];
    actual[i + 1] = expected[i];
  }
  assert_sentence(compare_shape(1, N), VALUES_MOVED, "Neighbours are exchanged: elements 0 and 1, 2 and 3, ...");
}

static void bytes_in_reverse(void **state) {
  (void)state;
  for (size_t i = 0; i < 64; i++) expected[i] = (float)((uint32_t)i * 2654435761u >> 16);
  for (size_t i = 0; i < 64; i += 2) {
    uint32_t number = (uint32_t)expected[i] << 16 | (uint32_t)expected[i + 1], reversed = __builtin_bswap32(number);
    actual[i] = (float)(reversed >> 16);
    actual[i + 1] = (float)(reversed & 0xFFFF);
  }
  assert_sentence(compare_shape(32, 2), VALUES_BYTES, "The four bytes of each number are in the reverse order.");
}

/* Put together by hand, so that compare_bytes() has an opinion from outside. */
static void bytes_in_other_ways(void **state) {
  (void)state;
  for (size_t i = 0; i < 64; i++) expected[i] = (float)((uint32_t)i * 2654435761u >> 16);
  for (int kind = 0; kind < 3; kind++) {
    static const char *const says[] = {"in the order 0, 2, 1, 3", "7 bits apart; a byte has 8.",
                                       "Bytes of 128 and more are taken for negative numbers"};
    for (size_t i = 0; i < 64; i += 2) {
      uint32_t a = (uint32_t)expected[i] >> 8, b = (uint32_t)expected[i] & 255;
      uint32_t c = (uint32_t)expected[i + 1] >> 8, d = (uint32_t)expected[i + 1] & 255;
      uint32_t number = a << 24 | c << 16 | b << 8 | d;
      if (kind == 1) number = a << 21 | b << 14 | c << 7 | d;
      if (kind == 2) number = a << 24 | b << 16 | c << 8 | (uint32_t)(int32_t)(int8_t)d;
      actual[i] = (float)(number >> 16);
      actual[i + 1] = (float)(number & 0xFFFF);
    }
    assert_sentence(compare_shape(32, 2), VALUES_BYTES, says[kind]);
  }
  test_random_fill(actual, N, 2);
  assert_int_not_equal(compare_shape(32, 2).values, VALUES_BYTES);
}

static void turned_within_tiles(void **state) {
  (void)state;
  enum { TILE = 8 };
  for (size_t r = 0; r < ROWS; r++)
    for (size_t c = 0; c < COLS; c++) {
      size_t row = r / TILE * TILE + c % TILE, col = c / TILE * TILE + r % TILE;
      actual[r * COLS + c] = row < ROWS && col < COLS ? expected[row * COLS + col] : 0;
    }
  assert_sentence(compare(), VALUES_TRANSPOSED, "Rows and columns are exchanged within each tile of 8 x 8.");
}

static void all_added_to_one_place(void **state) {
  (void)state;
  for (int rows = 0; rows < 2; rows++) {
    memset(actual, 0, sizeof actual);
    for (size_t r = 0; r < ROWS; r++)
      for (size_t c = 0; c < COLS; c++)
        actual[rows ? r / 4 * 4 * COLS + c : r * COLS + c / 4 * 4] += expected[r * COLS + c];
    assert_sentence(
        compare(), VALUES_GATHERED,
        rows ? "Of each 4 rows the first holds the sum of all" : "Of each 4 columns the first holds the sum");
  }
}

/* Each row has a factor, and some elements are so small that they are right nearly enough. */
static void lines_with_small_elements(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i++) {
    if (i % 5 == 0) expected[i] = 4e-6f;
    actual[i] = expected[i] * (2 + (float)(i / COLS));
  }
  assert_sentence(compare(), VALUES_LINES, "Each row is what is expected times a factor of its own");
}

static void one_value_where_one_is_expected(void **state) {
  (void)state;
  for (size_t i = 0; i < N; i += 300) expected[i] = 0.1f;
  memcpy(actual, expected, sizeof actual);
  for (size_t i = 0; i < N; i += 300) actual[i] = 0.2f;
  Comparison c = compare();
  assert_int_not_equal(c.values, VALUES_CONSTANT);
  assert_null(strstr(c.message, "depend on the thread's index"));
}

static void rounding_beside_the_values(void **state) {
  (void)state;
  const Tolerance exact = {0, 0, 0}, wide = {0, 0.02, 0};
  for (size_t i = 0; i < N; i += 2) actual[i] = nextafterf(expected[i], 0);
  Comparison c = compare_arrays(actual, expected, 1, N, exact);
  assert_int_equal(c.values, VALUES_CLOSE);
  assert_non_null(strstr(c.message, "All go towards zero."));
  for (size_t i = 0; i < N; i += 2) actual[i] = nextafterf(expected[i], 2 * expected[i]);
  assert_non_null(strstr(compare_arrays(actual, expected, 1, N, exact).message, "All go away from zero."));
  actual[0] = nextafterf(expected[0], 0);
  c = compare_arrays(actual, expected, 1, N, exact);
  assert_int_equal(c.values, VALUES_CLOSE);
  assert_null(strstr(c.message, "All go"));
  test_random_fill(actual, N, 2); /* errors as large as the values are not rounding, however wide the tolerance is */
  assert_int_equal(compare_arrays(actual, expected, ROWS, COLS, wide).values, VALUES_UNKNOWN);
}

static void rounding(void **state) {
  (void)state;
  float noise[N];
  test_random_fill(noise, N, 2);
  for (size_t i = 0; i < N; i++) actual[i] += 3e-5f * noise[i];
  assert_int_equal(compare().values, VALUES_CLOSE);
}

static void unrelated(void **state) {
  (void)state;
  test_random_fill(actual, N, 2);
  assert_diagnosis(compare(), VALUES_UNKNOWN, PLACES_ALL);
}

/* A lone wrong element must not be explained by a pattern that any number would fit. */
static void no_pattern_in_one_element(void **state) {
  (void)state;
  actual[100] *= 2;
  assert_diagnosis(compare(), VALUES_UNKNOWN, PLACES_SCATTERED);
  actual[100] = expected[101];
  assert_diagnosis(compare(), VALUES_UNKNOWN, PLACES_SCATTERED);
}

/* ---- wrong places ---- */

/* Poisons what lies at or beyond a row, or a column, or an element. */
static Comparison compare_beyond(size_t rows, size_t cols, size_t row, size_t col, size_t element) {
  memcpy(actual, expected, sizeof actual);
  for (size_t i = 0; i < rows * cols; i++)
    if (i / cols >= row || i % cols >= col || i >= element) compare_poison(&actual[i], 1);
  return compare_shape(rows, cols);
}

static void last_partial_tile(void **state) {
  (void)state;
  const size_t sizes[][2] = {{1, 33}, {1, 127}, {1, 1021}, {33, 37}, {33, 31}, {7, 127}, {31, 33}, {5, 9}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t tile = 4; tile <= 256; tile *= 2) {
      size_t rows = sizes[s][0], cols = sizes[s][1], n = rows * cols;
      size_t row = rows / tile * tile, col = cols / tile * tile, element = n / tile * tile;
      if (row > 0 && row < rows)
        assert_diagnosis(compare_beyond(rows, cols, row, cols, n), VALUES_NEVER_WRITTEN, PLACES_LAST_TILE);
      if (col > 0 && col < cols)
        assert_diagnosis(compare_beyond(rows, cols, rows, col, n), VALUES_NEVER_WRITTEN, PLACES_LAST_TILE);
      if (row > 0 && row < rows && col > 0 && col < cols)
        assert_diagnosis(compare_beyond(rows, cols, row, col, n), VALUES_NEVER_WRITTEN, PLACES_LAST_TILE);
      if (element > 0 && element < n)
        assert_diagnosis(compare_beyond(rows, cols, rows, cols, element), VALUES_NEVER_WRITTEN, PLACES_LAST_TILE);
    }
  assert_non_null(strstr(compare_beyond(33, 31, 32, 31, N).message, "tile of 32"));
}

static void only_the_first_block(void **state) {
  (void)state;
  assert_diagnosis(compare_beyond(ROWS, COLS, 8, COLS, N), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, 1, COLS, N), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, ROWS, 16, N), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, 16, 16, N), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
  assert_diagnosis(compare_beyond(ROWS, COLS, ROWS, COLS, 256), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
  assert_diagnosis(compare_beyond(1, N, 1, N, 1), VALUES_NEVER_WRITTEN, PLACES_AFTER_FIRST);
}

/* What ends within a block is a bounds test's doing, not the grid's. */
static void grid_or_bounds_test(void **state) {
  (void)state;
  assert_non_null(strstr(compare_beyond(1, N, 1, N, 256).message, "is blockIdx in the index?"));
  Comparison bounds = compare_beyond(1, N, 1, N, 1001);
  assert_non_null(strstr(bounds.message, "look at the bounds test"));
  assert_null(strstr(bounds.message, "blockIdx"));
}

static void every_kth_element(void **state) {
  (void)state;
  const size_t ks[] = {2, 3, 4, 32, 37, 64, 256};
  for (size_t s = 0; s < sizeof ks / sizeof *ks; s++)
    for (size_t first = 0; first < ks[s]; first += 1 + ks[s] / 3) {
      memcpy(actual, expected, sizeof actual);
      for (size_t i = first; i < N; i += ks[s]) compare_poison(&actual[i], 1);
      assert_diagnosis(compare(), VALUES_NEVER_WRITTEN, PLACES_EVERY_KTH);
      compare_poison(actual, N);
      for (size_t i = first; i < N; i += ks[s]) actual[i] = expected[i];
      assert_diagnosis(compare(), VALUES_NEVER_WRITTEN, ks[s] == 2 ? PLACES_EVERY_KTH : PLACES_ALL_BUT_EVERY_KTH);
    }
}

static void two_runs(void **state) {
  (void)state;
  assert_true(compare_runs(actual, expected, N).ok);
  actual[9] = next_up(actual[9]);
  actual[99] = next_up(actual[99]);
  Comparison c = compare_runs(expected, actual, N);
  print_message("%s\n", c.message);
  assert_false(c.ok);
  assert_int_equal(c.values, VALUES_RACE);
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
#define CASE(function) cmocka_unit_test_setup(function, setup)
  const struct CMUnitTest tests[] = {
      CASE(equal_is_right),
      CASE(within_tolerance_is_right_and_reported),
      CASE(infinity_equals_itself_only),
      CASE(nan_equals_nan_only_when_asked),
      CASE(beyond_tolerance_is_wrong),
      CASE(empty_is_not_right),
      CASE(zero_tolerance_wants_equality),
      CASE(nan_is_wrong),
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
      CASE(a_term_with_the_wrong_sign),
      CASE(a_missing_term_and_what_follows),
      CASE(a_term_with_another_factor_or_array),
      CASE(a_copy),
      CASE(a_case_for_each_sign),
      CASE(a_mask_of_other_elements),
      CASE(one_element_many_times),
      CASE(the_same_formula_rounded),
      CASE(wrong_at_the_labels),
      CASE(a_factor_that_depends_on_an_input),
      CASE(no_formula),
      CASE(transpose),
      CASE(shifted_by_one),
      CASE(rows_exchanged),
      CASE(columns_reversed),
      CASE(order_with_a_number_twice),
      CASE(another_order),
      CASE(elements_of_other_places),
      CASE(zeros_in_wrong_places),
      CASE(neighbours_exchanged),
      CASE(bytes_in_reverse),
      CASE(bytes_in_other_ways),
      CASE(turned_within_tiles),
      CASE(all_added_to_one_place),
      CASE(lines_with_small_elements),
      CASE(one_value_where_one_is_expected),
      CASE(rounding_beside_the_values),
      CASE(rounding),
      CASE(unrelated),
      CASE(no_pattern_in_one_element),
      CASE(last_partial_tile),
      CASE(only_the_first_block),
      CASE(grid_or_bounds_test),
      CASE(every_kth_element),
      CASE(two_runs),
      CASE(dot_tolerance_holds_and_bites),
  };
  return TEST_MAIN("compare", tests);
}

/* Which formula do wrong numbers follow? */
#include "common/formula.h"

#include "common/test.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_term_with_the_wrong_sign),
      cmocka_unit_test(a_missing_term_and_what_follows),
      cmocka_unit_test(a_term_with_another_factor_or_array),
      cmocka_unit_test(a_copy),
      cmocka_unit_test(a_case_for_each_sign),
      cmocka_unit_test(a_mask_of_other_elements),
      cmocka_unit_test(one_element_many_times),
      cmocka_unit_test(the_same_formula_rounded),
      cmocka_unit_test(wrong_at_the_labels),
      cmocka_unit_test(a_factor_that_depends_on_an_input),
      cmocka_unit_test(no_formula),
  };
  return TEST_MAIN("formula", tests);
}

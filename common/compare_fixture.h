/* compare_fixture.h - for the tests of compare.h: an array of random numbers, and one to be made wrong. */
#ifndef COMMON_COMPARE_FIXTURE_H
#define COMMON_COMPARE_FIXTURE_H

#include "common/compare.h"
#include "common/test.h"

enum { ROWS = 33, COLS = 37, N = ROWS * COLS };

static float expected[N], actual[N];
static const Tolerance tolerance = {1e-5, 1e-6, 0};

static inline int setup(void **state) {
  (void)state;
  test_random_fill(expected, N, 1);
  memcpy(actual, expected, sizeof actual);
  return 0;
}

static inline Comparison compare_shape(size_t rows, size_t cols) {
  Comparison c = compare_arrays(actual, expected, rows, cols, tolerance);
  print_message("%s\n", c.message);
  return c;
}

static inline Comparison compare(void) { return compare_shape(ROWS, COLS); }

#define assert_diagnosis(comparison, wanted_values, wanted_places)                   \
  do {                                                                               \
    Comparison diagnosis = (comparison);                                             \
    if (diagnosis.ok) fail_msg("a wrong array was accepted: %s", diagnosis.message); \
    assert_int_equal(diagnosis.values, wanted_values);                               \
    assert_int_equal(diagnosis.places, wanted_places);                               \
  } while (0)

static inline void assert_sentence(Comparison c, Diagnosis values, const char *words) {
  assert_int_equal(c.values, values);
  assert_non_null(strstr(c.message, words));
}

#define CASE(function) cmocka_unit_test_setup(function, setup)

#endif /* COMMON_COMPARE_FIXTURE_H */

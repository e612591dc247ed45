/* compare.h - is this array right, and if not, what is wrong with it?
 *
 *     compare_poison(y, n);                              // before the kernel: NaN that marks "never written"
 *     ...
 *     Comparison c = compare_arrays(y, expected, rows, cols, tolerance_dot(k, 1));
 *     puts(c.message);
 *
 *     33 of 1089 elements are wrong, worst at row 32, column 0: NaN where 0.5 was expected (tolerance 1e-05).
 *     33 elements were never written. They fill the last partial tile of 32: round the grid up and treat the edge.
 *
 * compare_element.h has the tolerance, and decides whether an element is right. The message joins two findings: what
 * the wrong values are, and where they are. Both are also there as names (diagnosis.h). Each family of recognisers has
 * its header:
 *
 *     compare_diagnose_values.h        wrong by arithmetic: a sign, a factor, a function, rounding
 *     compare_diagnose_moved.h         right values in wrong elements: transposed, shifted, permuted
 *     compare_diagnose_structured.h    orders, words of bytes, masks
 *     compare_diagnose_places.h        where the wrong elements are
 */
#ifndef COMMON_COMPARE_H
#define COMMON_COMPARE_H

#include "common/compare_diagnose_moved.h"
#include "common/compare_diagnose_places.h"
#include "common/compare_diagnose_structured.h"
#include "common/compare_diagnose_values.h"
#include "common/error.h"

/* The first recogniser that fits wins. Those that few numbers meet by chance come late. */
static inline void compare_values(CompareView *v, Comparison *c) {
  int (*const recognisers[])(CompareView *, Comparison *) = {
      compare_see_bits,     compare_see_repeated,  compare_see_one_value,  compare_see_factor,
      compare_see_affine,   compare_see_function,  compare_see_transposed, compare_see_shifted,
      compare_see_permuted, compare_see_reordered, compare_see_moved,      compare_see_gathered,
      compare_see_bytes,    compare_see_mask,      compare_see_lines,      compare_see_close};
  for (size_t r = 0; r < sizeof recognisers / sizeof *recognisers; r++)
    if (recognisers[r](v, c)) return;
  c->values = DIAGNOSIS_WRONG_VALUES;
}

/* Compares actual with expected, both (rows, cols), row-major. An empty array is not right: nothing was checked. */
static inline Comparison compare_arrays(const float *actual, const float *expected, size_t rows, size_t cols,
                                        Tolerance tolerance) {
  Comparison c;
  memset(&c, 0, sizeof c);
  if (rows * cols == 0) {
    c.values = DIAGNOSIS_WRONG_VALUES;
    compare_say(&c, "Nothing was compared: the array is empty.");
    return c;
  }
  if (cols == 1) {
    cols = rows;
    rows = 1;
  }
  double worst = -1;
  for (size_t i = 0; i < rows * cols; i++) {
    double error = fabs((double)actual[i] - expected[i]);
    double limit = tolerance.absolute + tolerance.relative * fabs((double)expected[i]);
    if (error <= limit && (error < worst * limit || (error == 0 && worst >= 0)))
      continue; /* the quick path, for nearly all elements */
    int right = compare_element(&actual[i], expected[i], tolerance);
    if (right && !isfinite(expected[i])) error = 0; /* inf - inf and NaN - NaN */
    double excess = right && error == 0 ? 0 : isfinite(error) && limit > 0 ? error / limit : INFINITY;
    c.wrong += !right;
    if (!(excess > worst) && !(excess == worst && error > c.error)) continue;
    worst = excess;
    c.worst_row = i / cols;
    c.worst_col = i % cols;
    c.error = error;
    c.tolerance = limit;
    c.actual = actual[i];
    c.expected = expected[i];
  }
  c.ok = c.wrong == 0;
  if (c.ok) {
    compare_say(&c, "All %zu elements are right: error %.3g, tolerance %.3g.", rows * cols, c.error, c.tolerance);
    return c;
  }
  char place[64], is[32], should[32];
  snprintf(place, sizeof place, rows == 1 ? "element %zu" : "row %zu, column %zu",
           rows == 1 ? c.worst_col : c.worst_row, c.worst_col);
  compare_say(&c, "%zu of %zu elements %s wrong, worst at %s: %s where %s was expected (tolerance %.3g).", c.wrong,
              rows * cols, c.wrong == 1 ? "is" : "are", place, compare_number(c.actual, 6, is),
              compare_number(c.expected, 6, should), c.tolerance);
  CompareView view;
  view.actual = actual;
  view.expected = expected;
  view.rows = rows;
  view.cols = cols;
  view.tolerance = tolerance;
  view.marked = (unsigned char *)xmalloc(rows * cols);
  compare_values(&view, &c);
  c.before_places = strlen(c.message);
  while (c.first < rows * cols && !view.marked[c.first]) c.first++;
  c.places = compare_places(&view, &c);
  free(view.marked);
  return c;
}

/* Two runs with the same input must agree to the bit. */
static inline Comparison compare_runs(const float *first, const float *second, size_t n) {
  Comparison c;
  char before[32], after[32];
  memset(&c, 0, sizeof c);
  for (size_t i = n; i-- > 0;) {
    if (memcmp(&first[i], &second[i], sizeof *first) == 0) continue;
    c.wrong++;
    c.worst_col = i;
    c.expected = first[i];
    c.actual = second[i];
    c.error = fabs((double)second[i] - first[i]);
  }
  c.ok = c.wrong == 0 && n > 0;
  if (c.ok)
    compare_say(&c, "All %zu elements are the same in both runs.", n);
  else
    compare_say(
        &c,
        "%zu of %zu elements differ between two runs, first at element %zu: %s, then %s. That is a race: a "
        "missing __syncthreads(), two threads that write one element, or a sum by atomicAdd, in no fixed order.",
        c.wrong, n, c.worst_col, compare_number(c.expected, 9, before), compare_number(c.actual, 9, after));
  c.values = c.ok ? DIAGNOSIS_NONE : DIAGNOSIS_NOT_REPEATED;
  return c;
}

/* Adds the names of what the message says. */
static inline void compare_diagnoses(const Comparison *c, Diagnoses *found) {
  diagnoses_add(found, c->values);
  diagnoses_add(found, c->places);
}

#endif /* COMMON_COMPARE_H */

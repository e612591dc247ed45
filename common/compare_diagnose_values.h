/* compare_diagnose_values.h - values that are wrong by arithmetic: NaN, zero, one value, a sign, a factor, a term, a
 * function, rounding. Each recogniser compare_see_*() returns 1, and appends a sentence, when it explains all marked
 * elements. */
#ifndef COMMON_COMPARE_DIAGNOSE_VALUES_H
#define COMMON_COMPARE_DIAGNOSE_VALUES_H

#include "common/compare_diagnose.h"

static inline int compare_see_bits(CompareView *v, Comparison *c) {
  static const struct {
    Diagnosis values;
    const char *one, *words; /* behind the number of elements */
  } kinds[] = {
      {DIAGNOSIS_REFERENCE_NAN, "of the expected elements is NaN: the reference is wrong, or was not computed.",
       "of the expected elements are NaN: the reference is wrong, or was not computed."},
      {DIAGNOSIS_NEVER_WRITTEN, "element was never written.", "elements were never written."},
      {DIAGNOSIS_READ_BEFORE_WRITTEN,
       "element was read before it was written: sum in a register, or clear the output first.",
       "elements were read before they were written: sum in a register, or clear the output first."},
      {DIAGNOSIS_NAN,
       "element is NaN: 0/0, inf - inf, the logarithm or root of a negative number, a sum that starts "
       "from the output, or a read outside an array.",
       "elements are NaN: 0/0, inf - inf, the logarithm or root of a negative number, a sum that starts "
       "from the output, or a read outside an array."},
      {DIAGNOSIS_INFINITE,
       "element is infinite: a division by zero, or an overflow (exp without the maximum subtracted).",
       "elements are infinite: a division by zero, or an overflow (exp without the maximum subtracted)."}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (!compare_mark(v, kinds[k].values)) continue;
    compare_say(c, " %zu %s", v->count, v->count == 1 ? kinds[k].one : kinds[k].words);
    c->values = kinds[k].values;
    return 1;
  }
  compare_mark(
      v, DIAGNOSIS_WRONG_VALUES); /* all wrong elements, now known to be finite, for the recognisers that follow */
  return 0;
}

static inline int compare_see_one_value(CompareView *v, Comparison *c) {
  size_t same = 0, first = 0, others = 0; /* others: elements of which another value is expected than of the first */
  while (!v->marked[first]) first++;
  for (size_t i = 0; i < v->rows * v->cols; i++) {
    if (!v->marked[i]) continue;
    same += v->actual[i] == v->actual[first];
    others += v->expected[i] != v->expected[first];
  }
  const int few = same < 3 || 4 * same < v->rows * v->cols; /* those may have another cause */
  if (same < v->count || (v->actual[first] != 0 && (few || others == 0))) return 0;
  c->values = v->actual[first] == 0 ? DIAGNOSIS_ZERO : DIAGNOSIS_ONE_VALUE;
  if (c->values == DIAGNOSIS_ZERO)
    compare_say(c, " All wrong elements are zero.");
  else
    compare_say(c, " All wrong elements are %g: does the value depend on the thread's index?",
                (double)v->actual[first]);
  return 1;
}

/* The one factor from expected to actual at all marked elements; 0 if there is none, or it is about 1. */
static inline double compare_factor(const CompareView *v) {
  size_t n = v->rows * v->cols, anchor = n;
  for (size_t i = 0; i < n; i++)
    if (v->marked[i] && (anchor == n || fabsf(v->expected[i]) > fabsf(v->expected[anchor]))) anchor = i;
  double factor = (double)v->actual[anchor] / v->expected[anchor];
  double noise = v->tolerance.absolute * fmax(1, fabs(factor));
  size_t others = 0; /* if one value is expected everywhere, any factor fits */
  for (size_t i = 0; i < n; i++) others += v->marked[i] && v->expected[i] != v->expected[anchor];
  if (others == 0) return 0;
  if (!isfinite(factor) || fabs(factor - 1) < 1e-3 || fabs((double)v->actual[anchor]) <= 8 * noise) return 0;
  for (size_t i = 0; i < n; i++) {
    double there = factor * v->expected[i];
    if (v->marked[i] && !(fabs(v->actual[i] - there) <= noise + (v->tolerance.relative + 1e-4) * fabs(there))) return 0;
  }
  return compare_explained(v, v->count) ? factor : 0;
}

static inline int compare_see_factor(CompareView *v, Comparison *c) {
  double factor = compare_factor(v);
  size_t negative = 0;
  if (factor == 0) return 0;
  for (size_t i = 0; i < v->rows * v->cols; i++) negative += v->marked[i] && v->expected[i] < 0;
  c->factor = factor;
  c->values = fabs(factor + 1) < 1e-3 ? DIAGNOSIS_SIGN : DIAGNOSIS_FACTOR;
  if (c->values == DIAGNOSIS_SIGN && v->count < v->rows * v->cols && (negative == v->count || negative == 0))
    compare_say(c, " The sign is the opposite where a %s value is expected: a sign is lost.",
                negative > 0 ? "negative" : "positive");
  else if (c->values == DIAGNOSIS_SIGN)
    compare_say(
        c, " The sign is the opposite: -x where x is expected. Look for a minus that is missing, or one too many.");
  else if (fabs(factor) > 1)
    compare_say(c, " The values are %.4g times what they should be: is a division (the mean over a batch) missing?",
                factor);
  else
    compare_say(c,
                " The values are 1/%.4g of what they should be: divided once too often, or terms of the sum missing?",
                1 / factor);
  return 1;
}

/* Is actual = a * expected + b? The smallest and the largest expected value give a and b. */
static inline int compare_see_affine(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, low = n, high = n;
  for (size_t i = 0; i < n; i++) {
    if (!v->marked[i]) continue;
    if (low == n || v->expected[i] < v->expected[low]) low = i;
    if (high == n || v->expected[i] > v->expected[high]) high = i;
  }
  double a = ((double)v->actual[high] - v->actual[low]) / ((double)v->expected[high] - v->expected[low]);
  double scale = fmax(fabs((double)v->expected[low]), fabs((double)v->expected[high]));
  if (fabs(a - 1) < 1e-4) a = 1;
  double b = v->actual[high] - a * v->expected[high];
  if (v->count < 5 || !isfinite(a) || !isfinite(b) || fabs(a) < 1e-4) return 0;
  for (size_t i = 0; i < n; i++) {
    double noise =
        v->tolerance.absolute * fmax(1, fabs(a)) + (v->tolerance.relative + 1e-5) * (scale * fabs(a) + fabs(b));
    if (v->marked[i] && !(fabs(v->actual[i] - (a * v->expected[i] + b)) <= 2 * noise)) return 0;
    if (v->marked[i] && !(fabs((double)v->actual[i] - v->expected[i]) > 4 * noise)) return 0;
  }
  c->values = a == 1 ? DIAGNOSIS_OFFSET : DIAGNOSIS_AFFINE;
  if (fabs(a + 1) < 1e-3 && fabs(b - 1) < 1e-3)
    compare_say(c, " The values are 1 - x where x is expected: two cases are exchanged, or a sign.");
  else if (a == 1)
    compare_say(c, " The values are x %c %.4g where x is expected: a constant term is wrong.", b < 0 ? '-' : '+',
                fabs(b));
  else
    compare_say(c, " The values are %.4g * x %c %.4g where x is expected: a factor and a constant term are wrong.", a,
                b < 0 ? '-' : '+', fabs(b));
  return 1;
}

static inline double compare_square(double x) { return x * x; }

static inline double compare_exp_of_minus(double x) { return exp(-x); }

static inline double compare_reciprocal(double x) { return 1 / x; }

static inline double compare_reciprocal_root(double x) { return 1 / sqrt(x); }

static inline int compare_see_function(CompareView *v, Comparison *c) {
  static const struct {
    double (*of)(double);
    const char *words;
  } functions[] = {{compare_square, "x * x where x is expected: is a root missing?"},
                   {sqrt, "sqrt(x) where x is expected: is there a root too many, or a square missing?"},
                   {exp, "exp(x) where x is expected: is a logarithm missing?"},
                   {compare_exp_of_minus, "exp(-x) where x is expected: is a logarithm missing?"},
                   {log, "log(x) where x is expected: is exp() missing?"},
                   {compare_reciprocal, "1 / x where x is expected: numerator and denominator are exchanged"},
                   {compare_reciprocal_root, "1 / sqrt(x) where x is expected: look at the root and the division"}};
  for (size_t f = 0; f < sizeof functions / sizeof *functions && v->count >= 4; f++) {
    int fits = 1;
    size_t apart = 0; /* from what is expected: 1 is its own square */
    for (size_t i = 0; i < v->rows * v->cols && fits; i++) {
      if (!v->marked[i]) continue;
      double x = v->expected[i], y = functions[f].of(x), step = v->tolerance.absolute + v->tolerance.relative * fabs(x);
      double noise = 2 * fabs(functions[f].of(x + step) - y) + step +
                     1e-5 * fabs(y); /* the change of y when x is rounded otherwise */
      fits = fabs(v->actual[i] - y) <= noise;
      apart += fabs(y - x) > 8 * noise;
    }
    if (!fits || 2 * apart < v->count) continue;
    compare_say(c, " The values are %s.", functions[f].words);
    c->values = DIAGNOSIS_FUNCTION;
    return 1;
  }
  return 0;
}

/* Does each line have a factor, or an offset, of its own? For rows `count` = rows, `step` = cols, `item_step` = 1.
 * Lines with fewer than three wrong elements are left out. Two lines with different numbers are needed, and most
 * elements must be far enough from what is expected. */
static inline int compare_is_lines(const CompareView *v, int times, size_t count, size_t length, size_t step,
                                   size_t item_step, size_t line[2], double by[2]) {
  size_t found = 0, held = 0, apart = 0;
  for (size_t l = 0; l < count; l++) {
    size_t wrong = 0, anchor = 0;
    for (size_t i = 0; i < length; i++) {
      size_t at = l * step + i * item_step;
      if (!v->marked[at]) continue;
      if (wrong++ == 0 || fabsf(v->expected[at]) > fabsf(v->expected[anchor])) anchor = at;
    }
    if (wrong < 3) continue;
    double x =
        times ? (double)v->actual[anchor] / v->expected[anchor] : (double)v->actual[anchor] - v->expected[anchor];
    if (times && x == 0) return 0; /* that is no factor */
    for (size_t i = 0; i < length; i++) {
      size_t at = l * step + i * item_step;
      double there = times ? x * v->expected[at] : x + v->expected[at];
      double noise = v->tolerance.absolute * fmax(1, fabs(x)) + (v->tolerance.relative + 1e-5) * fabs(there);
      if (!v->marked[at]) continue;
      if (!(fabs(v->actual[at] - there) <= 2 * noise)) return 0;
      apart += fabs(there - v->expected[at]) > 8 * noise;
    }
    held += wrong;
    if (found == 1 && fabs(x - by[0]) <= 1e-3 * fabs(x)) continue;
    if (found < 2) {
      line[found] = l;
      by[found++] = x;
    }
  }
  return found == 2 && 2 * apart >= held && compare_explained(v, held);
}

static inline int compare_see_lines(CompareView *v, Comparison *c) {
  size_t line[2];
  double by[2];
  if (v->rows < 2 || v->cols < 2) return 0;
  for (int kind = 0; kind < 4; kind++) {
    int times = kind < 2, rows = kind % 2 == 0;
    if (!compare_is_lines(v, times, rows ? v->rows : v->cols, rows ? v->cols : v->rows, rows ? v->cols : 1,
                          rows ? 1 : v->cols, line, by))
      continue;
    const char *name = rows ? "row" : "column";
    if (times)
      compare_say(
          c,
          " Each %s is what is expected times a factor of its own (%s %zu: %.4g, %s %zu: %.4g): look at what a %s "
          "is multiplied with or divided by.",
          name, name, line[0], by[0], name, line[1], by[1], name);
    else
      compare_say(
          c,
          " Each %s is what is expected plus a term of its own (%s %zu: %.4g, %s %zu: %.4g): look at what is added "
          "to a whole %s.",
          name, name, line[0], by[0], name, line[1], by[1], name);
    c->values = DIAGNOSIS_LINE_FACTOR;
    return 1;
  }
  return 0;
}

/* Are the errors at most 100 tolerances, or 1/128 of each value where the tolerance is 0, and small compared with the
 * values as a whole? */
static inline int compare_see_close(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, towards_zero = 0, finite = 0;
  double squares = 0;
  if (!isfinite(c->error) || (c->tolerance > 0 && !(c->error <= 100 * c->tolerance))) return 0;
  for (size_t i = 0; i < n; i++) {
    double actual = v->actual[i], expected = v->expected[i];
    if (!isfinite(expected)) continue;
    squares += expected * expected;
    finite++;
    if (!v->marked[i]) continue;
    if (c->tolerance == 0 && !(fabs(actual - expected) <= fabs(expected) / 128)) return 0;
    towards_zero += fabs(actual) < fabs(expected);
  }
  if (c->error > 0.05 * sqrt(squares / (double)finite)) return 0;
  compare_say(c, " The errors are small: rounding (lower precision, a worse order of summation) beyond the tolerance.");
  if (v->count >= 8 && (towards_zero == 0 || towards_zero == v->count))
    compare_say(c, " All go %s zero.", towards_zero > 0 ? "towards" : "away from");
  c->values = DIAGNOSIS_ROUNDING;
  return 1;
}

#endif /* COMMON_COMPARE_DIAGNOSE_VALUES_H */

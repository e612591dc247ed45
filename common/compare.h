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
 * An element is right when |actual - expected| <= absolute + relative * |expected|. The test is written so that NaN
 * never passes, which is why this header refuses -ffast-math. Infinity equals only itself; NaN equals NaN only with
 * `nan_equal`. The message joins two findings: what the wrong values are (CompareValues) and where (ComparePlaces).
 */
#ifndef COMMON_COMPARE_H
#define COMMON_COMPARE_H

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "compare.h must not be compiled with -ffast-math: it lets the compiler assume that there is no NaN"
#endif

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "common/error.h"

typedef struct Tolerance {
  double relative, absolute;
  int nan_equal; /* NaN is right where NaN is expected */
} Tolerance;

/* What all wrong elements have in common; the first that fits. compare_values() has them in this order. */
typedef enum CompareValues {
  VALUES_RIGHT,
  VALUES_REFERENCE_NAN,       /* NaN was expected, and not declared equal */
  VALUES_NEVER_WRITTEN,       /* still the poison */
  VALUES_READ_BEFORE_WRITTEN, /* something was added to the poison */
  VALUES_NAN,
  VALUES_INFINITE,
  VALUES_ZERO,
  VALUES_CONSTANT,
  VALUES_SIGN,
  VALUES_FACTOR,
  VALUES_OFFSET,   /* expected + b */
  VALUES_AFFINE,   /* a * expected + b */
  VALUES_FUNCTION, /* the square of what is expected, its logarithm, .. */
  VALUES_LINES,    /* each row or column has a factor, or an offset, of its own */
  VALUES_TRANSPOSED,
  VALUES_SHIFTED,
  VALUES_PERMUTED,  /* whole rows or columns in each other's place */
  VALUES_REPEATED,  /* each of 0 to n - 1 was expected once, and one stands there twice */
  VALUES_REORDERED, /* the same, in another order */
  VALUES_MOVED,     /* element i holds what belongs into k i, i / k, or the first of k neighbours */
  VALUES_GATHERED,  /* of each k lines the first holds the sum of all, and the others are 0 */
  VALUES_BYTES,     /* numbers of 32 bits, as two halves, with their bytes reversed */
  VALUES_MASK,      /* zeros where there should be none, and none where there should be */
  VALUES_CLOSE,     /* within 100 tolerances: rounding */
  VALUES_RACE,      /* from compare_runs() */
  VALUES_UNKNOWN
} CompareValues;

typedef enum ComparePlaces {
  PLACES_NONE,
  PLACES_ALL,
  PLACES_LAST_TILE,   /* the rows and columns beyond the last whole tile */
  PLACES_AFTER_FIRST, /* all but the first rows, columns or elements */
  PLACES_EVERY_KTH,   /* k, and every k-th element */
  PLACES_ALL_BUT_EVERY_KTH,
  PLACES_SCATTERED
} ComparePlaces;

typedef struct Comparison {
  int ok;
  size_t wrong, worst_row, worst_col; /* the worst element is the one with the most tolerances of error */
  double error, tolerance;            /* at the worst element; of a right array, too */
  double factor;                      /* of VALUES_FACTOR: actual = factor * expected */
  float actual, expected;
  CompareValues values;
  ComparePlaces places;
  size_t before_places; /* so long is the message before it says what is guessed from them */
  size_t first;         /* so many elements are before the first that is marked: of the kind of values, or wrong */
  char message[1024];
} Comparison;

static inline Tolerance tolerance_make(double relative, double absolute) {
  Tolerance t;
  t.relative = relative;
  t.absolute = absolute;
  t.nan_equal = 0;
  return t;
}

/* For sums of `length` products, each about `magnitude` in size (root mean square of one factor times that of the
 * other; 1 for inputs from test_random_fill), summed in float in whatever order on either side.
 *
 * With S the sum of the |products| and u = 2^-24, summing in float errs by at most gamma_n S, gamma_n = n u / (1 - n u)
 * (Higham, "Accuracy and Stability of Numerical Algorithms", ch. 3). That needs every rounding to go the same way; they
 * behave as if independent, and lambda sqrt(n) u S holds with probability 1 - 2 exp(-lambda^2 / 2) (Higham and Mary,
 * 2019). Here lambda = 4, the smaller of the two bounds, S = length * magnitude, and twice u for two such sums. A
 * tree or tiled order errs less than the bound, so a kernel may change its order and keep its test. */
static inline Tolerance tolerance_dot(size_t length, double magnitude) {
  double n = (double)length + 1; /* the product rounds as well */
  double growth = fmin(n, 4 * sqrt(n));
  return tolerance_make(FLT_EPSILON, growth * FLT_EPSILON * (double)length * magnitude);
}

/* The poison is a signalling NaN: arithmetic on it gives a quiet one (on x86 with the same payload, on a GPU without),
 * so that an element never written is told from one that was computed out of it. */
enum { COMPARE_POISON = 0x7FA0DEAD, COMPARE_QUIET = 0x00400000 };

/* By address, because a float passed by value may be quieted on the way. */
static inline uint32_t compare_bits(const float *x) {
  uint32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits;
}

static inline int compare_is_poison(const float *x) { return compare_bits(x) == COMPARE_POISON; }

static inline void compare_poison(float *x, size_t n) {
  uint32_t bits = COMPARE_POISON;
  for (size_t i = 0; i < n; i++) memcpy(&x[i], &bits, sizeof bits);
}

static inline int compare_element(const float *actual, double expected, Tolerance tolerance) {
  if (isnan(expected)) return tolerance.nan_equal && isnan(*actual) && !compare_is_poison(actual);
  if (isinf(expected) || isinf(*actual)) return *actual == expected;
  return fabs(*actual - expected) <= tolerance.absolute + tolerance.relative * fabs(expected); /* false for NaN */
}

/* One comparison while it is being diagnosed; `marked` holds 1 for each element of the kind that is looked into. */
typedef struct CompareView {
  const float *actual, *expected; /* (rows, cols) */
  size_t rows, cols, count;       /* count: how many are marked */
  Tolerance tolerance;
  unsigned char *marked;
} CompareView;

/* A guess explains the values if it holds for every marked element it speaks of, and speaks of three and of half. */
static inline int compare_explained(const CompareView *v, size_t held) { return held >= 3 && 2 * held >= v->count; }

static inline int compare_is_transposed(const CompareView *v) {
  size_t n = v->rows * v->cols;
  if (v->rows == 1 || v->cols == 1) return 0;
  for (size_t i = 0; i < n; i++) {
    float there = v->expected[i % v->rows * v->cols + i / v->rows];
    if (v->marked[i] && !compare_element(&v->actual[i], there, v->tolerance)) return 0;
  }
  return compare_explained(v, v->count);
}

/* Does every marked element hold what belongs (down, right) of it? Nothing is known where that lies outside. */
static inline int compare_is_shifted(const CompareView *v, int down, int right) {
  size_t held = 0;
  for (size_t r = 0; r < v->rows; r++)
    for (size_t c = 0; c < v->cols; c++) {
      size_t row = r + (size_t)down, col = c + (size_t)right; /* -1 wraps round to a huge number */
      if (!v->marked[r * v->cols + c] || row >= v->rows || col >= v->cols) continue;
      if (!compare_element(&v->actual[r * v->cols + c], v->expected[row * v->cols + col], v->tolerance)) return 0;
      held++;
    }
  return compare_explained(v, held);
}

/* Is every line with a mark some other line? Rows: `count` = rows, `step` = cols, `item_step` = 1; columns likewise. */
static inline int compare_is_permuted(const CompareView *v, size_t count, size_t length, size_t step, size_t item_step,
                                      size_t *line, size_t *source) {
  if (length < 3 || count > 4096) return 0; /* the search is quadratic */
  size_t found = 0;
  for (size_t l = 0; l < count; l++) {
    size_t first = 0;
    while (first < length && !v->marked[l * step + first * item_step]) first++;
    if (first == length) continue;
    size_t s = 0, i = 0;
    for (; s < count; s++) {
      for (i = 0; i < length; i++)
        if (!compare_element(&v->actual[l * step + i * item_step], v->expected[s * step + i * item_step], v->tolerance))
          break;
      if (i == length) break;
    }
    if (s == count) return 0;
    if (found++ == 0) {
      *line = l;
      *source = s;
    }
  }
  return found >= 2;
}

/* The one number that turns expected into actual at all marked elements; 0 if there is none, or it is about 1. */
static inline double compare_factor(const CompareView *v) {
  size_t n = v->rows * v->cols, anchor = n;
  for (size_t i = 0; i < n; i++)
    if (v->marked[i] && (anchor == n || fabsf(v->expected[i]) > fabsf(v->expected[anchor]))) anchor = i;
  double factor = (double)v->actual[anchor] / v->expected[anchor];
  double noise = v->tolerance.absolute * fmax(1, fabs(factor));
  size_t others = 0; /* of one value that is expected everywhere each number is a multiple */
  for (size_t i = 0; i < n; i++) others += v->marked[i] && v->expected[i] != v->expected[anchor];
  if (others == 0) return 0;
  if (!isfinite(factor) || fabs(factor - 1) < 1e-3 || fabs((double)v->actual[anchor]) <= 8 * noise) return 0;
  for (size_t i = 0; i < n; i++) {
    double there = factor * v->expected[i];
    if (v->marked[i] && !(fabs(v->actual[i] - there) <= noise + (v->tolerance.relative + 1e-4) * fabs(there))) return 0;
  }
  return compare_explained(v, v->count) ? factor : 0;
}

/* As %g, but for NaN, which printf() gives a sign. */
static inline const char *compare_number(double x, int digits, char text[32]) {
  if (isnan(x))
    snprintf(text, 32, "NaN");
  else
    snprintf(text, 32, "%.*g", digits, x);
  return text;
}

__attribute__((format(printf, 2, 3))) static inline void compare_say(Comparison *c, const char *format, ...) {
  size_t used = strlen(c->message);
  va_list args;
  va_start(args, format);
  vsnprintf(c->message + used, sizeof c->message - used, format, args);
  va_end(args);
}

/* Marks the elements of one kind; finds that kind when there are any. */
static inline int compare_mark(CompareView *v, CompareValues kind) {
  size_t n = v->rows * v->cols;
  v->count = 0;
  for (size_t i = 0; i < n; i++) {
    const float *x = &v->actual[i];
    int wrong = !compare_element(x, v->expected[i], v->tolerance), is = 1;
    if (kind == VALUES_REFERENCE_NAN) is = isnan(v->expected[i]) && !v->tolerance.nan_equal;
    if (kind == VALUES_NEVER_WRITTEN) is = compare_is_poison(x);
    if (kind == VALUES_READ_BEFORE_WRITTEN) is = compare_bits(x) == (COMPARE_POISON | COMPARE_QUIET);
    if (kind == VALUES_NAN) is = isnan(*x);
    if (kind == VALUES_INFINITE) is = isinf(*x);
    v->marked[i] = wrong && is;
    v->count += v->marked[i];
  }
  return v->count > 0;
}

/* ---- one recogniser for each of CompareValues: 1, and a sentence, when it fits the marked elements ---- */

static inline int compare_see_bits(CompareView *v, Comparison *c) {
  static const struct {
    CompareValues values;
    const char *one, *words; /* behind the number of elements */
  } kinds[] = {
      {VALUES_REFERENCE_NAN, "of the expected elements is NaN: the reference is wrong, or was not computed.",
       "of the expected elements are NaN: the reference is wrong, or was not computed."},
      {VALUES_NEVER_WRITTEN, "element was never written.", "elements were never written."},
      {VALUES_READ_BEFORE_WRITTEN,
       "element was read before it was written: sum in a register, or clear the output first.",
       "elements were read before they were written: sum in a register, or clear the output first."},
      {VALUES_NAN,
       "element is NaN: 0/0, inf - inf, the logarithm or root of a negative number, a sum that starts "
       "from the output, or a read outside an array.",
       "elements are NaN: 0/0, inf - inf, the logarithm or root of a negative number, a sum that starts "
       "from the output, or a read outside an array."},
      {VALUES_INFINITE, "element is infinite: a division by zero, or an overflow (exp without the maximum subtracted).",
       "elements are infinite: a division by zero, or an overflow (exp without the maximum subtracted)."}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (!compare_mark(v, kinds[k].values)) continue;
    compare_say(c, " %zu %s", v->count, v->count == 1 ? kinds[k].one : kinds[k].words);
    c->values = kinds[k].values;
    return 1;
  }
  compare_mark(v, VALUES_UNKNOWN); /* finite numbers, all that are wrong: for those that follow */
  return 0;
}

static inline int compare_see_one_value(CompareView *v, Comparison *c) {
  size_t same = 0, first = 0, others = 0; /* others: another value is expected than of the first */
  while (!v->marked[first]) first++;
  for (size_t i = 0; i < v->rows * v->cols; i++) {
    if (!v->marked[i]) continue;
    same += v->actual[i] == v->actual[first];
    others += v->expected[i] != v->expected[first];
  }
  const int few = same < 3 || 4 * same < v->rows * v->cols; /* those may have another cause */
  if (same < v->count || (v->actual[first] != 0 && (few || others == 0))) return 0;
  c->values = v->actual[first] == 0 ? VALUES_ZERO : VALUES_CONSTANT;
  if (c->values == VALUES_ZERO)
    compare_say(c, " All wrong elements are zero.");
  else
    compare_say(c, " All wrong elements are %g: does the value depend on the thread's index?",
                (double)v->actual[first]);
  return 1;
}

static inline int compare_see_factor(CompareView *v, Comparison *c) {
  double factor = compare_factor(v);
  size_t negative = 0;
  if (factor == 0) return 0;
  for (size_t i = 0; i < v->rows * v->cols; i++) negative += v->marked[i] && v->expected[i] < 0;
  c->factor = factor;
  c->values = fabs(factor + 1) < 1e-3 ? VALUES_SIGN : VALUES_FACTOR;
  if (c->values == VALUES_SIGN && v->count < v->rows * v->cols && (negative == v->count || negative == 0))
    compare_say(c, " The sign is the opposite where a %s value is expected: a sign is lost.",
                negative > 0 ? "negative" : "positive");
  else if (c->values == VALUES_SIGN)
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

/* a * expected + b, from the smallest and the largest expected value. */
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
  c->values = a == 1 ? VALUES_OFFSET : VALUES_AFFINE;
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
      double noise =
          2 * fabs(functions[f].of(x + step) - y) + step + 1e-5 * fabs(y); /* y, had x been rounded otherwise */
      fits = fabs(v->actual[i] - y) <= noise;
      apart += fabs(y - x) > 8 * noise;
    }
    if (!fits || 2 * apart < v->count) continue;
    compare_say(c, " The values are %s.", functions[f].words);
    c->values = VALUES_FUNCTION;
    return 1;
  }
  return 0;
}

/* Within each tile alone? Nothing is known where the tile reaches beyond the array. */
static inline int compare_is_turned(const CompareView *v, size_t tile) {
  size_t held = 0, apart = 0;
  for (size_t r = 0; r < v->rows; r++)
    for (size_t c = 0; c < v->cols; c++) {
      size_t row = r / tile * tile + c % tile, col = c / tile * tile + r % tile;
      const float *here = &v->actual[r * v->cols + c];
      if (!v->marked[r * v->cols + c] || row >= v->rows || col >= v->cols) continue;
      if (!compare_element(here, v->expected[row * v->cols + col], v->tolerance)) return 0;
      held++;
      apart += !compare_element(here, v->expected[r * v->cols + c], v->tolerance);
    }
  return compare_explained(v, held) && held >= 6 && apart == held;
}

static inline int compare_see_transposed(CompareView *v, Comparison *c) {
  for (size_t tile = 2; tile <= 32 && v->rows > 1; tile *= 2) {
    if (!compare_is_turned(v, tile) || (tile >= v->rows && tile >= v->cols)) continue;
    compare_say(c, " Rows and columns are exchanged within each tile of %zu x %zu.", tile, tile);
    c->values = VALUES_TRANSPOSED;
    return 1;
  }
  if (!compare_is_transposed(v)) return 0;
  compare_say(c, " The output is the transpose: rows and columns are exchanged in an index.");
  c->values = VALUES_TRANSPOSED;
  return 1;
}

static inline int compare_see_shifted(CompareView *v, Comparison *c) {
  for (int by = -1; by <= 1; by += 2) {
    int right = compare_is_shifted(v, 0, by);
    if (!right && !compare_is_shifted(v, by, 0)) continue;
    compare_say(c, " The output is shifted by one %s: elements hold the value of their %s.",
                v->rows == 1 ? "element"
                : right      ? "column"
                             : "row",
                by < 0 ? "predecessor" : "successor");
    c->values = VALUES_SHIFTED;
    return 1;
  }
  return 0;
}

static inline int compare_see_permuted(CompareView *v, Comparison *c) {
  size_t line = 0, source = 0;
  int rows = compare_is_permuted(v, v->rows, v->cols, v->cols, 1, &line, &source);
  if (!rows && !compare_is_permuted(v, v->cols, v->rows, 1, v->cols, &line, &source)) return 0;
  compare_say(c, " %s are permuted: %s %zu holds the values of %s %zu.", rows ? "Rows" : "Columns",
              rows ? "row" : "column", line, rows ? "row" : "column", source);
  c->values = VALUES_PERMUTED;
  return 1;
}

/* Has each line a factor, or an offset, of its own? Rows: `count` = rows, `step` = cols, `item_step` = 1. Nothing is
 * said of lines with less than three wrong elements; two with different numbers are wanted, and that most elements are
 * far enough from what is expected. */
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
    c->values = VALUES_LINES;
    return 1;
  }
  return 0;
}

/* Zeros where there should be none, and none where there should be. What is neither here nor there is right, or, where
 * nothing is zero that should not be, has a common factor: a mask that was never applied. */
static inline int compare_see_mask(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, missing = 0, wrongly = 0, others = 0, anchor = n;
  for (size_t i = 0; i < n; i++) {
    if (!v->marked[i]) continue;
    missing += v->expected[i] == 0;
    wrongly += v->expected[i] != 0 && v->actual[i] == 0;
    if (v->expected[i] == 0 || v->actual[i] == 0) continue;
    others++;
    if (anchor == n || fabsf(v->expected[i]) > fabsf(v->expected[anchor])) anchor = i;
  }
  if (missing == 0 || missing + wrongly + others < 5 || (others > 0 && wrongly > 0)) return 0;
  if (others == 0 && missing + wrongly == n && wrongly > 0) {
    compare_say(c, " It is zero exactly where it should not be, and not where it should: is a condition inverted?");
  } else if (others == 0 && wrongly > 0) {
    compare_say(
        c,
        " Where neither is zero the values are right, but %zu are zero that should not be, and %zu are not zero "
        "that should be: the choice of the zeros is wrong.",
        wrongly, missing);
  } else if (others == 0) {
    compare_say(c, " All wrong elements should be zero; all others are right.");
  } else {
    double factor = (double)v->actual[anchor] / v->expected[anchor];
    for (size_t i = 0; i < n; i++) {
      double there = factor * v->expected[i];
      if (v->marked[i] && v->expected[i] != 0 && !(fabs(v->actual[i] - there) <= 1e-4 * fabs(there))) return 0;
    }
    compare_say(c, " %zu elements should be zero, and the others are %.4g times what they should be.", missing, factor);
  }
  c->values = VALUES_MASK;
  return 1;
}

/* Numbers 0 to n - 1, each once, as an order or a permutation is; `place` (n): where each stands first, in what was
 * computed; n: nowhere. 0 when something else was expected. */
static inline int compare_is_order(const CompareView *v, size_t *place) {
  size_t n = v->rows * v->cols, once = 0;
  for (size_t i = 0; i < n; i++) place[i] = n;
  for (size_t i = 0; i < n; i++) {
    float x = v->expected[i];
    if (!(x >= 0 && x < (float)n) || x != floorf(x) || place[(size_t)x] != n) return 0;
    place[(size_t)x] = i;
    once++;
  }
  for (size_t i = 0; i < n; i++) place[i] = n;
  return once >= 3;
}

static inline int compare_see_repeated(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, *place = (size_t *)xmalloc(n * sizeof *place);
  int said = 0;
  for (size_t i = 0; n < 1 << 24 && (i > 0 || compare_is_order(v, place)) && i < n && !said; i++) {
    float x = v->actual[i];
    int inside = x >= 0 && x < (float)n && x == floorf(x);
    said = !inside || place[(size_t)x] != n;
    if (!inside)
      compare_say(c, " Element %zu is %g: each number from 0 to %zu must stand there once.", i, (double)x, n - 1);
    else if (said)
      compare_say(
          c, " The number %g stands there twice, in elements %zu and %zu: each from 0 to %zu must stand there once.",
          (double)x, place[(size_t)x], i, n - 1);
    else
      place[(size_t)x] = i;
  }
  free(place);
  if (said) c->values = VALUES_REPEATED;
  return said;
}

static inline int compare_see_reordered(CompareView *v, Comparison *c) {
  size_t n = v->rows * v->cols, *place = (size_t *)xmalloc(n * sizeof *place);
  int order = n < 1 << 24 && compare_is_order(v, place); /* and none is repeated: compare_see_repeated() was asked */
  free(place);
  if (!order) return 0;
  compare_say(c, " Each number from 0 to %zu stands there once, as it must, but they are in another order.", n - 1);
  c->values = VALUES_REORDERED;
  return 1;
}

/* Does element i hold what belongs into element from(i), in groups of `group`? Nothing is known outside the array. */
static inline int compare_is_moved(const CompareView *v, size_t group, size_t times, size_t divided) {
  size_t n = v->rows * v->cols, held = 0, apart = 0;
  for (size_t i = 0; i < n; i++) {
    size_t from = i / group / divided * times * group + i % group;
    if (!v->marked[i] || from >= n) continue;
    if (!compare_element(&v->actual[i], v->expected[from], v->tolerance)) return 0;
    held++;
    apart += !compare_element(&v->expected[i], v->expected[from], v->tolerance);
  }
  return held >= 4 && apart >= 4;
}

/* Elements 2 i and 2 i + 1 in each other's place. */
static inline int compare_is_exchanged(const CompareView *v) {
  size_t n = v->rows * v->cols, held = 0;
  for (size_t i = 0; i < n; i++) {
    size_t from = i ^ 1;
    if (!v->marked[i] || from >= n) continue;
    if (!compare_element(&v->actual[i], v->expected[from], v->tolerance)) return 0;
    held++;
  }
  return held >= 4;
}

/* The number of 32 bits of two halves. 0, and nothing, where these are none. */
static inline int compare_halves(const float *half, uint32_t *number) {
  for (int i = 0; i < 2; i++)
    if (!(half[i] >= 0 && half[i] <= 65535) || half[i] != floorf(half[i])) return 0;
  *number = (uint32_t)half[0] << 16 | (uint32_t)half[1];
  return 1;
}

/* What becomes of the bytes when they come in the order 0 to 3, the first the most significant, or in another one, are
 * `bits` apart, and the last one (1), or all (2), are signed. */
static inline uint32_t compare_bytes(uint32_t number, const int order[4], int bits, int is_signed) {
  uint32_t joined = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t byte = number >> 8 * (3 - order[i]) & 255;
    if (byte >= 128 && (is_signed > 1 || (is_signed && i == 3))) byte |= 0xFFFFFF00u;
    joined |= byte << bits * (3 - i);
  }
  return joined;
}

/* Numbers of 32 bits as two halves of 16, the upper one first: put together of their bytes in a wrong way? */
static inline int compare_see_bytes(CompareView *v, Comparison *c) {
  static const int orders[][4] = {{3, 2, 1, 0}, {0, 2, 1, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {0, 1, 2, 3}, {1, 0, 2, 3},
                                  {0, 1, 3, 2}, {3, 1, 2, 0}, {1, 2, 3, 0}, {3, 0, 1, 2}, {0, 3, 2, 1}, {2, 1, 0, 3}};
  const size_t n = v->rows * v->cols;
  for (size_t o = 0; o < sizeof orders / sizeof *orders && n % 2 == 0; o++)
    for (int bits = 8; bits >= 4; bits--)
      for (int is_signed = 0; is_signed <= 2; is_signed++) {
        const int *order = orders[o];
        size_t apart = 0;
        int fits = 1;
        for (size_t i = 0; i < n && fits; i += 2) {
          uint32_t expected, actual;
          fits = compare_halves(&v->expected[i], &expected) && compare_halves(&v->actual[i], &actual) &&
                 compare_bytes(expected, order, bits, is_signed) == actual;
          apart += v->marked[i] || v->marked[i + 1];
        }
        if (!fits || apart < 3) continue;
        if (o == 0)
          compare_say(c, " The four bytes of each number are in the reverse order.");
        else if (order[0] != 0 || order[1] != 1 || order[2] != 2)
          compare_say(c, " The four bytes of each number are in the order %d, %d, %d, %d.", order[0], order[1],
                      order[2], order[3]);
        if (bits != 8) compare_say(c, " The bytes of each number are %d bits apart; a byte has 8.", bits);
        if (is_signed)
          compare_say(c, " Bytes of 128 and more are taken for negative numbers, which fill all bits before them.");
        c->values = VALUES_BYTES;
        return 1;
      }
  return 0;
}

static inline int compare_see_moved(CompareView *v, Comparison *c) {
  if (compare_is_exchanged(v)) {
    compare_say(c, " Neighbours are exchanged: elements 0 and 1, 2 and 3, ...");
    c->values = VALUES_MOVED;
    return 1;
  }
  for (size_t group = 1; group <= 4; group += 3) {
    const char *what = group == 1 ? "element i" : "group of four, number i,";
    for (size_t k = 2; k <= 32; k++) {
      int times = compare_is_moved(v, group, k, 1), divided = !times && compare_is_moved(v, group, 1, k);
      int first = !times && !divided && compare_is_moved(v, group, k, k);
      if (times) compare_say(c, " Each %s holds what belongs into %zu i: the index is multiplied by %zu.", what, k, k);
      if (divided) compare_say(c, " Each %s holds what belongs into i / %zu: the index is divided by %zu.", what, k, k);
      if (first) compare_say(c, " Each %zu neighbours hold what belongs into the first of them.", k);
      if (!times && !divided && !first) continue;
      c->values = VALUES_MOVED;
      return 1;
    }
  }
  return 0;
}

/* Of each k lines, is the first the sum of all, and the others 0? */
static inline int compare_is_gathered(const CompareView *v, size_t k, size_t count, size_t length, size_t step,
                                      size_t item_step) {
  size_t apart = 0;
  for (size_t l = 0; l < count; l++)
    for (size_t i = 0; i < length; i++) {
      const size_t at = l * step + i * item_step;
      double sum = 0, size = 0;
      for (size_t other = l; other < l + k && other < count && l % k == 0; other++) {
        sum += v->expected[other * step + i * item_step];
        size += fabs((double)v->expected[other * step + i * item_step]);
      }
      double noise = (double)k * v->tolerance.absolute + (v->tolerance.relative + 1e-5) * size;
      if (!(fabs(v->actual[at] - sum) <= noise)) return 0;
      apart += v->marked[at];
    }
  return compare_explained(v, apart);
}

static inline int compare_see_gathered(CompareView *v, Comparison *c) {
  for (size_t k = 2; k <= 32; k *= 2)
    for (int rows = 1; rows >= 0; rows--) {
      size_t count = rows ? v->rows : v->cols, length = rows ? v->cols : v->rows;
      if (count <= k || !compare_is_gathered(v, k, count, length, rows ? v->cols : 1, rows ? 1 : v->cols)) continue;
      compare_say(c, " Of each %zu %s the first holds the sum of all, and the others are 0: do all add to one place?",
                  k,
                  rows           ? "rows"
                  : v->rows == 1 ? "elements"
                                 : "columns");
      c->values = VALUES_GATHERED;
      return 1;
    }
  return 0;
}

/* Small beside the tolerance, or where that is 0 beside each value, and small beside the values as a whole. */
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
  c->values = VALUES_CLOSE;
  return 1;
}

static inline void compare_values(CompareView *v, Comparison *c) {
  int (*const recognisers[])(CompareView *, Comparison *) = {
      compare_see_bits,     compare_see_repeated,  compare_see_one_value,  compare_see_factor,
      compare_see_affine,   compare_see_function,  compare_see_transposed, compare_see_shifted,
      compare_see_permuted, compare_see_reordered, compare_see_moved,      compare_see_gathered,
      compare_see_bytes,    compare_see_mask,      compare_see_lines,      compare_see_close};
  for (size_t r = 0; r < sizeof recognisers / sizeof *recognisers; r++)
    if (recognisers[r](v, c)) return;
  c->values = VALUES_UNKNOWN;
}

/* Are the elements with this mark every k-th one, without a gap, and at least three? */
static inline int compare_every_kth(const CompareView *v, int mark, size_t *k, size_t *first) {
  size_t n = v->rows * v->cols, found = 0;
  *k = *first = 0;
  for (size_t i = 0; i < n; i++) {
    if (v->marked[i] != mark) continue;
    if (found == 0) *first = i;
    if (found == 1) *k = i - *first;
    if (i != *first + found * *k) return 0;
    found++;
  }
  return found >= 3 && *k >= 2 && *first < *k && *first + found * *k >= n;
}

/* Are the marked elements those beyond row `r0` or column `c0`, read off the first column and the first row? */
static inline int compare_is_beyond(const CompareView *v, size_t *r0, size_t *c0) {
  for (*r0 = 0; *r0 < v->rows && !v->marked[*r0 * v->cols];) ++*r0;
  for (*c0 = 0; *c0 < v->cols && !v->marked[*c0];) ++*c0;
  if (*r0 == 0 || *c0 == 0) return 0;
  size_t beyond = v->rows * v->cols - *r0 * *c0;
  for (size_t r = 0; r < *r0; r++)
    for (size_t c = 0; c < *c0; c++)
      if (v->marked[r * v->cols + c]) return 0;
  return beyond > 0 && (double)v->count >= 0.9 * (double)beyond; /* a few may be right by chance */
}

/* Is `start` the end of the last whole tile? */
static inline int compare_tile_fits(size_t tile, size_t start, size_t size) {
  return start == size || (start % tile == 0 && size - start < tile);
}

static inline ComparePlaces compare_places(const CompareView *view, Comparison *c) {
  size_t k, first, r0, c0;
  const int unwritten = c->values == VALUES_NEVER_WRITTEN;
  if (view->count == view->rows * view->cols) {
    compare_say(c, " That is every element.");
    return PLACES_ALL;
  }
  if (compare_every_kth(view, 0, &k, &first) && k > 2) {
    compare_say(c, " Only one in %zu elements (%zu, %zu, ...) is spared.", k, first, first + k);
    return PLACES_ALL_BUT_EVERY_KTH;
  }
  int kth = compare_every_kth(view, 1, &k, &first);
  if (!kth || k == view->cols) { /* one whole column may be a partial tile */
    CompareView flat = *view;
    flat.rows = 1;
    flat.cols = view->rows * view->cols;
    const CompareView *v = compare_is_beyond(view, &r0, &c0) ? view : &flat;
    if (v == view || compare_is_beyond(v, &r0, &c0)) {
      for (size_t tile = 256; tile >= 4; tile /= 2)
        if (compare_tile_fits(tile, r0, v->rows) && compare_tile_fits(tile, c0, v->cols)) {
          if ((r0 == v->rows || r0 == tile) && (c0 == v->cols || c0 == tile)) /* there is one whole tile */
            compare_say(c,
                        " They lie beyond the first tile of %zu: is blockIdx in the index, is the grid rounded up, and "
                        "what does "
                        "the bounds test compare with?",
                        tile);
          else
            compare_say(
                c,
                " They fill the last partial tile of %zu: round the grid up and treat the edge, and compare the "
                "bounds test with the size.",
                tile);
          return PLACES_LAST_TILE;
        }
      if (!unwritten && r0 * c0 < 4) return PLACES_SCATTERED; /* those may be right by chance */
      if (v->rows == 1)
        compare_say(c, " Only the first %zu elements are %s", c0, unwritten ? "written" : "right");
      else
        compare_say(c, " Only the first %zu rows x %zu columns are %s", r0, c0, unwritten ? "written" : "right");
      /* Blocks have multiples of 32 threads, tiles powers of two; a bounds test may end anywhere. */
      if (!unwritten)
        compare_say(c, ": do the others read their own elements of each array?");
      else if ((r0 == v->rows || r0 == 1 || r0 % 8 == 0) && (c0 == v->cols || c0 == 1 || c0 % 8 == 0))
        compare_say(c, ": does the grid cover the array, is blockIdx in the index?");
      else
        compare_say(c, ": that is not a whole number of blocks, so look at the bounds test.");
      return PLACES_AFTER_FIRST;
    }
  }
  if (kth) {
    compare_say(c, " They are one in %zu elements (%zu, %zu, ...).", k, first, first + k);
    return PLACES_EVERY_KTH;
  }
  return PLACES_SCATTERED;
}

/* Compares actual with expected, both (rows, cols), row-major. An empty array is not right: nothing was checked. */
static inline Comparison compare_arrays(const float *actual, const float *expected, size_t rows, size_t cols,
                                        Tolerance tolerance) {
  Comparison c;
  memset(&c, 0, sizeof c);
  if (rows * cols == 0) {
    c.values = VALUES_UNKNOWN;
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
    if (error <= limit && (error < worst * limit || (error == 0 && worst >= 0))) continue; /* nearly all: be quick */
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
  c.values = c.ok ? VALUES_RIGHT : VALUES_RACE;
  return c;
}

#endif /* COMMON_COMPARE_H */

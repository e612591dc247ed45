/* compare_diagnose.h - what the recognisers of wrong values and places share: the comparison that is being explained,
 * the elements that are looked into, and words. */
#ifndef COMMON_COMPARE_DIAGNOSE_H
#define COMMON_COMPARE_DIAGNOSE_H

#include <stdarg.h>

#include "common/compare_element.h"
#include "common/diagnosis.h"
#include "common/error.h"

typedef struct Comparison {
  int ok;
  size_t wrong, worst_row, worst_col; /* the worst element is the one with the most tolerances of error */
  double error, tolerance;            /* at the worst element; of a right array, too */
  double factor;                      /* of DIAGNOSIS_FACTOR: actual = factor * expected */
  float actual, expected;
  Diagnosis values;     /* what all wrong elements have in common: the first recogniser of compare.h that fits */
  Diagnosis places;     /* where they are */
  size_t before_places; /* length of the message before the sentences about places */
  size_t first;         /* index of the first element that `values` is about */
  char message[1024];
} Comparison;

/* One comparison while it is being diagnosed; `marked` is 1 for each element that the recognisers look at. */
typedef struct CompareView {
  const float *actual, *expected; /* (rows, cols) */
  size_t rows, cols, count;       /* count: how many are marked */
  Tolerance tolerance;
  unsigned char *marked;
} CompareView;

/* A guess says something about `held` marked elements and holds for all of these. It explains the values when these are
 * at least three, and at least half of all marked elements. */
static inline int compare_explained(const CompareView *v, size_t held) { return held >= 3 && 2 * held >= v->count; }

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

/* Marks the wrong elements of one kind. Returns 1 when there are any. */
static inline int compare_mark(CompareView *v, Diagnosis kind) {
  size_t n = v->rows * v->cols;
  v->count = 0;
  for (size_t i = 0; i < n; i++) {
    const float *x = &v->actual[i];
    int wrong = !compare_element(x, v->expected[i], v->tolerance), is = 1;
    if (kind == DIAGNOSIS_REFERENCE_NAN) is = isnan(v->expected[i]) && !v->tolerance.nan_equal;
    if (kind == DIAGNOSIS_NEVER_WRITTEN) is = compare_is_poison(x);
    if (kind == DIAGNOSIS_READ_BEFORE_WRITTEN) is = compare_bits(x) == (COMPARE_POISON | COMPARE_QUIET);
    if (kind == DIAGNOSIS_NAN) is = isnan(*x);
    if (kind == DIAGNOSIS_INFINITE) is = isinf(*x);
    v->marked[i] = wrong && is;
    v->count += v->marked[i];
  }
  return v->count > 0;
}

#endif /* COMMON_COMPARE_DIAGNOSE_H */

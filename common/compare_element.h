/* compare_element.h - is one number right? The tolerance, and the poison that marks what was never written.
 *
 * An element is right when |actual - expected| <= absolute + relative * |expected|. The test is written so that NaN
 * never passes, which is why this header refuses -ffast-math. Infinity equals only itself; NaN equals NaN only with
 * `nan_equal`.
 */
#ifndef COMMON_COMPARE_ELEMENT_H
#define COMMON_COMPARE_ELEMENT_H

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "compare_element.h must not be compiled with -ffast-math: it lets the compiler assume that there is no NaN"
#endif

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct Tolerance {
  double relative, absolute;
  int nan_equal; /* NaN is right where NaN is expected */
} Tolerance;

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

/* The poison is a signalling NaN. Arithmetic on it gives a quiet NaN (on x86 with the same payload, on a GPU without),
 * so an element that was never written differs from one that was computed from the poison. */
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

#endif /* COMMON_COMPARE_ELEMENT_H */

/* cuComplex.h - cuFloatComplex and cuDoubleComplex: pairs (real, imaginary), with functions and no operators. C and
 * C++. */
#ifndef SIMT_CUCOMPLEX_H
#define SIMT_CUCOMPLEX_H
#define CU_COMPLEX_H_

#include <math.h>

#include "vector_types.h"

/* The names of float's functions end in f. */
#define SIMT_COMPLEX(T, Complex, f, make)                                                                              \
  static inline T cuCreal##f(Complex x) { return x.x; }                                                                \
  static inline T cuCimag##f(Complex x) { return x.y; }                                                                \
  static inline Complex make(T real, T imaginary) {                                                                    \
    Complex x = {real, imaginary};                                                                                     \
    return x;                                                                                                          \
  }                                                                                                                    \
  static inline Complex cuConj##f(Complex x) { return make(x.x, -x.y); }                                               \
  static inline Complex cuCadd##f(Complex x, Complex y) { return make(x.x + y.x, x.y + y.y); }                         \
  static inline Complex cuCsub##f(Complex x, Complex y) { return make(x.x - y.x, x.y - y.y); }                         \
  static inline Complex cuCmul##f(Complex x, Complex y) { return make(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); } \
  /* Scaled by |y|, so that the square neither overflows nor is lost. */                                               \
  static inline Complex cuCdiv##f(Complex x, Complex y) {                                                              \
    T scale = fabs##f(y.x) + fabs##f(y.y);                                                                             \
    T a = x.x / scale, b = x.y / scale, c = y.x / scale, d = y.y / scale, square = c * c + d * d;                      \
    return make((a * c + b * d) / square, (b * c - a * d) / square);                                                   \
  }                                                                                                                    \
  static inline T cuCabs##f(Complex x) { return hypot##f(x.x, x.y); }                                                  \
  static inline Complex cuCfma##f(Complex x, Complex y, Complex z) {                                                   \
    return make(x.x * y.x + z.x - x.y * y.y, x.x * y.y + z.y + x.y * y.x);                                             \
  }

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

SIMT_COMPLEX(float, cuFloatComplex, f, make_cuFloatComplex)
SIMT_COMPLEX(double, cuDoubleComplex, , make_cuDoubleComplex)
#undef SIMT_COMPLEX

static inline cuComplex make_cuComplex(float real, float imaginary) { return make_cuFloatComplex(real, imaginary); }
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) {
  return make_cuDoubleComplex((double)x.x, (double)x.y);
}
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return make_cuFloatComplex((float)x.x, (float)x.y);
}

#endif /* SIMT_CUCOMPLEX_H */

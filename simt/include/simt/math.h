/* math.h - CUDA's mathematical functions beyond those of <math.h>. C++.
 *
 * What ISO C has (sinf, expf, fmaxf, isnan, ...) is the C library's, visible unqualified. Added here are CUDA's own
 * (rsqrtf, sinpi, erfcinv, normcdf, norm3d, ...), its overloads (max(int, unsigned), rsqrt(float), ...), the fast
 * intrinsics (__expf, ...), which are not fast but accurate, and the rounding ones (__fadd_rz, __dmul_ru, ...), which
 * do round in their direction. Largest errors of CUDA's own, measured: 3 ulp in double (cyl_bessel_i0, _i1: 20), 1
 * ulp in float.
 *
 * `extern "C" inline`, for glibc declares some of these names: __expf and its kin always, sinpi from 2.41, rsqrt from
 * 2.42.
 */
#ifndef SIMT_MATH_H
#define SIMT_MATH_H

#ifdef __cplusplus

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <cmath>

#define SIMT_MATH extern "C" inline

/* ---- min, max ---- */

/* Inlined instead of a call of the C library's, which stays what the function's address means. */
#define SIMT_INSTEAD extern inline __attribute__((always_inline, gnu_inline))

/* The number, if one of the two is NaN, and +0 > -0: as the GPU's instruction. The C library's fmaxf() takes 3 ns on
 * x86-64; there maxss gives its second operand for two zeros, so both orders are taken and joined. */
#ifdef __x86_64__
static inline __m128 simt_lane(float x) {
#ifdef __clang__
  return _mm_set_ss(x);
#else
  __m128 v;
  __asm__("" : "=x"(v) : "0"(x)); /* the other three lanes do not matter: gcc would spend two instructions on zeros */
  return v;
#endif
}
extern "C" {
SIMT_INSTEAD float fmaxf(float x, float y) noexcept {
  if (__builtin_expect(__builtin_isunordered(x, y), 0)) return x != x ? y : x;
  __m128 a = simt_lane(x), b = simt_lane(y);
  return _mm_cvtss_f32(_mm_and_ps(_mm_max_ss(a, b), _mm_max_ss(b, a)));
}
SIMT_INSTEAD float fminf(float x, float y) noexcept {
  if (__builtin_expect(__builtin_isunordered(x, y), 0)) return x != x ? y : x;
  __m128 a = simt_lane(x), b = simt_lane(y);
  return _mm_cvtss_f32(_mm_or_ps(_mm_min_ss(a, b), _mm_min_ss(b, a)));
}
}
#endif

#define SIMT_MIN_MAX(T, A, B)                                                   \
  static inline constexpr T min(A x, B y) { return (T)x < (T)y ? (T)x : (T)y; } \
  static inline constexpr T max(A x, B y) { return (T)x > (T)y ? (T)x : (T)y; }
SIMT_MIN_MAX(int, int, int)
SIMT_MIN_MAX(unsigned, unsigned, unsigned)
SIMT_MIN_MAX(unsigned, int, unsigned)
SIMT_MIN_MAX(unsigned, unsigned, int)
SIMT_MIN_MAX(long, long, long)
SIMT_MIN_MAX(unsigned long, unsigned long, unsigned long)
SIMT_MIN_MAX(unsigned long, long, unsigned long)
SIMT_MIN_MAX(unsigned long, unsigned long, long)
SIMT_MIN_MAX(long long, long long, long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
SIMT_MIN_MAX(unsigned long long, long long, unsigned long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef SIMT_MIN_MAX

static inline float min(float x, float y) { return fminf(x, y); }
static inline float max(float x, float y) { return fmaxf(x, y); }
static inline double min(double x, double y) { return fmin(x, y); }
static inline double max(double x, double y) { return fmax(x, y); }
static inline double min(float x, double y) { return fmin((double)x, y); }
static inline double max(float x, double y) { return fmax((double)x, y); }
static inline double min(double x, float y) { return fmin(x, (double)y); }
static inline double max(double x, float y) { return fmax(x, (double)y); }

static inline unsigned umin(unsigned x, unsigned y) { return min(x, y); }
static inline unsigned umax(unsigned x, unsigned y) { return max(x, y); }
static inline long long llmin(long long x, long long y) { return min(x, y); }
static inline long long llmax(long long x, long long y) { return max(x, y); }
static inline unsigned long long ullmin(unsigned long long x, unsigned long long y) { return min(x, y); }
static inline unsigned long long ullmax(unsigned long long x, unsigned long long y) { return max(x, y); }

/* ---- roots, quotients, lengths ---- */

SIMT_MATH double rsqrt(double x) noexcept { return 1 / sqrt(x); }
SIMT_MATH float rsqrtf(float x) noexcept { return 1 / sqrtf(x); }
SIMT_MATH double rcbrt(double x) noexcept {
  double root = 1 / cbrt(x); /* off by up to 4 ulp; a step of Newton's leaves 1 */
  return std::isnormal(root) ? root + root / 3 * fma(-x * root * root, root, 1) : root;
}
SIMT_MATH float rcbrtf(float x) noexcept { return (float)(1 / cbrt((double)x)); }
SIMT_MATH double fdivide(double x, double y) noexcept { return x / y; }
SIMT_MATH float fdividef(float x, float y) noexcept { return x / y; }

SIMT_MATH double norm3d(double x, double y, double z) noexcept { return hypot(hypot(x, y), z); }
SIMT_MATH double norm4d(double x, double y, double z, double w) noexcept { return hypot(hypot(x, y), hypot(z, w)); }
SIMT_MATH double norm(int n, const double *x) noexcept {
  double length = 0;
  for (int i = 0; i < n; i++) length = hypot(length, x[i]);
  return length;
}
SIMT_MATH double rhypot(double x, double y) noexcept { return 1 / hypot(x, y); }
SIMT_MATH double rnorm3d(double x, double y, double z) noexcept { return 1 / norm3d(x, y, z); }
SIMT_MATH double rnorm4d(double x, double y, double z, double w) noexcept { return 1 / norm4d(x, y, z, w); }
SIMT_MATH double rnorm(int n, const double *x) noexcept { return 1 / norm(n, x); }

/* In double, where the square of a float neither overflows nor is lost. An infinity outweighs a NaN, as in hypot(). */
static inline double simt_length(int n, const float *x) {
  double sum = 0;
  bool infinite = false;
  for (int i = 0; i < n; i++) {
    sum += (double)x[i] * (double)x[i];
    infinite |= std::isinf(x[i]);
  }
  return infinite ? HUGE_VAL : sqrt(sum);
}
static inline double simt_length(float x, float y, float z, float w) {
  const float v[] = {x, y, z, w};
  return simt_length(4, v);
}
SIMT_MATH float norm3df(float x, float y, float z) noexcept { return (float)simt_length(x, y, z, 0); }
SIMT_MATH float norm4df(float x, float y, float z, float w) noexcept { return (float)simt_length(x, y, z, w); }
SIMT_MATH float normf(int n, const float *x) noexcept { return (float)simt_length(n, x); }
SIMT_MATH float rhypotf(float x, float y) noexcept { return (float)(1 / simt_length(x, y, 0, 0)); }
SIMT_MATH float rnorm3df(float x, float y, float z) noexcept { return (float)(1 / simt_length(x, y, z, 0)); }
SIMT_MATH float rnorm4df(float x, float y, float z, float w) noexcept { return (float)(1 / simt_length(x, y, z, w)); }
SIMT_MATH float rnormf(int n, const float *x) noexcept { return (float)(1 / simt_length(n, x)); }

/* ---- sin(pi x), cos(pi x) ---- */

/* x = quarter / 2 + rest, |rest| <= 1/4, exactly; the quarter modulo 4. */
static inline int simt_quarter(double x, double *rest) {
  double halves = rint(2 * x);
  *rest = x - halves / 2;
  return (int)fmod(halves, 4) & 3;
}
SIMT_MATH double sinpi(double x) noexcept {
  if (!std::isfinite(x)) return x - x;
  if (fabs(x) >= 0x1p52) return copysign(0.0, x); /* an integer */
  double rest;
  int quarter = simt_quarter(x, &rest);
  double value = quarter & 1 ? cos(M_PI * rest) : sin(M_PI * rest);
  if (quarter & 2) value = -value;
  return value == 0 ? copysign(0.0, x) : value;
}
SIMT_MATH double cospi(double x) noexcept {
  if (!std::isfinite(x)) return x - x;
  if (fabs(x) >= 0x1p53) return 1; /* an even integer */
  double rest;
  int quarter = simt_quarter(fabs(x), &rest);
  double value = quarter & 1 ? sin(M_PI * rest) : cos(M_PI * rest);
  if (quarter == 1 || quarter == 2) value = -value;
  return value == 0 ? 0 : value;
}
SIMT_MATH float sinpif(float x) noexcept { return (float)sinpi((double)x); }
SIMT_MATH float cospif(float x) noexcept { return (float)cospi((double)x); }
SIMT_MATH void sincospi(double x, double *sine, double *cosine) noexcept {
  *sine = sinpi(x);
  *cosine = cospi(x);
}
SIMT_MATH void sincospif(float x, float *sine, float *cosine) noexcept {
  *sine = sinpif(x);
  *cosine = cospif(x);
}

/* ---- the error function's relatives ---- */

/* exp(x^2) erfc(x). The asymptotic series (Abramowitz and Stegun 7.1.23) from 10 on: 13 terms leave 1e-16. */
SIMT_MATH double erfcx(double x) noexcept {
  if (x < 10) {
    double square = x * x, rest = fma(x, x, -square);
    double scale = exp(square);
    return scale > 0x1p1023 ? 2 * scale : (scale + scale * rest) * erfc(x);
  }
  double sum = 1, half = 0.5 / x / x;
  for (int k = 12; k >= 0; k--) sum = 1 - (2 * k + 1) * half * sum;
  return sum / x * (M_2_SQRTPI / 2);
}

/* y > 0 with erfc(y) = c, for 0 < c <= 1/2. Start: Abramowitz and Stegun 26.2.23, to 3e-4; then Newton on the
 * logarithm, log(erfcx(y)) - y^2 = log(c), which is as well behaved in the far tail. */
static inline double simt_erfcinv_tail(double c) {
  double target = log(c), t = sqrt(-2 * (target - M_LN2));
  double y = M_SQRT1_2 *
             (t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int i = 0; i < 3; i++) {
    double scaled = erfcx(y);
    y += (log(scaled) - y * y - target) * scaled / M_2_SQRTPI;
  }
  return y;
}
SIMT_MATH double erfinv(double x) noexcept {
  double size = fabs(x);
  if (size == 1) return copysign(HUGE_VAL, x);
  if (!(size < 1)) return NAN;
  if (size > 0.5) return copysign(simt_erfcinv_tail(1 - size), x);
  /* The Taylor series to 3e-4 of y, then two of Halley's steps. */
  double z = M_PI * x * x, y = x / M_2_SQRTPI * (1 + z / 12 * (1 + z * (7.0 / 40) * (1 + z * (127.0 / 588))));
  for (int i = 0; i < 2; i++) {
    double u = (erf(y) - x) * exp(y * y) / M_2_SQRTPI;
    y -= u / (1 + y * u);
  }
  return y;
}
SIMT_MATH double erfcinv(double c) noexcept {
  if (c == 0) return HUGE_VAL;
  if (c == 2) return -HUGE_VAL;
  if (!(c > 0 && c < 2)) return NAN;
  if (c < 0.5) return simt_erfcinv_tail(c);
  if (c > 1.5) return -simt_erfcinv_tail(2 - c);
  return erfinv(1 - c);
}
/* erfc(-x / sqrt 2) / 2; in the lower tail the rounding of x / sqrt 2 counts x^2 times, so its rest is carried along.
 * */
SIMT_MATH double normcdf(double x) noexcept {
  if (x < -38.6) return 0;
  double high = x * M_SQRT1_2, rest = fma(x, M_SQRT1_2, -high) + x * -4.833646656726457e-17;
  double value = erfc(-high);
  return x < -1 ? 0.5 * (value + rest * M_2_SQRTPI * exp(-high * high)) : 0.5 * value;
}
SIMT_MATH double normcdfinv(double p) noexcept { return -M_SQRT2 * erfcinv(2 * p); }

SIMT_MATH float erfcxf(float x) noexcept { return (float)erfcx((double)x); }
SIMT_MATH float erfinvf(float x) noexcept { return (float)erfinv((double)x); }
SIMT_MATH float erfcinvf(float c) noexcept { return (float)erfcinv((double)c); }
SIMT_MATH float normcdff(float x) noexcept { return (float)normcdf((double)x); }
SIMT_MATH float normcdfinvf(float p) noexcept { return (float)normcdfinv((double)p); }

#ifdef __cpp_lib_math_special_functions
SIMT_MATH double cyl_bessel_i0(double x) noexcept { return std::cyl_bessel_i(0.0, fabs(x)); }
SIMT_MATH double cyl_bessel_i1(double x) noexcept { return copysign(std::cyl_bessel_i(1.0, fabs(x)), x); }
SIMT_MATH float cyl_bessel_i0f(float x) noexcept { return (float)cyl_bessel_i0((double)x); }
SIMT_MATH float cyl_bessel_i1f(float x) noexcept { return (float)cyl_bessel_i1((double)x); }
#endif

/* ---- overloads for float ---- */

static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrt(float x) { return rcbrtf(x); }
static inline float exp10(float x) { return exp10f(x); }
static inline float fdivide(float x, float y) { return x / y; }
static inline float rhypot(float x, float y) { return rhypotf(x, y); }
static inline float norm3d(float x, float y, float z) { return norm3df(x, y, z); }
static inline float norm4d(float x, float y, float z, float w) { return norm4df(x, y, z, w); }
static inline float rnorm3d(float x, float y, float z) { return rnorm3df(x, y, z); }
static inline float rnorm4d(float x, float y, float z, float w) { return rnorm4df(x, y, z, w); }
static inline float norm(int n, const float *x) { return normf(n, x); }
static inline float rnorm(int n, const float *x) { return rnormf(n, x); }
static inline float sinpi(float x) { return sinpif(x); }
static inline float cospi(float x) { return cospif(x); }
static inline void sincos(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
static inline void sincospi(float x, float *sine, float *cosine) { sincospif(x, sine, cosine); }
static inline float erfcx(float x) { return erfcxf(x); }
static inline float erfinv(float x) { return erfinvf(x); }
static inline float erfcinv(float c) { return erfcinvf(c); }
static inline float normcdf(float x) { return normcdff(x); }
static inline float normcdfinv(float p) { return normcdfinvf(p); }
static inline float j0(float x) { return j0f(x); }
static inline float j1(float x) { return j1f(x); }
static inline float jn(int n, float x) { return jnf(n, x); }
static inline float y0(float x) { return y0f(x); }
static inline float y1(float x) { return y1f(x); }
static inline float yn(int n, float x) { return ynf(n, x); }

/* ---- "fast" intrinsics: the accurate functions ---- */

SIMT_MATH float __sinf(float x) noexcept { return sinf(x); }
SIMT_MATH float __cosf(float x) noexcept { return cosf(x); }
SIMT_MATH float __tanf(float x) noexcept { return tanf(x); }
SIMT_MATH float __tanhf(float x) noexcept { return tanhf(x); }
SIMT_MATH void __sincosf(float x, float *sine, float *cosine) noexcept { sincosf(x, sine, cosine); }
SIMT_MATH float __expf(float x) noexcept { return expf(x); }
SIMT_MATH float __exp10f(float x) noexcept { return exp10f(x); }
SIMT_MATH float __logf(float x) noexcept { return logf(x); }
SIMT_MATH float __log2f(float x) noexcept { return log2f(x); }
SIMT_MATH float __log10f(float x) noexcept { return log10f(x); }
SIMT_MATH float __powf(float x, float y) noexcept { return powf(x, y); }
SIMT_MATH float __fdividef(float x, float y) noexcept { return x / y; }
SIMT_MATH float __saturatef(float x) noexcept { return !(x > 0) ? 0 : x < 1 ? x : 1; } /* NaN: 0 */

/* ---- arithmetic with a direction of rounding ----
 * _rn to the nearest, _rz towards zero, _ru up, _rd down. The compiler must not make an FMA of these, hence the empty
 * asm. */

#if defined(__FMA__)
#define SIMT_OPAQUE(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define SIMT_OPAQUE(x) __asm__("" : "+w"(x))
#else
#define SIMT_OPAQUE(x) ((void)0) /* no FMA to be made */
#endif

#define SIMT_ROUND_NEAREST(prefix, T)                        \
  static inline T prefix##add_rn(T x, T y) {                 \
    SIMT_OPAQUE(x);                                          \
    SIMT_OPAQUE(y);                                          \
    return x + y;                                            \
  }                                                          \
  static inline T prefix##sub_rn(T x, T y) {                 \
    SIMT_OPAQUE(x);                                          \
    SIMT_OPAQUE(y);                                          \
    return x - y;                                            \
  }                                                          \
  static inline T prefix##mul_rn(T x, T y) {                 \
    T product = x * y;                                       \
    SIMT_OPAQUE(product);                                    \
    return product;                                          \
  }                                                          \
  static inline T prefix##div_rn(T x, T y) { return x / y; } \
  static inline T prefix##rcp_rn(T x) { return 1 / x; }      \
  static inline T prefix##sqrt_rn(T x) { return std::sqrt(x); }
SIMT_ROUND_NEAREST(__f, float)
SIMT_ROUND_NEAREST(__d, double)
#undef SIMT_ROUND_NEAREST
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline float __fmaf_ieee_rn(float x, float y, float z) { return fmaf(x, y, z); }
/* 1 / sqrt(x) in double is near enough for one rounding: no float is nearer than that to the middle of two others. */
static inline float __frsqrt_rn(float x) { return (float)(1 / sqrt((double)x)); }

/* The volatile copies keep the operation between the two changes of the mode. */
#define SIMT_IN_MODE(mode, T, expression) \
  {                                       \
    const int before = fegetround();      \
    fesetround(mode);                     \
    volatile T result = (expression);     \
    fesetround(before);                   \
    return result;                        \
  }
#define SIMT_DIRECTED1(name, mode, T, From, expression) \
  static inline T name(From a) {                        \
    volatile From x = a;                                \
    SIMT_IN_MODE(mode, T, expression)                   \
  }
#define SIMT_DIRECTED2(name, mode, T, expression) \
  static inline T name(T a, T b) {                \
    volatile T x = a, y = b;                      \
    SIMT_IN_MODE(mode, T, expression)             \
  }
#define SIMT_DIRECTED3(name, mode, T, expression) \
  static inline T name(T a, T b, T c) {           \
    volatile T x = a, y = b, z = c;               \
    SIMT_IN_MODE(mode, T, expression)             \
  }
#define SIMT_DIRECTED(direction, mode)                                               \
  SIMT_DIRECTED2(__fadd_##direction, mode, float, x + y)                             \
  SIMT_DIRECTED2(__fsub_##direction, mode, float, x - y)                             \
  SIMT_DIRECTED2(__fmul_##direction, mode, float, x *y)                              \
  SIMT_DIRECTED2(__fdiv_##direction, mode, float, x / y)                             \
  SIMT_DIRECTED1(__frcp_##direction, mode, float, float, 1 / x)                      \
  SIMT_DIRECTED1(__fsqrt_##direction, mode, float, float, sqrtf(x))                  \
  SIMT_DIRECTED3(__fmaf_##direction, mode, float, fmaf(x, y, z))                     \
  SIMT_DIRECTED3(__fmaf_ieee_##direction, mode, float, fmaf(x, y, z))                \
  SIMT_DIRECTED2(__dadd_##direction, mode, double, x + y)                            \
  SIMT_DIRECTED2(__dsub_##direction, mode, double, x - y)                            \
  SIMT_DIRECTED2(__dmul_##direction, mode, double, x *y)                             \
  SIMT_DIRECTED2(__ddiv_##direction, mode, double, x / y)                            \
  SIMT_DIRECTED1(__drcp_##direction, mode, double, double, 1 / x)                    \
  SIMT_DIRECTED1(__dsqrt_##direction, mode, double, double, sqrt(x))                 \
  SIMT_DIRECTED3(__fma_##direction, mode, double, fma(x, y, z))                      \
  SIMT_DIRECTED1(__double2float_##direction, mode, float, double, (float)x)          \
  SIMT_DIRECTED1(__int2float_##direction, mode, float, int, (float)x)                \
  SIMT_DIRECTED1(__uint2float_##direction, mode, float, unsigned, (float)x)          \
  SIMT_DIRECTED1(__ll2float_##direction, mode, float, long long, (float)x)           \
  SIMT_DIRECTED1(__ull2float_##direction, mode, float, unsigned long long, (float)x) \
  SIMT_DIRECTED1(__ll2double_##direction, mode, double, long long, (double)x)        \
  SIMT_DIRECTED1(__ull2double_##direction, mode, double, unsigned long long, (double)x)
SIMT_DIRECTED(rz, FE_TOWARDZERO)
SIMT_DIRECTED(ru, FE_UPWARD)
SIMT_DIRECTED(rd, FE_DOWNWARD)
#undef SIMT_DIRECTED
#undef SIMT_DIRECTED1
#undef SIMT_DIRECTED2
#undef SIMT_DIRECTED3
#undef SIMT_IN_MODE
#undef SIMT_OPAQUE

#undef SIMT_MATH

#endif /* __cplusplus */

#endif /* SIMT_MATH_H */

/* math_test.cu - CUDA's mathematical functions: overloads, accuracy, special values, rounding in a direction.
 *
 * Expected values come from long double, from a property (erf(erfinv(x)) = x), or from the exact sign of what rounding
 * left over. The tolerances are those of the CUDA C++ Programming Guide or a little more, so that both sides pass. */
#include "map.cuh"

#include <float.h>
#include <math.h>

#include <type_traits>

static_assert(LDBL_MANT_DIG >= 64, "the expected values need a long double of at least 64 bits");

/* ---- min, max: the types and values of nvcc's overloads ---- */

#define RETURNS(T, call) static_assert(std::is_same<decltype(call), T>::value, #call)
RETURNS(int, max(1, 2));
RETURNS(unsigned, max(1, 2u));
RETURNS(unsigned, min(1u, 2));
RETURNS(int, max((short)1, (unsigned char)2));
RETURNS(long, max(1l, 2l));
RETURNS(unsigned long, min(1l, 2ul));
RETURNS(long long, max(1ll, 2ll));
RETURNS(unsigned long long, max(1ll, 2ull));
RETURNS(size_t, min(sizeof(int), sizeof(long)));
RETURNS(float, max(1.0f, 2.0f));
RETURNS(double, min(1.0f, 2.0));
RETURNS(double, max(1.0, 2.0f));
RETURNS(float, rsqrt(1.0f));
RETURNS(double, rsqrt(1.0));
RETURNS(float, exp10(1.0f));
RETURNS(float, sinpi(1.0f));
RETURNS(float, normcdf(1.0f));
RETURNS(float, erfinv(1.0f));
RETURNS(float, sqrt(1.0f));
RETURNS(float, pow(1.0f, 2.0f));
RETURNS(float, abs(-1.0f));
RETURNS(float, fmax(1.0f, 2.0f));

struct MinMax {
  unsigned mixed_min, mixed_max;
  int smallest, largest;
  unsigned long long wide;
  double real;
  float f[8];
};
static __device__ MinMax min_max(Two<float> a) {
  return {min(-1, 1u),
          max(-1, 1u),
          min(-5, 3),
          max(-5, 3),
          max(-1ll, 1ull),
          max(0.25f, 0.1),
          {fmaxf(a.x, a.y), fmaxf(a.y, a.x), fminf(a.x, a.y), fminf(a.y, a.x), max(a.x, a.y), max(a.y, a.x),
           min(a.x, a.y), min(a.y, a.x)}};
}
MAP(min_max_map, Two<float>, MinMax, min_max(a))

static void test_min_and_max(void **state) {
  (void)state;
  const float values[] = {0.0f, -0.0f, 1.0f, -0.3f, 0.7f, 1e-45f, -1e-45f, FLT_MAX, INFINITY, -INFINITY, NAN};
  std::vector<Two<float>> x;
  for (float a : values)
    for (float b : values) x.push_back({a, b});
  const std::vector<MinMax> got = map(min_max_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const MinMax &g = got[i];
    assert_true(g.mixed_min == 1 && g.mixed_max == UINT32_MAX && g.smallest == -5 && g.largest == 3);
    assert_true(g.wide == UINT64_MAX && g.real == 0.25);
    const float a = x[i].x, b = x[i].y;
    /* In the order of their bits as sign and size, so that -0 < +0; the number where the other is NaN. */
    const bool below = signbit(a) != signbit(b) ? signbit(a) : a < b;
    const float low = a != a ? b : b != b ? a : below ? a : b, high = a != a ? b : b != b ? a : below ? b : a;
    for (int k = 0; k < 8; k++) {
      const float want = k == 0 || k == 1 || k == 4 || k == 5 ? high : low;
      if (want != want ? g.f[k] == g.f[k] : bits_of(g.f[k]) != bits_of(want))
        fail_msg("min or max, form %d, of %a and %a: %a, expected %a", k, a, b, g.f[k], want);
    }
  }
}

struct Classes {
  int nan, inf, finite, sign, nan_double, inf_double, finite_double, sign_double;
};
MAP(classes_map, float, Classes,
    (Classes{isnan(a) != 0, isinf(a) != 0, isfinite(a) != 0, signbit(a) != 0, isnan((double)a) != 0,
             isinf((double)a) != 0, isfinite((double)a) != 0, signbit((double)a) != 0}))

static void test_classification_needs_no_std(void **state) {
  (void)state;
  const std::vector<float> x = {0.0f, -0.0f, 1.0f, -1e-45f, FLT_MAX, INFINITY, -INFINITY, NAN};
  const std::vector<Classes> got = map(classes_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const uint32_t size = bits_of(x[i]) & 0x7fffffff;
    const Classes &g = got[i];
    assert_true(g.nan == (size > 0x7f800000) && g.inf == (size == 0x7f800000) && g.finite == (size < 0x7f800000));
    assert_true(g.nan == g.nan_double && g.inf == g.inf_double && g.finite == g.finite_double);
    assert_true(size > 0x7f800000 || (g.sign == (int)(bits_of(x[i]) >> 31) && g.sign_double == g.sign));
  }
}

/* ---- accuracy ---- */

/* Distance from `want` in units of the last place of a T there. */
template <class T>
static long double ulps(T got, long double want) {
  const int digits = sizeof(T) == 4 ? FLT_MANT_DIG : DBL_MANT_DIG, lowest = sizeof(T) == 4 ? -149 : -1074;
  if (want != want) return got != got ? 0 : HUGE_VALL;
  if ((long double)(T)want == (long double)got) return 0; /* infinities, too */
  if (!isfinite(got)) return HUGE_VALL;
  int exponent;
  frexpl(want, &exponent);
  return fabsl(got - want) / ldexpl(1, exponent - digits < lowest ? lowest : exponent - digits);
}

static const long double pi = 3.14159265358979323846264338327950288L, root_pi = 1.77245385090551602729816748334114518L,
                         root_half = 0.70710678118654752440084436210484904L;

static long double sinpi_exactly(long double x, int shift) {
  const long double halves = rintl(2 * x), rest = (x - halves / 2) * pi;
  const int quarter = ((int)fmodl(halves, 4) + 4 + shift) % 4;
  const long double value = quarter & 1 ? cosl(rest) : sinl(rest);
  return quarter & 2 ? -value : value;
}
static long double sinpi_reference(long double x) { return sinpi_exactly(x, 0); }
static long double cospi_reference(long double x) { return sinpi_exactly(x, 1); }
static long double rsqrt_reference(long double x) { return 1 / sqrtl(x); }
static long double rcbrt_reference(long double x) { return 1 / cbrtl(x); }
static long double exp10_reference(long double x) { return powl(10, x); }
static long double normcdf_reference(long double x) { return erfcl(-x * root_half) / 2; }
static long double erfcx_reference(long double x) {
  if (x < 10) return expl(x * x) * erfcl(x);
  long double fraction = 0; /* Laplace's continued fraction */
  for (int k = 60; k > 0; k--) fraction = k / 2.0L / (x + fraction);
  return 1 / (x + fraction) / root_pi;
}
static long double bessel_i(long double x, int order) {
  long double term = order ? x / 2 : 1, sum = term;
  for (int k = 1; k < 200; k++) sum += term *= x * x / 4 / k / (k + order);
  return sum;
}
static long double i0_reference(long double x) { return bessel_i(x, 0); }
static long double i1_reference(long double x) { return bessel_i(x, 1); }
/* Newton from a double's worth of digits: one step more is exact enough. */
static long double erfcinv_reference(long double c) {
  long double y = 0;
  if (c == 1) return 0;
  const bool mirrored = c > 1;
  if (mirrored) c = 2 - c;
  for (long double low = 0, high = 30; high - low > 1e-3L;) {
    y = (low + high) / 2;
    *(erfcl(y) > c ? &low : &high) = y;
  }
  for (int i = 0; i < 6; i++) y += (logl(erfcl(y)) - logl(c)) * erfcl(y) * expl(y * y) * root_pi / 2;
  return mirrored ? -y : y;
}
static long double erfinv_reference(long double x) {
  if (fabsl(x) > 0.1L) return erfcinv_reference(1 - x);
  long double y = x * root_pi / 2;
  for (int i = 0; i < 12; i++) y -= (erfl(y) - x) * root_pi / 2 * expl(y * y);
  return y;
}
static long double normcdfinv_reference(long double p) { return -erfcinv_reference(2 * p) / root_half; }

template <class T>
static void expect_accuracy(const char *name, void (*kernel)(const T *, T *, int),
                            long double (*reference)(long double), const std::vector<T> &x, long double tolerance) {
  const std::vector<T> got = map(kernel, x);
  long double worst = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const long double want = reference(x[i]), error = ulps(got[i], want);
    if (!(error <= tolerance))
      fail_msg("%s(%a) = %a, expected %La: %.1Lf ulp off, tolerance %.1Lf", name, (double)x[i], (double)got[i], want,
               error, tolerance);
    if (error > worst) worst = error;
  }
  print_message("%-14s %2zu bytes: %.2Lf ulp\n", name, sizeof(T), worst);
}

#define EACH_FUNCTION(_) \
  _(rsqrt) _(rcbrt) _(sinpi) _(cospi) _(exp10) _(erfinv) _(erfcinv) _(erfcx) _(normcdf) _(normcdfinv)
#define MAPS(function)                                \
  MAP(function##_float, float, float, function##f(a)) \
  MAP(function##_double, double, double, function(a))
EACH_FUNCTION(MAPS)
MAP(i0_float, float, float, cyl_bessel_i0f(a))
MAP(i0_double, double, double, cyl_bessel_i0(a))
MAP(i1_float, float, float, cyl_bessel_i1f(a))
MAP(i1_double, double, double, cyl_bessel_i1(a))

template <class T>
static std::vector<T> between(double low, double high) {
  std::vector<T> x;
  for (int i = 0; i < 500; i++) x.push_back((T)random_uniform(low, high));
  return x;
}
/* Ten to the power of something between the two. */
template <class T>
static std::vector<T> powers(double low, double high, T sign) {
  std::vector<T> x;
  for (int i = 0; i < 500; i++) x.push_back(sign * (T)pow(10, random_uniform(low, high)));
  return x;
}

#define ACCURATE(name, inputs_float, inputs_double, tolerance_float, tolerance_double)          \
  expect_accuracy<float>(#name, name##_float, name##_reference, inputs_float, tolerance_float); \
  expect_accuracy<double>(#name, name##_double, name##_reference, inputs_double, tolerance_double)

static void test_accuracy(void **state) {
  (void)state;
  ACCURATE(rsqrt, powers<float>(-37, 38, 1), powers<double>(-300, 300, 1), 2.5, 2);
  ACCURATE(rcbrt, powers<float>(-37, 38, -1), powers<double>(-300, 300, 1), 2, 2);
  ACCURATE(sinpi, between<float>(-5, 5), between<double>(-5, 5), 2, 3);
  ACCURATE(sinpi, between<float>(-1e6, 1e6), between<double>(-1e14, 1e14), 2, 3);
  ACCURATE(sinpi, powers<float>(-30, 0, 1), powers<double>(-300, 0, -1), 2, 3);
  ACCURATE(cospi, between<float>(-5, 5), between<double>(-5, 5), 2, 3);
  ACCURATE(exp10, between<float>(-37, 38), between<double>(-300, 300), 3, 3);
  ACCURATE(erfinv, between<float>(-0.9999, 0.9999), between<double>(-0.9999, 0.9999), 5, 6);
  ACCURATE(erfinv, powers<float>(-30, -1, -1), powers<double>(-300, -1, 1), 5, 6);
  ACCURATE(erfcinv, between<float>(0.01, 1.99), between<double>(0.01, 1.99), 5, 7);
  ACCURATE(erfcinv, powers<float>(-37, 0, 1), powers<double>(-307, 0, 1), 5, 7);
  ACCURATE(normcdf, between<float>(-10, 5), between<double>(-30, 8), 6, 6);
  ACCURATE(normcdfinv, between<float>(0.01, 0.99), between<double>(0.01, 0.99), 6, 8);
  ACCURATE(normcdfinv, powers<float>(-37, -1, 1), powers<double>(-307, -1, 1), 6, 8);
  ACCURATE(erfcx, between<float>(-5, 20), between<double>(-5, 20), 5, 5);
  ACCURATE(erfcx, powers<float>(0.5, 30, 1), powers<double>(0.5, 300, 1), 5, 5);
  ACCURATE(i0, between<float>(-20, 20), between<double>(-20, 20), 7, 24);
  ACCURATE(i1, between<float>(-20, 20), between<double>(-20, 20), 7, 24);
}

struct Lengths {
  double norm3d_, rnorm3d_, norm4d_, rnorm4d_, rhypot_, norm_, rnorm_;
  float norm3d_f, rnorm3d_f, norm4d_f, rnorm4d_f, rhypot_f, norm_f, rnorm_f;
};
struct Four {
  double v[4];
};
static __device__ Lengths lengths(Four a) {
  const double x = a.v[0], y = a.v[1], z = a.v[2], w = a.v[3];
  const float f[4] = {(float)x, (float)y, (float)z, (float)w};
  return {norm3d(x, y, z),
          rnorm3d(x, y, z),
          norm4d(x, y, z, w),
          rnorm4d(x, y, z, w),
          rhypot(x, y),
          norm(4, a.v),
          rnorm(4, a.v),
          norm3df(f[0], f[1], f[2]),
          rnorm3df(f[0], f[1], f[2]),
          norm4df(f[0], f[1], f[2], f[3]),
          rnorm4df(f[0], f[1], f[2], f[3]),
          rhypotf(f[0], f[1]),
          normf(4, f),
          rnormf(4, f)};
}
MAP(lengths_map, Four, Lengths, lengths(a))

static void test_lengths(void **state) {
  (void)state;
  std::vector<Four> x;
  for (int i = 0; i < 500; i++) {
    const double scale = pow(10, random_uniform(-18, 18));
    x.push_back({{random_uniform(-1, 1) * scale, random_uniform(-1, 1) * scale, random_uniform(-1, 1), scale}});
  }
  x.push_back({{3e38, 0, 0, 0}}); /* the square is beyond a float */
  x.push_back({{1e-38, 1e-38, 0, 0}});
  const std::vector<Lengths> got = map(lengths_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const Lengths &g = got[i];
    long double d[5] = {0}, f[5] = {0}; /* d[k]: the length of the first k */
    for (int k = 0; k < 4; k++) {
      d[k + 1] = sqrtl(d[k] * d[k] + (long double)x[i].v[k] * x[i].v[k]);
      f[k + 1] = sqrtl(f[k] * f[k] + (long double)(float)x[i].v[k] * (float)x[i].v[k]);
    }
    assert_true(ulps(g.norm3d_, d[3]) < 4 && ulps(g.rnorm3d_, 1 / d[3]) < 4 && ulps(g.norm4d_, d[4]) < 4);
    assert_true(ulps(g.rnorm4d_, 1 / d[4]) < 4 && ulps(g.rhypot_, 1 / d[2]) < 4);
    assert_true(ulps(g.norm_, d[4]) < 6 && ulps(g.rnorm_, 1 / d[4]) < 6);
    assert_true(ulps(g.norm3d_f, f[3]) < 4 && ulps(g.rnorm3d_f, 1 / f[3]) < 4 && ulps(g.norm4d_f, f[4]) < 4);
    assert_true(ulps(g.rnorm4d_f, 1 / f[4]) < 4 && ulps(g.rhypot_f, 1 / f[2]) < 4);
    assert_true(ulps(g.norm_f, f[4]) < 6 && ulps(g.rnorm_f, 1 / f[4]) < 6);
  }
}

/* ---- special values ---- */

enum { SPECIAL = 34 };
struct Special {
  double got[SPECIAL];
};
static __device__ Special special(double zero) {
  const double inf = 1 / zero, nan = zero / zero;
  return {{erfinv(1 + zero),
           erfinv(zero - 1),
           erfinv(2 + zero),
           erfinv(nan),
           erfcinv(zero),
           erfcinv(2 + zero),
           erfcinv(1 + zero),
           erfcinv(zero - 1),
           normcdfinv(zero),
           normcdfinv(1 + zero),
           normcdfinv(0.5 + zero),
           normcdf(inf),
           normcdf(-inf),
           normcdf(nan),
           erfcx(inf),
           erfcx(-inf),
           erfcx(zero),
           sinpi(inf),
           sinpi(3 + zero),
           sinpi(2.5 + zero),
           cospi(0.5 + zero),
           cospi(1e300 + zero),
           cospi(3 + zero),
           rsqrt(zero),
           rsqrt(zero - 1),
           rsqrt(inf),
           rcbrt(zero),
           rcbrt(inf),
           norm3d(inf, nan, 1),
           rhypot(zero, zero),
           fmax(nan, 3.0),
           fmin(3.0, nan),
           (double)__saturatef((float)nan),
           (double)__saturatef(-3.0f)}};
}
MAP(special_map, double, Special, special(a))

static void test_special_values(void **state) {
  (void)state;
  const double inf = INFINITY,
               want[SPECIAL] = {inf, -inf, NAN, NAN, inf, -inf, 0,   NAN, -inf, inf, 0, 1,   0,   NAN, 0, inf, 1,
                                NAN, 0,    1,   0,   1,   -1,   inf, NAN, 0,    inf, 0, inf, inf, 3,   3, 0,   0};
  const Special s = map(special_map, std::vector<double>{0.0})[0];
  for (int i = 0; i < SPECIAL; i++)
    if (want[i] != want[i] ? s.got[i] == s.got[i] : s.got[i] != want[i])
      fail_msg("special value %d: %g, expected %g", i, s.got[i], want[i]);
}

/* ---- fast intrinsics: right to about 1e-5 where they are defined to be good ---- */

enum { FAST = 15 };
struct Fast {
  float got[FAST];
};
static __device__ Fast fast(float x) {
  Fast f = {{__sinf(x), __cosf(x), __tanf(x), __expf(x), __exp10f(x), __logf(x + 4), __log2f(x + 4), __log10f(x + 4),
             __powf(x + 4, 1.5f), __fdividef(x, 3), __saturatef(x), 0, 0, fdividef(x, 7), __frsqrt_rn(x + 4)}};
  __sincosf(x, &f.got[11], &f.got[12]);
  return f;
}
MAP(fast_map, float, Fast, fast(a))

static void test_fast_intrinsics(void **state) {
  (void)state;
  const std::vector<float> x = between<float>(-1.4, 1.4);
  const std::vector<Fast> got = map(fast_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const double a = x[i], b = (float)(x[i] + 4);
    const double want[FAST] = {sin(a),
                               cos(a),
                               tan(a),
                               exp(a),
                               pow(10, a),
                               log(b),
                               log2(b),
                               log10(b),
                               pow(b, 1.5),
                               a / 3,
                               a < 0   ? 0
                               : a > 1 ? 1
                                       : a,
                               sin(a),
                               cos(a),
                               a / 7,
                               1 / sqrt(b)};
    for (int k = 0; k < FAST; k++)
      if (!(fabs(got[i].got[k] - want[k]) <= 1e-5 * (1 + fabs(want[k]))))
        fail_msg("fast intrinsic %d of %a: %a, expected %a", k, a, (double)got[i].got[k], want[k]);
    assert_true(got[i].got[14] == (float)(1 / sqrtl(b)));
  }
}

/* ---- rounding in a direction ---- */

enum { ADD, SUB, MUL, DIV, RCP, SQRT, FMA, OPERATIONS };
static const char *const operations[] = {"add", "sub", "mul", "div", "rcp", "sqrt", "fma"};
template <class T>
struct Rounded {
  T got[OPERATIONS][4];
};
typedef Three<float> ThreeFloats;
typedef Three<double> ThreeDoubles;
MAP(rounded_float, ThreeFloats, Rounded<float>,
    (Rounded<float>{{EACH_WAY(__fadd, a.x, a.y), EACH_WAY(__fsub, a.x, a.y), EACH_WAY(__fmul, a.x, a.y),
                     EACH_WAY(__fdiv, a.x, a.y), EACH_WAY(__frcp, a.x), EACH_WAY(__fsqrt, fabsf(a.x)),
                     EACH_WAY(__fmaf, a.x, a.y, a.z)}}))
MAP(rounded_double, ThreeDoubles, Rounded<double>,
    (Rounded<double>{{EACH_WAY(__dadd, a.x, a.y), EACH_WAY(__dsub, a.x, a.y), EACH_WAY(__dmul, a.x, a.y),
                      EACH_WAY(__ddiv, a.x, a.y), EACH_WAY(__drcp, a.x), EACH_WAY(__dsqrt, fabs(a.x)),
                      EACH_WAY(__fma, a.x, a.y, a.z)}}))

template <class T>
static int sign(T x) {
  return (x > 0) - (x < 0);
}

/* What is nearest, and on which side of it the exact result lies: exactly, as long double holds what is left of floats
 * within a few powers of two, and the fused multiply-add what is left of doubles. */
static float nearest(int operation, ThreeFloats v, int *side) {
  const long double x = v.x, y = v.y, z = v.z;
  long double exact = 0;
  switch (operation) {
    case ADD:
      exact = x + y;
      break;
    case SUB:
      exact = x - y;
      break;
    case MUL:
      exact = x * y;
      break;
    case FMA:
      exact = x * y + z;
      break;
    case DIV: {
      const float q = v.x / v.y;
      *side = sign(x - q * y) * sign(y);
      return q;
    }
    case RCP: {
      const float q = 1 / v.x;
      *side = sign(1 - q * x) * sign(x);
      return q;
    }
    case SQRT: {
      const float q = sqrtf(fabsf(v.x));
      *side = sign(fabsl(x) - (long double)q * q);
      return q;
    }
  }
  *side = sign(exact - (float)exact);
  return (float)exact;
}
static double nearest(int operation, ThreeDoubles v, int *side) {
  const double x = v.x, y = operation == SUB ? -v.y : v.y;
  volatile double r = 0; /* no excess precision, no contraction */
  switch (operation) {
    case ADD:
    case SUB: {
      r = x + y;
      volatile double back = r - x, rest = r - back;
      *side = sign((x - rest) + (y - back));
      break;
    }
    case MUL:
      r = x * y;
      *side = sign(fma(x, y, -r));
      break;
    case DIV:
      r = x / y;
      *side = sign(fma(-r, y, x)) * sign(y);
      break;
    case RCP:
      r = 1 / x;
      *side = sign(fma(-r, x, 1)) * sign(x);
      break;
    case SQRT:
      r = sqrt(fabs(x));
      *side = sign(fma(-r, r, fabs(x)));
      break;
    case FMA: { /* the inputs are integers there, below 2^53 */
      r = fma(x, y, v.z);
      const __int128 exact = (__int128)x * (__int128)y + (__int128)v.z;
      *side = sign(exact - (__int128)r);
      break;
    }
  }
  return r;
}

template <class T>
static void expect_rounded(const std::vector<Three<T>> &x, const std::vector<Rounded<T>> &got, int first, int last) {
  for (size_t i = 0; i < x.size(); i++)
    for (int operation = first; operation <= last; operation++) {
      int side = 0;
      const T n = nearest(operation, x[i], &side), infinity = (T)INFINITY;
      const T above = side > 0 ? std::nextafter(n, infinity) : n, below = side < 0 ? std::nextafter(n, -infinity) : n;
      const T want[4] = {n, n > 0 ? below : above, above, below};
      for (int d = 0; d < 4; d++)
        if (got[i].got[operation][d] != want[d])
          fail_msg("%s %s_%s of %a, %a, %a: %a, expected %a", sizeof(T) == 4 ? "float" : "double",
                   operations[operation], directions[d], (double)x[i].x, (double)x[i].y, (double)x[i].z,
                   (double)got[i].got[operation][d], (double)want[d]);
    }
}

static void test_rounding_in_a_direction(void **state) {
  (void)state;
  std::vector<ThreeFloats> f;
  std::vector<ThreeDoubles> d, whole;
  for (int i = 0; i < 3000; i++) {
    const double x = random_uniform(-8, 8), y = random_uniform(-8, 8), z = random_uniform(-8, 8);
    f.push_back({(float)x, (float)y, (float)z});
    d.push_back({x * ldexp(1, (int)(random_bits() % 60)), y, z});
    whole.push_back({rint(ldexp(x, 49)), rint(ldexp(y, (int)(random_bits() % 50))), rint(ldexp(z, 49))});
  }
  f.push_back({1, 1, 1}); /* exact: all four are the same */
  f.push_back({4, 2, -8});
  d.push_back({4, 2, -8});
  expect_rounded(f, map(rounded_float, f), ADD, FMA);
  expect_rounded(d, map(rounded_double, d), ADD, SQRT);
  expect_rounded(whole, map(rounded_double, whole), FMA, FMA);
}

enum { EDGES = 16 };
struct Edges {
  double got[EDGES];
};
static __device__ Edges edges(float big) {
  const float tiny = 1e-30f * (big / 1e30f);
  const double huge = 1e300 * (big / 1e30f), small = 1e-300;
  return {{__fmul_rz(big, big), __fmul_ru(big, big), __fmul_rd(-big, big), __fmul_ru(-big, big), __fmul_ru(tiny, tiny),
           __fmul_rd(tiny, tiny), __fmul_rd(-tiny, tiny), __fadd_rz(3.4e38f, big * 1e8f), __dmul_rz(huge, huge),
           __dmul_ru(huge, huge), __dmul_ru(small, small), __dmul_rd(-small, small), 1 / (double)__fadd_rd(big, -big),
           1 / (double)__fadd_ru(big, -big), 1 / __dadd_rd(huge, -huge), 1 / __dsub_rz(huge, huge)}};
}
MAP(edges_map, float, Edges, edges(a))

static void test_rounding_at_the_ends_of_the_range(void **state) {
  (void)state;
  const double inf = INFINITY, least = ldexp(1, -149),
               want[EDGES] = {FLT_MAX, inf, -inf,   -FLT_MAX, least, 0,   -least, FLT_MAX,
                              DBL_MAX, inf, 5e-324, -5e-324,  -inf,  inf, -inf,   inf};
  const Edges e = map(edges_map, std::vector<float>{1e30f})[0];
  for (int i = 0; i < EDGES; i++)
    if (e.got[i] != want[i]) fail_msg("edge %d: %a, expected %a", i, e.got[i], want[i]);
}

/* ---- the rest of the C library, on the device ---- */

struct Library {
  double got[30];
};
static __device__ Library library(float x) {
  float s, c;
  double sd, cd;
  int exponent, quotient;
  double whole;
  sincosf(x, &s, &c);
  sincospi((double)x, &sd, &cd);
  const double mantissa = frexp((double)x, &exponent), fraction = modf((double)x, &whole);
  const double rest = remquo((double)x, 0.25, &quotient);
  return {{s,
           c,
           sd,
           cd,
           mantissa,
           (double)exponent,
           fraction,
           whole,
           rest,
           (double)(quotient & 7),
           hypotf(x, 2.0f),
           fmodf(x, 0.7f),
           remainderf(x, 0.7f),
           (double)lrintf(x),
           (double)llrint((double)x),
           (double)lround((double)x),
           nearbyintf(x),
           rintf(x),
           roundf(x),
           truncf(x),
           ceilf(x),
           floorf(x),
           copysignf(3, -x),
           fdimf(x, 1),
           ldexpf(x, 3),
           scalbnf(x, -2),
           logbf(x),
           (double)ilogbf(x),
           cbrtf(x),
           expm1f(x) - log1pf(x)}};
}
MAP(library_map, float, Library, library(a))

static void test_the_c_library_on_the_device(void **state) {
  (void)state;
  const std::vector<float> x = between<float>(0.05, 9.9);
  const std::vector<Library> got = map(library_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const float a = x[i];
    int exponent, quotient;
    double whole;
    const double mantissa = frexp((double)a, &exponent), fraction = modf((double)a, &whole);
    const double rest = remquo((double)a, 0.25, &quotient);
    const double want[30] = {sin((double)a),
                             cos((double)a),
                             (double)sinpi_reference(a),
                             (double)cospi_reference(a),
                             mantissa,
                             (double)exponent,
                             fraction,
                             whole,
                             rest,
                             (double)(quotient & 7),
                             sqrt((double)a * a + 4),
                             fmod((double)a, (double)0.7f),
                             remainder((double)a, (double)0.7f),
                             rint((double)a),
                             rint((double)a),
                             floor((double)a + 0.5),
                             rint((double)a),
                             rint((double)a),
                             floor((double)a + 0.5),
                             floor((double)a),
                             ceil((double)a),
                             floor((double)a),
                             -3,
                             a > 1 ? (double)a - 1 : 0,
                             8.0 * a,
                             a / 4.0,
                             floor(log2((double)a)),
                             floor(log2((double)a)),
                             cbrt((double)a),
                             expm1((double)a) - log1p((double)a)};
    for (int k = 0; k < 30; k++)
      if (!(fabs(got[i].got[k] - want[k]) <= 1e-6 * (1 + fabs(want[k]))))
        fail_msg("function %d of %a: %a, expected %a", k, (double)a, got[i].got[k], want[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_min_and_max),
      cmocka_unit_test(test_classification_needs_no_std),
      cmocka_unit_test(test_accuracy),
      cmocka_unit_test(test_lengths),
      cmocka_unit_test(test_special_values),
      cmocka_unit_test(test_fast_intrinsics),
      cmocka_unit_test(test_rounding_in_a_direction),
      cmocka_unit_test(test_rounding_at_the_ends_of_the_range),
      cmocka_unit_test(test_the_c_library_on_the_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

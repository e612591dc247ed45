/* half_test.cu - __half and __nv_bfloat16: conversions, arithmetic rounded once, comparisons, operators, pairs.
 *
 * What is expected is computed with integers: every result is an exact number m * 2^e, rounded by hand. */
#include "map.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <float.h>

#include <type_traits>

/* ---- a 16-bit float, by hand ---- */

struct Exact { /* m * 2^e */
  __int128 m;
  int e;
};

/* Mantissa bits and exponent bias: all that tells the two formats apart. */
template <class H>
struct Format;
template <>
struct Format<__half> {
  enum { MANTISSA = 10, BIAS = 15, INF = 0x7c00 };
};
template <>
struct Format<__nv_bfloat16> {
  enum { MANTISSA = 7, BIAS = 127, INF = 0x7f80 };
};

template <class H>
static bool is_nan(uint16_t bits) {
  return (bits & 0x7fff) > Format<H>::INF;
}
template <class H>
static bool is_inf(uint16_t bits) {
  return (bits & 0x7fff) == Format<H>::INF;
}

template <class H>
static Exact exact(uint16_t bits) {
  typedef Format<H> F;
  const int exponent = (bits & 0x7fff) >> F::MANTISSA, rest = bits & ((1 << F::MANTISSA) - 1);
  const int m = exponent ? rest | 1 << F::MANTISSA : rest;
  return {bits & 0x8000 ? -m : m, (exponent ? exponent : 1) - F::BIAS - F::MANTISSA};
}

/* The value of those bits. */
template <class H>
static double value(uint16_t bits) {
  if (is_nan<H>(bits)) return NAN;
  if (is_inf<H>(bits)) return bits & 0x8000 ? -INFINITY : INFINITY;
  const Exact x = exact<H>(bits);
  return copysign(ldexp((double)x.m, x.e), bits & 0x8000 ? -1 : 1);
}

static Exact exact(double x) {
  int e;
  const double m = frexp(x, &e);
  return {(__int128)ldexp(m, 53), e - 53};
}

/* x rounded: 0 to nearest even, 1 towards zero, 2 up, 3 down. A zero takes the sign of `negative_zero`. */
template <class H>
static uint16_t rounded(Exact x, int direction, bool negative_zero) {
  typedef Format<H> F;
  if (x.m == 0) return negative_zero ? 0x8000 : 0;
  const bool negative = x.m < 0;
  unsigned __int128 m = negative ? -(unsigned __int128)x.m : (unsigned __int128)x.m;
  int length = 0;
  for (unsigned __int128 rest = m; rest; rest >>= 1) length++;
  const int lowest = 1 - F::BIAS - F::MANTISSA; /* the exponent of a subnormal number's last bit */
  int e = length + x.e - 1 - F::MANTISSA;
  if (e < lowest) e = lowest;
  int lost = e - x.e; /* bits to drop, or to add */
  unsigned __int128 kept = lost <= 0 ? m << -lost : lost > 127 ? 0 : m >> lost;
  const bool away = direction == (negative ? 3 : 2);
  if (lost > 0) {
    const unsigned __int128 rest = lost > 127 ? m : m - (kept << lost),
                            half = lost > 127 ? 0 : (unsigned __int128)1 << (lost - 1);
    const bool more = lost > 127 ? false : rest > half || (rest == half && (kept & 1));
    if (direction == 0 ? more : away && rest) kept++;
  }
  if (kept >> (F::MANTISSA + 1)) kept >>= 1, e++;
  uint16_t bits = (uint16_t)kept;
  if (kept >> F::MANTISSA)
    bits = (uint16_t)((kept & ((1 << F::MANTISSA) - 1)) | (unsigned)(e - lowest + 1) << F::MANTISSA);
  if (e - lowest + 1 >= F::INF >> F::MANTISSA) /* too large */
    bits = direction == 0 || away ? F::INF : F::INF - 1;
  return bits | (negative ? 0x8000 : 0);
}

template <class H>
static uint16_t rounded(double x, int direction) {
  if (x != x) return 0x7fff;
  if (isinf(x)) return (uint16_t)(Format<H>::INF | (x < 0 ? 0x8000 : 0));
  return rounded<H>(exact(x), direction, signbit(x));
}

template <class H>
static uint16_t bits_of(H h) {
  uint16_t bits;
  memcpy(&bits, (const void *)&h, sizeof bits);
  return bits;
}

/* Equal bits, or two NaNs. */
template <class H>
static bool same(uint16_t got, uint16_t want) {
  return got == want || (is_nan<H>(got) && is_nan<H>(want));
}

/* Every sort of number: zeros, subnormal, normal, the largest, infinite, NaN; many of them. */
template <class H>
static std::vector<uint16_t> interesting(size_t count) {
  const uint16_t inf = Format<H>::INF, one = Format<H>::BIAS << Format<H>::MANTISSA;
  std::vector<uint16_t> v;
  for (uint16_t edge : {0, 1, 2, 3, inf - 2, inf - 1, (int)inf, inf + 1, 0x7fff, one - 1, (int)one, one + 1,
                        1 << Format<H>::MANTISSA, (1 << Format<H>::MANTISSA) - 1})
    v.push_back(edge), v.push_back(edge | 0x8000);
  while (v.size() < count / 2) v.push_back((uint16_t)random_bits());
  while (v.size() < count) v.push_back((uint16_t)(one + (int)(random_bits() % 8192) - 4096) | (random_bits() & 0x8000));
  return v;
}

/* ---- conversions ---- */

template <class H>
struct To {
  float f, f_low, f_high;
  int i[4];
  unsigned u[4];
  short s[4];
  unsigned short us[4];
  long long l[4];
  unsigned long long ul[4];
  signed char c;
  unsigned char uc;
  short as_short;
  unsigned short as_ushort;
  float cast_float;
  int cast_int;
  bool cast_bool;
};
#define WAYS(from, to) \
  { from##2##to##_rn(h), from##2##to##_rz(h), from##2##to##_ru(h), from##2##to##_rd(h) }
#define TO(H, from, as)                                \
  template <>                                          \
  struct Convert<H> {                                  \
    __device__ To<H> operator()(uint16_t bits) const { \
      const H h = as(bits);                            \
      return {from##2float(h),                         \
              __low2float(from##s(h, as(0))),          \
              __high2float(from##s(as(0), h)),         \
              WAYS(from, int),                         \
              WAYS(from, uint),                        \
              WAYS(from, short),                       \
              WAYS(from, ushort),                      \
              WAYS(from, ll),                          \
              WAYS(from, ull),                         \
              from##2char_rz(h),                       \
              from##2uchar_rz(h),                      \
              from##_as_short(h),                      \
              from##_as_ushort(h),                     \
              (float)h,                                \
              (int)h,                                  \
              (bool)h};                                \
    }                                                  \
  };
static __device__ __half2 __halfs(__half a, __half b) { return __halves2half2(a, b); }
static __device__ __nv_bfloat162 __bfloat16s(__nv_bfloat16 a, __nv_bfloat16 b) { return __halves2bfloat162(a, b); }
template <class H>
struct Convert;
TO(__half, __half, __ushort_as_half)
TO(__nv_bfloat16, __bfloat16, __ushort_as_bfloat16)

template <class H>
static void expect_every_number_converts(void) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
  const std::vector<To<H>> got = map(function_map<Convert<H>, uint16_t, To<H>>, all);
  for (int i = 0; i < 65536; i++) {
    const To<H> &g = got[i];
    const double x = value<H>((uint16_t)i);
    if (x != x ? g.f == g.f : bits_of(g.f) != bits_of((float)x)) fail_msg("%#x to float: %a, expected %a", i, g.f, x);
    assert_true(x != x || (g.f_low == g.f && g.f_high == g.f && g.cast_float == g.f));
    assert_true(g.cast_int == clamped<int>(truncl(x), false) && g.cast_bool == (x != 0));
    assert_true(g.as_ushort == i && (uint16_t)g.as_short == i);
    assert_true(g.c == clamped<signed char>(truncl(x), false) && g.uc == clamped<unsigned char>(truncl(x), false));
    for (int d = 0; d < 4; d++) {
      const long double r = rounded((long double)x, d);
      if (g.i[d] != clamped<int>(r, false) || g.u[d] != clamped<unsigned>(r, false) ||
          g.s[d] != clamped<short>(r, false) || g.us[d] != clamped<unsigned short>(r, false) ||
          g.l[d] != clamped<long long>(r, false) || g.ul[d] != clamped<unsigned long long>(r, false))
        fail_msg("%#x = %g to integers, %s: %d %u %d %u %lld %llu", i, x, directions[d], g.i[d], g.u[d], g.s[d],
                 g.us[d], g.l[d], g.ul[d]);
    }
  }
}

struct From {
  uint16_t f[4], plain, from_double, cast_float, cast_double;
};
#define FROM(H, to)                                                                                \
  template <>                                                                                      \
  struct Narrow<H> {                                                                               \
    __device__ From operator()(double x) const {                                                   \
      const float f = (float)x;                                                                    \
      return {{bits(__float2##to##_rn(f)), bits(__float2##to##_rz(f)), bits(__float2##to##_ru(f)), \
               bits(__float2##to##_rd(f))},                                                        \
              bits(__float2##to(f)),                                                               \
              bits(__double2##to(x)),                                                              \
              bits(H(f)),                                                                          \
              bits(H(x))};                                                                         \
    }                                                                                              \
    static __device__ uint16_t bits(H h) { return __##to##_as_ushort(h); }                         \
  };
template <class H>
struct Narrow;
FROM(__half, half)
FROM(__nv_bfloat16, bfloat16)

template <class H>
static void expect_floats_round(void) {
  std::vector<double> x = {NAN, INFINITY, -INFINITY, 0.0, -0.0, FLT_MAX, -FLT_MAX, 1e-45, -1e-45, 1e300, -1e300};
  for (int i = 0; i < Format<H>::INF; i++) { /* each number, the middle to the next, and what lies beside that */
    const double low = value<H>((uint16_t)i),
                 high = i + 1 < Format<H>::INF ? value<H>((uint16_t)(i + 1)) : 2 * low - value<H>((uint16_t)(i - 1));
    const double middle = (low + high) / 2, sign = i & 1 ? -1 : 1;
    x.push_back(sign * low);
    x.push_back(sign * middle);
    x.push_back(sign * (double)nextafterf((float)middle, INFINITY));
    x.push_back(sign * (double)nextafterf((float)middle, 0));
    x.push_back(sign * nextafter(middle, INFINITY)); /* from double: by way of float this would be a tie */
    x.push_back(sign * nextafter(middle, 0));
  }
  const std::vector<From> got = map(function_map<Narrow<H>, double, From>, x);
  for (size_t i = 0; i < x.size(); i++) {
    const From &g = got[i];
    for (int d = 0; d < 4; d++)
      if (!same<H>(g.f[d], rounded<H>((float)x[i], d)))
        fail_msg("%a to 16 bits, %s: %#x, expected %#x", (double)(float)x[i], directions[d], g.f[d],
                 rounded<H>((float)x[i], d));
    assert_true(same<H>(g.plain, g.f[0]) && same<H>(g.cast_float, g.f[0]) && same<H>(g.cast_double, g.from_double));
    if (!same<H>(g.from_double, rounded<H>(x[i], 0)))
      fail_msg("double %a to 16 bits: %#x, expected %#x", x[i], g.from_double, rounded<H>(x[i], 0));
  }
}

struct FromIntegers {
  uint16_t i[4], u[4], s[4], us[4], l[4], ul[4], cast[6];
};
#define BITS4(f, x) \
  { bits(f##_rn(x)), bits(f##_rz(x)), bits(f##_ru(x)), bits(f##_rd(x)) }
#define FROM_INTEGERS(H, to)                                                                         \
  template <>                                                                                        \
  struct NarrowInteger<H> {                                                                          \
    __device__ FromIntegers operator()(uint64_t x) const {                                           \
      return {BITS4(__int2##to, (int)x),                                                             \
              BITS4(__uint2##to, (unsigned)x),                                                       \
              BITS4(__short2##to, (short)x),                                                         \
              BITS4(__ushort2##to, (unsigned short)x),                                               \
              BITS4(__ll2##to, (long long)x),                                                        \
              BITS4(__ull2##to, x),                                                                  \
              {bits(H((int)x)), bits(H((unsigned)x)), bits(H((short)x)), bits(H((unsigned short)x)), \
               bits(H((long long)x)), bits(H((unsigned long long)x))}};                              \
    }                                                                                                \
    static __device__ uint16_t bits(H h) { return __##to##_as_ushort(h); }                           \
  };
template <class H>
struct NarrowInteger;
FROM_INTEGERS(__half, half)
FROM_INTEGERS(__nv_bfloat16, bfloat16)

template <class H>
static void expect_integers_round(void) {
  std::vector<uint64_t> x = {0, 1, 65503, 65504, 65519, 65520, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
  for (int i = 0; i < 64; i++)
    for (int d = -2; d <= 2; d++) {
      x.push_back((1ull << i) + (uint64_t)d);
      x.push_back((0x101ull << i) + (uint64_t)d); /* a tie for bfloat16, as is 0x801 for half */
      x.push_back((0x801ull << i) + (uint64_t)d);
    }
  for (int i = 0; i < 2000; i++) x.push_back(random_bits() >> (random_bits() & 63));
  const std::vector<FromIntegers> got = map(function_map<NarrowInteger<H>, uint64_t, FromIntegers>, x);
  for (size_t k = 0; k < x.size(); k++) {
    const FromIntegers &g = got[k];
    const __int128 values[6] = {(int)x[k],       (unsigned)x[k], (short)x[k], (unsigned short)x[k],
                                (long long)x[k], (__int128)x[k]};
    const uint16_t *results[6] = {g.i, g.u, g.s, g.us, g.l, g.ul};
    for (int type = 0; type < 6; type++) {
      for (int d = 0; d < 4; d++) {
        const uint16_t want = rounded<H>(Exact{values[type], 0}, d, false);
        if (results[type][d] != want)
          fail_msg("integer %#llx as type %d to 16 bits, %s: %#x, expected %#x", (unsigned long long)x[k], type,
                   directions[d], results[type][d], want);
      }
      assert_true(g.cast[type] == results[type][0]);
    }
  }
}

static void test_every_number_converts(void **state) {
  (void)state;
  expect_every_number_converts<__half>();
  expect_every_number_converts<__nv_bfloat16>();
}
static void test_floats_round(void **state) {
  (void)state;
  expect_floats_round<__half>();
  expect_floats_round<__nv_bfloat16>();
}
static void test_integers_round(void **state) {
  (void)state;
  expect_integers_round<__half>();
  expect_integers_round<__nv_bfloat16>();
}

/* ---- arithmetic ---- */

template <class H>
struct Pair;
template <>
struct Pair<__half> {
  typedef __half2 type;
};
template <>
struct Pair<__nv_bfloat16> {
  typedef __nv_bfloat162 type;
};

template <class H>
static __device__ H as(uint16_t bits) {
  H h;
  memcpy((void *)&h, &bits, sizeof h);
  return h;
}
template <class H>
static __device__ uint16_t bits(H h) {
  uint16_t bits;
  memcpy(&bits, (const void *)&h, sizeof bits);
  return bits;
}

enum { ADD, SUB, MUL, ADD_SAT, SUB_SAT, MUL_SAT, MAX, MIN, MAX_NAN, MIN_NAN, FMA, FMA_SAT, FMA_RELU, DIV, RESULTS };
static const char *const operations[RESULTS] = {"add", "sub",     "mul",     "add_sat", "sub_sat", "mul_sat",  "max",
                                                "min", "max_nan", "min_nan", "fma",     "fma_sat", "fma_relu", "div"};
typedef Three<uint16_t> Operands;
struct Results {
  uint16_t one[RESULTS], low[RESULTS], high[RESULTS], negated, absolute;
};

template <class H>
struct Arithmetic {
  __device__ Results operator()(Operands v) const {
    typedef typename Pair<H>::type H2;
    const H a = as<H>(v.x), b = as<H>(v.y), c = as<H>(v.z);
    const H2 a2(a, b), b2(b, a), c2(c, c); /* the upper half computes b op a */
    const H one[RESULTS] = {__hadd(a, b),         __hsub(a, b),     __hmul(a, b),    __hadd_sat(a, b),
                            __hsub_sat(a, b),     __hmul_sat(a, b), __hmax(a, b),    __hmin(a, b),
                            __hmax_nan(a, b),     __hmin_nan(a, b), __hfma(a, b, c), __hfma_sat(a, b, c),
                            __hfma_relu(a, b, c), __hdiv(a, b)};
    const H2 two[RESULTS] = {__hadd2(a2, b2),          __hsub2(a2, b2),     __hmul2(a2, b2),
                             __hadd2_sat(a2, b2),      __hsub2_sat(a2, b2), __hmul2_sat(a2, b2),
                             __hmax2(a2, b2),          __hmin2(a2, b2),     __hmax2_nan(a2, b2),
                             __hmin2_nan(a2, b2),      __hfma2(a2, b2, c2), __hfma2_sat(a2, b2, c2),
                             __hfma2_relu(a2, b2, c2), __h2div(a2, b2)};
    Results r;
    for (int i = 0; i < RESULTS; i++) r.one[i] = bits(one[i]), r.low[i] = bits(two[i].x), r.high[i] = bits(two[i].y);
    r.negated = bits(__hneg(a));
    r.absolute = bits(__habs(a));
    return r;
  }
};

/* The exact sum; a number that is far below the other one's last bit only tells the direction. */
static Exact sum(Exact x, Exact y) {
  if (y.m == 0) return x;
  if (x.m == 0) return y;
  if (x.e < y.e) {
    const Exact t = x;
    x = y, y = t;
  }
  if (x.e - y.e > 90) return {x.m * ((__int128)1 << 90) + (y.m > 0 ? 1 : -1), x.e - 90};
  return {x.m * ((__int128)1 << (x.e - y.e)) + y.m, y.e};
}

template <class H>
static uint16_t saturated(uint16_t bits) {
  const double x = value<H>(bits);
  return rounded<H>(x > 0 ? x < 1 ? x : 1 : 0.0, 0);
}

template <class H>
static uint16_t multiply_add(uint16_t a, uint16_t b, uint16_t c) {
  const double x = value<H>(a), y = value<H>(b), z = value<H>(c);
  if (!isfinite(x) || !isfinite(y) || !isfinite(z)) return rounded<H>(isfinite(x) && isfinite(y) ? z : x * y + z, 0);
  const Exact p = {exact<H>(a).m * exact<H>(b).m, exact<H>(a).e + exact<H>(b).e};
  const bool negative = ((a ^ b) & 0x8000) != 0;
  /* A sum that vanishes is +0, unless both were -0. */
  return rounded<H>(sum(p, exact<H>(c)), 0, p.m == 0 && negative && z == 0 && signbit(z));
}

template <class H>
static uint16_t expected(int operation, uint16_t a, uint16_t b, uint16_t c) {
  const uint16_t one = Format<H>::BIAS << Format<H>::MANTISSA;
  const double x = value<H>(a), y = value<H>(b);
  switch (operation) {
    case ADD:
      return multiply_add<H>(a, one, b);
    case SUB:
      return multiply_add<H>(a, one, b ^ 0x8000);
    case MUL:
      return multiply_add<H>(a, b, (a ^ b) & 0x8000); /* plus a zero of the product's sign */
    case ADD_SAT:
      return saturated<H>(expected<H>(ADD, a, b, c));
    case SUB_SAT:
      return saturated<H>(expected<H>(SUB, a, b, c));
    case MUL_SAT:
      return saturated<H>(expected<H>(MUL, a, b, c));
    case MAX:
    case MIN: {
      if (x != x) return y != y ? 0x7fff : b;
      if (y != y) return a;
      const bool a_below = signbit(x) != signbit(y) ? signbit(x) : x < y;
      return a_below == (operation == MIN) ? a : b;
    }
    case MAX_NAN:
      return x != x || y != y ? 0x7fff : expected<H>(MAX, a, b, c);
    case MIN_NAN:
      return x != x || y != y ? 0x7fff : expected<H>(MIN, a, b, c);
    case FMA:
      return multiply_add<H>(a, b, c);
    case FMA_SAT:
      return saturated<H>(multiply_add<H>(a, b, c));
    case FMA_RELU: {
      const uint16_t r = multiply_add<H>(a, b, c);
      return is_nan<H>(r) ? 0x7fff : r & 0x8000 ? 0 : r;
    }
    case DIV: {
      if (!isfinite(x) || !isfinite(y) || y == 0 || x == 0) return rounded<H>(x / y, 0);
      const Exact n = exact<H>(a), d = exact<H>(b);
      const __int128 top = n.m * ((__int128)1 << 60);
      const __int128 quotient = top / d.m; /* towards zero; what is left over shows in one more bit */
      const int more = top % d.m ? (top < 0) != (d.m < 0) ? -1 : 1 : 0;
      return rounded<H>(Exact{quotient * 2 + more, n.e - d.e - 61}, 0, false);
    }
  }
  return 0;
}

/* A GPU divides halves by a reciprocal: its quotient may be the neighbour. Signs of zeros are not compared there. */
template <class H>
static bool agrees(int operation, uint16_t got, uint16_t want) {
  if (same<H>(got, want)) return true;
#ifndef SIMT_REWRITTEN
  if (operation == DIV) return abs((int)got - (int)want) <= 1;
  if (((got | want) & 0x7fff) == 0) return true;
#endif
  (void)operation;
  return false;
}

template <class H>
static void expect_arithmetic(void) {
  std::vector<Operands> x;
  const std::vector<uint16_t> v = interesting<H>(3000);
  for (uint16_t a : v)
    for (int k = 0; k < 12; k++) x.push_back({a, v[random_bits() % v.size()], v[random_bits() % v.size()]});
  for (int i = 0; i < 28; i++) /* every pair of edges */
    for (int k = 0; k < 28; k++) x.push_back({v[i], v[k], v[(i * 5 + k * 3) % 28]});
  /* Products that are the middle of two numbers, and an addend too small to see that decides which. */
  const uint16_t one = Format<H>::BIAS << Format<H>::MANTISSA;
  for (uint16_t m = 1; m < 64; m += 2)
    for (uint16_t tiny : {0x0001, 0x8001, 0x0000}) {
      const uint16_t unit = 1 << Format<H>::MANTISSA;
      x.push_back({(uint16_t)(one + m), (uint16_t)(one + unit / 2), tiny});
      x.push_back({(uint16_t)(one + 20 * unit / 10 + m), (uint16_t)(one + 1), tiny});
    }
  const std::vector<Results> got = map(function_map<Arithmetic<H>, Operands, Results>, x);
  for (size_t i = 0; i < x.size(); i++) {
    const uint16_t a = x[i].x, b = x[i].y, c = x[i].z;
    const Results &g = got[i];
    for (int operation = 0; operation < RESULTS; operation++) {
      const uint16_t want = expected<H>(operation, a, b, c), swapped = expected<H>(operation, b, a, c);
      if (!agrees<H>(operation, g.one[operation], want) || !agrees<H>(operation, g.low[operation], want) ||
          !agrees<H>(operation, g.high[operation], swapped))
        fail_msg("%s of %#x, %#x, %#x: %#x, of a pair %#x and %#x; expected %#x and %#x", operations[operation], a, b,
                 c, g.one[operation], g.low[operation], g.high[operation], want, swapped);
    }
    assert_true(same<H>(g.negated, a ^ 0x8000) && same<H>(g.absolute, a & 0x7fff));
  }
}

static void test_arithmetic_rounds_once(void **state) {
  (void)state;
  expect_arithmetic<__half>();
  expect_arithmetic<__nv_bfloat16>();
}

/* ---- comparisons ---- */

enum { COMPARISONS = 12 };
struct Comparisons {
  bool one[COMPARISONS], both[COMPARISONS];
  uint16_t low[COMPARISONS], high[COMPARISONS];
  unsigned mask[COMPARISONS];
  bool nan;
  int inf;
  uint16_t nan_low, nan_high;
};
#define EACH_COMPARISON(_) _(eq) _(ne) _(le) _(ge) _(lt) _(gt) _(equ) _(neu) _(leu) _(geu) _(ltu) _(gtu)

template <class H>
struct Compare {
  __device__ Comparisons operator()(Operands v) const {
    typedef typename Pair<H>::type H2;
    const H a = as<H>(v.x), b = as<H>(v.y), c = as<H>(v.z);
    const H2 a2(a, b), b2(b, c);
    Comparisons r;
    int n = 0;
#define CALL(name)                         \
  r.one[n] = __h##name(a, b);              \
  r.both[n] = __hb##name##2(a2, b2);       \
  r.mask[n] = __h##name##2_mask(a2, b2);   \
  r.low[n] = bits(__h##name##2(a2, b2).x); \
  r.high[n++] = bits(__h##name##2(a2, b2).y);
    EACH_COMPARISON(CALL)
#undef CALL
    r.nan = __hisnan(a);
    r.inf = __hisinf(a);
    r.nan_low = bits(__hisnan2(a2).x);
    r.nan_high = bits(__hisnan2(a2).y);
    return r;
  }
};

static bool holds(int comparison, double x, double y) {
  if (x != x || y != y) return comparison >= 6;
  const bool results[] = {x == y, x != y, x <= y, x >= y, x<y, x> y};
  return results[comparison % 6];
}

template <class H>
static void expect_comparisons(void) {
  const uint16_t one = Format<H>::BIAS << Format<H>::MANTISSA;
  const std::vector<uint16_t> v = interesting<H>(400);
  std::vector<Operands> x;
  for (uint16_t a : v)
    for (int k = 0; k < 28; k++) x.push_back({a, v[k], v[random_bits() % v.size()]}), x.push_back({a, a, v[k]});
  const std::vector<Comparisons> got = map(function_map<Compare<H>, Operands, Comparisons>, x);
  for (size_t i = 0; i < x.size(); i++) {
    const double a = value<H>(x[i].x), b = value<H>(x[i].y), c = value<H>(x[i].z);
    const Comparisons &g = got[i];
    for (int k = 0; k < COMPARISONS; k++) {
      const bool low = holds(k, a, b), high = holds(k, b, c);
      if (g.one[k] != low || g.both[k] != (low && high) || g.low[k] != (low ? one : 0) ||
          g.high[k] != (high ? one : 0) || g.mask[k] != ((low ? 0xffffu : 0) | (high ? 0xffff0000u : 0)))
        fail_msg("comparison %d of (%g, %g) with (%g, %g)", k, a, b, b, c);
    }
    assert_true(g.nan == (a != a) && (g.inf != 0) == (bool)isinf(a) && (!isinf(a) || g.inf == (a < 0 ? -1 : 1)));
    assert_true(g.nan_low == (a != a ? one : 0) && g.nan_high == (b != b ? one : 0));
  }
}

static void test_comparisons(void **state) {
  (void)state;
  expect_comparisons<__half>();
  expect_comparisons<__nv_bfloat16>();
}

/* ---- operators: the same as the functions ---- */

struct Operators {
  uint16_t got[24], want[24];
  bool holds[18], should[18];
};

template <class H>
struct Operate {
  __device__ Operators operator()(Operands v) const {
    typedef typename Pair<H>::type H2;
    const H a = as<H>(v.x), b = as<H>(v.y), c = as<H>(v.z), one = as<H>(Format<H>::BIAS << Format<H>::MANTISSA);
    const H2 p(a, b), q(b, c);
    Operators r;
    int n = 0, k = 0;
#define SAME(x, y) r.got[n] = bits(x), r.want[n++] = bits(y)
#define HOLDS(x, y) r.holds[k] = (x), r.should[k++] = (y)
    SAME(a + b, __hadd(a, b));
    SAME(a - b, __hsub(a, b));
    SAME(a * b, __hmul(a, b));
    SAME(a / b, __hdiv(a, b));
    SAME(-a, __hneg(a));
    SAME(+a, a);
    H t = a;
    SAME(t += b, __hadd(a, b));
    SAME(t -= c, __hsub(__hadd(a, b), c));
    t = a;
    SAME(t *= b, __hmul(a, b));
    t = a;
    SAME(t /= b, __hdiv(a, b));
    t = a;
    SAME(++t, __hadd(a, one));
    SAME(t--, __hadd(a, one));
    t = a;
    SAME(t++, a);
    SAME(t, __hadd(a, one));
    t = a;
    SAME(--t, __hsub(a, one));
    SAME((p + q).x, __hadd(a, b));
    SAME((p - q).y, __hsub(b, c));
    SAME((p * q).y, __hmul(b, c));
    SAME((p / q).x, __hdiv(a, b));
    SAME((-p).y, __hneg(b));
    H2 s = p;
    s += q;
    SAME(s.y, __hadd(b, c));
    s = p;
    s *= q;
    SAME(s.x, __hmul(a, b));
    s = p;
    s++;
    SAME(s.y, __hadd(b, one));
    --(s = p);
    SAME(s.x, __hsub(a, one));
    HOLDS(a == b, __heq(a, b));
    HOLDS(a != b, __hneu(a, b));
    HOLDS(a < b, __hlt(a, b));
    HOLDS(a <= b, __hle(a, b));
    HOLDS(a > b, __hgt(a, b));
    HOLDS(a >= b, __hge(a, b));
    HOLDS(p == q, __hbeq2(p, q));
    HOLDS(p != q, __hbneu2(p, q));
    HOLDS(p < q, __hblt2(p, q));
    HOLDS(p <= q, __hble2(p, q));
    HOLDS(p > q, __hbgt2(p, q));
    HOLDS(p >= q, __hbge2(p, q));
    HOLDS(p == p, __heq(a, a) && __heq(b, b));
    HOLDS(p != p, __hisnan(a) && __hisnan(b));
    H from_int = 3, from_float = 2.5f, from_double = 2.5, assigned;
    assigned = 5;
    HOLDS((float)from_int == 3, true);
    HOLDS((float)from_float == 2.5f && from_double == from_float, true);
    HOLDS((float)assigned == 5, true);
    const float implicit = a;
    HOLDS(implicit == (float)a || __hisnan(a), true);
    return r;
  }
};

template <class H>
static void expect_operators(void) {
  const std::vector<uint16_t> v = interesting<H>(300);
  std::vector<Operands> x;
  for (uint16_t a : v)
    for (int k = 0; k < 28; k++) x.push_back({a, v[k], v[random_bits() % v.size()]});
  const std::vector<Operators> got = map(function_map<Operate<H>, Operands, Operators>, x);
  for (size_t i = 0; i < x.size(); i++) {
    for (int k = 0; k < 24; k++)
      if (!same<H>(got[i].got[k], got[i].want[k]))
        fail_msg("operator %d of %#x, %#x, %#x: %#x, the function %#x", k, x[i].x, x[i].y, x[i].z, got[i].got[k],
                 got[i].want[k]);
    for (int k = 0; k < 18; k++)
      if (got[i].holds[k] != got[i].should[k]) fail_msg("condition %d of %#x, %#x, %#x", k, x[i].x, x[i].y, x[i].z);
  }
}

static void test_operators_are_the_functions(void **state) {
  (void)state;
  expect_operators<__half>();
  expect_operators<__nv_bfloat16>();
}

/* ---- pairs ---- */

struct Pairs {
  float2 got[12];
};
#define PAIRS(H, H2, to, to_floats, broadcast)                                                                         \
  static __device__ Pairs to##_pairs(Two<float> v) {                                                                   \
    const H2 p = __floats2##to##2_rn(v.x, v.y), q = __float2##to##2_rn(v.x),                                           \
             r = __float22##to##2_rn(make_float2(v.y, v.x));                                                           \
    Pairs out = {{to_floats(p), to_floats(q), to_floats(r), to_floats(__low2##to##2(p)), to_floats(__high2##to##2(p)), \
                  to_floats(__lows2##to##2(p, r)), to_floats(__highs2##to##2(p, r)), to_floats(__lowhigh2highlow(p)),  \
                  to_floats(broadcast(__low2##to(p))), to_floats(__halves2##to##2(__high2##to(p), __low2##to(p))),     \
                  to_floats(make_##to##2(__low2##to(p), __high2##to(p))), to_floats(__hcmadd(p, r, q))}};              \
    return out;                                                                                                        \
  }                                                                                                                    \
  typedef Two<float> TwoFloats_##to;                                                                                   \
  MAP(to##_pairs_map, TwoFloats_##to, Pairs, to##_pairs(a))
PAIRS(__half, __half2, half, __half22float2, __half2half2)
PAIRS(__nv_bfloat16, __nv_bfloat162, bfloat16, __bfloat1622float2, __bfloat162bfloat162)

static void expect_pairs(const std::vector<Pairs> &got) {
  const float x = 1.5f, y = -3; /* the complex one: (1.5 - 3i)(-3 + 1.5i) + (1.5 + 1.5i) = 1.5 + 12.75i */
  const float2 want[12] = {{x, y}, {x, x}, {y, x}, {x, x}, {y, y}, {x, y},
                           {y, x}, {y, x}, {x, x}, {y, x}, {x, y}, {1.5f, 12.75f}};
  for (int i = 0; i < 12; i++)
    if (got[0].got[i].x != want[i].x || got[0].got[i].y != want[i].y)
      fail_msg("pair %d: (%g, %g), expected (%g, %g)", i, got[0].got[i].x, got[0].got[i].y, want[i].x, want[i].y);
}

static void test_pairs(void **state) {
  (void)state;
  expect_pairs(map(half_pairs_map, std::vector<Two<float>>{{1.5f, -3}}));
  expect_pairs(map(bfloat16_pairs_map, std::vector<Two<float>>{{1.5f, -3}}));
}

/* ---- mathematical functions ---- */

enum { FUNCTIONS = 16 };
struct Values {
  float one[FUNCTIONS], two[FUNCTIONS];
};
#define EACH_FUNCTION(_) \
  _(sqrt)                \
  _(rsqrt)               \
  _(rcp) _(exp) _(exp2) _(exp10) _(log) _(log2) _(log10) _(sin) _(cos) _(tanh) _(ceil) _(floor) _(trunc) _(rint)
template <class H>
struct Evaluate {
  __device__ Values operator()(uint16_t v) const {
    typedef typename Pair<H>::type H2;
    const H a = as<H>(v);
    const H2 p(as<H>(0x3c00), a);
    Values r;
    int n = 0;
#define CALL(name) r.one[n] = (float)h##name(a), r.two[n++] = (float)h2##name(p).y;
    EACH_FUNCTION(CALL)
#undef CALL
    return r;
  }
};

template <class H>
static void expect_functions(void) {
  std::vector<uint16_t> x;
  const uint16_t one = Format<H>::BIAS << Format<H>::MANTISSA, unit = 1 << Format<H>::MANTISSA;
  for (uint16_t v = one - 6 * unit; v < one + 2 * unit; v++) x.push_back(v), x.push_back(v | 0x8000); /* 1/64 to 4 */
  const std::vector<Values> got = map(function_map<Evaluate<H>, uint16_t, Values>, x);
  for (size_t i = 0; i < x.size(); i++) {
    const double a = value<H>(x[i]);
    const double want[FUNCTIONS] = {sqrt(a),  1 / sqrt(a), 1 / a,  exp(a),  exp2(a), pow(10, a), log(a),   log2(a),
                                    log10(a), sin(a),      cos(a), tanh(a), ceil(a), floor(a),   trunc(a), rint(a)};
    for (int k = 0; k < FUNCTIONS; k++) {
      if (want[k] != want[k]) {
        assert_true(got[i].one[k] != got[i].one[k] && got[i].two[k] != got[i].two[k]);
        continue;
      }
      const double ulp = ldexp(1, (want[k] ? ilogb(want[k]) : 0) - Format<H>::MANTISSA);
      const double tolerance = (k >= 12 ? 0 : 1.01 * ulp) + (k == 9 || k == 10 ? ldexp(1, -10) : 0);
      if (!(fabs(got[i].one[k] - want[k]) <= tolerance) || !(fabs(got[i].two[k] - want[k]) <= tolerance))
        fail_msg("function %d of %a: %a, of a pair %a; expected %a", k, a, got[i].one[k], got[i].two[k], want[k]);
    }
  }
}

static void test_mathematical_functions(void **state) {
  (void)state;
  expect_functions<__half>();
  expect_functions<__nv_bfloat16>();
}

/* ---- in shared memory, through shuffles, between the two formats, on the host ---- */

template <class H>
static __global__ void share_kernel(const float *in, float *out) {
  typedef typename Pair<H>::type H2;
  __shared__ H cells[64];
  __shared__ H2 pairs[32];
  const int i = (int)threadIdx.x;
  cells[i] = (H)in[i];
  cells[i + 32] = (H)in[i + 32];
  pairs[i] = H2((H)in[i], (H)in[i + 32]);
  __syncthreads();
  H2 sum = H2(cells[63 - i], pairs[31 - i].x);
  for (int step = 16; step > 0; step /= 2) sum = __hadd2(sum, __shfl_xor_sync(0xffffffffu, sum, step));
  const H other = __shfl_down_sync(0xffffffffu, cells[i], 1);
  out[3 * i] = __low2float(sum);
  out[3 * i + 1] = __high2float(sum);
  out[3 * i + 2] = (float)other;
}

template <class H>
static void expect_sharing(void) {
  std::vector<float> x(64);
  for (int i = 0; i < 64; i++) x[i] = (float)(i % 4); /* small whole numbers: sums are exact in both formats */
  float *in = upload(x), *out = device_array<float>(96);
  share_kernel<H><<<1, 32>>>(in, out);
  const std::vector<float> got = download(out, 96);
  CHECK(cudaFree(in));
  for (int i = 0; i < 32; i++) {
    assert_true(got[3 * i] == 48 && got[3 * i + 1] == 48);
    assert_true(got[3 * i + 2] == x[i < 31 ? i + 1 : 31]);
  }
}

static void test_shared_memory_and_shuffles(void **state) {
  (void)state;
  expect_sharing<__half>();
  expect_sharing<__nv_bfloat16>();
}

MAP(cross_map, float, float, (float)__half(__nv_bfloat16(__half(a))))

static void test_one_format_to_the_other(void **state) {
  (void)state;
  const std::vector<float> got = map(cross_map, std::vector<float>{1 + 1 / 128.0f, 1 + 1 / 512.0f, 65504, 1e-7f});
  assert_true(got[0] == 1 + 1 / 128.0f && got[1] == 1 && isinf(got[2]) && got[3] == (float)ldexp(2, -24));
}

static void test_types(void **state) {
  (void)state;
  static_assert(sizeof(__half) == 2 && alignof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4, "half");
  static_assert(sizeof(__nv_bfloat162) == 4 && alignof(__nv_bfloat162) == 4, "bfloat16");
  static_assert(std::is_trivially_default_constructible<__half>::value, "may stand in shared memory");
  static_assert(std::is_same<half, __half>::value && std::is_same<half2, __half2>::value, "half");
  static_assert(std::is_same<nv_bfloat16, __nv_bfloat16>::value, "bfloat16");
  const __half_raw raw = {0x3e00};
  const __half h = raw;
  const __half_raw back = h;
  assert_true(__half2float(h) == 1.5f && back.x == 0x3e00); /* host code, too */
  assert_true(bits_of(CUDART_INF_FP16) == 0x7c00 && bits_of(CUDART_ONE_BF16) == 0x3f80);
  assert_true(__bfloat162float(__float2bfloat16(3.140625f)) == 3.140625f);
}

/* ---- numbers of 8 bits: what a code means is written out, and a number's code is found by trying all of them ---- */

static const __nv_fp8_interpretation_t KINDS[] = {__NV_E4M3, __NV_E5M2};

/* The number that code 0 .. 127 stands for, where there were no infinity and no NaN. */
static __host__ __device__ double fp8_meaning(int code, __nv_fp8_interpretation_t kind) {
  const int mantissa = kind == __NV_E4M3 ? 3 : 2, steps = 1 << mantissa, exponent = code / steps;
  double value = (double)(code % steps) / steps + (exponent > 0), factor = kind == __NV_E4M3 ? 64 : 16384;
  for (int e = 1; e < exponent; e++) value *= 2;
  return value / factor; /* 2^6, 2^14: the smallest normal number is 1 / factor */
}

/* The nearest of 128 numbers, of two the even one; and what then is too large. */
static __host__ __device__ int fp8_code(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  const double size = x < 0 ? -x : x;
  const int largest = kind == __NV_E4M3 ? 0x7e : 0x7b, sign = x < 0 || 1 / x < 0 ? 0x80 : 0;
  if (x != x) return 0x7f;
  int best = 0;
  for (int code = 1; code < 128; code++) {
    const double distance = fabs(size - fp8_meaning(code, kind)), least = fabs(size - fp8_meaning(best, kind));
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  if (size > 1e9) best = 0x7f;
  if (best > largest) best = saturate == __NV_SATFINITE ? largest : kind == __NV_E4M3 ? 0x7f : 0x7c;
  return sign | best;
}

static int fp8_is_nan(int code, __nv_fp8_interpretation_t kind) {
  return (code & 0x7f) > (kind == __NV_E4M3 ? 0x7e : 0x7c);
}

/* Every half, to both kinds, in both modes, by two ways. */
static __global__ void fp8_kernel(uint8_t *codes) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  __half_raw raw;
  raw.x = (unsigned short)i;
  for (int k = 0; k < 2; k++) {
    const __nv_fp8_interpretation_t kind = k == 0 ? __NV_E4M3 : __NV_E5M2;
    codes[4 * i + 2 * k] = __nv_cvt_halfraw_to_fp8(raw, __NV_NOSAT, kind);
    codes[4 * i + 2 * k + 1] = __nv_cvt_float_to_fp8(__half2float(__half(raw)), __NV_SATFINITE, kind);
  }
}

static void test_fp8_every_half(void **state) {
  (void)state;
  uint8_t *codes = device_array<uint8_t>(4 << 16);
  fp8_kernel<<<256, 256>>>(codes);
  std::vector<uint8_t> got = download(codes, 4 << 16);
  for (int i = 0; i < 1 << 16; i += i % 64 < 2 ? 1 : 7) { /* the trying is slow */
    __half_raw raw;
    raw.x = (unsigned short)i;
    const double x = (double)__half2float(__half(raw));
    for (int k = 0; k < 4; k++) {
      const __nv_fp8_interpretation_t kind = KINDS[k / 2];
      const int expected = fp8_code(x, k % 2 ? __NV_SATFINITE : __NV_NOSAT, kind), code = got[4 * i + k];
      if (fp8_is_nan(expected, kind) ? !fp8_is_nan(code, kind) : code != expected)
        fail_msg("%g to kind %d: 0x%02x instead of 0x%02x", x, k / 2, code, expected);
    }
  }
}

template <class T>
static void expect_fp8_codes(__nv_fp8_interpretation_t kind) {
  for (int code = 0; code < 256; code++) {
    T number;
    number.__x = (__nv_fp8_storage_t)code;
    const float value = (float)number;
    const int size = code & 0x7f;
    if (fp8_is_nan(code, kind)) {
      assert_true(value != value && __half2float((__half)number) != __half2float((__half)number));
      assert_true(fp8_is_nan(T(value).__x, kind));
      continue;
    }
    const double meant = kind == __NV_E5M2 && size == 0x7c ? (double)INFINITY : fp8_meaning(size, kind);
    assert_true((double)value == (code & 0x80 ? -meant : meant) && !signbit(value) == !(code & 0x80));
    assert_true(__half2float((__half)number) == value && __bfloat162float((__nv_bfloat16)number) == value);
    assert_true((bool)number == (size != 0));
    if (meant > 1e9) continue;
    assert_int_equal(T(value).__x, code); /* and back, from every type */
    assert_int_equal(T((double)value).__x, code);
    assert_int_equal(T((__half)number).__x, code);
    assert_int_equal(T((__nv_bfloat16)number).__x, code);
    assert_int_equal((int)number, (int)value);
    assert_int_equal((unsigned)number, value < 0 ? 0 : (unsigned)value);
    assert_int_equal((signed char)number, value > 127 ? 127 : value < -128 ? -128 : (signed char)value);
    if (value == (int)value && value != 0) assert_int_equal(T((int)value).__x, code);
    /* Between this number and the next: the middle goes to the even one, what is a little off to the nearer one. */
    if (code >= (kind == __NV_E4M3 ? 0x7e : 0x7b)) continue;
    const double next = fp8_meaning(code + 1, kind), middle = (meant + next) / 2;
    assert_int_equal(T(middle).__x, code + code % 2);
    assert_int_equal(T(nextafter(middle, 0.0)).__x, code);
    assert_int_equal(T(nextafter(middle, 1e9)).__x, code + 1);
    assert_int_equal(T(-nextafter(middle, 1e9)).__x, 0x80 | (code + 1));
  }
}

static void test_fp8_every_code(void **state) {
  (void)state;
  expect_fp8_codes<__nv_fp8_e4m3>(__NV_E4M3);
  expect_fp8_codes<__nv_fp8_e5m2>(__NV_E5M2);
}

static void test_fp8_saturation(void **state) {
  (void)state;
  for (double x : {464.0, 464.00001, 465.0, 480.0, 61439.9, 61440.0, 70000.0, 1e30, 1e300, (double)INFINITY})
    for (int k = 0; k < 2; k++)
      for (double value : {x, -x})
        for (__nv_saturation_t saturate : {__NV_NOSAT, __NV_SATFINITE}) {
          const int code = __nv_cvt_double_to_fp8(value, saturate, KINDS[k]),
                    want = fp8_code(value, saturate, KINDS[k]);
          assert_int_equal(code & 0x7f, want & 0x7f);
          if (!fp8_is_nan(want, KINDS[k])) assert_int_equal(code, want);
        }
  assert_int_equal(__nv_fp8_e4m3(1 << 20).__x, 0x7e);
  assert_int_equal(__nv_fp8_e5m2(-0x7fffffffffffffffll).__x, 0xfb);
}

static void test_fp8_vectors(void **state) {
  (void)state;
  const __nv_fp8x2_e4m3 two(make_float2(1.0f, -448.0f));
  assert_int_equal(two.__x, 0xfe38);
  assert_true(((float2)two).x == 1 && ((float2)two).y == -448);
  assert_true(__low2float((__half2)two) == 1 && __high2float((__half2)two) == -448);
  assert_int_equal(__nv_fp8x2_e5m2(__floats2half2_rn(2.0f, 0.25f)).__x, 0x3440);
  const __nv_fp8x4_e5m2 four(make_float4(1, 2, -0.5f, 1e9f));
  assert_int_equal(four.__x, 0x7bb8403c);
  assert_true(((float4)four).z == -0.5f && ((float4)four).w == 57344);
  assert_int_equal(__nv_fp8x4_e4m3(__floats2half2_rn(1, 2), __floats2half2_rn(4, 8)).__x, 0x50484038);
  assert_int_equal(__nv_cvt_fp8x2_to_halfraw2(0x3c40, __NV_E5M2).x, 0x4000);
  assert_int_equal(__nv_cvt_fp8x2_to_halfraw2(0x3c40, __NV_E5M2).y, 0x3c00);
  assert_int_equal(sizeof(__nv_fp8_e4m3) + sizeof two + sizeof four, 1 + 2 + 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fp8_every_code),
      cmocka_unit_test(test_fp8_every_half),
      cmocka_unit_test(test_fp8_saturation),
      cmocka_unit_test(test_fp8_vectors),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_every_number_converts),
      cmocka_unit_test(test_floats_round),
      cmocka_unit_test(test_integers_round),
      cmocka_unit_test(test_arithmetic_rounds_once),
      cmocka_unit_test(test_comparisons),
      cmocka_unit_test(test_operators_are_the_functions),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_mathematical_functions),
      cmocka_unit_test(test_shared_memory_and_shuffles),
      cmocka_unit_test(test_one_format_to_the_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* intrinsics_test.cu - bits, integer arithmetic, conversions, SIMD in a register, cache-hinted loads and stores,
 * clocks. */
#include "map.cuh"

#include <cuda_fp16.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <time.h>

#include <type_traits>

/* Edges first, then numbers with few and with many bits set. */
static std::vector<uint64_t> interesting_integers(void) {
  std::vector<uint64_t> v = {0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffff, 0x800000, 0xffffff};
  for (uint64_t edge : {0x7fffffffull, 0x80000000ull, 0xffffffffull, 0x7fffffffffffffffull, 0x8000000000000000ull})
    for (int d = -2; d <= 2; d++) v.push_back(edge + (uint64_t)d);
  for (int i = 0; i < 64; i++) v.push_back(1ull << i);
  for (int i = 0; i < 300; i++) v.push_back(random_bits() >> (random_bits() & 63));
  for (int i = 0; i < 300; i++) v.push_back(random_bits());
  return v;
}

template <class T>
static std::vector<T> integers(void) {
  std::vector<T> v;
  for (uint64_t x : interesting_integers()) v.push_back((T)x);
  return v;
}

template <class T>
static std::vector<Three<T>> triples(void) {
  std::vector<Three<T>> v;
  const std::vector<T> x = integers<T>();
  for (size_t i = 0; i < x.size(); i++)
    for (int j = 0; j < 8; j++) v.push_back({x[i], x[random_bits() % x.size()], x[random_bits() % x.size()]});
  return v;
}

/* ---- one number ---- */

struct Bits {
  int popc, popcll, clz, clzll, ffs, ffsll;
  unsigned brev;
  unsigned long long brevll;
  unsigned third, second_last; /* set bits: where they are */
};
MAP(bits_map, uint64_t, Bits,
    (Bits{__popc((unsigned)a), __popcll(a), __clz((int)a), __clzll((long long)a), __ffs((int)a), __ffsll((long long)a),
          __brev((unsigned)a), __brevll(a), __fns((unsigned)a, 0, 3), __fns((unsigned)a, 31, -2)}))

static Bits bits_one_by_one(uint64_t x) {
  Bits b = {0, 0, 32, 64, 0, 0, 0, 0, 0xffffffff, 0xffffffff};
  unsigned last = 0xffffffff;
  for (int i = 0; i < 64; i++) {
    if (!(x >> i & 1)) continue;
    b.popcll++;
    b.clzll = 63 - i;
    if (!b.ffsll) b.ffsll = i + 1;
    b.brevll |= 1ull << (63 - i);
    if (i >= 32) continue;
    if (++b.popc == 3) b.third = i;
    b.second_last = last, last = i;
    b.clz = 31 - i;
    if (!b.ffs) b.ffs = i + 1;
    b.brev |= 1u << (31 - i);
  }
  return b;
}

static void test_counting_and_reversing_bits(void **state) {
  (void)state;
  const std::vector<uint64_t> x = interesting_integers();
  const std::vector<Bits> got = map(bits_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const Bits want = bits_one_by_one(x[i]);
    const Bits &g = got[i];
    if (g.popc != want.popc || g.popcll != want.popcll || g.clz != want.clz || g.clzll != want.clzll ||
        g.ffs != want.ffs || g.ffsll != want.ffsll || g.brev != want.brev || g.brevll != want.brevll ||
        g.third != want.third || g.second_last != want.second_last)
      fail_msg("%#llx", (unsigned long long)x[i]);
  }
}

struct Punned {
  int i;
  unsigned u;
  float f, g;
  long long l;
  double d, joined;
  int high, low;
};
MAP(punned_map, uint64_t, Punned,
    (Punned{__float_as_int(__int_as_float((int)a & 0x7f7fffff)),
            __float_as_uint(__uint_as_float((unsigned)a & 0x7f7fffff)), __int_as_float((int)a & 0x7f7fffff),
            __uint_as_float((unsigned)a & 0x7f7fffff), __double_as_longlong(__longlong_as_double((long long)a)),
            __longlong_as_double((long long)a), __hiloint2double((int)(a >> 32), (int)a),
            __double2hiint(__longlong_as_double((long long)a)), __double2loint(__longlong_as_double((long long)a))}))

static void test_bits_as_another_type(void **state) {
  (void)state;
  const std::vector<uint64_t> x = interesting_integers();
  const std::vector<Punned> got = map(punned_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const uint32_t low = (uint32_t)x[i] & 0x7f7fffff;
    const Punned &g = got[i];
    assert_true((uint32_t)g.i == low && g.u == low && bits_of(g.f) == low && bits_of(g.g) == low);
    assert_true((uint64_t)g.l == x[i] && bits_of(g.d) == x[i] && bits_of(g.joined) == x[i]);
    assert_true(g.high == (int)(x[i] >> 32) && g.low == (int)x[i]);
  }
}

/* ---- two or three integers ---- */

struct Words {
  unsigned byte_perm, left, right, left_clamped, right_clamped, umul24, umulhi, usad, uhadd, urhadd, sad;
  int mul24, mulhi, hadd, rhadd;
};
typedef Three<unsigned> ThreeWords;
MAP(words_map, ThreeWords, Words,
    (Words{__byte_perm(a.x, a.y, a.z), __funnelshift_l(a.x, a.y, a.z), __funnelshift_r(a.x, a.y, a.z),
           __funnelshift_lc(a.x, a.y, a.z), __funnelshift_rc(a.x, a.y, a.z), __umul24(a.x, a.y), __umulhi(a.x, a.y),
           __usad(a.x, a.y, a.z), __uhadd(a.x, a.y), __urhadd(a.x, a.y), __sad((int)a.x, (int)a.y, a.z),
           __mul24((int)a.x, (int)a.y), __mulhi((int)a.x, (int)a.y), __hadd((int)a.x, (int)a.y),
           __rhadd((int)a.x, (int)a.y)}))

#define EXPECT(member, value)                                                                                       \
  if (g.member != (value))                                                                                          \
  fail_msg(#member "(%#x, %#x, %#x) = %#llx, expected %#llx", x[i].x, x[i].y, x[i].z, (unsigned long long)g.member, \
           (unsigned long long)(value))

static void test_words(void **state) {
  (void)state;
  std::vector<ThreeWords> x = triples<unsigned>();
  for (unsigned shift = 0; shift < 70; shift++) x.push_back({0x01234567u, 0x89abcdefu, shift});
  const std::vector<Words> got = map(words_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const unsigned a = x[i].x, b = x[i].y, c = x[i].z;
    const int s = (int)a, t = (int)b;
    const Words &g = got[i];
    unsigned char bytes[8], picked[4];
    memcpy(bytes, &a, 4);
    memcpy(bytes + 4, &b, 4);
    for (int k = 0; k < 4; k++) picked[k] = bytes[c >> 4 * k & 7];
    unsigned perm;
    memcpy(&perm, picked, 4);
    EXPECT(byte_perm, perm);
    /* The 64 bits b:a, shifted bit by bit. */
    uint64_t left = (uint64_t)b << 32 | a, right = left, left_clamped = left, right_clamped = left;
    for (unsigned k = 0; k < (c & 31); k++) left *= 2, right /= 2;
    for (unsigned k = 0; k < (c < 32 ? c : 32); k++) left_clamped *= 2, right_clamped /= 2;
    EXPECT(left, (unsigned)(left >> 32));
    EXPECT(right, (unsigned)right);
    EXPECT(left_clamped, (unsigned)(left_clamped >> 32));
    EXPECT(right_clamped, (unsigned)right_clamped);
    EXPECT(umul24, (unsigned)((uint64_t)(a % 16777216) * (b % 16777216)));
    EXPECT(umulhi, (unsigned)((uint64_t)a * b / 4294967296u));
    EXPECT(usad, (unsigned)llabs((long long)a - (long long)b) + c);
    EXPECT(sad, (unsigned)llabs((long long)s - (long long)t) + c);
    EXPECT(uhadd, (unsigned)(((uint64_t)a + b) / 2));
    EXPECT(urhadd, (unsigned)(((uint64_t)a + b + 1) / 2));
    EXPECT(hadd, (int)floor(((double)s + t) / 2));
    EXPECT(rhadd, (int)ceil(((double)s + t) / 2));
    const long long s24 = (long long)(a % 16777216) - (a & 0x800000 ? 16777216 : 0);
    const long long t24 = (long long)(b % 16777216) - (b & 0x800000 ? 16777216 : 0);
    EXPECT(mul24, (int)(s24 * t24));
    EXPECT(mulhi, (int)floorl((long double)s * t / 4294967296.0L));
  }
}

struct Longs {
  long long mul64hi;
  unsigned long long umul64hi;
};
typedef Two<uint64_t> TwoLongs;
MAP(longs_map, TwoLongs, Longs, (Longs{__mul64hi((long long)a.x, (long long)a.y), __umul64hi(a.x, a.y)}))

static void test_upper_half_of_a_64_bit_product(void **state) {
  (void)state;
  const std::vector<uint64_t> v = interesting_integers();
  std::vector<TwoLongs> x;
  for (uint64_t a : v)
    for (int j = 0; j < 8; j++) x.push_back({a, v[random_bits() % v.size()]});
  const std::vector<Longs> got = map(longs_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    /* Schoolbook, in 32-bit digits; the signed one follows from the unsigned one. */
    const uint64_t a = x[i].x, b = x[i].y, a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = (a0 * b0 >> 32) + (uint32_t)(a1 * b0) + (uint32_t)(a0 * b1);
    const uint64_t high = a1 * b1 + (a1 * b0 >> 32) + (a0 * b1 >> 32) + (middle >> 32);
    assert_true(got[i].umul64hi == high);
    assert_true((uint64_t)got[i].mul64hi == high - (a >> 63 ? b : 0) - (b >> 63 ? a : 0));
  }
}

struct Inner {
  int dp4a, dp4a_vector, dp2a_lo, dp2a_hi;
  unsigned udp4a, udp4a_vector, udp2a_lo, udp2a_hi;
};
static __device__ Inner inner_products(ThreeWords a) {
  char4 x, y;
  uchar4 ux, uy;
  memcpy(&x, &a.x, 4);
  memcpy(&y, &a.y, 4);
  memcpy(&ux, &a.x, 4);
  memcpy(&uy, &a.y, 4);
  const int s = (int)a.x, t = (int)a.y, c = (int)a.z;
  return {__dp4a(s, t, c),       __dp4a(x, y, c),     __dp2a_lo(s, t, c),       __dp2a_hi(s, t, c),
          __dp4a(a.x, a.y, a.z), __dp4a(ux, uy, a.z), __dp2a_lo(a.x, a.y, a.z), __dp2a_hi(a.x, a.y, a.z)};
}
MAP(inner_map, ThreeWords, Inner, inner_products(a))

static void test_inner_products(void **state) {
  (void)state;
  const std::vector<ThreeWords> x = triples<unsigned>();
  const std::vector<Inner> got = map(inner_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    signed char a[4], b[4];
    short a2[2];
    memcpy(a, &x[i].x, 4);
    memcpy(a2, &x[i].x, 4);
    memcpy(b, &x[i].y, 4);
    const Inner &g = got[i];
    long long dp4a = (int)x[i].z, udp4a = x[i].z, lo = dp4a, hi = dp4a, ulo = udp4a, uhi = udp4a;
    for (int k = 0; k < 4; k++) dp4a += a[k] * b[k], udp4a += (unsigned char)a[k] * (unsigned char)b[k];
    for (int k = 0; k < 2; k++) {
      lo += a2[k] * b[k], hi += a2[k] * b[k + 2];
      ulo += (unsigned short)a2[k] * (unsigned char)b[k], uhi += (unsigned short)a2[k] * (unsigned char)b[k + 2];
    }
    EXPECT(dp4a, (int)dp4a);
    EXPECT(dp4a_vector, (int)dp4a);
    EXPECT(udp4a, (unsigned)udp4a);
    EXPECT(udp4a_vector, (unsigned)udp4a);
    EXPECT(dp2a_lo, (int)lo);
    EXPECT(dp2a_hi, (int)hi);
    EXPECT(udp2a_lo, (unsigned)ulo);
    EXPECT(udp2a_hi, (unsigned)uhi);
  }
}

/* ---- SIMD: lanes of 8 and 16 bits ---- */

enum { SIMD_FUNCTIONS = 43 };
struct Simd {
  unsigned two[SIMD_FUNCTIONS], four[SIMD_FUNCTIONS];
};
// clang-format off
#define EACH_SIMD(_)                                                                                                  \
  _(__vadd)                                                                                                           \
  _(__vsub)                                                                                                           \
  _(__vaddss)                                                                                                         \
  _(__vsubss)                                                                                                         \
  _(__vaddus) _(__vsubus) _(__vmaxs) _(__vmins) _(__vmaxu) _(__vminu) _(__vabsdiffs) _(__vabsdiffu) _(__vavgs)        \
      _(__vavgu) _(__vhaddu) _(__vcmpeq) _(__vcmpne) _(__vcmpgts) _(__vcmpges) _(__vcmplts) _(__vcmples) _(__vcmpgtu) \
          _(__vcmpgeu) _(__vcmpltu) _(__vcmpleu) _(__vseteq) _(__vsetne) _(__vsetgts) _(__vsetges) _(__vsetlts)       \
              _(__vsetles) _(__vsetgtu) _(__vsetgeu) _(__vsetltu) _(__vsetleu) _(__vsads) _(__vsadu)
// clang-format on
static __device__ Simd simd(ThreeWords a) {
  Simd s;
  int n = 0;
#define CALL(f) s.two[n] = f##2(a.x, a.y), s.four[n++] = f##4(a.x, a.y);
  EACH_SIMD(CALL)
#undef CALL
#define CALL(f) s.two[n] = f##2(a.x), s.four[n++] = f##4(a.x);
  CALL(__vneg)
  CALL(__vnegss)
  CALL(__vabs)
  CALL(__vabsss)
#undef CALL
  s.two[n] = __viaddmax_s16x2(a.x, a.y, a.z), s.four[n++] = (unsigned)__viaddmax_s32((int)a.x, (int)a.y, (int)a.z);
  s.two[n] = __vimin3_s16x2_relu(a.x, a.y, a.z),
  s.four[n++] = (unsigned)__vimin3_s32_relu((int)a.x, (int)a.y, (int)a.z);
  return s;
}
MAP(simd_map, ThreeWords, Simd, simd(a))
#define NAME(f) #f,
static const char *const simd_names[SIMD_FUNCTIONS] = {
    EACH_SIMD(NAME) "__vneg", "__vnegss", "__vabs", "__vabsss", "__viaddmax", "__vimin3_relu"};

static long long clamp(long long x, long long low, long long high) { return x < low ? low : x > high ? high : x; }

/* One lane of `bits` bits: s, t signed, u, v unsigned. */
static long long simd_lane(int function, int bits, long long s, long long t, long long u, long long v) {
  const long long low = -(1ll << (bits - 1)), high = -low - 1, all = (1ll << bits) - 1;
  const long long results[] = {u + v,
                               u - v,
                               clamp(s + t, low, high),
                               clamp(s - t, low, high),
                               clamp(u + v, 0, all),
                               clamp(u - v, 0, all),
                               s > t ? s : t,
                               s < t ? s : t,
                               u > v ? u : v,
                               u < v ? u : v,
                               llabs(s - t),
                               llabs(u - v),
                               s + t >= 0 ? (s + t + 1) / 2 : -((-(s + t) + 1) / 2),
                               (u + v + 1) / 2,
                               (u + v) / 2};
  const bool holds[] = {u == v, u != v, s > t, s >= t, s<t, s <= t, u> v, u >= v, u < v, u <= v};
  if (function < 15) return results[function];
  if (function < 25) return holds[function - 15] ? all : 0;
  if (function < 35) return holds[function - 25];
  const long long unary[] = {-s, clamp(-s, low, high), llabs(s), clamp(llabs(s), low, high)};
  return unary[function - 37];
}

static unsigned simd_word(int function, int bits, unsigned a, unsigned b) {
  const long long all = (1ll << bits) - 1;
  unsigned word = 0;
  for (int shift = 0; shift < 32; shift += bits) {
    const long long u = a >> shift & all, v = b >> shift & all;
    const long long s = u - (u >> (bits - 1) << bits), t = v - (v >> (bits - 1) << bits);
    if (function == 35)
      word += (unsigned)llabs(s - t);
    else if (function == 36)
      word += (unsigned)llabs(u - v);
    else
      word |= (unsigned)(simd_lane(function, bits, s, t, u, v) & all) << shift;
  }
  return word;
}

static void test_simd_lanes(void **state) {
  (void)state;
  const std::vector<ThreeWords> x = triples<unsigned>();
  const std::vector<Simd> got = map(simd_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    unsigned two[SIMD_FUNCTIONS], four[SIMD_FUNCTIONS];
    for (int f = 0; f < 41; f++) two[f] = simd_word(f, 16, x[i].x, x[i].y), four[f] = simd_word(f, 8, x[i].x, x[i].y);
    const int a = (int)x[i].x, b = (int)x[i].y, c = (int)x[i].z, sum = (int)(x[i].x + x[i].y);
    unsigned addmax = 0, min3 = 0;
    for (int shift = 0; shift < 32; shift += 16) {
      const short p = (short)(a >> shift), q = (short)(b >> shift), r = (short)(c >> shift), pq = (short)(p + q);
      addmax |= (unsigned)(unsigned short)(pq > r ? pq : r) << shift;
      const short m = p < q ? (p < r ? p : r) : (q < r ? q : r);
      min3 |= (unsigned)(unsigned short)(m > 0 ? m : 0) << shift;
    }
    const int m = a < b ? (a < c ? a : c) : (b < c ? b : c);
    two[41] = addmax, four[41] = (unsigned)(sum > c ? sum : c);
    two[42] = min3, four[42] = (unsigned)(m > 0 ? m : 0);
    for (int f = 0; f < SIMD_FUNCTIONS; f++)
      if (got[i].two[f] != two[f] || got[i].four[f] != four[f])
        fail_msg("%s(%#x, %#x, %#x): two lanes %#x, expected %#x; four lanes %#x, expected %#x", simd_names[f], x[i].x,
                 x[i].y, x[i].z, got[i].two[f], two[f], got[i].four[f], four[f]);
  }
}

struct Choice {
  int max_s32, min_s32;
  unsigned max_s16x2, min_u16x2;
  bool first_max, first_min, high_max, low_max, high_min, low_min;
};
static __device__ Choice choose(ThreeWords a) {
  Choice c;
  c.max_s32 = __vibmax_s32((int)a.x, (int)a.y, &c.first_max);
  c.min_s32 = __vibmin_s32((int)a.x, (int)a.y, &c.first_min);
  c.max_s16x2 = __vibmax_s16x2(a.x, a.y, &c.high_max, &c.low_max);
  c.min_u16x2 = __vibmin_u16x2(a.x, a.y, &c.high_min, &c.low_min);
  return c;
}
MAP(choice_map, ThreeWords, Choice, choose(a))

static void test_which_of_two_was_chosen(void **state) {
  (void)state;
  std::vector<ThreeWords> x = triples<unsigned>();
  x.push_back({5, 5, 0});
  x.push_back({0x00050007, 0x00050006, 0});
  const std::vector<Choice> got = map(choice_map, x);
  for (size_t i = 0; i < x.size(); i++) {
    const int a = (int)x[i].x, b = (int)x[i].y;
    const short ah = (short)(a >> 16), bh = (short)(b >> 16), al = (short)a, bl = (short)b;
    const Choice &g = got[i];
    assert_true(g.max_s32 == (a >= b ? a : b) && g.first_max == (a >= b));
    assert_true(g.min_s32 == (a <= b ? a : b) && g.first_min == (a <= b));
    assert_true(g.high_max == (ah >= bh) && g.low_max == (al >= bl));
    assert_true((short)(g.max_s16x2 >> 16) == (ah >= bh ? ah : bh) && (short)g.max_s16x2 == (al >= bl ? al : bl));
    assert_true(g.high_min == ((unsigned short)ah <= (unsigned short)bh));
    assert_true(g.low_min == ((unsigned short)al <= (unsigned short)bl));
    assert_true((unsigned short)g.min_u16x2 == (g.low_min ? (unsigned short)al : (unsigned short)bl));
  }
}

/* ---- conversions ---- */

struct ToInteger {
  int i[4];
  unsigned u[4];
  long long l[4];
  unsigned long long ul[4];
};
#define TO_INTEGERS(from)                                                                                  \
  (ToInteger{{__##from##2int_rn(a), __##from##2int_rz(a), __##from##2int_ru(a), __##from##2int_rd(a)},     \
             {__##from##2uint_rn(a), __##from##2uint_rz(a), __##from##2uint_ru(a), __##from##2uint_rd(a)}, \
             {__##from##2ll_rn(a), __##from##2ll_rz(a), __##from##2ll_ru(a), __##from##2ll_rd(a)},         \
             {__##from##2ull_rn(a), __##from##2ull_rz(a), __##from##2ull_ru(a), __##from##2ull_rd(a)}})
MAP(float_to_integer_map, float, ToInteger, TO_INTEGERS(float))
MAP(double_to_integer_map, double, ToInteger, TO_INTEGERS(double))

template <class T>
static void expect_integers(const std::vector<T> &x, const std::vector<ToInteger> &got) {
  const bool from_double = sizeof(T) == 8;
  for (size_t k = 0; k < x.size(); k++)
    for (int d = 0; d < 4; d++) {
      const long double r = rounded(x[k], d);
      if (got[k].i[d] != clamped<int>(r, from_double) || got[k].u[d] != clamped<unsigned>(r, from_double) ||
          got[k].l[d] != clamped<long long>(r, from_double) ||
          got[k].ul[d] != clamped<unsigned long long>(r, from_double))
        fail_msg("%s %a to integers, %s: %#x %#x %#llx %#llx", from_double ? "double" : "float", (double)x[k],
                 directions[d], (unsigned)got[k].i[d], got[k].u[d], (unsigned long long)got[k].l[d], got[k].ul[d]);
    }
}

static void test_to_integers(void **state) {
  (void)state;
  std::vector<float> f = {0.0f,         -0.0f,  0.5f, 1.5f, 2.5f,     -0.5f,     -1.5f,   -2.5f,   0.49999997f,
                          -0.49999997f, 1e-45f, NAN,  -NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f};
  std::vector<double> d = {
      0.49999999999999994, 4503599627370495.5, 2147483647.5,       2147483646.5, -2147483648.5, -2147483649.5,
      4294967295.5,        4294967294.5,       9007199254740993.0, 1e300,        -1e300,        5e-324};
  for (int bits : {31, 32, 63, 64})
    for (int step = -3; step <= 3; step++)
      for (int sign = -1; sign <= 1; sign += 2) {
        f.push_back((float)sign * float_of(bits_of(ldexpf(1, bits)) + (uint32_t)step));
        d.push_back(sign * double_of(bits_of(ldexp(1, bits)) + (uint64_t)step));
        d.push_back(sign * (ldexp(1, bits) + step));
      }
  for (int i = 0; i < 2000; i++) f.push_back((float)random_uniform(-1, 1) * ldexpf(1, (int)(random_bits() % 70)));
  for (int i = 0; i < 2000; i++) d.push_back(random_uniform(-1, 1) * ldexp(1, (int)(random_bits() % 70)));
  for (float x : f) d.push_back(x);
  expect_integers(f, map(float_to_integer_map, f));
  expect_integers(d, map(double_to_integer_map, d));
}

struct FromInteger {
  float i[4], u[4], l[4], ul[4];
  double ld[4], uld[4], id, ud;
};
MAP(from_integer_map, uint64_t, FromInteger,
    (FromInteger{EACH_WAY(__int2float, (int)a), EACH_WAY(__uint2float, (unsigned)a), EACH_WAY(__ll2float, (long long)a),
                 EACH_WAY(__ull2float, a), EACH_WAY(__ll2double, (long long)a), EACH_WAY(__ull2double, a),
                 __int2double_rn((int)a), __uint2double_rn((unsigned)a)}))

/* Is r = exact rounded in that direction? A 64-bit integer is exact in a long double of 64 bits or more. */
template <class T>
static bool rounds_to(long double exact, T r, int direction) {
  const T above = std::nextafter(r, (T)INFINITY), below = std::nextafter(r, -(T)INFINITY);
  if (direction == 1) direction = exact < 0 ? 2 : 3;
  if (direction == 2) return r >= exact && below < exact;
  if (direction == 3) return r <= exact && above > exact;
  const long double error = fabsl(r - exact), up = fabsl(above - exact), down = fabsl(below - exact);
  uint64_t bits = 0;
  memcpy(&bits, &r, sizeof r);
  return error <= up && error <= down && ((error < up && error < down) || !(bits & 1));
}

static void test_from_integers(void **state) {
  (void)state;
  static_assert(LDBL_MANT_DIG >= 64, "the expected values need a long double that holds 64-bit integers");
  std::vector<uint64_t> x = interesting_integers();
  for (int shift = 0; shift < 40; shift++) /* ties, and numbers beside ties */
    for (int d = -1; d <= 1; d++)
      x.push_back((0x1000001ull << shift) + (uint64_t)d), x.push_back((0x1000003ull << shift) + (uint64_t)d);
  const std::vector<FromInteger> got = map(from_integer_map, x);
  for (size_t k = 0; k < x.size(); k++) {
    const FromInteger &g = got[k];
    for (int d = 0; d < 4; d++)
      if (!rounds_to((int)x[k], g.i[d], d) || !rounds_to((unsigned)x[k], g.u[d], d) ||
          !rounds_to((long long)x[k], g.l[d], d) || !rounds_to(x[k], g.ul[d], d) ||
          !rounds_to((long long)x[k], g.ld[d], d) || !rounds_to(x[k], g.uld[d], d))
        fail_msg("%#llx to floats, %s: %a %a %a %a %a %a", (unsigned long long)x[k], directions[d], g.i[d], g.u[d],
                 g.l[d], g.ul[d], g.ld[d], g.uld[d]);
    assert_true(g.id == (int)x[k] && g.ud == (unsigned)x[k]);
  }
}

struct Narrowed {
  float to[4];
};
MAP(narrow_map, double, Narrowed, (Narrowed EACH_WAY(__double2float, a)))

static void test_double_to_float(void **state) {
  (void)state;
  std::vector<double> x = {1.0, 1 + 0x1p-24, 1 + 0x1p-23, 1 + 3 * 0x1p-24, 1 + 0x1p-24 + 0x1p-50, 0x1p-149, 0x1p-150};
  for (int i = 0; i < 3000; i++) x.push_back(random_uniform(-1, 1) * ldexp(1, (int)(random_bits() % 250) - 130));
  const std::vector<Narrowed> got = map(narrow_map, x);
  for (size_t k = 0; k < x.size(); k++)
    for (int d = 0; d < 4; d++)
      if (!rounds_to((long double)x[k], got[k].to[d], d))
        fail_msg("%a to float, %s: %a", x[k], directions[d], got[k].to[d]);
  const std::vector<Narrowed> edge = map(narrow_map, std::vector<double>{1e300, -1e300, 1e-300, -1e-300});
  const float top = 3.40282346638528859812e38f, tiny = float_of(1);
  const float want[4][4] = {
      {INFINITY, top, INFINITY, top}, {-INFINITY, -top, -top, -INFINITY}, {0, 0, tiny, 0}, {0, 0, 0, -tiny}};
  for (int k = 0; k < 4; k++)
    for (int d = 0; d < 4; d++) assert_true(edge[k].to[d] == want[k][d]);
}

/* ---- loads and stores with a cache hint ---- */

template <class T>
static __global__ void hint_kernel(const T *in, T *out, int n) {
  const int i = (int)threadIdx.x;
  if (i >= n) return;
  const T *p = in + i;
  T *q = out + 10 * i;
  q[0] = __ldg(p);
  q[1] = __ldca(p);
  q[2] = __ldcg(p);
  q[3] = __ldcs(p);
  q[4] = __ldlu(p);
  q[5] = __ldcv(p);
  __stcg(q + 6, *p);
  __stcs(q + 7, *p);
  __stwb(q + 8, *p);
  __stwt(q + 9, *p);
}

template <class T>
static void expect_hints_move(void) {
  const int n = 37;
  std::vector<T> values(n);
  for (T &v : values) {
    unsigned char bytes[sizeof(T)];
    for (unsigned char &b : bytes) b = (unsigned char)random_bits();
    memcpy((void *)&v, bytes, sizeof v);
  }
  T *in = upload(values), *out = device_array<T>(10 * n);
  hint_kernel<<<1, 64>>>(in, out, n);
  const std::vector<T> got = download(out, 10 * n);
  CHECK(cudaFree(in));
  for (int i = 0; i < 10 * n; i++) assert_memory_equal(&got[i], &values[i / 10], sizeof(T));
}

static void test_cache_hints_move_every_type(void **state) {
  (void)state;
  expect_hints_move<char>();
  expect_hints_move<signed char>();
  expect_hints_move<unsigned char>();
  expect_hints_move<short>();
  expect_hints_move<unsigned short>();
  expect_hints_move<int>();
  expect_hints_move<unsigned>();
  expect_hints_move<long>();
  expect_hints_move<unsigned long>();
  expect_hints_move<long long>();
  expect_hints_move<unsigned long long>();
  expect_hints_move<float>();
  expect_hints_move<double>();
  expect_hints_move<char2>();
  expect_hints_move<char4>();
  expect_hints_move<uchar2>();
  expect_hints_move<uchar4>();
  expect_hints_move<short2>();
  expect_hints_move<short4>();
  expect_hints_move<ushort4>();
  expect_hints_move<int2>();
  expect_hints_move<int4>();
  expect_hints_move<uint2>();
  expect_hints_move<uint4>();
  expect_hints_move<longlong2>();
  expect_hints_move<ulonglong2>();
  expect_hints_move<float2>();
  expect_hints_move<float4>();
  expect_hints_move<double2>();
  expect_hints_move<__half>();
  expect_hints_move<__half2>();
}

/* ---- clocks ---- */

static __global__ void clock_kernel(long long *out) {
  const long long before = clock64();
  const clock_t start = clock();
  __nanosleep(1000);
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  out[2 * threadIdx.x] = clock64() - before;
  out[2 * threadIdx.x + 1] = (long long)(clock() - start);
}

static void test_clocks_go_forward(void **state) {
  (void)state;
  long long *out = device_array<long long>(128);
  clock_kernel<<<1, 64>>>(out);
  const std::vector<long long> got = download(out, 128);
  for (long long ticks : got) assert_true(ticks > 0 && ticks < 1000000000000);
  const clock_t start = clock(); /* the host's is processor time, in microseconds */
  double sum = 0;
  while (clock() - start < CLOCKS_PER_SEC / 100) sum += 1;
  assert_true(sum > 0 && clock() - start < 10 * CLOCKS_PER_SEC);
}

/* ---- addresses, hints to the compiler ---- */

static __global__ void address_kernel(int *out) {
  __shared__ int cell[4];
  cell[threadIdx.x] = 7 + (int)threadIdx.x;
  __builtin_assume(threadIdx.x < 4);
  int *same = (int *)__cvta_shared_to_generic(__cvta_generic_to_shared(&cell[threadIdx.x]));
  int *global = (int *)__cvta_global_to_generic(__cvta_generic_to_global(out + threadIdx.x));
  *global = *same;
}

static void test_addresses_convert_back(void **state) {
  (void)state;
  int *out = device_array<int>(4);
  address_kernel<<<1, 4>>>(out);
  const std::vector<int> got = download(out, 4);
  for (int i = 0; i < 4; i++) assert_true(got[i] == 7 + i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counting_and_reversing_bits),
      cmocka_unit_test(test_bits_as_another_type),
      cmocka_unit_test(test_words),
      cmocka_unit_test(test_upper_half_of_a_64_bit_product),
      cmocka_unit_test(test_inner_products),
      cmocka_unit_test(test_simd_lanes),
      cmocka_unit_test(test_which_of_two_was_chosen),
      cmocka_unit_test(test_to_integers),
      cmocka_unit_test(test_from_integers),
      cmocka_unit_test(test_double_to_float),
      cmocka_unit_test(test_cache_hints_move_every_type),
      cmocka_unit_test(test_clocks_go_forward),
      cmocka_unit_test(test_addresses_convert_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* simd.h - __vadd4() and its kin: two 16-bit or four 8-bit numbers in a register; and the "DPX" maxima of sums. C++. */
#ifndef SIMT_SIMD_H
#define SIMT_SIMD_H

#ifdef __cplusplus

#include "math.h"

namespace simt {

/* Lane by lane: operation(a's, b's), cut to the lane's width. */
template <class Lane, class Operation>
static inline unsigned each_lane(unsigned a, unsigned b, Operation operation) {
  const int bits = 8 * (int)sizeof(Lane);
  unsigned result = 0;
#pragma GCC unroll 4
  for (int shift = 0; shift < 32; shift += bits) {
    int x = (Lane)(a >> shift), y = (Lane)(b >> shift);
    result |= ((unsigned)operation(x, y) & (0xffffffffu >> (32 - bits))) << shift;
  }
  return result;
}

template <class Lane>
static inline int saturate(int x) {
  const int top = (Lane)-1 < 0 ? (1 << (8 * sizeof(Lane) - 1)) - 1 : (1 << (8 * sizeof(Lane))) - 1;
  const int bottom = (Lane)-1 < 0 ? -top - 1 : 0;
  return x > top ? top : x < bottom ? bottom : x;
}

template <class Lane>
static inline unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
#pragma GCC unroll 4
  for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Lane))
    sum += (unsigned)abs((int)(Lane)(a >> shift) - (int)(Lane)(b >> shift));
  return sum;
}

}  // namespace simt

/* `expression` in x and y; `Two` and `Four` are the lanes' types. */
#define SIMT_LANES(name, Two, Four, expression)                  \
  static inline unsigned name##2(unsigned a, unsigned b) {       \
    typedef Two Lane;                                            \
    return simt::each_lane<Lane>(a, b, [](int x, int y) -> int { \
      (void)sizeof(Lane), (void)y;                               \
      return expression;                                         \
    });                                                          \
  }                                                              \
  static inline unsigned name##4(unsigned a, unsigned b) {       \
    typedef Four Lane;                                           \
    return simt::each_lane<Lane>(a, b, [](int x, int y) -> int { \
      (void)sizeof(Lane), (void)y;                               \
      return expression;                                         \
    });                                                          \
  }
#define SIMT_LANES_S(name, expression) SIMT_LANES(name, short, signed char, expression)
#define SIMT_LANES_U(name, expression) SIMT_LANES(name, unsigned short, unsigned char, expression)

SIMT_LANES_U(__vadd, x + y)
SIMT_LANES_U(__vsub, x - y)
SIMT_LANES_S(__vaddss, simt::saturate<Lane>(x + y))
SIMT_LANES_S(__vsubss, simt::saturate<Lane>(x - y))
SIMT_LANES_U(__vaddus, simt::saturate<Lane>(x + y))
SIMT_LANES_U(__vsubus, simt::saturate<Lane>(x - y))
SIMT_LANES_S(__vmaxs, max(x, y))
SIMT_LANES_S(__vmins, min(x, y))
SIMT_LANES_U(__vmaxu, max(x, y))
SIMT_LANES_U(__vminu, min(x, y))
SIMT_LANES_S(__vabsdiffs, abs(x - y))
SIMT_LANES_U(__vabsdiffu, abs(x - y))
SIMT_LANES_S(__vavgs, (x + y + (x + y >= 0)) >> 1) /* halves away from zero */
SIMT_LANES_U(__vavgu, (x + y + 1) >> 1)
SIMT_LANES_U(__vhaddu, (x + y) >> 1)

/* All ones where it holds; __vset: 1. */
#define SIMT_COMPARE_LANES(suffix, kind, operator) \
  SIMT_LANES_##kind(__vcmp##suffix, -(x operator y)) SIMT_LANES_##kind(__vset##suffix, x operator y)
SIMT_COMPARE_LANES(eq, U, ==)
SIMT_COMPARE_LANES(ne, U, !=)
SIMT_COMPARE_LANES(gts, S, >)
SIMT_COMPARE_LANES(ges, S, >=)
SIMT_COMPARE_LANES(lts, S, <)
SIMT_COMPARE_LANES(les, S, <=)
SIMT_COMPARE_LANES(gtu, U, >)
SIMT_COMPARE_LANES(geu, U, >=)
SIMT_COMPARE_LANES(ltu, U, <)
SIMT_COMPARE_LANES(leu, U, <=)

static inline unsigned __vneg2(unsigned a) { return __vsub2(0, a); }
static inline unsigned __vneg4(unsigned a) { return __vsub4(0, a); }
static inline unsigned __vnegss2(unsigned a) { return __vsubss2(0, a); }
static inline unsigned __vnegss4(unsigned a) { return __vsubss4(0, a); }
static inline unsigned __vabs2(unsigned a) { return __vabsdiffs2(a, 0); }
static inline unsigned __vabs4(unsigned a) { return __vabsdiffs4(a, 0); }
static inline unsigned __vabsss2(unsigned a) { return __vmaxs2(a, __vnegss2(a)); }
static inline unsigned __vabsss4(unsigned a) { return __vmaxs4(a, __vnegss4(a)); }
static inline unsigned __vsads2(unsigned a, unsigned b) { return simt::sum_of_differences<short>(a, b); }
static inline unsigned __vsads4(unsigned a, unsigned b) { return simt::sum_of_differences<signed char>(a, b); }
static inline unsigned __vsadu2(unsigned a, unsigned b) { return simt::sum_of_differences<unsigned short>(a, b); }
static inline unsigned __vsadu4(unsigned a, unsigned b) { return simt::sum_of_differences<unsigned char>(a, b); }

/* ---- DPX: the inner step of dynamic programming. Sums wrap around; _relu: at least 0 ---- */

static inline int __viaddmax_s32(int a, int b, int c) { return max((int)((unsigned)a + (unsigned)b), c); }
static inline int __viaddmin_s32(int a, int b, int c) { return min((int)((unsigned)a + (unsigned)b), c); }
static inline unsigned __viaddmax_u32(unsigned a, unsigned b, unsigned c) { return max(a + b, c); }
static inline unsigned __viaddmin_u32(unsigned a, unsigned b, unsigned c) { return min(a + b, c); }
static inline int __vimax3_s32(int a, int b, int c) { return max(max(a, b), c); }
static inline int __vimin3_s32(int a, int b, int c) { return min(min(a, b), c); }
static inline unsigned __vimax3_u32(unsigned a, unsigned b, unsigned c) { return max(max(a, b), c); }
static inline unsigned __vimin3_u32(unsigned a, unsigned b, unsigned c) { return min(min(a, b), c); }
static inline int __viaddmax_s32_relu(int a, int b, int c) { return max(__viaddmax_s32(a, b, c), 0); }
static inline int __viaddmin_s32_relu(int a, int b, int c) { return max(__viaddmin_s32(a, b, c), 0); }
static inline int __vimax3_s32_relu(int a, int b, int c) { return max(__vimax3_s32(a, b, c), 0); }
static inline int __vimin3_s32_relu(int a, int b, int c) { return max(__vimin3_s32(a, b, c), 0); }
static inline int __vimax_s32_relu(int a, int b) { return max(max(a, b), 0); }
static inline int __vimin_s32_relu(int a, int b) { return max(min(a, b), 0); }

static inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vadd2(a, b), c); }
static inline unsigned __viaddmin_s16x2(unsigned a, unsigned b, unsigned c) { return __vmins2(__vadd2(a, b), c); }
static inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c) { return __vmaxu2(__vadd2(a, b), c); }
static inline unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c) { return __vminu2(__vadd2(a, b), c); }
static inline unsigned __vimax3_s16x2(unsigned a, unsigned b, unsigned c) { return __vmaxs2(__vmaxs2(a, b), c); }
static inline unsigned __vimin3_s16x2(unsigned a, unsigned b, unsigned c) { return __vmins2(__vmins2(a, b), c); }
static inline unsigned __vimax3_u16x2(unsigned a, unsigned b, unsigned c) { return __vmaxu2(__vmaxu2(a, b), c); }
static inline unsigned __vimin3_u16x2(unsigned a, unsigned b, unsigned c) { return __vminu2(__vminu2(a, b), c); }
static inline unsigned __viaddmax_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__viaddmax_s16x2(a, b, c), 0);
}
static inline unsigned __viaddmin_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__viaddmin_s16x2(a, b, c), 0);
}
static inline unsigned __vimax3_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__vimax3_s16x2(a, b, c), 0);
}
static inline unsigned __vimin3_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return __vmaxs2(__vimin3_s16x2(a, b, c), 0);
}
static inline unsigned __vimax_s16x2_relu(unsigned a, unsigned b) { return __vmaxs2(__vmaxs2(a, b), 0); }
static inline unsigned __vimin_s16x2_relu(unsigned a, unsigned b) { return __vmaxs2(__vmins2(a, b), 0); }

/* Which of the two it was: *first is true where a is the answer, ties included. */
#define SIMT_CHOOSE(name, T, operator)          \
  static inline T name(T a, T b, bool *first) { \
    *first = a operator b;                      \
    return *first ? a : b;                      \
  }
SIMT_CHOOSE(__vibmax_s32, int, >=)
SIMT_CHOOSE(__vibmin_s32, int, <=)
SIMT_CHOOSE(__vibmax_u32, unsigned, >=)
SIMT_CHOOSE(__vibmin_u32, unsigned, <=)
#define SIMT_CHOOSE2(name, minmax, compare)                                    \
  static inline unsigned name(unsigned a, unsigned b, bool *high, bool *low) { \
    unsigned which = compare(a, b);                                            \
    *high = which >> 16;                                                       \
    *low = which & 0xffff;                                                     \
    return minmax(a, b);                                                       \
  }
SIMT_CHOOSE2(__vibmax_s16x2, __vmaxs2, __vcmpges2)
SIMT_CHOOSE2(__vibmin_s16x2, __vmins2, __vcmples2)
SIMT_CHOOSE2(__vibmax_u16x2, __vmaxu2, __vcmpgeu2)
SIMT_CHOOSE2(__vibmin_u16x2, __vminu2, __vcmpleu2)

#undef SIMT_LANES
#undef SIMT_LANES_S
#undef SIMT_LANES_U
#undef SIMT_COMPARE_LANES
#undef SIMT_CHOOSE
#undef SIMT_CHOOSE2

#endif /* __cplusplus */

#endif /* SIMT_SIMD_H */

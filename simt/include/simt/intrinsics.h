/* intrinsics.h - CUDA's functions on bits and integers, conversions, loads and stores with a cache hint, fences,
 * clocks. C++.
 *
 * Results are those of the instructions, edge cases included: __clz(0) is 32, a conversion clamps where C is undefined.
 */
#ifndef SIMT_INTRINSICS_H
#define SIMT_INTRINSICS_H

#ifdef __cplusplus

#include <time.h>

#include <type_traits>

#include "convert.h"
#include "core.h"
#include "math.h"
#include "simd.h"

/* ---- the bits of a number as another type ---- */

static inline int __float_as_int(float x) { return simt::bits_as<int>(x); }
static inline unsigned __float_as_uint(float x) { return simt::bits_as<unsigned>(x); }
static inline float __int_as_float(int x) { return simt::bits_as<float>(x); }
static inline float __uint_as_float(unsigned x) { return simt::bits_as<float>(x); }
static inline long long __double_as_longlong(double x) { return simt::bits_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return simt::bits_as<double>(x); }
static inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
static inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

/* ---- counting and moving bits ---- */

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
/* Where the |offset|-th bit of `mask` is, from `base` (which counts) upwards, or downwards for an offset below 0;
 * offset 0: `base` if it is set. 0xffffffff if there is none. */
static inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  int step = offset < 0 ? -1 : 1, wanted = offset < 0 ? -offset : offset;
  if (!offset) return base < 32 && mask >> base & 1 ? base : 0xffffffff;
  for (int bit = (int)base; bit >= 0 && bit < 32; bit += step)
    if (mask >> bit & 1 && --wanted == 0) return (unsigned)bit;
  return 0xffffffff;
}
static inline unsigned __brev(unsigned x) {
  x = __builtin_bswap32(x);
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  return (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
}
static inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
static inline unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
static inline unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }

/* Byte n of the result is byte (selector >> 4n & 7) of y:x. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
#pragma GCC unroll 4
  for (int n = 0; n < 4; n++) result |= (unsigned)(both >> 8 * (selector >> 4 * n & 7) & 0xff) << 8 * n;
  return result;
}

/* high:low shifted; the upper (left) or lower (right) word of it. The shift modulo 32, or at most 32. */
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

/* ---- integer arithmetic ---- */

static inline int __mul24(int x, int y) {
  const int low_x = (int)((unsigned)x << 8) >> 8, low_y = (int)((unsigned)y << 8) >> 8;
  return (int)((unsigned)low_x * (unsigned)low_y);
}
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
static inline unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x) + z;
}
/* Means, rounded down; __rhadd up. */
static inline int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
static inline int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
static inline unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
static inline unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }

/* c + the inner product of four bytes with four bytes; __dp2a: of two 16-bit numbers with the lower or upper two
 * bytes. */
namespace simt {
template <class A, class B, int n>
static inline unsigned inner_product(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < n; i++) c += (unsigned)((int)(A)(a >> 8 * sizeof(A) * i) * (int)(B)(b >> 8 * i));
  return c;
}
}  // namespace simt
#define SIMT_INNER_PRODUCT(name, T, Four, A, B, n, shift)                                     \
  static inline T name(T a, T b, T c) {                                                       \
    return (T)simt::inner_product<A, B, n>((unsigned)a, (unsigned)b >> (shift), (unsigned)c); \
  }
SIMT_INNER_PRODUCT(__dp4a, int, char4, signed char, signed char, 4, 0)
SIMT_INNER_PRODUCT(__dp4a, unsigned, uchar4, unsigned char, unsigned char, 4, 0)
SIMT_INNER_PRODUCT(__dp2a_lo, int, char4, short, signed char, 2, 0)
SIMT_INNER_PRODUCT(__dp2a_hi, int, char4, short, signed char, 2, 16)
SIMT_INNER_PRODUCT(__dp2a_lo, unsigned, uchar4, unsigned short, unsigned char, 2, 0)
SIMT_INNER_PRODUCT(__dp2a_hi, unsigned, uchar4, unsigned short, unsigned char, 2, 16)
#undef SIMT_INNER_PRODUCT
#define SIMT_INNER_PRODUCT_OF(name, T, A, B) \
  static inline T name(A a, B b, T c) { return name(simt::bits_as<T>(a), simt::bits_as<T>(b), c); }
SIMT_INNER_PRODUCT_OF(__dp4a, int, char4, char4)
SIMT_INNER_PRODUCT_OF(__dp4a, unsigned, uchar4, uchar4)
SIMT_INNER_PRODUCT_OF(__dp2a_lo, int, short2, char4)
SIMT_INNER_PRODUCT_OF(__dp2a_hi, int, short2, char4)
SIMT_INNER_PRODUCT_OF(__dp2a_lo, unsigned, ushort2, uchar4)
SIMT_INNER_PRODUCT_OF(__dp2a_hi, unsigned, ushort2, uchar4)
#undef SIMT_INNER_PRODUCT_OF

/* ---- conversions; those to float and double that round in a direction are in math.h ---- */

#define SIMT_TO_INTEGER(From, from, To, to)                                                    \
  static inline To __##from##2##to##_rn(From x) { return simt::to_integer<To>(std::rint(x)); } \
  static inline To __##from##2##to##_rz(From x) { return simt::to_integer<To>(x); }            \
  static inline To __##from##2##to##_ru(From x) { return simt::to_integer<To>(std::ceil(x)); } \
  static inline To __##from##2##to##_rd(From x) { return simt::to_integer<To>(std::floor(x)); }
SIMT_TO_INTEGER(float, float, int, int)
SIMT_TO_INTEGER(float, float, unsigned, uint)
SIMT_TO_INTEGER(float, float, long long, ll)
SIMT_TO_INTEGER(float, float, unsigned long long, ull)
SIMT_TO_INTEGER(double, double, int, int)
SIMT_TO_INTEGER(double, double, unsigned, uint)
SIMT_TO_INTEGER(double, double, long long, ll)
SIMT_TO_INTEGER(double, double, unsigned long long, ull)
#undef SIMT_TO_INTEGER

static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }

/* ---- loads and stores with a cache hint: plain ones, at the caller's line, which the inspector sees ---- */

#define SIMT_AT_CALLER static inline __attribute__((always_inline))

namespace simt {
template <class T>
struct same { /* a parameter that takes no part in deduction, so that arguments convert */
  typedef T type;
};
template <class T>
constexpr bool one_access = std::is_trivially_copyable<T>::value && sizeof(T) <= 32 &&
                            (sizeof(T) & (sizeof(T) - 1)) == 0;
}  // namespace simt

#define SIMT_LOAD(name, barrier)                                                                                     \
  template <class T>                                                                                                 \
  SIMT_AT_CALLER T name(const T *address) {                                                                          \
    static_assert(simt::one_access<T>, #name "() loads a scalar or a vector type such as float4, not a larger one"); \
    barrier;                                                                                                         \
    return *address;                                                                                                 \
  }
#define SIMT_STORE(name)                                                                                              \
  template <class T>                                                                                                  \
  SIMT_AT_CALLER void name(T *address, typename simt::same<T>::type value) {                                          \
    static_assert(simt::one_access<T>, #name "() stores a scalar or a vector type such as float4, not a larger one"); \
    *address = value;                                                                                                 \
  }
SIMT_LOAD(__ldg, )
SIMT_LOAD(__ldca, )
SIMT_LOAD(__ldcg, )
SIMT_LOAD(__ldcs, )
SIMT_LOAD(__ldlu, )
SIMT_LOAD(__ldcv, __asm__ volatile("" : : : "memory")) /* fetched again each time */
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwb)
SIMT_STORE(__stwt)
#undef SIMT_LOAD
#undef SIMT_STORE

/* ---- fences ---- */

/* A block runs on one OS thread: among its own threads only the compiler can reorder. */
SIMT_AT_CALLER void __threadfence_block(void) {
  __asm__ volatile("" : : : "memory");
  simt_inspect_fence(0);
}
SIMT_AT_CALLER void __threadfence(void) {
  __sync_synchronize();
  simt_inspect_fence(1);
}
SIMT_AT_CALLER void __threadfence_system(void) { __threadfence(); }

/* ---- time, traps, hints ---- */

SIMT_AT_CALLER void __nanosleep(unsigned nanoseconds) {
  (void)nanoseconds;
  simt_yield();
}

/* A nanosecond is the emulated GPU's clock cycle. clock() in host code stays the C library's. */
SIMT_AT_CALLER long long clock64(void) { return (long long)simt_clock(); }
extern "C" {
SIMT_INSTEAD clock_t clock(void) noexcept {
  if (simt_in_kernel()) return (clock_t)simt_clock();
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (clock_t)(used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (1000000000 / CLOCKS_PER_SEC));
}
}

__attribute__((noreturn)) static inline void __trap(SIMT_SITE) {
  simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE, "__trap() was called");
}
static inline void __brkpt(SIMT_SITE) {
  simt_kernel_fault(cudaErrorLaunchFailure, SIMT_PASS_SITE, "__brkpt() was reached, and no debugger is attached");
}
static inline void __prof_trigger(int counter) { (void)counter; }

#ifndef __clang__
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif
#define __assume(condition) __builtin_assume(condition)

/* There is one address space: a "shared" or "global" address is the pointer. */
#define SIMT_ADDRESS_SPACE(space)                                                     \
  static inline size_t __cvta_generic_to_##space(const void *p) { return (size_t)p; } \
  static inline void *__cvta_##space##_to_generic(size_t p) { return (void *)p; }
SIMT_ADDRESS_SPACE(shared)
SIMT_ADDRESS_SPACE(global)
SIMT_ADDRESS_SPACE(local)
SIMT_ADDRESS_SPACE(constant)
#undef SIMT_ADDRESS_SPACE

#endif /* __cplusplus */

#endif /* SIMT_INTRINSICS_H */

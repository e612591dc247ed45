/* cuda_fp8.h - numbers of 8 bits: e4m3 (a sign, 4 bits of exponent, 3 of mantissa) and e5m2, their pairs and fours.
 * Host code may use all of it.
 *
 * Conversions to them round to nearest, ties to even. What is larger than the largest number becomes that
 * (__NV_SATFINITE, and all constructors), or infinity, which e4m3 does not have: NaN (__NV_NOSAT). Any NaN becomes
 * 0x7f.
 */
#ifndef SIMT_CUDA_FP8_H
#define SIMT_CUDA_FP8_H
#define __CUDA_FP8_H__

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "simt/not_offered.h"
#include "vector_types.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short int __nv_fp8x2_storage_t; /* the first number in the low bits */
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

#ifdef __cplusplus

#include "simt/convert.h"
#include "vector_functions.h"

namespace simt {

struct Float8 {
  int mantissa, bias, largest, beyond; /* `beyond`: what is too large for `largest`, if that is not taken instead */

  static constexpr Float8 of(__nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? Float8{3, 7, 0x7e, 0x7f} : Float8{2, 15, 0x7b, 0x7c};
  }

  static double power_of_two(int exponent) { return bits_as<double>((unsigned long long)(1023 + exponent) << 52); }

  __nv_fp8_storage_t from_double(double x, __nv_saturation_t saturate) const {
    const unsigned long long bits = bits_as<unsigned long long>(x);
    const double size = fabs(x);
    int code = 0xff, exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (x != x) return 0x7f;
    if (exponent < 1 - bias) exponent = 1 - bias; /* subnormal numbers have the unit of the smallest normal ones */
    if (exponent <= bias + 1) {
      const double units = size * power_of_two(mantissa - exponent);
      const int whole = (int)units;
      const double rest = units - whole;
      code = ((exponent + bias - 1) << mantissa) + whole + (rest > 0.5 || (rest == 0.5 && whole % 2));
    }
    if (code > largest) code = saturate == __NV_SATFINITE ? largest : beyond;
    return (__nv_fp8_storage_t)(code | (int)(bits >> 63 << 7));
  }

  float to_float(__nv_fp8_storage_t code) const {
    const int size = code & 0x7f, exponent = size >> mantissa, digits = size & ((1 << mantissa) - 1);
    if (size > beyond || (size == beyond && bias == 7)) return bits_as<float>(0x7fffffffu);
    const float value = size == beyond ? bits_as<float>(0x7f800000u)
                        : exponent == 0
                            ? (float)(digits * power_of_two(1 - bias - mantissa))
                            : (float)((digits + (1 << mantissa)) * power_of_two(exponent - bias - mantissa));
    return code & 0x80 ? -value : value;
  }
};

}  // namespace simt

/* ---- functions ---- */

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                        __nv_fp8_interpretation_t kind) {
  return simt::Float8::of(kind).from_double(x, saturate);
}
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x, saturate, kind);
}
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate,
                                                         __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(simt::Half::to_float(x.x), saturate, kind);
}
static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                             __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(simt::Bfloat16::to_float(x.x), saturate, kind);
}

#define SIMT_FP8_PAIR(name, single, T)                                                                       \
  static inline __nv_fp8x2_storage_t name(T v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) { \
    return (__nv_fp8x2_storage_t)(single(v.x, saturate, kind) | single(v.y, saturate, kind) << 8);           \
  }
#define SIMT_FP8_PAIR_RAW(name, single, T, Half)                                                               \
  static inline __nv_fp8x2_storage_t name(T v, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {   \
    return (__nv_fp8x2_storage_t)(single(Half{v.x}, saturate, kind) | single(Half{v.y}, saturate, kind) << 8); \
  }
SIMT_FP8_PAIR(__nv_cvt_double2_to_fp8x2, __nv_cvt_double_to_fp8, double2)
SIMT_FP8_PAIR(__nv_cvt_float2_to_fp8x2, __nv_cvt_float_to_fp8, float2)
SIMT_FP8_PAIR_RAW(__nv_cvt_halfraw2_to_fp8x2, __nv_cvt_halfraw_to_fp8, __half2_raw, __half_raw)
SIMT_FP8_PAIR_RAW(__nv_cvt_bfloat16raw2_to_fp8x2, __nv_cvt_bfloat16raw_to_fp8, __nv_bfloat162_raw, __nv_bfloat16_raw)
#undef SIMT_FP8_PAIR
#undef SIMT_FP8_PAIR_RAW

static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half_raw{simt::Half::from_float(simt::Float8::of(kind).to_float(x))};
}
static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half2_raw{__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
                     __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x};
}

/* ---- types ---- */

#define SIMT_FP8(name, kind)                                                                                         \
  struct SIMT_ALIGN(1) __nv_fp8_##name {                                                                             \
    __nv_fp8_storage_t __x;                                                                                          \
    __nv_fp8_##name() = default;                                                                                     \
    explicit __nv_fp8_##name(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) {}                     \
    explicit __nv_fp8_##name(float x) : __nv_fp8_##name((double)x) {}                                                \
    explicit __nv_fp8_##name(__half x) : __nv_fp8_##name((double)__half2float(x)) {}                                 \
    explicit __nv_fp8_##name(__nv_bfloat16 x) : __nv_fp8_##name((double)__bfloat162float(x)) {}                      \
    explicit __nv_fp8_##name(short x) : __nv_fp8_##name((double)x) {}                                                \
    explicit __nv_fp8_##name(unsigned short x) : __nv_fp8_##name((double)x) {}                                       \
    explicit __nv_fp8_##name(int x) : __nv_fp8_##name((double)x) {}                                                  \
    explicit __nv_fp8_##name(unsigned x) : __nv_fp8_##name((double)x) {}                                             \
    explicit __nv_fp8_##name(long x) : __nv_fp8_##name((double)x) {}                                                 \
    explicit __nv_fp8_##name(unsigned long x) : __nv_fp8_##name((double)x) {}                                        \
    explicit __nv_fp8_##name(long long x) : __nv_fp8_##name((double)x) {}                                            \
    explicit __nv_fp8_##name(unsigned long long x) : __nv_fp8_##name((double)x) {}                                   \
    explicit operator float() const { return simt::Float8::of(kind).to_float(__x); }                                 \
    explicit operator double() const { return (float)*this; }                                                        \
    explicit operator __half() const { return __half(__nv_cvt_fp8_to_halfraw(__x, kind)); }                          \
    explicit operator __nv_bfloat16() const { return __float2bfloat16((float)*this); }                               \
    explicit operator bool() const { return (__x & 0x7f) != 0; }                                                     \
    explicit operator char() const { return simt::to_integer<char>((float)*this); }                                  \
    explicit operator signed char() const { return simt::to_integer<signed char>((float)*this); }                    \
    explicit operator unsigned char() const { return simt::to_integer<unsigned char>((float)*this); }                \
    explicit operator short() const { return simt::to_integer<short>((float)*this); }                                \
    explicit operator unsigned short() const { return simt::to_integer<unsigned short>((float)*this); }              \
    explicit operator int() const { return simt::to_integer<int>((float)*this); }                                    \
    explicit operator unsigned() const { return simt::to_integer<unsigned>((float)*this); }                          \
    explicit operator long() const { return simt::to_integer<long>((float)*this); }                                  \
    explicit operator unsigned long() const { return simt::to_integer<unsigned long>((float)*this); }                \
    explicit operator long long() const { return simt::to_integer<long long>((float)*this); }                        \
    explicit operator unsigned long long() const { return simt::to_integer<unsigned long long>((float)*this); }      \
  };                                                                                                                 \
  struct SIMT_ALIGN(2) __nv_fp8x2_##name {                                                                           \
    __nv_fp8x2_storage_t __x;                                                                                        \
    __nv_fp8x2_##name() = default;                                                                                   \
    explicit __nv_fp8x2_##name(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, kind)) {}               \
    explicit __nv_fp8x2_##name(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, kind)) {}                 \
    explicit __nv_fp8x2_##name(__half2 v) : __nv_fp8x2_##name(__half22float2(v)) {}                                  \
    explicit __nv_fp8x2_##name(__nv_bfloat162 v) : __nv_fp8x2_##name(__bfloat1622float2(v)) {}                       \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, kind)); }                     \
    explicit operator float2() const {                                                                               \
      const simt::Float8 format = simt::Float8::of(kind);                                                            \
      return make_float2(format.to_float((__nv_fp8_storage_t)__x), format.to_float((__nv_fp8_storage_t)(__x >> 8))); \
    }                                                                                                                \
  };                                                                                                                 \
  struct SIMT_ALIGN(4) __nv_fp8x4_##name {                                                                           \
    __nv_fp8x4_storage_t __x;                                                                                        \
    __nv_fp8x4_##name() = default;                                                                                   \
    explicit __nv_fp8x4_##name(double4 v)                                                                            \
        : __x(__nv_cvt_double2_to_fp8x2(make_double2(v.x, v.y), __NV_SATFINITE, kind) |                              \
              (unsigned)__nv_cvt_double2_to_fp8x2(make_double2(v.z, v.w), __NV_SATFINITE, kind) << 16) {}            \
    explicit __nv_fp8x4_##name(float4 v)                                                                             \
        : __x(__nv_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __NV_SATFINITE, kind) |                                \
              (unsigned)__nv_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __NV_SATFINITE, kind) << 16) {}              \
    explicit __nv_fp8x4_##name(__half2 low, __half2 high)                                                            \
        : __x(__nv_fp8x2_##name(low).__x | (unsigned)__nv_fp8x2_##name(high).__x << 16) {}                           \
    explicit __nv_fp8x4_##name(__nv_bfloat162 low, __nv_bfloat162 high)                                              \
        : __x(__nv_fp8x2_##name(low).__x | (unsigned)__nv_fp8x2_##name(high).__x << 16) {}                           \
    explicit operator float4() const {                                                                               \
      const simt::Float8 format = simt::Float8::of(kind);                                                            \
      return make_float4(format.to_float((__nv_fp8_storage_t)__x), format.to_float((__nv_fp8_storage_t)(__x >> 8)),  \
                         format.to_float((__nv_fp8_storage_t)(__x >> 16)),                                           \
                         format.to_float((__nv_fp8_storage_t)(__x >> 24)));                                          \
    }                                                                                                                \
  };
SIMT_FP8(e4m3, __NV_E4M3)
SIMT_FP8(e5m2, __NV_E5M2)
#undef SIMT_FP8

#define SIMT_NO_E8M0 "scaling factors of 8 bits (e8m0) are not supported: they belong to compute capability 10.0"
SIMT_NOT_OFFERED_TYPE(__nv_fp8_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_TYPE(__nv_fp8x2_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_TYPE(__nv_fp8x4_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_FUNCTION(__nv_fp8_storage_t, __nv_cvt_float_to_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_FUNCTION(__nv_fp8_storage_t, __nv_cvt_double_to_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_FUNCTION(__nv_fp8_storage_t, __nv_cvt_bfloat16raw_to_e8m0, SIMT_NO_E8M0);
SIMT_NOT_OFFERED_FUNCTION(__nv_fp8_storage_t, __nv_cvt_e8m0_to_bf16raw, SIMT_NO_E8M0);

#endif /* __cplusplus */

#endif /* SIMT_CUDA_FP8_H */

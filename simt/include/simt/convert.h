/* convert.h - numbers as other numbers: bits, integers with the GPU's clamping, and the two 16-bit formats. C++. */
#ifndef SIMT_CONVERT_H
#define SIMT_CONVERT_H

#ifdef __cplusplus

#include <math.h>
#include <string.h>

namespace simt {

/* The same bits as another type. */
template <class To, class From>
static inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

/* As PTX's cvt: clamped to the type's range; NaN gives 0, or the top bit alone where one of the types has 64 bits. */
template <class To, class From>
static inline To to_integer(From x) {
  const int bits = 8 * (int)sizeof(To);
  const bool is_signed = (To)-1 < 0;
  const To top = is_signed ? (To)(((unsigned long long)1 << (bits - 1)) - 1) : (To)-1;
  const From limit = (From)((unsigned long long)1 << (bits - 1)) * (is_signed ? 1 : 2);
  if (x != x) return sizeof(To) == 8 || sizeof(From) == 8 ? (To)((unsigned long long)1 << (bits - 1)) : 0;
  if (x >= limit) return top;
  if (x <= (is_signed ? -limit : 0)) return (To)(is_signed ? -top - 1 : 0);
  return (To)x;
}

#ifdef __F16C__ /* the processor converts a half itself; the results are the same, four times as fast */
typedef short Shorts __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(16)));
#endif

enum Rounding { TO_NEAREST, TO_ZERO, UP, DOWN };

/* A 16-bit float: a sign, an exponent, `mantissa` bits. Numbers are held as an unsigned short. */
template <int mantissa, int bias>
struct Float16 {
  static constexpr unsigned short infinity = 0x8000 - (1 << mantissa), nan = 0x7fff; /* the NaN that the GPU makes */

  /* To nearest, ties to even; from double, so that one rounding does for a float as well. */
  static inline unsigned short from_double(double x) {
    const unsigned long long bits = bits_as<unsigned long long>(x), size = bits & ~0ull >> 1;
    const unsigned short sign = (unsigned short)(bits >> 48 & 0x8000);
    if (size < (1024ull - bias) << 52) { /* smaller than any normal number: the sum rounds to a multiple of 1 ulp */
      const double unit = bits_as<double>((1024ull - bias - mantissa + 52) << 52);
      return sign | (unsigned short)bits_as<unsigned long long>(bits_as<double>(size) + unit);
    }
    if (size >= (1024ull + bias) << 52) return size > 0x7ffull << 52 ? nan : sign | infinity;
    const unsigned long long odd = size >> (52 - mantissa) & 1;
    const unsigned long long rounded = size - ((1023ull - bias) << 52) + (1ull << (51 - mantissa)) - 1 + odd;
    return sign | (unsigned short)(rounded >> (52 - mantissa)); /* the carry may well reach infinity */
  }

  static inline float to_float(unsigned short bits) {
#ifdef __F16C__
    if (bias == 15) return __builtin_ia32_vcvtph2ps((Shorts){(short)bits})[0];
#endif
    const unsigned size = (bits & 0x7fffu) << (23 - mantissa), sign = (bits & 0x8000u) << 16;
    if (bias == 127) return bits_as<float>(sign | size);
    if ((bits & 0x7fff) >= infinity) return bits_as<float>(sign | 0xffu << 23 | size);
    /* The exponent's bias is a factor; a subnormal number's too. */
    return bits_as<float>(sign | bits_as<unsigned>(bits_as<float>(size) * bits_as<float>((254u - bias) << 23)));
  }

  static inline unsigned short from_float(float x) {
#ifdef __F16C__
    if (bias == 15) return x != x ? nan : (unsigned short)__builtin_ia32_vcvtps2ph((Floats){x}, 0)[0];
#endif
    return from_double(x);
  }

  /* In a direction: the nearest, and one step back where that was the wrong way. */
  static inline unsigned short from_double(double x, Rounding direction) {
    const unsigned short bits = from_double(x);
    const double size = fabs(x), found = fabs((double)to_float(bits));
    const bool outwards = direction == (x < 0 ? DOWN : UP);
    if (direction == TO_NEAREST || found == size || x != x) return bits;
    if (outwards) return found < size ? bits + 1 : bits;
    return found > size ? bits - 1 : bits;
  }

  /* Integers beyond 53 bits: what a double cannot hold is or-ed into its last bit, which then tells "a little more". */
  template <class Integer>
  static inline unsigned short from_integer(Integer value, Rounding direction) {
    const unsigned long long bits = (unsigned long long)value, size = value < 0 ? 0 - bits : bits;
    const double x = size >> 53 ? (double)(size >> 11 | ((size & 0x7ff) != 0)) * 0x1p11 : (double)size;
    return from_double(value < 0 ? -x : x, direction);
  }

  /* x * y + z, rounded once. The product is exact in double; of the sum the part that is lost makes the last bit odd.
   * */
  static inline unsigned short fma(unsigned short x, unsigned short y, unsigned short z) {
    const double product = (double)to_float(x) * (double)to_float(y), c = to_float(z), sum = product + c;
    const double back = sum - product, lost = (product - (sum - back)) + (c - back);
    unsigned long long bits = bits_as<unsigned long long>(sum);
    if (lost != 0 && !(bits & 1) && fabs(sum) <= 0x1p1023) bits += (lost > 0) == (sum > 0) ? 1 : -1;
    return from_double(bits_as<double>(bits));
  }
};

typedef Float16<10, 15> Half;
typedef Float16<7, 127> Bfloat16;

}  // namespace simt

#endif /* __cplusplus */

#endif /* SIMT_CONVERT_H */

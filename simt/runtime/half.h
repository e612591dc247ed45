/* half.h - numbers of 16 bits as the host has them: half and bfloat16 to float and back. */
#ifndef SIMT_HALF_H
#define SIMT_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float half_to_float(uint16_t half) {
  uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
  float number;
  if (bits >= 0x7c00u << 13) { /* infinity, NaN */
    bits += 0x70000000;
    memcpy(&number, &bits, sizeof number);
  } else {
    memcpy(&number, &bits, sizeof number);
    number *= 0x1p112f; /* moves the exponent; subnormal numbers come out right, too */
  }
  memcpy(&bits, &number, sizeof bits);
  bits |= sign;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* Rounded to nearest, ties to even. */
static inline uint16_t float_to_half(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return 0x7fff;                     /* NaN */
  if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
  if (bits < 0x38800000) {                                  /* below 2^-14: the addition rounds to multiples of 2^-24 */
    float shifted = fabsf(number) + 0.5f;
    memcpy(&bits, &shifted, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static inline float bfloat_to_float(uint16_t bfloat) {
  uint32_t bits = (uint32_t)bfloat << 16;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static inline uint16_t float_to_bfloat(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif /* SIMT_HALF_H */

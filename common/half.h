/* half.h - the two number types of 16 bits, in plain C: what a processor without them computes, bit by bit.
 *
 *     type    sign  exponent  fraction   largest    smallest normal   one part in (rounding)
 *     float      1         8        23   3.4e38     1.2e-38           2^24
 *     bf16       1         8         7   3.4e38     1.2e-38           2^8
 *     fp16       1         5        10   65504      6.1e-5            2^11
 *
 * half_narrow() rounds to the nearest number, halves to even, as the conversions of cuda_bf16.h and cuda_fp16.h do;
 * what is beyond the largest becomes infinite. half_widen() is exact. Arrays are of uint16_t here: which type they hold
 * stands beside them.
 */
#ifndef COMMON_HALF_H
#define COMMON_HALF_H

#include <stdint.h>
#include <string.h>

#include "common/dtype.h"

static inline uint32_t half_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float half_bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The upper half of a float. To add one less than half a unit of it, and one more where it is odd, rounds to even. */
static inline uint16_t bf16_narrow(float x) {
  const uint32_t bits = half_float_bits(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF; /* NaN */
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float bf16_widen(uint16_t x) { return half_bits_float((uint32_t)x << 16); }

static inline uint16_t fp16_narrow(float x) {
  const uint32_t bits = half_float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return 0x7FFF;                     /* NaN */
  if (size >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* 65520 and above: infinite */
  if (size < 0x38800000) {                                  /* below 2^-14: a multiple of 2^-24, the unit of 0.5f */
    const float shifted = half_bits_float(size) + 0.5f;
    return (uint16_t)(sign | (half_float_bits(shifted) - 0x3F000000));
  }
  return (uint16_t)(sign | (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13);
}

static inline float fp16_widen(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, size = x & 0x7FFF;
  if (size >= 0x7C00) return half_bits_float(sign | 0x7F800000 | size << 13); /* infinite, or NaN */
  if (size >= 0x0400) return half_bits_float(sign | ((size << 13) + 0x38000000));
  const float small = (float)size * 0x1p-24f;
  return sign ? -small : small;
}

static inline uint16_t half_narrow(DType type, float x) { return type == DTYPE_FP16 ? fp16_narrow(x) : bf16_narrow(x); }
static inline float half_widen(DType type, uint16_t x) { return type == DTYPE_FP16 ? fp16_widen(x) : bf16_widen(x); }
static inline float half_round(DType type, float x) { return half_widen(type, half_narrow(type, x)); }

/* ---------------------------------------------------------------------------------------------------------- layout
 *
 * Tensor cores multiply runs of neighbours, 16 bytes at a time. So an array of 16 bits has the channels last,
 * (N,H,W,C), and as many zeros behind the C channels of a pixel as make them a multiple of HALF_RUN: each pixel begins
 * at a multiple of 16 bytes. Features are the channels of one pixel. */

enum { HALF_RUN = 8 };

static inline int half_channels(int channels) { return (channels + HALF_RUN - 1) / HALF_RUN * HALF_RUN; }

/* x (N,C,pixels) float -> y (N,pixels,half_channels(C)) */
static inline void half_from_nchw_cpu(uint16_t *y, const float *x, int n, int channels, int pixels, DType type) {
  const int all = half_channels(channels);
#pragma omp parallel for schedule(static) if ((size_t)n * pixels > 4096)
  for (int i = 0; i < n; i++)
    for (int p = 0; p < pixels; p++)
      for (int c = 0; c < all; c++)
        y[((size_t)i * pixels + p) * all + c] =
            c < channels ? half_narrow(type, x[((size_t)i * channels + c) * pixels + p]) : 0;
}

/* The inverse. */
static inline void half_to_nchw_cpu(float *y, const uint16_t *x, int n, int channels, int pixels, DType type) {
  const int all = half_channels(channels);
#pragma omp parallel for schedule(static) if ((size_t)n * pixels > 4096)
  for (int i = 0; i < n; i++)
    for (int p = 0; p < pixels; p++)
      for (int c = 0; c < channels; c++)
        y[((size_t)i * channels + c) * pixels + p] = half_widen(type, x[((size_t)i * pixels + p) * all + c]);
}

static inline void half_add_cpu(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t count, DType type) {
  for (size_t i = 0; i < count; i++) y[i] = half_narrow(type, half_widen(type, a[i]) + half_widen(type, b[i]));
}

#endif /* COMMON_HALF_H */

/* cpu_int8_portable.c - the kernels of cpu_int8_body.h for vectors of four sums: SSE2, or any processor. */

#include <stdint.h>

#define CPU_LANES 4
#define INT8_TABLE cpu_int8_portable
#define INT8_TABLE_NAME "portable"
#define INT8_ELEMENT int16_t
#define INT8_ZERO 0
#if defined(__SSE2__)
#include <emmintrin.h>
#define INT8_DOT(sum, w, x) ((sum) + (I)_mm_madd_epi16((__m128i)(w), (__m128i)(x)))
#else
#define INT8_LOW(v) ((v) << 16 >> 16) /* the lower 16 bits of each lane, with their sign */
#define INT8_DOT(sum, w, x) ((sum) + INT8_LOW(w) * INT8_LOW(x) + ((w) >> 16) * ((x) >> 16))
#endif
#define INT8_FMA(a, b, c) int8_fma_portable(a, b, c)

typedef float Int8Four __attribute__((vector_size(16), aligned(4), may_alias));

#include <math.h>

static inline Int8Four int8_fma_portable(Int8Four a, Int8Four b, Int8Four c) {
  return (Int8Four){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]), fmaf(a[3], b[3], c[3])};
}

#define INT8_WIDEST \
  { 0, 2, 0, 0, 0 }
#define INT8_TWO_ROWS 0
#define INT8_KERNELS(X) X(1, 1) X(1, 2)
#define INT8_KERNELS_ROWS(X)
#include "phase5_production/09_int8/cpu_int8_body.h"

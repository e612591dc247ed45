/* cpu_int8_avx512vnni.c - the kernels of cpu_int8_body.h for AVX-512 with VNNI: vpdpbusd adds four products to each of 16 sums. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v4,avx512vnni,prefer-vector-width=512")

#include <immintrin.h>
#include <stdint.h>

#define CPU_LANES 16
#define INT8_TABLE cpu_int8_avx512vnni
#define INT8_TABLE_NAME "avx512vnni"
#define INT8_ELEMENT uint8_t
#define INT8_ZERO 128
#define INT8_DOT(sum, w, x) (I) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(x), (__m512i)(w))
#define INT8_FMA(a, b, c) (F) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define INT8_WIDEST \
  { 0, 14, 14, 0, 6 }
#define INT8_TWO_ROWS 2
#define INT8_KERNELS(X)                                                                                                \
  X(1, 1)                                                                                                              \
  X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6) X(1, 7) X(1, 8) X(1, 9) X(1, 10) X(1, 11) X(1, 12) X(1, 13) X(1, 14) X(2, 1) \
      X(2, 2) X(2, 3) X(2, 4) X(2, 5) X(2, 6) X(2, 7) X(2, 8) X(2, 9) X(2, 10) X(2, 11) X(2, 12) X(2, 13) X(2, 14)     \
          X(4, 1) X(4, 2) X(4, 3) X(4, 4) X(4, 5) X(4, 6)
#define INT8_KERNELS_ROWS(X) X(2, 2) X(2, 4) X(2, 6) X(2, 8) X(2, 10) X(2, 12) X(2, 14)
#include "phase5_production/09_int8/cpu_int8_body.h"
#endif

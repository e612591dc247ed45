/* cpu_int8_avx512vnni.c - the kernels of cpu_int8_body.h for AVX-512 with VNNI: vpdpbusd adds four products to each
 * of 16 sums. */
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
#define INT8_KERNELS(X) CPU_TILES_14(X, 1) CPU_TILES_14(X, 2) CPU_TILES_6(X, 4)
#define INT8_KERNELS_ROWS(X) CPU_TILES_TWO_ROWS(X, 2)
#include "phase5_production/09_int8/cpu_int8_body.h"
#endif

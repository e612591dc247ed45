/* cpu_int8_avx512.c - the kernels of cpu_int8_body.h for AVX-512 without VNNI: vpmaddwd, and a sum. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")

#include <immintrin.h>
#include <stdint.h>

#define CPU_LANES 16
#define INT8_TABLE cpu_int8_avx512
#define INT8_TABLE_NAME "avx512"
#define INT8_ELEMENT int16_t
#define INT8_ZERO 0
#define INT8_DOT(sum, w, x) ((sum) + (I)_mm512_madd_epi16((__m512i)(w), (__m512i)(x)))
#define INT8_FMA(a, b, c) (F) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define INT8_WIDEST \
  { 0, 14, 14, 0, 6 }
#define INT8_TWO_ROWS 2
#define INT8_KERNELS(X) CPU_TILES_14(X, 1) CPU_TILES_14(X, 2) CPU_TILES_6(X, 4)
#define INT8_KERNELS_ROWS(X) CPU_TILES_TWO_ROWS(X, 2)
#include "phase5_production/09_int8/cpu_int8_body.h"
#endif

/* cpu_int8_avx2.c - the kernels of cpu_int8_body.h for AVX2: vpmaddwd, and a sum. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v3")

#include <immintrin.h>
#include <stdint.h>

#define CPU_LANES 8
#define INT8_TABLE cpu_int8_avx2
#define INT8_TABLE_NAME "avx2"
#define INT8_ELEMENT int16_t
#define INT8_ZERO 0
#define INT8_DOT(sum, w, x) ((sum) + (I)_mm256_madd_epi16((__m256i)(w), (__m256i)(x)))
#define INT8_FMA(a, b, c) (F) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define INT8_WIDEST \
  { 0, 6, 0, 0, 0 }
#define INT8_TWO_ROWS 0
#define INT8_KERNELS(X) CPU_TILES_6(X, 1)
#define INT8_KERNELS_ROWS(X)
#include "phase5_production/09_int8/cpu_int8_body.h"
#endif

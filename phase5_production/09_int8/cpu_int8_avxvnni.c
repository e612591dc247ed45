/* cpu_int8_avxvnni.c - the kernels of cpu_int8_body.h for AVX2 with VNNI: vpdpbusd adds four products to each of 8
 * sums. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v3,avxvnni")

#include <immintrin.h>
#include <stdint.h>

#define CPU_LANES 8
#define INT8_TABLE cpu_int8_avxvnni
#define INT8_TABLE_NAME "avxvnni"
#define INT8_ELEMENT uint8_t
#define INT8_ZERO 128
#define INT8_DOT(sum, w, x) (I) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(x), (__m256i)(w))
#define INT8_FMA(a, b, c) (F) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define INT8_WIDEST \
  { 0, 6, 0, 0, 0 }
#define INT8_TWO_ROWS 0
#define INT8_KERNELS(X) CPU_TILES_6(X, 1)
#define INT8_KERNELS_ROWS(X)
#include "phase5_production/09_int8/cpu_int8_body.h"
#endif

/* cpu_conv2d_avx2.c - the kernels of cpu_conv2d_body.h for AVX2 with FMA: 12 sums, 2 weights and a number of x in 16
 * registers. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v3")

#include <immintrin.h>

#define CPU_LANES 8
#define CPU_TABLE cpu_tile_avx2
#define CPU_TABLE_NAME "avx2"
#define CPU_WIDEST \
  { 0, 6, 0, 0, 0 }
#define CPU_KERNELS(X) CPU_TILES_6(X, 1)
#define CPU_TWO_ROWS 0
#define CPU_KERNELS_ROWS(X)
#define CPU_CLIP(v, least, most) (V) _mm256_min_ps((__m256)(most), _mm256_max_ps((__m256)(least), (__m256)(v)))
#include "phase5_production/08_engine/cpu_conv2d_body.h"
#endif

/* cpu_conv2d_avx512.c - the kernels of cpu_conv2d_body.h for AVX-512: 28 sums, 2 weights and a number of x in 32
 * registers. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")

#include <immintrin.h>

#define CPU_LANES 16
#define CPU_TABLE cpu_tile_avx512
#define CPU_TABLE_NAME "avx512"
#define CPU_WIDEST \
  { 0, 14, 14, 0, 6 }
#define CPU_TWO_ROWS 2
#define CPU_KERNELS(X) CPU_TILES_14(X, 1) CPU_TILES_14(X, 2) CPU_TILES_6(X, 4)
#define CPU_KERNELS_ROWS(X) CPU_TILES_TWO_ROWS(X, 2)
#define CPU_CLIP(v, least, most) (V) _mm512_min_ps((__m512)(most), _mm512_max_ps((__m512)(least), (__m512)(v)))
#include "phase5_production/08_engine/cpu_conv2d_body.h"
#endif

/* cpu_conv2d_avx2.c - the kernels of cpu_conv2d_body.h for AVX2 with FMA: 12 sums, 2 weights and a number of x in 16 registers. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v3")

#define CPU_LANES 8
#define CPU_TABLE cpu_tile_avx2
#define CPU_TABLE_NAME "avx2"
#define CPU_WIDEST \
  { 0, 6, 0, 0, 0 }
#define CPU_KERNELS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6)
#define CPU_TWO_ROWS 0
#define CPU_KERNELS_ROWS(X)
#include "phase5_production/08_engine/cpu_conv2d_body.h"
#endif

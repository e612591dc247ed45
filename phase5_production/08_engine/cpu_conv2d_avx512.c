/* cpu_conv2d_avx512.c - the kernels of cpu_conv2d_body.h for AVX-512: 28 sums, 2 weights and a number of x in 32
 * registers. */
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")

#define CPU_LANES 16
#define CPU_TABLE cpu_tile_avx512
#define CPU_TABLE_NAME "avx512"
#define CPU_WIDEST \
  { 0, 14, 14, 0, 6 }
#define CPU_TWO_ROWS 2
#define CPU_KERNELS(X)                                                                                                 \
  X(1, 1)                                                                                                              \
  X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(1, 6) X(1, 7) X(1, 8) X(1, 9) X(1, 10) X(1, 11) X(1, 12) X(1, 13) X(1, 14) X(2, 1) \
      X(2, 2) X(2, 3) X(2, 4) X(2, 5) X(2, 6) X(2, 7) X(2, 8) X(2, 9) X(2, 10) X(2, 11) X(2, 12) X(2, 13) X(2, 14)     \
          X(4, 1) X(4, 2) X(4, 3) X(4, 4) X(4, 5) X(4, 6)
#define CPU_KERNELS_ROWS(X) X(2, 2) X(2, 4) X(2, 6) X(2, 8) X(2, 10) X(2, 12) X(2, 14)
#include "phase5_production/08_engine/cpu_conv2d_body.h"
#endif

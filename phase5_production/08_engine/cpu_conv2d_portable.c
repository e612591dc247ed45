/* cpu_conv2d_portable.c - the kernels of cpu_conv2d_body.h for vectors of four floats: 8 sums, 4 weights and a
 * number of x. */
#define CPU_LANES 4
#define CPU_TABLE cpu_tile_portable
#define CPU_TABLE_NAME "portable"
#define CPU_WIDEST \
  { 0, 2, 0, 0, 0 }
#define CPU_KERNELS(X) X(1, 1) X(1, 2)
#define CPU_TWO_ROWS 0
#define CPU_KERNELS_ROWS(X)
#include "phase5_production/08_engine/cpu_conv2d_body.h"

/* bfloat16.cuh - the number format of lesson 15: the upper half of a float. It has a sign, 8 bits of exponent and 7 of
 * fraction: the range of a float with two to three decimal digits.
 *
 * CUDA's type for it is __nv_bfloat16. Here it is 16 bits in a uint16_t, converted by hand, for host and device.
 *
 *   bfloat16_round  the nearest bfloat16
 *   bfloat16_widen  the same number as a float: exact
 *   bfloat16_mean   out (n) = (x (n) + y (n)) / 2: about half of the means are halfway between two neighbours
 */
#ifndef PHASE1_BUILDING_BLOCKS_BFLOAT16_CUH
#define PHASE1_BUILDING_BLOCKS_BFLOAT16_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/check.h"

static __host__ __device__ __forceinline__ float bfloat16_widen(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

/* Of two equally near numbers, the one whose last bit is 0. */
static __host__ __device__ __forceinline__ uint16_t bfloat16_round(float x) {
  uint32_t bits;
  uint16_t rounded = 0;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return 0x7FFF; /* NaN; rounding its bits could make it infinite, or 0 */
  // >>> exercise bfloat16_round: round the 32 bits of a float to their upper 16, to the nearest, halves to even
  // hint: (uint16_t)(bits >> 16) is right if the lower half is 0; otherwise it is the neighbour towards zero
  // hint: adding 0x8000 first carries if the lower half is 0x8000 or more; at 0x8000 only an odd number may carry
  // hint: rounded = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  rounded = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  // <<< exercise
  return rounded;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Means. The definition compares both neighbours. */

static inline void bfloat16_mean_cpu(uint16_t *out, const uint16_t *x, const uint16_t *y, int n) {
  for (int i = 0; i < n; i++) {
    double mean = ((double)bfloat16_widen(x[i]) + bfloat16_widen(y[i])) / 2;
    float near = (float)mean; /* exact for two numbers of 8 bits and similar size */
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    uint16_t inner = (uint16_t)(bits >> 16), outer = (uint16_t)(inner + 1);
    double below = fabs(near) - fabs((double)bfloat16_widen(inner)),
           above = fabs((double)bfloat16_widen(outer)) - fabs(near);
    out[i] = below < above || (below == above && inner % 2 == 0) ? inner : outer;
  }
}

static __global__ void bfloat16_mean_kernel(uint16_t *out, const uint16_t *x, const uint16_t *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = bfloat16_round((bfloat16_widen(x[i]) + bfloat16_widen(y[i])) / 2);
}

static inline void bfloat16_mean(uint16_t *out, const uint16_t *x, const uint16_t *y, int n) {
  bfloat16_mean_kernel<<<(unsigned)(n + 255) / 256, 256>>>(out, x, y, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_BFLOAT16_CUH */

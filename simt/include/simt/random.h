/* random.h - the generators behind curand.h and curand_kernel.h, and the distributions made of their bits. C and C++.
 *
 * Written from the papers; seeds and scale factors were chosen so that the sequences equal cuRAND's bit for bit:
 *
 *     Philox4x32-10  Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011)
 *     XORWOW         Marsaglia: Xorshift RNGs, section 3.1 (2003), plus a Weyl sequence of step 362437
 *     MRG32k3a       L'Ecuyer: Good parameters and implementations for combined multiple recursive generators (1999)
 *     normals        Box, Muller: A note on the generation of random normal deviates (1958)
 *     Poisson        Knuth: The Art of Computer Programming 2, 3.4.1; Hoermann: The transformed rejection method (1993)
 *
 * Philox needs no state but a counter, so any of its numbers can be had at once. The others must be stepped through;
 * skipping n steps is a multiplication by the n-th power of the step's matrix (simt/runtime/random.c).
 */
#ifndef SIMT_RANDOM_H
#define SIMT_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "vector_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Goes count * 2^log2_distance steps ahead. */
void simt_xorwow_skip(uint32_t v[5], uint64_t count, int log2_distance);
void simt_mrg32k3a_skip(uint32_t s1[3], uint32_t s2[3], uint64_t count, int log2_distance);

#ifdef __cplusplus
}
#endif

#define SIMT_XORWOW_WEYL 362437u
#define SIMT_XORWOW_LOG2_SUBSEQUENCE 67 /* cuRAND's distance between two subsequences is 2^67 numbers */
#define SIMT_MRG_M1 4294967087u         /* 2^32 - 209 */
#define SIMT_MRG_M2 4294944443u         /* 2^32 - 22853 */
#define SIMT_MRG_A12 1403580u
#define SIMT_MRG_A13 810728u /* subtracted, as is A23 */
#define SIMT_MRG_A21 527612u
#define SIMT_MRG_A23 1370589u
#define SIMT_MRG_LOG2_SUBSEQUENCE 76
#define SIMT_MRG_LOG2_SEQUENCE 127

/* Ten rounds: 128 random bits for each counter and key. */
static inline uint4 simt_philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)0xD2511F53u * counter.x, b = (uint64_t)0xCD9E8D57u * counter.z;
    uint4 next = {(uint32_t)(b >> 32) ^ counter.y ^ key.x, (uint32_t)b, (uint32_t)(a >> 32) ^ counter.w ^ key.y,
                  (uint32_t)a};
    counter = next;
    key.x += 0x9E3779B9u; /* the golden ratio */
    key.y += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  return counter;
}

/* v[0] is the oldest word, Marsaglia's x; d counts in steps of the Weyl constant. */
static inline uint32_t simt_xorwow(uint32_t v[5], uint32_t *d) {
  uint32_t t = v[0] ^ (v[0] >> 2);
  v[0] = v[1];
  v[1] = v[2];
  v[2] = v[3];
  v[3] = v[4];
  v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
  *d += SIMT_XORWOW_WEYL;
  return v[4] + *d;
}

/* The paper's starting values, disturbed by the two scrambled halves of the seed. */
static inline void simt_xorwow_seed(uint64_t seed, uint32_t v[5], uint32_t *d) {
  uint32_t low = 1099087573u * ((uint32_t)seed ^ 0xaad26b49u);
  uint32_t high = 2591861531u * ((uint32_t)(seed >> 32) ^ 0xf7dcefddu);
  v[0] = 123456789u + low;
  v[1] = 362436069u ^ low;
  v[2] = 521288629u + high;
  v[3] = 88675123u ^ high;
  v[4] = 5783321u + low;
  *d = 6615241u + high + low;
}

/* A number in 1 .. SIMT_MRG_M1. */
static inline uint32_t simt_mrg32k3a(uint32_t s1[3], uint32_t s2[3]) {
  uint32_t p1 =
      (uint32_t)(((uint64_t)SIMT_MRG_A12 * s1[1] + (uint64_t)SIMT_MRG_A13 * (SIMT_MRG_M1 - s1[0])) % SIMT_MRG_M1);
  uint32_t p2 =
      (uint32_t)(((uint64_t)SIMT_MRG_A21 * s2[2] + (uint64_t)SIMT_MRG_A23 * (SIMT_MRG_M2 - s2[0])) % SIMT_MRG_M2);
  s1[0] = s1[1];
  s1[1] = s1[2];
  s1[2] = p1;
  s2[0] = s2[1];
  s2[1] = s2[2];
  s2[2] = p2;
  return p1 > p2 ? p1 - p2 : p1 - p2 + SIMT_MRG_M1;
}

/* Seed 0 gives the paper's state, six times 12345. */
static inline void simt_mrg32k3a_seed(uint64_t seed, uint32_t s1[3], uint32_t s2[3]) {
  uint64_t low = 1, high = 1;
  if (seed) {
    low = (uint32_t)seed ^ 0x55555555u;
    high = (uint32_t)(seed >> 32) ^ 0xAAAAAAAAu;
  }
  for (int i = 0; i < 3; i++) {
    s1[i] = (uint32_t)((i == 1 ? high : low) * 12345u % SIMT_MRG_M1);
    s2[i] = (uint32_t)((i == 1 ? low : high) * 12345u % SIMT_MRG_M2);
  }
}

/* MRG32k3a's number as 32 bits, and in (0,1]. */
static inline uint32_t simt_mrg_bits(uint32_t z) { return (uint32_t)(z * 1.000000048662); } /* (2^32 - 1) / M1 */
static inline double simt_mrg_uniform(uint32_t z) { return z * 2.3283065498378288e-10; }    /* 1 / M1 */

/* (0,1]: never 0, so that its logarithm is finite. A float rounds the upper 128 values of `bits` to 1. */
static inline float simt_uniform(uint32_t bits) { return (float)bits * 0x1p-32f + 0x1p-33f; }
static inline double simt_uniform_double32(uint32_t bits) { return bits * 0x1p-32 + 0x1p-32; }
static inline double simt_uniform_double53(uint32_t low, uint32_t high) {
  return (double)(low ^ ((uint64_t)high << 21)) * 0x1p-53 + 0x1p-54;
}

/* Two independent normal numbers from two uniform ones: radius from u, angle v in radians (the double form: v of pi).
 * */
static inline float2 simt_box_muller(float u, float v) {
  float radius = sqrtf(-2.0f * logf(u));
  float2 normal = {radius * sinf(v), radius * cosf(v)};
  return normal;
}

static inline double2 simt_box_muller_double(double u, double v) {
  double radius = sqrt(-2.0 * log(u)), angle = v * 3.14159265358979323846;
  double2 normal = {radius * sin(angle), radius * cos(angle)};
  return normal;
}

static inline float2 simt_normal(uint32_t x, uint32_t y) {
  const float turn = 0x1p-32f * 6.2831855f;
  return simt_box_muller(simt_uniform(x), (float)y * turn + turn / 2);
}

static inline double2 simt_normal_double(uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1) {
  return simt_box_muller_double(simt_uniform_double53(x0, x1), 2 * simt_uniform_double53(y0, y1));
}

/* log(k!), by Stirling's series from 10 on: error below 1e-8. */
static inline double simt_log_factorial(double k) {
  if (k < 10) {
    double product = 1;
    for (int i = 2; i <= (int)k; i++) product *= i;
    return log(product);
  }
  return (k + 0.5) * log(k) - k + 0.91893853320467274 + (1.0 / 12 - 1.0 / 360 / (k * k)) / k;
}

/* One trial of Hoermann's rejection PTRS, mean >= 10: a Poisson number, or -1 when the trial fails (about one in
 * eight). */
static inline double simt_poisson_trial(double mean, double u, double v) {
  double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_accepted = 0.9277 - 3.6224 / (b - 2);
  u -= 0.5;
  double us = 0.5 - fabs(u);
  if (us <= 0) return -1;
  double k = floor((2 * a / us + b) * u + mean + 0.43);
  if (us >= 0.07 && v <= v_accepted) return k;
  if (k < 0 || (us < 0.013 && v > us)) return -1;
  if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log(mean) - mean - simt_log_factorial(k)) return k;
  return -1;
}

#endif /* SIMT_RANDOM_H */

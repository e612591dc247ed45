/* batch_norm2d_moments.cuh - number, mean and sum of squares about the mean of some values, and how two such sets
 * become one. The variance as the mean of squares less the square of the mean would lose all digits where the mean is
 * large: with a mean of 1000 and a deviation of 1, the squares are 1,000,000 +- 2000, and a float has 7 digits. Here
 * nothing large is subtracted from something large.
 *
 * Source: B. P. Welford, 1962, for one value after the other; T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating
 * formulae and a pairwise algorithm for computing sample variances", 1979, for two sets.
 */
#ifndef PHASE3_CNN_BATCH_NORM2D_MOMENTS_CUH
#define PHASE3_CNN_BATCH_NORM2D_MOMENTS_CUH

#include "common/check.h"

enum { BATCH_NORM_THREADS = 512, BATCH_NORM_WARPS = BATCH_NORM_THREADS / 32 };

/* squares: the sum of (x - mean)^2. Of no values, all three are 0. */
typedef struct Moments {
  float count, mean, squares;
} Moments;

/* Two sets become one. */
static __device__ __forceinline__ Moments moments_merge(Moments a, Moments b) {
  // >>> exercise batch_norm_welford_merge: replace `a` by count, mean and squares of the values of both
  // hint: nothing to do if b.count is 0; the common mean is a.mean + delta * b.count / (a.count + b.count), delta = ?
  // hint: the values of a lie about a mean that is off by (mean - a.mean) now: a.count * (mean - a.mean)^2 is added
  // hint: a.squares += b.squares + delta * delta * a.count * b.count / count, where delta = b.mean - a.mean
  if (b.count > 0) {
    float count = a.count + b.count, delta = b.mean - a.mean, share = b.count / count;
    a.mean += delta * share;
    a.squares += b.squares + delta * delta * a.count * share;
    a.count = count;
  }
  // <<< exercise
  return a;
}

/* A set as a thread collects it: sums of differences from its first value, which is not far from the mean. */
typedef struct MomentSums {
  float count, shift, sum, squares;
} MomentSums;

static __device__ __forceinline__ void moments_add(MomentSums *s, float x) {
  float d = x - s->shift;
  s->sum += d;
  s->squares += d * d;
}

static __device__ __forceinline__ Moments moments_of(MomentSums s) {
  Moments m = {s.count, 0, 0};
  if (s.count > 0) {
    m.mean = s.shift + s.sum / s.count;
    const float squares = s.squares - s.sum * (s.sum / s.count);
    m.squares = squares < 0 ? 0 : squares; /* rounding could make it negative; a NaN stays */
  }
  return m;
}

static __device__ __forceinline__ Moments moments_shuffle(Moments m, int step) {
  Moments other;
  other.count = __shfl_xor_sync(0xffffffffu, m.count, step);
  other.mean = __shfl_xor_sync(0xffffffffu, m.mean, step);
  other.squares = __shfl_xor_sync(0xffffffffu, m.squares, step);
  return other;
}

/* Over the lanes of a warp, in lane 0: always in the same order. (Each lane rounds in another one.) */
static __device__ __forceinline__ Moments moments_warp(Moments m) {
  for (int step = 1; step < 32; step *= 2) m = moments_merge(m, moments_shuffle(m, step));
  return m;
}

/* Over the threads of a block, in thread 0. `part` (BATCH_NORM_WARPS) is free again after the next barrier. */
static __device__ __forceinline__ Moments moments_block(Moments m, Moments *part) {
  const Moments none = {0, 0, 0};
  m = moments_warp(m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = m;
  __syncthreads();
  if (threadIdx.x < 32) m = moments_warp(threadIdx.x < BATCH_NORM_WARPS ? part[threadIdx.x] : none);
  return m;
}

/* Two sums at once: of gradients, and of gradients times t. Lane 0; thread 0. */
static __device__ __forceinline__ float2 pair_sum_warp(float2 s) {
  for (int step = 16; step > 0; step /= 2) {
    s.x += __shfl_xor_sync(0xffffffffu, s.x, step);
    s.y += __shfl_xor_sync(0xffffffffu, s.y, step);
  }
  return s;
}

static __device__ __forceinline__ float2 pair_sum_block(float2 s, float2 *part) {
  s = pair_sum_warp(s);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) s = pair_sum_warp(threadIdx.x < BATCH_NORM_WARPS ? part[threadIdx.x] : make_float2(0, 0));
  return s;
}

#endif /* PHASE3_CNN_BATCH_NORM2D_MOMENTS_CUH */

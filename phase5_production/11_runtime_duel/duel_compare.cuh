/* duel_compare.cuh - do two runtimes give the same answers? Rows of logits against those of a reference.
 *
 *   duel_agreement   a, b (N,C) -> cosine (N) = a b / (|a| |b|), difference (N) = max |a - b|, largest (N) = max |b|
 *   duel_top1        a, b (N,C) -> first, second (N): the column of the largest number of each row; of equal ones the
 *                    first
 *   duel_worst       difference, largest (G,N) -> worst (G) = max difference / largest, row (G): where; of equal ones
 *                    the first. A NaN is worse than all numbers.
 *
 * Who computes in 16 bits cannot give the same numbers; the angle between the rows says how much is left of them, and a
 * class that changes is what a user sees. A row with a number that is not finite has the cosine and the
 * difference NaN.
 *
 *   duel_agreement_cpu, duel_top1_cpu, duel_worst_cpu    plain loops: the definition
 *   duel_agreement_gpu, duel_top1_gpu, duel_worst_gpu    one warp per row; the last one per group
 */
#ifndef PHASE5_PRODUCTION_DUEL_COMPARE_CUH
#define PHASE5_PRODUCTION_DUEL_COMPARE_CUH

#include <math.h>

#include "common/check.h"
#include "phase5_production/10_onnx_runtime/picture_output.cuh"

enum { DUEL_WARPS = 4 }; /* of a block: as many rows */

/* Three sums over a row's columns. */
typedef struct DuelSums {
  float ab, aa, bb;
} DuelSums;

static inline __host__ __device__ void duel_sums_add(DuelSums *sums, float a, float b) {
  // >>> exercise duel_cosine: what one column adds to the sums of which duel_cosine_of() makes the cosine of the angle
  // hint: the cosine is the sum of a * b over all columns, divided by the lengths of both rows
  // hint: the length of a row is the root of the sum of its squares
  // hint: sums->ab += a * b; sums->aa += a * a; sums->bb += b * b;
  sums->ab += a * b;
  sums->aa += a * a;
  sums->bb += b * b;
  // <<< exercise
}

/* Two rows of zeros are the same; to one of them no other row has an angle. */
static inline __host__ __device__ float duel_cosine_of(DuelSums sums) {
  if (sums.aa == 0 || sums.bb == 0) return sums.aa == sums.bb ? 1.0f : sums.ab;
  return sums.ab / (sqrtf(sums.aa) * sqrtf(sums.bb));
}

/* A row's difference, for comparing. */
typedef struct DuelDifference {
  float value;
  int row;
} DuelDifference;

static inline __host__ __device__ DuelDifference duel_difference(float value, int row) {
  DuelDifference difference;
  difference.value = value;
  difference.row = row;
  return difference;
}

/* In units of the row's largest number. */
static inline __host__ __device__ float duel_relative(float difference, float largest) {
  return difference / fmaxf(largest, 1e-30f);
}

/* Whether a is worse than b. */
static inline __host__ __device__ int duel_worse(DuelDifference a, DuelDifference b) {
  int worse = 0;
  // >>> exercise duel_worse: is `a` worse than `b`: a NaN than a number, a larger number, of equal ones the lower row
  // hint: every comparison with a NaN is false: a.value > b.value does not find one, whichever of the two it is
  // hint: first whether exactly one of them is a NaN: isnan(a.value) != isnan(b.value); then that one is worse
  // hint: two NaNs count as equal, as two equal numbers do: then a.row < b.row; else a.value > b.value
  if (isnan(a.value) != isnan(b.value))
    worse = isnan(a.value);
  else if (isnan(a.value) || a.value == b.value)
    worse = a.row < b.row;
  else
    worse = a.value > b.value;
  // <<< exercise
  return worse;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void duel_agreement_cpu(float *cosine, float *difference, float *largest, const float *a, const float *b,
                                      int n, int classes) {
  for (int i = 0; i < n; i++) {
    DuelSums sums = {0, 0, 0};
    difference[i] = largest[i] = 0;
    for (int c = 0; c < classes; c++) {
      const float x = a[(size_t)i * classes + c], y = b[(size_t)i * classes + c];
      duel_sums_add(&sums, x, y);
      difference[i] = fmaxf(difference[i], fabsf(x - y));
      largest[i] = fmaxf(largest[i], fabsf(y));
    }
    cosine[i] = duel_cosine_of(sums);
    if (isnan(cosine[i])) difference[i] = NAN; /* fmaxf() passes over it */
  }
}

/* The column of the largest number; of equal ones the first. */
static inline int duel_argmax_cpu(const float *row, int classes) {
  int best = 0;
  for (int c = 1; c < classes; c++)
    if (row[c] > row[best]) best = c;
  return best;
}

static inline void duel_top1_cpu(int *first, int *second, const float *a, const float *b, int n, int classes) {
  for (int i = 0; i < n; i++) {
    first[i] = duel_argmax_cpu(a + (size_t)i * classes, classes);
    second[i] = duel_argmax_cpu(b + (size_t)i * classes, classes);
  }
}

static inline void duel_worst_cpu(float *worst, int *row, const float *difference, const float *largest, int groups,
                                  int n) {
  for (int g = 0; g < groups; g++) {
    DuelDifference found = duel_difference(-1, n);
    for (int i = 0; i < n; i++) {
      const DuelDifference here =
          duel_difference(duel_relative(difference[(size_t)g * n + i], largest[(size_t)g * n + i]), i);
      if (duel_worse(here, found)) found = here;
    }
    worst[g] = found.value;
    row[g] = found.row;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One warp per row: lane l has columns l, l + 32, ... */

static __global__ void duel_agreement_kernel(float *cosine, float *difference, float *largest, const float *a,
                                             const float *b, int n, int classes) {
  const int row = blockIdx.x * DUEL_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return; /* the whole warp */
  DuelSums sums = {0, 0, 0};
  float most = 0, top = 0;
  for (int c = lane; c < classes; c += 32) {
    const float x = a[(size_t)row * classes + c], y = b[(size_t)row * classes + c];
    duel_sums_add(&sums, x, y);
    most = fmaxf(most, fabsf(x - y));
    top = fmaxf(top, fabsf(y));
  }
  sums.ab = top_warp_sum(sums.ab);
  sums.aa = top_warp_sum(sums.aa);
  sums.bb = top_warp_sum(sums.bb);
  most = top_warp_most(most);
  top = top_warp_most(top);
  if (lane != 0) return;
  cosine[row] = duel_cosine_of(sums);
  difference[row] = isnan(cosine[row]) ? NAN : most;
  largest[row] = top;
}

static inline void duel_agreement_gpu(float *cosine, float *difference, float *largest, const float *a, const float *b,
                                      int n, int classes) {
  duel_agreement_kernel<<<(n + DUEL_WARPS - 1) / DUEL_WARPS, 32 * DUEL_WARPS>>>(cosine, difference, largest, a, b, n,
                                                                                classes);
  CUDA_CHECK_LAUNCH();
}

/* The column of the row's largest number, in all lanes. */
static __device__ __forceinline__ int duel_warp_argmax(const float *row, int classes, int lane) {
  TopCandidate best = top_candidate(-INFINITY, TOP_NONE);
  for (int c = lane; c < classes; c += 32) {
    const TopCandidate here = top_candidate(row[c], c);
    if (top_before(here, best)) best = here;
  }
  return top_warp_first(best).label;
}

static __global__ void duel_top1_kernel(int *first, int *second, const float *a, const float *b, int n, int classes) {
  const int row = blockIdx.x * DUEL_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= n) return; /* the whole warp */
  const int of_a = duel_warp_argmax(a + (size_t)row * classes, classes, lane);
  const int of_b = duel_warp_argmax(b + (size_t)row * classes, classes, lane);
  if (lane != 0) return;
  first[row] = of_a;
  second[row] = of_b;
}

static inline void duel_top1_gpu(int *first, int *second, const float *a, const float *b, int n, int classes) {
  duel_top1_kernel<<<(n + DUEL_WARPS - 1) / DUEL_WARPS, 32 * DUEL_WARPS>>>(first, second, a, b, n, classes);
  CUDA_CHECK_LAUNCH();
}

/* One warp per group. */
static __global__ void duel_worst_kernel(float *worst, int *row, const float *difference, const float *largest,
                                         int groups, int n) {
  const int g = blockIdx.x * DUEL_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (g >= groups) return; /* the whole warp */
  DuelDifference found = duel_difference(-1, n);
  for (int i = lane; i < n; i += 32) {
    const DuelDifference here =
        duel_difference(duel_relative(difference[(size_t)g * n + i], largest[(size_t)g * n + i]), i);
    if (duel_worse(here, found)) found = here;
  }
  for (int d = 16; d > 0; d /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, found.value, d);
    const DuelDifference other = duel_difference(value, __shfl_xor_sync(0xffffffffu, found.row, d));
    if (duel_worse(other, found)) found = other;
  }
  if (lane != 0) return;
  worst[g] = found.value;
  row[g] = found.row;
}

static inline void duel_worst_gpu(float *worst, int *row, const float *difference, const float *largest, int groups,
                                  int n) {
  duel_worst_kernel<<<(groups + DUEL_WARPS - 1) / DUEL_WARPS, 32 * DUEL_WARPS>>>(worst, row, difference, largest,
                                                                                 groups, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_DUEL_COMPARE_CUH */

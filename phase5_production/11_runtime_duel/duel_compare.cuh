/* duel_compare.cuh - do two runtimes give the same answers? Rows of logits against those of a reference.
 *
 *   duel_agreement   a, b (N,C) -> cosine (N) = a b / (|a| |b|), difference (N) = max |a - b|, largest (N) = max |b|
 *   duel_top1        a, b (N,C) -> first, second (N): the column of the largest number of each row; of equal ones the
 *                    first
 *
 * Who computes in 16 bits cannot give the same numbers; the angle between the rows says how much is left of them, and a
 * class that changes is what a user sees. A row with a number that is not finite has a cosine of NaN.
 *
 *   duel_agreement_cpu, duel_top1_cpu    plain loops: the definition
 *   duel_agreement_gpu, duel_top1_gpu    one warp per row
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

/* Two rows of zeros are the same. */
static inline __host__ __device__ float duel_cosine_of(DuelSums sums) {
  return sums.aa == 0 && sums.bb == 0 ? 1.0f : sums.ab / (sqrtf(sums.aa) * sqrtf(sums.bb));
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
  difference[row] = most;
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
  // >>> exercise duel_top1: let the 32 lanes agree: each ends with the candidate that comes before all others
  // hint: in five steps each lane compares with the lane whose number differs in one bit: 16, 8, 4, 2, 1
  // hint: __shfl_xor_sync(0xffffffffu, x, d) is x of the lane whose number is lane ^ d; ask for value and label
  // hint: top_before(other, best) says whether the other comes first; then best = other, in every lane
  for (int d = 16; d > 0; d /= 2) {
    const float value = __shfl_xor_sync(0xffffffffu, best.value, d);
    const int label = __shfl_xor_sync(0xffffffffu, best.label, d);
    const TopCandidate other = top_candidate(value, label);
    if (top_before(other, best)) best = other;
  }
  // <<< exercise
  return best.label;
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

#endif /* PHASE5_PRODUCTION_DUEL_COMPARE_CUH */

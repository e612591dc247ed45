/* map_peaks.cuh - the largest value of each map, and where it is: how strongly a picture excites a filter, and which of
 * its pixels do.
 *
 *     x (M,A)   M maps of A values; an output (N,C,H,W) is N C maps of H W
 *     value (M), place (M)   value[m] = max of x[m], place[m] = the first place that has it
 *
 *     map_peaks_naive   one thread per map
 *     map_peaks_gpu     one warp per map: 32 neighbours per load, then five exchanges
 *
 * What is reduced is the pair (value, place). "The larger value, of equals the smaller place" orders any two pairs, so
 * the result is the same whichever lanes meet first. ReLU makes many equals: zeros. The values must be finite.
 */
#ifndef PHASE3_CNN_MAP_PEAKS_CUH
#define PHASE3_CNN_MAP_PEAKS_CUH

#include <math.h>

#include "common/check.h"

enum { MAP_PEAKS_BLOCK = 128 };

static inline void map_peaks_cpu(float *value, int *place, const float *x, int maps, int area) {
  for (int m = 0; m < maps; m++, x += area) {
    int best = 0;
    for (int i = 1; i < area; i++)
      if (x[i] > x[best]) best = i;
    value[m] = x[best];
    place[m] = best;
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

/* The 32 lanes of a warp read 32 maps: a sector each for one float. */
static __global__ void map_peaks_naive_kernel(float *value, int *place, const float *x, int maps, int area) {
  const int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= maps) return;
  x += (size_t)m * area;
  int at = 0;
  float best = x[0];
  for (int i = 1; i < area; i++) {
    if (x[i] > best) {
      best = x[i];
      at = i;
    }
  }
  value[m] = best;
  place[m] = at;
}

/* A lane that has no value holds -INFINITY at a place behind the map: every pair of the map is better. */
static __global__ void map_peaks_kernel(float *value, int *place, const float *x, int maps, int area) {
  const int m = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (m >= maps) return; /* all lanes of the warp together */
  x += (size_t)m * area;
  float best = -INFINITY;
  int at = area;
  // >>> exercise map_peaks_lane: keep in `best` and `at` the largest of this lane's values and the first place of it
  // hint: the lanes of a warp read 32 neighbours at once: lane l looks at the places l, l + 32, l + 64, ...
  // hint: the places rise, so of equal values the first stays if only a larger one replaces it: >, not >=
  // hint: for (int i = lane; i < area; i += 32) if (x[i] > best) { best = x[i]; at = i; }
#pragma unroll 4
  for (int i = lane; i < area; i += 32) {
    const float next = x[i];
    if (next > best) {
      best = next;
      at = i;
    }
  }
  // <<< exercise
  // >>> exercise map_peaks_merge: merge the pairs (best, at) of all lanes: the larger value, of equals the first place
  // hint: five steps: the lanes that differ in bit 16, 8, 4, 2, 1 of their numbers exchange with __shfl_xor_sync()
  // hint: fetch the other lane's value and its place before you change yours; take both of them, or keep both
  // hint: take them if (other > best || (other == best && other_at < at))
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, best, step);
    const int other_at = __shfl_xor_sync(0xffffffffu, at, step);
    if (other > best || (other == best && other_at < at)) {
      best = other;
      at = other_at;
    }
  }
  // <<< exercise
  if (lane > 0) return;
  value[m] = best;
  place[m] = at;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; every array lies on the GPU */

static inline void map_peaks_naive(float *value, int *place, const float *x, int maps, int area) {
  if (maps == 0) return;
  map_peaks_naive_kernel<<<(maps + MAP_PEAKS_BLOCK - 1) / MAP_PEAKS_BLOCK, MAP_PEAKS_BLOCK>>>(value, place, x, maps,
                                                                                              area);
  CUDA_CHECK_LAUNCH();
}

static inline void map_peaks_gpu(float *value, int *place, const float *x, int maps, int area) {
  const int warps = MAP_PEAKS_BLOCK / 32;
  if (maps == 0) return;
  map_peaks_kernel<<<(maps + warps - 1) / warps, MAP_PEAKS_BLOCK>>>(value, place, x, maps, area);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE3_CNN_MAP_PEAKS_CUH */

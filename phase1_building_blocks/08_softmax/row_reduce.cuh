/* row_reduce.cuh - a row of a matrix, read by the threads that share it: as float4, wherever it begins, and reduced.
 *
 * One instruction moves 16 bytes as a float4, if they begin at a multiple of 16. Where a row's length is no multiple of
 * four the rows begin anywhere, but each has such multiples in it. A row of `cols` floats therefore is
 *
 *     head (0..3)  |  quads float4  |  tail (0..3)
 *
 * Of the edges a thread takes at most one float. Thread t of T:
 *
 *     Row row = row_split(x, cols);
 *     int edge = row_edge(row, t);                                // its float of head or tail; -1: none
 *     const float4 *quads = (const float4 *)(x + row.head);
 *     for (int q = t; q < row.quads; q += T) ... quads[q] ...
 *
 * A second array is split alike if its rows begin at the same place of a sector: rows_alike().
 *
 * The reductions give every thread of the row the same bits. T is a power of two, 32 to 1024; above 32 the row's
 * threads are the block, all of them must take part, and before the same function is called again there must be a
 * barrier: its shared memory may still be read.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ROW_CUH
#define PHASE1_BUILDING_BLOCKS_ROW_CUH

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Row {
  int cols, head, quads;
} Row;

static inline bool rows_alike(const float *x, const float *y) {
  return ((uintptr_t)x ^ (uintptr_t)y) % sizeof(float4) == 0;
}

static __device__ __forceinline__ Row row_split(const float *x, int cols) {
  Row row;
  int head = (int)(-((uintptr_t)x / sizeof(float)) % 4); /* floats to the next multiple of 16 bytes */
  row.cols = cols;
  row.head = head < cols ? head : cols;
  row.quads = (cols - row.head) / 4;
  return row;
}

static __device__ __forceinline__ int row_edge(Row row, int t) {
  if (t < row.head) return t;
  int edge = t + 4 * row.quads; /* the tail follows the quads */
  return edge < row.cols ? edge : -1;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Reductions */

template <int T>
static __device__ __forceinline__ float row_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (T == 32) return value;
  const int warps = T / 32;
  __shared__ float part[warps];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = part[threadIdx.x % warps]; /* each warp for itself: no second barrier */
  for (int step = warps / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/* What is known of some elements of a row: their maximum, and the sum of exp(x - max). Of none: -inf and 0. */
typedef struct MaxSum {
  float max, sum;
} MaxSum;

static __device__ __forceinline__ MaxSum max_sum_make(float max, float sum) {
  MaxSum m;
  m.max = max;
  m.sum = sum;
  return m;
}

/* What brings a sum from the maximum `low` to the higher one: exp(x - low) exp(low - high) = exp(x - high). */
static __device__ __forceinline__ float max_sum_factor(float low, float high) {
  return low == high ? 1 : expf(low - high); /* -inf - -inf would be NaN */
}

/* One more element x. A sum that was begun with too low a maximum is not lost: exp(x - old) = exp(x - new) exp(new -
 * old). The maximum of NaNs and of nothing is -inf. */
static __device__ __forceinline__ MaxSum max_sum_add(MaxSum known, float x) {
  // >>> exercise softmax_online: add x to `known`, the maximum of some elements and the sum of exp(element - max)
  // hint: if x is the new maximum, what was summed up so far was too large by the factor exp(x - known.max)
  // hint: with m = fmaxf(known.max, x) the sum becomes known.sum * exp(known.max - m) + exp(x - m)
  // hint: -inf - -inf is NaN: where m is -INFINITY subtract 0 instead; then known.max = m
  float max = fmaxf(known.max, x), finite = max == -INFINITY ? 0.0f : max;
  known.sum = known.sum * expf(known.max - finite) + expf(x - finite);
  known.max = max;
  // <<< exercise
  return known;
}

/* All lanes that differ in the bits below `lanes` (a power of two) come to know the elements of all of them: first the
 * maximum, then the sum, which each has brought to that maximum. */
static __device__ __forceinline__ MaxSum max_sum_lanes(MaxSum own, int lanes) {
  float max = own.max, sum;
  for (int step = lanes / 2; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, step));
  sum = own.sum * max_sum_factor(own.max, max);
  for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  return max_sum_make(max, sum);
}

template <int T>
static __device__ __forceinline__ MaxSum row_max_sum(MaxSum own) {
  MaxSum warp = max_sum_lanes(own, 32);
  if (T == 32) return warp;
  const int warps = T / 32;
  __shared__ MaxSum part[warps];
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = warp;
  __syncthreads();
  return max_sum_lanes(part[threadIdx.x % warps], warps); /* each warp for itself: no second barrier */
}

#endif /* PHASE1_BUILDING_BLOCKS_ROW_CUH */

/* row_reduce.cuh - the threads that share a row of a matrix read it as float4, at any alignment, and reduce it.
 *
 * One instruction loads 16 bytes as a float4 if their address is a multiple of 16. If the row length is not a multiple
 * of four, rows begin at any multiple of 4 bytes, so the aligned part of each row lies somewhere inside it. A row of
 * `cols` floats is split into
 *
 *     head (0..3)  |  quads float4  |  tail (0..3)
 *
 * Each thread takes at most one float of head and tail. Thread t of T:
 *
 *     Row row = row_split(x, cols);
 *     int edge = row_edge(row, t);                                // its float of head or tail; -1: none
 *     const float4 *quads = (const float4 *)(x + row.head);
 *     for (int q = t; q < row.quads; q += T) ... quads[q] ...
 *
 * A second array is split in the same way if its rows have the same offset from a multiple of 16 bytes: rows_alike().
 *
 * The reductions return the same bits to every thread of the row. T, the threads per row, is a power of two from 32 to
 * 1024. If T is more than 32, the row's threads are the whole block: all of them must take part, and a barrier must
 * stand before the next call of the same function, because slow threads may still read its shared memory.
 */
#ifndef PHASE1_BUILDING_BLOCKS_ROW_REDUCE_CUH
#define PHASE1_BUILDING_BLOCKS_ROW_REDUCE_CUH

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
  value = part[threadIdx.x % warps]; /* every warp reduces all parts: no second barrier */
  for (int step = warps / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/* Describes some elements of a row: their maximum, and the sum of exp(x - max). Of no elements: -inf and 0. */
typedef struct MaxSum {
  float max, sum;
} MaxSum;

static __device__ __forceinline__ MaxSum max_sum_make(float max, float sum) {
  MaxSum m;
  m.max = max;
  m.sum = sum;
  return m;
}

/* The factor that changes a sum relative to the maximum `low` into one relative to the maximum `high`:
 * exp(x - low) exp(low - high) = exp(x - high). */
static __device__ __forceinline__ float max_sum_factor(float low, float high) {
  return low == high ? 1 : expf(low - high); /* -inf - -inf would be NaN */
}

/* Adds one element x. If x is the new maximum, one factor corrects the sum so far: exp(e - new) = exp(e - old)
 * exp(old - new) for every element e in it. The maximum of NaNs and of no elements is -inf. */
static __device__ __forceinline__ MaxSum max_sum_add(MaxSum known, float x) {
  // >>> exercise softmax_online: add x to `known`, the maximum of some elements and the sum of exp(element - max)
  // hint: if x is the new maximum, the sum so far is too large by the factor exp(x - known.max)
  // hint: with m = fmaxf(known.max, x) the sum becomes known.sum * exp(known.max - m) + exp(x - m)
  // hint: -inf - -inf is NaN: if m is -INFINITY, subtract 0 instead; then known.max = m
  float max = fmaxf(known.max, x), finite = max == -INFINITY ? 0.0f : max;
  known.sum = known.sum * expf(known.max - finite) + expf(x - finite);
  known.max = max;
  // <<< exercise
  return known;
}

/* Merges `own` over each group of `lanes` neighbouring lanes (a power of two): first the maximum, then the sums, which
 * every lane has rescaled to that maximum. All lanes of the group get the result. */
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
  return max_sum_lanes(part[threadIdx.x % warps], warps); /* every warp merges all parts: no second barrier */
}

#endif /* PHASE1_BUILDING_BLOCKS_ROW_REDUCE_CUH */

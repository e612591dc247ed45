/* layer_norm_row.cuh - what the kernels of layer_norm.cuh and instance_norm.cuh share: arithmetic on four elements at a
 * time, a row that its T threads keep in registers, weight and bias of a column or of a row, and sums of two values.
 */
#ifndef PHASE3_CNN_LAYER_NORM_ROW_CUH
#define PHASE3_CNN_LAYER_NORM_ROW_CUH

#include <stdbool.h>
#include <stdint.h>

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Four elements at a time */

static __device__ __forceinline__ float4 norm_quad(float v) { return make_float4(v, v, v, v); }
static __device__ __forceinline__ float norm_quad_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
static __device__ __forceinline__ float4 norm_quad_add(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
static __device__ __forceinline__ float4 norm_quad_multiply(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

/* (v - mean) * inv_std; then times w, plus b. */
static __device__ __forceinline__ float4 norm_quad_normal(float4 v, float mean, float inv_std) {
  return make_float4((v.x - mean) * inv_std, (v.y - mean) * inv_std, (v.z - mean) * inv_std, (v.w - mean) * inv_std);
}
static __device__ __forceinline__ float4 norm_quad_result(float4 v, float mean, float inv_std, float4 w, float4 b) {
  return norm_quad_add(norm_quad_multiply(norm_quad_normal(v, mean, inv_std), w), b);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A row in registers */

/* Whether every row of `cols` floats of an array begins at a multiple of 16 bytes; NULL: yes. */
static inline bool norm_aligned(const float *array, int cols) {
  return (uintptr_t)array % sizeof(float4) == 0 && cols % 4 == 0;
}

/* T threads keep a row in registers, QUADS float4 each. Where rows are aligned, thread t has the quads t, t + T, ...;
 * otherwise it has the elements t, t + T, ..., four of which make a float4. The column of element k of its quad i: */
template <int T>
static __device__ __forceinline__ int norm_column(int t, int i, int k, bool aligned) {
  return aligned ? 4 * (t + i * T) + k : t + (4 * i + k) * T;
}

/* Elements beyond the row become `outside`. once: nobody reads them again, so they may leave the caches first. */
template <int T, int QUADS>
static __device__ __forceinline__ void norm_load(float4 *kept, const float *x, float outside, int t, int cols,
                                                 bool aligned, bool once) {
  if (aligned) {
    const float4 *in = (const float4 *)x;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const int q = t + i * T;
      kept[i] = 4 * q >= cols ? norm_quad(outside) : once ? __ldcs(&in[q]) : in[q];
    }
  } else {
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const int j = t + 4 * i * T;
      kept[i].x = j < cols ? x[j] : outside;
      kept[i].y = j + T < cols ? x[j + T] : outside;
      kept[i].z = j + 2 * T < cols ? x[j + 2 * T] : outside;
      kept[i].w = j + 3 * T < cols ? x[j + 3 * T] : outside;
    }
  }
}

/* Stores quad i of the thread. */
template <int T>
static __device__ __forceinline__ void norm_store(float *y, float4 v, int t, int i, int cols, bool aligned) {
  const int j = norm_column<T>(t, i, 0, aligned);
  if (aligned) {
    if (j < cols) __stcs((float4 *)(y + j), v);
    return;
  }
  if (j < cols) y[j] = v.x;
  if (j + T < cols) y[j + T] = v.y;
  if (j + 2 * T < cols) y[j + 2 * T] = v.z;
  if (j + 3 * T < cols) y[j + 3 * T] = v.w;
}

/* Quad i of the thread less the mean; 0 beyond the row. */
template <int T>
static __device__ __forceinline__ float4 norm_distance(float4 v, float mean, int t, int i, int cols, bool aligned) {
  v.x = norm_column<T>(t, i, 0, aligned) < cols ? v.x - mean : 0;
  v.y = norm_column<T>(t, i, 1, aligned) < cols ? v.y - mean : 0;
  v.z = norm_column<T>(t, i, 2, aligned) < cols ? v.z - mean : 0;
  v.w = norm_column<T>(t, i, 3, aligned) < cols ? v.w - mean : 0;
  return v;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Weight and bias */

/* Weight or bias of an element: of its column, or of its row r, which is a plane of channel r % channels. */
template <bool BY_COLUMN>
static __device__ __forceinline__ float norm_affine(const float *values, float without, int r, int channels, int j) {
  return values ? values[BY_COLUMN ? j : r % channels] : without;
}
template <bool BY_COLUMN>
static __device__ __forceinline__ float4 norm_affine_quad(const float *values, float without, int r, int channels,
                                                          int q) {
  if (BY_COLUMN && values) return ((const float4 *)values)[q];
  return norm_quad(norm_affine<BY_COLUMN>(values, without, r, channels, 0));
}

/* Weight or bias of quad i of the thread. */
template <int T, bool BY_COLUMN>
static __device__ __forceinline__ float4 norm_affine_kept(const float *values, float without, int r, int channels,
                                                          int t, int i, int cols, bool aligned) {
  const int ahead = 4 * i * T;
  float4 quad = norm_quad(without);
  if (!BY_COLUMN) return norm_quad(norm_affine<BY_COLUMN>(values, without, r, channels, 0));
  if (values) norm_load<T, 1>(&quad, values + ahead, without, t, cols - ahead, aligned, false);
  return quad;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Two sums */

/* Sums of two values over T threads, in every thread. If T is more than a warp, consecutive calls in a loop pass 0 and
 * 1 in turn: a slow thread still reads part[turn] while others write the other one, so one barrier per call is enough.
 * */
template <int T>
static __device__ __forceinline__ float2 norm_pair_sum(float2 own, int turn) {
  for (int step = 16; step > 0; step /= 2) {
    own.x += __shfl_xor_sync(0xffffffffu, own.x, step);
    own.y += __shfl_xor_sync(0xffffffffu, own.y, step);
  }
  if (T == 32) return own;
  const int warps = T / 32;
  __shared__ float2 part[2][warps];
  if (threadIdx.x % 32 == 0) part[turn][threadIdx.x / 32] = own;
  __syncthreads();
  own = part[turn][threadIdx.x % warps];
  for (int step = warps / 2; step > 0; step /= 2) {
    own.x += __shfl_xor_sync(0xffffffffu, own.x, step);
    own.y += __shfl_xor_sync(0xffffffffu, own.y, step);
  }
  return own;
}

#endif /* PHASE3_CNN_LAYER_NORM_ROW_CUH */

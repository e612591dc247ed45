/* float4_access.cuh - loads and stores four neighbouring floats of a matrix x (rows,cols) or an array x (n), also where
 * the matrix ends between them.
 *
 * One instruction moves the 16 bytes of a float4, if they begin at a multiple of 16 bytes. ALIGNED promises that for
 * every row, or for the array; quads_fit() checks whether it holds. Without it the four floats move one by one. `col`
 * and `i` are multiples of 4.
 */
#ifndef PHASE1_BUILDING_BLOCKS_FLOAT4_ACCESS_CUH
#define PHASE1_BUILDING_BLOCKS_FLOAT4_ACCESS_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool quads_fit(const float *x, int cols) { return (uintptr_t)x % sizeof(float4) == 0 && cols % 4 == 0; }

/* Loads x at (row, col) ... (row, col + 3); 0 outside of x. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 quad_load(const float *x, int row, int col, int rows, int cols) {
  const float *at = x + (size_t)row * cols + col;
  if (ALIGNED) return row < rows && col < cols ? *(const float4 *)at : make_float4(0, 0, 0, 0);
  return make_float4(row < rows && col < cols ? at[0] : 0, row < rows && col + 1 < cols ? at[1] : 0,
                     row < rows && col + 2 < cols ? at[2] : 0, row < rows && col + 3 < cols ? at[3] : 0);
}

/* Stores v there, as far as that lies in x. */
template <bool ALIGNED>
static __device__ __forceinline__ void quad_store(float *x, float4 v, int row, int col, int rows, int cols) {
  float *at = x + (size_t)row * cols + col;
  if (ALIGNED) {
    if (row < rows && col < cols) *(float4 *)at = v;
    return;
  }
  if (row < rows && col < cols) at[0] = v.x;
  if (row < rows && col + 1 < cols) at[1] = v.y;
  if (row < rows && col + 2 < cols) at[2] = v.z;
  if (row < rows && col + 3 < cols) at[3] = v.w;
}

/* Loads x[i] ... x[i + 3]; 0 beyond n. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 quad_load_array(const float *x, size_t i, size_t n) {
  if (ALIGNED && i + 3 < n) return *(const float4 *)(x + i);
  return make_float4(i < n ? x[i] : 0, i + 1 < n ? x[i + 1] : 0, i + 2 < n ? x[i + 2] : 0, i + 3 < n ? x[i + 3] : 0);
}

/* Stores v there, as far as that lies in x. */
template <bool ALIGNED>
static __device__ __forceinline__ void quad_store_array(float *x, float4 v, size_t i, size_t n) {
  if (ALIGNED && i + 3 < n) {
    *(float4 *)(x + i) = v;
    return;
  }
  if (i < n) x[i] = v.x;
  if (i + 1 < n) x[i + 1] = v.y;
  if (i + 2 < n) x[i + 2] = v.z;
  if (i + 3 < n) x[i + 3] = v.w;
}

#endif /* PHASE1_BUILDING_BLOCKS_FLOAT4_ACCESS_CUH */

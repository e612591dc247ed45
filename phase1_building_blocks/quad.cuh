/* quad.cuh - four neighbouring floats of a matrix x (rows,cols) at once, also where its edge cuts through them.
 *
 * One instruction moves 16 bytes as a float4, if they begin at a multiple of 16. ALIGNED promises that for every row:
 * quads_fit() tells whether it may. Otherwise the four floats go one by one. `col` is a multiple of 4.
 */
#ifndef PHASE1_BUILDING_BLOCKS_QUAD_CUH
#define PHASE1_BUILDING_BLOCKS_QUAD_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool quads_fit(const float *x, int cols) { return (uintptr_t)x % sizeof(float4) == 0 && cols % 4 == 0; }

/* x at (row, col) ... (row, col + 3), 0 outside of x. */
template <bool ALIGNED>
static __device__ __forceinline__ float4 quad_load(const float *x, int row, int col, int rows, int cols) {
  const float *at = x + (size_t)row * cols + col;
  if (ALIGNED) return row < rows && col < cols ? *(const float4 *)at : make_float4(0, 0, 0, 0);
  return make_float4(row < rows && col < cols ? at[0] : 0, row < rows && col + 1 < cols ? at[1] : 0,
                     row < rows && col + 2 < cols ? at[2] : 0, row < rows && col + 3 < cols ? at[3] : 0);
}

/* The same place becomes v, as far as it lies in x. */
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

#endif /* PHASE1_BUILDING_BLOCKS_QUAD_CUH */

/* pool2d_tile.cuh - how a thread of a pooling kernel moves the numbers of its tile: rows of inputs, groups of outputs.
 *
 * A tile is ROWS x COLS windows of K x K elements, S apart, of one plane. Next to each other COLS windows begin S COLS
 * inputs apart, from one tile to the next, too. So with S COLS = 4 and rows of a multiple of four floats, the middle of
 * a tile's row of inputs is one float4, neighbouring threads read neighbouring float4s, and only what a tile shares
 * with its neighbours is loaded one by one; the cache has it already.
 *
 *     inputs of a tile, K = 3, S = 2, PAD = 1, COLS = 2:    -1 | 0 1 2 3        windows at -1 and 1
 */
#ifndef PHASE3_CNN_POOL2D_TILE_CUH
#define PHASE3_CNN_POOL2D_TILE_CUH

#include "common/check.h"
#include "phase3_cnn/09_pooling/pool2d_shape.cuh"

enum { POOL2D_BLOCK = 256 };

static inline unsigned pool2d_blocks(size_t threads) { return (unsigned)((threads + POOL2D_BLOCK - 1) / POOL2D_BLOCK); }

/* Which windows a thread computes: from (p,q) on, of this plane. Threads are numbered along the columns, then down,
 * then through the planes, so that a warp's loads are neighbours. A 64-bit division costs as much as a window: 32 bits
 * are enough. */
typedef struct Pool2dTile {
  int p, q;
  unsigned plane;
} Pool2dTile;

static __device__ __forceinline__ Pool2dTile pool2d_tile(unsigned tiles_down, unsigned tiles_across, int rows,
                                                         int columns) {
  const unsigned i = blockIdx.x * POOL2D_BLOCK + threadIdx.x, down = i / tiles_across, plane = down / tiles_down;
  const Pool2dTile tile = {(int)(down - plane * tiles_down) * rows, (int)(i - down * tiles_across) * columns, plane};
  return tile;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Vectors of 1, 2 or 4, at an address that is a multiple of their size */

template <int N>
static __device__ __forceinline__ void pool2d_load(float *to, const float *from) {
  if (N == 4) {
    const float4 v = *(const float4 *)from;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
  } else if (N == 2) {
    const float2 v = *(const float2 *)from;
    to[0] = v.x;
    to[1] = v.y;
  } else {
    to[0] = from[0];
  }
}

template <int N>
static __device__ __forceinline__ void pool2d_store(float *to, const float *from) {
  if (N == 4)
    *(float4 *)to = make_float4(from[0], from[1], from[2], from[3]);
  else if (N == 2)
    *(float2 *)to = make_float2(from[0], from[1]);
  else
    to[0] = from[0];
}

/* Bytes, as ints in registers. */
template <int N>
static __device__ __forceinline__ void pool2d_load(int *to, const uint8_t *from) {
  if (N == 4) {
    const uchar4 v = *(const uchar4 *)from;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
  } else if (N == 2) {
    const uchar2 v = *(const uchar2 *)from;
    to[0] = v.x;
    to[1] = v.y;
  } else {
    to[0] = from[0];
  }
}

template <int N>
static __device__ __forceinline__ void pool2d_store(uint8_t *to, const int *from) {
  if (N == 4)
    *(uchar4 *)to = make_uchar4(from[0], from[1], from[2], from[3]);
  else if (N == 2)
    *(uchar2 *)to = make_uchar2(from[0], from[1]);
  else
    to[0] = (uint8_t)from[0];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A part of row `row` of a plane of rows x columns: elements first .. first + COUNT - 1, of which some may lie outside
 * of the plane; those become `outside`. N of them, from element first + SKIP on, are one vector (1: they are not). Each
 * load is done in any case, from the nearest place inside: with branches a thread would wait for one row before it asks
 * for the next. */

template <int COUNT, int SKIP, int N, typename Register, typename Element>
static __device__ __forceinline__ void pool2d_load_row(Register *to, const Element *plane, int rows, int columns,
                                                       int row, int first, Register outside) {
  const bool inside = (unsigned)row < (unsigned)rows;
  plane += (size_t)min(max(row, 0), rows - 1) * columns;
#pragma unroll
  for (int j = 0; j < COUNT; j++)
    if (N == 1 || j < SKIP || j >= SKIP + N) to[j] = plane[min(max(first + j, 0), columns - 1)];
  if (N > 1) pool2d_load<N>(to + SKIP, plane + min(first + SKIP, columns - N));
#pragma unroll
  for (int j = 0; j < COUNT; j++)
    if (!inside || (unsigned)(first + j) >= (unsigned)columns) to[j] = outside;
}

/* `whole`: rows are vectors of N elements. */
template <int N, typename Register, typename Element>
static __device__ __forceinline__ void pool2d_store_row(Element *row, const Register *from, int first, int length,
                                                        bool whole) {
  if (whole) {
    if (first < length) pool2d_store<N>(row + first, from);
    return;
  }
#pragma unroll
  for (int j = 0; j < N; j++)
    if (first + j < length) row[first + j] = (Element)from[j];
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Which shapes a template computes */

static inline int pool2d_is(Pool2dShape s, int kernel, int stride, int pad) {
  return s.kernel_h == kernel && s.kernel_w == kernel && s.stride_h == stride && s.stride_w == stride &&
         s.pad_h == pad && s.pad_w == pad && s.dilation_h == 1 && s.dilation_w == 1;
}

/* Threads are numbered in 32 bits; a tile has at least one input of its own. */
static inline int pool2d_tiles(Pool2dShape s) { return pool2d_x_count(s) < UINT32_MAX - POOL2D_BLOCK; }

/* Rows of `width` elements at `array` are whole vectors of `size` elements, each of `bytes` bytes. */
static inline int pool2d_whole(const void *array, int width, int size, size_t bytes) {
  return width % size == 0 && (uintptr_t)array % (size * bytes) == 0;
}

#endif /* PHASE3_CNN_POOL2D_TILE_CUH */

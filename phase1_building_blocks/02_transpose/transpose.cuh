/* transpose.cuh - out (cols,rows) = in (rows,cols), transposed; both row-major, sizes at least 1, rows and columns of a
 * matrix at most 524280 (a grid has 65535 blocks downwards, of 8 rows in the naive kernels).
 *
 * Nothing is computed: the time to beat is that of copying the matrix. One array is read along its rows, the other is
 * written down its columns, and memory moves in sectors of 32 bytes: a warp whose 32 threads touch 32 neighbouring
 * floats moves 4 sectors; one that touches 32 floats of a column moves 32, and uses an eighth of them.
 *
 *   transpose_cpu            two loops
 *   transpose_naive_rows     a warp reads along a row of `in`, and writes down a column of `out`
 *   transpose_naive_columns  a warp reads down a column, and writes along a row
 *   transpose_tiled          through a tile in shared memory: reads and writes along rows, but 32-way bank conflicts
 *   transpose_padded         the tile's rows are one float longer: no bank conflicts
 *   transpose_vectorised     float4, and blocks in an order that writes `out` row by row; two kernels, see there
 */
#ifndef PHASE1_BUILDING_BLOCKS_TRANSPOSE_CUH
#define PHASE1_BUILDING_BLOCKS_TRANSPOSE_CUH

#include <stddef.h>

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void transpose_cpu(float *out, const float *in, int rows, int cols) {
  // >>> hidden transpose_naive
  for (int row = 0; row < rows; row++)
    for (int col = 0; col < cols; col++) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
  // <<< hidden
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels. The 32 threads of a warp differ in threadIdx.x. */

enum { TRANSPOSE_TILE = 32, TRANSPOSE_BLOCK_ROWS = 8 }; /* a block's tile; its 32 x 8 threads move 4 floats each */

static __global__ void transpose_naive_rows_kernel(float *out, const float *in, int rows, int cols) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise transpose_naive: copy the element at (row, col) of `in` to its place in `out`, if there is one
  // hint: a row of `in` has `cols` floats, so (row, col) is at row * cols + col; a row of `out` has `rows` floats
  // hint: the element goes to row `col`, column `row` of `out`; blocks at the edge reach beyond both sizes
  // hint: if (row < rows && col < cols) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
  if (row < rows && col < cols) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
  // <<< exercise
}

/* The same with the roles of x and y exchanged, so that a warp writes neighbours. Scattered reads cost less than
 * scattered writes: the rest of a sector that was read stays in the caches until other threads need it. */
static __global__ void transpose_naive_columns_kernel(float *out, const float *in, int rows, int cols) {
  int row = rows, col = cols;
  // >>> exercise transpose_coalesced: choose row and column of `in` so that a warp writes along a row of `out`
  // hint: a row of `out` is a column of `in`: neighbours in it differ in `row`
  // hint: neighbouring threads of a warp differ in threadIdx.x, so `row` must come from the x indices
  // hint: row = blockIdx.x * blockDim.x + threadIdx.x; and col from y in the same way
  row = blockIdx.x * blockDim.x + threadIdx.x;
  col = blockIdx.y * blockDim.y + threadIdx.y;
  // <<< exercise
  // >>> hidden transpose_naive
  if (row < rows && col < cols) out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
  // <<< hidden
}

/* A block reads a tile of 32 x 32 along its rows and writes it along its columns. A row of the tile has 32 floats, as
 * many as there are banks, so a column lies in one bank: a warp that reads it needs 32 turns. */
static __global__ void transpose_tiled_kernel(float *out, const float *in, int rows, int cols) {
  __shared__ float tile[TRANSPOSE_TILE][TRANSPOSE_TILE];
  int row0 = blockIdx.y * TRANSPOSE_TILE, col0 = blockIdx.x * TRANSPOSE_TILE;
  int x = threadIdx.x;
  // >>> exercise transpose_tiled: read the tile at (row0, col0) along rows of `in`, write it along rows of `out`
  // hint: thread (x, threadIdx.y) takes rows threadIdx.y, + TRANSPOSE_BLOCK_ROWS, ... of column x; test the edges
  // hint: when the tile is written its rows are the columns of `in`: row col0 + y of `out`, column row0 + x
  // hint: tile[y][x] = in[...]; __syncthreads(); out[(size_t)(col0 + y) * rows + row0 + x] = tile[x][y];
  for (int y = threadIdx.y; y < TRANSPOSE_TILE; y += TRANSPOSE_BLOCK_ROWS)
    if (row0 + y < rows && col0 + x < cols) tile[y][x] = in[(size_t)(row0 + y) * cols + col0 + x];
  __syncthreads(); /* what a thread writes out, others have read in */
  for (int y = threadIdx.y; y < TRANSPOSE_TILE; y += TRANSPOSE_BLOCK_ROWS)
    if (col0 + y < cols && row0 + x < rows) out[(size_t)(col0 + y) * rows + row0 + x] = tile[x][y];
  // <<< exercise
}

static __global__ void transpose_padded_kernel(float *out, const float *in, int rows, int cols) {
  int row0 = blockIdx.y * TRANSPOSE_TILE, col0 = blockIdx.x * TRANSPOSE_TILE;
  int x = threadIdx.x;
  // >>> exercise transpose_padded: as transpose_tiled, with a tile in which a column touches every bank once
  // hint: float i of shared memory is in bank i % 32, so two floats of a column must not be a multiple of 32 apart
  // hint: an unused float at the end of each row moves the next row by one bank
  // hint: __shared__ float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1]; the rest is that of transpose_tiled
  __shared__ float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
  for (int y = threadIdx.y; y < TRANSPOSE_TILE; y += TRANSPOSE_BLOCK_ROWS)
    if (row0 + y < rows && col0 + x < cols) tile[y][x] = in[(size_t)(row0 + y) * cols + col0 + x];
  __syncthreads();
  for (int y = threadIdx.y; y < TRANSPOSE_TILE; y += TRANSPOSE_BLOCK_ROWS)
    if (col0 + y < cols && row0 + x < rows) out[(size_t)(col0 + y) * rows + row0 + x] = tile[x][y];
  // <<< exercise
}

/* For matrices whose rows all begin at a multiple of 16 bytes (float4_access.cuh).
 *
 * A block of 256 threads moves a tile of 64 x 64. Thread (x,y) of (16,16) takes 4 x 4 floats of it in four loads, all
 * in flight at once, and transposes them in registers: what it stores to shared memory are float4 of the transposed
 * tile. That tile is an array of 64 x 16 float4. It is swizzled: in row 4x + j, float4 y lies at place y ^ x. Without
 * the swizzle the threads of a warp, which write 4 rows apart, would all use the same banks; with it they use every
 * place of a row once. blockIdx.x goes down `in`: blocks that run at the same time write neighbouring parts of the same
 * rows of `out`. */
enum { TRANSPOSE_QUADS = 16, TRANSPOSE_WIDE_TILE = 4 * TRANSPOSE_QUADS };

static __global__ void __launch_bounds__(TRANSPOSE_QUADS *TRANSPOSE_QUADS, 8)
    transpose_vectorised_kernel(float *out, const float *in, int rows, int cols) {
  __shared__ float4 turned[TRANSPOSE_WIDE_TILE][TRANSPOSE_QUADS];
  int row0 = blockIdx.x * TRANSPOSE_WIDE_TILE, col0 = blockIdx.y * TRANSPOSE_WIDE_TILE;
  int x = threadIdx.x, y = threadIdx.y;
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) v[i] = quad_load<true>(in, row0 + 4 * y + i, col0 + 4 * x, rows, cols);
  turned[4 * x][y ^ x] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  turned[4 * x + 1][y ^ x] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  turned[4 * x + 2][y ^ x] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  turned[4 * x + 3][y ^ x] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int row = y + i * TRANSPOSE_QUADS; /* of the transposed tile */
    quad_store<true>(out, turned[row][x ^ row / 4], col0 + row, row0 + 4 * x, cols, rows);
  }
}

/* For all other matrices. Reading a part of a sector costs little, because the rest of it is needed soon. Writing a
 * part of a sector is expensive: the memory may have to read the rest of it first. So the piece of a row of `out` that
 * a block writes begins up to 7 floats further left, at the beginning of a sector; the pieces of a row still join
 * without a gap. For that the block also reads the TRANSPOSE_SECTOR rows of `in` before its tile. */
enum { TRANSPOSE_ROWS = 64, TRANSPOSE_COLS = 64, TRANSPOSE_THREADS = 256, TRANSPOSE_SECTOR = 8 };

static __global__ void __launch_bounds__(TRANSPOSE_THREADS, 8)
    transpose_shifted_kernel(float *out, const float *in, int rows, int cols) {
  __shared__ float tile[TRANSPOSE_SECTOR + TRANSPOSE_ROWS][TRANSPOSE_COLS + 1];
  int row0 = blockIdx.x * TRANSPOSE_ROWS, col0 = blockIdx.y * TRANSPOSE_COLS;
  int x = threadIdx.x % TRANSPOSE_COLS;
  /* With constant bounds the loop is unrolled and many of its 18 loads are in flight at once: 141 us for 8191 x 8193 on
   * an H200. With a loop from threadIdx.x on they are not: 209 us. */
#pragma unroll
  for (int i = 0; i < (TRANSPOSE_SECTOR + TRANSPOSE_ROWS) * TRANSPOSE_COLS / TRANSPOSE_THREADS; i++) {
    int y = threadIdx.x / TRANSPOSE_COLS + i * (TRANSPOSE_THREADS / TRANSPOSE_COLS);
    int row = row0 - TRANSPOSE_SECTOR + y;
    if (row >= 0 && row < rows && col0 + x < cols) tile[y][x] = in[(size_t)row * cols + col0 + x];
  }
  __syncthreads();
  /* A warp writes 8 float4 of each of 4 rows of `out`; 2 warps write 16 float4 of the same 4 rows. */
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int quad = warp % 2 * 8 + lane % 8;
#pragma unroll
  for (int i = 0; i < TRANSPOSE_COLS / (TRANSPOSE_THREADS / 16); i++) {
    int y = warp / 2 * 4 + lane / 8 + i * (TRANSPOSE_THREADS / 16);
    float *line = out + (size_t)(col0 + y) * rows; /* a row of `out` */
    int shift = (int)((uintptr_t)(line + row0) / sizeof(float) % TRANSPOSE_SECTOR);
    int row = row0 + 4 * quad - shift, at = TRANSPOSE_SECTOR + 4 * quad - shift; /* in the matrix, in the tile */
    if (col0 + y >= cols) continue;
    if (row >= 0 && row + 3 < rows) {
      *(float4 *)(line + row) = make_float4(tile[at][y], tile[at + 1][y], tile[at + 2][y], tile[at + 3][y]);
    } else {
      for (int j = 0; j < 4; j++)
        if (row + j >= 0 && row + j < rows) line[row + j] = tile[at + j][y];
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

static inline unsigned transpose_blocks(int size, int tile) { return (unsigned)((size + tile - 1) / tile); }

static inline void transpose_naive_rows(float *out, const float *in, int rows, int cols) {
  dim3 block(TRANSPOSE_TILE, TRANSPOSE_BLOCK_ROWS);
  dim3 grid(transpose_blocks(cols, TRANSPOSE_TILE), transpose_blocks(rows, TRANSPOSE_BLOCK_ROWS));
  transpose_naive_rows_kernel<<<grid, block>>>(out, in, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void transpose_naive_columns(float *out, const float *in, int rows, int cols) {
  dim3 block(TRANSPOSE_TILE, TRANSPOSE_BLOCK_ROWS);
  dim3 grid(transpose_blocks(rows, TRANSPOSE_TILE), transpose_blocks(cols, TRANSPOSE_BLOCK_ROWS));
  transpose_naive_columns_kernel<<<grid, block>>>(out, in, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void transpose_tiled(float *out, const float *in, int rows, int cols) {
  dim3 block(TRANSPOSE_TILE, TRANSPOSE_BLOCK_ROWS);
  dim3 grid(transpose_blocks(cols, TRANSPOSE_TILE), transpose_blocks(rows, TRANSPOSE_TILE));
  transpose_tiled_kernel<<<grid, block>>>(out, in, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void transpose_padded(float *out, const float *in, int rows, int cols) {
  dim3 block(TRANSPOSE_TILE, TRANSPOSE_BLOCK_ROWS);
  dim3 grid(transpose_blocks(cols, TRANSPOSE_TILE), transpose_blocks(rows, TRANSPOSE_TILE));
  transpose_padded_kernel<<<grid, block>>>(out, in, rows, cols);
  CUDA_CHECK_LAUNCH();
}

static inline void transpose_vectorised(float *out, const float *in, int rows, int cols) {
  if (quads_fit(in, cols) && quads_fit(out, rows)) {
    dim3 block(TRANSPOSE_QUADS, TRANSPOSE_QUADS);
    dim3 grid(transpose_blocks(rows, TRANSPOSE_WIDE_TILE), transpose_blocks(cols, TRANSPOSE_WIDE_TILE));
    transpose_vectorised_kernel<<<grid, block>>>(out, in, rows, cols);
  } else { /* because the pieces begin further left, the last one may need one more block */
    dim3 grid(transpose_blocks(rows + TRANSPOSE_SECTOR - 1, TRANSPOSE_ROWS), transpose_blocks(cols, TRANSPOSE_COLS));
    transpose_shifted_kernel<<<grid, TRANSPOSE_THREADS>>>(out, in, rows, cols);
  }
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_TRANSPOSE_CUH */

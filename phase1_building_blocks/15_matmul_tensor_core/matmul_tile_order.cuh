/* matmul_tile_order.cuh - the order in which blocks take the tiles of C, chosen for the L2 cache.
 *
 * A tile of C needs a strip of A and a strip of B. Strips come from memory unless another block has used them recently.
 * If tiles were taken row after row, the 132 blocks that run at a time on an H200 would need one strip of A and up to
 * 132 of B. Here tiles are numbered down the columns of a band of MATMUL_TILE_BAND rows, then those of the next band:
 * the tiles that are computed at a time form a compact patch, which needs 8 strips of A and 17 of B.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TILE_ORDER_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TILE_ORDER_CUH

#include <stddef.h>

#include "common/check.h"

enum { MATMUL_TILE_BAND = 8 };

/* Row and column of tile number `tile` of rows x cols tiles. */
static __host__ __device__ __forceinline__ void matmul_tile_place(int tile, int rows, int cols, int *row, int *col) {
  *row = *col = 0;
  // >>> exercise matmul_tile_order: set *row and *col to the place of tile number `tile`
  // hint: a band has MATMUL_TILE_BAND * cols tiles, the last one perhaps fewer; which band, and which tile of it?
  // hint: the band begins at row band * MATMUL_TILE_BAND; it has `height` = min(MATMUL_TILE_BAND, rows - that) rows
  // hint: within = tile % (MATMUL_TILE_BAND * cols) is its number there: column within / height, row within % height
  int band = tile / (MATMUL_TILE_BAND * cols), within = tile % (MATMUL_TILE_BAND * cols);
  int height = rows - band * MATMUL_TILE_BAND < MATMUL_TILE_BAND ? rows - band * MATMUL_TILE_BAND : MATMUL_TILE_BAND;
  *row = band * MATMUL_TILE_BAND + within % height;
  *col = within / height;
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* For the exercise: order (rows,cols) gets the number of each tile. */

static inline void matmul_tile_order_cpu(float *order, int rows, int cols) {
  int tile = 0;
  for (int band = 0; band < rows; band += MATMUL_TILE_BAND)
    for (int col = 0; col < cols; col++)
      for (int row = band; row < band + MATMUL_TILE_BAND && row < rows; row++)
        order[(size_t)row * cols + col] = (float)tile++;
}

static __global__ void matmul_tile_order_kernel(float *order, int rows, int cols) {
  int tile = blockIdx.x * blockDim.x + threadIdx.x, row, col;
  if (tile >= rows * cols) return;
  matmul_tile_place(tile, rows, cols, &row, &col);
  order[(size_t)row * cols + col] = (float)tile;
}

static inline void matmul_tile_order(float *order, int rows, int cols) {
  matmul_tile_order_kernel<<<(unsigned)(rows * cols + 127) / 128, 128>>>(order, rows, cols);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TILE_ORDER_CUH */

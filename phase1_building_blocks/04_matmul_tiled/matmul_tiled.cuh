/* matmul_tiled.cuh - C (M,N) = A (M,K) B (K,N) through tiles in shared memory. Row-major, sizes at least 1, M at most a
 * million (a grid has at most 65535 blocks in y, here of 16 rows).
 *
 * A block computes a TILE x TILE tile of C, one element per thread. It walks along K: at each step its threads copy a
 * tile of A and one of B into shared memory, one float of each per thread, and then each of these floats is used TILE
 * times from there. So there are TILE times fewer loads from global memory than in matmul_naive(). The reference is
 * matmul_cpu() of matmul.cuh.
 *
 *          K          N                     B's tile: rows k0 ..., the columns of C's tile
 *       +-----+    +-----+
 *     M | A   |  x | B   | K                A's tile: the rows of C's tile, columns k0 ...
 *       +-----+    +-----+
 *
 *   matmul_tiled_16  16 x 16 tiles, 256 threads
 *   matmul_tiled     32 x 32 tiles, 1024 threads: half the global loads, and a warp is a row of the tile
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_TILED_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_TILED_CUH

#include <stddef.h>

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

/* Copies this thread's float of each tile. Outside the matrices a tile is 0, which adds nothing to a sum, so the loop
 * over a tile needs no bounds. A's tile begins at (row0, k0), B's at (k0, col0). */
template <int TILE>
static __device__ void matmul_tiled_load(float (*a_tile)[TILE], float (*b_tile)[TILE], const float *a, const float *b,
                                         int row0, int col0, int k0, int m, int n, int k) {
  int y = threadIdx.y, x = threadIdx.x;
  // >>> exercise matmul_tiled_load: fill a_tile[y][x] and b_tile[y][x], with 0 where they lie outside A and B
  // hint: a_tile[y][x] is the element of A at row row0 + y, column k0 + x; A is (m,k)
  // hint: b_tile[y][x] is the element of B at row k0 + y, column col0 + x; B is (k,n)
  // hint: a_tile[y][x] = row0 + y < m && k0 + x < k ? a[(size_t)(row0 + y) * k + k0 + x] : 0.0f; and so for B
  a_tile[y][x] = row0 + y < m && k0 + x < k ? a[(size_t)(row0 + y) * k + k0 + x] : 0.0f;
  b_tile[y][x] = k0 + y < k && col0 + x < n ? b[(size_t)(k0 + y) * n + col0 + x] : 0.0f;
  // <<< exercise
}

template <int TILE>
static __global__ void __launch_bounds__(TILE *TILE)
    matmul_tiled_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  int y = threadIdx.y, x = threadIdx.x;
  int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  float sum = 0.0f;
  /* The products of each tile have a sum of their own: see matmul_chunk.cuh. */
  // >>> exercise matmul_tiled_barriers: walk over the tiles along K: load (matmul_tiled_load), wait, add, wait
  // hint: every thread adds up floats that others loaded: it must wait until all have loaded
  // hint: the next tiles overwrite these: wait once more, until all have added. Threads outside C take part as well
  // hint: for k0 = 0, TILE, ...: load; __syncthreads(); sum += chunk of a_tile[y][i] * b_tile[i][x]; __syncthreads()
  for (int k0 = 0; k0 < k; k0 += TILE) {
    matmul_tiled_load<TILE>(a_tile, b_tile, a, b, row0, col0, k0, m, n, k);
    __syncthreads(); /* the tiles are complete */
    float chunk = 0.0f;
    for (int i = 0; i < TILE; i++) chunk += a_tile[y][i] * b_tile[i][x];
    sum += chunk;
    __syncthreads(); /* and may be overwritten */
  }
  // <<< exercise
  if (row0 + y < m && col0 + x < n) c[(size_t)(row0 + y) * n + col0 + x] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <int TILE>
static inline void matmul_tiled_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  matmul_tiled_kernel<TILE><<<grid, block>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_tiled_16(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_tiled_launch<16>(c, a, b, m, n, k);
}

static inline void matmul_tiled(float *c, const float *a, const float *b, int m, int n, int k) {
  matmul_tiled_launch<32>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_TILED_CUH */

/* matmul_rows.cuh - the ring of stages of matmul_wgmma.cuh for factors that are not bfloat16, and for two sets of sums:
 * C (M,N) from rows of A and rows of B transposed.
 *
 * wgmma reads factors of 8 or of 32 bits only if their rows run along K. So B is stored transposed, (N,K). Then a
 * stage is 128 bytes of 128 rows of A and of 256 rows of B transposed, whatever the numbers are: 128 of 8 bits, 64 of
 * 16, 32 of 32. Each is one box: 128 bytes are the longest row that is swizzled. The tiles of C, the clusters of two
 * blocks and the bytes of a stage are those of matmul_wgmma.cuh.
 *
 * Two sets of sums. What the tensor cores add up in a stage is a part, which ordinary instructions then add to the
 * sums: they round, or scale, as tensor cores cannot. A consumer has registers for its 64 x 256 sums and for a part of
 * 64 x 128, so it takes the left half of its columns and then the right one. While one consumer adds, the tensor cores
 * multiply for the other.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

enum {
  MATMUL_ROWS_BYTES = 128, /* of a row in a stage */
  MATMUL_ROWS_CLUSTER = 2,
  MATMUL_ROWS_STAGES = 4,
  MATMUL_ROWS_SHARE = MATMUL_WGMMA_COLS / MATMUL_ROWS_CLUSTER,   /* rows of B transposed that each block copies */
  MATMUL_ROWS_PART = 128,                                        /* columns of a part */
  MATMUL_ROWS_PART_BYTES = MATMUL_ROWS_PART * MATMUL_ROWS_BYTES, /* of B transposed in a stage */
};

#ifdef HOPPER_COMPILED

/* In `shared`, room for the ring from a multiple of 1024 bytes on, since the swizzle repeats every 1024 bytes; the
 * mbarriers are initialised. */
static __device__ __forceinline__ MatmulRing matmul_rows_ring(const void *shared, const uint64_t *full_barrier,
                                                              const uint64_t *empty_barrier) {
  MatmulRing ring;
  ring.tiles = (shared_address(shared) + 1023) & ~1023u;
  ring.full = shared_address(full_barrier);
  ring.empty = shared_address(empty_barrier);
  matmul_wgmma_init_barriers<MATMUL_ROWS_CLUSTER, MATMUL_ROWS_STAGES>(&ring);
  return ring;
}

/* `steps` stages per tile of C (m,n). */
static __device__ __forceinline__ MatmulWgmmaWork matmul_rows_work(int m, int n, int steps) {
  return matmul_wgmma_work<MATMUL_ROWS_CLUSTER>(m, n, steps * MATMUL_WGMMA_DEPTH);
}

/* The producer, one thread: fills stage after stage with the rows of all steps of all its tiles of C. Each block of a
 * cluster copies its own rows of A, and half of the rows of B transposed for both. */
static __device__ __forceinline__ void matmul_rows_produce(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                           const CUtensorMap *a_map, const CUtensorMap *b_map) {
  int stage = 0;
  uint32_t phase = 0;
  for (int tile = blockIdx.x / MATMUL_ROWS_CLUSTER; tile < work->rows * work->cols; tile += work->clusters) {
    int row, col, row0, col0;
    matmul_tile_place(tile, work->rows, work->cols, &row, &col);
    matmul_wgmma_place<MATMUL_ROWS_CLUSTER>(work, tile, &row0, &col0);
    col0 += work->rank * MATMUL_ROWS_SHARE;
    for (int step = 0; step < work->steps; step++) {
      uint32_t full = ring->full + 8 * stage, a_tile = ring->tiles + stage * MATMUL_WGMMA_STAGE_BYTES;
      uint32_t b_tile = a_tile + MATMUL_WGMMA_A_BYTES + work->rank * MATMUL_ROWS_SHARE * MATMUL_ROWS_BYTES;
      mbarrier_wait(ring->empty + 8 * stage, phase ^ 1); /* returns at once in the first round */
      mbarrier_arrive_expect(full, MATMUL_WGMMA_STAGE_BYTES);
      tma_load(a_tile, a_map, step * MATMUL_ROWS_BYTES, row0, full);
      tma_load_multicast(b_tile, b_map, step * MATMUL_ROWS_BYTES, col0, full, (1 << MATMUL_ROWS_CLUSTER) - 1);
      int later = step + MATMUL_WGMMA_EARLY; /* to the L2 cache: one of eight neighbours that use the same rows */
      if (later < work->steps && col % 8 == 0) tma_prefetch(a_map, later * MATMUL_ROWS_BYTES, row0);
      if (later < work->steps && row % 8 == 0) tma_prefetch(b_map, later * MATMUL_ROWS_BYTES, col0);
      matmul_ring_advance<MATMUL_ROWS_STAGES>(&stage, &phase);
    }
  }
}

/* The number of this thread's consumer, 0 or 1. By way of a shuffle, so that the compiler knows that it is the same for
 * the whole warp: it then computes addresses once per warp. */
static __device__ __forceinline__ int matmul_rows_consumer(void) {
  return __shfl_sync(0xFFFFFFFFu, (int)threadIdx.x / 128, 0) - 1;
}

/* The descriptor of the rows at `tile`, from byte `from` of their 128 on. */
static __device__ __forceinline__ uint64_t matmul_rows_descriptor(uint32_t tile, int from) {
  return wgmma_descriptor(tile + from, 8 * MATMUL_ROWS_BYTES, 0);
}

/* Calls write4(row, col, four) for all sums of this thread: four neighbours in a row of C, from the 64 x 256 at
 * (row0, col0). As in matmul_mma_write(), lanes 2i and 2i + 1 exchange pairs. */
template <typename Write4>
static __device__ __forceinline__ void matmul_rows_write(const float (&sum)[2][64], int row0, int col0, int m, int n,
                                                         Write4 write4) {
  int lane = threadIdx.x % 32;
  bool odd = lane % 2;
  row0 += threadIdx.x / 32 % 4 * 16 + lane / 4;
  col0 += lane % 2 * 8 + lane % 4 / 2 * 4;
#pragma unroll
  for (int j = 0; j < 128; j += 8)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {                                   /* this row, and the eighth below */
      const float *left = &sum[j / 64][j % 64 + i], *right = left + 4; /* of 8 columns, and of the 8 to their right */
      float x = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[0] : right[0], 1);
      float y = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[1] : right[1], 1);
      int row = row0 + i / 2 * 8, col = col0 + 2 * j;
      if (row < m && col < n)
        write4(row, col, odd ? make_float4(x, y, right[0], right[1]) : make_float4(left[0], left[1], x, y));
    }
}

#endif

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launching */

/* The tensor map of `rows` rows of `pitch` bytes at x, both multiples of 16. */
static inline CUtensorMap matmul_rows_map(const void *x, int rows, size_t pitch, int box_rows) {
  return matmul_wgmma_map_of(x, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, rows, (int)pitch, box_rows);
}

/* How a kernel of the ring is launched for C (m,n). */
static inline cudaLaunchConfig_t matmul_rows_config(cudaLaunchAttribute *attribute, const void *kernel, int m, int n) {
  const int bytes = MATMUL_ROWS_STAGES * MATMUL_WGMMA_STAGE_BYTES + 1024;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  return matmul_wgmma_config<MATMUL_ROWS_CLUSTER>(attribute, matmul_wgmma_clusters<MATMUL_ROWS_CLUSTER>(m, n), true,
                                                  bytes);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH */

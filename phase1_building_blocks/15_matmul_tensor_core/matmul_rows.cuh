/* matmul_rows.cuh - what the products of this lesson that are not of bfloat16 have in common: C (M,N) from rows of A
 * and rows of B^T, both along K, by the ring of stages of matmul_wgmma.cuh.
 *
 * wgmma reads factors of 8 and of 32 bits only if their rows run along K. So B is stored transposed, (N,K). Then a
 * stage is 128 bytes of so many rows of A and of so many rows of B^T, whatever the numbers are: 128 of 8 bits, 64 of 16,
 * 32 of 32. One box each, the longest row that is swizzled.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

enum { MATMUL_ROWS_BYTES = 128 }; /* of a row in a stage */

#ifdef HOPPER_COMPILED

/* The tiles of C that are computed: a cluster computes every `clusters`-th tile, CLUSTER x ROWS rows and COLS columns;
 * block `rank` of the cluster has the rank-th ROWS rows. */
typedef struct MatmulRowsWork {
  int rank, clusters;
  int rows, cols, steps; /* tiles along M, along N; stages per tile along K */
} MatmulRowsWork;

template <int ROWS, int COLS, int CLUSTER>
static __device__ __forceinline__ MatmulRowsWork matmul_rows_work(int m, int n, int steps) {
  MatmulRowsWork work;
  work.rank = blockIdx.x % CLUSTER;
  work.clusters = gridDim.x / CLUSTER;
  work.rows = (m + CLUSTER * ROWS - 1) / (CLUSTER * ROWS);
  work.cols = (n + COLS - 1) / COLS;
  work.steps = steps;
  return work;
}

/* First row and column in C of this block's part of tile `tile`. */
template <int ROWS, int COLS, int CLUSTER>
static __device__ __forceinline__ void matmul_rows_place(const MatmulRowsWork *work, int tile, int *row0, int *col0) {
  int row, col;
  matmul_tile_place(tile, work->rows, work->cols, &row, &col);
  *row0 = (row * CLUSTER + work->rank) * ROWS;
  *col0 = col * COLS;
}

/* One thread initialises the mbarriers: `full` waits for the producer's announcement and its bytes, `empty` for the
 * consumer warps of all blocks of the cluster, since a multicast writes to all of them. */
template <int CLUSTER, int STAGES>
static __device__ __forceinline__ void matmul_rows_init_barriers(const MatmulRing *ring, int consumer_warps) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(ring->full + 8 * i, 1);
      mbarrier_init(ring->empty + 8 * i, consumer_warps * CLUSTER);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (CLUSTER > 1) cluster_sync();
}

/* The producer, one thread: fills stage after stage with the rows of all steps of all its tiles of C. In a cluster each
 * block copies its own rows of A, and a share of the rows of B^T for all blocks. EARLY stages before its copy a tile is
 * brought to the L2 cache; 0: it is not. */
template <int ROWS, int COLS, int CLUSTER, int STAGES, int EARLY>
static __device__ __forceinline__ void matmul_rows_produce(const MatmulRing *ring, const MatmulRowsWork *work,
                                                           const CUtensorMap *a_map, const CUtensorMap *b_map) {
  const int share = COLS / CLUSTER, stage_bytes = (ROWS + COLS) * MATMUL_ROWS_BYTES;
  int stage = 0;
  uint32_t phase = 0;
  for (int tile = blockIdx.x / CLUSTER; tile < work->rows * work->cols; tile += work->clusters) {
    int row0, col0;
    matmul_rows_place<ROWS, COLS, CLUSTER>(work, tile, &row0, &col0);
    bool a_early = col0 / COLS % 8 == 0, b_early = row0 / (CLUSTER * ROWS) % 8 == 0; /* neighbours use the same rows */
    col0 += work->rank * share;
    for (int step = 0; step < work->steps; step++) {
      uint32_t full = ring->full + 8 * stage, a_tile = ring->tiles + stage * stage_bytes;
      uint32_t b_tile = a_tile + (ROWS + work->rank * share) * MATMUL_ROWS_BYTES;
      mbarrier_wait(ring->empty + 8 * stage, phase ^ 1); /* returns at once in the first round */
      mbarrier_arrive_expect(full, stage_bytes);
      tma_load(a_tile, a_map, step * MATMUL_ROWS_BYTES, row0, full);
      if (CLUSTER == 1)
        tma_load(b_tile, b_map, step * MATMUL_ROWS_BYTES, col0, full);
      else
        tma_load_multicast(b_tile, b_map, step * MATMUL_ROWS_BYTES, col0, full, (1 << CLUSTER) - 1);
      if (EARLY > 0 && step + EARLY < work->steps) {
        if (a_early) tma_prefetch(a_map, (step + EARLY) * MATMUL_ROWS_BYTES, row0);
        if (b_early) tma_prefetch(b_map, (step + EARLY) * MATMUL_ROWS_BYTES, col0);
      }
      matmul_ring_advance<STAGES>(&stage, &phase);
    }
  }
}

/* Tells the producers of all blocks of the cluster that this warp has finished reading `stage`. */
template <int CLUSTER>
static __device__ __forceinline__ void matmul_rows_release(const MatmulRing *ring, int stage) {
  int lane = threadIdx.x % 32;
  if (lane < CLUSTER) mbarrier_arrive_cluster(ring->empty + 8 * stage, lane);
}

/* The descriptor of the rows at `tile`, from byte `from` of their 128 on. */
static __device__ __forceinline__ uint64_t matmul_rows_descriptor(uint32_t tile, int from) {
  return wgmma_descriptor(tile + from, 8 * MATMUL_ROWS_BYTES, 0);
}

#endif

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launching */

/* The tensor map of `rows` rows of `pitch` bytes at x, both multiples of 16: boxes of 128 bytes with the 128-byte
 * swizzle, zeros outside. */
static inline CUtensorMap matmul_rows_map(const void *x, int rows, size_t pitch, int box_rows) {
  CUtensorMap map;
  cuuint64_t size[2] = {(cuuint64_t)pitch, (cuuint64_t)rows}, stride[1] = {(cuuint64_t)pitch};
  cuuint32_t box[2] = {MATMUL_ROWS_BYTES, (cuuint32_t)box_rows}, step[2] = {1, 1};
  CUresult status = matmul_wgmma_encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)x, size, stride, box, step,
                                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) die("matmul_rows: no tensor map of %d rows of %zu bytes: error %d", rows, pitch, (int)status);
  return map;
}

/* The blocks of a persistent kernel: the fewest rounds, then the fewest blocks that need no more rounds. */
static inline unsigned matmul_rows_blocks(int m, int n, int rows, int cols, int cluster) {
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  int tiles = (m + cluster * rows - 1) / (cluster * rows) * ((n + cols - 1) / cols);
  int most = multiprocessors / cluster, rounds = (tiles + most - 1) / most;
  return (unsigned)((tiles + rounds - 1) / rounds * cluster);
}

/* How a kernel is launched with clusters; *attribute must live as long. */
static inline cudaLaunchConfig_t matmul_rows_config(cudaLaunchAttribute *attribute, unsigned blocks, int threads,
                                                    int bytes, int cluster) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = (unsigned)cluster;
  attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3((unsigned)threads);
  config.dynamicSmemBytes = (size_t)bytes;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_ROWS_CUH */

/* matmul_wgmma.cuh - C (M,N) = A (M,K) B (K,N) with the instructions of Hopper: bfloat16 factors, float32 sums.
 * Row-major.
 *
 * With mma.sync a warp loads its operands into registers before it multiplies, and those loads are what limits it. From
 * compute capability 9.0 on, one wgmma instruction of a warpgroup (four warps) computes 64 x 256 sums, and the tensor
 * cores read the operands from shared memory themselves. One thread issues a TMA (Tensor Memory Accelerator) copy of a
 * whole tile. What remains to be written is who waits for whom. The warps are specialised:
 *
 *     producer   one thread of the first warpgroup: waits until a stage of the ring is empty, issues the TMA copies of
 *                the next pair of tiles into it. The warpgroup gives up most of its registers (setmaxnreg)
 *     consumers  two warpgroups, 64 rows each of the 128 x 256 tile: wait until a stage is full, multiply, release it.
 *                They take the registers (setmaxnreg): 128 sums per thread need them
 *
 * A stage of the ring has two mbarriers in shared memory. `full` counts the bytes that have arrived, `empty` the warps
 * that have finished reading. Each wait names the parity of a phase, 0 or 1, which alternates from round to round.
 *
 *   matmul_wgmma_one_stage    one stage: copies and products take turns
 *   matmul_wgmma_ring         a ring of four stages: copies run up to three stages ahead
 *   matmul_wgmma_persistent   a block computes tile after tile: the copies of the next tile begin before C is written
 *   matmul_wgmma_cluster      two blocks with the same columns of C form a cluster: each loads half of B's tile and
 *                             multicasts it to both, so that the L2 cache is read a third less; besides, TMA prefetches
 *                             bring tiles to the L2 cache eight stages ahead
 *
 * matmul_wgmma_store.cuh has the next step.
 *
 * hopper.cuh has one function per instruction. TMA requires rows that are multiples of 16 bytes, and M, N, K less than
 * 2^31; other arguments go to matmul_mma().
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/hopper.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/tensor_map.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

enum {
  MATMUL_WGMMA_ROWS = 128, /* of C per block, 64 for each consumer */
  MATMUL_WGMMA_COLS = 256,
  MATMUL_WGMMA_DEPTH = 64,    /* columns of A per stage: 128 bytes, the longest row that is swizzled */
  MATMUL_WGMMA_EARLY = 8,     /* stages from the prefetch of a tile to the L2 cache to its copy */
  MATMUL_WGMMA_THREADS = 384, /* producer, consumer, consumer: warpgroups of 128 */
  MATMUL_WGMMA_CONSUMER_WARPS = 8,
  MATMUL_WGMMA_A_BYTES = MATMUL_WGMMA_ROWS * MATMUL_WGMMA_DEPTH * 2,
  MATMUL_WGMMA_B_BYTES = MATMUL_WGMMA_DEPTH * MATMUL_WGMMA_COLS * 2,
  MATMUL_WGMMA_STAGE_BYTES = MATMUL_WGMMA_A_BYTES + MATMUL_WGMMA_B_BYTES,
  MATMUL_WGMMA_BOX_BYTES = MATMUL_WGMMA_DEPTH * 64 * 2, /* B is copied in boxes of 64 columns: 128 bytes */
};

#ifdef HOPPER_COMPILED

/* The ring of stages: addresses in shared memory of stage 0, and of the first of STAGES mbarriers of each kind. */
typedef struct MatmulRing {
  uint32_t tiles, full, empty;
} MatmulRing;

/* To the next stage. Producer and consumers each walk round the ring on their own. */
template <int STAGES>
static __device__ __forceinline__ void matmul_ring_advance(int *stage, uint32_t *phase) {
  if (++*stage < STAGES) return;
  *stage = 0;
  *phase ^= 1;
}

/* The tiles of C that are computed: a cluster computes every `clusters`-th tile, CLUSTER x 128 rows and 256 columns;
 * block `rank` of the cluster has the rank-th 128 rows. */
typedef struct MatmulWgmmaWork {
  int rank, clusters;    /* block of the cluster; clusters of the grid */
  int rows, cols, steps; /* tiles along M, along N; stages per tile along K */
} MatmulWgmmaWork;

template <int CLUSTER>
static __device__ __forceinline__ MatmulWgmmaWork matmul_wgmma_work(int m, int n, int k) {
  MatmulWgmmaWork work;
  work.rank = blockIdx.x % CLUSTER;
  work.clusters = gridDim.x / CLUSTER;
  work.rows = (m + CLUSTER * MATMUL_WGMMA_ROWS - 1) / (CLUSTER * MATMUL_WGMMA_ROWS);
  work.cols = (n + MATMUL_WGMMA_COLS - 1) / MATMUL_WGMMA_COLS;
  work.steps = (k + MATMUL_WGMMA_DEPTH - 1) / MATMUL_WGMMA_DEPTH;
  return work;
}

/* First row and column in C of this block's part of tile `tile`, in an order of the tiles that suits the L2 cache. */
template <int CLUSTER>
static __device__ __forceinline__ void matmul_wgmma_place(const MatmulWgmmaWork *work, int tile, int *row0, int *col0) {
  int row, col;
  matmul_tile_place(tile, work->rows, work->cols, &row, &col);
  *row0 = (row * CLUSTER + work->rank) * MATMUL_WGMMA_ROWS;
  *col0 = col * MATMUL_WGMMA_COLS;
}

/* One thread initialises the mbarriers: `full` waits for the producer's announcement and its bytes, `empty` for the
 * consumer warps of all blocks of the cluster, since a multicast writes to all of them. */
template <int CLUSTER, int STAGES>
static __device__ __forceinline__ void matmul_wgmma_init_barriers(const MatmulRing *ring) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      mbarrier_init(ring->full + 8 * i, 1);
      mbarrier_init(ring->empty + 8 * i, MATMUL_WGMMA_CONSUMER_WARPS * CLUSTER);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (CLUSTER > 1) cluster_sync();
}

/* Issues the TMA copies of one pair of tiles: the 128 x 64 elements of A from row0 on, and the 64 x 256 of B from col0
 * on in four boxes. Their bytes count at `full`. In a cluster this block copies half of B's boxes, for both blocks. */
template <int CLUSTER>
static __device__ __forceinline__ void matmul_wgmma_load(uint32_t a_tile, uint32_t full, const CUtensorMap *a_map,
                                                         const CUtensorMap *b_map, int row0, int col0, int step,
                                                         int rank) {
  uint32_t b_tile = a_tile + MATMUL_WGMMA_A_BYTES;
  mbarrier_arrive_expect(full, MATMUL_WGMMA_STAGE_BYTES);
  tma_load(a_tile, a_map, step * MATMUL_WGMMA_DEPTH, row0, full);
#pragma unroll
  for (int i = 0; i < 4 / CLUSTER; i++) {
    int box = rank * (4 / CLUSTER) + i;
    if (CLUSTER == 1)
      tma_load(b_tile + box * MATMUL_WGMMA_BOX_BYTES, b_map, col0 + 64 * box, step * MATMUL_WGMMA_DEPTH, full);
    else
      tma_load_multicast(b_tile + box * MATMUL_WGMMA_BOX_BYTES, b_map, col0 + 64 * box, step * MATMUL_WGMMA_DEPTH, full,
                         (1 << CLUSTER) - 1);
  }
}

/* Brings the same tiles, or one of them, to the L2 cache. */
template <int CLUSTER>
static __device__ __forceinline__ void matmul_wgmma_prefetch(const CUtensorMap *a_map, const CUtensorMap *b_map,
                                                             int row0, int col0, int step, int rank, bool a, bool b) {
  if (a) tma_prefetch(a_map, step * MATMUL_WGMMA_DEPTH, row0);
  if (b)
#pragma unroll
    for (int i = 0; i < 4 / CLUSTER; i++)
      tma_prefetch(b_map, col0 + 64 * (rank * (4 / CLUSTER) + i), step * MATMUL_WGMMA_DEPTH);
}

/* The producer, one thread: fills stage after stage with the tiles of all steps of all its tiles of C. */
template <int CLUSTER, int STAGES>
static __device__ __forceinline__ void matmul_wgmma_produce(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                            const CUtensorMap *a_map, const CUtensorMap *b_map) {
  int stage = 0;
  uint32_t phase = 0;
  for (int tile = blockIdx.x / CLUSTER; tile < work->rows * work->cols; tile += work->clusters) {
    int row, col;
    matmul_tile_place(tile, work->rows, work->cols, &row, &col);
    /* Eight neighbouring blocks use the same tile of A or of B: one of the eight prefetches it. */
    bool prefetch_a = CLUSTER > 1 && col % 8 == 0, prefetch_b = CLUSTER > 1 && row % 8 == 0;
    int row0 = (row * CLUSTER + work->rank) * MATMUL_WGMMA_ROWS, col0 = col * MATMUL_WGMMA_COLS;
    for (int step = 0; step < work->steps; step++) {
      uint32_t a_tile = ring->tiles + stage * MATMUL_WGMMA_STAGE_BYTES;
      mbarrier_wait(ring->empty + 8 * stage, phase ^ 1); /* returns at once in the first round */
      matmul_wgmma_load<CLUSTER>(a_tile, ring->full + 8 * stage, a_map, b_map, row0, col0, step, work->rank);
      int later = step + MATMUL_WGMMA_EARLY;
      matmul_wgmma_prefetch<CLUSTER>(a_map, b_map, row0, col0, later, work->rank, prefetch_a && later < work->steps,
                                     prefetch_b && later < work->steps);
      matmul_ring_advance<STAGES>(&stage, &phase);
    }
  }
}

/* Starts the products of one stage: sum (64,256) = A's tile (64,64) B's tile (64,256) + `add` sum, 16 columns of A at a
 * time. They are 32 bytes of a swizzled row; 16 rows of B are two groups of 8. */
static __device__ __forceinline__ void matmul_wgmma_multiply(float (&sum)[128], uint32_t a_tile, uint32_t b_tile,
                                                             bool add) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < MATMUL_WGMMA_DEPTH; i += 16)
    wgmma_64x256x16(sum, wgmma_descriptor(a_tile + 2 * i, 1024, 0),
                    wgmma_descriptor(b_tile + 128 * i, 1024, MATMUL_WGMMA_BOX_BYTES), add || i > 0);
  wgmma_commit();
}

/* Tells the producers of all blocks of the cluster that this warp has finished reading `stage`. */
template <int CLUSTER>
static __device__ __forceinline__ void matmul_wgmma_release(const MatmulRing *ring, int stage) {
  int lane = threadIdx.x % 32;
  if (lane < CLUSTER) mbarrier_arrive_cluster(ring->empty + 8 * stage, lane);
}

/* The sums of a warpgroup to the 64 x 256 elements of C at (row0, col0). Each of its warps has 16 rows, in 16 x 8 sums
 * as mma.sync has them. */
static __device__ __forceinline__ void matmul_wgmma_write(float *c, const float (&sum)[128], int row0, int col0, int m,
                                                          int n) {
#pragma unroll
  for (int j = 0; j < 128; j += 8)
    matmul_mma_write(c, sum + j, sum + j + 4, row0 + threadIdx.x / 32 % 4 * 16, col0 + 2 * j, m, n);
}

/* A consumer warpgroup sums up one tile of C: multiplies stage after stage. Products run asynchronously: when those of
 * one stage have been started, the consumer waits for those of the stage before, and releases it. With a single stage
 * there is no such overlap. */
template <int CLUSTER, int STAGES>
static __device__ __forceinline__ void matmul_wgmma_sum(float (&sum)[128], const MatmulRing *ring, int steps,
                                                        int *stage_at, uint32_t *phase_at) {
  int stage = *stage_at, last = 0, consumer = threadIdx.x / 128 - 1; /* last: the stage that is being read */
  uint32_t phase = *phase_at;
  for (int step = 0; step < steps; step++) {
    uint32_t a_tile = ring->tiles + stage * MATMUL_WGMMA_STAGE_BYTES, b_tile = a_tile + MATMUL_WGMMA_A_BYTES;
    a_tile += consumer * 64 * 128; /* its 64 rows of 128 bytes */
    // >>> exercise matmul_wgmma_consume: wait for the stage, start its products, release the stage of the step before
    // hint: the stage is full at the end of the phase of parity `phase`; matmul_wgmma_multiply() only starts products
    // hint: wgmma_wait<1>() lets the latest products run on; the stage `last` was read by those before them
    // hint: in step 0 nothing is to be added, and no stage to be released; with a single stage wait for all products
    mbarrier_wait(ring->full + 8 * stage, phase);
    matmul_wgmma_multiply(sum, a_tile, b_tile, step > 0);
    wgmma_wait<(STAGES > 1 ? 1 : 0)>();
    if (STAGES == 1) last = stage;
    if (STAGES == 1 || step > 0) matmul_wgmma_release<CLUSTER>(ring, last);
    // <<< exercise
    last = stage;
    matmul_ring_advance<STAGES>(&stage, &phase);
  }
  wgmma_wait<0>();
  if (STAGES > 1) matmul_wgmma_release<CLUSTER>(ring, last);
  *stage_at = stage;
  *phase_at = phase;
}

/* A consumer warpgroup: tile after tile, its 64 rows of each. */
template <int CLUSTER, int STAGES>
static __device__ __forceinline__ void matmul_wgmma_consume(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                            float *c, int m, int n) {
  int stage = 0, consumer = threadIdx.x / 128 - 1;
  uint32_t phase = 0;
  float sum[128];
  for (int tile = blockIdx.x / CLUSTER; tile < work->rows * work->cols; tile += work->clusters) {
    matmul_wgmma_sum<CLUSTER, STAGES>(sum, ring, work->steps, &stage, &phase);
    int row0, col0;
    matmul_wgmma_place<CLUSTER>(work, tile, &row0, &col0);
    matmul_wgmma_write(c, sum, row0 + 64 * consumer, col0, m, n);
  }
}
#endif

/* Warp specialization: the first warpgroup produces, the other two consume. A block starts with 168 registers per
 * thread; setmaxnreg moves them from the producer to the consumers. */
template <int CLUSTER, int STAGES>
static __global__ void __launch_bounds__(MATMUL_WGMMA_THREADS, 1)
    matmul_wgmma_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float *c,
                        int m, int n, int k) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char matmul_wgmma_shared[];
  __shared__ __align__(8) uint64_t full_barrier[STAGES], empty_barrier[STAGES];
  MatmulRing ring;
  ring.tiles = (shared_address(matmul_wgmma_shared) + 1023) & ~1023u; /* the swizzle repeats every 1024 bytes */
  ring.full = shared_address(full_barrier);
  ring.empty = shared_address(empty_barrier);
  MatmulWgmmaWork work = matmul_wgmma_work<CLUSTER>(m, n, k);
  matmul_wgmma_init_barriers<CLUSTER, STAGES>(&ring);

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<24>();
    if (threadIdx.x == 0) matmul_wgmma_produce<CLUSTER, STAGES>(&ring, &work, &a_map, &b_map);
    __syncwarp();
  } else {
    setmaxnreg_increase<240>();
    matmul_wgmma_consume<CLUSTER, STAGES>(&ring, &work, c, m, n);
  }
  if (CLUSTER > 1) cluster_sync(); /* no block exits while another may write to its shared memory */
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* 1 if the kernel was compiled: a program may contain code for sm_90 but none for sm_90a. */
static __global__ void matmul_wgmma_compiled_kernel(int *compiled) {
#ifdef HOPPER_COMPILED
  *compiled = 1;
#else
  *compiled = 0;
#endif
}

/* Why this GPU or this program cannot run matmul_wgmma; NULL if it can. */
static inline const char *matmul_wgmma_refusal(void) {
  static int known, compiled;
  int device, major, minor, *answer;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return "there is no GPU";
  }
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
#ifdef SIMT_REWRITTEN
  if (major != 9) return "wgmma and TMA need compute capability 9.0; the emulated GPU has 8.0";
#endif
  if (major != 9 || minor != 0) return "wgmma is an instruction of compute capability 9.0 (H100, H200) and no other";
  if (!known) {
    CUDA_CHECK(cudaMalloc((void **)&answer, sizeof *answer));
    matmul_wgmma_compiled_kernel<<<1, 1>>>(answer);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&compiled, answer, sizeof compiled, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(answer));
    known = 1;
  }
  return compiled
             ? NULL
             : "the program was compiled without wgmma: build it for 90a (nvcc -gencode=arch=compute_90a,code=sm_90a)";
}

/* The tensor map of a row-major matrix x (rows,cols): boxes of box_rows x 128 bytes. */
static inline CUtensorMap matmul_wgmma_map_of(const void *x, CUtensorMapDataType type, size_t element, int rows,
                                              int cols, int box_rows) {
  const cuuint64_t size[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, pitch[1] = {(cuuint64_t)cols * element};
  const cuuint32_t box[2] = {(cuuint32_t)(128 / element), (cuuint32_t)box_rows};
  return tensor_map(x, type, 2, size, pitch, box);
}

static inline CUtensorMap matmul_wgmma_map(const __nv_bfloat16 *x, int rows, int cols, int box_rows) {
  return matmul_wgmma_map_of(x, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, sizeof *x, rows, cols, box_rows);
}

/* How a kernel of the ring is launched: clusters of CLUSTER blocks along x, `clusters` of them, or if the kernel is
 * persistent the fewest that need no more rounds than all that run at a time. */
template <int CLUSTER>
static inline cudaLaunchConfig_t matmul_wgmma_config(cudaLaunchAttribute *attribute, int clusters, bool persistent,
                                                     int bytes) {
  int device, multiprocessors;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  if (persistent) {
    int most = multiprocessors / CLUSTER, rounds = (clusters + most - 1) / most;
    clusters = (clusters + rounds - 1) / rounds;
  }
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = CLUSTER;
  attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(clusters * CLUSTER));
  config.blockDim = dim3(MATMUL_WGMMA_THREADS);
  config.dynamicSmemBytes = (size_t)bytes;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

/* The tiles of C, CLUSTER x 128 rows and 256 columns each. */
template <int CLUSTER>
static inline int matmul_wgmma_clusters(int m, int n) {
  return (m + CLUSTER * MATMUL_WGMMA_ROWS - 1) / (CLUSTER * MATMUL_WGMMA_ROWS) *
         ((n + MATMUL_WGMMA_COLS - 1) / MATMUL_WGMMA_COLS);
}

template <int CLUSTER, int STAGES, bool PERSISTENT>
static inline void matmul_wgmma_run(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  CUtensorMap a_map = matmul_wgmma_map(a, m, k, MATMUL_WGMMA_ROWS),
              b_map = matmul_wgmma_map(b, k, n, MATMUL_WGMMA_DEPTH);
  auto *kernel = matmul_wgmma_kernel<CLUSTER, STAGES>;
  const int bytes = STAGES * MATMUL_WGMMA_STAGE_BYTES + 1024; /* so that the ring can begin at a multiple of 1024 */
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config =
      matmul_wgmma_config<CLUSTER>(&attribute, matmul_wgmma_clusters<CLUSTER>(m, n), PERSISTENT, bytes);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, a_map, b_map, c, m, n, k));
}

template <int CLUSTER, int STAGES, bool PERSISTENT>
static inline void matmul_wgmma_launch(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_wgmma: %s", refusal);
  if (matmul_rows_fit(a, b, n, k) && (uintptr_t)c % 16 == 0)
    matmul_wgmma_run<CLUSTER, STAGES, PERSISTENT>(c, a, b, m, n, k);
  else
    matmul_mma(c, a, b, m, n, k);
}

static inline void matmul_wgmma_one_stage(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                          int k) {
  matmul_wgmma_launch<1, 1, false>(c, a, b, m, n, k);
}

static inline void matmul_wgmma_ring(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wgmma_launch<1, 4, false>(c, a, b, m, n, k);
}

static inline void matmul_wgmma_persistent(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n,
                                           int k) {
  matmul_wgmma_launch<1, 4, true>(c, a, b, m, n, k);
}

static inline void matmul_wgmma_cluster(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  matmul_wgmma_launch<2, 4, true>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_CUH */

/* matmul_wgmma_store.cuh - C (M,N) = A (M,K) B (K,N) as matmul_wgmma_cluster(), but TMA writes C, too; and the same
 * with bias and ReLU. bfloat16 factors, float32 sums and C. Row-major.
 *
 * The consumers of matmul_wgmma_cluster() write 128 sums per thread straight to global memory. A store instruction of a
 * warp touches 16 rows of C, 32 bytes of each; while these stores wait for their turn, the tensor cores have nothing to
 * do. Here a consumer puts 32 columns of its 64 rows into a buffer in shared memory, one thread issues the TMA store of
 * the whole box, and the consumer fills the next buffer. The last boxes are on their way when the products of the next
 * tile have begun. Three buffers per consumer take the place of one stage of the ring: three stages are enough.
 *
 *   matmul_wgmma             C by TMA
 *   matmul_wgmma_bias_relu   max(0, A B + bias): the sums are in registers anyway, so a kernel that reads and writes C
 *                            once more is saved
 *
 * Arguments as for matmul_wgmma_cluster(); other matrices go to matmul_mma().
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_STORE_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_STORE_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_wgmma.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel */

enum {
  MATMUL_STORE_COLS = 32, /* of C per box: 128 bytes, the longest row that is swizzled */
  MATMUL_STORE_BYTES = 64 * MATMUL_STORE_COLS * 4,
  MATMUL_STORE_BOXES = MATMUL_WGMMA_COLS / MATMUL_STORE_COLS, /* per consumer and tile */
  MATMUL_STORE_BUFFERS = 3, /* per consumer */
  MATMUL_STORE_STAGES = 3,  /* of the ring */
  MATMUL_STORE_CLUSTER = 2,
};

#ifdef HOPPER_COMPILED

/* x0, x1 to columns `col`, `col` + 1 of row `row` of a box. As TMA expects it, chunk c of row r (4 floats, 16 bytes) is
 * at position c ^ r % 8: the 8 rows that a warp writes at once lie in different banks. */
static __device__ __forceinline__ void matmul_store_pair(float *box, int row, int col, float x0, float x1) {
  int chunk = (col / 4) ^ (row % 8);
  *(float2 *)&box[row * MATMUL_STORE_COLS + 4 * chunk + col % 4] = make_float2(x0, x1);
}

/* The sums of a warpgroup to the 64 x 256 elements of C at (row0, col0), box after box of 32 columns, the first through
 * buffer `first`. What lies outside of C is not written. With BIAS_RELU max(0, sum + bias[column]). */
template <bool BIAS_RELU>
static __device__ __forceinline__ void matmul_wgmma_store(float *buffers, int first, const CUtensorMap *c_map,
                                                          const float (&sum)[128], const float *bias, int row0,
                                                          int col0, int n) {
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4, consumer = threadIdx.x / 128 - 1;
  bool issues = threadIdx.x % 128 == 0, odd = row % 2;
#pragma unroll
  for (int i = 0; i < MATMUL_STORE_BOXES; i++) {
    float *box = buffers + (first + i) % MATMUL_STORE_BUFFERS * (MATMUL_STORE_BYTES / 4);
#pragma unroll
    for (int j = 0; j < 4; j++) { /* a thread has four sums of each 8 columns: two in row `row`, two in row + 8 */
      /* Odd rows take the columns in another order, so that the 16 lanes that write at a time use all banks. */
      int col = 8 * (odd ? j ^ 2 : j) + lane % 4 * 2, c_col = col0 + i * MATMUL_STORE_COLS + col;
      float x[4];
#pragma unroll
      for (int e = 0; e < 4; e++) {
        x[e] = odd ? sum[16 * i + 4 * (j ^ 2) + e] : sum[16 * i + 4 * j + e];
        if (BIAS_RELU) x[e] = c_col < n ? fmaxf(x[e] + __ldg(&bias[c_col + e % 2]), 0.0f) : 0.0f;
      }
      matmul_store_pair(box, row, col, x[0], x[1]);
      matmul_store_pair(box, row + 8, col, x[2], x[3]);
    }
    tma_proxy_fence(); /* TMA sees what this thread wrote */
    /* The next buffer is the one of two boxes ago: its store must have read it before a thread passes the barrier. */
    if (issues) tma_store_wait_read<1>();
    named_barrier_sync(1 + consumer, 128);
    if (issues) {
      tma_store(c_map, col0 + i * MATMUL_STORE_COLS, row0, shared_address(box));
      tma_store_commit();
    }
  }
}

/* A consumer warpgroup: tile after tile, its 64 rows of each. */
template <bool BIAS_RELU>
static __device__ __forceinline__ void matmul_wgmma_store_consume(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                                  float *buffers, const CUtensorMap *c_map,
                                                                  const float *bias, int n) {
  int stage = 0, consumer = threadIdx.x / 128 - 1, first = 0; /* the buffers are used in turn, across tiles, too */
  uint32_t phase = 0;
  float sum[128];
  buffers += consumer * MATMUL_STORE_BUFFERS * (MATMUL_STORE_BYTES / 4);
  for (int tile = blockIdx.x / MATMUL_STORE_CLUSTER; tile < work->rows * work->cols; tile += work->clusters) {
    matmul_wgmma_sum<MATMUL_STORE_CLUSTER, MATMUL_STORE_STAGES>(sum, ring, work->steps, &stage, &phase);
    int row0, col0;
    matmul_wgmma_place<MATMUL_STORE_CLUSTER>(work, tile, &row0, &col0);
    matmul_wgmma_store<BIAS_RELU>(buffers, first, c_map, sum, bias, row0 + 64 * consumer, col0, n);
    first = (first + MATMUL_STORE_BOXES) % MATMUL_STORE_BUFFERS;
  }
  if (threadIdx.x % 128 == 0) tma_store_wait<0>(); /* shared memory lives until all has been copied */
}
#endif

/* As matmul_wgmma_kernel(). Shared memory: the ring, then the buffers of both consumers. */
template <bool BIAS_RELU>
static __global__ void __launch_bounds__(MATMUL_WGMMA_THREADS, 1)
    matmul_wgmma_store_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                              const __grid_constant__ CUtensorMap c_map, const float *bias, int m, int n, int k) {
#ifdef HOPPER_COMPILED
  constexpr int CLUSTER = MATMUL_STORE_CLUSTER, STAGES = MATMUL_STORE_STAGES;
  extern __shared__ unsigned char matmul_wgmma_shared[];
  __shared__ __align__(8) uint64_t full_barrier[STAGES], empty_barrier[STAGES];
  MatmulRing ring;
  uint32_t begin = shared_address(matmul_wgmma_shared);
  ring.tiles = (begin + 1023) & ~1023u; /* the swizzle repeats every 1024 bytes */
  ring.full = shared_address(full_barrier);
  ring.empty = shared_address(empty_barrier);
  float *buffers = (float *)(matmul_wgmma_shared + (ring.tiles - begin) + STAGES * MATMUL_WGMMA_STAGE_BYTES);
  MatmulWgmmaWork work = matmul_wgmma_work<CLUSTER>(m, n, k);
  matmul_wgmma_init_barriers<CLUSTER, STAGES>(&ring);

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<24>();
    if (threadIdx.x == 0) matmul_wgmma_produce<CLUSTER, STAGES>(&ring, &work, &a_map, &b_map);
    __syncwarp();
  } else {
    setmaxnreg_increase<240>();
    matmul_wgmma_store_consume<BIAS_RELU>(&ring, &work, buffers, &c_map, bias, n);
  }
  cluster_sync(); /* no block exits while another may write to its shared memory */
#endif
}

/* For other matrices: c (m,n) = max(0, c + bias). */
static __global__ void matmul_bias_relu_kernel(float *c, const float *bias, size_t count, int n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = fmaxf(c[i] + bias[i % n], 0.0f);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

template <bool BIAS_RELU>
static inline void matmul_wgmma_store_run(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *bias,
                                          int m, int n, int k) {
  constexpr int CLUSTER = MATMUL_STORE_CLUSTER;
  CUtensorMap a_map = matmul_wgmma_map(a, m, k, MATMUL_WGMMA_ROWS),
              b_map = matmul_wgmma_map(b, k, n, MATMUL_WGMMA_DEPTH),
              c_map = matmul_wgmma_map_of(c, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, sizeof *c, m, n, 64);
  auto *kernel = matmul_wgmma_store_kernel<BIAS_RELU>;
  const int bytes = MATMUL_STORE_STAGES * MATMUL_WGMMA_STAGE_BYTES + 2 * MATMUL_STORE_BUFFERS * MATMUL_STORE_BYTES +
                    1024; /* so that the ring can begin at a multiple of 1024 */
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config =
      matmul_wgmma_config<CLUSTER>(&attribute, matmul_wgmma_clusters<CLUSTER>(m, n), true, bytes);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, a_map, b_map, c_map, bias, m, n, k));
}

static inline void matmul_wgmma(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_wgmma: %s", refusal);
  if (matmul_rows_fit(a, b, n, k) && (uintptr_t)c % 16 == 0)
    matmul_wgmma_store_run<false>(c, a, b, NULL, m, n, k);
  else
    matmul_mma(c, a, b, m, n, k);
}

/* c (m,n) = max(0, a b + bias), bias (n) */
static inline void matmul_wgmma_bias_relu(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *bias,
                                          int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_wgmma_bias_relu: %s", refusal);
  if (matmul_rows_fit(a, b, n, k) && (uintptr_t)c % 16 == 0) {
    matmul_wgmma_store_run<true>(c, a, b, bias, m, n, k);
    return;
  }
  matmul_mma(c, a, b, m, n, k);
  size_t count = (size_t)m * n;
  matmul_bias_relu_kernel<<<(unsigned)((count + 255) / 256), 256>>>(c, bias, count, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_WGMMA_STORE_CUH */

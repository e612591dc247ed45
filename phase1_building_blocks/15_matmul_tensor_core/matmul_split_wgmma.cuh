/* matmul_split_wgmma.cuh - C (M,N) = A (M,K) B (K,N) in float32 by three products of Hopper's tensor cores. Row-major,
 * sizes at least 1.
 *
 * matmul_split.cuh splits the floats into parts, which go to the ring of stages of matmul_rows.cuh: a stage has the
 * high and the low parts of 16 (tf32) or 32 (float16) columns of A and of as many rows of B, and six wgmma multiply
 * them.
 *
 * Tensor cores truncate what they add where float32 rounds, so that the error of a long sum grows with its length, not
 * with the root of it. So they add up the products of one stage only, a part; ordinary additions do the rest.
 *
 *   matmul_split_tf32   3xTF32: the range of float32
 *   matmul_split_half   float16 with a scale for each row of A and column of B: twice as many products per clock, and
 *                       half the bytes
 *
 * Both need a workspace: matmul_split_workspace().
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WGMMA_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WGMMA_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/matmul_rows.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_split.cuh"

#ifdef HOPPER_COMPILED

template <MatmulSplit SPLIT>
static __device__ __forceinline__ void matmul_split_product(float (&part)[64], uint32_t a_tile, int a_from,
                                                            uint32_t b_tile, int b_from, int add) {
  uint64_t a = matmul_rows_descriptor(a_tile, a_from), b = matmul_rows_descriptor(b_tile, b_from);
  if (SPLIT == MATMUL_SPLIT_TF32)
    wgmma_tf32(part, a, b, add);
  else
    wgmma_half<WGMMA_K_MAJOR>(part, a, b, add);
}

/* Starts part (64,128) = the products of one stage, the small ones first. The high parts are the first 64 bytes of a
 * row, the low parts the other 64; each wgmma takes 32 bytes of A's rows and of B's. */
template <MatmulSplit SPLIT>
static __device__ __forceinline__ void matmul_split_multiply(float (&part)[64], uint32_t a_tile, uint32_t b_tile) {
  const int high = 0, low = 64;
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 64; i += 32) {
    matmul_split_product<SPLIT>(part, a_tile, low + i, b_tile, high + i, i > 0);
    matmul_split_product<SPLIT>(part, a_tile, high + i, b_tile, low + i, 1);
  }
#pragma unroll
  for (int i = 0; i < 64; i += 32) matmul_split_product<SPLIT>(part, a_tile, high + i, b_tile, high + i, 1);
  wgmma_commit();
}

/* Four neighbouring sums to c (M,N); `exponent` is their row's, those of the columns are at column_exponent[col]. Both
 * scales are taken back at once: exact, unless the result is subnormal. */
template <MatmulSplit SPLIT>
static __device__ __forceinline__ void matmul_split_write4(float *c, float4 sum, int exponent,
                                                           const int *column_exponent, int row, int col, int n) {
  float four[4] = {sum.x, sum.y, sum.z, sum.w};
  c += (size_t)row * n + col;
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (SPLIT == MATMUL_SPLIT_HALF && col + i < n)
      four[i] = scalbnf(four[i], -(exponent + __ldg(&column_exponent[col + i])));
  if (n % 4 == 0 && (uintptr_t)c % 16 == 0) {
    __stcs((float4 *)c, make_float4(four[0], four[1], four[2], four[3]));
    return;
  }
  for (int i = 0; i < 4; i++)
    if (col + i < n) c[i] = four[i];
}

/* A consumer warpgroup: tile after tile, stage after stage. */
template <MatmulSplit SPLIT>
static __device__ __forceinline__ void matmul_split_consume(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                            float *c, const int *row_exponent,
                                                            const int *column_exponent, int m, int n) {
  const int cluster = MATMUL_ROWS_CLUSTER;
  int stage = 0, consumer = matmul_rows_consumer();
  uint32_t phase = 0;
  float sum[2][64], part[64];
  for (int tile = blockIdx.x / cluster; tile < work->rows * work->cols; tile += work->clusters) {
#pragma unroll
    for (int i = 0; i < 128; i++) sum[i / 64][i % 64] = 0;
    for (int step = 0; step < work->steps; step++) {
      uint32_t a_tile = ring->tiles + stage * MATMUL_WGMMA_STAGE_BYTES, b_tile = a_tile + MATMUL_WGMMA_A_BYTES;
      a_tile += consumer * 64 * MATMUL_ROWS_BYTES;
      mbarrier_wait(ring->full + 8 * stage, phase);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        matmul_split_multiply<SPLIT>(part, a_tile, b_tile + half * MATMUL_ROWS_PART_BYTES);
        wgmma_wait<0>();
        if (half == 1) matmul_wgmma_release<cluster>(ring, stage);
#pragma unroll
        for (int i = 0; i < 64; i++) sum[half][i] += part[i];
      }
      matmul_ring_advance<MATMUL_ROWS_STAGES>(&stage, &phase);
    }
    int row0, col0;
    matmul_wgmma_place<cluster>(work, tile, &row0, &col0);
    matmul_rows_write(sum, row0 + 64 * consumer, col0, m, n, [&](int row, int col, float4 four) {
      int exponent = SPLIT == MATMUL_SPLIT_HALF ? __ldg(&row_exponent[row]) : 0;
      matmul_split_write4<SPLIT>(c, four, exponent, column_exponent, row, col, n);
    });
  }
}
#endif

template <MatmulSplit SPLIT>
static __global__ void __launch_bounds__(MATMUL_WGMMA_THREADS, 1)
    matmul_split_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float *c,
                        const int *row_exponent, const int *column_exponent, int m, int n, int groups) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char matmul_split_shared[];
  __shared__ __align__(8) uint64_t full_barrier[MATMUL_ROWS_STAGES], empty_barrier[MATMUL_ROWS_STAGES];
  MatmulRing ring = matmul_rows_ring(matmul_split_shared, full_barrier, empty_barrier);
  MatmulWgmmaWork work = matmul_rows_work(m, n, groups);

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<24>();
    if (threadIdx.x == 0) matmul_rows_produce(&ring, &work, &a_map, &b_map);
    __syncwarp();
  } else {
    setmaxnreg_increase<240>();
    matmul_split_consume<SPLIT>(&ring, &work, c, row_exponent, column_exponent, m, n);
  }
  cluster_sync(); /* no block exits while another may write to its shared memory */
#endif
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers. c (m,n) = a (m,k) b (k,n); the workspace has matmul_split_workspace() bytes, from a multiple of 16 on. */

template <MatmulSplit SPLIT>
static inline void matmul_split_launch(float *c, const float *a, const float *b, int m, int n, int k, void *workspace) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_split: %s", refusal);
  MatmulSplitParts parts = matmul_split_both<SPLIT>(a, b, m, n, k, workspace);
  size_t pitch = (size_t)parts.groups * MATMUL_ROWS_BYTES;
  CUtensorMap a_map = matmul_rows_map(parts.a, m, pitch, MATMUL_WGMMA_ROWS),
              b_map = matmul_rows_map(parts.b, n, pitch, MATMUL_ROWS_SHARE);
  auto *kernel = matmul_split_kernel<SPLIT>;
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = matmul_rows_config(&attribute, (const void *)kernel, m, n);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, a_map, b_map, c, (const int *)parts.a_exponent,
                                (const int *)parts.b_exponent, m, n, parts.groups));
}

static inline void matmul_split_tf32(float *c, const float *a, const float *b, int m, int n, int k, void *workspace) {
  matmul_split_launch<MATMUL_SPLIT_TF32>(c, a, b, m, n, k, workspace);
}

static inline void matmul_split_half(float *c, const float *a, const float *b, int m, int n, int k, void *workspace) {
  matmul_split_launch<MATMUL_SPLIT_HALF>(c, a, b, m, n, k, workspace);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_WGMMA_CUH */

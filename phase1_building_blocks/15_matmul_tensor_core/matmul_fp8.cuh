/* matmul_fp8.cuh - C (M,N) = A (M,K) W^T with factors of 8 bits (e4m3, fp8.cuh) and a scale per tile; W (N,K), as the
 * weights of a linear layer are stored; C bfloat16.
 *
 *     C[i][j] = sum over tiles s of K:  a_scale[i][s] w_scale[j / 128][s] * (sum over the 128 k of s:  A[i][k] W[j][k])
 *
 * A has a scale for 1 x 128 numbers, W for 128 x 128. Tensor cores compute the inner sums, four wgmma for each, into a
 * `part`; then ordinary instructions multiply the part by both scales and add it to the sums. Tensor cores add products
 * of e4m3 with about 14 bits and truncate, so short inner sums are needed anyway: the two sets of sums of
 * matmul_rows.cuh serve both purposes.
 *
 *   matmul_fp8_cpu     the definition: sums in double
 *   matmul_fp8_naive   a thread decodes the numbers of its row of A and its row of W, on any GPU
 *   matmul_fp8_wgmma   the ring of stages (matmul_rows.cuh), one tile of K per stage, 128 bytes of each row
 *
 * Rows of codes are fp8_pitch(K) bytes apart and filled up with zeros, as fp8_rows() and fp8_tiles() make them.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_FP8_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_FP8_CUH

#include "phase1_building_blocks/15_matmul_tensor_core/fp8.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_rows.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

static inline void matmul_fp8_cpu(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale, const uint8_t *w,
                                  const float *w_scale, int m, int n, int k) {
  size_t pitch = fp8_pitch(k);
  int steps = fp8_tile_count(k);
  for (int row = 0; row < m; row++)
    for (int col = 0; col < n; col++) {
      double sum = 0;
      for (int i = 0; i < k; i++) {
        int step = i / FP8_TILE;
        double scale = (double)a_scale[(size_t)row * steps + step] * w_scale[(size_t)(col / FP8_TILE) * steps + step];
        sum += scale * fp8_decode(a[row * pitch + i]) * fp8_decode(w[col * pitch + i]);
      }
      c[(size_t)row * n + col] = __float2bfloat16((float)sum);
    }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Without tensor cores */

static __global__ void __launch_bounds__(256)
    matmul_fp8_naive_kernel(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale, const uint8_t *w,
                            const float *w_scale, int m, int n, int steps) {
  int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
  if (row >= m || col >= n) return;
  a += (size_t)row * steps * FP8_TILE;
  w += (size_t)col * steps * FP8_TILE;
  float sum = 0;
  for (int step = 0; step < steps; step++) {
    float part = 0;
    for (int i = step * FP8_TILE; i < (step + 1) * FP8_TILE; i += 4) {
      uchar4 x = *(const uchar4 *)&a[i], y = *(const uchar4 *)&w[i];
      part += fp8_decode(x.x) * fp8_decode(y.x) + fp8_decode(x.y) * fp8_decode(y.y) +
              fp8_decode(x.z) * fp8_decode(y.z) + fp8_decode(x.w) * fp8_decode(y.w);
    }
    sum += part * (a_scale[(size_t)row * steps + step] * w_scale[(size_t)(col / FP8_TILE) * steps + step]);
  }
  c[(size_t)row * n + col] = __float2bfloat16(sum);
}

static inline void matmul_fp8_naive(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale, const uint8_t *w,
                                    const float *w_scale, int m, int n, int k) {
  dim3 block(32, 8), grid((unsigned)(n + 31) / 32, (unsigned)(m + 7) / 8);
  matmul_fp8_naive_kernel<<<grid, block>>>(c, a, a_scale, w, w_scale, m, n, fp8_tile_count(k));
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* wgmma */

#ifdef HOPPER_COMPILED

/* The scales that a thread needs at one step: those of its two rows of A, and of the two tiles of W in a stage. */
typedef struct MatmulFp8Scales {
  float upper, lower, w[2];
} MatmulFp8Scales;

/* For the 64 x 256 of C at (row0, col0). What lies outside of C is multiplied by other scales, and not written. */
static __device__ __forceinline__ MatmulFp8Scales matmul_fp8_scales(const float *a_scale, const float *w_scale,
                                                                    int row0, int col0, int m, int n, int step,
                                                                    int steps) {
  MatmulFp8Scales scales;
  int row = row0 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  step = min(step, steps - 1);
  scales.upper = __ldg(&a_scale[(size_t)min(row, m - 1) * steps + step]);
  scales.lower = __ldg(&a_scale[(size_t)min(row + 8, m - 1) * steps + step]);
#pragma unroll
  for (int half = 0; half < 2; half++)
    scales.w[half] = __ldg(&w_scale[(size_t)(min(col0 + half * FP8_TILE, n - 1) / FP8_TILE) * steps + step]);
  return scales;
}

/* Starts part (64,128) = the products of one stage: 128 numbers along K, 32 per wgmma. */
static __device__ __forceinline__ void matmul_fp8_multiply(float (&part)[64], uint32_t a_tile, uint32_t w_tile) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < FP8_TILE; i += 32)
    wgmma_fp8(part, matmul_rows_descriptor(a_tile, i), matmul_rows_descriptor(w_tile, i), i > 0);
  wgmma_commit();
}

/* Four neighbouring sums to c (M,N). */
static __device__ __forceinline__ void matmul_fp8_write4(__nv_bfloat16 *c, float4 sum, int row, int col, int n) {
  __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(sum.x, sum.y), __floats2bfloat162_rn(sum.z, sum.w)};
  c += (size_t)row * n + col;
  if (n % 4 == 0 && (uintptr_t)c % 8 == 0) {
    uint2 four;
    memcpy(&four, pair, sizeof four);
    __stcs((uint2 *)c, four);
    return;
  }
  if (col + 0 < n) c[0] = __low2bfloat16(pair[0]);
  if (col + 1 < n) c[1] = __high2bfloat16(pair[0]);
  if (col + 2 < n) c[2] = __low2bfloat16(pair[1]);
  if (col + 3 < n) c[3] = __high2bfloat16(pair[1]);
}

/* A consumer warpgroup: tile after tile, stage after stage. The scales of the next step are loaded while this one is
 * multiplied. */
static __device__ __forceinline__ void matmul_fp8_consume(const MatmulRing *ring, const MatmulWgmmaWork *work,
                                                          __nv_bfloat16 *c, const float *a_scale, const float *w_scale,
                                                          int m, int n) {
  const int cluster = MATMUL_ROWS_CLUSTER;
  int stage = 0, consumer = matmul_rows_consumer(), steps = work->steps;
  uint32_t phase = 0;
  float sum[2][64], part[64];
  for (int tile = blockIdx.x / cluster; tile < work->rows * work->cols; tile += work->clusters) {
    int row0, col0;
    matmul_wgmma_place<cluster>(work, tile, &row0, &col0);
    row0 += 64 * consumer;
    MatmulFp8Scales scales = matmul_fp8_scales(a_scale, w_scale, row0, col0, m, n, 0, steps);
#pragma unroll
    for (int i = 0; i < 128; i++) sum[i / 64][i % 64] = 0;
    for (int step = 0; step < steps; step++) {
      uint32_t a_tile = ring->tiles + stage * MATMUL_WGMMA_STAGE_BYTES, w_tile = a_tile + MATMUL_WGMMA_A_BYTES;
      a_tile += consumer * 64 * MATMUL_ROWS_BYTES;
      MatmulFp8Scales next = matmul_fp8_scales(a_scale, w_scale, row0, col0, m, n, step + 1, steps);
      mbarrier_wait(ring->full + 8 * stage, phase);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        matmul_fp8_multiply(part, a_tile, w_tile + half * MATMUL_ROWS_PART_BYTES);
        wgmma_wait<0>();
        if (half == 1) matmul_wgmma_release<cluster>(ring, stage);
        float upper = scales.upper * scales.w[half], lower = scales.lower * scales.w[half];
#pragma unroll
        for (int i = 0; i < 64; i++) sum[half][i] += part[i] * (i / 2 % 2 == 0 ? upper : lower);
      }
      scales = next;
      matmul_ring_advance<MATMUL_ROWS_STAGES>(&stage, &phase);
    }
    matmul_rows_write(sum, row0, col0, m, n,
                      [&](int row, int col, float4 four) { matmul_fp8_write4(c, four, row, col, n); });
  }
}
#endif

static __global__ void __launch_bounds__(MATMUL_WGMMA_THREADS, 1)
    matmul_fp8_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap w_map,
                      __nv_bfloat16 *c, const float *a_scale, const float *w_scale, int m, int n, int steps) {
#ifdef HOPPER_COMPILED
  extern __shared__ unsigned char matmul_fp8_shared[];
  __shared__ __align__(8) uint64_t full_barrier[MATMUL_ROWS_STAGES], empty_barrier[MATMUL_ROWS_STAGES];
  MatmulRing ring = matmul_rows_ring(matmul_fp8_shared, full_barrier, empty_barrier);
  MatmulWgmmaWork work = matmul_rows_work(m, n, steps);

  if (threadIdx.x < 128) {
    setmaxnreg_decrease<24>();
    if (threadIdx.x == 0) matmul_rows_produce(&ring, &work, &a_map, &w_map);
    __syncwarp();
  } else {
    setmaxnreg_increase<240>();
    matmul_fp8_consume(&ring, &work, c, a_scale, w_scale, m, n);
  }
  cluster_sync(); /* no block exits while another may write to its shared memory */
#endif
}

/* c (m,n) from codes a (m,pitch), w (n,pitch), which begin at multiples of 16 bytes, and their scales. */
static inline void matmul_fp8_wgmma(__nv_bfloat16 *c, const uint8_t *a, const float *a_scale, const uint8_t *w,
                                    const float *w_scale, int m, int n, int k) {
  const char *refusal = matmul_wgmma_refusal();
  if (refusal != NULL) die("matmul_fp8: %s", refusal);
  CUtensorMap a_map = matmul_rows_map(a, m, fp8_pitch(k), MATMUL_WGMMA_ROWS),
              w_map = matmul_rows_map(w, n, fp8_pitch(k), MATMUL_ROWS_SHARE);
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config = matmul_rows_config(&attribute, (const void *)matmul_fp8_kernel, m, n);
  CUDA_CHECK(
      cudaLaunchKernelEx(&config, matmul_fp8_kernel, a_map, w_map, c, a_scale, w_scale, m, n, fp8_tile_count(k)));
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_FP8_CUH */

/* matmul_half.cuh - the two products of a linear layer of 16 bits, on tensor cores with mma.sync: T is __nv_bfloat16 or
 * __half, sums are float32.
 *
 *     y (M,N)      = a (M,K) b (N,K)^T + bias (N)      forward: a = x, b = w;  the gradient of x: a = dy, b = w^T
 *     dw (N,C,P)   = dy (M,N)^T x (M,K)                the gradient of w, float32, in the order of the float32 weights
 *
 * Tiles, swizzle and copies are those of matmul_mma.cuh. Rows of a and b both run along K, so that neither is
 * transposed on its way to the registers; dy and x both have M as rows, and ldmatrix transposes both.
 *
 * Rows of all arrays of 16 bits are filled up to multiples of 8 numbers (common/half.h). A row of x may be a picture
 * (pixels, channels); then column k of dw is channel k % channels of pixel k / channels, and belongs to (C,P).
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_HALF_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_HALF_CUH

#include "common/half.cuh"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_mma.cuh"

enum {
  MATMUL_HALF_TILE = 64,
  MATMUL_HALF_THREADS = 128,
  MATMUL_HALF_STAGES = 3,
  MATMUL_HALF_ELEMENTS = MATMUL_HALF_TILE * MATMUL_HALF_TILE,
  MATMUL_HALF_BYTES = MATMUL_HALF_STAGES * 2 * MATMUL_HALF_ELEMENTS * 2,
};

/* Starts the copy of the 64 x 64 elements at (row, col) of x (rows,cols); zeros outside. The bits are copied: of which
 * type they are does not matter. */
template <typename T>
static __device__ __forceinline__ void matmul_half_load(T *tile, const T *x, int row, int col, int rows, int cols) {
  matmul_mma_load<MATMUL_HALF_TILE, MATMUL_HALF_TILE, MATMUL_HALF_THREADS>(
      (__nv_bfloat16 *)tile, (const __nv_bfloat16 *)x, row, col, rows, cols);
}

/* sum (32,32) += a (64,64) b (64,64)^T, or, TRANSPOSED, a^T b, for the warp at (warp_row, warp_col). */
template <typename T, bool TRANSPOSED>
static __device__ __forceinline__ void matmul_half_multiply(float (&sum)[2][4][4], const T *a, const T *b, int warp_row,
                                                            int warp_col) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < MATMUL_HALF_TILE; i += 16) {
    uint32_t left[2][4], right[2][4];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int row = TRANSPOSED ? i + lane / 16 * 8 + lane % 8 : warp_row + 16 * r + lane % 16;
      const int chunk = TRANSPOSED ? (warp_row + 16 * r) / 8 + lane / 8 % 2 : i / 8 + lane / 16;
      mma_load_matrices<TRANSPOSED>(left[r], (const __nv_bfloat16 *)a + matmul_swizzle<MATMUL_HALF_TILE>(row, chunk));
    }
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const int row = TRANSPOSED ? i + lane % 16 : warp_col + 16 * s + lane / 16 * 8 + lane % 8;
      const int chunk = TRANSPOSED ? (warp_col + 16 * s) / 8 + lane / 16 : i / 8 + lane / 8 % 2;
      mma_load_matrices<TRANSPOSED>(right[s], (const __nv_bfloat16 *)b + matmul_swizzle<MATMUL_HALF_TILE>(row, chunk));
    }
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
      for (int s = 0; s < 4; s++)
        mma_16x8x16_of(T(), sum[r][s], left[r], right[s / 2][s % 2 * 2], right[s / 2][s % 2 * 2 + 1]);
  }
}

/* All steps of a block's sums: tiles of a at row0 and of b at row1, along their columns; TRANSPOSED: at these columns,
 * along their rows. */
template <typename T, bool TRANSPOSED>
static __device__ __forceinline__ void matmul_half_sums(float (&sum)[2][4][4], T *ring, const T *a, const T *b,
                                                        int row0, int row1, int a_rows, int b_rows, int a_cols,
                                                        int b_cols, int warp_row, int warp_col) {
  const int depth = TRANSPOSED ? a_rows : a_cols, steps = (depth + MATMUL_HALF_TILE - 1) / MATMUL_HALF_TILE;
  for (int step = 1 - MATMUL_HALF_STAGES; step < steps; step++) {
    if (step >= 0) {
      __pipeline_wait_prior(MATMUL_HALF_STAGES - 2);
      __syncthreads();
    }
    const int next = step + MATMUL_HALF_STAGES - 1, at = next * MATMUL_HALF_TILE;
    if (next < steps) {
      T *tiles = ring + next % MATMUL_HALF_STAGES * 2 * MATMUL_HALF_ELEMENTS;
      matmul_half_load(tiles, a, TRANSPOSED ? at : row0, TRANSPOSED ? row0 : at, a_rows, a_cols);
      matmul_half_load(tiles + MATMUL_HALF_ELEMENTS, b, TRANSPOSED ? at : row1, TRANSPOSED ? row1 : at, b_rows, b_cols);
    }
    __pipeline_commit();
    const T *tiles = ring + (step + MATMUL_HALF_STAGES) % MATMUL_HALF_STAGES * 2 * MATMUL_HALF_ELEMENTS;
    if (step >= 0) matmul_half_multiply<T, TRANSPOSED>(sum, tiles, tiles + MATMUL_HALF_ELEMENTS, warp_row, warp_col);
  }
}

/* bias: of the first `biases` columns; NULL: of none. */
template <typename T>
static __global__ void __launch_bounds__(MATMUL_HALF_THREADS)
    matmul_half_kernel(T *y, const T *a, const T *b, const float *bias, int biases, int m, int n, int k, bool relu) {
  extern __shared__ __align__(128) unsigned char matmul_half_shared[];
  const int row0 = blockIdx.y * MATMUL_HALF_TILE, col0 = blockIdx.x * MATMUL_HALF_TILE;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
  float sum[2][4][4] = {};
  matmul_half_sums<T, false>(sum, (T *)matmul_half_shared, a, b, row0, col0, m, n, k, k, warp_row, warp_col);
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int row = row0 + warp_row + 16 * r + 4 * i + lane / 4, col = col0 + warp_col + 8 * s + lane % 4 * 2;
        float left = sum[r][s][i], right = sum[r][s][i + 1];
        if (row >= m || col >= n) continue; /* n is even: both are inside, or none */
        if (bias != NULL && col < biases) left += bias[col];
        if (bias != NULL && col + 1 < biases) right += bias[col + 1];
        if (relu) left = left < 0 ? 0 : left, right = right < 0 ? 0 : right;
        half_store_pair(y + (size_t)row * n + col, left, right);
      }
}

/* dw of the first `filters` columns of dy and the first `channels` of each pixel. */
template <typename T>
static __global__ void __launch_bounds__(MATMUL_HALF_THREADS)
    matmul_half_weight_kernel(float *dw, const T *dy, const T *x, int m, int n, int k, int filters, int channels,
                              int pixels) {
  extern __shared__ __align__(128) unsigned char matmul_half_shared[];
  const int row0 = blockIdx.y * MATMUL_HALF_TILE, col0 = blockIdx.x * MATMUL_HALF_TILE, all = k / pixels;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
  float sum[2][4][4] = {};
  matmul_half_sums<T, true>(sum, (T *)matmul_half_shared, dy, x, row0, col0, m, m, n, k, warp_row, warp_col);
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int row = row0 + warp_row + 16 * r + i / 2 * 8 + lane / 4;
        const int col = col0 + warp_col + 8 * s + lane % 4 * 2 + i % 2, c = col % all, p = col / all;
        if (row < filters && col < k && c < channels) dw[((size_t)row * channels + c) * pixels + p] = sum[r][s][i];
      }
}

/* out (count) = sums of the columns of x (rows,cols): a block has 32 of them. */
template <typename T>
static __global__ void matmul_half_columns_kernel(float *out, const T *x, int rows, int cols, int count) {
  __shared__ float part[8][32];
  const int col = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int row = threadIdx.y; row < rows && col < count; row += 8) sum += half_float(x[(size_t)row * cols + col]);
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= count) return;
  for (int i = 1; i < 8; i++) sum += part[i][threadIdx.x];
  out[col] = sum;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers */

/* a (M,K), b (N,K) -> y (M,N), + bias (biases), below 0 replaced by 0 if relu. N and K are multiples of 8. */
template <typename T>
static inline void matmul_half(uint16_t *y, const uint16_t *a, const uint16_t *b, const float *bias, int biases, int m,
                               int n, int k, bool relu) {
  mma_require();
  shared_limit_ask((const void *)matmul_half_kernel<T>, MATMUL_HALF_BYTES);
  const dim3 grid((unsigned)(n + MATMUL_HALF_TILE - 1) / MATMUL_HALF_TILE,
                  (unsigned)(m + MATMUL_HALF_TILE - 1) / MATMUL_HALF_TILE);
  matmul_half_kernel<T><<<grid, MATMUL_HALF_THREADS, MATMUL_HALF_BYTES>>>((T *)y, (const T *)a, (const T *)b, bias,
                                                                          biases, m, n, k, relu);
  CUDA_CHECK_LAUNCH();
}

/* dy (M,N), x (M,K) -> dw (filters,channels,pixels) and, unless it is NULL, dbias (filters) */
template <typename T>
static inline void matmul_half_weight(float *dw, float *dbias, const uint16_t *dy, const uint16_t *x, int m, int n,
                                      int k, int filters, int channels, int pixels) {
  mma_require();
  shared_limit_ask((const void *)matmul_half_weight_kernel<T>, MATMUL_HALF_BYTES);
  const dim3 grid((unsigned)(k + MATMUL_HALF_TILE - 1) / MATMUL_HALF_TILE,
                  (unsigned)(n + MATMUL_HALF_TILE - 1) / MATMUL_HALF_TILE);
  matmul_half_weight_kernel<T><<<grid, MATMUL_HALF_THREADS, MATMUL_HALF_BYTES>>>(dw, (const T *)dy, (const T *)x, m, n,
                                                                                 k, filters, channels, pixels);
  CUDA_CHECK_LAUNCH();
  if (dbias == NULL) return;
  matmul_half_columns_kernel<T><<<(unsigned)(filters + 31) / 32, dim3(32, 8)>>>(dbias, (const T *)dy, m, n, filters);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_HALF_CUH */

/* matmul_skinny.cuh - C (M,N) = A (M,K) B (K,N) for at most 8 rows of A: a vector, or a few, times a matrix. Row-major,
 * float32 throughout, sizes at least 1. The reference is matmul_cpu() of matmul.cuh.
 *
 * Every element of B is used in M products only, so for a small M the time is that of reading B once: with tiles in
 * shared memory each block would wait for a tile, multiply for a moment and wait again. Here B goes from memory to
 * registers. A block owns some columns of C, a thread 4 of them and every so many rows of B; all its loads are
 * independent, so that a multiprocessor has tens of kilobytes on their way. No element of A is used twice by a thread,
 * and those that neighbouring threads share come as one transaction, so that A needs no shared memory either.
 *
 * The sum of a thread is over K / (threads along K) products: short, as in matmul_chunk.cuh.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

enum { MATMUL_SKINNY_ROWS = 16 };

/* sum += four products */
static __device__ __forceinline__ void matmul_skinny_add(float4 *sum, float4 left, const float4 *right) {
  const float factor[4] = {left.x, left.y, left.z, left.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    sum->x = fmaf(factor[i], right[i].x, sum->x);
    sum->y = fmaf(factor[i], right[i].y, sum->y);
    sum->z = fmaf(factor[i], right[i].z, sum->z);
    sum->w = fmaf(factor[i], right[i].w, sum->w);
  }
}

/* Four floats of x (rows,cols) at (row,col). ALIGNED: they are inside. */
template <bool ALIGNED, bool STREAM>
static __device__ __forceinline__ float4 matmul_skinny_four(const float *x, int row, int col, int rows, int cols) {
  if (ALIGNED && STREAM) return __ldcs((const float4 *)(x + (size_t)row * cols + col));
  if (ALIGNED) return *(const float4 *)(x + (size_t)row * cols + col);
  return quad_load<false>(x, row, col, rows, cols);
}

/* The operands of DEEP times four rows of B, STEP times four rows apart. */
template <int ROWS, int DEEP>
struct MatmulSkinnyLoads {
  float4 left[DEEP][ROWS], right[DEEP][4];
};

template <int ROWS, int DEEP, int STEP, bool ALIGNED, bool STREAM>
static __device__ __forceinline__ void matmul_skinny_load(MatmulSkinnyLoads<ROWS, DEEP> &loads, const float *a,
                                                          const float *b, int quad, int col, int m, int n, int k) {
#pragma unroll
  for (int d = 0; d < DEEP; d++) {
    int row = (quad + d * STEP) * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) loads.right[d][i] = matmul_skinny_four<ALIGNED, STREAM>(b, row + i, col, k, n);
#pragma unroll
    for (int r = 0; r < ROWS; r++) loads.left[d][r] = matmul_skinny_four<ALIGNED, false>(a, min(r, m - 1), row, m, k);
  }
}

template <int ROWS, int DEEP>
static __device__ __forceinline__ void matmul_skinny_multiply(float4 (&sum)[ROWS],
                                                              const MatmulSkinnyLoads<ROWS, DEEP> &loads) {
#pragma unroll
  for (int d = 0; d < DEEP; d++)
#pragma unroll
    for (int r = 0; r < ROWS; r++) matmul_skinny_add(&sum[r], loads.left[d][r], loads.right[d]);
}

/* Block x computes columns x * 4 * ACROSS ... of C. A thread takes DEEP times four rows of B at a time. */
template <int ROWS, int ACROSS, int THREADS, int DEEP, bool PIPE, bool ALIGNED, bool STREAM>
static __global__ void __launch_bounds__(THREADS, 1)
    matmul_skinny_kernel(float *c, const float *a, const float *b, int m, int n, int k) {
  const int groups = THREADS / ACROSS, warps = THREADS / 32, stride = DEEP * groups;
  __shared__ __align__(16) float sums[warps][ROWS][4 * ACROSS];
  int across = threadIdx.x % ACROSS, quad = threadIdx.x / ACROSS, col = (blockIdx.x * ACROSS + across) * 4;
  int end = (k + 3) / 4, from_col = ALIGNED ? min(col, n - 4) : col;
  float4 sum[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) sum[r] = make_float4(0, 0, 0, 0);
  a += (size_t)blockIdx.y * ROWS * k;
  c += (size_t)blockIdx.y * ROWS * n;
  m = min(m - (int)blockIdx.y * ROWS, ROWS);

  MatmulSkinnyLoads<ROWS, DEEP> now, next;
  if (PIPE) {
    if (quad + (DEEP - 1) * groups < end) {
      matmul_skinny_load<ROWS, DEEP, groups, ALIGNED, STREAM>(now, a, b, quad, from_col, m, n, k);
      for (; quad + stride + (DEEP - 1) * groups < end; quad += stride) {
        matmul_skinny_load<ROWS, DEEP, groups, ALIGNED, STREAM>(next, a, b, quad + stride, from_col, m, n, k);
        matmul_skinny_multiply(sum, now);
        now = next;
      }
      matmul_skinny_multiply(sum, now);
      quad += stride;
    }
  } else {
    for (; quad + (DEEP - 1) * groups < end; quad += stride) {
      matmul_skinny_load<ROWS, DEEP, groups, ALIGNED, STREAM>(now, a, b, quad, from_col, m, n, k);
      matmul_skinny_multiply(sum, now);
    }
  }
  for (; DEEP > 1 && quad < end; quad += groups) {
    MatmulSkinnyLoads<ROWS, 1> last;
    matmul_skinny_load<ROWS, 1, groups, ALIGNED, STREAM>(last, a, b, quad, from_col, m, n, k);
    matmul_skinny_multiply(sum, last);
  }

  /* The lanes of a warp with the same columns, then the warps. */
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
#pragma unroll
    for (int lanes = 16; lanes >= ACROSS; lanes /= 2) {
      sum[r].x += __shfl_xor_sync(0xffffffffu, sum[r].x, lanes);
      sum[r].y += __shfl_xor_sync(0xffffffffu, sum[r].y, lanes);
      sum[r].z += __shfl_xor_sync(0xffffffffu, sum[r].z, lanes);
      sum[r].w += __shfl_xor_sync(0xffffffffu, sum[r].w, lanes);
    }
    if (threadIdx.x % 32 < ACROSS) *(float4 *)&sums[threadIdx.x / 32][r][4 * across] = sum[r];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * 4 * ACROSS; i += THREADS) {
    int r = i / (4 * ACROSS), at = blockIdx.x * 4 * ACROSS + i % (4 * ACROSS);
    float total = 0;
#pragma unroll
    for (int w = 0; w < warps; w++) total += sums[w][r][i % (4 * ACROSS)];
    if (r < m && at < n) c[(size_t)r * n + at] = total;
  }
}

template <int ROWS, int ACROSS, int THREADS, int DEEP, bool PIPE = false, bool STREAM = false>
static inline void matmul_skinny_launch(float *c, const float *a, const float *b, int m, int n, int k) {
  dim3 grid((n + 4 * ACROSS - 1) / (4 * ACROSS), (m + ROWS - 1) / ROWS);
  if (quads_fit(a, k) && quads_fit(b, n))
    matmul_skinny_kernel<ROWS, ACROSS, THREADS, DEEP, PIPE, true, STREAM><<<grid, THREADS>>>(c, a, b, m, n, k);
  else
    matmul_skinny_kernel<ROWS, ACROSS, THREADS, DEEP, PIPE, false, STREAM><<<grid, THREADS>>>(c, a, b, m, n, k);
  CUDA_CHECK_LAUNCH();
}

static inline void matmul_skinny(float *c, const float *a, const float *b, int m, int n, int k) {
  if (m == 1)
    matmul_skinny_launch<1, 8, 512, 4>(c, a, b, m, n, k);
  else
    matmul_skinny_launch<8, 8, 512, 1>(c, a, b, m, n, k);
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SKINNY_CUH */

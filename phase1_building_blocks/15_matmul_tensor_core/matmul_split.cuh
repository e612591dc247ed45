/* matmul_split.cuh - floats in two parts, so that tensor cores multiply them with the precision of float32.
 *
 * Tensor cores multiply numbers with a significand of 11 bits: float16, or tf32, which has float32's exponent. A float
 * has 24. Split x = high + low: high is x rounded to 11 bits, low is the remainder x - high (exact in float32), rounded
 * to 11 bits. Together they hold at least 22. Then
 *
 *     a b = high(a) high(b) + high(a) low(b) + low(a) high(b) + low(a) low(b)
 *
 * Each product is exact in float32. The last is left out, as it is 2^-22 of the first. Three products of tensor cores
 * replace one of float32.
 *
 *   MATMUL_SPLIT_TF32  has the range of float32. Tensor cores do half as many products per clock as of float16
 *   MATMUL_SPLIT_HALF  float16 has only 5 bits of exponent: 6e-8 to 65504. So each row of A, and each column of B, is
 *                      first multiplied by a power of two (exact) that brings its largest magnitude to 2^14 to 2^15.
 *                      low is then as precise as needed down to 2^-24, which is 2^-38 of the row's largest
 *
 * The parts of A (M,K) are stored in rows of A, those of B (K,N) in rows of B^T (N,K): 16 (tf32) or 32 (float16)
 * numbers along K give a group of 128 bytes, their high parts first, then their low parts. Rows are filled up with
 * zeros to whole groups. Infinities, and NaN, give NaN.
 */
#ifndef PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_CUH
#define PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_CUH

#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

#include "common/check.h"

typedef enum MatmulSplit { MATMUL_SPLIT_TF32, MATMUL_SPLIT_HALF } MatmulSplit;

/* Numbers along K in a group of 128 bytes. */
static __host__ __device__ constexpr int matmul_split_group(MatmulSplit split) {
  return split == MATMUL_SPLIT_TF32 ? 16 : 32;
}

static inline size_t matmul_split_groups(MatmulSplit split, int k) {
  return ((size_t)k + matmul_split_group(split) - 1) / matmul_split_group(split);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* One number */

static __host__ __device__ __forceinline__ uint32_t matmul_split_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* x with the last 13 bits of its significand 0: the nearest such number, halves away from zero. The largest floats are
 * cut off instead, as they would become infinite. */
static __host__ __device__ __forceinline__ float matmul_split_round_tf32(float x) {
  uint32_t bits = matmul_split_bits(x);
  uint32_t rounded = (bits & 0x7FFFFFFF) < 0x7F7FF000 ? bits + 0x1000 : bits;
  if (x == x) rounded &= 0xFFFFE000;
  float result;
  memcpy(&result, &rounded, sizeof result);
  return result;
}

/* The exponent of the power of two by which a row is multiplied whose largest finite magnitude has these bits. Its
 * reciprocal is a float, too: 126 suffices even for subnormal numbers, since a float is a multiple of 2^-149. */
static __host__ __device__ __forceinline__ int matmul_split_exponent(uint32_t largest) {
  int exponent = 14 + 127 - (int)(largest >> 23);
  return exponent < 126 ? exponent : 126;
}

/* Word `lane` (0 to 31) of a group whose numbers are x(0), x(1) ...; 2^exponent is its row's scale. */
template <MatmulSplit SPLIT, typename Get>
static __device__ __forceinline__ uint32_t matmul_split_word(int lane, int exponent, Get x) {
  bool low = lane >= 16;
  if (SPLIT == MATMUL_SPLIT_TF32) {
    float whole = x(lane % 16), high = matmul_split_round_tf32(whole);
    return matmul_split_bits(low ? matmul_split_round_tf32(whole - high) : high);
  }
  float scale = __int_as_float((127 + exponent) << 23);
  float first = x(lane % 16 * 2) * scale, second = x(lane % 16 * 2 + 1) * scale;
  __half2 high = __floats2half2_rn(first, second);
  if (low) high = __floats2half2_rn(first - __low2float(high), second - __high2float(high));
  uint32_t word;
  memcpy(&word, &high, sizeof word);
  return word;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Rows: A */

enum { MATMUL_SPLIT_THREADS = 256 };

/* The bits of |x|, of which the largest is to be found; 0 of what is infinite or NaN. */
static __device__ __forceinline__ uint32_t matmul_split_magnitude(float x) {
  uint32_t bits = __float_as_uint(x) & 0x7FFFFFFF;
  return bits < 0x7F800000 ? bits : 0;
}

/* Block r splits row r of a (M,K): parts (M,groups) of 32 words, exponents (M). */
template <MatmulSplit SPLIT>
static __global__ void __launch_bounds__(MATMUL_SPLIT_THREADS)
    matmul_split_rows_kernel(uint32_t *parts, int *exponents, const float *a, int k, int groups) {
  __shared__ uint32_t largest;
  int exponent = 0;
  a += (size_t)blockIdx.x * k;
  parts += (size_t)blockIdx.x * groups * 32;
  if (SPLIT == MATMUL_SPLIT_HALF) {
    uint32_t mine = 0;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();
#pragma unroll 8
    for (int i = threadIdx.x; i < k; i += MATMUL_SPLIT_THREADS) mine = max(mine, matmul_split_magnitude(a[i]));
    atomicMax(&largest, mine);
    __syncthreads();
    exponent = matmul_split_exponent(largest);
    if (threadIdx.x == 0) exponents[blockIdx.x] = exponent;
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < groups * 32; i += MATMUL_SPLIT_THREADS) {
    int from = i / 32 * matmul_split_group(SPLIT);
    parts[i] = matmul_split_word<SPLIT>(i % 32, exponent, [=](int j) { return from + j < k ? a[from + j] : 0.0f; });
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Columns: B */

enum { MATMUL_SPLIT_SEGMENT = 128, MATMUL_SPLIT_TILE = 64 };

/* largest (N), zeros before: of each column of b (K,N) the bits of its largest magnitude. A thread has 128 rows. */
static __global__ void __launch_bounds__(MATMUL_SPLIT_THREADS)
    matmul_split_largest_kernel(uint32_t *largest, const float *b, int k, int n) {
  int col = blockIdx.x * MATMUL_SPLIT_THREADS + threadIdx.x;
  if (col >= n) return;
  for (int row0 = blockIdx.y * MATMUL_SPLIT_SEGMENT; row0 < k; row0 += gridDim.y * MATMUL_SPLIT_SEGMENT) {
    uint32_t mine = 0;
#pragma unroll 16
    for (int row = row0; row < min(k, row0 + MATMUL_SPLIT_SEGMENT); row++)
      mine = max(mine, matmul_split_magnitude(b[(size_t)row * n + col]));
    atomicMax(&largest[col], mine);
  }
}

/* A block transposes and splits 64 x 64 of b (K,N): parts (N,groups) of 32 words, exponents (N). */
template <MatmulSplit SPLIT>
static __global__ void __launch_bounds__(MATMUL_SPLIT_THREADS)
    matmul_split_columns_kernel(uint32_t *parts, int *exponents, const uint32_t *largest, const float *b, int k, int n,
                                int groups) {
  __shared__ float tile[MATMUL_SPLIT_TILE][MATMUL_SPLIT_TILE + 1];
  const int tile_groups = MATMUL_SPLIT_TILE / matmul_split_group(SPLIT), warps = MATMUL_SPLIT_THREADS / 32;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int col0 = blockIdx.x * MATMUL_SPLIT_TILE;
  for (int row0 = blockIdx.y * MATMUL_SPLIT_TILE; row0 < k; row0 += gridDim.y * MATMUL_SPLIT_TILE) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MATMUL_SPLIT_TILE * MATMUL_SPLIT_TILE; i += MATMUL_SPLIT_THREADS) {
      int row = (i + threadIdx.x) / MATMUL_SPLIT_TILE, col = threadIdx.x % MATMUL_SPLIT_TILE;
      tile[row][col] = row0 + row < k && col0 + col < n ? b[(size_t)(row0 + row) * n + col0 + col] : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int i = warp; i < MATMUL_SPLIT_TILE * tile_groups; i += warps) {
      int col = i / tile_groups, from = i % tile_groups * matmul_split_group(SPLIT);
      int group = row0 / matmul_split_group(SPLIT) + i % tile_groups;
      if (col0 + col >= n || group >= groups) continue;
      int exponent = 0;
      if (SPLIT == MATMUL_SPLIT_HALF) {
        exponent = matmul_split_exponent(largest[col0 + col]);
        if (group == 0 && lane == 0) exponents[col0 + col] = exponent;
      }
      parts[((size_t)(col0 + col) * groups + group) * 32 + lane] =
          matmul_split_word<SPLIT>(lane, exponent, [&](int j) { return tile[from + j][col]; });
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Workspace and launcher */

/* Where the parts and exponents lie in a workspace. */
typedef struct MatmulSplitParts {
  uint32_t *a, *b, *largest;
  int *a_exponent, *b_exponent;
  int groups;
} MatmulSplitParts;

/* The pieces of the workspace, and how many bytes it has. */
static inline size_t matmul_split_layout(MatmulSplitParts *parts, void *workspace, MatmulSplit split, int m, int n,
                                         int k) {
  size_t groups = matmul_split_groups(split, k), at = 0;
  char *base = (char *)workspace;
  parts->groups = (int)groups;
  parts->a = (uint32_t *)(base + at), at += (size_t)m * groups * 128;
  parts->b = (uint32_t *)(base + at), at += (size_t)n * groups * 128;
  parts->largest = (uint32_t *)(base + at), at += (size_t)n * sizeof(int);
  parts->a_exponent = (int *)(base + at), at += (size_t)m * sizeof(int);
  parts->b_exponent = (int *)(base + at), at += (size_t)n * sizeof(int);
  return at;
}

/* Bytes; the workspace begins at a multiple of 16. */
static inline size_t matmul_split_workspace(MatmulSplit split, int m, int n, int k) {
  MatmulSplitParts parts;
  return matmul_split_layout(&parts, NULL, split, m, n, k);
}

/* Splits A (M,K) and B (K,N) into the workspace. */
template <MatmulSplit SPLIT>
static inline MatmulSplitParts matmul_split_both(const float *a, const float *b, int m, int n, int k, void *workspace) {
  MatmulSplitParts parts;
  matmul_split_layout(&parts, workspace, SPLIT, m, n, k);
  matmul_split_rows_kernel<SPLIT><<<(unsigned)m, MATMUL_SPLIT_THREADS>>>(parts.a, parts.a_exponent, a, k, parts.groups);
  CUDA_CHECK_LAUNCH();
  if (SPLIT == MATMUL_SPLIT_HALF) {
    unsigned segments = (unsigned)((k + MATMUL_SPLIT_SEGMENT - 1) / MATMUL_SPLIT_SEGMENT);
    dim3 grid((unsigned)(n + MATMUL_SPLIT_THREADS - 1) / MATMUL_SPLIT_THREADS, segments < 1024 ? segments : 1024);
    CUDA_CHECK(cudaMemsetAsync(parts.largest, 0, (size_t)n * sizeof *parts.largest, 0));
    matmul_split_largest_kernel<<<grid, MATMUL_SPLIT_THREADS>>>(parts.largest, b, k, n);
    CUDA_CHECK_LAUNCH();
  }
  unsigned tiles = (unsigned)((k + MATMUL_SPLIT_TILE - 1) / MATMUL_SPLIT_TILE);
  dim3 grid((unsigned)(n + MATMUL_SPLIT_TILE - 1) / MATMUL_SPLIT_TILE, tiles < 1024 ? tiles : 1024);
  matmul_split_columns_kernel<SPLIT>
      <<<grid, MATMUL_SPLIT_THREADS>>>(parts.b, parts.b_exponent, parts.largest, b, k, n, parts.groups);
  CUDA_CHECK_LAUNCH();
  return parts;
}

#endif /* PHASE1_BUILDING_BLOCKS_MATMUL_SPLIT_CUH */

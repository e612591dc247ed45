/* fp8.cuh - numbers of 8 bits, e4m3: a sign, 4 bits of exponent with bias 7, 3 of fraction; and matrices of them with
 * scales.
 *
 * e4m3 has no infinity: the code 0x7F (and 0xFF) is NaN, 0x7E is the largest number, 448. The smallest is 2^-9, a
 * subnormal one. So few numbers need a scale: the largest magnitude of a tile becomes 448, and scale = largest / 448
 * gives it back. The smaller the tile, the better the scale suits its numbers.
 *
 *   fp8_encode   the nearest e4m3, halves to even; what is larger than 448 becomes 448 (it saturates), NaN stays NaN
 *   fp8_decode   the same number as a float: exact
 *   fp8_rows     x (rows,K) to codes (rows,pitch) and a scale for each row and 128 numbers along K: (rows,K/128)
 *   fp8_tiles    the same with a scale for each 128 x 128: (rows/128,K/128)
 *
 * Rows of codes are filled up with zeros to a pitch that is a multiple of 128.
 */
#ifndef PHASE1_BUILDING_BLOCKS_FP8_CUH
#define PHASE1_BUILDING_BLOCKS_FP8_CUH

#include <cuda_fp8.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/check.h"

enum { FP8_TILE = 128, FP8_NAN = 0x7F, FP8_LARGEST_CODE = 0x7E };
#define FP8_LARGEST 448.0f

static inline int fp8_tile_count(int n) { return (n + FP8_TILE - 1) / FP8_TILE; }
static inline size_t fp8_pitch(int k) { return (size_t)fp8_tile_count(k) * FP8_TILE; }

/* ---------------------------------------------------------------------------------------------------------------- */
/* One number */

static __host__ __device__ __forceinline__ float fp8_decode(uint8_t code) {
  int exponent = code >> 3 & 15, fraction = code & 7;
  float size = exponent == 0 ? ldexpf((float)fraction, -9) : ldexpf((float)(8 + fraction), exponent - 10);
  if ((code & 0x7F) == FP8_NAN) return NAN;
  return code & 0x80 ? -size : size;
}

static __host__ __device__ __forceinline__ uint8_t fp8_encode(float x) {
  uint32_t bits, sign;
  memcpy(&bits, &x, sizeof bits);
  sign = bits >> 24 & 0x80;
  bits &= 0x7FFFFFFF;
  if (bits > 0x7F800000) return (uint8_t)(sign | FP8_NAN);
  uint32_t code = 0;
  /* Below 2^-6 all e4m3 are multiples of 2^-9, and the code counts them. From there on the code is the upper bits of a
   * float, rounded as bfloat16_round() does, less 127 - 7 in the exponent. */
  if (bits < (127 - 6) << 23) {
    float size;
    memcpy(&size, &bits, sizeof size);
    code = (uint32_t)rintf(size * 512); /* 8 at most: the smallest normal number */
  } else {
    code = ((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - (120 << 3);
    if (code > FP8_LARGEST_CODE) code = FP8_LARGEST_CODE;
  }
  return (uint8_t)(sign | code);
}

/* The scale of numbers whose largest finite magnitude is this. Zeros have scale 1. So that x / scale stays finite, a
 * scale is no less than the smallest normal float. */
static __host__ __device__ __forceinline__ float fp8_scale(float largest) {
  return largest > 0 ? fmaxf(largest / FP8_LARGEST, 1.17549435e-38f) : 1.0f;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Matrices, on the CPU. A scale serves `tall` rows and 128 columns. */

static inline void fp8_quantise_cpu(uint8_t *codes, float *scales, const float *x, int rows, int k, int tall) {
  size_t pitch = fp8_pitch(k);
  int steps = fp8_tile_count(k);
  for (int row0 = 0; row0 < rows; row0 += tall)
    for (int step = 0; step < steps; step++) {
      float largest = 0;
      for (int row = row0; row < row0 + tall && row < rows; row++)
        for (int i = step * FP8_TILE; i < (step + 1) * FP8_TILE && i < k; i++)
          if (isfinite(x[(size_t)row * k + i])) largest = fmaxf(largest, fabsf(x[(size_t)row * k + i]));
      float scale = fp8_scale(largest);
      scales[(size_t)(row0 / tall) * steps + step] = scale;
      for (int row = row0; row < row0 + tall && row < rows; row++)
        for (int i = step * FP8_TILE; i < (step + 1) * FP8_TILE; i++)
          codes[row * pitch + i] = i < k ? fp8_encode(x[(size_t)row * k + i] / scale) : 0;
    }
}

static inline void fp8_rows_cpu(uint8_t *codes, float *scales, const float *x, int rows, int k) {
  fp8_quantise_cpu(codes, scales, x, rows, k, 1);
}

static inline void fp8_tiles_cpu(uint8_t *codes, float *scales, const float *x, int rows, int k) {
  fp8_quantise_cpu(codes, scales, x, rows, k, FP8_TILE);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* On the GPU. A warp has 128 numbers of a row, a lane four. */

static __device__ __forceinline__ void fp8_read4(float (&four)[4], const float *row, int col, int k) {
  if (col + 4 <= k && (uintptr_t)&row[col] % 16 == 0) {
    float4 x = *(const float4 *)&row[col];
    four[0] = x.x, four[1] = x.y, four[2] = x.z, four[3] = x.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) four[i] = col + i < k ? row[col + i] : 0.0f;
}

/* The largest finite magnitude of the warp's numbers. */
static __device__ __forceinline__ float fp8_largest(const float (&four)[4]) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) largest = fmaxf(largest, isfinite(four[i]) ? fabsf(four[i]) : 0.0f);
  for (int lanes = 16; lanes > 0; lanes /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, lanes));
  return largest;
}

static __device__ __forceinline__ void fp8_write4(uint8_t *codes, const float (&four)[4], float scale) {
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4; i++)
    word |= (uint32_t)__nv_cvt_float_to_fp8(four[i] / scale, __NV_SATFINITE, __NV_E4M3) << 8 * i;
  *(uint32_t *)codes = word;
}

enum { FP8_WARPS = 8 };

static __global__ void __launch_bounds__(32 * FP8_WARPS)
    fp8_rows_kernel(uint8_t *codes, float *scales, const float *x, int rows, int k, int steps) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  size_t count = (size_t)rows * steps;
  for (size_t i = (size_t)blockIdx.x * FP8_WARPS + warp; i < count; i += (size_t)gridDim.x * FP8_WARPS) {
    size_t row = i / steps;
    int col = (int)(i % steps) * FP8_TILE + 4 * lane;
    float four[4];
    fp8_read4(four, x + row * k, col, k);
    float scale = fp8_scale(fp8_largest(four));
    if (lane == 0) scales[i] = scale;
    fp8_write4(codes + row * steps * FP8_TILE + col, four, scale);
  }
}

/* A block has one tile: each warp 16 of its rows. */
static __global__ void __launch_bounds__(32 * FP8_WARPS)
    fp8_tiles_kernel(uint8_t *codes, float *scales, const float *x, int rows, int k, int steps) {
  const int tall = FP8_TILE / FP8_WARPS;
  __shared__ float largest[FP8_WARPS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row0 = (int)(blockIdx.x / steps) * FP8_TILE + warp * tall, col = blockIdx.x % steps * FP8_TILE + 4 * lane;
  float four[tall][4], mine = 0;
#pragma unroll
  for (int r = 0; r < tall; r++) {
    fp8_read4(four[r], x + (size_t)(row0 + r) * k, col, row0 + r < rows ? k : 0);
    mine = fmaxf(mine, fp8_largest(four[r]));
  }
  if (lane == 0) largest[warp] = mine;
  __syncthreads();
  for (int i = 0; i < FP8_WARPS; i++) mine = fmaxf(mine, largest[i]);
  float scale = fp8_scale(mine);
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
#pragma unroll
  for (int r = 0; r < tall; r++)
    if (row0 + r < rows) fp8_write4(codes + (size_t)(row0 + r) * steps * FP8_TILE + col, four[r], scale);
}

static inline void fp8_rows(uint8_t *codes, float *scales, const float *x, int rows, int k) {
  int steps = fp8_tile_count(k);
  size_t blocks = ((size_t)rows * steps + FP8_WARPS - 1) / FP8_WARPS;
  fp8_rows_kernel<<<(unsigned)(blocks < 65535 ? blocks : 65535), 32 * FP8_WARPS>>>(codes, scales, x, rows, k, steps);
  CUDA_CHECK_LAUNCH();
}

static inline void fp8_tiles(uint8_t *codes, float *scales, const float *x, int rows, int k) {
  int steps = fp8_tile_count(k);
  fp8_tiles_kernel<<<(unsigned)fp8_tile_count(rows) * steps, 32 * FP8_WARPS>>>(codes, scales, x, rows, k, steps);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_FP8_CUH */

/* mixed_precision.cuh - three kernels of training with 16 bits, as a ladder. n is at least 1.
 *
 *   round_cpu         y (n): the bf16 numbers nearest to x (n), as floats
 *   round_bits        by integers: what the conversion does
 *   round_intrinsic   by the instruction for it
 *   round_float4      16 bytes per access
 *
 *   unscale_cpu          out (n) = g (n) / scale, and overflow = 1 if one of them is not finite, else 0
 *   unscale_two_passes   a kernel that divides, and one that looks
 *   unscale_one_pass     both in one kernel
 *   unscale_float4       16 bytes per access
 *
 *   scales_cpu   scale (n) after each of n steps, of which event (n) says whether they overflowed: 1, or 0
 *   scales_gpu   one thread
 *
 * Networks use common/half.h, common/nn/half_weights.h and common/nn/loss_scale.h. */
#ifndef PHASE4_TRAINING_MIXED_PRECISION_CUH
#define PHASE4_TRAINING_MIXED_PRECISION_CUH

#include <cuda_bf16.h>
#include <math.h>

#include "common/check.h"
#include "common/half.h"

enum { MIXED_BLOCK = 256, MIXED_BLOCKS = 528 };

/* ---------------------------------------------------------------------------------------------------------------- */
/* Rounding */

static inline void round_cpu(float *y, const float *x, int n) {
  for (int i = 0; i < n; i++) y[i] = half_round(DTYPE_BF16, x[i]);
}

/* Numbers alone: no NaN, and nothing that rounds to infinity. */
static __global__ void round_bits_kernel(float *y, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned bits = __float_as_uint(x[i]);
  unsigned rounded = 0;
  // >>> exercise bf16_round: rounded = the bits of the float whose lower 16 bits are 0 and which is nearest to x[i]
  // hint: bits & 0xFFFF0000 cuts off: that is the next number towards 0, not the nearest one
  // hint: add half of what the upper 16 bits count by before cutting off: from the half on this carries into them
  // hint: exactly in the middle the even one wins: add 0x7FFF, and the lowest bit that stays: bits >> 16 & 1
  rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  // <<< exercise
  y[i] = __uint_as_float(rounded);
}

static __global__ void round_intrinsic_kernel(float *y, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __bfloat162float(__float2bfloat16(x[i]));
}

static __device__ __forceinline__ float round_one(float x) { return __bfloat162float(__float2bfloat16(x)); }

/* The first 4 quads numbers by fours, the rest one by one. */
static __global__ void round_float4_kernel(float *y, const float *x, int n, int quads) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, rest = 4 * quads + i;
  if (i < quads) {
    const float4 v = ((const float4 *)x)[i];
    ((float4 *)y)[i] = make_float4(round_one(v.x), round_one(v.y), round_one(v.z), round_one(v.w));
  }
  if (rest < n) y[rest] = round_one(x[rest]);
}

static inline unsigned mixed_blocks(int threads) { return (unsigned)(threads + MIXED_BLOCK - 1) / MIXED_BLOCK; }

/* Fours of n floats; 0 where the arrays are not aligned for them. */
static inline int mixed_quads(const float *a, const float *b, int n) {
  return ((uintptr_t)a | (uintptr_t)b) % 16 == 0 ? n / 4 : 0;
}

static inline void round_bits(float *y, const float *x, int n) {
  round_bits_kernel<<<mixed_blocks(n), MIXED_BLOCK>>>(y, x, n);
  CUDA_CHECK_LAUNCH();
}

static inline void round_intrinsic(float *y, const float *x, int n) {
  round_intrinsic_kernel<<<mixed_blocks(n), MIXED_BLOCK>>>(y, x, n);
  CUDA_CHECK_LAUNCH();
}

static inline void round_float4(float *y, const float *x, int n) {
  const int quads = mixed_quads(y, x, n), threads = quads > 0 ? quads : n;
  round_float4_kernel<<<mixed_blocks(threads), MIXED_BLOCK>>>(y, x, n, quads);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Gradients without the loss scale, and whether they are finite */

static inline void unscale_cpu(float *out, float *overflow, const float *g, int n, float scale) {
  const float inverse = 1 / scale;
  *overflow = 0;
  for (int i = 0; i < n; i++) {
    out[i] = g[i] * inverse;
    if (!isfinite(out[i])) *overflow = 1;
  }
}

/* 0 for infinities and NaN. */
static __device__ __forceinline__ int unscale_finite(float x) { return fabsf(x) <= 3.402823466e38f; }

static __global__ void unscale_divide_kernel(float *out, const float *g, int n, float inverse) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = g[i] * inverse;
}

static __global__ void unscale_look_kernel(float *overflow, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !unscale_finite(x[i])) *overflow = 1;
}

/* A grid-stride loop: a thread has many gradients, and writes the flag once. */
static __global__ void unscale_one_pass_kernel(float *out, float *overflow, const float *g, int n, float inverse) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  // >>> exercise loss_scale_check: out[i] = g[i] * inverse for this thread's i, and *overflow = 1 if one is not finite
  // hint: i = first, first + step, first + 2 step, ... below n
  // hint: unscale_finite(x) is 0 for infinities and NaN. *overflow is 0 at the start: only 1 may ever be written
  // hint: collect in a register, int bad = 0; bad |= !unscale_finite(out[i]); and write behind the loop if (bad)
  int bad = 0;
  for (int i = first; i < n; i += step) {
    const float x = g[i] * inverse;
    out[i] = x;
    bad |= !unscale_finite(x);
  }
  if (bad) *overflow = 1;
  // <<< exercise
}

static __global__ void unscale_float4_kernel(float *out, float *overflow, const float *g, int n, int quads,
                                             float inverse) {
  const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  int bad = 0;
  for (int i = first; i < quads; i += step) {
    float4 v = ((const float4 *)g)[i];
    v.x *= inverse, v.y *= inverse, v.z *= inverse, v.w *= inverse;
    ((float4 *)out)[i] = v;
    bad |= !(unscale_finite(v.x) && unscale_finite(v.y) && unscale_finite(v.z) && unscale_finite(v.w));
  }
  for (int i = 4 * quads + first; i < n; i += step) {
    out[i] = g[i] * inverse;
    bad |= !unscale_finite(out[i]);
  }
  if (bad) *overflow = 1;
}

static inline unsigned unscale_blocks(int threads) {
  const unsigned all = mixed_blocks(threads), most = MIXED_BLOCKS;
  return all < most ? all : most;
}

static inline void unscale_two_passes(float *out, float *overflow, const float *g, int n, float scale) {
  CUDA_CHECK(cudaMemsetAsync(overflow, 0, sizeof *overflow));
  unscale_divide_kernel<<<mixed_blocks(n), MIXED_BLOCK>>>(out, g, n, 1 / scale);
  CUDA_CHECK_LAUNCH();
  unscale_look_kernel<<<mixed_blocks(n), MIXED_BLOCK>>>(overflow, out, n);
  CUDA_CHECK_LAUNCH();
}

static inline void unscale_one_pass(float *out, float *overflow, const float *g, int n, float scale) {
  CUDA_CHECK(cudaMemsetAsync(overflow, 0, sizeof *overflow));
  unscale_one_pass_kernel<<<unscale_blocks(n), MIXED_BLOCK>>>(out, overflow, g, n, 1 / scale);
  CUDA_CHECK_LAUNCH();
}

static inline void unscale_float4(float *out, float *overflow, const float *g, int n, float scale) {
  const int quads = mixed_quads(out, g, n), threads = quads > 0 ? quads : n;
  CUDA_CHECK(cudaMemsetAsync(overflow, 0, sizeof *overflow));
  unscale_float4_kernel<<<unscale_blocks(threads), MIXED_BLOCK>>>(out, overflow, g, n, quads, 1 / scale);
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The next scale */

/* So that a short sequence of steps meets both bounds. */
#define SCALES_FIRST 8.0f
#define SCALES_LEAST 2.0f
#define SCALES_MOST 64.0f
enum { SCALES_INTERVAL = 3 };

static inline void scales_cpu(float *scale, const int *event, int n) {
  double s = SCALES_FIRST;
  int good = 0;
  for (int i = 0; i < n; i++) {
    good = event[i] != 0 ? 0 : good + 1;
    if (event[i] != 0) s = s / 2 > SCALES_LEAST ? s / 2 : SCALES_LEAST;
    if (good == SCALES_INTERVAL) {
      good = 0;
      s = s * 2 < SCALES_MOST ? s * 2 : SCALES_MOST;
    }
    scale[i] = (float)s;
  }
}

static __global__ void scales_kernel(float *scale, const int *event, int n) {
  float s = SCALES_FIRST;
  int good = 0; /* steps without an overflow since s has changed */
  for (int i = 0; i < n; i++) {
    const bool overflow = event[i] != 0;
    // >>> exercise loss_scale_update: s and good after this step
    // hint: after an overflow s is half as large, at least SCALES_LEAST, and the counting of good steps begins at 0
    // hint: else one more step is good; after SCALES_INTERVAL of them s doubles, to at most SCALES_MOST, and good is 0
    // hint: fmaxf(s / 2, SCALES_LEAST), fminf(s * 2, SCALES_MOST)
    if (overflow) {
      s = fmaxf(s / 2, SCALES_LEAST);
      good = 0;
    } else if (++good == SCALES_INTERVAL) {
      s = fminf(s * 2, SCALES_MOST);
      good = 0;
    }
    // <<< exercise
    scale[i] = s;
  }
}

static inline void scales_gpu(float *scale, const int *event, int n) {
  scales_kernel<<<1, 1>>>(scale, event, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE4_TRAINING_MIXED_PRECISION_CUH */

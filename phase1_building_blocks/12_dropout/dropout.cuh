/* dropout.cuh - while a network trains, each number is dropped with probability p; x, y, dx, dy (n), p from 0 to 1.
 *
 *   forward     y[i] = keep[i] ? x[i] / (1 - p) : 0
 *   backward    dx[i] = keep[i] ? dy[i] / (1 - p) : 0
 *
 * A network that cannot rely on any single number learns to rely on many (Srivastava et al., 2014). Kept numbers are
 * scaled up during training ("inverted" dropout), so that the mean stays the same and evaluation needs no change.
 * Dropped numbers become 0, even where x was NaN or infinite. With p = 1 everything is dropped.
 *
 * keep[i] is a function of (seed, stream, i) alone: it is true if word i % 4 of Philox's block i / 4, as a uniform
 * number, is at least p (common/philox.h). So the CPU drops what the GPU drops, and backward does not need a mask that
 * forward stored: it runs the cipher again. Forward and backward are then the same function. A layer has a stream of
 * its own, each step another seed.
 *
 *   dropout_cpu               plain loops
 *   dropout_forward_mask      one thread per element; stores keep, one byte per element
 *   dropout_backward_mask     reads that mask
 *   dropout_one_each          no mask, but each thread runs the cipher and uses one of its four words
 *   dropout_gpu               four elements per thread: one cipher call, 16 bytes per access
 */
#ifndef PHASE1_BUILDING_BLOCKS_DROPOUT_CUH
#define PHASE1_BUILDING_BLOCKS_DROPOUT_CUH

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/philox.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* What is dropped */

typedef struct Dropout {
  uint64_t seed;
  uint32_t stream, threshold; /* an element is kept if its word's upper 24 bits are at least this: 0 to 2^24 */
  float scale;                /* of the elements that are kept */
} Dropout;

/* A uniform number k / 2^24 is at least p if k is at least p 2^24: comparing integers gives the same
 * and is cheaper. */
static inline Dropout dropout_make(float p, uint64_t seed, uint32_t stream) {
  if (!(p >= 0 && p <= 1)) die("dropout: p is %g; a probability from 0 to 1 is expected", p);
  Dropout dropout;
  dropout.seed = seed;
  dropout.stream = stream;
  dropout.threshold = (uint32_t)ceilf(p * 0x1p24f);
  dropout.scale = p < 1 ? 1 / (1 - p) : 0;
  return dropout;
}

/* The words for the elements 4i .. 4i + 3. */
PHILOX_FUNCTION PhiloxBlock dropout_words(Dropout dropout, size_t i) {
  return philox4x32(dropout.seed, dropout.stream, i);
}

PHILOX_FUNCTION bool dropout_keeps(Dropout dropout, uint32_t word) { return word >> 8 >= dropout.threshold; }

/* A selection, not a product with 0: NaN times 0 is NaN. */
template <typename T>
PHILOX_FUNCTION T dropout_apply(Dropout dropout, uint32_t word, T x) {
  return dropout_keeps(dropout, word) ? x * (T)dropout.scale : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU reference */

template <typename T>
static inline void dropout_cpu(T *y, const T *x, size_t n, float p, uint64_t seed, uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  for (size_t i = 0; i < n; i += 4) {
    PhiloxBlock block = dropout_words(dropout, i / 4);
    for (size_t j = 0; j < 4 && i + j < n; j++) y[i + j] = dropout_apply(dropout, block.word[j], x[i + j]);
  }
}

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

enum { DROPOUT_BLOCK = 256 };

/* The word of element i: computes a whole block of the cipher for it. */
static __device__ __forceinline__ uint32_t dropout_word(Dropout dropout, size_t i) {
  return philox_word(dropout_words(dropout, i / 4), i);
}

static __global__ void dropout_forward_mask_kernel(float *y, uint8_t *mask, const float *x, size_t n, Dropout dropout) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = x[i]; /* in flight while the cipher runs */
  bool keep = dropout_keeps(dropout, dropout_word(dropout, i));
  mask[i] = keep;
  y[i] = keep ? value * dropout.scale : 0.0f;
}

static __global__ void dropout_backward_mask_kernel(float *dx, const uint8_t *mask, const float *dy, size_t n,
                                                    float scale) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = dy[i]; /* also where it is dropped: a load that waits for the mask would start later */
  dx[i] = mask[i] ? value * scale : 0.0f;
}

static __global__ void dropout_one_kernel(float *y, const float *x, size_t n, Dropout dropout) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise dropout_one: y[i] is x[i] scaled if word i % 4 of the cipher's block i / 4 keeps it, and 0 otherwise
  // hint: dropout_word(dropout, i) is that word; threads beyond n do nothing
  // hint: dropout_keeps(dropout, word) says whether it is kept; dropout.scale is 1 / (1 - p)
  // hint: if (i < n) y[i] = dropout_keeps(dropout, dropout_word(dropout, i)) ? x[i] * dropout.scale : 0.0f;
  if (i < n) y[i] = dropout_apply(dropout, dropout_word(dropout, i), x[i]);
  // <<< exercise
}

static __device__ __forceinline__ float4 dropout_quad(Dropout dropout, size_t quad, float4 v) {
  PhiloxBlock block = dropout_words(dropout, quad);
  return make_float4(dropout_apply(dropout, block.word[0], v.x), dropout_apply(dropout, block.word[1], v.y),
                     dropout_apply(dropout, block.word[2], v.z), dropout_apply(dropout, block.word[3], v.w));
}

template <bool ALIGNED>
static __global__ void dropout_kernel(float *y, const float *x, size_t n, Dropout dropout) {
  size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise dropout_float4: the thread takes elements 4 quad .. 4 quad + 3, all with one block of the cipher
  // hint: quad_load_array<ALIGNED>() and quad_store_array<ALIGNED>() move four floats and handle the end of the arrays
  // hint: dropout_quad(dropout, quad, v) drops some of the four elements of v, by the words of block `quad`
  // hint: float4 v = quad_load_array<ALIGNED>(x, 4 * quad, n); then dropout_quad(dropout, quad, v) goes to y
  float4 v = quad_load_array<ALIGNED>(x, 4 * quad, n);
  quad_store_array<ALIGNED>(y, dropout_quad(dropout, quad, v), 4 * quad, n);
  // <<< exercise
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; y may be x, and n may be 0. */

static inline unsigned dropout_blocks(size_t n, size_t elements_each) {
  size_t elements = DROPOUT_BLOCK * elements_each;
  return (unsigned)((n + elements - 1) / elements);
}

static inline bool dropout_aligned(const float *y, const float *x) {
  return ((uintptr_t)y | (uintptr_t)x) % sizeof(float4) == 0;
}

/* mask (n) */
static inline void dropout_forward_mask(float *y, uint8_t *mask, const float *x, size_t n, float p, uint64_t seed,
                                        uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (n == 0) return;
  dropout_forward_mask_kernel<<<dropout_blocks(n, 1), DROPOUT_BLOCK>>>(y, mask, x, n, dropout);
  CUDA_CHECK_LAUNCH();
}

static inline void dropout_backward_mask(float *dx, const uint8_t *mask, const float *dy, size_t n, float p) {
  Dropout dropout = dropout_make(p, 0, 0);
  if (n == 0) return;
  dropout_backward_mask_kernel<<<dropout_blocks(n, 1), DROPOUT_BLOCK>>>(dx, mask, dy, n, dropout.scale);
  CUDA_CHECK_LAUNCH();
}

static inline void dropout_one_each(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (n == 0) return;
  dropout_one_kernel<<<dropout_blocks(n, 1), DROPOUT_BLOCK>>>(y, x, n, dropout);
  CUDA_CHECK_LAUNCH();
}

/* Forward, and backward with dx and dy. */
static inline void dropout_gpu(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream) {
  Dropout dropout = dropout_make(p, seed, stream);
  if (n == 0) return;
  if (dropout_aligned(y, x))
    dropout_kernel<true><<<dropout_blocks(n, 4), DROPOUT_BLOCK>>>(y, x, n, dropout);
  else
    dropout_kernel<false><<<dropout_blocks(n, 4), DROPOUT_BLOCK>>>(y, x, n, dropout);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_DROPOUT_CUH */

/* random_init.cuh - the random numbers a network starts from.
 *
 *   random_uniform_fill   x[i] uniform in [low, high)
 *   random_normal_fill    x[i] normal with the given mean and standard deviation
 *   he_normal_init        w[i] normal with mean 0 and standard deviation sqrt(2 / fan_in): ReLU throws half of the
 *                         signal away, the 2 keeps its variance from layer to layer (He et al., 2015). fan_in counts
 *                         the inputs of one output: I for a linear layer, C*R*S for a convolution
 *
 * Number i of (seed, stream) is a function of these three alone (common/philox.h), so a kernel that fills in any order
 * writes what the CPU's loop writes, bit for bit: the uniform twins are tested for it. The normal ones need a logarithm
 * and a cosine, whose last bits differ between math libraries, so networks are initialised on the host and uploaded:
 * every device starts from the same weights.
 */
#ifndef PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH
#define PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/philox.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

/* A draw just under 1 may round up: the smaller of it and the last float before `high` keeps `high` out. */
PHILOX_FUNCTION float random_uniform_scale(uint32_t word, float low, float high) {
  float x = fmaf(philox_uniform(word), high - low, low);
  return x < high ? x : nextafterf(high, low);
}

/* low < high. Four numbers a block of Philox: x[4i..4i+3] are the words of block i. */
static inline void random_uniform_fill_cpu(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < n; i += 4) {
    PhiloxBlock block = philox4x32(seed, stream, i / 4);
    for (size_t j = 0; j < 4 && i + j < n; j++) x[i + j] = random_uniform_scale(block.word[j], low, high);
  }
}

/* Two numbers a block: x[2i] and x[2i+1] are the normals of block i. */
static inline void random_normal_fill(float *x, size_t n, float mean, float stddev, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < n; i += 2) {
    float first, second;
    philox_normal(philox4x32(seed, stream, i / 2), &first, &second);
    x[i] = fmaf(stddev, first, mean);
    if (i + 1 < n) x[i + 1] = fmaf(stddev, second, mean);
  }
}

static inline void he_normal_init(float *w, size_t n, int fan_in, uint64_t seed, uint32_t stream) {
  random_normal_fill(w, n, 0.0f, sqrtf(2.0f / (float)fan_in), seed, stream);
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernel and launcher: a thread for each block of Philox. */

static __global__ void random_uniform_fill_kernel(float *x, size_t n, float low, float high, uint64_t seed,
                                                  uint32_t stream) {
  size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  PhiloxBlock block = philox4x32(seed, stream, i / 4);
  for (int j = 0; j < 4 && i + j < n; j++) x[i + j] = random_uniform_scale(block.word[j], low, high);
}

static inline void random_uniform_fill_gpu(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  if (n == 0) return;
  int block = 256;
  random_uniform_fill_kernel<<<(unsigned)((n + 4 * block - 1) / (4 * block)), block>>>(x, n, low, high, seed, stream);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH */

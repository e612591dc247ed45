/* random_init_curand.cuh - the vendor's random numbers beside ours.
 *
 * cuRAND's Philox is the same cipher. Its device API keeps a state of 64 bytes per thread, as for generators that need
 * one; set to block i it returns the words that philox4x32(seed, stream, i) returns. Its host API fills an array in one
 * call, in another order: it takes the blocks from 65536 subsequences in turn, so that x[4q..4q+3] come from block
 * q / 65536 of subsequence q % 65536, on every GPU. Its uniform numbers lie in (0, 1]; its normal ones are computed
 * with the GPU's fast sine and cosine, the sine first.
 */
#ifndef PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CURAND_CUH
#define PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CURAND_CUH

#include <curand_kernel.h>

#include "common/check_curand.h"
#include "phase1_building_blocks/11_random_init/random_init.cuh"

enum { RANDOM_CURAND_SUBSEQUENCES = 65536 };

template <bool ALIGNED>
static __global__ void random_uniform_curand_device_kernel(float *x, size_t n, RandomRange range, uint64_t seed,
                                                           uint32_t stream) {
  size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, stream, i, &state);
  uint4 word = curand4(&state);
  PhiloxBlock block = {{word.x, word.y, word.z, word.w}};
  quad_store_array<ALIGNED>(x, random_uniform_quad(block, range), i, n);
}

static inline void random_uniform_curand_device(float *x, size_t n, float low, float high, uint64_t seed,
                                                uint32_t stream) {
  if (n == 0) return;
  const RandomRange range = random_range(low, high);
  const unsigned blocks = random_blocks((n + 3) / 4);
  if ((uintptr_t)x % sizeof(float4) == 0)
    random_uniform_curand_device_kernel<true><<<blocks, RANDOM_BLOCK>>>(x, n, range, seed, stream);
  else
    random_uniform_curand_device_kernel<false><<<blocks, RANDOM_BLOCK>>>(x, n, range, seed, stream);
  CUDA_CHECK_LAUNCH();
}

/* One generator for the lifetime of the program: creating it takes longer than using it. Calls continue its order. */
static inline curandGenerator_t random_curand_generator(uint64_t seed) {
  static curandGenerator_t generator;
  if (generator == NULL) {
    CURAND_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CURAND_CHECK(curandSetPseudoRandomGeneratorSeed(generator, seed));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CURAND_CHECK(curandSetStream(generator, cudaStreamPerThread)); /* where <<<...>>> launches then (lesson/time.h) */
#endif
  }
  return generator;
}

/* In (0, 1], whatever low and high are: cuRAND has no other range. */
static inline void random_uniform_curand(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  (void)low, (void)high, (void)stream;
  CURAND_CHECK(curandGenerateUniform(random_curand_generator(seed), x, n));
}

static inline void random_normal_curand(float *x, size_t n, float mean, float stddev, uint64_t seed, uint32_t stream) {
  (void)stream;
  CURAND_CHECK(curandGenerateNormal(random_curand_generator(seed), x, n, mean, stddev));
}

/* Only writes zeros, by the driver: an upper bound for the speed. */
static inline void random_memset(float *x, size_t n, float a, float b, uint64_t seed, uint32_t stream) {
  (void)a, (void)b, (void)seed, (void)stream;
  CUDA_CHECK(cudaMemsetAsync(x, 0, n * sizeof *x, 0));
}

#endif /* PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CURAND_CUH */

/* random_init.cuh - random numbers and the initialisation of networks.
 *
 *   random_uniform_fill   x[i] uniform in [low, high); x[4i..4i+3] are the four words of block i (common/philox.h)
 *   random_normal_quads   x[i] normal with the given mean and standard deviation; x[4i..4i+3] from the words of block i
 *   random_normal_fill    the same distribution, x[2i] and x[2i+1] from the first two words of block i. Networks are
 *                         initialised with it; it never changes, because recorded results depend on it
 *
 * Number i of (seed, stream) is a function of these three alone, so a kernel that fills in any order, with any grid,
 * writes what the CPU's loop writes. The uniform numbers are the same bit for bit. The normal ones need a logarithm and
 * a sine, whose last bits differ between math libraries: so networks are initialised on the host and uploaded, and
 * every device starts from the same weights.
 *
 *   he_normal_init, he_uniform_init           variance 2 / fan_in: ReLU halves the mean square of a signal, the 2
 *                                             restores it in each layer (He et al., 2015)
 *   xavier_normal_init, xavier_uniform_init   variance 2 / (fan_in + fan_out): for tanh and sigmoid, a compromise
 *                                             between signals forward and gradients backward (Glorot, Bengio, 2010)
 *
 * fan_in is the number of inputs of one output: I for a linear layer (I,O), C*R*S for a convolution; fan_out is the
 * number of outputs that one input reaches: O, or K*R*S.
 *
 *   random_uniform_fill_cpu      one block of Philox per four numbers
 *   random_uniform_one_each      one number per thread: each runs the cipher and uses one of its four words
 *   random_uniform_four_each     one block of Philox per thread: a quarter of the cipher calls, but four stores whose
 *                                addresses lie 16 bytes apart from lane to lane
 *   random_uniform_float4        one store of 16 bytes
 *   random_uniform_fill_gpu      a grid-stride loop: keys and addresses are computed once for many blocks
 *
 *   random_normal_quads_cpu      the Box-Muller method in double, rounded once
 *   random_normal_quads_double   the same on the GPU, one block of Philox per thread
 *   random_normal_quads_float    in float: the same numbers except for the last bits
 *   random_normal_quads_gpu      in float with a grid-stride loop
 */
#ifndef PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH
#define PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/philox.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* CPU */

typedef struct RandomRange {
  float low, width, last; /* last: the last float before `high` */
} RandomRange;

/* low < high, and their difference must be finite. */
static inline RandomRange random_range(float low, float high) {
  if (!(low < high) || !(high - low <= FLT_MAX))
    die("random: numbers from %g to %g; low < high is expected, and at most %g between them", low, high, FLT_MAX);
  RandomRange range;
  range.low = low;
  range.width = high - low;
  range.last = nextafterf(high, low);
  return range;
}

/* A draw just below 1 may round up to `high`: the minimum with the last float before `high` prevents that. */
PHILOX_FUNCTION float random_uniform_scale(uint32_t word, RandomRange range) {
  return fminf(fmaf(philox_uniform(word), range.width, range.low), range.last);
}

/* low < high. Four numbers per block of Philox: x[4i..4i+3] are the words of block i. */
static inline void random_uniform_fill_cpu(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  RandomRange range = random_range(low, high);
  for (size_t i = 0; i < n; i += 4) {
    PhiloxBlock block = philox4x32(seed, stream, i / 4);
    for (size_t j = 0; j < 4 && i + j < n; j++) x[i + j] = random_uniform_scale(block.word[j], range);
  }
}

/* Two numbers per block: x[2i] and x[2i+1] are the normals of block i. */
static inline void random_normal_fill(float *x, size_t n, float mean, float stddev, uint64_t seed, uint32_t stream) {
  for (size_t i = 0; i < n; i += 2) {
    float first, second;
    philox_normal(philox4x32(seed, stream, i / 2), &first, &second);
    x[i] = fmaf(stddev, first, mean);
    if (i + 1 < n) x[i + 1] = fmaf(stddev, second, mean);
  }
}

/* Four standard normals from the four words of a block, two from each pair. */
PHILOX_FUNCTION void random_normal_four(PhiloxBlock block, float normal[4]) {
  PhiloxBlock upper = {{block.word[2], block.word[3], 0, 0}};
  philox_normal(block, &normal[0], &normal[1]);
  philox_normal(upper, &normal[2], &normal[3]);
}

static inline void random_normal_quads_cpu(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                           uint32_t stream) {
  for (size_t i = 0; i < n; i += 4) {
    float normal[4];
    random_normal_four(philox4x32(seed, stream, i / 4), normal);
    for (size_t j = 0; j < 4 && i + j < n; j++) x[i + j] = fmaf(stddev, normal[j], mean);
  }
}

/* A uniform distribution in [-a, a) has the variance a^2 / 3. */
static inline void he_normal_init(float *w, size_t n, int fan_in, uint64_t seed, uint32_t stream) {
  random_normal_fill(w, n, 0.0f, sqrtf(2.0f / (float)fan_in), seed, stream);
}
static inline void he_uniform_init(float *w, size_t n, int fan_in, uint64_t seed, uint32_t stream) {
  float a = sqrtf(6.0f / (float)fan_in);
  random_uniform_fill_cpu(w, n, -a, a, seed, stream);
}
static inline void xavier_normal_init(float *w, size_t n, int fan_in, int fan_out, uint64_t seed, uint32_t stream) {
  random_normal_fill(w, n, 0.0f, sqrtf(2.0f / ((float)fan_in + (float)fan_out)), seed, stream);
}
static inline void xavier_uniform_init(float *w, size_t n, int fan_in, int fan_out, uint64_t seed, uint32_t stream) {
  float a = sqrtf(6.0f / ((float)fan_in + (float)fan_out));
  random_uniform_fill_cpu(w, n, -a, a, seed, stream);
}

#include "common/check.h"
#include "phase1_building_blocks/02_transpose/float4_access.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: uniform */

enum { RANDOM_BLOCK = 256 };

static __global__ void random_uniform_one_kernel(float *x, size_t n, RandomRange range, uint64_t seed,
                                                 uint32_t stream) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise random_uniform_one: x[i] is word i % 4 of the cipher's block i / 4, scaled into the range
  // hint: philox4x32(seed, stream, index) computes block `index`; philox_word(block, i) picks word i % 4 of it
  // hint: random_uniform_scale(word, range) makes a float of a word; threads beyond n write nothing
  // hint: if (i < n) x[i] = random_uniform_scale(philox_word(philox4x32(seed, stream, i / 4), i), range);
  if (i < n) x[i] = random_uniform_scale(philox_word(philox4x32(seed, stream, i / 4), i), range);
  // <<< exercise
}

static __global__ void random_uniform_four_kernel(float *x, size_t n, RandomRange range, uint64_t seed,
                                                  uint32_t stream) {
  size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  PhiloxBlock block = philox4x32(seed, stream, i / 4);
  for (int j = 0; j < 4; j++)
    if (i + j < n) x[i + j] = random_uniform_scale(block.word[j], range);
}

static __device__ __forceinline__ float4 random_uniform_quad(PhiloxBlock block, RandomRange range) {
  return make_float4(random_uniform_scale(block.word[0], range), random_uniform_scale(block.word[1], range),
                     random_uniform_scale(block.word[2], range), random_uniform_scale(block.word[3], range));
}

template <bool ALIGNED>
static __global__ void random_uniform_float4_kernel(float *x, size_t n, RandomRange range, uint64_t seed,
                                                    uint32_t stream) {
  size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  // >>> exercise random_uniform_float4: thread `quad` writes numbers 4 quad .. 4 quad + 3, with one store if aligned
  // hint: one block of Philox holds the four words; random_uniform_quad(block, range) makes a float4 of them
  // hint: quad_store_array<ALIGNED>(x, v, i, n) writes v to x[i] ... x[i + 3], 16 bytes at once, and handles the end
  // hint: quad_store_array<ALIGNED>(x, random_uniform_quad(philox4x32(seed, stream, quad), range), 4 * quad, n);
  quad_store_array<ALIGNED>(x, random_uniform_quad(philox4x32(seed, stream, quad), range), 4 * quad, n);
  // <<< exercise
}

/* Launched with as many blocks as the GPU holds at a time. If n is small enough, a 32-bit Index saves instructions in
 * every step of the loop and for the cipher's counter. */
template <bool ALIGNED, typename Index>
static __global__ void random_uniform_stride_kernel(float *x, size_t n, RandomRange range, uint64_t seed,
                                                    uint32_t stream) {
  Index quads = (Index)((n + 3) / 4), stride = (Index)gridDim.x * blockDim.x;
  // >>> hidden random_uniform_float4
  for (Index quad = (Index)blockIdx.x * blockDim.x + threadIdx.x; quad < quads; quad += stride)
    quad_store_array<ALIGNED>(x, random_uniform_quad(philox4x32(seed, stream, quad), range), 4 * (size_t)quad, n);
  // <<< hidden
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels: normal */

template <bool ALIGNED>
static __global__ void random_normal_double_kernel(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                                   uint32_t stream) {
  size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float z[4];
  random_normal_four(philox4x32(seed, stream, quad), z);
  float4 v = make_float4(fmaf(stddev, z[0], mean), fmaf(stddev, z[1], mean), fmaf(stddev, z[2], mean),
                         fmaf(stddev, z[3], mean));
  quad_store_array<ALIGNED>(x, v, 4 * quad, n);
}

/* philox_normal() in float. The logarithm's argument is never 0, so no result is infinite, and it is exact near 1,
 * where the radius is small. The angle is given in units of pi, so that it is exact, too. The remaining error is at
 * most one ulp each for logf (halved by the root) and sincospif, and half an ulp each for root and product. */
static __device__ __forceinline__ void random_normal_pair(uint32_t word0, uint32_t word1, float *first, float *second) {
  // >>> exercise random_normal: two standard normals from two words, by the Box-Muller method
  // hint: radius sqrt(-2 log u), with u from the first word; angle 2 pi v, with v from the second; cosine first
  // hint: log(0) is -infinity: which of philox_uniform() and philox_uniform_positive() never gives 0?
  // hint: sincospif(2.0f * v, &sine, &cosine) multiplies by pi itself; the results are radius * cosine, radius * sine
  float radius = sqrtf(-2.0f * logf(philox_uniform_positive(word0))), sine, cosine;
  sincospif(2.0f * philox_uniform(word1), &sine, &cosine);
  *first = radius * cosine;
  *second = radius * sine;
  // <<< exercise
}

static __device__ __forceinline__ float4 random_normal_quad(PhiloxBlock block, float mean, float stddev) {
  float z[4];
  random_normal_pair(block.word[0], block.word[1], &z[0], &z[1]);
  random_normal_pair(block.word[2], block.word[3], &z[2], &z[3]);
  return make_float4(fmaf(stddev, z[0], mean), fmaf(stddev, z[1], mean), fmaf(stddev, z[2], mean),
                     fmaf(stddev, z[3], mean));
}

template <bool ALIGNED>
static __global__ void random_normal_float_kernel(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                                  uint32_t stream) {
  size_t quad = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  quad_store_array<ALIGNED>(x, random_normal_quad(philox4x32(seed, stream, quad), mean, stddev), 4 * quad, n);
}

template <bool ALIGNED, typename Index>
static __global__ void random_normal_stride_kernel(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                                   uint32_t stream) {
  Index quads = (Index)((n + 3) / 4), stride = (Index)gridDim.x * blockDim.x;
  for (Index quad = (Index)blockIdx.x * blockDim.x + threadIdx.x; quad < quads; quad += stride)
    quad_store_array<ALIGNED>(x, random_normal_quad(philox4x32(seed, stream, quad), mean, stddev), 4 * (size_t)quad, n);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; n may be 0. */

/* Blocks for `threads` threads. */
static inline unsigned random_blocks(size_t threads) { return (unsigned)((threads + RANDOM_BLOCK - 1) / RANDOM_BLOCK); }

/* As many blocks as the GPU holds at a time, but not more than are needed. */
static inline unsigned random_blocks_resident(size_t threads) {
  int device, multiprocessors, threads_each;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&threads_each, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  unsigned resident = (unsigned)(multiprocessors * (threads_each / RANDOM_BLOCK)), needed = random_blocks(threads);
  return needed < resident ? needed : resident;
}

/* Up to this many numbers, the index of a quad plus one grid stride does not overflow 32 bits. */
#define RANDOM_SHORT ((size_t)1 << 32)

static inline bool random_aligned(const float *x) { return (uintptr_t)x % sizeof(float4) == 0; }

static inline void random_uniform_one_each(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  if (n == 0) return;
  random_uniform_one_kernel<<<random_blocks(n), RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_uniform_four_each(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  if (n == 0) return;
  random_uniform_four_kernel<<<random_blocks((n + 3) / 4), RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_uniform_float4(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  if (n == 0) return;
  unsigned blocks = random_blocks((n + 3) / 4);
  if (random_aligned(x))
    random_uniform_float4_kernel<true><<<blocks, RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  else
    random_uniform_float4_kernel<false><<<blocks, RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_uniform_fill_gpu(float *x, size_t n, float low, float high, uint64_t seed, uint32_t stream) {
  if (n == 0) return;
  unsigned blocks = random_blocks_resident((n + 3) / 4);
  if (random_aligned(x) && n <= RANDOM_SHORT)
    random_uniform_stride_kernel<true, uint32_t><<<blocks, RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  else if (random_aligned(x))
    random_uniform_stride_kernel<true, uint64_t><<<blocks, RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  else
    random_uniform_stride_kernel<false, uint64_t>
        <<<blocks, RANDOM_BLOCK>>>(x, n, random_range(low, high), seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_normal_quads_double(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                              uint32_t stream) {
  if (n == 0) return;
  unsigned blocks = random_blocks((n + 3) / 4);
  if (random_aligned(x))
    random_normal_double_kernel<true><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  else
    random_normal_double_kernel<false><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_normal_quads_float(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                             uint32_t stream) {
  if (n == 0) return;
  unsigned blocks = random_blocks((n + 3) / 4);
  if (random_aligned(x))
    random_normal_float_kernel<true><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  else
    random_normal_float_kernel<false><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  CUDA_CHECK_LAUNCH();
}

static inline void random_normal_quads_gpu(float *x, size_t n, float mean, float stddev, uint64_t seed,
                                           uint32_t stream) {
  if (n == 0) return;
  unsigned blocks = random_blocks_resident((n + 3) / 4);
  if (random_aligned(x) && n <= RANDOM_SHORT)
    random_normal_stride_kernel<true, uint32_t><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  else if (random_aligned(x))
    random_normal_stride_kernel<true, uint64_t><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  else
    random_normal_stride_kernel<false, uint64_t><<<blocks, RANDOM_BLOCK>>>(x, n, mean, stddev, seed, stream);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE1_BUILDING_BLOCKS_RANDOM_INIT_CUH */

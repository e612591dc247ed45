/* batch_order.cuh - the order in which an epoch takes the images: order (count) is a permutation of 0 .. count - 1.
 *
 * A network that sees the images in the same order every time, or all zeros before all ones, adapts to the order, too.
 * So each epoch has its own order, a function of (seed, epoch) alone: a run that resumes in epoch 7 takes the images as
 * if it had never stopped. The random numbers come from Philox, stream BATCHES_SHUFFLE_STREAM + epoch. There are three
 * ways:
 *
 *   shuffle   Fisher and Yates: swap each place with a random one before it. Each step needs the one before.
 *   sort      a random key of 64 bits for each image; sorted by key. Any number of threads.
 *   cipher    order[i] = i, encrypted: a block cipher that maps 0 .. count - 1 onto itself, keyed by (seed, epoch). A
 *             thread needs its own i only, and a kernel that computes the cipher needs no array.
 *
 * How random is an order? If Philox's words are independent and uniform, then
 *
 *   shuffle   every order is exactly equally likely: philox_below() rejects the numbers that would make it uneven.
 *   sort      every order is equally likely, as long as no two keys are equal: count^2 / 2^65, for 60000 images once
 *             in 10^10 epochs. Equal keys: the smaller image comes first.
 *   cipher    each image is nearly equally likely at each place, but not every order is. Eight rounds hide the pattern
 *             from statistical tests, no more. And of the even and the odd permutations (made of an even or an odd
 *             number of swaps) one kind is more frequent: for 2^k images, k > 3, all are even.
 *
 * In each case (seed, epoch) has at most 2^95 values, and 60000 images have 10^260634 orders: most never occur.
 *
 * Each way has the same bits on the CPU and on the GPU:
 *
 *   batches_shuffle       batches_shuffle_gpu     one thread, which waits for the memory in each step
 *   batches_sort_cpu      batches_sort_gpu        four kernels: into buckets by the key's upper bits, then each bucket
 *                                                 by counting how many keys are smaller; 12 bytes of scratch per image
 *   batches_cipher_cpu    batches_cipher_gpu      one kernel, no scratch
 *
 * Sources: Fisher, Yates, "Statistical tables", 1938; Luby, Rackoff, "How to construct pseudorandom permutations from
 * pseudorandom functions", 1988; Black, Rogaway, "Ciphers with arbitrary finite domains", 2002; Mitchell et al.,
 * "Bandwidth-optimal random shuffling for GPUs", 2021.
 */
#ifndef PHASE2_MLP_BATCH_ORDER_CUH
#define PHASE2_MLP_BATCH_ORDER_CUH

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/error.h"
#include "common/philox.h"

/* Philox streams from here on belong to the orders, one per epoch; those below are for everything else. */
#define BATCHES_SHUFFLE_STREAM 0x80000000u

/* ---------------------------------------------------------------------------------------------------------------- */
/* Fisher and Yates */

static inline void batches_shuffle(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  philox_shuffle(order, count, seed, BATCHES_SHUFFLE_STREAM + epoch);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Sorted by random keys */

PHILOX_FUNCTION uint64_t batch_key(uint64_t seed, uint32_t stream, uint32_t image) {
  PhiloxBlock block = philox4x32(seed, stream, image);
  return (uint64_t)block.word[0] << 32 | block.word[1];
}

typedef struct BatchKeyed {
  uint64_t key;
  uint32_t image;
} BatchKeyed;

/* Equal keys: the smaller image comes first. So no two are equal, and there is one order only. */
PHILOX_FUNCTION int batch_key_before(uint64_t key, uint32_t image, uint64_t other_key, uint32_t other_image) {
  return key < other_key || (key == other_key && image < other_image);
}

static inline int batch_keyed_compare(const void *a, const void *b) {
  const BatchKeyed *x = (const BatchKeyed *)a, *y = (const BatchKeyed *)b;
  return batch_key_before(x->key, x->image, y->key, y->image) ? -1 : 1;
}

static inline void batches_sort_cpu(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  BatchKeyed *keyed = (BatchKeyed *)xmalloc((size_t)count * sizeof *keyed);
  for (uint32_t i = 0; i < count; i++) {
    keyed[i].key = batch_key(seed, BATCHES_SHUFFLE_STREAM + epoch, i);
    keyed[i].image = i;
  }
  qsort(keyed, count, sizeof *keyed, batch_keyed_compare);
  for (uint32_t i = 0; i < count; i++) order[i] = keyed[i].image;
  free(keyed);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Encrypted */

typedef struct BatchCipher {
  uint64_t seed;
  uint32_t stream, count;
  int low_bits, high_bits; /* the two halves of a number; together they hold count - 1 */
} BatchCipher;

static inline BatchCipher batch_cipher(uint32_t count, uint64_t seed, uint32_t epoch) {
  BatchCipher cipher;
  int bits = 2; /* a bit for each half at least */
  while (bits < 32 && (count - 1) >> bits != 0) bits++;
  cipher.seed = seed;
  cipher.stream = BATCHES_SHUFFLE_STREAM + epoch;
  cipher.count = count;
  cipher.low_bits = bits / 2;
  cipher.high_bits = bits - bits / 2;
  return cipher;
}

/* A random function of half a number, another one in each round. */
PHILOX_FUNCTION uint32_t batch_cipher_word(BatchCipher cipher, uint32_t round, uint32_t half) {
  return philox4x32(cipher.seed, cipher.stream, (uint64_t)round << 32 | half).word[0];
}

enum { BATCH_CIPHER_ROUNDS = 8 };

/* Number i of the order, i < count. A Feistel round combines one half with a function of the other by exclusive or. The
 * other half stays, so the round can be undone whatever the function is, and no two numbers become equal. This maps
 * the numbers of low_bits + high_bits bits onto themselves; a result that is not below `count` is encrypted again. That
 * ends, because repeated encryption runs through a cycle that contains i itself. More than half of the numbers are
 * below count (except when count is 1 or 2), so it takes less than two encryptions on average. */
PHILOX_FUNCTION uint32_t batch_cipher_at(BatchCipher cipher, uint32_t i) {
  const uint32_t low_mask = (1u << cipher.low_bits) - 1, high_mask = (1u << cipher.high_bits) - 1;
  // >>> exercise batch_cipher: encrypt i in BATCH_CIPHER_ROUNDS rounds, and again as long as it is not below the count
  // hint: the halves are i & low_mask and i >> low_bits; even rounds change the low half, odd rounds the high half
  // hint: low ^= batch_cipher_word(cipher, round, high) & low_mask, and the other way round; never low by low
  // hint: do { split i; for (round ...) change a half; i = high << low_bits | low; } while (i >= cipher.count);
  do {
    uint32_t low = i & low_mask, high = i >> cipher.low_bits;
    for (uint32_t round = 0; round < BATCH_CIPHER_ROUNDS; round += 2) {
      low ^= batch_cipher_word(cipher, round, high) & low_mask;
      high ^= batch_cipher_word(cipher, round + 1, low) & high_mask;
    }
    i = high << cipher.low_bits | low;
  } while (i >= cipher.count);
  // <<< exercise
  return i;
}

static inline void batches_cipher_cpu(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  BatchCipher cipher = batch_cipher(count, seed, epoch);
  for (uint32_t i = 0; i < count; i++) order[i] = batch_cipher_at(cipher, i);
}

#include "common/check.h"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Kernels */

static __global__ void batches_shuffle_kernel(uint32_t *order, uint32_t count, uint64_t seed, uint32_t stream) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  philox_shuffle(order, count, seed, stream);
}

/* Keys are uniform, so that their upper bits fill `buckets` buckets evenly: BATCH_SORT_MEAN images each, rarely more
 * than twice as many. */
enum { BATCH_ORDER_BLOCK = 256, BATCH_SORT_MEAN = 16 };

static inline uint32_t batch_sort_buckets(uint32_t count) { return count / BATCH_SORT_MEAN + 1; }

static __device__ __forceinline__ uint32_t batch_sort_bucket(uint64_t key, uint32_t buckets) {
  return (uint32_t)((key >> 32) * buckets >> 32);
}

/* sizes (buckets), zero before: how many keys each bucket gets */
static __global__ void batches_sort_count_kernel(uint32_t *sizes, uint32_t buckets, uint32_t count, uint64_t seed,
                                                 uint32_t stream) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&sizes[batch_sort_bucket(batch_key(seed, stream, i), buckets)], 1u);
}

/* One block: starts (buckets) = the sum of all sizes before; sizes become zero. A thread adds `each` neighbouring
 * sizes, the block computes the prefix sums of the threads' sums, and each thread writes the starts of its sizes. */
static __global__ void batches_sort_scan_kernel(uint32_t *starts, uint32_t *sizes, uint32_t buckets) {
  __shared__ uint32_t sums[BATCH_ORDER_BLOCK];
  uint32_t each = (buckets + blockDim.x - 1) / blockDim.x, sum = 0;
  uint32_t first = threadIdx.x * each, last = min(first + each, buckets);
  for (uint32_t b = first; b < last; b++) sum += sizes[b];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (uint32_t distance = 1; distance < blockDim.x; distance *= 2) {
    uint32_t left = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += left;
    __syncthreads();
  }
  uint32_t start = sums[threadIdx.x] - sum; /* of the threads before this one */
  for (uint32_t b = first; b < last; b++) {
    starts[b] = start;
    start += sizes[b];
    sizes[b] = 0;
  }
}

/* keys, images (count): bucket by bucket, within a bucket in the order in which the threads arrived, which differs from
 * run to run. */
static __global__ void batches_sort_place_kernel(uint64_t *keys, uint32_t *images, uint32_t *sizes,
                                                 const uint32_t *starts, uint32_t buckets, uint32_t count,
                                                 uint64_t seed, uint32_t stream) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t key = batch_key(seed, stream, i);
  uint32_t bucket = batch_sort_bucket(key, buckets), at = starts[bucket] + atomicAdd(&sizes[bucket], 1u);
  keys[at] = key;
  images[at] = i;
}

/* The place of an image is the number of keys in its bucket that are smaller; it does not depend on the order in which
 * they lie there. Neighbouring threads have the same bucket, or the next one, and read the same keys. */
static __global__ void batches_sort_rank_kernel(uint32_t *order, const uint64_t *keys, const uint32_t *images,
                                                const uint32_t *sizes, const uint32_t *starts, uint32_t buckets,
                                                uint32_t count) {
  uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  uint64_t key = keys[at];
  uint32_t image = images[at], bucket = batch_sort_bucket(key, buckets);
  uint32_t start = starts[bucket], end = start + sizes[bucket], place = start;
  for (uint32_t j = start; j < end; j++) place += batch_key_before(keys[j], images[j], key, image);
  order[place] = image;
}

static __global__ void batches_cipher_kernel(uint32_t *order, BatchCipher cipher) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cipher.count) order[i] = batch_cipher_at(cipher, i);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Launchers; order lies on the GPU */

static inline unsigned batch_order_blocks(uint32_t count) {
  return (unsigned)(((size_t)count + BATCH_ORDER_BLOCK - 1) / BATCH_ORDER_BLOCK);
}

static inline void batches_shuffle_gpu(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  batches_shuffle_kernel<<<1, 1>>>(order, count, seed, BATCHES_SHUFFLE_STREAM + epoch);
  CUDA_CHECK_LAUNCH();
}

/* uint32s of scratch that batches_sort_gpu() needs. */
static inline size_t batches_sort_scratch(uint32_t count) {
  return 3 * (size_t)count + 2 * (size_t)batch_sort_buckets(count);
}

/* scratch begins at a multiple of 8 bytes. */
static inline void batches_sort_gpu(uint32_t *order, uint32_t *scratch, uint32_t count, uint64_t seed, uint32_t epoch) {
  const uint32_t stream = BATCHES_SHUFFLE_STREAM + epoch, buckets = batch_sort_buckets(count);
  uint64_t *keys = (uint64_t *)scratch;
  uint32_t *images = scratch + 2 * (size_t)count, *sizes = images + count, *starts = sizes + buckets;
  if (count == 0) return;
  CUDA_CHECK(cudaMemsetAsync(sizes, 0, buckets * sizeof *sizes));
  batches_sort_count_kernel<<<batch_order_blocks(count), BATCH_ORDER_BLOCK>>>(sizes, buckets, count, seed, stream);
  CUDA_CHECK_LAUNCH();
  batches_sort_scan_kernel<<<1, BATCH_ORDER_BLOCK>>>(starts, sizes, buckets);
  CUDA_CHECK_LAUNCH();
  batches_sort_place_kernel<<<batch_order_blocks(count), BATCH_ORDER_BLOCK>>>(keys, images, sizes, starts, buckets,
                                                                              count, seed, stream);
  CUDA_CHECK_LAUNCH();
  batches_sort_rank_kernel<<<batch_order_blocks(count), BATCH_ORDER_BLOCK>>>(order, keys, images, sizes, starts,
                                                                             buckets, count);
  CUDA_CHECK_LAUNCH();
}

static inline void batches_cipher_gpu(uint32_t *order, uint32_t count, uint64_t seed, uint32_t epoch) {
  if (count == 0) return;
  batches_cipher_kernel<<<batch_order_blocks(count), BATCH_ORDER_BLOCK>>>(order, batch_cipher(count, seed, epoch));
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_BATCH_ORDER_CUH */

/* philox.h - random numbers that are a function, not a state.
 *
 * Philox4x32-10 is a block cipher cut down to what randomness needs: it turns a 128-bit counter and a 64-bit key into
 * four random words in ten rounds. There is nothing to carry from call to call, so a thousand GPU threads and one CPU
 * loop draw the same numbers in any order, and an epoch resumed from a checkpoint shuffles as it would have.
 *
 *     PhiloxBlock block = philox4x32(seed, stream, index);   // four words; the same everywhere, forever
 *     float u = philox_uniform(block.word[0]);               // [0, 1)
 *     philox_normal(block, &a, &b);                          // two standard normals
 *     philox_shuffle(order, n, seed, stream);
 *
 * `seed` is the run's, `stream` says what the numbers are for (one for each use: initialisation, shuffling by epoch,
 * dropout by layer), `index` counts blocks. Two draws that share all three are the same draw.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The counter is laid out
 * as cuRAND does: words 0-1 the block, word 2 the subsequence, the key the seed. So philox4x32(seed, stream, index)
 * holds the four numbers that follow curand_init(seed, stream, 4 * index, &state). Word 3, the upper half of cuRAND's
 * subsequence, numbers the attempts of philox_below(). cuRAND's own uniform and normal round otherwise than these.
 */
#ifndef COMMON_PHILOX_H
#define COMMON_PHILOX_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PHILOX_FUNCTION static inline __host__ __device__
#else
#define PHILOX_FUNCTION static inline
#endif

typedef struct PhiloxBlock {
  uint32_t word[4];
} PhiloxBlock;

/* The bare cipher of the paper: ten rounds over `counter`, the key bumped between rounds. */
PHILOX_FUNCTION PhiloxBlock philox_rounds(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; round++) {
    uint64_t product0 = (uint64_t)0xD2511F53u * counter.word[0];
    uint64_t product1 = (uint64_t)0xCD9E8D57u * counter.word[2];
    PhiloxBlock next;
    next.word[0] = (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0;
    next.word[1] = (uint32_t)product1;
    next.word[2] = (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1;
    next.word[3] = (uint32_t)product0;
    counter = next;
    key0 += 0x9E3779B9u; /* the golden ratio, */
    key1 += 0xBB67AE85u; /* and sqrt(3) - 1, as 32-bit fractions */
  }
  return counter;
}

PHILOX_FUNCTION PhiloxBlock philox_attempt(uint64_t seed, uint32_t stream, uint64_t index, uint32_t attempt) {
  PhiloxBlock counter;
  counter.word[0] = (uint32_t)index;
  counter.word[1] = (uint32_t)(index >> 32);
  counter.word[2] = stream;
  counter.word[3] = attempt;
  return philox_rounds(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* Four independent, uniform 32-bit words. */
PHILOX_FUNCTION PhiloxBlock philox4x32(uint64_t seed, uint32_t stream, uint64_t index) {
  return philox_attempt(seed, stream, index, 0);
}

/* Word i % 4 of a block. The registers of a GPU have no index: word[i % 4] would go to memory and back there. */
PHILOX_FUNCTION uint32_t philox_word(PhiloxBlock block, uint64_t i) {
  uint32_t even = i & 2 ? block.word[2] : block.word[0], odd = i & 2 ? block.word[3] : block.word[1];
  return i & 1 ? odd : even;
}

/* [0, 1): the upper 24 bits, which is all a float holds, so that no value rounds up to 1. */
PHILOX_FUNCTION float philox_uniform(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* (0, 1]: for whoever takes a logarithm. */
PHILOX_FUNCTION float philox_uniform_positive(uint32_t word) { return (float)((word >> 8) + 1) * 0x1p-24f; }

/* Two standard normals from the words 0 and 1 (Box and Muller, 1958). Computed in double and rounded once: the math
 * libraries of CPU and GPU differ in a double's last bits, and those vanish in the rounding to float. */
PHILOX_FUNCTION void philox_normal(PhiloxBlock block, float *first, float *second) {
  double radius = sqrt(-2.0 * log((double)philox_uniform_positive(block.word[0])));
  double angle = 6.283185307179586 * (double)philox_uniform(block.word[1]);
  *first = (float)(radius * cos(angle));
  *second = (float)(radius * sin(angle));
}

/* 0..bound-1, each equally likely; bound >= 1. The upper half of word * bound would favour some values by one part in
 * 2^32 / bound, so the few words that make the difference are thrown away (Lemire, 2019). */
PHILOX_FUNCTION uint32_t philox_below(uint32_t bound, uint64_t seed, uint32_t stream, uint64_t index) {
  uint32_t surplus = (0u - bound) % bound; /* 2^32 mod bound */
  for (uint32_t attempt = 0;; attempt++) {
    PhiloxBlock block = philox_attempt(seed, stream, index, attempt);
    for (int i = 0; i < 4; i++) {
      uint64_t product = (uint64_t)block.word[i] * bound;
      if ((uint32_t)product >= surplus) return (uint32_t)(product >> 32);
    }
  }
}

/* Shuffles in place, every order equally likely (Fisher and Yates). */
PHILOX_FUNCTION void philox_shuffle(uint32_t *items, uint32_t n, uint64_t seed, uint32_t stream) {
  for (uint32_t i = n; i-- > 1;) {
    uint32_t j = philox_below(i + 1, seed, stream, i);
    uint32_t item = items[i];
    items[i] = items[j];
    items[j] = item;
  }
}

#endif /* COMMON_PHILOX_H */

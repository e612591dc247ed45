/* bits.h - a bit for each byte of a region: which have been written, or are held by an asynchronous copy. */
#ifndef SIMT_INSPECT_BITS_H
#define SIMT_INSPECT_BITS_H

#include "parts.h"

static inline int any_bit(const uint8_t *bits, size_t bit, size_t bytes) {
  for (; bytes--; bit++)
    if (bits[bit / 8] >> bit % 8 & 1) return 1;
  return 0;
}

static inline int any_written(const Region *r, uintptr_t address, size_t bytes) {
  for (size_t bit = address - r->low; bytes--; bit++)
    if (r->written[bit / 8] >> bit % 8 & 1) return 1;
  return 0;
}

static inline int all_written(const Region *r, uintptr_t address, size_t bytes) {
  size_t bit = address - r->low;
  while (bytes) {
    if (bit % 64 == 0 && bytes >= 64) {
      uint64_t word;
      memcpy(&word, r->written + bit / 8, sizeof word);
      if (~word) return 0;
      bit += 64;
      bytes -= 64;
      continue;
    }
    size_t some = 8 - bit % 8 < bytes ? 8 - bit % 8 : bytes;
    unsigned mask = ((1u << some) - 1) << bit % 8;
    if ((r->written[bit / 8] & mask) != mask) return 0;
    bit += some;
    bytes -= some;
  }
  return 1;
}

static inline void set_bits(uint8_t *bits, size_t bit, size_t bytes, int value) {
  while (bytes) {
    if (bit % 8 == 0 && bytes >= 8) {
      memset(bits + bit / 8, value ? 0xff : 0, bytes / 8);
      bit += bytes / 8 * 8;
      bytes %= 8;
      continue;
    }
    size_t some = 8 - bit % 8 < bytes ? 8 - bit % 8 : bytes;
    uint8_t mask = (uint8_t)(((1u << some) - 1) << bit % 8);
    if (value)
      bits[bit / 8] |= mask;
    else
      bits[bit / 8] &= (uint8_t)~mask;
    bit += some;
    bytes -= some;
  }
}

static inline void set_written(Region *r, uintptr_t address, size_t bytes, int value) {
  set_bits(r->written, address - r->low, bytes, value);
}

#endif /* SIMT_INSPECT_BITS_H */

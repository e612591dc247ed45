/* idx_files.cuh - a number from four bytes of a file, in the file's byte order and in the processor's.
 *
 * A number of 32 bits is four bytes, and a file format defines which of them comes first. In IDX files it is the most
 * significant one, as in numbers on paper ("big-endian"); x86, ARM and NVIDIA's GPUs keep the least significant one
 * first in memory ("little-endian"). So a size that is copied into an int has its bytes reversed: 28 becomes
 * 469,762,048. Shifts do not depend on the machine: idx_big_endian() is right everywhere.
 *
 *   idx_big_endian      the number, most significant byte first
 *   idx_little_endian   the number, least significant byte first
 *   idx_numbers_cpu     halves (n,2) = the upper and the lower 16 bits of n numbers in bytes (n,4): halves, because
 *                       the check compares floats, and a float has only 24 bits
 *   idx_numbers         the same, one thread per number
 */
#ifndef PHASE2_MLP_IDX_FILES_CUH
#define PHASE2_MLP_IDX_FILES_CUH

#include <stdint.h>

#include "common/check.h"

static inline __host__ __device__ uint32_t idx_big_endian(const uint8_t *bytes) {
  uint32_t number = 0;
  // >>> exercise idx_big_endian: put four bytes together into a number; the first is the most significant
  // hint: 00 00 ea 60 is 0 * 2^24 + 0 * 2^16 + 0xea * 2^8 + 0x60 = 60000
  // hint: a byte shifted to the left by 24 bits must be unsigned: (uint32_t)bytes[0] << 24
  // hint: number = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  number = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  // <<< exercise
  return number;
}

static inline __host__ __device__ uint32_t idx_little_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static inline void idx_numbers_cpu(int *halves, const uint8_t *bytes, int n) {
  for (int i = 0; i < n; i++) {
    uint32_t number = idx_big_endian(bytes + 4 * (size_t)i);
    halves[2 * i] = (int)(number >> 16);
    halves[2 * i + 1] = (int)(number & 0xFFFF);
  }
}

static __global__ void idx_numbers_kernel(int *halves, const uint8_t *bytes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t number = idx_big_endian(bytes + 4 * (size_t)i);
  halves[2 * i] = (int)(number >> 16);
  halves[2 * i + 1] = (int)(number & 0xFFFF);
}

static inline void idx_numbers(int *halves, const uint8_t *bytes, int n) {
  idx_numbers_kernel<<<(unsigned)(n + 255) / 256, 256>>>(halves, bytes, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE2_MLP_IDX_FILES_CUH */

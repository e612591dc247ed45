/* onnx_wire.cuh - numbers in a protobuf file: varints.
 *
 * An ONNX file is one message of protobuf: fields one after the other, each a key, number * 8 + coding, and a value.
 * Keys, lengths and whole numbers are varints: seven bits in each byte, the lowest first; the highest bit of a byte
 * says that another one follows. Small numbers need one byte, 2^64 - 1 needs ten.
 *
 *     ac 02     0101100 and then 0000010: 44 + 2 * 128 = 300
 *
 *   onnx_varint        the number, and how many bytes it has
 *   onnx_varints_cpu   parts (n,5) = four times 16 bits of each number, the lowest first, and its bytes: parts, because
 *                      the check compares floats, which have 24 bits
 *   onnx_varints       the same, one thread for each number
 */
#ifndef PHASE5_PRODUCTION_ONNX_WIRE_CUH
#define PHASE5_PRODUCTION_ONNX_WIRE_CUH

#include <stdint.h>

#include "common/check.h"

enum { ONNX_VARINT = 10 /* bytes, at most */, ONNX_VARINT_PARTS = 5 };

/* Of at least ten bytes, or of so many that the number ends in them. Returns how many are the number's. */
static inline __host__ __device__ int onnx_varint(const uint8_t *bytes, uint64_t *value) {
  uint64_t number = 0;
  int used = 0;
  // >>> exercise onnx_varint: put `number` together from bytes of seven bits, and count in `used` how many it has
  // hint: byte k counts 2^(7 k); its highest bit is not part of the number: it says that another byte follows
  // hint: 7 bits shifted by up to 63 need 64: (uint64_t)(bytes[k] & 127) << 7 * k
  // hint: do number |= (uint64_t)(bytes[used] & 127) << 7 * used; while (bytes[used++] > 127 && used < ONNX_VARINT);
  do number |= (uint64_t)(bytes[used] & 127) << 7 * used;
  while (bytes[used++] > 127 && used < ONNX_VARINT);
  // <<< exercise
  *value = number;
  return used;
}

/* ------------------------------------------------------------------------------------------------------- for checks */

static inline __host__ __device__ void onnx_varint_parts(int *parts, const uint8_t *bytes) {
  uint64_t value;
  parts[4] = onnx_varint(bytes, &value);
  for (int k = 0; k < 4; k++) parts[k] = (int)(value >> 16 * k & 0xFFFF);
}

static inline void onnx_varints_cpu(int *parts, const uint8_t *bytes, int n) {
  for (int i = 0; i < n; i++) onnx_varint_parts(parts + ONNX_VARINT_PARTS * (size_t)i, bytes + ONNX_VARINT * (size_t)i);
}

static __global__ void onnx_varints_kernel(int *parts, const uint8_t *bytes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) onnx_varint_parts(parts + ONNX_VARINT_PARTS * (size_t)i, bytes + ONNX_VARINT * (size_t)i);
}

static inline void onnx_varints(int *parts, const uint8_t *bytes, int n) {
  onnx_varints_kernel<<<(unsigned)(n + 127) / 128, 128>>>(parts, bytes, n);
  CUDA_CHECK_LAUNCH();
}

#endif /* PHASE5_PRODUCTION_ONNX_WIRE_CUH */

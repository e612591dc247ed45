/* dtype.h - the types of the numbers in an array, by name and size.
 *
 * The first three are what networks of the course compute with. The others come with files of ONNX: labels, indices and
 * shapes are whole numbers, masks are bool, a byte each.
 */
#ifndef COMMON_DTYPE_H
#define COMMON_DTYPE_H

#include <stddef.h>

typedef enum DType {
  DTYPE_FLOAT32,
  DTYPE_BF16,
  DTYPE_FP16,
  DTYPE_DOUBLE,
  DTYPE_BOOL,
  DTYPE_INT8,
  DTYPE_UINT8,
  DTYPE_INT16,
  DTYPE_UINT16,
  DTYPE_INT32,
  DTYPE_UINT32,
  DTYPE_INT64,
  DTYPE_UINT64,
  DTYPE_COUNT
} DType;

static inline const char *dtype_name(DType type) {
  static const char *const names[DTYPE_COUNT] = {"float32", "bf16",   "fp16",  "double", "bool",  "int8",  "uint8",
                                                 "int16",   "uint16", "int32", "uint32", "int64", "uint64"};
  return type >= 0 && type < DTYPE_COUNT ? names[type] : "unknown";
}

static inline size_t dtype_bytes(DType type) {
  static const unsigned char bytes[DTYPE_COUNT] = {4, 2, 2, 8, 1, 1, 1, 2, 2, 4, 4, 8, 8};
  return type >= 0 && type < DTYPE_COUNT ? bytes[type] : 0;
}

/* bf16 or fp16. */
static inline int dtype_is_half(DType type) { return type == DTYPE_BF16 || type == DTYPE_FP16; }

#endif /* COMMON_DTYPE_H */

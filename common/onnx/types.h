/* types.h - the types of ONNX's elements: their names, sizes, and which field of a TensorProto holds them. */
#ifndef COMMON_ONNX_TYPES_H
#define COMMON_ONNX_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* TensorProto.DataType. Those of 8-bit floats are newer than our onnx.proto, whose data_type is a plain number. */
enum {
  ONNX_FLOAT = 1,
  ONNX_UINT8 = 2,
  ONNX_INT8 = 3,
  ONNX_UINT16 = 4,
  ONNX_INT16 = 5,
  ONNX_INT32 = 6,
  ONNX_INT64 = 7,
  ONNX_STRING = 8,
  ONNX_BOOL = 9,
  ONNX_FLOAT16 = 10,
  ONNX_DOUBLE = 11,
  ONNX_UINT32 = 12,
  ONNX_UINT64 = 13,
  ONNX_COMPLEX64 = 14,
  ONNX_COMPLEX128 = 15,
  ONNX_BFLOAT16 = 16,
  ONNX_FLOAT8E4M3FN = 17,
  ONNX_FLOAT8E4M3FNUZ = 18,
  ONNX_FLOAT8E5M2 = 19,
  ONNX_FLOAT8E5M2FNUZ = 20,
};

enum { ONNX_MAX_RANK = 8 };

typedef enum OnnxField {
  ONNX_IN_NONE,
  ONNX_IN_FLOATS,
  ONNX_IN_INT32S,
  ONNX_IN_INT64S,
  ONNX_IN_DOUBLES,
  ONNX_IN_UINT64S
} OnnxField;

typedef struct OnnxTypeInfo {
  const char *name;    /* as messages call it */
  unsigned size;       /* bytes of an element; 0: they are not numbers */
  OnnxField field;     /* where the data is when it is not raw_data */
  unsigned parts;      /* numbers of that field for each element */
  int64_t least, most; /* in int32_data: the values that fit */
} OnnxTypeInfo;

/* NULL for a type that the format does not have, or that is not read. */
static inline const OnnxTypeInfo *onnx_type(int type) {
  static const OnnxTypeInfo types[] = {
      {NULL, 0, ONNX_IN_NONE, 0, 0, 0},
      {"float32", 4, ONNX_IN_FLOATS, 1, 0, 0},
      {"uint8", 1, ONNX_IN_INT32S, 1, 0, UINT8_MAX},
      {"int8", 1, ONNX_IN_INT32S, 1, INT8_MIN, INT8_MAX},
      {"uint16", 2, ONNX_IN_INT32S, 1, 0, UINT16_MAX},
      {"int16", 2, ONNX_IN_INT32S, 1, INT16_MIN, INT16_MAX},
      {"int32", 4, ONNX_IN_INT32S, 1, INT32_MIN, INT32_MAX},
      {"int64", 8, ONNX_IN_INT64S, 1, 0, 0},
      {"string", 0, ONNX_IN_NONE, 1, 0, 0},
      {"bool", 1, ONNX_IN_INT32S, 1, 0, 1},
      {"float16", 2, ONNX_IN_INT32S, 1, 0, UINT16_MAX},
      {"float64", 8, ONNX_IN_DOUBLES, 1, 0, 0},
      {"uint32", 4, ONNX_IN_UINT64S, 1, 0, UINT32_MAX},
      {"uint64", 8, ONNX_IN_UINT64S, 1, 0, 0},
      {"complex64", 8, ONNX_IN_FLOATS, 2, 0, 0},
      {"complex128", 16, ONNX_IN_DOUBLES, 2, 0, 0},
      {"bfloat16", 2, ONNX_IN_INT32S, 1, 0, UINT16_MAX},
      {"float8e4m3fn", 1, ONNX_IN_INT32S, 1, 0, UINT8_MAX},
      {"float8e4m3fnuz", 1, ONNX_IN_INT32S, 1, 0, UINT8_MAX},
      {"float8e5m2", 1, ONNX_IN_INT32S, 1, 0, UINT8_MAX},
      {"float8e5m2fnuz", 1, ONNX_IN_INT32S, 1, 0, UINT8_MAX},
  };
  const int count = (int)(sizeof types / sizeof *types);
  return type > 0 && type < count ? &types[type] : NULL;
}

static inline const char *onnx_type_name(int type) {
  const OnnxTypeInfo *info = onnx_type(type);
  return info == NULL ? "of an unknown type" : info->name;
}

/* Bytes of an element, 0 where the elements are not numbers. */
static inline size_t onnx_type_size(int type) {
  const OnnxTypeInfo *info = onnx_type(type);
  return info == NULL ? 0 : info->size;
}

/* "float32 (64, 3, 7, 7)" */
static inline const char *onnx_describe(char *text, size_t size, int type, int rank, const int64_t *dim) {
  size_t used = (size_t)snprintf(text, size, "%s (", onnx_type_name(type));
  for (int i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i == 0 ? "%lld" : ", %lld", (long long)dim[i]);
  if (used < size) snprintf(text + used, size - used, ")");
  return text;
}

#endif /* COMMON_ONNX_TYPES_H */

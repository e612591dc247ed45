/* onnx_testdata.h - the tensors of ONNX's operator tests, an oracle from outside: for each operator inputs, and outputs
 * that its makers computed with numpy. The Debian package libonnx-testdata brings them.
 *
 *     onnx_testdata_required();                                  // skips the test where the package is missing
 *     OnnxTensor x, y;
 *     onnx_testdata_load("relu", "input_0", &x);                 // node/test_relu/test_data_set_0/input_0.pb
 *     onnx_testdata_load("relu", "output_0", &y);
 *     relu_forward_cpu(mine, x.floats, x.count);
 *     assert_close(mine, y.floats, y.count, ...);
 *     onnx_tensor_free(&x);
 *
 * A .pb file is one TensorProto of onnx.proto, in protobuf's wire format: fields one after the other, each a varint
 * that says which field and how it is coded, then the value. Four fields matter here: the sizes, the type, the name,
 * and the raw little-endian data. Tensors that keep their data in fields of their own type are refused: of those that
 * the tests need, none does.
 */
#ifndef COMMON_ONNX_TESTDATA_H
#define COMMON_ONNX_TESTDATA_H

#include "common/error.h"
#include "common/test.h"

#include <limits.h>
#include <sys/stat.h>

enum { ONNX_MAX_RANK = 8, ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9 };

typedef struct OnnxTensor {
  int rank, type;              /* one of the three above; rank 0 is one number */
  size_t shape[ONNX_MAX_RANK]; /* the last index runs fastest */
  size_t count;                /* the product of shape */
  float *floats;               /* the elements, whatever their type: the tests' int64 are labels, small numbers */
} OnnxTensor;

static inline void onnx_tensor_free(OnnxTensor *tensor) {
  free(tensor->floats);
  memset(tensor, 0, sizeof *tensor);
}

/* What is left of a message. */
typedef struct OnnxBytes {
  const unsigned char *at;
  size_t left;
} OnnxBytes;

/* Seven bits a byte, the lowest first; the last byte has its highest bit clear. */
static inline int onnx_varint(OnnxBytes *in, uint64_t *value, Error *err) {
  *value = 0;
  for (int shift = 0; shift < 64 && in->left > 0; shift += 7) {
    unsigned char byte = *in->at++;
    in->left--;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return 0;
  }
  return error_set(err, "a number is cut short");
}

/* A value with its length before it: of text, of packed numbers, of data. */
static inline int onnx_block(OnnxBytes *in, OnnxBytes *block, Error *err) {
  uint64_t length;
  if (onnx_varint(in, &length, err) != 0) return -1;
  if (length > in->left)
    return error_set(err, "a field declares %llu bytes, %zu are left", (unsigned long long)length, in->left);
  block->at = in->at, block->left = (size_t)length;
  in->at += length, in->left -= (size_t)length;
  return 0;
}

static inline int onnx_size(OnnxTensor *tensor, OnnxBytes *in, Error *err) {
  uint64_t size;
  if (onnx_varint(in, &size, err) != 0) return -1;
  if (tensor->rank == ONNX_MAX_RANK) return error_set(err, "more than %d dimensions", ONNX_MAX_RANK);
  if (size > INT_MAX || tensor->count * size > INT_MAX) return error_set(err, "more than %d elements", INT_MAX);
  tensor->shape[tensor->rank++] = (size_t)size;
  tensor->count *= (size_t)size;
  return 0;
}

/* The fields of a TensorProto; *data is its raw_data. */
static inline int onnx_fields(OnnxTensor *tensor, OnnxBytes in, OnnxBytes *data, Error *err) {
  enum { DIMS = 1, DATA_TYPE = 2, NAME = 8, RAW_DATA = 9, DOC_STRING = 12, VARINT = 0, BLOCK = 2 };
  while (in.left > 0) {
    uint64_t key, value;
    OnnxBytes block = {NULL, 0};
    if (onnx_varint(&in, &key, err) != 0) return -1;
    uint64_t field = key >> 3, coding = key & 7;
    if (field == DIMS && coding == VARINT) {
      if (onnx_size(tensor, &in, err) != 0) return -1;
    } else if (field == DATA_TYPE && coding == VARINT) {
      if (onnx_varint(&in, &value, err) != 0) return -1;
      tensor->type = (int)value;
    } else if (coding == BLOCK && (field == DIMS || field == NAME || field == RAW_DATA || field == DOC_STRING)) {
      if (onnx_block(&in, &block, err) != 0) return -1;
      while (field == DIMS && block.left > 0) /* packed, as newer writers do */
        if (onnx_size(tensor, &block, err) != 0) return -1;
      if (field == RAW_DATA) *data = block;
    } else {
      return error_set(err, "field %llu, coding %llu: not of a tensor with raw data", (unsigned long long)field,
                       (unsigned long long)coding);
    }
  }
  return 0;
}

/* The message of `size` bytes. */
static inline int onnx_tensor_parse(const void *message, size_t size, OnnxTensor *out, Error *err) {
  OnnxBytes in = {(const unsigned char *)message, size}, data = {NULL, 0};
  memset(out, 0, sizeof *out);
  out->count = 1;
  if (onnx_fields(out, in, &data, err) != 0) return -1;
  size_t element = out->type == ONNX_FLOAT ? 4 : out->type == ONNX_INT64 ? 8 : out->type == ONNX_BOOL ? 1 : 0;
  if (element == 0) return error_set(err, "elements of type %d; float (1), int64 (7) and bool (9) are read", out->type);
  if (data.left != element * out->count)
    return error_set(err, "%zu bytes of data, %zu were expected", data.left, element * out->count);
  out->floats = (float *)xmalloc(out->count * sizeof *out->floats);
  for (size_t i = 0; i < out->count; i++) {
    int64_t whole;
    if (out->type == ONNX_FLOAT) memcpy(&out->floats[i], data.at + 4 * i, 4);
    if (out->type == ONNX_INT64) memcpy(&whole, data.at + 8 * i, 8), out->floats[i] = (float)whole;
    if (out->type == ONNX_BOOL) out->floats[i] = data.at[i] != 0;
  }
  return 0;
}

static inline int onnx_tensor_read(const char *path, OnnxTensor *out, Error *err) {
  const size_t most = (size_t)1 << 20; /* the largest of the tests has a quarter of it */
  memset(out, 0, sizeof *out);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  unsigned char *message = (unsigned char *)xmalloc(most);
  size_t size = fread(message, 1, most, file);
  Error reason;
  int status = 0;
  if (ferror(file))
    status = error_set(err, "cannot read %s", path);
  else if (size == most)
    status = error_set(err, "%s has %zu bytes or more", path, most);
  else if (onnx_tensor_parse(message, size, out, &reason) != 0)
    status = error_set(err, "%s: %s", path, reason.message);
  fclose(file);
  free(message);
  return status;
}

/* The package's directory of operators, or that which NN_ONNX_TESTDATA names. */
static inline const char *onnx_testdata_directory(void) {
  const char *named = getenv("NN_ONNX_TESTDATA");
  return named != NULL && named[0] != '\0' ? named : "/usr/share/libonnx-testdata/data/node";
}

static inline void onnx_testdata_required(void) {
  struct stat info;
  if (stat(onnx_testdata_directory(), &info) == 0) return;
  print_message("skipped: there is no %s; on Debian and Ubuntu: apt install libonnx-testdata (or run ./setup.sh)\n",
                onnx_testdata_directory());
  skip();
}

/* File `name` of operator test `test`; the test fails where it is missing or strange. */
static inline void onnx_testdata_load(const char *test, const char *name, OnnxTensor *out) {
  char path[PATH_MAX];
  Error err;
  snprintf(path, sizeof path, "%s/test_%s/test_data_set_0/%s.pb", onnx_testdata_directory(), test, name);
  if (onnx_tensor_read(path, out, &err) != 0) fail_msg("%s", err.message);
}

#endif /* COMMON_ONNX_TESTDATA_H */

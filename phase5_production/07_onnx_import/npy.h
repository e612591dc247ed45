/* npy.h - arrays in files of numpy (.npy), versions 1 to 3: a text that names type and shape, and the numbers.
 *
 *     "\x93NUMPY", two bytes of version, the length of the text (2 bytes, later 4), the text:
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 224, 224), }
 */
#ifndef PHASE5_PRODUCTION_NPY_H
#define PHASE5_PRODUCTION_NPY_H

#include "common/onnx/onnx.h"

/* The types that both formats have. */
static inline int npy_type(const char *descr, size_t length) {
  static const struct {
    const char *descr;
    int type;
  } types[] = {{"<f4", ONNX_FLOAT},  {"<f8", ONNX_DOUBLE}, {"<f2", ONNX_FLOAT16}, {"<i8", ONNX_INT64},
               {"<i4", ONNX_INT32},  {"<i2", ONNX_INT16},  {"|i1", ONNX_INT8},    {"<u8", ONNX_UINT64},
               {"<u4", ONNX_UINT32}, {"<u2", ONNX_UINT16}, {"|u1", ONNX_UINT8},   {"|b1", ONNX_BOOL}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].descr) == length && strncmp(types[i].descr, descr, length) == 0) return types[i].type;
  return 0;
}

/* The text behind 'key': in the dictionary; NULL: it is not there. */
static inline const char *npy_value(const char *text, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s':", key);
  const char *at = strstr(text, quoted);
  if (at == NULL) return NULL;
  at += strlen(quoted);
  return at + strspn(at, " ");
}

static inline int npy_parse_text(OnnxTensor *t, const char *path, const char *text, Error *err) {
  const char *descr = npy_value(text, "descr"), *order = npy_value(text, "fortran_order"),
             *shape = npy_value(text, "shape");
  if (descr == NULL || order == NULL || shape == NULL || descr[0] != '\'' || shape[0] != '(')
    return error_set(err, "%s: its header has no descr, fortran_order and shape; an array of numpy is expected", path);
  t->type = npy_type(descr + 1, strcspn(descr + 1, "'"));
  if (t->type == 0)
    return error_set(err, "%s: numbers of type %.12s; little-endian numbers or bool are expected", path, descr);
  if (strncmp(order, "False", 5) != 0)
    return error_set(err, "%s: the array is in Fortran's order; save numpy.ascontiguousarray() of it", path);
  for (const char *at = shape + 1; *at && *at != ')';) {
    char *end;
    if (t->rank == ONNX_MAX_RANK) return error_set(err, "%s: more than %d axes", path, ONNX_MAX_RANK);
    t->dim[t->rank] = strtoll(at, &end, 10);
    if (end == at || t->dim[t->rank] < 0) return error_set(err, "%s: the shape %.40s is not understood", path, shape);
    t->rank++;
    at = end + strspn(end, ", ");
  }
  const int64_t count = onnx_element_count((size_t)t->rank, t->dim);
  int64_t bytes;
  if (count < 0 || __builtin_mul_overflow(count, (int64_t)onnx_type_size(t->type), &bytes))
    return error_set(err, "%s: the shape %.40s is too large", path, shape);
  t->count = (size_t)count;
  t->bytes = (size_t)bytes;
  return 0;
}

/* To be freed with onnx_tensor_free(). */
static inline int npy_read(const char *path, OnnxTensor *t, Error *err) {
  unsigned char *bytes;
  size_t size = 0;
  memset(t, 0, sizeof *t);
  if (onnx_file_read(path, &bytes, &size, err) != 0) return -1;
  int status = 0;
  const size_t wide = size > 7 && bytes[6] > 1 ? 4 : 2, header = 8 + wide;
  size_t length = 0;
  if (size < header || memcmp(bytes, "\x93NUMPY", 6) != 0)
    status = error_set(err, "%s does not begin as a file of numpy does", path);
  for (size_t i = 0; i < wide && status == 0; i++) length |= (size_t)bytes[8 + i] << (8 * i);
  if (status == 0 && (length > 65536 || header + length > size))
    status = error_set(err, "%s: its header has %zu bytes, and the file %zu", path, length, size);
  char *text = status == 0 ? strndup((const char *)bytes + header, length) : NULL;
  if (status == 0) status = npy_parse_text(t, path, text, err);
  if (status == 0 && size - header - length != t->bytes)
    status = error_set(err, "%s: %zu bytes of numbers; %zu are expected", path, size - header - length, t->bytes);
  if (status == 0) {
    t->data = xmalloc(t->bytes);
    memcpy(t->data, bytes + header + length, t->bytes);
  }
  free(text);
  free(bytes);
  return status;
}

/* As numpy.save() writes it; the file is replaced in one step. */
static inline int npy_write(const char *path, const char *descr, int rank, const int64_t *dim, const void *data,
                            size_t bytes, Error *err) {
  char text[512];
  int used = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int i = 0; i < rank; i++) used += snprintf(text + used, sizeof text - (size_t)used, "%lld,", (long long)dim[i]);
  used += snprintf(text + used, sizeof text - (size_t)used, "), }");
  while ((10 + used + 1) % 64 != 0) text[used++] = ' ';
  text[used++] = '\n';
  const unsigned char head[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(used & 255), (unsigned char)(used >> 8)};
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  fwrite(head, 1, sizeof head, file.stream);
  fwrite(text, 1, (size_t)used, file.stream);
  fwrite(data, 1, bytes, file.stream);
  return atomic_file_commit(&file, err);
}

#endif /* PHASE5_PRODUCTION_NPY_H */

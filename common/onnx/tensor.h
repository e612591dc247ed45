/* tensor.h - TensorProto: checking one, and loading its data from wherever the file keeps it.
 *
 * The data is in raw_data (little-endian bytes), in a field of numbers of its type (float_data ...), or in another file
 * beside the model ("external data": location, offset, length). That file's name comes from the model, so it is not
 * trusted: it must be a plain file in the model's folder or below, reached without "..", without a link.
 */
#ifndef COMMON_ONNX_TENSOR_H
#define COMMON_ONNX_TENSOR_H

#include "common/error.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/onnx/types.h"
#include "third_party/onnx/onnx.pb-c.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ONNX's raw data is little-endian and is read without conversion"
#endif

typedef struct OnnxTensor {
  int type, rank; /* ONNX_FLOAT ...; rank 0 is one number */
  int64_t dim[ONNX_MAX_RANK];
  size_t count, bytes; /* elements: the product of dim; bytes: count times the size of the type */
  void *data;          /* row-major, owned */
} OnnxTensor;

static inline void onnx_tensor_free(OnnxTensor *tensor) {
  free(tensor->data);
  memset(tensor, 0, sizeof *tensor);
}

/* Where external data is. */
typedef struct OnnxExternal {
  const char *location;
  int64_t offset, length; /* length -1: what the tensor needs */
} OnnxExternal;

/* Elements of a shape: -1 where a dimension is negative, or their number is not an int64, even with the zeros left
 * out. */
static inline int64_t onnx_element_count(size_t rank, const int64_t *dim) {
  int64_t product = 1;
  int empty = 0;
  for (size_t i = 0; i < rank; i++) {
    if (dim[i] < 0) return -1;
    if (dim[i] == 0) empty = 1;
    if (dim[i] > 0 && __builtin_mul_overflow(product, dim[i], &product)) return -1;
  }
  return empty ? 0 : product;
}

/* Type, shape, count and bytes of `p`, no data. `where` is how messages name it: "tensor 'fc.weight'". */
static inline int onnx_tensor_shape(OnnxTensor *t, const char *path, const char *where, const Onnx__TensorProto *p,
                                    Error *err) {
  memset(t, 0, sizeof *t);
  const OnnxTypeInfo *info = onnx_type(p->data_type);
  if (info == NULL)
    return error_set(err, "%s: %s has the unknown element type %d; 1 (float32) to 20 are known", path, where,
                     p->data_type);
  if (p->n_dims > ONNX_MAX_RANK)
    return error_set(err, "%s: %s has %zu dimensions; up to %d are read", path, where, p->n_dims, ONNX_MAX_RANK);
  t->type = p->data_type;
  t->rank = (int)p->n_dims;
  for (int i = 0; i < t->rank; i++) t->dim[i] = p->dims[i];
  char text[256];
  const int64_t count = onnx_element_count(p->n_dims, p->dims);
  int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, (int64_t)info->size, &bytes))
    return error_set(err, "%s: %s of %s is impossible: its sizes must be >= 0 and their product below 2^63 bytes", path,
                     where, onnx_describe(text, sizeof text, t->type, t->rank, t->dim));
  t->count = (size_t)count;
  t->bytes = (size_t)bytes;
  return 0;
}

static inline int onnx_parse_size(const char *text, int64_t *size) {
  char *end;
  if (text == NULL || text[0] < '0' || text[0] > '9') return -1;
  errno = 0;
  *size = strtoll(text, &end, 10);
  return errno != 0 || *end != '\0' ? -1 : 0;
}

/* Whether a location stays in the model's folder as far as its text says; links are met when it is opened. */
static inline int onnx_location_is_inside(const char *location) {
  if (location[0] == '/' || location[0] == '\0' || strlen(location) >= PATH_MAX) return 0;
  for (const char *part = location, *slash; part != NULL; part = slash == NULL ? NULL : slash + 1) {
    slash = strchr(part, '/');
    const size_t length = slash == NULL ? strlen(part) : (size_t)(slash - part);
    if (length == 0 || (length == 2 && strncmp(part, "..", 2) == 0)) return 0;
  }
  return 1;
}

static inline int onnx_external_parse(OnnxExternal *external, const char *path, const char *where,
                                      const Onnx__TensorProto *p, Error *err) {
  *external = (OnnxExternal){NULL, 0, -1};
  for (size_t i = 0; i < p->n_external_data; i++) {
    const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
    if (key == NULL || value == NULL)
      return error_set(err, "%s: %s has external data without key or value", path, where);
    if (strcmp(key, "location") == 0) external->location = value;
    if ((strcmp(key, "offset") == 0 && onnx_parse_size(value, &external->offset) != 0) ||
        (strcmp(key, "length") == 0 && onnx_parse_size(value, &external->length) != 0))
      return error_set(err, "%s: %s has external data of %s '%.40s'; a whole number from 0 to 2^63 - 1 was expected",
                       path, where, key, value);
  }
  if (external->location == NULL) return error_set(err, "%s: %s has external data without a location", path, where);
  if (!onnx_location_is_inside(external->location))
    return error_set(err,
                     "%s: %s has its data in '%.200s'; only a file in the model's own folder, or below it, is read",
                     path, where, external->location);
  return 0;
}

/* How many numbers each data field of `p` holds, and their names. */
typedef struct OnnxHeld {
  size_t count;
  const char *name;
} OnnxHeld;

static inline OnnxHeld onnx_held(const Onnx__TensorProto *p, OnnxField field) {
  switch (field) {
    case ONNX_IN_FLOATS:
      return (OnnxHeld){p->n_float_data, "float_data"};
    case ONNX_IN_INT32S:
      return (OnnxHeld){p->n_int32_data, "int32_data"};
    case ONNX_IN_INT64S:
      return (OnnxHeld){p->n_int64_data, "int64_data"};
    case ONNX_IN_DOUBLES:
      return (OnnxHeld){p->n_double_data, "double_data"};
    case ONNX_IN_UINT64S:
      return (OnnxHeld){p->n_uint64_data, "uint64_data"};
    default:
      return (OnnxHeld){p->n_string_data, "string_data"};
  }
}

/* The one field that holds `p`'s data must be its type's, and hold as much as its shape says. */
static inline int onnx_tensor_check_typed(const OnnxTensor *t, const char *path, const char *where,
                                          const Onnx__TensorProto *p, Error *err) {
  const OnnxTypeInfo *info = onnx_type(t->type);
  const OnnxHeld mine = onnx_held(p, info->field);
  char text[256];
  onnx_describe(text, sizeof text, t->type, t->rank, t->dim);
  for (int field = ONNX_IN_NONE; field <= ONNX_IN_UINT64S; field++) {
    const OnnxHeld other = onnx_held(p, (OnnxField)field);
    if (other.count > 0 && (OnnxField)field != info->field)
      return error_set(err, "%s: %s of %s holds %s, expected %s or raw_data", path, where, text, other.name, mine.name);
  }
  if (mine.count % info->parts != 0 || mine.count / info->parts != t->count)
    return error_set(err, "%s: %s of %s holds %zu numbers in %s, expected %zu x %u", path, where, text, mine.count,
                     mine.name, t->count, info->parts);
  for (size_t i = 0; i < mine.count && info->least < info->most; i++) {
    const int64_t value = info->field == ONNX_IN_INT32S   ? p->int32_data[i]
                          : p->uint64_data[i] > INT64_MAX ? INT64_MAX
                                                          : (int64_t)p->uint64_data[i];
    if (value < info->least || value > info->most)
      return error_set(err, "%s: %s of %s holds %lld in %s, which does not fit its type", path, where, text,
                       (long long)value, mine.name);
  }
  return 0;
}

/* Whether the tensor can be loaded, but for what other files hold. */
static inline int onnx_tensor_check(const char *path, const char *where, const Onnx__TensorProto *p, Error *err) {
  OnnxTensor t;
  OnnxExternal external;
  char text[256];
  if (onnx_tensor_shape(&t, path, where, p, err) != 0) return -1;
  onnx_describe(text, sizeof text, t.type, t.rank, t.dim);
  if (p->segment != NULL)
    return error_set(err, "%s: %s is only a segment of a tensor; whole ones are read", path, where);
  const int is_external = p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  if (is_external || p->has_raw_data) {
    for (int field = ONNX_IN_NONE; field <= ONNX_IN_UINT64S; field++)
      if (onnx_held(p, (OnnxField)field).count > 0 || (is_external && p->has_raw_data && p->raw_data.len > 0))
        return error_set(err, "%s: %s has its data in two places; one was expected", path, where);
    if (t.type == ONNX_STRING)
      return error_set(err, "%s: %s of strings has raw data; string_data was expected", path, where);
  }
  if (is_external) {
    if (onnx_external_parse(&external, path, where, p, err) != 0) return -1;
    if (external.length >= 0 && (size_t)external.length != t.bytes)
      return error_set(err, "%s: %s of %s needs %zu bytes, its external data declares %lld", path, where, text, t.bytes,
                       (long long)external.length);
    return 0;
  }
  if (!p->has_raw_data) return onnx_tensor_check_typed(&t, path, where, p, err);
  if (p->raw_data.len != t.bytes)
    return error_set(err, "%s: %s of %s needs %zu bytes, its raw_data has %zu", path, where, text, t.bytes,
                     p->raw_data.len);
  return 0;
}

/* Opens the file at `location` below `folder`, step by step, so that no link leads out of it. */
static inline int onnx_external_open(const char *folder, const char *location, const char *path, const char *where,
                                     Error *err) {
  char rest[PATH_MAX];
  snprintf(rest, sizeof rest, "%s", location);
  int at = open(folder[0] == '\0' ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), last = 0;
  for (char *part = rest; at >= 0 && !last;) {
    char *slash = strchr(part, '/');
    last = slash == NULL;
    if (!last) *slash = '\0';
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    const int next = openat(at, part, flags), reason = errno;
    close(at);
    at = next;
    if (!last) part = slash + 1;
    if (at < 0 && reason == ELOOP)
      return error_set(err, "%s: %s has its data in '%.200s', which is a link or behind one; put the file itself there",
                       path, where, location);
    errno = reason;
  }
  if (at < 0)
    return error_set(err, "%s: %s has its data in '%.200s', which cannot be opened: %s; keep it beside the model", path,
                     where, location, strerror(errno));
  return at;
}

static inline int onnx_external_load(OnnxTensor *t, const OnnxExternal *external, const char *folder, const char *path,
                                     const char *where, Error *err) {
  const int file = onnx_external_open(folder, external->location, path, where, err);
  if (file < 0) return -1;
  struct stat info;
  int status = 0;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
    status =
        error_set(err, "%s: %s has its data in '%.200s', which is not a plain file", path, where, external->location);
  else if (external->offset > info.st_size || t->bytes > (uint64_t)(info.st_size - external->offset))
    status = error_set(err, "%s: %s needs %zu bytes at byte %lld of '%.200s', which has %lld; fetch it again", path,
                       where, t->bytes, (long long)external->offset, external->location, (long long)info.st_size);
  if (status == 0) t->data = xmalloc(t->bytes);
  for (size_t done = 0; status == 0 && done < t->bytes;) {
    const ssize_t n = pread(file, (char *)t->data + done, t->bytes - done, (off_t)((size_t)external->offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      status = error_set(err, "%s: cannot read '%.200s' of %s: %s", path, external->location, where,
                         n < 0 ? strerror(errno) : "it became shorter");
    else
      done += (size_t)n;
  }
  close(file);
  return status;
}

/* Numbers of a field of its type, each in its own size. */
static inline void onnx_tensor_unpack(OnnxTensor *t, const Onnx__TensorProto *p) {
  const OnnxTypeInfo *info = onnx_type(t->type);
  const unsigned size = info->size;
  if (info->field == ONNX_IN_FLOATS) memcpy(t->data, p->float_data, t->bytes);
  if (info->field == ONNX_IN_INT64S) memcpy(t->data, p->int64_data, t->bytes);
  if (info->field == ONNX_IN_DOUBLES) memcpy(t->data, p->double_data, t->bytes);
  for (size_t i = 0; i < t->count; i++) { /* little-endian: the lowest bytes are the first */
    if (info->field == ONNX_IN_INT32S) memcpy((char *)t->data + size * i, &p->int32_data[i], size);
    if (info->field == ONNX_IN_UINT64S) memcpy((char *)t->data + size * i, &p->uint64_data[i], size);
  }
}

/* Loads `p`, which need not be checked yet. `folder` is where external data lies. */
static inline int onnx_tensor_load_from(OnnxTensor *t, const char *path, const char *folder, const char *where,
                                        const Onnx__TensorProto *p, Error *err) {
  memset(t, 0, sizeof *t);
  if (onnx_tensor_check(path, where, p, err) != 0 || onnx_tensor_shape(t, path, where, p, err) != 0) return -1;
  if (t->type == ONNX_STRING) return error_set(err, "%s: %s holds strings; tensors of numbers are loaded", path, where);
  int status = 0;
  if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    OnnxExternal external;
    status = onnx_external_parse(&external, path, where, p, err);
    if (status == 0) status = onnx_external_load(t, &external, folder, path, where, err);
  } else {
    t->data = xmalloc(t->bytes);
    if (p->has_raw_data && t->bytes > 0) memcpy(t->data, p->raw_data.data, t->bytes);
    if (!p->has_raw_data && t->bytes > 0) onnx_tensor_unpack(t, p);
  }
  if (status != 0) onnx_tensor_free(t);
  return status;
}

#endif /* COMMON_ONNX_TENSOR_H */

/* safetensors.h - named tensors in one file, as PyTorch and Hugging Face write them: checkpoints, pretrained weights.
 *
 *     u64 N | N bytes of JSON | the tensors' bytes
 *     {"__metadata__": {"epoch": "3"}, "fc1.bias": {"dtype": "F32", "shape": [120], "data_offsets": [0, 480]}}
 *
 * All little-endian, row-major; offsets count from the end of the JSON. The format holds no code and no surprises, and
 * the reader keeps it so: the tensors must fill the file without holes, overlaps or leftovers, sizes must agree with
 * shapes, names must be unique. Opening reads nothing but the JSON; a tensor goes from the file straight into place.
 *
 *     SafetensorsFile in;
 *     if (safetensors_open("best.safetensors", &in, &err) != 0) return -1;
 *     int status = safetensors_read_f32(&in, "fc1.weight", 2, shape, weight, &err);
 *     safetensors_close(&in);
 *
 *     SafetensorsWriter out = {0};
 *     safetensors_add(&out, "fc1.weight", "F32", 2, shape, weight);    // keeps the pointer, not a copy
 *     safetensors_add_metadata(&out, "epoch", "3");
 *     safetensors_add_checksum(&out);                                  // behind all tensors
 *     int status = safetensors_write(&out, "best.safetensors", &err);  // reports what the adds found wrong, too
 *     safetensors_writer_free(&out);
 *
 * The format has no checksum. safetensors_add_checksum() puts one of the tensors' bytes among the metadata, where other
 * programs do not mind it, and safetensors_check() compares.
 *
 * Source: the format's description in huggingface/safetensors.
 */
#ifndef COMMON_SAFETENSORS_H
#define COMMON_SAFETENSORS_H

#include "common/error.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/atomic_file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian and are read without conversion"
#endif

enum { SAFETENSORS_MAX_RANK = 8, SAFETENSORS_MAX_HEADER = 100000000, SAFETENSORS_PIECE = 1 << 18 };

/* Metadata: the CRC-32 (as in gzip and PNG, ISO 3309) of the bytes of all tensors in the order of their names, which a
 * program that writes the same tensors in another order does not change. Eight hexadecimal digits. */
#define SAFETENSORS_CHECKSUM "tensors_crc32"

typedef struct SafetensorsTensor {
  const char *name;
  const char *dtype; /* "F32", "U8", ... */
  int rank;
  size_t shape[SAFETENSORS_MAX_RANK];
  size_t bytes;
  size_t offset;    /* from the start of the data */
  const void *data; /* only in a writer, which has only this, the name and the bytes */
} SafetensorsTensor;

typedef struct SafetensorsFile {
  char *path;
  int fd;
  size_t data_start, data_size;
  json_t *header; /* owns the names */
  size_t count;
  SafetensorsTensor *tensors; /* in the order of their bytes */
} SafetensorsFile;

typedef struct SafetensorsWriter {
  json_t *metadata, *header;
  size_t count, data_size;
  SafetensorsTensor *tensors;
  int failed; /* an add went wrong; `error` says how */
  Error error;
} SafetensorsWriter;

typedef struct SafetensorsDtype {
  const char *name;
  unsigned bits;
} SafetensorsDtype;

/* The bits of one element, 0 for a type that the format does not have. *name becomes the table's own string. */
static inline unsigned safetensors_dtype_bits(const char **name) {
  static const SafetensorsDtype dtypes[] = {
      {"F32", 32},    {"F64", 64},    {"F16", 16},    {"BF16", 16},   {"U8", 8},      {"I8", 8},   {"U16", 16},
      {"I16", 16},    {"U32", 32},    {"I32", 32},    {"U64", 64},    {"I64", 64},    {"BOOL", 8}, {"C64", 64},
      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
  };
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (strcmp(*name, dtypes[i].name) == 0) {
      *name = dtypes[i].name;
      return dtypes[i].bits;
    }
  return 0;
}

/* The bytes of a tensor, -1 when they cannot be counted in 64 bits or are no whole number. */
static inline int safetensors_byte_count(unsigned bits, int rank, const size_t *shape, size_t *bytes) {
  size_t total = 1;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(total, shape[i], &total)) return -1;
  if (__builtin_mul_overflow(total, (size_t)bits, &total) || total % 8 != 0) return -1;
  *bytes = total / 8;
  return 0;
}

/* "F32 (120, 400)" */
static inline const char *safetensors_describe(char *text, size_t size, const char *dtype, int rank,
                                               const size_t *shape) {
  size_t used = (size_t)snprintf(text, size, "%s (", dtype);
  for (int i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i == 0 ? "%zu" : ", %zu", shape[i]);
  if (used < size) snprintf(text + used, size - used, ")");
  return text;
}

/* ---- reading ---- */

static inline void safetensors_close(SafetensorsFile *file) {
  if (file->fd >= 0) close(file->fd);
  json_decref(file->header);
  free(file->tensors);
  free(file->path);
  memset(file, 0, sizeof *file);
  file->fd = -1;
}

static inline int safetensors_fetch(const SafetensorsFile *file, size_t offset, void *to, size_t size, Error *err) {
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(file->fd, (char *)to + done, size - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_set(err, "cannot read %s: %s", file->path, strerror(errno));
    if (n == 0) return error_set(err, "%s became shorter while it was read; fetch it again", file->path);
    done += (size_t)n;
  }
  return 0;
}

/* A whole number from 0 to 2^63 - 1. */
static inline int safetensors_parse_size(const json_t *value, size_t *size) {
  if (!json_is_integer(value) || json_integer_value(value) < 0) return -1;
  *size = (size_t)json_integer_value(value);
  return 0;
}

/* One entry of the header, {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}. */
static inline int safetensors_parse_tensor(const char *path, const char *name, const json_t *entry,
                                           SafetensorsTensor *tensor, Error *err) {
  const json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  if (dtype == NULL || !json_is_array(shape) || !json_is_array(offsets) || json_object_size(entry) != 3)
    return error_set(err, "%s: tensor '%.100s' needs dtype, shape and data_offsets, and nothing else", path, name);
  memset(tensor, 0, sizeof *tensor);
  tensor->name = name;
  tensor->dtype = dtype;
  unsigned bits = safetensors_dtype_bits(&tensor->dtype);
  if (bits == 0)
    return error_set(err, "%s: tensor '%.100s' has the unknown dtype '%.30s'; F32 and the like were expected", path,
                     name, dtype);
  if (json_array_size(shape) > SAFETENSORS_MAX_RANK)
    return error_set(err, "%s: tensor '%.100s' has %zu dimensions; up to %d are read", path, name,
                     json_array_size(shape), SAFETENSORS_MAX_RANK);
  tensor->rank = (int)json_array_size(shape);
  for (int i = 0; i < tensor->rank; i++)
    if (safetensors_parse_size(json_array_get(shape, (size_t)i), &tensor->shape[i]) != 0)
      return error_set(err, "%s: tensor '%.100s' has a dimension that is no whole number >= 0", path, name);
  size_t end;
  if (json_array_size(offsets) != 2 || safetensors_parse_size(json_array_get(offsets, 0), &tensor->offset) != 0 ||
      safetensors_parse_size(json_array_get(offsets, 1), &end) != 0 || end < tensor->offset)
    return error_set(err, "%s: tensor '%.100s' needs data_offsets [begin, end] with 0 <= begin <= end", path, name);
  char text[256];
  safetensors_describe(text, sizeof text, tensor->dtype, tensor->rank, tensor->shape);
  if (safetensors_byte_count(bits, tensor->rank, tensor->shape, &tensor->bytes) != 0)
    return error_set(err, "%s: tensor '%.100s' of %s has no size in whole bytes below 2^64 bits", path, name, text);
  if (tensor->bytes != end - tensor->offset)
    return error_set(err, "%s: tensor '%.100s' of %s needs %zu bytes, its data_offsets give it %zu", path, name, text,
                     tensor->bytes, end - tensor->offset);
  return 0;
}

/* By begin, then by end, so that empty tensors come before the one that shares their offset. */
static inline int safetensors_compare(const void *a, const void *b) {
  const SafetensorsTensor *x = (const SafetensorsTensor *)a, *y = (const SafetensorsTensor *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The tensors, end to end, must be the data: no hole, no overlap, nothing missing, nothing left over. */
static inline int safetensors_check_layout(const SafetensorsFile *file, Error *err) {
  size_t end = 0;
  for (size_t i = 0; i < file->count; i++) {
    const SafetensorsTensor *tensor = &file->tensors[i];
    if (tensor->offset != end)
      return error_set(err,
                       "%s: tensor '%.100s' begins at byte %zu of the data, where %s; the tensors must lie end to "
                       "end",
                       file->path, tensor->name, tensor->offset,
                       tensor->offset < end ? "another tensor lies" : "a hole lies before it");
    if (tensor->bytes > file->data_size - end)
      return error_set(err,
                       "%s is cut short: tensor '%.100s' ends at byte %zu of the data, the file holds %zu; fetch "
                       "it again",
                       file->path, tensor->name, end + tensor->bytes, file->data_size);
    end += tensor->bytes;
  }
  if (end != file->data_size)
    return error_set(err, "%s holds %zu bytes after the last tensor; it is damaged", file->path, file->data_size - end);
  return 0;
}

static inline int safetensors_parse_header(SafetensorsFile *file, Error *err) {
  json_t *metadata = json_object_get(file->header, "__metadata__");
  const char *name;
  json_t *value;
  if (metadata != NULL && !json_is_object(metadata))
    return error_set(err, "%s: __metadata__ must be an object of strings", file->path);
  json_object_foreach(metadata, name, value) {
    if (!json_is_string(value))
      return error_set(err, "%s: __metadata__ must hold strings only, '%.100s' is none", file->path, name);
  }
  file->tensors = (SafetensorsTensor *)xcalloc(json_object_size(file->header), sizeof *file->tensors);
  json_object_foreach(file->header, name, value) {
    if (value == metadata) continue;
    if (safetensors_parse_tensor(file->path, name, value, &file->tensors[file->count++], err) != 0) return -1;
  }
  qsort(file->tensors, file->count, sizeof *file->tensors, safetensors_compare);
  return safetensors_check_layout(file, err);
}

/* Reads and parses the JSON; `size` is the file's. */
static inline int safetensors_read_header(SafetensorsFile *file, size_t size, Error *err) {
  uint64_t length;
  if (size < 8) return error_set(err, "%s is no safetensors file: it holds %zu bytes only", file->path, size);
  if (safetensors_fetch(file, 0, &length, 8, err) != 0) return -1;
  if (length > SAFETENSORS_MAX_HEADER)
    return error_set(err, "%s is no safetensors file: it declares a header of %llu bytes, over the limit of %d",
                     file->path, (unsigned long long)length, SAFETENSORS_MAX_HEADER);
  if (length > size - 8)
    return error_set(err, "%s is cut short: it declares a header of %llu bytes and holds %zu; fetch it again",
                     file->path, (unsigned long long)length, size - 8);
  char *text = (char *)malloc(length + 1);
  if (text == NULL) return error_set(err, "%s: no memory for its header of %zu bytes", file->path, (size_t)length);
  int status = safetensors_fetch(file, 8, text, length, err);
  if (status == 0 && (length == 0 || text[0] != '{'))
    status = error_set(err, "%s is no safetensors file: its header must begin with '{'", file->path);
  if (status == 0) {
    json_error_t reason;
    file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    if (file->header == NULL) status = error_set(err, "%s: its header is not valid: %s", file->path, reason.text);
  }
  free(text);
  file->data_start = 8 + length;
  file->data_size = size - file->data_start;
  return status != 0 ? -1 : safetensors_parse_header(file, err);
}

/* Opens and checks a file. After 0, end with safetensors_close(). */
static inline int safetensors_open(const char *path, SafetensorsFile *file, Error *err) {
  struct stat info;
  memset(file, 0, sizeof *file);
  file->path = strdup(path);
  file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
  int status = 0;
  if (file->fd < 0 || fstat(file->fd, &info) != 0)
    status = error_set(err, "cannot open %s: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    status = error_set(err, "%s is a %s; a safetensors file was expected", path,
                       S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
  if (status != 0 || safetensors_read_header(file, (size_t)info.st_size, err) != 0) {
    safetensors_close(file);
    return -1;
  }
  return 0;
}

/* The tensor's entry, NULL when there is none of that name. */
static inline const SafetensorsTensor *safetensors_find(const SafetensorsFile *file, const char *name) {
  for (size_t i = 0; i < file->count; i++)
    if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
  return NULL;
}

/* The value of a metadata key, NULL when there is none; belongs to the file. */
static inline const char *safetensors_metadata(const SafetensorsFile *file, const char *key) {
  return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

/* Copies a tensor into `out`; it must have exactly this dtype and shape. */
static inline int safetensors_read(const SafetensorsFile *file, const char *name, const char *dtype, int rank,
                                   const size_t *shape, void *out, Error *err) {
  const SafetensorsTensor *tensor = safetensors_find(file, name);
  char expected[256], found[256];
  safetensors_describe(expected, sizeof expected, dtype, rank, shape);
  if (tensor == NULL)
    return error_set(err, "%s has no tensor '%s' of %s among its %zu; is it the checkpoint of another network?",
                     file->path, name, expected, file->count);
  safetensors_describe(found, sizeof found, tensor->dtype, tensor->rank, tensor->shape);
  if (strcmp(found, expected) != 0)
    return error_set(err, "%s: tensor '%s' is %s, expected %s; is it the checkpoint of another network?", file->path,
                     name, found, expected);
  return safetensors_fetch(file, file->data_start + tensor->offset, out, tensor->bytes, err);
}

static inline int safetensors_read_f32(const SafetensorsFile *file, const char *name, int rank, const size_t *shape,
                                       float *out, Error *err) {
  return safetensors_read(file, name, "F32", rank, shape, out, err);
}

static inline int safetensors_compare_names(const void *a, const void *b) {
  return strcmp((*(const SafetensorsTensor *const *)a)->name, (*(const SafetensorsTensor *const *)b)->name);
}

/* Pointers to the tensors in the order of their names; memory for free(). */
static inline const SafetensorsTensor **safetensors_by_name(const SafetensorsTensor *tensors, size_t count) {
  const SafetensorsTensor **sorted = (const SafetensorsTensor **)xmalloc(count * sizeof *sorted);
  for (size_t i = 0; i < count; i++) sorted[i] = &tensors[i];
  qsort(sorted, count, sizeof *sorted, safetensors_compare_names);
  return sorted;
}

/* The checksum of one more tensor of the file. */
static inline int safetensors_sum_tensor(const SafetensorsFile *file, const SafetensorsTensor *tensor,
                                         unsigned char *piece, uLong *sum, Error *err) {
  for (size_t done = 0; done < tensor->bytes;) {
    const size_t left = tensor->bytes - done, size = left < SAFETENSORS_PIECE ? left : (size_t)SAFETENSORS_PIECE;
    if (safetensors_fetch(file, file->data_start + tensor->offset + done, piece, size, err) != 0) return -1;
    *sum = crc32(*sum, piece, (uInt)size);
    done += size;
  }
  return 0;
}

/* Reads all tensors, and compares with the checksum where the file has one: -1 where a byte has changed. */
static inline int safetensors_check(const SafetensorsFile *file, Error *err) {
  const char *expected = safetensors_metadata(file, SAFETENSORS_CHECKSUM);
  char found[16];
  if (expected == NULL) return 0;
  const SafetensorsTensor **sorted = safetensors_by_name(file->tensors, file->count);
  unsigned char *piece = (unsigned char *)xmalloc(SAFETENSORS_PIECE);
  uLong sum = crc32(0, NULL, 0);
  int status = 0;
  for (size_t i = 0; i < file->count && status == 0; i++)
    status = safetensors_sum_tensor(file, sorted[i], piece, &sum, err);
  free(piece);
  free(sorted);
  if (status != 0) return -1;
  snprintf(found, sizeof found, "%08lx", sum);
  if (strcmp(expected, found) == 0) return 0;
  return error_set(err,
                   "%s is damaged: its tensors have the CRC-32 %s, and had %.30s when they were written; use a copy or "
                   "an earlier checkpoint, or, where another program has changed them, take \"%s\" out of the metadata",
                   file->path, found, expected, SAFETENSORS_CHECKSUM);
}

/* ---- writing ---- */

/* Keeps the first failure for safetensors_write(), so that a list of adds needs no checks between them. */
#define SAFETENSORS_FAIL(out, ...)                             \
  do {                                                         \
    if (!(out)->failed) error_set(&(out)->error, __VA_ARGS__); \
    (out)->failed = 1;                                         \
  } while (0)

/* Adds a tensor after those before it. `data` must stay until the write. Where types differ in size, add wide ones
 * first: the format has no padding between tensors, and some readers want each aligned. */
static inline void safetensors_add(SafetensorsWriter *out, const char *name, const char *dtype, int rank,
                                   const size_t *shape, const void *data) {
  SafetensorsTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  unsigned bits = safetensors_dtype_bits(&dtype);
  if (out->header == NULL) out->header = json_object();
  if (bits == 0 || rank < 0 || rank > SAFETENSORS_MAX_RANK ||
      safetensors_byte_count(bits, rank, shape, &tensor.bytes) != 0) {
    SAFETENSORS_FAIL(out, "tensor '%s': no dtype '%s', or a shape that cannot be", name, dtype);
    return;
  }
  if (json_object_get(out->header, name) != NULL || strcmp(name, "__metadata__") == 0) {
    SAFETENSORS_FAIL(out, "tensor '%s': the name is taken", name);
    return;
  }
  json_t *sizes = json_array();
  for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
  json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", sizes, "data_offsets",
                            (json_int_t)out->data_size, (json_int_t)(out->data_size + tensor.bytes));
  if (json_object_set_new(out->header, name, entry) != 0) {
    SAFETENSORS_FAIL(out, "tensor '%s': the name is not UTF-8", name);
    return;
  }
  tensor.data = data;
  tensor.name = json_object_iter_key(json_object_iter_at(out->header, name)); /* the header's own */
  out->tensors = (SafetensorsTensor *)realloc(out->tensors, (out->count + 1) * sizeof tensor);
  if (out->tensors == NULL) die("out of memory");
  out->tensors[out->count++] = tensor;
  out->data_size += tensor.bytes;
}

/* Metadata are strings; a key that is there already gets the new value. */
static inline void safetensors_add_metadata(SafetensorsWriter *out, const char *key, const char *value) {
  if (out->metadata == NULL) out->metadata = json_object();
  if (json_object_set_new(out->metadata, key, json_string(value)) != 0)
    SAFETENSORS_FAIL(out, "metadata '%s': key or value is not UTF-8", key);
}

/* The checksum of the tensors that were added, whose data must be final. */
static inline void safetensors_add_checksum(SafetensorsWriter *out) {
  char text[16];
  uLong sum = crc32(0, NULL, 0);
  const SafetensorsTensor **sorted = safetensors_by_name(out->tensors, out->count);
  for (size_t i = 0; i < out->count; i++)
    for (size_t done = 0; done < sorted[i]->bytes;) { /* crc32() counts by 32 bits */
      const size_t left = sorted[i]->bytes - done, size = left < 1 << 30 ? left : 1 << 30;
      sum = crc32(sum, (const unsigned char *)sorted[i]->data + done, (uInt)size);
      done += size;
    }
  free(sorted);
  snprintf(text, sizeof text, "%08lx", sum);
  safetensors_add_metadata(out, SAFETENSORS_CHECKSUM, text);
}

/* Replaces `path` in one step by a file with all that was added. The writer may be written again elsewhere. */
static inline int safetensors_write(const SafetensorsWriter *out, const char *path, Error *err) {
  if (out->failed) return error_set(err, "cannot write %s: %s", path, out->error.message);
  json_t *root = json_object();
  if (out->metadata != NULL) json_object_set(root, "__metadata__", out->metadata);
  if (out->header != NULL) json_object_update(root, out->header);
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  if (text == NULL) return error_set(err, "cannot write %s: out of memory", path);

  AtomicFile f;
  int status = atomic_file_open(&f, path, err);
  if (status == 0) {
    uint64_t used = strlen(text), length = (used + 7) / 8 * 8; /* padded by spaces: the data begins aligned */
    fwrite(&length, 8, 1, f.stream);
    fprintf(f.stream, "%s%*s", text, (int)(length - used), "");
    for (size_t i = 0; i < out->count; i++)
      if (out->tensors[i].bytes > 0) fwrite(out->tensors[i].data, 1, out->tensors[i].bytes, f.stream);
    status = atomic_file_commit(&f, err);
  }
  free(text);
  return status;
}

static inline void safetensors_writer_free(SafetensorsWriter *out) {
  json_decref(out->metadata);
  json_decref(out->header);
  free(out->tensors);
  memset(out, 0, sizeof *out);
}

#endif /* COMMON_SAFETENSORS_H */

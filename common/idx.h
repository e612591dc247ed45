/* idx.h - the file format of MNIST and Fashion-MNIST, raw or gzipped.
 *
 *     00 00 08 RANK | RANK big-endian 32-bit sizes | the bytes, last index fastest
 *
 * The third byte is the element type; all the data sets in use have 08, unsigned bytes, and nothing else is read here.
 * A file from outside may be anything: memory grows only as bytes arrive, whatever sizes the header declares.
 */
#ifndef COMMON_IDX_H
#define COMMON_IDX_H

#include "common/error.h"

#include <sys/stat.h>
#include <zlib.h>

#include "common/atomic_file.h"

enum { IDX_MAX_RANK = 4, IDX_UBYTE = 0x08 };
#define IDX_MAX_BYTES ((size_t)2 << 30)

typedef struct IdxArray {
  int rank;
  size_t shape[IDX_MAX_RANK];
  size_t count; /* the product of shape */
  unsigned char *data;
} IdxArray;

static inline void idx_free(IdxArray *array) {
  free(array->data);
  memset(array, 0, sizeof *array);
}

/* Reads until `size` bytes are there or the file ends; sets *got. -1 when compressed data is damaged or cut short. */
static inline int idx_fetch(gzFile in, void *to, size_t size, size_t *got, const char *name, Error *err) {
  *got = 0;
  while (*got < size) {
    unsigned piece = size - *got < 1u << 20 ? (unsigned)(size - *got) : 1u << 20;
    int n = gzread(in, (char *)to + *got, piece);
    int status;
    const char *reason = gzerror(in, &status);
    if (n > 0) *got += (size_t)n;
    if (status == Z_ERRNO) return error_set(err, "cannot read %s: %s", name, strerror(errno));
    if (status == Z_BUF_ERROR)
      return error_set(err, "%s is cut short: its compressed data ends early; fetch it again", name);
    if (status != Z_OK && status != Z_STREAM_END)
      return error_set(err, "%s is damaged: %s; fetch it again", name, reason);
    if (n <= 0) break;
  }
  return 0;
}

/* Fills rank, shape and count. */
static inline int idx_read_header(gzFile in, const char *name, IdxArray *out, Error *err) {
  unsigned char magic[4], sizes[4 * IDX_MAX_RANK];
  size_t got;
  if (idx_fetch(in, magic, 4, &got, name, err) != 0) return -1;
  if (got == 0) return error_set(err, "%s is empty; fetch it again", name);
  if (got < 4 || magic[0] != 0 || magic[1] != 0)
    return error_set(err, "%s is not an IDX file, which begins with two zero bytes, a type and a rank: fetch it again",
                     name);
  if (magic[2] != IDX_UBYTE)
    return error_set(err, "%s holds elements of type 0x%02x; only unsigned bytes (type 0x08) are read", name, magic[2]);
  if (magic[3] < 1 || magic[3] > IDX_MAX_RANK)
    return error_set(err, "%s declares %d dimensions; 1 to %d are read", name, magic[3], IDX_MAX_RANK);
  out->rank = magic[3];
  if (idx_fetch(in, sizes, 4 * (size_t)out->rank, &got, name, err) != 0) return -1;
  if (got < 4 * (size_t)out->rank) return error_set(err, "%s is cut short inside its header; fetch it again", name);
  out->count = 1;
  for (int i = 0; i < out->rank; i++) {
    const unsigned char *s = sizes + 4 * i;
    out->shape[i] = (size_t)s[0] << 24 | (size_t)s[1] << 16 | (size_t)s[2] << 8 | s[3];
    out->count *= out->shape[i]; /* at most 2^31 times 2^32: no overflow */
    if (out->count > IDX_MAX_BYTES)
      return error_set(err, "%s declares more than %zu MiB of data; it is damaged, or not a data set for this program",
                       name, IDX_MAX_BYTES >> 20);
  }
  return 0;
}

/* Fills data with out->count bytes, after which the file must end. */
static inline int idx_read_data(gzFile in, const char *name, IdxArray *out, Error *err) {
  size_t capacity = 0, filled = 0, got;
  do {
    capacity = capacity == 0 ? (size_t)1 << 16 : 2 * capacity;
    if (capacity > out->count) capacity = out->count;
    unsigned char *grown = (unsigned char *)realloc(out->data, capacity ? capacity : 1);
    if (grown == NULL) return error_set(err, "%s: out of memory, %zu bytes were asked for", name, capacity);
    out->data = grown;
    if (idx_fetch(in, out->data + filled, capacity - filled, &got, name, err) != 0) return -1;
    filled += got;
  } while (filled == capacity && filled < out->count);
  if (filled < out->count)
    return error_set(err, "%s is cut short: it declares %zu bytes of data and holds %zu; fetch it again", name,
                     out->count, filled);
  /* Reading on also makes zlib verify the checksum, which stands behind the data. */
  unsigned char extra;
  if (idx_fetch(in, &extra, 1, &got, name, err) != 0) return -1;
  if (got != 0)
    return error_set(err, "%s holds more than the %zu bytes of data it declares; fetch it again", name, out->count);
  return 0;
}

/* The array in the open file `in`; `name` is for the messages. */
static inline int idx_read_stream(gzFile in, const char *name, IdxArray *out, Error *err) {
  memset(out, 0, sizeof *out);
  if (idx_read_header(in, name, out, err) == 0 && idx_read_data(in, name, out, err) == 0) return 0;
  idx_free(out);
  return -1;
}

/* Reads `path`, or `path`.gz where there is no `path`. */
static inline int idx_read(const char *path, IdxArray *out, Error *err) {
  char name[PATH_MAX];
  struct stat info;
  memset(out, 0, sizeof *out);
  if ((size_t)snprintf(name, sizeof name, "%s", path) >= sizeof name - 3)
    return error_set(err, "%.100s...: the name is too long", path);
  if (stat(name, &info) != 0) strcat(name, ".gz");
  if (stat(name, &info) != 0)
    return error_set(err, "cannot open %s (nor %s.gz): %s; check the directory, or fetch the file", path, path,
                     strerror(errno));
  if (!S_ISREG(info.st_mode))
    return error_set(err, "%s is a %s; an IDX file was expected", name,
                     S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
  gzFile in = gzopen(name, "rb");
  if (in == NULL) return error_set(err, "cannot open %s: %s", name, strerror(errno));
  int status = idx_read_stream(in, name, out, err);
  gzclose(in);
  return status;
}

/* Writes data, of rank 1 to 4, uncompressed; `path` is replaced in one step. */
static inline int idx_write(const char *path, int rank, const size_t *shape, const unsigned char *data, Error *err) {
  AtomicFile f;
  if (atomic_file_open(&f, path, err) != 0) return -1;
  unsigned char magic[4] = {0, 0, IDX_UBYTE, (unsigned char)rank};
  size_t count = 1;
  fwrite(magic, 1, 4, f.stream);
  for (int i = 0; i < rank; i++) {
    unsigned char size[4] = {(unsigned char)(shape[i] >> 24), (unsigned char)(shape[i] >> 16),
                             (unsigned char)(shape[i] >> 8), (unsigned char)shape[i]};
    fwrite(size, 1, 4, f.stream);
    count *= shape[i];
  }
  if (count > 0) fwrite(data, 1, count, f.stream);
  return atomic_file_commit(&f, err);
}

#endif /* COMMON_IDX_H */

/* onnx.h - ONNX files: reading with every check that a hostile file needs, editing, making, writing.
 *
 *     OnnxModel m;
 *     if (onnx_model_read(&m, "resnet18.onnx", &err) != 0) return -1;   // one sentence names the file and the culprit
 *     const Onnx__GraphProto *g = m.proto->graph;                       // protobuf-c's structures, in a sensible order
 *     for (size_t i = 0; i < g->n_node; i++) {
 *       const Onnx__NodeProto *node = g->node[i];
 *       int64_t group = onnx_attribute_int(node, "group", 1);
 *       ...
 *     }
 *     OnnxTensor w;
 *     int status = onnx_tensor_load(&w, &m, onnx_initializer(&m, "conv1.weight"), &err);   // wherever its bytes are
 *     onnx_tensor_free(&w);
 *     onnx_model_close(&m);
 *
 * check.h says what a caller may rely on after reading. build.h makes and edits models. The messages are those of
 * third_party/onnx/onnx.proto; new fields of later versions are kept when a file is read and written again.
 */
#ifndef COMMON_ONNX_ONNX_H
#define COMMON_ONNX_ONNX_H

#include "common/atomic_file.h"
#include "common/onnx/arena.h"
#include "common/onnx/attribute.h"
#include "common/onnx/check.h"
#include "common/onnx/scan.h"
#include "common/onnx/tensor.h"

/* protobuf's own limit is 2 GiB: a larger model keeps its weights in other files. */
#define ONNX_MAX_FILE ((size_t)INT32_MAX)

typedef struct OnnxModel {
  Onnx__ModelProto *proto;
  char path[PATH_MAX];   /* for messages */
  char folder[PATH_MAX]; /* where external data is */
  OnnxArena arena;       /* owns all that proto points to */
} OnnxModel;

static inline void onnx_model_close(OnnxModel *m) {
  onnx_arena_free(&m->arena);
  memset(m, 0, sizeof *m);
}

static inline void *onnx_allocate(void *arena, size_t size) { return onnx_arena_try((OnnxArena *)arena, size); }
static inline void onnx_release(void *arena, void *memory) { onnx_arena_release((OnnxArena *)arena, memory); }

/* The message of `size` bytes, in the arena; NULL and a sentence where it is none. */
static inline ProtobufCMessage *onnx_unpack(OnnxArena *arena, const ProtobufCMessageDescriptor *kind, const char *path,
                                            const void *bytes, size_t size, Error *err) {
  static const char lfs[] = "version https://git-lfs";
  const unsigned char *begin = (const unsigned char *)bytes;
  const OnnxScan scan = {path, begin};
  if (size == 0) {
    error_set(err, "%s is empty; a file of ONNX was expected", path);
    return NULL;
  }
  if (size >= sizeof lfs && memcmp(bytes, lfs, sizeof lfs - 1) == 0) {
    error_set(err, "%s is only a pointer of Git LFS; run git lfs pull", path);
    return NULL;
  }
  if (onnx_scan_message(&scan, kind, (OnnxBytes){begin, begin + size}, 0, err) != 0) return NULL;
  ProtobufCAllocator allocator = {onnx_allocate, onnx_release, arena};
  arena->limit = ((size_t)256 << 20) + 4 * size;
  ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, size, begin);
  arena->limit = 0;
  if (message == NULL)
    error_set(err, "%s cannot be unpacked: it is damaged, or needs more memory than 256 MiB and four times its size",
              path);
  return message;
}

/* The folder of a file's path: "models" of "models/a.onnx", "." of "a.onnx". */
static inline void onnx_folder(char folder[PATH_MAX], const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL)
    snprintf(folder, PATH_MAX, ".");
  else
    snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static inline int onnx_parse_as(OnnxModel *m, const char *path, const void *bytes, size_t size, const char *folder,
                                Error *err) {
  memset(m, 0, sizeof *m);
  snprintf(m->path, sizeof m->path, "%s", path);
  snprintf(m->folder, sizeof m->folder, "%s", folder);
  m->proto = (Onnx__ModelProto *)onnx_unpack(&m->arena, &onnx__model_proto__descriptor, path, bytes, size, err);
  if (m->proto == NULL || onnx_check_model(m->proto, m->path, err) != 0) {
    onnx_model_close(m);
    return -1;
  }
  return 0;
}

/* Parses and checks a model in memory. `folder` is where its external data would be. After 0, end with
 * onnx_model_close(). */
static inline int onnx_model_parse(OnnxModel *m, const void *bytes, size_t size, const char *folder, Error *err) {
  return onnx_parse_as(m, "the model in memory", bytes, size, folder, err);
}

/* All bytes of a file; *bytes to be freed. */
static inline int onnx_file_read(const char *path, unsigned char **bytes, size_t *size, Error *err) {
  struct stat info;
  *bytes = NULL, *size = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block before it is refused */
  if (file < 0) return error_set(err, "cannot open %s: %s", path, strerror(errno));
  int status = 0;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
    status = error_set(err, "%s is a %s; an ONNX file was expected", path,
                       S_ISDIR(info.st_mode) ? "directory" : "device or pipe");
  else if ((size_t)info.st_size > ONNX_MAX_FILE)
    status = error_set(err, "%s has %lld bytes; an ONNX file has less than 2 GiB, and larger weights beside it", path,
                       (long long)info.st_size);
  *size = status == 0 ? (size_t)info.st_size : 0;
  if (status == 0 && (*bytes = (unsigned char *)malloc(*size + 1)) == NULL)
    status = error_set(err, "%s: no memory for its %zu bytes", path, *size);
  for (size_t done = 0; status == 0 && done < *size;) {
    const ssize_t n = pread(file, *bytes + done, *size - done, (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      status =
          error_set(err, "cannot read %s: %s", path, n < 0 ? strerror(errno) : "it became shorter; fetch it again");
    else
      done += (size_t)n;
  }
  close(file);
  if (status != 0) free(*bytes), *bytes = NULL;
  return status;
}

/* Reads and checks a file. After 0, end with onnx_model_close(). */
static inline int onnx_model_read(OnnxModel *m, const char *path, Error *err) {
  unsigned char *bytes;
  size_t size = 0;
  char folder[PATH_MAX];
  memset(m, 0, sizeof *m);
  if (onnx_file_read(path, &bytes, &size, err) != 0) return -1;
  onnx_folder(folder, path);
  const int status = onnx_parse_as(m, path, bytes, size, folder, err);
  free(bytes);
  return status;
}

/* Checks and writes a model: either the whole file is there afterwards, or what was there before. External data that it
 * names is not copied. */
static inline int onnx_model_write(const Onnx__ModelProto *proto, const char *path, Error *err) {
  Error reason;
  if (onnx_check_model(proto, "the model", &reason) != 0)
    return error_set(err, "cannot write %s, because %s", path, reason.message);
  const size_t size = onnx__model_proto__get_packed_size(proto);
  if (size > ONNX_MAX_FILE)
    return error_set(err, "cannot write %s: the model has %zu bytes, and an ONNX file has less than 2 GiB", path, size);
  AtomicFile file;
  if (atomic_file_open(&file, path, err) != 0) return -1;
  uint8_t *bytes = (uint8_t *)xmalloc(size);
  onnx__model_proto__pack(proto, bytes);
  fwrite(bytes, 1, size, file.stream); /* the commit reports what went wrong */
  free(bytes);
  return atomic_file_commit(&file, err);
}

/* ---- tensors ---- */

/* The initializer of that name, NULL where there is none. */
static inline const Onnx__TensorProto *onnx_initializer(const OnnxModel *m, const char *name) {
  for (size_t i = 0; i < m->proto->graph->n_initializer; i++)
    if (strcmp(m->proto->graph->initializer[i]->name, name) == 0) return m->proto->graph->initializer[i];
  return NULL;
}

/* Loads a tensor of the model. After 0, end with onnx_tensor_free(). */
static inline int onnx_tensor_load(OnnxTensor *t, const OnnxModel *m, const Onnx__TensorProto *p, Error *err) {
  char where[160];
  snprintf(where, sizeof where, "tensor '%.100s'", p->name == NULL ? "" : p->name);
  return onnx_tensor_load_from(t, m->path, m->folder, where, p, err);
}

/* Reads a file that is one TensorProto, as those of ONNX's tests are. After 0, end with onnx_tensor_free(). */
static inline int onnx_tensor_parse(OnnxTensor *t, const char *path, const void *bytes, size_t size, Error *err) {
  OnnxArena arena = {NULL, 0, 0};
  char folder[PATH_MAX];
  memset(t, 0, sizeof *t);
  onnx_folder(folder, path);
  const Onnx__TensorProto *p =
      (const Onnx__TensorProto *)onnx_unpack(&arena, &onnx__tensor_proto__descriptor, path, bytes, size, err);
  const int status = p == NULL ? -1 : onnx_tensor_load_from(t, path, folder, "its tensor", p, err);
  onnx_arena_free(&arena);
  return status;
}

static inline int onnx_tensor_read(OnnxTensor *t, const char *path, Error *err) {
  unsigned char *bytes;
  size_t size = 0;
  memset(t, 0, sizeof *t);
  if (onnx_file_read(path, &bytes, &size, err) != 0) return -1;
  const int status = onnx_tensor_parse(t, path, bytes, size, err);
  free(bytes);
  return status;
}

/* ---- what a model says of itself ---- */

/* The version of the standard operators. */
static inline int64_t onnx_model_opset(const OnnxModel *m) { return onnx_opset(m->proto, ""); }

/* The value of a key of metadata_props, NULL where there is none. */
static inline const char *onnx_metadata(const OnnxModel *m, const char *key) {
  for (size_t i = 0; i < m->proto->n_metadata_props; i++) {
    const Onnx__StringStringEntryProto *entry = m->proto->metadata_props[i];
    if (entry->key != NULL && entry->value != NULL && strcmp(entry->key, key) == 0) return entry->value;
  }
  return NULL;
}

/* The declared shape of a graph input or output: returns its rank, -1 where none is declared. dim -1: unknown, and then
 * symbol[i] is its name, or NULL. */
static inline int onnx_value_shape(const Onnx__ValueInfoProto *value, int64_t dim[ONNX_MAX_RANK],
                                   const char *symbol[ONNX_MAX_RANK]) {
  const Onnx__TypeProto *type = value->type;
  if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || type->tensor_type->shape == NULL)
    return -1;
  const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
  for (size_t i = 0; i < shape->n_dim && i < ONNX_MAX_RANK; i++) {
    const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
    const int known = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    dim[i] = known ? d->dim_value : -1;
    symbol[i] = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? d->dim_param : NULL;
  }
  return (int)shape->n_dim;
}

/* The element type of a graph input or output, 0 where none is declared. */
static inline int onnx_value_type(const Onnx__ValueInfoProto *value) {
  const Onnx__TypeProto *type = value->type;
  return type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? 0 : type->tensor_type->elem_type;
}

/* Whether input i of the graph is one to be given at run time: it has no initializer. */
static inline int onnx_is_input(const OnnxModel *m, size_t i) {
  return onnx_initializer(m, m->proto->graph->input[i]->name) == NULL;
}

#endif /* COMMON_ONNX_ONNX_H */

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
 * The package also has operators as PyTorch wrote them ("pytorch-converted/Conv2d_groups"). Those keep their weights
 * and arguments in the model; the others keep their arguments there:
 *
 *     OnnxNode node;
 *     onnx_testdata_load_node("pytorch-converted/Conv2d_groups", &node);
 *     const OnnxAttribute *group = onnx_attribute(&node, "group");          // NULL: it is the default
 *     node.input[1].floats                                                  // NULL: in the file input_1.pb
 *
 * onnx_testdata_find() names all tests of an operator, so that a test can say that it left none out.
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

#include <dirent.h>
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

/* A file as a whole, and `parse` on its bytes. */
static inline int onnx_read(const char *path, int (*parse)(const void *, size_t, void *, Error *), void *out,
                            Error *err) {
  const size_t most = (size_t)4 << 20; /* the largest of the tests has 2.5 MB */
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
  else if (parse(message, size, out, &reason) != 0)
    status = error_set(err, "%s: %s", path, reason.message);
  fclose(file);
  free(message);
  return status;
}

static inline int onnx_tensor_parse_any(const void *message, size_t size, void *out, Error *err) {
  return onnx_tensor_parse(message, size, (OnnxTensor *)out, err);
}
static inline int onnx_tensor_read(const char *path, OnnxTensor *out, Error *err) {
  memset(out, 0, sizeof *out);
  return onnx_read(path, onnx_tensor_parse_any, out, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A model of one operator */

enum { ONNX_INPUTS = 8, ONNX_ATTRIBUTES = 12, ONNX_INTS = 8, ONNX_NAME = 64 };

typedef struct OnnxAttribute {
  char name[ONNX_NAME], text[ONNX_NAME]; /* text: of an attribute that is a string */
  int ints;
  int64_t value[ONNX_INTS]; /* of one that is a whole number, or several */
} OnnxAttribute;

typedef struct OnnxNode {
  char op[ONNX_NAME];
  int inputs, attributes;
  char input_name[ONNX_INPUTS][ONNX_NAME];
  OnnxTensor input[ONNX_INPUTS]; /* floats NULL: not in the model */
  OnnxAttribute attribute[ONNX_ATTRIBUTES];
} OnnxNode;

static inline void onnx_node_free(OnnxNode *node) {
  for (int i = 0; i < ONNX_INPUTS; i++) onnx_tensor_free(&node->input[i]);
  memset(node, 0, sizeof *node);
}

/* The next field of any message: a number in *value, or bytes in *block. */
static inline int onnx_field(OnnxBytes *in, uint64_t *field, uint64_t *value, OnnxBytes *block, Error *err) {
  uint64_t key;
  *value = 0;
  block->at = in->at, block->left = 0;
  if (onnx_varint(in, &key, err) != 0) return -1;
  *field = key >> 3;
  if ((key & 7) == 0) return onnx_varint(in, value, err);
  if ((key & 7) == 2) return onnx_block(in, block, err);
  const size_t bytes = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;
  if (bytes == 0) return error_set(err, "coding %llu of a field", (unsigned long long)(key & 7));
  if (in->left < bytes) return error_set(err, "a number is cut short");
  in->at += bytes, in->left -= bytes;
  return 0;
}

static inline void onnx_text(char text[ONNX_NAME], OnnxBytes block) {
  const size_t length = block.left < ONNX_NAME ? block.left : ONNX_NAME - 1;
  memcpy(text, block.at, length);
  text[length] = '\0';
}

static inline int onnx_attribute_parse(OnnxBytes in, OnnxAttribute *attribute, Error *err) {
  enum { NAME = 1, ONE = 3, TEXT = 4, SEVERAL = 8 };
  uint64_t field, value;
  OnnxBytes block;
  while (in.left > 0) {
    if (onnx_field(&in, &field, &value, &block, err) != 0) return -1;
    if (field == NAME) onnx_text(attribute->name, block);
    if (field == TEXT) onnx_text(attribute->text, block);
    while (field == ONE || field == SEVERAL) { /* several: one field for each, or packed in one */
      const int packed = block.left > 0;
      if (packed && onnx_varint(&block, &value, err) != 0) return -1;
      if (attribute->ints == ONNX_INTS) return error_set(err, "an attribute of more than %d numbers", ONNX_INTS);
      attribute->value[attribute->ints++] = (int64_t)value;
      if (!packed || block.left == 0) break;
    }
  }
  return 0;
}

static inline int onnx_node_fields(OnnxBytes in, OnnxNode *node, Error *err) {
  enum { INPUT = 1, OP_TYPE = 4, ATTRIBUTE = 5 };
  uint64_t field, value;
  OnnxBytes block;
  while (in.left > 0) {
    if (onnx_field(&in, &field, &value, &block, err) != 0) return -1;
    if (field == OP_TYPE) onnx_text(node->op, block);
    if (field == INPUT && node->inputs == ONNX_INPUTS) return error_set(err, "more than %d inputs", ONNX_INPUTS);
    if (field == INPUT) onnx_text(node->input_name[node->inputs++], block);
    if (field != ATTRIBUTE) continue;
    if (node->attributes == ONNX_ATTRIBUTES) return error_set(err, "more than %d attributes", ONNX_ATTRIBUTES);
    if (onnx_attribute_parse(block, &node->attribute[node->attributes++], err) != 0) return -1;
  }
  return 0;
}

/* A tensor of the model, which is an input of the node if the node names it. */
static inline int onnx_initializer(OnnxBytes tensor, OnnxNode *node, Error *err) {
  enum { NAME = 8 };
  char name[ONNX_NAME] = "";
  uint64_t field, value;
  OnnxBytes in = tensor, block;
  while (in.left > 0) {
    if (onnx_field(&in, &field, &value, &block, err) != 0) return -1;
    if (field == NAME) onnx_text(name, block);
  }
  for (int i = 0; i < node->inputs; i++)
    if (strcmp(name, node->input_name[i]) == 0 && node->input[i].floats == NULL)
      return onnx_tensor_parse(tensor.at, tensor.left, &node->input[i], err);
  return 0;
}

/* A ModelProto whose graph has one node. */
static inline int onnx_node_parse(const void *message, size_t size, void *out, Error *err) {
  enum { GRAPH = 7, NODE = 1, INITIALIZER = 5 };
  OnnxNode *node = (OnnxNode *)out;
  OnnxBytes model = {(const unsigned char *)message, size}, block;
  uint64_t field, value;
  int nodes = 0;
  while (model.left > 0) {
    if (onnx_field(&model, &field, &value, &block, err) != 0) return -1;
    for (int pass = 0; pass < 2 && field == GRAPH; pass++) { /* the node first: it names its inputs */
      OnnxBytes graph = block, part;
      while (graph.left > 0) {
        uint64_t part_field;
        if (onnx_field(&graph, &part_field, &value, &part, err) != 0) return -1;
        if (part_field == NODE && pass == 0 && nodes++ == 0 && onnx_node_fields(part, node, err) != 0) return -1;
        if (part_field == INITIALIZER && pass == 1 && onnx_initializer(part, node, err) != 0) return -1;
      }
    }
  }
  return nodes == 1 ? 0 : error_set(err, "a model of %d operators; one was expected", nodes);
}

static inline const OnnxAttribute *onnx_attribute(const OnnxNode *node, const char *name) {
  for (int i = 0; i < node->attributes; i++)
    if (strcmp(node->attribute[i].name, name) == 0) return &node->attribute[i];
  return NULL;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The package */

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

/* Where operator test `test` is: beside the others, or in the collection before a slash. */
static inline void onnx_testdata_path(const char *test, const char *file, char path[PATH_MAX]) {
  const char *slash = strchr(test, '/');
  if (slash == NULL)
    snprintf(path, PATH_MAX, "%s/test_%s/%s", onnx_testdata_directory(), test, file);
  else
    snprintf(path, PATH_MAX, "%s/../%.*s/test_%s/%s", onnx_testdata_directory(), (int)(slash - test), test, slash + 1,
             file);
}

/* File `name` of operator test `test`; the test fails where it is missing or strange. */
static inline void onnx_testdata_load(const char *test, const char *name, OnnxTensor *out) {
  char path[PATH_MAX], file[128];
  Error err;
  snprintf(file, sizeof file, "test_data_set_0/%s.pb", name);
  onnx_testdata_path(test, file, path);
  if (onnx_tensor_read(path, out, &err) != 0) fail_msg("%s", err.message);
}

/* Its operator; the same. */
static inline void onnx_testdata_load_node(const char *test, OnnxNode *out) {
  char path[PATH_MAX];
  Error err;
  memset(out, 0, sizeof *out);
  onnx_testdata_path(test, "model.onnx", path);
  if (onnx_read(path, onnx_node_parse, out, &err) != 0) fail_msg("%s", err.message);
}

enum { ONNX_TEST = 320 }; /* a directory's name with its collection */

/* Whether a test's model is one operator `op`. */
static inline int onnx_testdata_is(const char *test, const char *op) {
  char path[PATH_MAX];
  OnnxNode node;
  Error err;
  memset(&node, 0, sizeof node);
  onnx_testdata_path(test, "model.onnx", path);
  const int is = onnx_read(path, onnx_node_parse, &node, &err) == 0 && strcmp(node.op, op) == 0;
  onnx_node_free(&node);
  return is;
}

/* Calls found(test, context) for each test of operator `op` in the three collections; returns how many there are. The
 * names of their directories contain the operator's, in any case. */
static inline int onnx_testdata_find(const char *op, void found(const char *test, void *context), void *context) {
  static const char *const collections[] = {NULL, "pytorch-converted", "pytorch-operator"};
  int count = 0;
  for (int i = 0; i < 3; i++) {
    char path[PATH_MAX], test[ONNX_TEST];
    snprintf(path, sizeof path, i > 0 ? "%s/../%s" : "%s", onnx_testdata_directory(), collections[i]);
    DIR *directory = opendir(path);
    if (directory == NULL) continue;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
      if (strncmp(entry->d_name, "test_", 5) != 0 || strcasestr(entry->d_name, op) == NULL) continue;
      snprintf(test, sizeof test, "%s%s%s", i > 0 ? collections[i] : "", i > 0 ? "/" : "", entry->d_name + 5);
      if (!onnx_testdata_is(test, op)) continue;
      found(test, context);
      count++;
    }
    closedir(directory);
  }
  return count;
}

#endif /* COMMON_ONNX_TESTDATA_H */

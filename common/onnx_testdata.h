/* onnx_testdata.h - the tensors of ONNX's operator tests, an oracle from outside: for each operator inputs, and outputs
 * that its makers computed with numpy. The Debian package libonnx-testdata brings them.
 *
 *     onnx_testdata_required();                                  // skips the test where the package is missing
 *     OnnxTestTensor x, y;
 *     onnx_testdata_load("relu", "input_0", &x);                 // node/test_relu/test_data_set_0/input_0.pb
 *     onnx_testdata_load("relu", "output_0", &y);
 *     relu_forward_cpu(mine, x.floats, x.count);
 *     assert_close(mine, y.floats, y.count, ...);
 *     onnx_test_tensor_free(&x);
 *
 * The package also has operators as PyTorch wrote them ("pytorch-converted/Conv2d_groups"). Those keep their weights
 * and arguments in the model; the others keep their arguments there:
 *
 *     OnnxTestNode node;
 *     onnx_testdata_load_node("pytorch-converted/Conv2d_groups", &node);
 *     const OnnxTestAttribute *group = onnx_test_attribute(&node, "group");          // NULL: it is the default
 *     node.input[1].floats                                                  // NULL: in the file input_1.pb
 *
 * onnx_testdata_find() names all tests of an operator, so that a test can say that it left none out.
 *
 * Files and models are read by common/onnx; here their numbers become floats, which is what the tests compare.
 */
#ifndef COMMON_ONNX_TESTDATA_H
#define COMMON_ONNX_TESTDATA_H

#include "common/onnx/onnx.h"
#include "common/test.h"

#include <dirent.h>

typedef struct OnnxTestTensor {
  int rank, type;              /* ONNX_FLOAT, ONNX_INT64 or ONNX_BOOL; rank 0 is one number */
  size_t shape[ONNX_MAX_RANK]; /* the last index runs fastest */
  size_t count;                /* the product of shape */
  float *floats;               /* the elements, whatever their type: the tests' int64 are labels, small numbers */
} OnnxTestTensor;

static inline void onnx_test_tensor_free(OnnxTestTensor *tensor) {
  free(tensor->floats);
  memset(tensor, 0, sizeof *tensor);
}

/* The numbers of `from`, which is freed, as floats. */
static inline int onnx_test_tensor_take(OnnxTestTensor *out, OnnxTensor *from, const char *path, Error *err) {
  memset(out, 0, sizeof *out);
  int status = 0;
  if (from->type != ONNX_FLOAT && from->type != ONNX_INT64 && from->type != ONNX_BOOL)
    status = error_set(err, "%s: elements of type %d; float (1), int64 (7) and bool (9) are read", path, from->type);
  if (status == 0) {
    out->rank = from->rank, out->type = from->type, out->count = from->count;
    for (int i = 0; i < from->rank; i++) out->shape[i] = (size_t)from->dim[i];
    out->floats = (float *)xmalloc(out->count * sizeof *out->floats);
  }
  for (size_t i = 0; i < out->count; i++) {
    if (out->type == ONNX_FLOAT) out->floats[i] = ((const float *)from->data)[i];
    if (out->type == ONNX_INT64) out->floats[i] = (float)((const int64_t *)from->data)[i];
    if (out->type == ONNX_BOOL) out->floats[i] = ((const unsigned char *)from->data)[i] != 0;
  }
  onnx_tensor_free(from);
  return status;
}

static inline int onnx_test_tensor_read(const char *path, OnnxTestTensor *out, Error *err) {
  OnnxTensor tensor;
  memset(out, 0, sizeof *out);
  if (onnx_tensor_read(&tensor, path, err) != 0) return -1;
  return onnx_test_tensor_take(out, &tensor, path, err);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* A model of one operator */

enum { ONNX_TEST_INPUTS = 8, ONNX_TEST_ATTRIBUTES = 12, ONNX_TEST_INTS = 8, ONNX_TEST_NAME = 64 };

typedef struct OnnxTestAttribute {
  char name[ONNX_TEST_NAME], text[ONNX_TEST_NAME]; /* text: of an attribute that is a string */
  int ints;
  int64_t value[ONNX_TEST_INTS]; /* of one that is a whole number, or several */
} OnnxTestAttribute;

typedef struct OnnxTestNode {
  char op[ONNX_TEST_NAME];
  int inputs, attributes;
  OnnxTestTensor input[ONNX_TEST_INPUTS]; /* floats NULL: not in the model */
  OnnxTestAttribute attribute[ONNX_TEST_ATTRIBUTES];
} OnnxTestNode;

static inline void onnx_test_node_free(OnnxTestNode *node) {
  for (int i = 0; i < ONNX_TEST_INPUTS; i++) onnx_test_tensor_free(&node->input[i]);
  memset(node, 0, sizeof *node);
}

static inline int onnx_test_attribute_take(OnnxTestAttribute *out, const Onnx__NodeProto *node,
                                           const Onnx__AttributeProto *from, const char *path, Error *err) {
  snprintf(out->name, sizeof out->name, "%s", from->name);
  onnx_attribute_string(node, from->name, "", out->text, sizeof out->text);
  if (from->n_ints > ONNX_TEST_INTS)
    return error_set(err, "%s: attribute '%s' has more than %d numbers", path, from->name, ONNX_TEST_INTS);
  for (size_t i = 0; i < from->n_ints; i++) out->value[out->ints++] = from->ints[i];
  if (from->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT) out->value[out->ints++] = from->i;
  return 0;
}

static inline int onnx_test_node_take(OnnxTestNode *out, const OnnxModel *m, Error *err) {
  if (m->proto->graph->n_node != 1)
    return error_set(err, "%s: a model of %zu operators; one was expected", m->path, m->proto->graph->n_node);
  const Onnx__NodeProto *node = m->proto->graph->node[0];
  snprintf(out->op, sizeof out->op, "%s", node->op_type);
  if (node->n_input > ONNX_TEST_INPUTS || node->n_attribute > ONNX_TEST_ATTRIBUTES)
    return error_set(err, "%s: %zu inputs and %zu attributes; up to %d and %d are read", m->path, node->n_input,
                     node->n_attribute, ONNX_TEST_INPUTS, ONNX_TEST_ATTRIBUTES);
  for (size_t i = 0; i < node->n_attribute; i++)
    if (onnx_test_attribute_take(&out->attribute[out->attributes++], node, node->attribute[i], m->path, err) != 0)
      return -1;
  for (size_t i = 0; i < node->n_input; i++, out->inputs++) {
    const Onnx__TensorProto *p = onnx_initializer(m, node->input[i]);
    OnnxTensor tensor;
    if (p == NULL) continue;
    if (onnx_tensor_load(&tensor, m, p, err) != 0) return -1;
    if (onnx_test_tensor_take(&out->input[i], &tensor, m->path, err) != 0) return -1;
  }
  return 0;
}

/* A model whose graph has one node. */
static inline int onnx_test_node_read(const char *path, OnnxTestNode *out, Error *err) {
  OnnxModel m;
  memset(out, 0, sizeof *out);
  if (onnx_model_read(&m, path, err) != 0) return -1;
  const int status = onnx_test_node_take(out, &m, err);
  onnx_model_close(&m);
  if (status != 0) onnx_test_node_free(out);
  return status;
}

static inline const OnnxTestAttribute *onnx_test_attribute(const OnnxTestNode *node, const char *name) {
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
static inline void onnx_testdata_load(const char *test, const char *name, OnnxTestTensor *out) {
  char path[PATH_MAX], file[128];
  Error err;
  snprintf(file, sizeof file, "test_data_set_0/%s.pb", name);
  onnx_testdata_path(test, file, path);
  if (onnx_test_tensor_read(path, out, &err) != 0) fail_msg("%s", err.message);
}

/* Its operator; the same. */
static inline void onnx_testdata_load_node(const char *test, OnnxTestNode *out) {
  char path[PATH_MAX];
  Error err;
  onnx_testdata_path(test, "model.onnx", path);
  if (onnx_test_node_read(path, out, &err) != 0) fail_msg("%s", err.message);
}

enum { ONNX_TEST = 320 }; /* a directory's name with its collection */

/* Whether a test's model is one operator `op`. */
static inline int onnx_testdata_is(const char *test, const char *op) {
  char path[PATH_MAX];
  OnnxModel m;
  Error err;
  onnx_testdata_path(test, "model.onnx", path);
  if (onnx_model_read(&m, path, &err) != 0) return 0;
  const int is = m.proto->graph->n_node == 1 && strcmp(m.proto->graph->node[0]->op_type, op) == 0;
  onnx_model_close(&m);
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

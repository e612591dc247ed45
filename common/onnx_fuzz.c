/* onnx_fuzz.c - no bytes can make the reader of ONNX files crash or leak; of an accepted model every tensor of the file
 * can be loaded, all metadata be read, and the model be packed, read again and found the same. */
#include "common/fuzz_file.h"

#include "common/onnx/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What is inside the file can be loaded; other files are not there. */
static void load(const OnnxModel *m, const Onnx__TensorProto *p, size_t size) {
  OnnxTensor t;
  Error err = {0};
  const int inside = p->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL && p->data_type != ONNX_STRING;
  if (onnx_tensor_load(&t, m, p, &err) != 0) {
    if ((inside) || err.message[0] == '\0' || t.data != NULL) abort();
    return;
  }
  /* packed numbers of 1 byte in the file have up to 8 in memory */
  if (t.bytes > 8 * size || t.count * onnx_type_size(t.type) != t.bytes) abort();
  uint8_t sum = 0;
  for (size_t i = 0; i < t.bytes; i++) sum = (uint8_t)(sum + ((const uint8_t *)t.data)[i]);
  if (sum == 1) fflush(stdout); /* so that the loop stays */
  onnx_tensor_free(&t);
}

static void look(const OnnxModel *m, const Onnx__GraphProto *g, size_t size) {
  char text[128];
  size_t count;
  for (size_t i = 0; i < g->n_initializer; i++) load(m, g->initializer[i], size);
  for (size_t i = 0; i < g->n_input; i++) {
    int64_t dim[ONNX_MAX_RANK];
    const char *symbol[ONNX_MAX_RANK];
    if (onnx_value_shape(g->input[i], dim, symbol) > ONNX_MAX_RANK) abort();
    onnx_value_type(g->input[i]);
    if (g == m->proto->graph) onnx_is_input(m, i);
  }
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
      const char *name = g->node[i]->attribute[k]->name;
      onnx_attribute_int(g->node[i], name, 0);
      onnx_attribute_float(g->node[i], name, 0);
      onnx_attribute_ints(g->node[i], name, &count);
      onnx_attribute_string(g->node[i], name, "", text, sizeof text);
      if (onnx_attribute_tensor(g->node[i], name)) load(m, onnx_attribute_tensor(g->node[i], name), size);
      if (onnx_attribute_graph(g->node[i], name)) look(m, onnx_attribute_graph(g->node[i], name), size);
    }
}

static void describe(const OnnxModel *m) {
  OnnxPreprocessing p;
  json_t *names;
  Error err = {0};
  if (onnx_get_preprocessing(m, &p, &err) < 0 && err.message[0] == '\0') abort();
  if (onnx_get_class_names(m, 0, &names, &err) == 0) json_decref(names);
  onnx_metadata(m, "key");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  OnnxModel m, again;
  OnnxTensor t;
  Error err = {0};
  if (onnx_tensor_parse(&t, "tensor.pb", bytes, size, &err) == 0) onnx_tensor_free(&t);
  if (onnx_model_read(&m, fuzz_file(bytes, size), &err) != 0) {
    if (err.message[0] == '\0' || m.proto != NULL || m.arena.blocks != NULL) abort();
    return 0;
  }
  snprintf(m.folder, sizeof m.folder, "/nowhere"); /* no file of this machine is opened */
  look(&m, m.proto->graph, size);
  describe(&m);
  const size_t packed = onnx__model_proto__get_packed_size(m.proto);
  uint8_t *copy = (uint8_t *)xmalloc(packed);
  if (onnx__model_proto__pack(m.proto, copy) != packed) abort();
  if (onnx_model_parse(&again, copy, packed, ".", &err) != 0) abort();
  if (onnx__model_proto__get_packed_size(again.proto) != packed) abort();
  onnx_model_close(&again);
  free(copy);
  onnx_model_close(&m);
  return 0;
}

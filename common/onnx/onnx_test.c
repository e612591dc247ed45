/* Reading and writing ONNX files: what is right is read back; what is wrong is refused in a sentence that names it. */
#include "common/onnx/test_model.h"

static void a_model_is_read_back(void **state) {
  (void)state;
  OnnxModel m, again;
  OnnxTensor t;
  Error err;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/model.onnx", test_tmpdir());
  test_model_create(&m);
  if (onnx_model_write(m.proto, path, &err) != 0) fail_msg("%s", err.message);
  if (onnx_model_read(&again, path, &err) != 0) fail_msg("%s", err.message);
  const Onnx__GraphProto *g = again.proto->graph;
  assert_true(g->n_node == 3 && g->n_initializer == 2 && onnx_model_opset(&again) == 17);
  assert_string_equal(onnx_metadata(&again, "key"), "value");
  assert_null(onnx_metadata(&again, "kez"));
  assert_string_equal(again.folder, test_tmpdir());
  assert_true(onnx_attribute_int(g->node[0], "transB", 0) == 1 && onnx_attribute_int(g->node[0], "transA", 5) == 5);
  assert_true(onnx_attribute_float(g->node[0], "alpha", 0) == 1 && onnx_attribute_float(g->node[0], "beta", 2) == 2);
  assert_true(onnx_attribute_int(g->node[0], "alpha", 9) == 9); /* a float is not an int */
  assert_int_equal(onnx_tensor_load(&t, &again, onnx_initializer(&again, "w"), &err), 0);
  assert_true(t.rank == 2 && t.dim[0] == 3 && t.dim[1] == 2 && t.count == 6 && t.bytes == 24);
  assert_true(((float *)t.data)[5] == -6);
  onnx_tensor_free(&t);
  assert_int_equal(onnx_tensor_load(&t, &again, onnx_attribute_tensor(g->node[1], "value"), &err), 0);
  assert_true(t.type == ONNX_INT64 && ((int64_t *)t.data)[1] == -8);
  onnx_tensor_free(&t);
  int64_t dim[ONNX_MAX_RANK];
  const char *symbol[ONNX_MAX_RANK];
  assert_int_equal(onnx_value_shape(g->input[0], dim, symbol), 2);
  assert_true(dim[0] == -1 && strcmp(symbol[0], "N") == 0 && dim[1] == 2 && symbol[1] == NULL);
  assert_true(onnx_value_type(g->input[0]) == ONNX_FLOAT && onnx_is_input(&again, 0));
  onnx_model_close(&again);
  onnx_model_close(&m);
}

/* A node before another one, an input in the middle: lists that protobuf-c has made grow, too. */
static void a_model_is_edited(void **state) {
  (void)state;
  OnnxModel m, again;
  Error err;
  size_t size;
  test_model_create(&m);
  uint8_t *bytes = test_model_pack(&m, &size);
  onnx_model_close(&m);
  assert_int_equal(onnx_model_parse(&again, bytes, size, ".", &err), 0);
  free(bytes);
  for (int i = 0; i < 20; i++) { /* from the front: the last one is the first node, and nothing is read too early */
    Onnx__NodeProto *node = onnx_insert_node(&again, 0, "Relu", "before");
    onnx_add_node_input(&again, node, "x");
    onnx_add_node_output(&again, node, onnx_text(&again, "r%d", i));
    onnx_set_int(&again, node, "a", i);
    onnx_set_int(&again, node, "a", -i); /* replaced */
  }
  onnx_set_metadata(&again, "key", "other");
  onnx_set_opset(&again, "ai.onnx", 18);
  onnx_set_opset(&again, "com.example", 1);
  if (test_model_reads(&again, &err) != 0) fail_msg("%s", err.message);
  assert_true(again.proto->graph->n_node == 23 && onnx_attribute_int(again.proto->graph->node[0], "a", 0) == -19);
  assert_true(again.proto->graph->node[0]->n_attribute == 1 && again.proto->n_opset_import == 2);
  assert_true(onnx_model_opset(&again) == 18 && again.proto->n_metadata_props == 1);
  assert_string_equal(again.proto->graph->node[20]->name, "gemm");
  onnx_model_close(&again);
}

/* ---- what is wrong: each case spoils the model of test_model.h ---- */

typedef struct Case {
  const char *says;
  void (*spoil)(OnnxModel *m);
} Case;

static Onnx__GraphProto *graph(OnnxModel *m) { return m->proto->graph; }
static void no_graph(OnnxModel *m) { m->proto->graph = NULL; }
static void old_ir(OnnxModel *m) { m->proto->ir_version = 2; }
static void new_ir(OnnxModel *m) { m->proto->ir_version = INT64_MAX; }
static void no_opset(OnnxModel *m) { m->proto->n_opset_import = 0; }
static void bad_opset(OnnxModel *m) { m->proto->opset_import[0]->version = INT64_MIN; }
static void two_opsets(OnnxModel *m) {
  Onnx__OperatorSetIdProto *set = ONNX_NEW(m, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__descriptor);
  set->domain = onnx_copy_text(m, "ai.onnx");
  set->version = 9, set->has_version = 1;
  ONNX_APPEND(m, Onnx__OperatorSetIdProto, m->proto->opset_import, m->proto->n_opset_import, set);
}
static void foreign_domain(OnnxModel *m) { graph(m)->node[2]->domain = onnx_copy_text(m, "com.nobody"); }
static void no_operator(OnnxModel *m) { graph(m)->node[2]->op_type = onnx_copy_text(m, ""); }
static void no_output(OnnxModel *m) { graph(m)->node[2]->n_output = 0; }
static void no_graph_output(OnnxModel *m) { graph(m)->n_output = 0; }
static void unknown_output(OnnxModel *m) { graph(m)->output[0]->name = onnx_copy_text(m, "z"); }
static void unknown_input(OnnxModel *m) { graph(m)->node[2]->input[0] = onnx_copy_text(m, "nothing"); }
static void own_input(OnnxModel *m) { graph(m)->node[2]->input[0] = onnx_copy_text(m, "y"); }
static void cycle(OnnxModel *m) { graph(m)->node[0]->input[0] = onnx_copy_text(m, "y"); }
static void wrong_order(OnnxModel *m) {
  Onnx__NodeProto *first = graph(m)->node[0];
  graph(m)->node[0] = graph(m)->node[2];
  graph(m)->node[2] = first;
}
static void defined_twice(OnnxModel *m) { graph(m)->node[0]->output[0] = onnx_copy_text(m, "y"); }
static void tensor_twice(OnnxModel *m) { graph(m)->initializer[1]->name = onnx_copy_text(m, "w"); }
static void unnamed_tensor(OnnxModel *m) { graph(m)->initializer[1]->name = NULL; }
static void strange_name(OnnxModel *m) { graph(m)->initializer[1]->name = onnx_copy_text(m, "b\033[2J"); }
static void strange_producer(OnnxModel *m) { m->proto->producer_version = onnx_copy_text(m, "1\n2"); }
static void strange_symbol(OnnxModel *m) {
  graph(m)->input[0]->type->tensor_type->shape->dim[0]->dim_param = onnx_copy_text(m, "N\x7f");
}
static void unnamed_input(OnnxModel *m) { graph(m)->input[0]->name = onnx_copy_text(m, ""); }
static void untyped_input(OnnxModel *m) { graph(m)->input[0]->type = NULL; }
static void strange_type(OnnxModel *m) { graph(m)->input[0]->type->tensor_type->elem_type = 99; }
static void negative_size(OnnxModel *m) { graph(m)->input[0]->type->tensor_type->shape->dim[1]->dim_value = -3; }
static void huge_size(OnnxModel *m) { graph(m)->input[0]->type->tensor_type->shape->dim[1]->dim_value = INT64_MAX; }
static void tensor_type(OnnxModel *m) { graph(m)->initializer[0]->data_type = 77; }
static void tensor_2_63(OnnxModel *m) { graph(m)->initializer[0]->dims[0] = INT64_MIN; }
static void tensor_product(OnnxModel *m) {
  graph(m)->initializer[0]->dims[0] = INT64_C(1) << 32;
  graph(m)->initializer[0]->dims[1] = INT64_C(1) << 31;
}
static void tensor_bytes(OnnxModel *m) { /* the elements can be counted, their bytes cannot */
  graph(m)->initializer[0]->dims[0] = INT64_C(1) << 31;
  graph(m)->initializer[0]->dims[1] = INT64_C(1) << 31;
}
static void tensor_empty_and_huge(OnnxModel *m) {
  static int64_t dim[3] = {0, INT64_C(1) << 40, INT64_C(1) << 40};
  graph(m)->initializer[0]->dims = dim;
  graph(m)->initializer[0]->n_dims = 3;
}
static void tensor_rank(OnnxModel *m) {
  static int64_t dim[9] = {1, 1, 1, 1, 1, 1, 1, 1, 6};
  graph(m)->initializer[0]->dims = dim;
  graph(m)->initializer[0]->n_dims = 9;
}
static void tensor_short(OnnxModel *m) { graph(m)->initializer[0]->raw_data.len--; }
static void tensor_nowhere(OnnxModel *m) { graph(m)->initializer[0]->has_raw_data = 0; }
static void tensor_two_places(OnnxModel *m) {
  static float one = 1;
  graph(m)->initializer[0]->float_data = &one;
  graph(m)->initializer[0]->n_float_data = 1;
}
static void tensor_wrong_field(OnnxModel *m) {
  static int64_t six[6];
  tensor_nowhere(m);
  graph(m)->initializer[0]->int64_data = six;
  graph(m)->initializer[0]->n_int64_data = 6;
}
static void tensor_too_large_number(OnnxModel *m) {
  static int32_t six[6] = {0, 0, 128, 0, 0, 0};
  tensor_nowhere(m);
  graph(m)->initializer[0]->data_type = ONNX_INT8;
  graph(m)->initializer[0]->int32_data = six;
  graph(m)->initializer[0]->n_int32_data = 6;
}
static void tensor_segment(OnnxModel *m) {
  graph(m)->initializer[0]->segment = ONNX_NEW(m, Onnx__TensorProto__Segment, onnx__tensor_proto__segment__descriptor);
}
static void sparse(OnnxModel *m) {
  Onnx__SparseTensorProto *t = ONNX_NEW(m, Onnx__SparseTensorProto, onnx__sparse_tensor_proto__descriptor);
  ONNX_APPEND(m, Onnx__SparseTensorProto, graph(m)->sparse_initializer, graph(m)->n_sparse_initializer, t);
}
static void functions(OnnxModel *m) {
  Onnx__FunctionProto *f = ONNX_NEW(m, Onnx__FunctionProto, onnx__function_proto__descriptor);
  ONNX_APPEND(m, Onnx__FunctionProto, m->proto->functions, m->proto->n_functions, f);
}
static void attribute_twice(OnnxModel *m) { graph(m)->node[0]->attribute[1]->name = onnx_copy_text(m, "transB"); }
static void attribute_unnamed(OnnxModel *m) { graph(m)->node[0]->attribute[0]->name = NULL; }
static void attribute_untyped(OnnxModel *m) { graph(m)->node[0]->attribute[0]->has_type = 0; }
static void attribute_other(OnnxModel *m) {
  graph(m)->node[0]->attribute[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
}
static void attribute_empty(OnnxModel *m) { graph(m)->node[1]->attribute[0]->t = NULL; }
static void attribute_reference(OnnxModel *m) {
  graph(m)->node[0]->attribute[0]->ref_attr_name = onnx_copy_text(m, "q");
}
static void attribute_tensor(OnnxModel *m) { graph(m)->node[1]->attribute[0]->t->dims[0] = 3; }

/* An If whose body is this graph. */
static Onnx__GraphProto *body(OnnxModel *m, const char *reads, const char *writes) {
  Onnx__GraphProto *g = ONNX_NEW(m, Onnx__GraphProto, onnx__graph_proto__descriptor), *outer = graph(m);
  m->proto->graph = g; /* for the builder */
  Onnx__NodeProto *node = onnx_add_node(m, "Relu", "inner");
  onnx_add_node_input(m, node, reads);
  onnx_add_node_output(m, node, writes);
  onnx_add_output(m, writes, ONNX_FLOAT, -1, NULL);
  m->proto->graph = outer;
  return g;
}
static void body_of(OnnxModel *m, Onnx__GraphProto *g, size_t node) {
  onnx_set_attribute(m, graph(m)->node[node], "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = g;
}
static void body_reads_later(OnnxModel *m) { body_of(m, body(m, "h", "i"), 0); }
static void body_reads_nothing(OnnxModel *m) { body_of(m, body(m, "q", "i"), 2); }
static void bodies_too_deep(OnnxModel *m) {
  Onnx__GraphProto *g = body(m, "x", "i");
  for (int i = 0; i < 12; i++) {
    Onnx__GraphProto *outer = body(m, "x", "i");
    onnx_set_attribute(m, outer->node[0], "body", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = g;
    g = outer;
  }
  body_of(m, g, 0);
}

static Onnx__TensorProto *external(OnnxModel *m, const char *location, const char *offset, const char *length) {
  static const char *const keys[3] = {"location", "offset", "length"};
  const char *values[3] = {location, offset, length};
  Onnx__TensorProto *t = graph(m)->initializer[0];
  t->has_raw_data = 0;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL, t->has_data_location = 1;
  for (int i = 0; i < 3; i++) {
    if (values[i] == NULL) continue;
    Onnx__StringStringEntryProto *entry =
        ONNX_NEW(m, Onnx__StringStringEntryProto, onnx__string_string_entry_proto__descriptor);
    entry->key = onnx_copy_text(m, keys[i]);
    entry->value = onnx_copy_text(m, values[i]);
    ONNX_APPEND(m, Onnx__StringStringEntryProto, t->external_data, t->n_external_data, entry);
  }
  return t;
}
static void external_nowhere(OnnxModel *m) { external(m, NULL, "0", NULL); }
static void external_above(OnnxModel *m) { external(m, "weights/../../etc/passwd", NULL, NULL); }
static void external_absolute(OnnxModel *m) { external(m, "/etc/passwd", NULL, NULL); }
static void external_negative(OnnxModel *m) { external(m, "w.bin", "-1", NULL); }
static void external_2_63(OnnxModel *m) { external(m, "w.bin", "9223372036854775808", NULL); }
static void external_length(OnnxModel *m) { external(m, "w.bin", "0", "23"); }
static void external_and_raw(OnnxModel *m) { external(m, "w.bin", NULL, NULL)->has_raw_data = 1; }

static const Case cases[] = {
    {"the model in memory has no graph", no_graph},
    {"has version 2 of the format (ir_version); 3 to 13 are read", old_ir},
    {"has version 9223372036854775807 of the format", new_ir},
    {"declares no version of operators", no_opset},
    {"declares version -9223372036854775808 of the operators of domain ''", bad_opset},
    {"declares two versions of the operators of domain ''", two_opsets},
    {"node 'relu' (Relu) is of the domain 'com.nobody', for which the file declares no version", foreign_domain},
    {"node 'relu' (no operator) names no operator", no_operator},
    {"node 'relu' (Relu) has no output", no_output},
    {"the graph has no output", no_graph_output},
    {"the list of graph outputs reads 'z', which no graph input, initializer or node defines", unknown_output},
    {"node 'relu' (Relu) reads 'nothing', which no graph input, initializer or node defines", unknown_input},
    {"node 'relu' (Relu) and node 'relu' (Relu) need each other's results: the graph has a cycle through 'y'",
     own_input},
    {"node 'gemm' (Gemm) and node 'relu' (Relu) need each other's results: the graph has a cycle through 'y'", cycle},
    {"node 'relu' (Relu) reads 'h' before node 'gemm' (Gemm) computes it", wrong_order},
    {"the name 'y' is defined twice: as the output of a node and as the output of a node", defined_twice},
    {"the name 'w' is defined twice: as an initializer and as an initializer", tensor_twice},
    {"initializer 1 has no name", unnamed_tensor},
    {"initializer 1 has a name with the control character 0x1b in it", strange_name},
    {"its producer has a name with the control character 0x0a in it", strange_producer},
    {"a dimension has a name with the control character 0x7f in it", strange_symbol},
    {"graph input 0 has no name", unnamed_input},
    {"graph input 'x' is not declared as a tensor", untyped_input},
    {"graph input 'x' has the unknown element type 99", strange_type},
    {"graph input 'x' has the size -3 in dimension 1", negative_size},
    {"graph input 'x' has sizes whose product is not a size in bytes below 2^63", huge_size},
    {"initializer 'w' has the unknown element type 77", tensor_type},
    {"initializer 'w' of float32 (-9223372036854775808, 2) is impossible", tensor_2_63},
    {"initializer 'w' of float32 (4294967296, 2147483648) is impossible", tensor_product},
    {"initializer 'w' of float32 (2147483648, 2147483648) is impossible", tensor_bytes},
    {"initializer 'w' of float32 (0, 1099511627776, 1099511627776) is impossible", tensor_empty_and_huge},
    {"initializer 'w' has 9 dimensions; up to 8 are read", tensor_rank},
    {"initializer 'w' of float32 (3, 2) needs 24 bytes, its raw_data has 23", tensor_short},
    {"initializer 'w' of float32 (3, 2) holds 0 numbers in float_data, expected 6 x 1", tensor_nowhere},
    {"initializer 'w' has its data in two places", tensor_two_places},
    {"initializer 'w' of float32 (3, 2) holds int64_data, expected float_data or raw_data", tensor_wrong_field},
    {"initializer 'w' of int8 (3, 2) holds 128 in int32_data, which does not fit its type", tensor_too_large_number},
    {"initializer 'w' is only a segment of a tensor", tensor_segment},
    {"the graph has sparse initializers", sparse},
    {"defines functions of its own", functions},
    {"node 'gemm' (Gemm) has the attribute 'transB' twice", attribute_twice},
    {"an attribute of node 'gemm' (Gemm) has no name", attribute_unnamed},
    {"attribute 'transB' of node 'gemm' (Gemm) has the type 0; 1 (float) to 10 (graphs) are read", attribute_untyped},
    {"attribute 'transB' of node 'gemm' (Gemm) holds a value of another type than the declared 1", attribute_other},
    {"attribute 'value' of node 'constant' (Constant) is empty; a tensor was expected", attribute_empty},
    {"attribute 'transB' of node 'gemm' (Gemm) refers to an attribute of a function", attribute_reference},
    {"attribute 'value' of node 'constant' (Constant) of int64 (3) needs 24 bytes, its raw_data has 16",
     attribute_tensor},
    {"node 'inner' (Relu) reads 'q', which no graph input, initializer or node defines", body_reads_nothing},
    {"bodies of nodes are nested deeper than 8", bodies_too_deep},
    {"initializer 'w' has external data without a location", external_nowhere},
    {"initializer 'w' has its data in 'weights/../../etc/passwd'; only a file in the model's own folder",
     external_above},
    {"initializer 'w' has its data in '/etc/passwd'; only a file in the model's own folder", external_absolute},
    {"initializer 'w' has external data of offset '-1'; a whole number", external_negative},
    {"initializer 'w' has external data of offset '9223372036854775808'; a whole number", external_2_63},
    {"initializer 'w' of float32 (3, 2) needs 24 bytes, its external data declares 23", external_length},
    {"initializer 'w' has its data in two places", external_and_raw},
};

static void what_is_wrong_is_named(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    OnnxModel m;
    Error err = {0};
    test_model_create(&m);
    cases[i].spoil(&m);
    if (test_model_reads(&m, &err) == 0) fail_msg("case %zu is accepted: %s", i, cases[i].says);
    if (strstr(err.message, cases[i].says) == NULL)
      fail_msg("case %zu: %s\nexpected: %s", i, err.message, cases[i].says);
    if (cases[i].spoil != no_graph && onnx_model_write(m.proto, "/nowhere/model.onnx", &err) == 0) fail();
    onnx_model_close(&m);
  }
}

/* A body may read what is ready where its node stands, and nothing later. Node 0 itself makes h: a cycle. */
static void bodies_see_what_is_ready(void **state) {
  (void)state;
  OnnxModel m;
  Error err;
  test_model_create(&m);
  body_of(&m, body(&m, "h", "i"), 2);
  if (test_model_reads(&m, &err) != 0) fail_msg("%s", err.message);
  onnx_model_close(&m);
  test_model_create(&m);
  body_reads_later(&m);
  assert_int_equal(test_model_reads(&m, &err), -1);
  assert_non_null(strstr(err.message, "node 'inner' (Relu) and node 'gemm' (Gemm) need each other's results"));
  onnx_model_close(&m);
}

/* ---- bytes ---- */

static void refused_bytes(const char *bytes, size_t size, const char *says) {
  OnnxModel m;
  Error err = {0};
  assert_int_equal(onnx_model_parse(&m, bytes, size, ".", &err), -1);
  if (strstr(err.message, says) == NULL) fail_msg("%s\nexpected: %s", err.message, says);
}

static void damaged_bytes_are_refused(void **state) {
  (void)state;
  refused_bytes("", 0, "the model in memory is empty");
  refused_bytes("version https://git-lfs.github.com/spec/v1\n", 43, "is only a pointer of Git LFS");
  refused_bytes("<html>", 6, "is no ONNX file, or damaged: byte 0 begins no field of a ModelProto");
  refused_bytes("\x08", 1, "a number of its ModelProto.ir_version at byte 1 has no end");
  refused_bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "is longer than 10 bytes");
  refused_bytes("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
                "its ModelProto.graph at byte 11 declares 18446744073709551615 bytes, 0 are left");
  refused_bytes("\x3a\x02\x0a\x7f", 4, "its GraphProto.node at byte 4 declares 127 bytes, 0 are left");
  refused_bytes("\x0a\x01x", 3, "its ModelProto.ir_version at byte 0 has coding 2, expected 0");
  refused_bytes(
      "\x12\x03"
      "a\0b",
      5, "its ModelProto.producer_name at byte 0 is a text with a zero byte in it");
  refused_bytes("\x3a\x02\x0a\0\x3a\x02\x0a\0", 8, "its ModelProto.graph is there a second time at byte 4");
}

/* A type of a sequence of a sequence of ...: 70 messages inside each other. */
static void deep_messages_are_refused(void **state) {
  (void)state;
  unsigned char bytes[1024];
  size_t size = 0;
  for (int i = 0; i < 70; i++) { /* inside out: TypeProto.sequence_type, Sequence.elem_type */
    const unsigned char tag = i % 2 == 0 ? 0x0a : 0x22;
    const size_t head = size < 128 ? 2 : 3;
    memmove(bytes + head, bytes, size);
    bytes[0] = tag;
    bytes[1] = (unsigned char)(size < 128 ? size : (size & 0x7f) | 0x80);
    if (head == 3) bytes[2] = (unsigned char)(size >> 7);
    size += head;
  }
  unsigned char model[2048];
  size_t at = 0;
  const size_t type = size, value = type + (type < 128 ? 2 : 3), graph_size = value + (value < 128 ? 2 : 3);
  const struct {
    unsigned char tag;
    size_t size;
  } heads[] = {{0x3a, graph_size}, {0x5a, value}, {0x12, type}};
  for (int i = 0; i < 3; i++) {
    model[at++] = heads[i].tag;
    if (heads[i].size >= 128) model[at++] = (unsigned char)((heads[i].size & 0x7f) | 0x80);
    model[at++] = (unsigned char)(heads[i].size >= 128 ? heads[i].size >> 7 : heads[i].size);
  }
  memcpy(model + at, bytes, size);
  refused_bytes((const char *)model, at + size, "has messages nested deeper than 64 levels");
}

/* Many empty nodes: 2 bytes each in the file, and a hundred times as much in memory. */
static void memory_is_limited(void **state) {
  (void)state;
  const size_t nodes = 3000000, size = 2 * nodes;
  unsigned char *bytes = (unsigned char *)xcalloc(size + 8, 1);
  size_t at = 0;
  bytes[at++] = 0x3a;
  for (size_t left = size; left > 0; left >>= 7)
    bytes[at++] = (unsigned char)((left & 0x7f) | (left >= 128 ? 0x80 : 0));
  for (size_t i = 0; i < nodes; i++) bytes[at + 2 * i] = 0x0a;
  refused_bytes((const char *)bytes, at + size, "needs more memory than 256 MiB and four times its size");
  free(bytes);
}

/* Cut anywhere, or with any byte changed, it is read or refused, and nothing else. */
static void every_cut_and_every_byte(void **state) {
  (void)state;
  OnnxModel m, again;
  Error err;
  size_t size;
  test_model_create(&m);
  uint8_t *bytes = test_model_pack(&m, &size);
  for (size_t cut = 0; cut < size; cut++) {
    uint8_t *part = (uint8_t *)xmalloc(cut); /* exactly as long, for AddressSanitizer */
    memcpy(part, bytes, cut);
    if (onnx_model_parse(&again, part, cut, ".", &err) == 0) onnx_model_close(&again);
    free(part);
  }
  for (size_t i = 0; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      if (onnx_model_parse(&again, bytes, size, ".", &err) == 0) onnx_model_close(&again);
      bytes[i] ^= (uint8_t)(1 << bit);
    }
  free(bytes);
  onnx_model_close(&m);
}

/* ---- files ---- */

static void read_refused(const char *path, const char *says) {
  OnnxModel m;
  Error err = {0};
  assert_int_equal(onnx_model_read(&m, path, &err), -1);
  if (strstr(err.message, says) == NULL) fail_msg("%s\nexpected: %s", err.message, says);
}

static void what_is_no_file_is_refused(void **state) {
  (void)state;
  read_refused("no/such/model.onnx", "cannot open no/such/model.onnx");
  read_refused(test_tmpdir(), "is a directory; an ONNX file was expected");
  read_refused("/dev/zero", "/dev/zero is a device or pipe");
}

static void external_refused(const OnnxModel *m, const char *says) {
  OnnxTensor t;
  Error err = {0};
  assert_int_equal(onnx_tensor_load(&t, m, m->proto->graph->initializer[0], &err), -1);
  if (strstr(err.message, says) == NULL) fail_msg("%s\nexpected: %s", err.message, says);
}

static void at_location(OnnxModel *m, const char *location, const char *offset) {
  onnx_model_close(m);
  test_model_create(m);
  external(m, location, offset, "24");
  snprintf(m->folder, sizeof m->folder, "%s/model", test_tmpdir());
}

static void external_data_stays_in_the_folder(void **state) {
  (void)state;
  OnnxModel m;
  OnnxTensor t;
  Error err;
  char path[PATH_MAX];
  static const float numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  static const char *const folders[] = {"model", "model/parts"};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", test_tmpdir(), folders[i]);
    mkdir(path, 0777);
  }
  static const char *const files[] = {"model/w.bin", "model/parts/w.bin", "outside.bin"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", test_tmpdir(), files[i]);
    FILE *file = fopen(path, "wb");
    assert_true(file != NULL && fwrite(numbers, sizeof numbers, 1, file) == 1 && fclose(file) == 0);
  }
  snprintf(path, sizeof path, "%s/model/link.bin", test_tmpdir());
  (void)!symlink("../outside.bin", path);
  snprintf(path, sizeof path, "%s/model/up", test_tmpdir());
  (void)!symlink("..", path);
  test_model_create(&m);
  at_location(&m, "parts/w.bin", "8");
  if (onnx_tensor_load(&t, &m, m.proto->graph->initializer[0], &err) != 0) fail_msg("%s", err.message);
  assert_true(t.count == 6 && ((float *)t.data)[0] == 2 && ((float *)t.data)[5] == 7);
  onnx_tensor_free(&t);
  at_location(&m, "w.bin", "12");
  external_refused(&m, "tensor 'w' needs 24 bytes at byte 12 of 'w.bin', which has 32");
  at_location(&m, "w.bin", "9223372036854775807");
  external_refused(&m, "tensor 'w' needs 24 bytes at byte 9223372036854775807 of 'w.bin', which has 32");
  at_location(&m, "link.bin", "0");
  external_refused(&m, "'link.bin', which is a link or behind one");
  at_location(&m, "up/outside.bin", "0");
  external_refused(&m, "'up/outside.bin', which ");
  at_location(&m, "../outside.bin", "0");
  external_refused(&m, "only a file in the model's own folder");
  at_location(&m, "parts", "0");
  external_refused(&m, "'parts', which is not a plain file");
  at_location(&m, "missing.bin", "0");
  external_refused(&m, "'missing.bin', which cannot be opened: No such file or directory");
  onnx_model_close(&m);
}

/* Every type in the field of its own. */
static void typed_data_is_read(void **state) {
  (void)state;
  static int32_t small[2] = {-3, 7};
  static int64_t large[2] = {INT64_MIN, 5};
  static uint64_t positive[2] = {4000000000U, 1};
  static double exact[2] = {0.1, -2};
  static float plain[2] = {0.5F, -2};
  OnnxTensor t;
  Error err;
  int64_t dim = 2;
  Onnx__TensorProto p = ONNX__TENSOR_PROTO__INIT;
  p.dims = &dim, p.n_dims = 1;
  p.int32_data = small, p.n_int32_data = 2;
  p.data_type = ONNX_INT8;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(t.bytes == 2 && ((int8_t *)t.data)[0] == -3 && ((int8_t *)t.data)[1] == 7);
  onnx_tensor_free(&t);
  p.data_type = ONNX_INT32;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(t.bytes == 8 && ((int32_t *)t.data)[0] == -3);
  onnx_tensor_free(&t);
  p.data_type = ONNX_UINT8;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), -1);
  assert_non_null(strstr(err.message, "f: t of uint8 (2) holds -3 in int32_data"));
  p.n_int32_data = 0;
  p.int64_data = large, p.n_int64_data = 2;
  p.data_type = ONNX_INT64;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(((int64_t *)t.data)[0] == INT64_MIN);
  onnx_tensor_free(&t);
  p.n_int64_data = 0;
  p.uint64_data = positive, p.n_uint64_data = 2;
  p.data_type = ONNX_UINT32;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(t.bytes == 8 && ((uint32_t *)t.data)[0] == 4000000000U && ((uint32_t *)t.data)[1] == 1);
  onnx_tensor_free(&t);
  p.n_uint64_data = 0;
  p.double_data = exact, p.n_double_data = 2;
  p.data_type = ONNX_DOUBLE;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(((double *)t.data)[0] == 0.1);
  onnx_tensor_free(&t);
  p.n_double_data = 0;
  p.float_data = plain, p.n_float_data = 2;
  p.data_type = ONNX_COMPLEX64;
  dim = 1;
  assert_int_equal(onnx_tensor_load_from(&t, "f", ".", "t", &p, &err), 0);
  assert_true(t.count == 1 && t.bytes == 8 && ((float *)t.data)[1] == -2);
  onnx_tensor_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_is_read_back),       cmocka_unit_test(a_model_is_edited),
      cmocka_unit_test(what_is_wrong_is_named),     cmocka_unit_test(bodies_see_what_is_ready),
      cmocka_unit_test(damaged_bytes_are_refused),  cmocka_unit_test(deep_messages_are_refused),
      cmocka_unit_test(memory_is_limited),          cmocka_unit_test(every_cut_and_every_byte),
      cmocka_unit_test(what_is_no_file_is_refused), cmocka_unit_test(external_data_stays_in_the_folder),
      cmocka_unit_test(typed_data_is_read),
  };
  return TEST_MAIN("onnx", tests);
}

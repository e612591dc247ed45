/* The reader of ONNX's tensors: small messages by hand, right and wrong, and the package's own where it is there. */
#include "common/onnx_testdata.h"

#define PARSE(bytes, tensor, err) onnx_tensor_parse(bytes, sizeof(bytes) - 1, tensor, err)

static void tensors_are_read(void **state) {
  (void)state;
  OnnxTensor tensor;
  Error err;
  /* dims 2, 3; type float; name "x"; raw data */
  static const char plain[] =
      "\x08\x02\x08\x03\x10\x01\x42\x01x\x4a\x18"
      "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40\0\0\xc0\x40";
  assert_int_equal(PARSE(plain, &tensor, &err), 0);
  assert_true(tensor.rank == 2 && tensor.shape[0] == 2 && tensor.shape[1] == 3 && tensor.count == 6);
  for (int i = 0; i < 6; i++) assert_true(tensor.floats[i] == i + 1);
  onnx_tensor_free(&tensor);
  /* packed dims 1, 2, of int64: 300 and -1; a size of two bytes */
  static const char packed[] = "\x0a\x02\x01\x02\x10\x07\x4a\x10\x2c\x01\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";
  assert_int_equal(PARSE(packed, &tensor, &err), 0);
  assert_true(tensor.rank == 2 && tensor.floats[0] == 300 && tensor.floats[1] == -1);
  onnx_tensor_free(&tensor);
  /* no dims: one number; of bool */
  static const char scalar[] = "\x10\x09\x4a\x01\x01";
  assert_int_equal(PARSE(scalar, &tensor, &err), 0);
  assert_true(tensor.rank == 0 && tensor.count == 1 && tensor.floats[0] == 1);
  onnx_tensor_free(&tensor);
}

static void what_is_no_tensor_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    const char *says;
  } wrong[] = {
      {"\x08\x02\x10\x01\x4a\x08\0\0", 8, "declares 8 bytes, 2 are left"},
      {"\x08\x02\x10\x01\x4a\x04\0\0\0\0", 10, "4 bytes of data, 8 were expected"},
      {"\x08\x80", 2, "a number is cut short"},
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "a number is cut short"},
      {"\x08\xff\xff\xff\xff\x0f", 6, "more than 2147483647 elements"},
      {"\x08\xff\xff\x7f\x08\xff\xff\x7f", 8, "more than 2147483647 elements"},
      {"\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01\x08\x01", 18, "more than 8 dimensions"},
      {"\x10\x0b\x4a\x08\0\0\0\0\0\0\0\0", 12, "elements of type 11"},
      {"\x10\x01\x22\x04\0\0\0\0", 8, "field 4, coding 2"}, /* float_data */
      {"", 0, "elements of type 0"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    OnnxTensor tensor;
    Error err;
    assert_int_equal(onnx_tensor_parse(wrong[i].bytes, wrong[i].size, &tensor, &err), -1);
    if (strstr(err.message, wrong[i].says) == NULL) fail_msg("case %zu: %s", i, err.message);
    assert_null(tensor.floats);
  }
  OnnxTensor tensor;
  Error err;
  assert_int_equal(onnx_tensor_read("no/such/file.pb", &tensor, &err), -1);
  assert_non_null(strstr(err.message, "cannot open no/such/file.pb"));
}

/* A graph of `node`, and behind it an initializer "w" of two floats, 1 and 2. */
#define MODEL(length, node_length, node)                 \
  "\x08\x03\x12\x01p\x3a" length "\x0a" node_length node \
  "\x2a\x11\x08\x02\x10\x01\x42\x01w\x4a\x08\0\0\x80\x3f\0\0\0\x40"

static void models_are_read(void **state) {
  (void)state;
  OnnxNode node;
  Error err;
  /* inputs "x" and "w"; operator "Conv"; pads 1, 2, one field each; strides 3, 300, packed; group 4; auto_pad "SAME" */
  static const char model[] = MODEL("\x56", "\x41",
                                    "\x0a\x01x\x0a\x01w\x22\x04"
                                    "Conv"
                                    "\x2a\x0a\x0a\x04pads\x40\x01\x40\x02"
                                    "\x2a\x0e\x0a\x07strides\x42\x03\x03\xac\x02"
                                    "\x2a\x09\x0a\x05group\x18\x04"
                                    "\x2a\x0c\x0a\x04"
                                    "auto"
                                    "\x22\x04SAME");
  memset(&node, 0, sizeof node);
  if (onnx_node_parse(model, sizeof model - 1, &node, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(node.op, "Conv");
  assert_true(node.inputs == 2 && node.input[0].floats == NULL && node.input[1].count == 2);
  assert_true(node.input[1].floats[0] == 1 && node.input[1].floats[1] == 2);
  assert_true(onnx_attribute(&node, "pads")->ints == 2 && onnx_attribute(&node, "pads")->value[1] == 2);
  assert_true(onnx_attribute(&node, "strides")->ints == 2 && onnx_attribute(&node, "strides")->value[1] == 300);
  assert_true(onnx_attribute(&node, "group")->ints == 1 && onnx_attribute(&node, "group")->value[0] == 4);
  assert_string_equal(onnx_attribute(&node, "auto")->text, "SAME");
  assert_null(onnx_attribute(&node, "dilations"));
  onnx_node_free(&node);
  for (size_t size = 7; size < sizeof model - 1; size++) { /* cut anywhere behind the graph's length */
    memset(&node, 0, sizeof node);
    assert_int_equal(onnx_node_parse(model, size, &node, &err), -1);
    onnx_node_free(&node);
  }
  memset(&node, 0, sizeof node);
  assert_int_equal(onnx_node_parse("\x08\x03", 2, &node, &err), -1);
  assert_non_null(strstr(err.message, "a model of 0 operators"));
}

static void the_package_is_read(void **state) {
  (void)state;
  onnx_testdata_required();
  OnnxTensor x, y;
  onnx_testdata_load("abs", "input_0", &x);
  onnx_testdata_load("abs", "output_0", &y);
  assert_true(x.rank == 3 && x.shape[0] == 3 && x.shape[1] == 4 && x.shape[2] == 5 && y.count == 60);
  for (size_t i = 0; i < 60; i++) assert_true(y.floats[i] == (x.floats[i] < 0 ? -x.floats[i] : x.floats[i]));
  onnx_tensor_free(&x);
  onnx_tensor_free(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_are_read),
      cmocka_unit_test(what_is_no_tensor_is_refused),
      cmocka_unit_test(models_are_read),
      cmocka_unit_test(the_package_is_read),
  };
  return TEST_MAIN("onnx_testdata", tests);
}

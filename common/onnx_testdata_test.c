/* ONNX's test tensors as floats: by hand, and the package's own where it is there. Reading is tested in common/onnx. */
#include "common/onnx_testdata.h"
#include "common/onnx/build.h"

static void numbers_of(OnnxTensor *t, int type, int rank, const int64_t *dim, const void *data) {
  memset(t, 0, sizeof *t);
  t->type = type, t->rank = rank;
  for (int i = 0; i < rank; i++) t->dim[i] = dim[i];
  t->count = (size_t)onnx_element_count((size_t)rank, dim);
  t->bytes = t->count * onnx_type_size(type);
  t->data = xmalloc(t->bytes);
  memcpy(t->data, data, t->bytes);
}

static void numbers_become_floats(void **state) {
  (void)state;
  static const int64_t dim[2] = {1, 2}, whole[2] = {300, -1};
  static const float plain[2] = {1.5F, -2};
  static const unsigned char truth[2] = {0, 1};
  OnnxTensor from;
  OnnxTestTensor out;
  Error err;
  numbers_of(&from, ONNX_INT64, 2, dim, whole);
  assert_int_equal(onnx_test_tensor_take(&out, &from, "x.pb", &err), 0);
  assert_true(out.rank == 2 && out.shape[0] == 1 && out.shape[1] == 2 && out.count == 2);
  assert_true(out.floats[0] == 300 && out.floats[1] == -1);
  onnx_test_tensor_free(&out);
  numbers_of(&from, ONNX_FLOAT, 2, dim, plain);
  assert_int_equal(onnx_test_tensor_take(&out, &from, "x.pb", &err), 0);
  assert_true(out.floats[0] == 1.5F && out.floats[1] == -2);
  onnx_test_tensor_free(&out);
  numbers_of(&from, ONNX_BOOL, 2, dim, truth);
  assert_int_equal(onnx_test_tensor_take(&out, &from, "x.pb", &err), 0);
  assert_true(out.floats[0] == 0 && out.floats[1] == 1);
  onnx_test_tensor_free(&out);
  numbers_of(&from, ONNX_DOUBLE, 0, dim, (const double[]){1});
  assert_int_equal(onnx_test_tensor_take(&out, &from, "x.pb", &err), -1);
  assert_non_null(strstr(err.message, "x.pb: elements of type 11"));
  assert_int_equal(onnx_test_tensor_read("no/such/file.pb", &out, &err), -1);
  assert_non_null(strstr(err.message, "cannot open no/such/file.pb"));
}

static void operators_are_read(void **state) {
  (void)state;
  OnnxModel m;
  OnnxTestNode node;
  Error err;
  const OnnxDim any[1] = {{0, "n"}};
  const int64_t pads[2] = {1, 300}, dim[1] = {2};
  memset(&node, 0, sizeof node);
  onnx_model_create(&m, "g");
  assert_int_equal(onnx_test_node_take(&node, &m, &err), -1);
  assert_non_null(strstr(err.message, "a model of 0 operators"));
  onnx_add_input(&m, "x", ONNX_FLOAT, 1, any);
  onnx_add_tensor(&m, "w", ONNX_FLOAT, 1, dim, (const float[]){1, 2});
  Onnx__NodeProto *conv = onnx_add_node(&m, "Conv", "c");
  onnx_add_node_input(&m, conv, "x");
  onnx_add_node_input(&m, conv, "w");
  onnx_set_ints(&m, conv, "pads", 2, pads);
  onnx_set_int(&m, conv, "group", 4);
  onnx_set_string(&m, conv, "auto", "SAME");
  if (onnx_test_node_take(&node, &m, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(node.op, "Conv");
  assert_true(node.inputs == 2 && node.input[0].floats == NULL && node.input[1].count == 2);
  assert_true(node.input[1].floats[0] == 1 && node.input[1].floats[1] == 2);
  assert_true(onnx_test_attribute(&node, "pads")->ints == 2 && onnx_test_attribute(&node, "pads")->value[1] == 300);
  assert_true(onnx_test_attribute(&node, "group")->ints == 1 && onnx_test_attribute(&node, "group")->value[0] == 4);
  assert_string_equal(onnx_test_attribute(&node, "auto")->text, "SAME");
  assert_null(onnx_test_attribute(&node, "dilations"));
  onnx_test_node_free(&node);
  onnx_model_close(&m);
}

static void the_package_is_read(void **state) {
  (void)state;
  onnx_testdata_required();
  OnnxTestTensor x, y;
  onnx_testdata_load("abs", "input_0", &x);
  onnx_testdata_load("abs", "output_0", &y);
  assert_true(x.rank == 3 && x.shape[0] == 3 && x.shape[1] == 4 && x.shape[2] == 5 && y.count == 60);
  for (size_t i = 0; i < 60; i++) assert_true(y.floats[i] == (x.floats[i] < 0 ? -x.floats[i] : x.floats[i]));
  onnx_test_tensor_free(&x);
  onnx_test_tensor_free(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_become_floats),
      cmocka_unit_test(operators_are_read),
      cmocka_unit_test(the_package_is_read),
  };
  return TEST_MAIN("onnx_testdata", tests);
}

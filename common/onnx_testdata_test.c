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
      cmocka_unit_test(the_package_is_read),
  };
  return TEST_MAIN("onnx_testdata", tests);
}

/* What a model says of its pictures and classes is read back; what cannot be understood is refused. */
#include "common/onnx/metadata.h"
#include "common/onnx/test_model.h"

static void both_are_read_back(void **state) {
  (void)state;
  OnnxModel m;
  OnnxPreprocessing p, back;
  Error err;
  json_t *names;
  const char *const three[3] = {"t-shirt", "a \"quoted\" one", "\xc3\xa9toile"};
  memset(&p, 0, sizeof p);
  p.channels = 3, p.height = 224, p.width = 192, p.resize = 256;
  for (int c = 0; c < 3; c++) p.mean[c] = 0.485F - 0.1F * (float)c, p.stddev[c] = 1.0F / (float)(c + 3);
  test_model_create(&m);
  assert_int_equal(onnx_get_preprocessing(&m, &back, &err), 0);
  assert_int_equal(onnx_get_class_names(&m, 3, &names, &err), 0);
  assert_null(names);
  onnx_set_preprocessing(&m, &p);
  onnx_set_class_names(&m, three, 3);
  assert_non_null(strstr(onnx_metadata(&m, ONNX_PREPROCESSING), "\"mean\":[0.485,"));
  assert_int_equal(onnx_get_preprocessing(&m, &back, &err), 1);
  assert_memory_equal(&p, &back, sizeof p); /* the floats, too: bit by bit */
  assert_int_equal(onnx_get_class_names(&m, 3, &names, &err), 0);
  for (size_t i = 0; i < 3; i++) assert_string_equal(json_string_value(json_array_get(names, i)), three[i]);
  json_decref(names);
  assert_int_equal(onnx_get_class_names(&m, 4, &names, &err), -1);
  assert_non_null(strstr(err.message, "has 3 names, and the model 4 classes"));
  onnx_model_close(&m);
}

static void what_cannot_be_understood_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "{",
      "7",
      "[]",
      "{\"layout\":\"NHWC\"}",
      "{\"layout\":\"NCHW\",\"channels\":\"rgb\",\"height\":4,\"width\":4,\"resize\":0,\"mean\":[0,0],\"stddev\":[1,1,"
      "1]}",
      "{\"layout\":\"NCHW\",\"channels\":\"gray\",\"height\":4,\"width\":4,\"resize\":0,\"mean\":[0],\"stddev\":[0]}",
      "{\"layout\":\"NCHW\",\"channels\":\"gray\",\"height\":0,\"width\":4,\"resize\":0,\"mean\":[0],\"stddev\":[1]}",
      "{\"layout\":\"NCHW\",\"channels\":\"gray\",\"height\":4,\"width\":1e9,\"resize\":0,\"mean\":[0],\"stddev\":[1]}",
      "{\"layout\":\"NCHW\",\"channels\":\"gray\",\"height\":4,\"width\":4,\"resize\":0,\"mean\":[1e300],\"stddev\":[1]"
      "}",
  };
  OnnxModel m;
  OnnxPreprocessing p;
  Error err;
  json_t *names;
  test_model_create(&m);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    onnx_set_metadata(&m, ONNX_PREPROCESSING, wrong[i]);
    if (onnx_get_preprocessing(&m, &p, &err) != -1) fail_msg("accepted: %s", wrong[i]);
    assert_non_null(strstr(err.message, "its metadata preprocessing "));
  }
  static const char *const no_names[] = {"{\"0\":\"a\"}", "[]", "[\"a\",7]", "a, b"};
  for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) {
    onnx_set_metadata(&m, ONNX_CLASS_NAMES, no_names[i]);
    if (onnx_get_class_names(&m, 0, &names, &err) != -1) fail_msg("accepted: %s", no_names[i]);
    assert_null(names);
  }
  onnx_model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_are_read_back),
      cmocka_unit_test(what_cannot_be_understood_is_refused),
  };
  return TEST_MAIN("onnx metadata", tests);
}

/* duel_half.h: models in float16 are models still, take and give float32, and ONNX Runtime's answers hardly differ. */
#include "phase5_production/10_onnx_runtime/test_ort.h"

#include "common/runfiles.h"
#include "phase5_production/11_runtime_duel/duel_half.h"

static char half[PATH_MAX];

/* A model of testdata/ and its path in float16. */
static const char *halved(const char *name) {
  static char path[PATH_MAX];
  char file[128];
  Error err;
  snprintf(file, sizeof file, "phase5_production/10_onnx_runtime/testdata/%s.onnx", name);
  if (runfiles_find(file, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  snprintf(file, sizeof file, "%s.fp16.onnx", name);
  if (duel_write_half(path, test_path(half, sizeof half, file), &err) != 0) fail_msg("%s", err.message);
  return path;
}

static void weights_are_narrow_and_the_ends_are_cast(void **state) {
  (void)state;
  OnnxModel m;
  Error err;
  halved("colours");
  if (onnx_model_read(&m, half, &err) != 0) fail_msg("%s", err.message);
  const Onnx__GraphProto *g = m.proto->graph;
  assert_int_equal(onnx_initializer(&m, "w")->data_type, ONNX_FLOAT16);
  assert_int_equal(onnx_value_type(g->input[0]), ONNX_FLOAT);
  assert_int_equal(onnx_value_type(g->output[0]), ONNX_FLOAT);
  assert_int_equal(g->n_node, 5);
  assert_string_equal(g->node[0]->op_type, "Cast");
  assert_int_equal(onnx_attribute_int(g->node[0], "to", 0), ONNX_FLOAT16);
  assert_string_equal(g->node[1]->input[0], "x:fp16");
  assert_string_equal(g->node[4]->output[0], "y");
  onnx_model_close(&m);
}

/* The scales of a Resize are float32 by its definition. */
static void scales_stay_what_they_are(void **state) {
  (void)state;
  OnnxModel m;
  Error err;
  halved("twice");
  if (onnx_model_read(&m, half, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(onnx_initializer(&m, "scales")->data_type, ONNX_FLOAT);
  onnx_model_close(&m);
}

static void infer(Ort *ort, const char *path, OrtArray *x, OrtArray *y) {
  OrtNet net;
  Error err;
  const OrtNetOptions options = ort_net_options();
  if (ort_session(&net, ort, path, &options, &err) != 0 || ort_run(&net, x, y, &err) != 0) fail_msg("%s", err.message);
  ort_session_close(&net);
}

static void answers_hardly_differ(void **state) {
  (void)state;
  static const char *const names[] = {"colours", "twice"};
  Ort ort;
  float x[2 * 3 * 64];
  for (int i = 0; i < 2 * 3 * 64; i++) x[i] = (float)(i * 37 % 101) / 101;
  ort_required(&ort);
  for (int k = 0; k < 2; k++) {
    OrtArray in = ort_floats(x, 4, 2, 3, 8, 8), whole, narrow;
    memset(&whole, 0, sizeof whole);
    memset(&narrow, 0, sizeof narrow);
    const char *path = halved(names[k]);
    infer(&ort, path, &in, &whole);
    infer(&ort, half, &in, &narrow);
    assert_int_equal(narrow.type, ONNX_FLOAT);
    assert_int_equal(narrow.bytes, whole.bytes);
    int differ = 0;
    for (size_t i = 0; i < ort_array_count(&whole); i++) {
      const float a = ((const float *)whole.data)[i], b = ((const float *)narrow.data)[i];
      if (!(fabsf(a - b) <= 0x1p-9f * fmaxf(1, fabsf(a)))) fail_msg("%s: %g and %g", names[k], (double)a, (double)b);
      differ += a != b;
    }
    assert_true(differ > 0 || k > 0); /* weights are not float32; what has none, ONNX Runtime computes in float32 */
    ort_array_free(&whole);
    ort_array_free(&narrow);
  }
  ort_close(&ort);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_are_narrow_and_the_ends_are_cast),
                                     cmocka_unit_test(scales_stay_what_they_are),
                                     cmocka_unit_test(answers_hardly_differ)};
  return TEST_MAIN("duel_half", tests);
}

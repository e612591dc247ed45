/* int8 as its users meet it: what it prints, the file that it leaves, and what it says of bad input: one sentence,
 * status 1 or 2, and no file. */
#include "common/expect.h"
#include "common/onnx/metadata.h"

enum { SECONDS = 120 };

static char program[PATH_MAX];

static const char *in_tmp(const char *name) {
  static char buffers[6][PATH_MAX];
  static int next;
  return test_path(buffers[next++ % 6], PATH_MAX, name);
}

static Subprocess run_program(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[9] = {program, "--device=cpu", "--calibration-images=64", "--test-images=128", a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

static void expect_refusal(int status, const char *says, const char *a, const char *b, const char *c) {
  Subprocess run = run_program(a, b, c, NULL);
  expect_run(&run, status, NULL, says);
  subprocess_free(&run);
}

static int count_nodes(const OnnxModel *m, const char *op) {
  int count = 0;
  for (size_t i = 0; i < m->proto->graph->n_node; i++) count += strcmp(m->proto->graph->node[i]->op_type, op) == 0;
  return count;
}

/* Of the rungs' logits beside float32's. */
static void expect_cosines(const Subprocess *run, double least) {
  json_t *object = expect_json(run), *rows = json_object_get(object, "rows");
  assert_int_equal(json_array_size(rows), 6);
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const double cosine = json_number_value(json_object_get(json_array_get(rows, i), "cosine"));
    if (!(cosine > least)) fail_msg("row %zu: the cosine of the logits is %g", i, cosine);
  }
  json_decref(object);
}

static void a_network_becomes_a_file(void **state) {
  (void)state;
  OnnxModel m;
  Error err;
  char output[PATH_MAX + 16];
  const char *path = in_tmp("lenet.int8.onnx");
  snprintf(output, sizeof output, "--output=%s", path);
  Subprocess run = run_program("--network=lenet", output, "--layers", "--json");
  expect_run(&run, 0, "LeNet-5, 64 pictures for the scales, 128 to test", NULL);
  expect_cosines(&run, 0.995);
  subprocess_free(&run);
  if (onnx_model_read(&m, path, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(count_nodes(&m, "QuantizeLinear"), 7);    /* x, and behind four ReLUs and two pools */
  assert_int_equal(count_nodes(&m, "DequantizeLinear"), 17); /* and weights and biases of five layers */
  assert_non_null(onnx_metadata(&m, "quantization"));
  onnx_model_close(&m);
}

/* It reads pixels as features: one mean and deviation for all of them. */
static void a_network_of_features_becomes_a_file(void **state) {
  (void)state;
  char output[PATH_MAX + 16];
  snprintf(output, sizeof output, "--output=%s", in_tmp("mlp.int8.onnx"));
  Subprocess run = run_program("--network=mlp", output, "--data=mnist", "--json");
  expect_run(&run, 0, "64 pictures for the scales, 128 to test", NULL);
  expect_cosines(&run, 0.98);
  subprocess_free(&run);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  char images[PATH_MAX + 16], output[PATH_MAX + 16];
  const char *path = in_tmp("refused.onnx"), *folder = in_tmp("pictures");
  snprintf(output, sizeof output, "--output=%s", path);
  snprintf(images, sizeof images, "--images=%s", folder);
  expect_refusal(2, "a file of weights", NULL, NULL, NULL);
  expect_refusal(2, "minmax, percentile, entropy or all is expected", "--network=lenet", "--calibrator=best", NULL);
  expect_refusal(1, "cannot open", "nowhere.safetensors", output, NULL);
  expect_refusal(1, "is unknown", "--network=lenat", output, NULL);
  expect_refusal(2, "exclude each other", "--network=lenet", images, "--data=mnist");
  expect_refusal(1, "it is a directory", "--network=lenet", "--output=/tmp", NULL);
  expect_refusal(1, "can become int8 with --float-first", "--network=softmax", "--float-first", output);
  expect_refusal(1, "it must read colour pictures", "--network=lenet", images, output);
  expect_refusal(1, "cannot open the folder", "--network=resnet18", images, output);
  assert_int_equal(mkdir(folder, 0700), 0);
  expect_refusal(1, "has no pictures; put files", "--network=resnet18", images, output);
  char file[PATH_MAX + 16];
  snprintf(file, sizeof file, "%s/a.jpg", folder);
  FILE *f = fopen(file, "w");
  assert_true(f != NULL && fputs("no picture", f) >= 0 && fclose(f) == 0);
  expect_refusal(1, "a.jpg", "--network=resnet18", images, output);
  assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_network_becomes_a_file),
      cmocka_unit_test(a_network_of_features_becomes_a_file),
      cmocka_unit_test(bad_input_is_refused),
  };
  expect_program("phase5_production", "int8", program, sizeof program);
  return TEST_MAIN("int8_program", tests);
}

/* onnx_export and onnx_wire as their users meet them: what they print, the files they leave, and what they say of bad
 * input: one sentence, status 1 or 2, and no file that is half written. */
#include "common/expect.h"
#include "common/onnx/metadata.h"

enum { SECONDS = 60 };

static char export_program[PATH_MAX], wire_program[PATH_MAX];

static const char *in_tmp(const char *name) {
  static char buffers[6][PATH_MAX];
  static int next;
  return test_path(buffers[next++ % 6], PATH_MAX, name);
}

static Subprocess run_program(const char *program, const char *a, const char *b, const char *c, const char *d) {
  const char *argv[6] = {program, a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

static void expect_refusal(const char *program, int status, const char *says, const char *a, const char *b) {
  Subprocess run = run_program(program, a, b, NULL, NULL);
  expect_run(&run, status, NULL, says);
  subprocess_free(&run);
}

static void write_file(const char *path, const char *text, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_true(file != NULL && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

static void a_network_becomes_a_file(void **state) {
  (void)state;
  OnnxModel m;
  Error err;
  json_t *names;
  char output[PATH_MAX + 16];
  const char *path = in_tmp("fashion.onnx");
  snprintf(output, sizeof output, "--output=%s", path);
  Subprocess run = run_program(export_program, "--network=lenet", "--data=fashion_mnist", output, "--json");
  expect_run(&run, 0, "LeNet-5, 12 nodes, 10 tensors of 61706 trained parameters, input x of (1,28,28)", NULL);
  json_t *object = expect_json(&run);
  assert_string_equal(json_string_value(json_object_get(object, "file")), path);
  assert_int_equal(json_integer_value(json_object_get(object, "parameters")), 61706);
  json_decref(object);
  subprocess_free(&run);
  if (onnx_model_read(&m, path, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(onnx_metadata(&m, "weights"), "random, seed 1");
  assert_int_equal(onnx_get_class_names(&m, 10, &names, &err), 0);
  assert_string_equal(json_string_value(json_array_get(names, 0)), "t-shirt");
  json_decref(names);
  onnx_model_close(&m);
}

static void networks_come_from_config_files(void **state) {
  (void)state;
  static const struct {
    const char *json, *says;
  } good[] = {
      {"{\"network\": \"mlp\", \"layers\": \"784,30,10\", \"activation\": \"tanh\", \"lr\": 0.1}",
       "Gemm (tanh1, fc2.weight, fc2.bias) -> logits"},
      {"{\"layers\": \"9,4\", \"activation\": \"relu\"}", "1 nodes, 2 tensors of 40 trained parameters"},
      {"{\"network\": \"resnet_mnist\", \"filters\": \"4,6,8\", \"dropout\": 0.1}", "layer2.0.conv1.weight"},
      {"{\"network\": \"lenet\", \"data\": \"cifar10\"}", "tensors of 62006 trained parameters, input x of (3,32,32)"},
  };
  char config[PATH_MAX + 16], output[PATH_MAX + 16];
  const char *path = in_tmp("config.json");
  snprintf(config, sizeof config, "--config=%s", path);
  snprintf(output, sizeof output, "-o%s", in_tmp("config.onnx"));
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    write_file(path, good[i].json, strlen(good[i].json));
    Subprocess run = run_program(export_program, config, "--nodes", output, NULL);
    expect_run(&run, 0, good[i].says, NULL);
    subprocess_free(&run);
  }
  write_file(path, "{\"lr\": 1}", 9);
  expect_refusal(export_program, 1, "names no network; say which it is with --network", config, NULL);
  write_file(path, "{\"network\": [1]}", 16);
  expect_refusal(export_program, 1, "\"network\" is not a text or number of up to 47 letters", config, NULL);
  write_file(path, "{\"network\"", 10);
  expect_refusal(export_program, 1, "is not JSON", config, NULL);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  const char *damaged = in_tmp("damaged.safetensors"), *other = in_tmp("other.safetensors");
  expect_refusal(export_program, 2, "a file of weights, or --network=NAME or --config=FILE", NULL, NULL);
  expect_refusal(export_program, 2, "one file of weights is expected; \"b\" is the second", "a", "b");
  expect_refusal(export_program, 2, "--data=faces: one of mnist, fashion_mnist", "--data=faces", NULL);
  expect_refusal(export_program, 2, "--side", "--side=0", NULL);
  expect_refusal(export_program, 1, "cannot open /nowhere/best.safetensors", "/nowhere/best.safetensors", NULL);
  expect_refusal(export_program, 1, "the network \"lenett\" is unknown", "--network=lenett", NULL);
  expect_refusal(export_program, 1, "leave --any-size out", "--network=lenet", "--any-size");
  expect_refusal(export_program, 1, "cannot be built for pictures of (1,4,4)", "--network=fashion_cnn", "--side=4");
  expect_refusal(export_program, 1, "--side=14: Multi-layer perceptron takes (784) and nothing else", "--network=mlp",
                 "--side=14");
  expect_refusal(export_program, 1, "--data=cifar10 has 10 classes of (3,32,32)", "--network=stripes",
                 "--data=cifar10");
  expect_refusal(export_program, 1, "--data=mnist has 10 classes of (1,28,28)", "--network=points", "--data=mnist");
  expect_refusal(export_program, 1, "/nowhere/x.onnx", "--network=points", "--output=/nowhere/x.onnx");
  write_file(damaged, "\xff\0\0\0\0\0\0\0{", 9);
  expect_refusal(export_program, 1, "is cut short", damaged, NULL);
  static const char foreign[] =
      "\x40\0\0\0\0\0\0\0"
      "{\"head.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}\0\0\0";
  write_file(other, foreign, 8 + 64 + 4);
  expect_refusal(export_program, 1, "its 1 tensors are those of none of points, softmax", other, NULL);
  expect_refusal(export_program, 1, "does not fit the network: it lacks 'conv1.weight'", other, "--network=lenet");
}

/* A name in the way, and what stood there before. */
static void nothing_is_lost(void **state) {
  (void)state;
  char output[PATH_MAX + 16], kept[8] = "";
  const char *path = in_tmp("kept.onnx");
  write_file(path, "precious", 8);
  snprintf(output, sizeof output, "--output=%s", path);
  expect_refusal(export_program, 1, "the network \"q\" is unknown", "--network=q", output);
  FILE *file = fopen(path, "rb");
  assert_true(file != NULL && fread(kept, 1, 8, file) == 8 && memcmp(kept, "precious", 8) == 0);
  fclose(file);
  snprintf(output, sizeof output, "--output=%s", test_tmpdir());
  expect_refusal(export_program, 1, "is a directory; give the name of a file", "--network=points", output);
}

static void bytes_are_shown(void **state) {
  (void)state;
  Subprocess run = run_program(wire_program, NULL, NULL, NULL, NULL);
  expect_run(&run, 0, "    61: 12 05 73 6d 61 6c 6c         GraphProto.name                        \"small\"", NULL);
  expect_run(&run, 0, "Gemm", NULL);
  subprocess_free(&run);
  run = run_program(wire_program, "--lines=3", NULL, NULL, NULL);
  expect_run(&run, 0, "... --lines=N prints more", NULL);
  subprocess_free(&run);
  run = run_program(wire_program, "--lines=48", NULL, NULL, NULL); /* as many as there are */
  assert_null(strstr(run.out, "prints more"));
  subprocess_free(&run);
  run = run_program(wire_program, "--lines=47", NULL, NULL, NULL);
  expect_run(&run, 0, "... --lines=N prints more", NULL);
  subprocess_free(&run);
  write_file(in_tmp("cut.onnx"), "", 0);
  expect_refusal(wire_program, 1, "cut.onnx is empty", in_tmp("cut.onnx"), NULL);
  write_file(in_tmp("cut.onnx"), "\x08\x08\x3a\x7f", 4);
  expect_refusal(wire_program, 1, "its ModelProto.graph at byte 4 declares 127 bytes, 0 are left", in_tmp("cut.onnx"),
                 NULL);
  expect_refusal(wire_program, 1, "cannot open /nowhere/x.onnx", "/nowhere/x.onnx", NULL);
  expect_refusal(wire_program, 2, "--lines", "--lines=x", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_network_becomes_a_file), cmocka_unit_test(networks_come_from_config_files),
      cmocka_unit_test(bad_input_is_refused),     cmocka_unit_test(nothing_is_lost),
      cmocka_unit_test(bytes_are_shown),
  };
  expect_program("phase5_production", "onnx_export", export_program, sizeof export_program);
  expect_program("phase5_production", "onnx_wire", wire_program, sizeof wire_program);
  return TEST_MAIN("onnx_export program", tests);
}

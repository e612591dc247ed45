/* The program onnx_import, as its users meet it: on the small U-Net of its folder, and on files that are none. */
#include <sys/stat.h>

#include "common/program_test.h"
#include "phase5_production/07_onnx_import/npy.h"

static char unet[PATH_MAX];

/* With the arguments that are not NULL. */
static Subprocess run(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[8] = {program, "--device=cpu"}, *more[] = {a, b, c, d};
  for (int i = 0, n = 2; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static void refused(const char *a, const char *b, int status, const char *sentence) {
  Subprocess said = run(a, b, NULL, NULL);
  expect_run(&said, status, NULL, sentence);
  subprocess_free(&said);
}

static const char *option(const char *name, const char *path) {
  static char buffers[4][PATH_MAX + 32];
  static int next;
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof buffers[0], "--%s=%s", name, path);
  return buffer;
}

/* The first `size` bytes of the U-Net, or a text, as a file. */
static const char *write_file(const char *name, const void *bytes, size_t size) {
  static char path[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  return path;
}

static void a_model_is_told_and_run(void **state) {
  (void)state;
  Subprocess said = run("--json", "--batch-size=3", NULL, NULL);
  expect_run(&said, 0, "6 nodes are operations of earlier phases, 7 are generic, 2 are constants, 1 are gone", NULL);
  assert_non_null(strstr(said.out, "output  output                   float32  (N,4,10,12)"));
  assert_non_null(strstr(said.out, "3 samples, of random numbers"));
  json_t *result = expect_json(&said), *outputs = json_object_get(result, "outputs"),
         *first = json_array_get(outputs, 0);
  assert_int_equal(json_integer_value(json_object_get(result, "nodes")), 16);
  assert_int_equal(json_integer_value(json_object_get(first, "count")), 3 * 4 * 10 * 12);
  const double mean = json_real_value(json_object_get(first, "mean")); /* of a softmax of 4 channels */
  assert_true(fabs(mean - 0.25) < 1e-6);
  json_decref(result);
  subprocess_free(&said);
  said = run("--nodes", NULL, NULL, NULL);
  expect_run(&said, 0, "/up/ConvTranspose", NULL);
  subprocess_free(&said);
  said = run("--operators", NULL, NULL, NULL);
  expect_run(&said, 0, "DequantizeLinear, Div,", NULL);
  subprocess_free(&said);
}

/* What is saved with one batch is what comes with each sample alone. */
static void arrays_of_numpy_go_in_and_out(void **state) {
  (void)state;
  Error err;
  enum { SAMPLE = 3 * 20 * 24, OUT = 4 * 10 * 12 };
  static float x[2 * SAMPLE];
  char both[PATH_MAX], one[PATH_MAX], folder[PATH_MAX], path[PATH_MAX + 32];
  OnnxTensor y, second;
  for (int i = 0; i < 2 * SAMPLE; i++) x[i] = (float)(i * 7 % 23) / 23 - 0.5f;
  const int64_t dim[] = {2, 3, 20, 24}, single[] = {1, 3, 20, 24};
  if (npy_write(test_path(both, sizeof both, "both.npy"), "<f4", 4, dim, x, sizeof x, &err) != 0 ||
      npy_write(test_path(one, sizeof one, "one.npy"), "<f4", 4, single, x + SAMPLE, sizeof x / 2, &err) != 0)
    fail_msg("%s", err.message);
  test_path(folder, sizeof folder, "answers");
  snprintf(path, sizeof path, "%s/output.npy", folder);
  Subprocess said = run(option("input", both), option("save", folder), "--batch-size=2", NULL);
  expect_run(&said, 0, "2 samples, of files", NULL);
  subprocess_free(&said);
  if (npy_read(path, &y, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(y.count, 2 * OUT);
  assert_int_equal(y.dim[0], 2);
  said = run(option("input", one), option("save", folder), NULL, NULL);
  expect_run(&said, 0, "1 sample, of files", NULL);
  subprocess_free(&said);
  if (npy_read(path, &second, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(second.count, OUT);
  assert_close((const float *)second.data, (const float *)y.data + OUT, OUT, 1e-6, 1e-7);
  onnx_tensor_free(&y);
  onnx_tensor_free(&second);
  refused(option("input", both), NULL, 1, "has 2 samples; at most 1 are possible: --batch-size=2");
}

static void a_picture_goes_in(void **state) {
  (void)state;
  Error err;
  char path[PATH_MAX];
  Image image = image_new(61, 37, 3);
  for (int i = 0; i < 3 * 61 * 37; i++) image.pixels[i] = (unsigned char)(i * 37 / 11);
  if (image_write_png(test_path(path, sizeof path, "picture.png"), &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
  Subprocess said = run(option("input", path), "--normalize=imagenet", NULL, NULL);
  expect_run(&said, 0, "1 sample, of files", NULL);
  subprocess_free(&said);
}

static void what_is_no_model_is_refused(void **state) {
  (void)state;
  unsigned char *bytes;
  size_t size;
  Error err;
  if (onnx_file_read(unet, &bytes, &size, &err) != 0) fail_msg("%s", err.message);
  refused("/nowhere.onnx", NULL, 1, "cannot open /nowhere.onnx");
  refused(write_file("empty.onnx", "", 0), NULL, 1, "is empty");
  refused(write_file("text.onnx", "no model", 8), NULL, 1, "text.onnx");
  refused(write_file("short.onnx", bytes, size / 2), NULL, 1, "short.onnx");
  free(bytes);
  refused(test_tmpdir(), NULL, 1, "a directory");
}

static void what_is_no_input_is_refused(void **state) {
  (void)state;
  refused(option("input", write_file("text.npy", "no array", 8)), NULL, 1, "does not begin as a file of numpy does");
  refused(option("input", write_file("text.png", "no picture", 10)), NULL, 1, "not an image");
  refused(option("input", "z=/nowhere.npy"), NULL, 1, "has no input 'z'");
  static const float small[12] = {0};
  Error err;
  char path[PATH_MAX];
  const int64_t dim[] = {1, 3, 2, 2}, list[] = {12};
  if (npy_write(test_path(path, sizeof path, "small.npy"), "<f4", 4, dim, small, sizeof small, &err) != 0)
    fail_msg("%s", err.message);
  refused(option("input", path), NULL, 1, "size 2 is 20 in the file, and 2 is given");
  if (npy_write(path, "<f4", 1, list, small, sizeof small, &err) != 0) fail_msg("%s", err.message);
  refused(option("input", path), NULL, 1, "has 4 axes, and 1 sizes are given");
}

static void usage(void **state) {
  (void)state;
  refused("--shape=1,0,3", NULL, 2, "sizes from 1 on are expected");
  refused("--shape=", NULL, 2, "sizes are expected");
  refused("--normalize=perhaps", NULL, 2, "imagenet or none");
  refused("--save=", NULL, 2, "a path is expected");
  refused("a.onnx", "b.onnx", 2, "one model is expected");
  refused("--shape=z=1,3,20,24", NULL, 1, "has no input 'z'");
}

int main(void) {
  Error err;
  expect_program("phase5_production", "onnx_import", program, sizeof program);
  if (runfiles_find("phase5_production/07_onnx_import/testdata/unet.onnx", unet, sizeof unet, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_is_told_and_run),     cmocka_unit_test(arrays_of_numpy_go_in_and_out),
      cmocka_unit_test(a_picture_goes_in),           cmocka_unit_test(what_is_no_model_is_refused),
      cmocka_unit_test(what_is_no_input_is_refused), cmocka_unit_test(usage),
  };
  return TEST_MAIN("onnx_import_program", tests);
}

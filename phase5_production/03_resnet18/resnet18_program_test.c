/* The program resnet18, as its users meet it. */
#include "common/program_test.h"

static char picture[PATH_MAX], weights[PATH_MAX];

/* With the arguments that are not NULL. */
static Subprocess run(const char *a, const char *b, const char *c, const char *d, const char *e) {
  const char *argv[8] = {program, "--device=cpu"}, *more[] = {a, b, c, d, e};
  for (int i = 0, n = 2; i < 5; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static const char *option(const char *name, const char *path) {
  static char buffers[4][PATH_MAX + 32];
  static int next;
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof buffers[0], "--%s=%s", name, path);
  return buffer;
}

static void refused(const char *a, const char *b, const char *c, int status, const char *sentence) {
  Subprocess said = run(a, b, c, NULL, NULL);
  expect_run(&said, status, NULL, sentence);
  subprocess_free(&said);
}

/* A file of the test's folder with this content. */
static const char *write_text(const char *name, const char *text) {
  static char path[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, name), "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  return path;
}

/* Stripes of some colours, 90 x 61 pixels. */
static void draw(const char *name, int width, int height, char *path) {
  Error err;
  Image image = image_new(width, height, 3);
  for (int i = 0; i < 3 * width * height; i++) image.pixels[i] = (unsigned char)(i * 37 / 11 + i / width * 5);
  if (image_write_png(test_path(path, PATH_MAX, name), &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
}

static void the_layers_are_printed(void **state) {
  (void)state;
  Subprocess said = run("--json", NULL, NULL, NULL, NULL);
  expect_run(&said, 0, "random weights (seed 1): what the network answers means nothing", NULL);
  assert_non_null(strstr(said.out, "layer4.0  (256,14,14)    (512,7,7)"));
  json_t *result = expect_json(&said), *layers = json_object_get(result, "layers"), *layer;
  size_t i;
  json_int_t sum = 0;
  double mflop = 0;
  json_array_foreach(layers, i, layer) {
    sum += json_integer_value(json_object_get(layer, "parameters"));
    mflop += json_real_value(json_object_get(layer, "mflop"));
  }
  assert_int_equal(json_array_size(layers), 12);
  assert_int_equal(sum, 11689512);
  assert_int_equal(json_integer_value(json_object_get(result, "parameters")), 11689512);
  assert_true(fabs(mflop - 2 * 1814.073344) < 1e-6);
  json_decref(result);
  subprocess_free(&said);
}

/* "label probability" of the first classes of the only picture. */
static void top_of(const Subprocess *said, int classes, json_int_t *labels, double *first) {
  json_t *result = expect_json(said), *entry = json_array_get(json_object_get(result, "predictions"), 0);
  json_t *top = json_object_get(entry, "top");
  assert_int_equal(json_array_size(top), classes);
  double before = 1;
  for (int i = 0; i < classes; i++) {
    const double p = json_real_value(json_object_get(json_array_get(top, (size_t)i), "probability"));
    labels[i] = json_integer_value(json_object_get(json_array_get(top, (size_t)i), "label"));
    assert_true(p <= before && p > 0 && labels[i] >= 0 && labels[i] < 1000);
    before = p;
    if (i == 0) *first = p;
  }
  json_decref(result);
}

/* The same weights, random or out of the file that was saved, give the same answer; names come from a file. */
static void saved_weights_answer_the_same(void **state) {
  (void)state;
  json_int_t expected[7], got[7];
  double first, again;
  Subprocess said = run("--seed=5", "--top=7", "--json", "--predict", picture);
  expect_run(&said, 0, "90 x 61 pixels", NULL);
  top_of(&said, 7, expected, &first);
  subprocess_free(&said);
  said = run("--seed=5", option("save", weights), NULL, NULL, NULL);
  expect_run(&said, 0, "weights saved to", NULL);
  subprocess_free(&said);
  said = run(option("weights", weights), "--top=7", "--json", "--predict", picture);
  expect_run(&said, 0, "122 tensors, F32, 1000 classes", NULL);
  top_of(&said, 7, got, &again);
  assert_memory_equal(got, expected, sizeof got);
  assert_true(first == again);
  subprocess_free(&said);
}

static void names_come_from_a_file(void **state) {
  (void)state;
  static char text[1 << 16];
  char path[PATH_MAX];
  for (int i = 0, used = 0; i < 1000; i++) used += sprintf(text + used, "thing <%d>\n", i);
  snprintf(path, sizeof path, "%s", write_text("names.txt", text));
  Subprocess said = run(option("classes", path), "--predict", picture, NULL, NULL);
  expect_run(&said, 0, "%  thing <", NULL);
  subprocess_free(&said);
  refused(option("classes", write_text("few.txt", "a\nb\n")), "--predict", picture, 1, "has 2 names");
  refused(option("classes", write_text("gap.txt", "a\n\nb\n")), "--predict", picture, 1, "gap.txt:2");
}

static void weights_that_are_none_are_refused(void **state) {
  (void)state;
  char path[PATH_MAX];
  refused(option("weights", in_dir(".", "nothing.pth")), NULL, NULL, 1, "nothing.pth");
  refused(option("weights", write_text("text.pth", "these are no weights")), NULL, NULL, 1, "text.pth");
  refused(option("weights", test_tmpdir()), NULL, NULL, 1, "directory");
  const char *script =
      "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w').writestr('a/data.pkl', "
      "b'cos\\nsystem\\n(S\"touch \" + sys.argv[1].encode()\\ntR.')";
  const char *argv[] = {"/usr/bin/env", "python3", "-c", script, test_path(path, sizeof path, "evil.pth"), NULL};
  Subprocess made = subprocess_run(argv, SECONDS);
  if (made.status == 0) refused(option("weights", path), NULL, NULL, 1, "wants to import os.system");
  subprocess_free(&made);
}

static void pictures_that_are_none_are_refused(void **state) {
  (void)state;
  char narrow[PATH_MAX];
  draw("narrow.png", 900, 3, narrow);
  refused("--predict", narrow, NULL, 1, "900 x 3 pixels");
  refused("--predict", write_text("text.png", "no picture"), NULL, 1, "not an image");
  Subprocess said = run("--json", "--predict", "/nowhere.png", picture, NULL); /* the others are looked at */
  expect_run(&said, 1, "90 x 61 pixels", "/nowhere.png");
  json_t *result = expect_json(&said);
  assert_int_equal(json_array_size(json_object_get(result, "predictions")), 2);
  json_decref(result);
  subprocess_free(&said);
}

static void usage(void **state) {
  (void)state;
  refused("--predict", NULL, NULL, 2, "pictures are expected");
  refused("cat.jpg", NULL, NULL, 2, "behind --predict");
  refused("--top=0", "--predict", picture, 2, "--top=0");
  refused("--classes=a", NULL, NULL, 2, "--predict");
  refused("--weights=", NULL, NULL, 2, "a path is expected");
}

int main(void) {
  expect_program("phase5_production", "resnet18", program, sizeof program);
  draw("picture.png", 90, 61, picture);
  test_path(weights, sizeof weights, "weights.safetensors");
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_layers_are_printed),
                                     cmocka_unit_test(saved_weights_answer_the_same),
                                     cmocka_unit_test(names_come_from_a_file),
                                     cmocka_unit_test(weights_that_are_none_are_refused),
                                     cmocka_unit_test(pictures_that_are_none_are_refused),
                                     cmocka_unit_test(usage)};
  return TEST_MAIN("resnet18_program", tests);
}

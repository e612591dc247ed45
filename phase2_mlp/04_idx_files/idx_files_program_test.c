/* The program idx_files on MNIST, on small sets made here, and on files that are none. */
#include "common/program_test.h"

static Subprocess look(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[] = {program, output_dir("out"), a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

static void look_expect(const char *a, const char *b, int status, const char *out, const char *err) {
  Subprocess run = look(a, b, NULL, NULL);
  expect_run(&run, status, out, err);
  subprocess_free(&run);
}

/* A file in the tests' folder with these bytes. */
static const char *file_of(const char *name, const void *bytes, size_t size) {
  static char path[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return path;
}

/* The figures of MNIST, which everybody quotes: 0.1307 and 0.3081; and those of its test set. */
static void mnist_is_what_it_is_said_to_be(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  Subprocess run = look(data, "--json", "--digits=3", NULL);
  expect_run(&run, 0, "00 00 ea 60  images                              60000             1625948160\n", NULL);
  expect_run(&run, 0, "16 bytes of header and 47040000 of data are 47040016 bytes: the size of the file.", NULL);
  expect_run(&run, 0, "8 bytes of header and 60000 of data are 60008 bytes: the size of the file.", NULL);
  expect_run(&run, 0, "33.3184 of 255 = 0.1307 of 1", NULL);
  expect_run(&run, 0, "78.5675 of 255 = 0.3081 of 1", NULL);
  expect_run(&run, 0, "mean 0.0000, deviation 1.0000", NULL);
  expect_run(&run, 0, "     156   . . . . . . . . . . . .031212127e88af1aa6fff77f\n", NULL);
  expect_run(&run, 0, "image 0: 5 ", NULL);
  expect_run(&run, 0, "++*#%@@@@@*=*+=.", NULL);
  assert_null(strchr(run.out, '\033')); /* no terminal, no colour */
  json_t *object = expect_json(&run);
  assert_true(fabs(json_number_value(json_object_get(object, "mean")) - 0.13066) < 1e-5);
  assert_true(fabs(json_number_value(json_object_get(object, "stddev")) - 0.30811) < 1e-5);
  assert_int_equal(json_integer_value(json_array_get(json_object_get(object, "shape"), 0)), 60000);
  assert_int_equal(json_integer_value(json_array_get(json_object_get(object, "labels"), 5)), 5421);
  Image sheet;
  Error err;
  if (image_read_rgb(json_string_value(json_object_get(object, "sheet")), &sheet, &err) != 0)
    fail_msg("%s", err.message);
  assert_int_equal(sheet.width, 10 * (28 * 3 + 6) + 6);
  image_free(&sheet);
  json_decref(object);
  subprocess_free(&run);

  run = look(data, "--split=test", "--label=7", "--first=500");
  expect_run(&run, 0, "10000 labels", NULL);
  expect_run(&run, 0, "image 510: 7", NULL);
  subprocess_free(&run);
}

static void every_art_draws(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  look_expect(data, "--art=ascii", 0, "+@@@%*@*:", NULL);
  look_expect(data, "--art=blocks", 0, "\u2588\u2588\u2588", NULL);
  look_expect(data, "--art=colour", 0, "\033[38;2;253;253;253m", NULL);
  look_expect(data, "--art=auto", 0, "+@@@%*@*:", NULL);
}

/* Any IDX file: labels alone, images alone, other dimensions, one pixel. */
static void other_files_are_shown(void **state) {
  (void)state;
  Error err;
  char path[PATH_MAX];
  unsigned char bytes[24];
  for (int i = 0; i < 24; i++) bytes[i] = (unsigned char)(i * 10);
  const size_t shapes[][4] = {{24}, {4, 6}, {2, 3, 4}, {2, 3, 2, 2}, {1, 1, 1}};
  const int ranks[] = {1, 2, 3, 4, 3};
  const char *const expected[] = {"24 labels", "rows", "image 0", "channels", "all pixels are equal"};
  for (int i = 0; i < 5; i++) {
    test_path(path, sizeof path, "small-idx");
    if (idx_write(path, ranks[i], shapes[i], bytes, &err) != 0) fail_msg("%s", err.message);
    look_expect(path, "--json", 0, expected[i], NULL);
  }
  const size_t large[3] = {1, 200, 10};
  unsigned char *pixels = (unsigned char *)xcalloc(2000, 1);
  pixels[7] = 1;
  if (idx_write(path, 3, large, pixels, &err) != 0) fail_msg("%s", err.message);
  free(pixels);
  look_expect(path, NULL, 0, "Images of more than 128 x 128 pixels are not drawn.", NULL);
}

/* Exit status 1 and one sentence for files, 2 for what was typed. */
static void what_is_no_idx_file_is_refused(void **state) {
  (void)state;
  static const unsigned char image[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
  static unsigned char hostile[] = {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
  static const unsigned char floats[] = {0, 0, 13, 1, 0, 0, 0, 1, 0, 0, 0, 0};
  static const unsigned char none[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28};
  look_expect(file_of("whole", image, sizeof image), NULL, 0, "Image 0 is the bytes 16 to 19", NULL);
  look_expect(file_of("short", image, sizeof image - 1), NULL, 1, NULL,
              "is cut short: it declares 4 bytes of data and");
  look_expect(file_of("header", image, 9), NULL, 1, NULL, "is cut short inside its header");
  look_expect(file_of("hostile", hostile, sizeof hostile), NULL, 1, NULL, "declares more than 2048 MiB");
  look_expect(file_of("floats", floats, sizeof floats), NULL, 1, NULL, "elements of type 0x0d");
  look_expect(file_of("none", none, sizeof none), NULL, 1, NULL, "one of its sizes is 0");
  look_expect(file_of("text", "a text", 6), NULL, 1, NULL, "is not an IDX file");
  look_expect(file_of("empty", "", 0), NULL, 1, NULL, "is empty");
  look_expect(test_tmpdir(), NULL, 1, NULL, "is a directory; an IDX file was expected");
  look_expect("no-such-file", NULL, 1, NULL, "cannot open");
  look_expect("--data-dir=/nowhere", NULL, 1, NULL, "cannot open /nowhere/train-images-idx3-ubyte");
}

static void what_is_typed_wrong_is_explained(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  look_expect("--label=10", NULL, 2, NULL, "a whole number from 0 to 9");
  look_expect("--art=photo", NULL, 2, NULL, "auto, ascii, blocks or colour is expected");
  look_expect("--split=all", NULL, 2, NULL, "train or test is expected");
  look_expect("--sheet=-1", NULL, 2, NULL, "a whole number from 0");
  look_expect("--digits=x", NULL, 2, NULL, "a whole number from 0");
  look_expect("file", "--label=3", 2, NULL, "a file alone has no labels");
  look_expect("one", "two", 2, NULL, "one file at a time");
  look_expect("--epochs=2", NULL, 2, NULL, "unrecognized option");
  look_expect(data, "--first=60000", 2, NULL, "the file holds 60000 images");
  Subprocess run = look(data, "--first=59999", "--label=3", NULL);
  expect_run(&run, 2, NULL, "from image 59999 on there is none of this label");
  subprocess_free(&run);
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/04_idx_files/idx_files", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mnist_is_what_it_is_said_to_be),
      cmocka_unit_test(every_art_draws),
      cmocka_unit_test(other_files_are_shown),
      cmocka_unit_test(what_is_no_idx_file_is_refused),
      cmocka_unit_test(what_is_typed_wrong_is_explained),
  };
  return TEST_MAIN("idx_files_program", tests);
}

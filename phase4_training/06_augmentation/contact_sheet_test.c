/* The program contact_sheet as a user runs it. */
#include "common/program_test.h"

enum { SIDE = 20 };

/* A picture in colour, written here. */
static const char *picture(void) {
  static char path[PATH_MAX];
  Error err;
  Image image = image_new(SIDE, SIDE, 3);
  for (int i = 0; i < 3 * SIDE * SIDE; i++) image.pixels[i] = (unsigned char)(7 * i + i / 60 * 5);
  if (image_write_png(test_path(path, sizeof path, "picture.png"), &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
  return path;
}

static Subprocess sheet(const char *a, const char *b, const char *c, const char *d) {
  static char found[PATH_MAX], data[PATH_MAX + 16];
  expect_program("phase4_training", "contact_sheet", found, sizeof found);
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {found, data, a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

/* Rows of 3 and a scale of 4: the sheet's size; the same picture from both devices. */
static void both_devices_draw_the_same_sheet(void **state) {
  (void)state;
  char option[PATH_MAX + 16];
  Image cpu, gpu;
  Error err;
  snprintf(option, sizeof option, "--image=%s", picture());
  Subprocess run = sheet(option, "--epochs=3", "--device=cpu", output_dir("cpu"));
  expect_run(&run, 0, "20 x 20 pixels, 3 channels", "cpu/contact_sheet.png");
  expect_run(&run, 0, "colour:saturation=1", NULL);
  subprocess_free(&run);
  run = sheet(option, "--epochs=3", "--device=gpu", output_dir("gpu"));
  expect_run(&run, 0, "contact_sheet on GPU", NULL);
  subprocess_free(&run);
  if (image_read_rgb(in_dir("cpu", "contact_sheet.png"), &cpu, &err) != 0 ||
      image_read_rgb(in_dir("gpu", "contact_sheet.png"), &gpu, &err) != 0)
    fail_msg("%s", err.message);
  assert_true(cpu.width == gpu.width && cpu.height == gpu.height && cpu.width > 3 * 4 * SIDE);
  assert_memory_equal(cpu.pixels, gpu.pixels, 3 * (size_t)cpu.width * (size_t)cpu.height);
  image_free(&cpu);
  image_free(&gpu);
}

static void a_digit_and_one_change(void **state) {
  (void)state;
  Subprocess run = sheet("--sample=7", "--augment=cutout:9", "--json", output_dir("digit"));
  expect_run(&run, 0, "MNIST, training image 7: 28 x 28 pixels, 1 channel", NULL);
  json_t *result = expect_json(&run);
  assert_int_equal(json_integer_value(json_object_get(result, "rows")), 1);
  assert_true(file_exists(json_string_value(json_object_get(result, "sheet"))));
  json_decref(result);
  subprocess_free(&run);
}

static void what_cannot_be_drawn_is_refused(void **state) {
  (void)state;
  const struct {
    const char *option, *expected;
    int status;
  } cases[] = {{"--sample=60000", "MNIST has 60000 training images; a number from 0 to 59999 is expected", 1},
               {"--sample=-1", "--sample=-1", 2},
               {"--image=nowhere.png", "nowhere.png", 1},
               {"--augment=colour:saturation=1", "saturation needs 3 channels, and these images have 1", 1},
               {"--augment=flop", "the nearest known one is \"flip\"", 2},
               {"--epochs=17", "at most 16 are shown", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = sheet(cases[i].option, "--device=cpu", output_dir("refused"), NULL);
    expect_run(&run, cases[i].status, NULL, cases[i].expected);
    subprocess_free(&run);
  }
}

int main(void) {
  Error err;
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_devices_draw_the_same_sheet),
      cmocka_unit_test(a_digit_and_one_change),
      cmocka_unit_test(what_cannot_be_drawn_is_refused),
  };
  return TEST_MAIN("contact_sheet", tests);
}

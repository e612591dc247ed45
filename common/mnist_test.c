/* mnist_test.c - what is no set is refused; one drawing gives one digit, however it is photographed. */
#include "common/mnist.h"

#include "common/test.h"

/* ---- sets ---- */

static char directory[PATH_MAX];

static const size_t three_images[] = {3, 2, 5}, three_labels[] = {3};
static const unsigned char pixels[30] = {0, 255, 0, 255, 51, 1, 2, 3, 4, 5, 200, 100}, labels[] = {9, 0, 4};

static void put(const char *name, int rank, const size_t *shape, const unsigned char *data) {
  char path[PATH_MAX];
  Error err;
  if (idx_write(test_path(path, sizeof path, name), rank, shape, data, &err) != 0) fail_msg("%s", err.message);
}

/* Leaves one good set with the name "train". */
static int setup(void **state) {
  (void)state;
  snprintf(directory, sizeof directory, "%s", test_tmpdir());
  put("train-images-idx3-ubyte", 3, three_images, pixels);
  put("train-labels-idx1-ubyte", 1, three_labels, labels);
  return 0;
}

static void check_refused(const char *expected) {
  MnistSet set;
  Error err = {0};
  if (mnist_load(directory, "train", &set, &err) == 0) fail_msg("accepted, but expected \"%s\"", expected);
  if (strstr(err.message, directory) == NULL || strstr(err.message, expected) == NULL)
    fail_msg("expected \"%s\" and the directory in: %s", expected, err.message);
  assert_null(set.images);
}

static void test_load(void **state) {
  (void)state;
  MnistSet set;
  Error err;
  if (mnist_load(directory, "train", &set, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(set.count, 3);
  assert_int_equal(set.height, 2);
  assert_int_equal(set.width, 5);
  assert_memory_equal(set.images, pixels, 30);
  assert_memory_equal(set.labels, labels, 3);
  mnist_free(&set);
}

static void test_statistics(void **state) {
  (void)state;
  MnistSet set;
  float mean, stddev;
  assert_int_equal(mnist_load(directory, "train", &set, NULL), 0);
  mnist_statistics(&set, &mean, &stddev);
  double expected_mean = 0, expected_variance = 0;
  for (int i = 0; i < 30; i++) expected_mean += pixels[i] / 255.0 / 30;
  for (int i = 0; i < 30; i++) expected_variance += pow(pixels[i] / 255.0 - expected_mean, 2) / 30;
  assert_true(fabs(mean - expected_mean) < 1e-6);
  assert_true(fabs(stddev - sqrt(expected_variance)) < 1e-6);
  memset(set.images, 77, 30);
  mnist_statistics(&set, &mean, &stddev);
  assert_true(mean == 77 / 255.0f);
  assert_true(stddev == 0);
  mnist_free(&set);
}

static void test_refuses_sets_that_do_not_hold_together(void **state) {
  (void)state;
  const size_t two[] = {2}, none[] = {0, 2, 5}, no_labels[] = {0}, flat[] = {3, 10}, square[] = {3, 1},
               flat_images[] = {3, 0, 5}, wide[] = {3, 1, 1025};
  const unsigned char bad_labels[] = {9, 10, 4};
  unsigned char *wide_pixels = (unsigned char *)xcalloc(3, 1025);
  put("train-labels-idx1-ubyte", 1, two, labels);
  check_refused("holds 3 images, but");
  put("train-labels-idx1-ubyte", 2, square, labels);
  check_refused("has 2 dimensions; labels need 1");
  put("train-labels-idx1-ubyte", 1, three_labels, bad_labels);
  check_refused("label 1 is 10");
  setup(NULL);
  put("train-images-idx3-ubyte", 2, flat, pixels);
  check_refused("has 2 dimensions; images need 3");
  put("train-images-idx3-ubyte", 3, flat_images, pixels);
  check_refused("holds no images");
  put("train-images-idx3-ubyte", 3, wide, wide_pixels);
  check_refused("images of 1 x 1025 pixels");
  put("train-images-idx3-ubyte", 3, none, pixels);
  put("train-labels-idx1-ubyte", 1, no_labels, labels);
  check_refused("holds no images");
  free(wide_pixels);
}

static void test_refuses_missing_files(void **state) {
  (void)state;
  char path[PATH_MAX];
  unlink(test_path(path, sizeof path, "train-labels-idx1-ubyte"));
  check_refused("train-labels-idx1-ubyte");
  unlink(test_path(path, sizeof path, "train-images-idx3-ubyte"));
  check_refused("train-images-idx3-ubyte (nor ");
  snprintf(directory, sizeof directory, "/nonexistent");
  check_refused("No such file or directory");
}

/* ---- pictures ---- */

/* How a drawing is photographed: where the digit lies, how large it is, what ink and paper look like. */
typedef struct Shot {
  int width, height;
  double x, y, scale; /* of the digit's 1 x 1 square */
  double paper, ink;
  double shade, noise; /* paper darkens from left to right; every pixel is off by up to noise */
} Shot;

static double distance_to_segment(double px, double py, const double *s) {
  double dx = s[2] - s[0], dy = s[3] - s[1], t = ((px - s[0]) * dx + (py - s[1]) * dy) / (dx * dx + dy * dy);
  t = fmin(fmax(t, 0), 1);
  return hypot(px - s[0] - t * dx, py - s[1] - t * dy);
}

/* A seven with a bar, in strokes of 0.12, antialiased. */
static Image draw(const Shot *shot) {
  static const double strokes[][4] = {{0.2, 0.1, 0.8, 0.1}, {0.8, 0.1, 0.4, 0.9}, {0.35, 0.5, 0.75, 0.5}};
  Image image = image_new(shot->width, shot->height, 1);
  float *noise = (float *)xmalloc(sizeof(float) * (size_t)(shot->width * shot->height));
  test_random_fill(noise, (size_t)(shot->width * shot->height), 7); /* -1 to 2 */
  for (int i = 0; i < shot->width * shot->height; i++) {
    double px = (i % shot->width + 0.5 - shot->x) / shot->scale, py = (i / shot->width + 0.5 - shot->y) / shot->scale;
    double distance = 10;
    for (int s = 0; s < 3; s++) distance = fmin(distance, distance_to_segment(px, py, strokes[s]));
    double cover = fmin(fmax((0.06 - distance) * shot->scale + 0.5, 0), 1);
    double paper = shot->paper - shot->shade * (i % shot->width) / shot->width;
    double value = paper + cover * (shot->ink - paper) + shot->noise * (noise[i] - 0.5) / 1.5;
    image.pixels[i] = (unsigned char)lrint(fmin(fmax(value, 0), 255));
  }
  free(noise);
  return image;
}

static void convert(const Shot *shot, unsigned char *out) {
  Error err = {0};
  Image image = draw(shot);
  if (mnist_from_image(&image, out, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
}

static const Shot plain = {200, 200, 40, 40, 120, 0, 255, 0, 0};

static void test_one_drawing_gives_one_digit(void **state) {
  (void)state;
  const struct {
    const char *what;
    Shot shot;
    double tolerance; /* of the mean difference, in grey levels */
  } cases[] = {
      {"shifted", {200, 200, 3, 75, 120, 0, 255, 0, 0}, 0.5},
      {"inverted", {200, 200, 40, 40, 120, 255, 0, 0, 0}, 0.5},
      {"larger", {900, 1100, 60, 200, 800, 0, 255, 0, 0}, 5},
      {"small", {60, 50, 10, 5, 40, 255, 0, 0, 0}, 5},
      {"wide picture", {700, 90, 500, 5, 80, 255, 0, 0, 0}, 5},
      {"grey on grey", {200, 200, 40, 40, 120, 150, 70, 0, 0}, 2},
      {"light on grey", {200, 200, 40, 40, 120, 90, 200, 0, 0}, 2},
      {"noisy", {300, 300, 60, 60, 180, 210, 40, 0, 12}, 5},
      {"noisy in the shade", {300, 300, 60, 60, 180, 220, 30, 60, 8}, 10},
  };
  unsigned char expected[784], found[784];
  convert(&plain, expected);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    convert(&cases[c].shot, found);
    double sum = 0;
    for (int i = 0; i < 784; i++) sum += abs(found[i] - expected[i]) / 784.0;
    print_message("%s: mean difference %.2f\n", cases[c].what, sum);
    if (!(sum <= cases[c].tolerance)) fail_msg("%s: mean difference %.2f", cases[c].what, sum);
  }
}

static void test_form_of_mnist(void **state) {
  (void)state;
  unsigned char out[784];
  convert(&plain, out);
  double mass = 0, x = 0, y = 0;
  int top = 28, bottom = -1, largest = 0;
  for (int i = 0; i < 784; i++) {
    mass += out[i];
    x += (double)out[i] * (i % 28);
    y += (double)out[i] * (i / 28);
    if (out[i] > 0 && i / 28 < top) top = i / 28;
    if (out[i] > 0) bottom = i / 28;
    if (out[i] > largest) largest = out[i];
  }
  assert_true(fabs(x / mass - 14) <= 0.51);
  assert_true(fabs(y / mass - 14) <= 0.51);
  assert_int_equal(bottom - top + 1, 20);
  assert_int_equal(largest, 255);
  /* What is in that form already stays as it is, but for the faintest sixteenth. */
  unsigned char again[784];
  Image image = {28, 28, 1, out};
  assert_int_equal(mnist_from_image(&image, again, NULL), 0);
  for (int i = 0; i < 784; i++) assert_true(again[i] == out[i] || (again[i] == 0 && out[i] < 16));
}

/* A heavy end far from the middle must not push the other end out of the picture: a hammer, in four directions. */
static void test_nothing_is_cut_off(void **state) {
  (void)state;
  for (int turn = 0; turn < 4; turn++) {
    Image image = image_new(100, 100, 1);
    for (int i = 0; i < 10000; i++) {
      int x = turn & 1 ? i % 100 : i / 100, y = turn & 1 ? i / 100 : i % 100;
      if (turn & 2) x = 99 - x;
      if ((x > 10 && x < 90 && y == 50) || (x > 80 && x < 90 && y > 20 && y < 80)) image.pixels[i] = 0;
    }
    unsigned char out[784];
    assert_int_equal(mnist_from_image(&image, out, NULL), 0);
    image_free(&image);
    int first = 28, last = -1;
    for (int i = 0; i < 784; i++) {
      int x = turn & 1 ? i % 28 : i / 28;
      if (out[i] > 0 && x < first) first = x;
      if (out[i] > 0 && x > last) last = x;
    }
    assert_int_equal(last - first + 1, 20);
  }
}

static void test_extreme_shapes(void **state) {
  (void)state;
  const int sizes[][2] = {{1, 1}, {1, 2}, {2, 1}, {1, 1000}, {5000, 1}, {2, 2}};
  for (int s = 0; s < 6; s++)
    for (int ink = 0; ink < 256; ink += 85) {
      Image image = image_new(sizes[s][0], sizes[s][1], 1);
      image.pixels[0] = (unsigned char)ink;
      unsigned char out[784];
      Error err = {0};
      int status = mnist_from_image(&image, out, &err);
      assert_true(status == 0 || err.message[0] != '\0');
      image_free(&image);
    }
  Image line = image_new(300, 300, 1); /* thinner than a pixel once it is scaled */
  for (int y = 20; y < 280; y++) line.pixels[y * 300 + 150] = 0;
  unsigned char out[784];
  assert_int_equal(mnist_from_image(&line, out, NULL), 0);
  for (int y = 5; y < 25; y++) assert_int_equal(out[y * 28 + 14], 255);
  image_free(&line);
}

static void test_refuses_blank_paper(void **state) {
  (void)state;
  const Shot blanks[] = {
      {100, 80, 0, 0, 1, 255, 255, 0, 0},   {100, 80, 0, 0, 1, 0, 0, 0, 0},        {100, 80, 0, 0, 1, 200, 200, 0, 12},
      {100, 80, 0, 0, 1, 220, 200, 100, 8}, {100, 80, 20, 20, 60, 128, 140, 0, 0},
  };
  for (size_t b = 0; b < sizeof blanks / sizeof blanks[0]; b++) {
    Image image = draw(&blanks[b]);
    unsigned char out[784];
    Error err = {0};
    if (mnist_from_image(&image, out, &err) == 0) fail_msg("blank %zu was taken for a digit", b);
    assert_non_null(strstr(err.message, "no digit was found"));
    image_free(&image);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_load, setup),
      cmocka_unit_test_setup(test_statistics, setup),
      cmocka_unit_test_setup(test_refuses_sets_that_do_not_hold_together, setup),
      cmocka_unit_test_setup(test_refuses_missing_files, setup),
      cmocka_unit_test(test_one_drawing_gives_one_digit),
      cmocka_unit_test(test_form_of_mnist),
      cmocka_unit_test(test_nothing_is_cut_off),
      cmocka_unit_test(test_extreme_shapes),
      cmocka_unit_test(test_refuses_blank_paper),
  };
  return TEST_MAIN("mnist", tests);
}

/* The model that a run of lenet_mnist writes: its files, what it predicts, and the pictures of what it sees.
 * lenet_mnist_test tests the runs. */
#include "common/program_test.h"

static void learns_and_writes_its_results(void **state) {
  (void)state;
  Subprocess run = train(output_dir("learn"), "--epochs=2", "--json", NULL, NULL);
  expect_run(&run, 0, "confusion", NULL);
  json_t *result = expect_json(&run);
  double accuracy = json_number_value(json_object_get(result, "test_accuracy"));
  assert_true(accuracy > 0.90 && accuracy < 1); /* 4,000 images, two epochs: about 0.95 */
  assert_true(json_number_value(json_object_get(result, "train_loss")) < 0.6);
  assert_true(json_number_value(json_object_get(result, "images_per_second")) > 0);
  assert_int_equal(json_integer_value(json_object_get(result, "epochs")), 2);
  assert_string_equal(json_string_value(json_object_get(result, "program")), "lenet_mnist");
  json_decref(result);
  subprocess_free(&run);

  assert_run_files("learn");

  /* The tensors have the names and shapes that PyTorch's state_dict has. */
  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir("learn", "best.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  const char *tensors[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                           "fc1.bias",     "fc2.weight", "fc2.bias",     "fc3.weight", "fc3.bias"};
  const size_t shapes[][4] = {{6, 1, 5, 5}, {6},       {16, 6, 5, 5}, {16},     {120, 400},
                              {120},        {84, 120}, {84},          {10, 84}, {10}};
  const int ranks[] = {4, 1, 4, 1, 2, 1, 2, 1, 2, 1};
  assert_int_equal(file.count, 10);
  static float values[48000];
  for (int i = 0; i < 10; i++)
    if (safetensors_read_f32(&file, tensors[i], ranks[i], shapes[i], values, &err) != 0) fail_msg("%s", err.message);
  safetensors_close(&file);
}

/* ----------------------------------------------------------------------------------------------- it predicts */

/* A digit of the test set as a photograph would show it: `scale` times as large, dark on light, with a margin. */
static void write_digit(const MnistSet *set, int index, int scale, const char *path) {
  Error err;
  int side = 28 * scale;
  Image image = image_new(side + 40, side + 90, 1);
  memset(image.pixels, 235, (size_t)image.width * image.height);
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      int ink = set->images[(size_t)index * 784 + (y / scale) * 28 + x / scale];
      image.pixels[(size_t)(y + 60) * image.width + x + 10] = (unsigned char)(235 - ink * 200 / 255);
    }
  if (image_write_png(path, &image, &err) != 0) fail_msg("%s", err.message);
  image_free(&image);
}

static void predicts_images_of_any_size(void **state) {
  (void)state;
  Error err;
  MnistSet set;
  if (mnist_load(mnist, "t10k", &set, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < DIGITS; i++) write_digit(&set, i, 1 + 3 * i, digit_path(i));
  assert_in_range(digits_right("learn", &set, "digit3.png"), 8, DIGITS);
  mnist_free(&set);
}

static void predict_refuses_what_is_no_image(void **state) {
  (void)state;
  char path[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, "text.png"), "w");
  fputs("this is not a picture", file);
  fclose(file);
  const char *argv[] = {program, "--device=cpu", output_dir("learn"), "--predict", path, "/no/such/file.png", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "text.png");
  expect_run(&run, 1, NULL, "/no/such/file.png");
  subprocess_free(&run);
  const char *untrained[] = {program, "--device=cpu", output_dir("nothing"), "--predict", path, NULL};
  run = subprocess_run(untrained, SECONDS);
  expect_run(&run, 1, NULL, "there is no trained model yet");
  subprocess_free(&run);
}

static void a_damaged_checkpoint_is_named(void **state) {
  (void)state;
  char path[PATH_MAX], option[PATH_MAX + 16], image[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, "cut.safetensors"), "w");
  fputs("cut short", file);
  fclose(file);
  test_path(image, sizeof image, "digit3.png");
  snprintf(option, sizeof option, "--checkpoint=%s", path);
  const char *argv[] = {program, "--device=cpu", option, "--predict", image, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "cut.safetensors");
  subprocess_free(&run);
}

/* ------------------------------------------------------------------------------------- it shows what it sees */

static json_t *layer_named(json_t *layers, const char *name) {
  for (size_t i = 0; i < json_array_size(layers); i++)
    if (strcmp(json_string_value(json_object_get(json_array_get(layers, i), "node")), name) == 0)
      return json_array_get(layers, i);
  fail_msg("there is no layer %s", name);
  return NULL;
}

static double figure(json_t *object, const char *name) { return json_number_value(json_object_get(object, name)); }

static void expect_picture(const char *path, int width, int height) {
  Error err;
  Image image;
  if (image_read_rgb(path, &image, &err) != 0) fail_msg("%s", err.message);
  assert_true(image.width >= width && image.height >= height);
  image_free(&image);
}

/* Three pictures for each of 6 and of 16 filters: the strongest first, each of the test set and with its label. */
static void expect_excited(json_t *layers, const MnistSet *set, int images) {
  const int filters[] = {6, 16}, fields[] = {5, 14}, sides[] = {28, 10};
  assert_int_equal(json_array_size(layers), 2);
  for (size_t l = 0; l < 2; l++) {
    json_t *layer = json_array_get(layers, l), *all = json_object_get(layer, "filters");
    assert_int_equal(json_array_size(all), filters[l]);
    for (size_t a = 0; a < 2; a++)
      assert_int_equal(json_integer_value(json_array_get(json_object_get(layer, "receptive_field"), a)), fields[l]);
    for (size_t f = 0; f < json_array_size(all); f++) {
      json_t *top = json_array_get(all, f);
      assert_int_equal(json_array_size(top), 3);
      for (size_t k = 0; k < 3; k++) {
        json_t *peak = json_array_get(top, k);
        const int image = (int)figure(peak, "image");
        assert_in_range(image, 0, images - 1);
        assert_int_equal(figure(peak, "label"), set->labels[image]);
        assert_in_range(figure(peak, "row"), 0, sides[l] - 1);
        assert_in_range(figure(peak, "column"), 0, sides[l] - 1);
        if (k > 0) assert_true(figure(peak, "value") <= figure(json_array_get(top, k - 1), "value"));
      }
    }
  }
}

/* A ReLU that another kernel computes in training has an output of its own here. */
static void shows_what_each_layer_makes_of_a_digit(void **state) {
  (void)state;
  Error err;
  MnistSet set;
  if (mnist_load(mnist, "t10k", &set, &err) != 0) fail_msg("%s", err.message);
  char digit[PATH_MAX], features[PATH_MAX + 32];
  write_digit(&set, 3, 4, test_path(digit, sizeof digit, "shown.png"));
  snprintf(features, sizeof features, "--show-features=%s", digit);
  Subprocess run = train(output_dir("learn"), features, "--show-excited=3", "--test-images=200", "--json");
  expect_run(&run, 0, "all 12 layers are drawn in", NULL);
  expect_run(&run, 0, "all 2 layers with filters are drawn in", NULL);
  json_t *result = expect_json(&run), *layers = json_object_get(result, "layers");
  assert_int_equal(json_array_size(layers), 12);
  assert_true(figure(layer_named(layers, "conv1"), "smallest") < 0);
  assert_true(figure(layer_named(layers, "relu1"), "smallest") == 0);
  assert_true(figure(layer_named(layers, "relu3"), "smallest") == 0);
  assert_true(figure(layer_named(layers, "fc1"), "smallest") < 0);
  assert_true(figure(layer_named(layers, "pool2"), "largest") == figure(layer_named(layers, "conv2"), "largest"));
  expect_picture(json_string_value(json_object_get(result, "features")), 900, 900);
  expect_picture(json_string_value(json_object_get(result, "excited")), 500, 500);
  expect_excited(json_object_get(result, "excited_layers"), &set, 200);

  const char *argv[] = {program, "--device=cpu", output_dir("learn"), "--json", "--predict", digit, NULL};
  Subprocess predicted = subprocess_run(argv, SECONDS);
  expect_run(&predicted, 0, NULL, NULL);
  json_t *other = expect_json(&predicted);
  assert_true(
      json_equal(json_object_get(result, "prediction"), json_array_get(json_object_get(other, "predictions"), 0)));
  json_decref(other);
  json_decref(result);
  subprocess_free(&predicted);
  subprocess_free(&run);
  mnist_free(&set);
}

/* The kernel finds the same as the host. */
static void a_gpu_shows_the_same(void **state) {
  (void)state;
  Subprocess run[2];
  for (int i = 0; i < 2; i++)
    run[i] = train(output_dir("learn"), "--show-excited=1", "--test-images=20", "--json",
                   i ? "--device=gpu" : "--device=cpu");
  expect_run(&run[0], 0, NULL, NULL);
  if (!(run[1].status == 1 && strstr(run[1].err, "use --device=cpu"))) {
    expect_run(&run[1], 0, NULL, NULL);
    json_t *result[] = {expect_json(&run[0]), expect_json(&run[1])};
    for (size_t l = 0; l < 2; l++)
      for (size_t f = 0; f < (l ? 16 : 6); f++) {
        json_t *peak[2];
        for (int i = 0; i < 2; i++) {
          json_t *layer = json_array_get(json_object_get(result[i], "excited_layers"), l);
          peak[i] = json_array_get(json_array_get(json_object_get(layer, "filters"), f), 0);
        }
        assert_true(fabs(figure(peak[0], "value") - figure(peak[1], "value")) < 1e-3);
      }
    json_decref(result[0]);
    json_decref(result[1]);
  }
  subprocess_free(&run[0]);
  subprocess_free(&run[1]);
}

static void refused(const char *a, const char *b, const char *c, int status, const char *sentence) {
  Subprocess run = train(a, b, c, NULL, NULL);
  expect_run(&run, status, NULL, sentence);
  subprocess_free(&run);
}

static void what_cannot_be_shown_is_explained(void **state) {
  (void)state;
  char path[PATH_MAX], features[PATH_MAX + 32];
  FILE *file = fopen(test_path(path, sizeof path, "text.png"), "w");
  fputs("this is not a picture", file);
  fclose(file);
  snprintf(features, sizeof features, "--show-features=%s", path);
  refused(output_dir("learn"), features, NULL, 1, "text.png is not an image this program reads");
  refused(output_dir("learn"), "--show-features=/no/such/file.png", NULL, 1, "cannot open /no/such/file.png");
  refused(output_dir("nothing"), features, NULL, 1, "without --show-features), or name one with --checkpoint");
  refused(output_dir("nothing"), "--show-excited", NULL, 1, "there is no trained model yet");
  refused(features, "--resume", NULL, 2, "--show-features trains nothing; leave --resume out");
  refused("--show-excited", "--restart", NULL, 2, "--show-excited trains nothing; leave --restart out");
  refused("--show-excited", "--summary", NULL, 2, "--show-excited and --summary: one of the two");
  refused(features, "--predict", path, 2, "--predict and --show-features: one of the two");
  refused("--show-excited=0", NULL, NULL, 2, "--show-excited");
  refused("--show-excited=33", NULL, NULL, 2, "--show-excited");
  refused("--show-excited", "--hold-out=10", NULL, 2, "leave --hold-out out");
}

int main(void) {
  Error err;
  if (runfiles_find("phase3_cnn/12_lenet_mnist/lenet_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(learns_and_writes_its_results), /* the tests below use its model */
      cmocka_unit_test(predicts_images_of_any_size),
      cmocka_unit_test(predict_refuses_what_is_no_image),
      cmocka_unit_test(a_damaged_checkpoint_is_named), /* with one of these images */
      cmocka_unit_test(shows_what_each_layer_makes_of_a_digit),
      cmocka_unit_test(a_gpu_shows_the_same),
      cmocka_unit_test(what_cannot_be_shown_is_explained),
  };
  return TEST_MAIN("lenet_model", tests);
}

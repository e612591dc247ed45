/* The program fashion_mnist: what it has beyond common/nn/app.h, which lenet_mnist_test and lenet_model_test test. */
#include "common/program_test.h"

static void learns_and_writes_its_results(void **state) {
  (void)state;
  Subprocess run = train(output_dir("learn"), "--train-images=1600", "--test-images=400", "--epochs=1", "--json");
  expect_run(&run, 0, "Fashion CNN (896,522 parameters) on Fashion-MNIST", NULL);
  expect_run(&run, 0, "rows are the clothes", NULL);
  json_t *result = expect_json(&run);
  const double accuracy = json_number_value(json_object_get(result, "test_accuracy"));
  assert_true(accuracy > 0.55 && accuracy < 1); /* 25 steps: about 0.7 */
  assert_string_equal(json_string_value(json_object_get(result, "program")), "fashion_mnist");
  json_decref(result);
  subprocess_free(&run);

  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir("learn", "best.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  const char *tensors[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                           "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias"};
  const size_t shapes[][4] = {{64, 1, 3, 3}, {64}, {128, 64, 3, 3}, {128}, {256, 3200}, {256}, {10, 256}, {10}};
  const int ranks[] = {4, 1, 4, 1, 2, 1, 2, 1};
  static float values[256 * 3200];
  size_t parameters = 0;
  assert_int_equal(file.count, 8);
  for (int i = 0; i < 8; i++) {
    size_t count = 1;
    for (int d = 0; d < ranks[i]; d++) count *= shapes[i][d];
    if (safetensors_read_f32(&file, tensors[i], ranks[i], shapes[i], values, &err) != 0) fail_msg("%s", err.message);
    parameters += count;
  }
  assert_int_equal(parameters, 896522);
  safetensors_close(&file);
}

/* The same run through kernels, emulated or real: the losses differ by rounding. */
static void the_gpu_learns_the_same(void **state) {
  (void)state;
  double loss[2];
  for (int gpu = 0; gpu < 2; gpu++) {
    char data[PATH_MAX + 16];
    snprintf(data, sizeof data, "--data-dir=%s", mnist);
    const char *argv[] = {program,
                          data,
                          output_dir(gpu ? "gpu" : "cpu"),
                          gpu ? "--device=gpu" : "--device=cpu",
                          "--train-images=8",
                          "--test-images=4",
                          "--batch-size=4",
                          "--epochs=1",
                          "--lr=0.002", /* so small that rounding stays rounding */
                          "--json",
                          NULL};
    Subprocess run = subprocess_run(argv, SECONDS);
    if (run.status == 1 && strstr(run.err, "use --device=cpu")) {
      subprocess_free(&run);
      skip(); /* built for a GPU that is not here */
    }
    expect_run(&run, 0, NULL, NULL);
    json_t *result = expect_json(&run);
    loss[gpu] = json_number_value(json_object_get(result, "test_loss"));
    json_decref(result);
    subprocess_free(&run);
  }
  assert_true(loss[0] > 0.1);
  assert_true(fabs(loss[1] - loss[0]) < 1e-4 * loss[0]);
}

static void convolutions_are_computed_by_choice(void **state) {
  (void)state;
  const char *few = "--train-images=16", *test = "--test-images=4";
  Subprocess run = train(output_dir("conv"), few, test, "--epochs=1", "--conv=winograd");
  expect_run(&run, 0, "implementations conv1:winograd,conv2:winograd", NULL);
  subprocess_free(&run);
  run = train(output_dir("conv"), few, test, "--epochs=2", "--resume");
  expect_run(&run, 0, "implementations conv1:winograd,conv2:winograd", NULL);
  subprocess_free(&run);
  run = train(output_dir("conv"), few, test, "--conv=conv2:depthwise", NULL);
  expect_run(&run, 1, NULL, "--conv=conv2:depthwise: ");
  subprocess_free(&run);
}

/* A picture of the test set as a photograph would show it: larger, dark on white. */
static void predicts_what_a_picture_shows(void **state) {
  (void)state;
  enum { PICTURES = 5, SCALE = 5, SIDE = 28 * SCALE };
  Error err;
  MnistSet set;
  static char paths[PICTURES][PATH_MAX];
  const char *argv[PICTURES + 8] = {program, "--device=cpu", output_dir("learn"), "--json", "--predict"};
  if (mnist_load(mnist, "t10k", &set, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < PICTURES; i++) {
    char name[32];
    Image image = image_new(SIDE, SIDE, 1);
    for (int p = 0; p < SIDE * SIDE; p++)
      image.pixels[p] = (unsigned char)(255 - set.images[i * 784 + p / SIDE / SCALE * 28 + p % SIDE / SCALE]);
    snprintf(name, sizeof name, "thing%d.png", i);
    if (image_write_png(test_path(paths[i], sizeof paths[i], name), &image, &err) != 0) fail_msg("%s", err.message);
    image_free(&image);
    argv[5 + i] = paths[i];
  }
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, "trouser", NULL); /* the third and fourth picture */
  json_t *result = expect_json(&run), *predictions = json_object_get(result, "predictions");
  int right = 0;
  for (int i = 0; i < PICTURES; i++) {
    const json_t *top = json_object_get(json_array_get(predictions, (size_t)i), "top");
    right += json_integer_value(json_object_get(json_array_get(top, 0), "label")) == set.labels[i];
  }
  assert_in_range(right, 3, PICTURES);
  json_decref(result);
  subprocess_free(&run);
  mnist_free(&set);
}

int main(void) {
  Error err;
  if (runfiles_find("phase3_cnn/13_fashion_mnist/fashion_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/fashion_mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(learns_and_writes_its_results), /* the predictions below use its model */
      cmocka_unit_test(the_gpu_learns_the_same),
      cmocka_unit_test(convolutions_are_computed_by_choice),
      cmocka_unit_test(predicts_what_a_picture_shows),
  };
  return TEST_MAIN("fashion_mnist", tests);
}

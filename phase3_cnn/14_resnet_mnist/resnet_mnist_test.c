/* The program resnet_mnist: what it has beyond common/nn/app.h, which lenet_mnist_test and lenet_model_test test. Batch
 * norm's statistics survive a stop, a data set that stays in the host's memory gives the same bits, dropout is
 * remembered. */
#include "common/program_test.h"

#define FILTERS "--filters=4,6,8" /* small networks of the same kind */
#define FEW "--filters=1,2,2"

static void learns_and_writes_its_results(void **state) {
  (void)state;
  Subprocess run = train(output_dir("learn"), "--epochs=3", FILTERS, "--batch-size=32", "--json");
  expect_run(&run, 0, "network resnet 4,6,8 dropout 0.1: 7070 parameters", NULL);
  json_t *result = expect_json(&run);
  const double accuracy = json_number_value(json_object_get(result, "test_accuracy"));
  assert_true(accuracy > 0.8 && accuracy < 1); /* 4,000 images, three epochs, few filters: about 0.88 */
  assert_string_equal(json_string_value(json_object_get(result, "program")), "resnet_mnist");
  json_decref(result);
  subprocess_free(&run);

  /* The names and shapes of PyTorch's state_dict. */
  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir("learn", "best.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  const char *tensors[] = {
      "conv1.weight", "bn1.weight", "layer1.0.conv2.weight", "layer1.0.bn2.running_var", "layer2.0.downsample.0.weight",
      "fc1.weight",   "fc2.bias"};
  const size_t shapes[][4] = {{4, 1, 3, 3}, {4}, {6, 6, 3, 3}, {6}, {8, 6, 1, 1}, {64, 72}, {10}};
  const int ranks[] = {4, 1, 4, 1, 4, 2, 1};
  static float values[64 * 72];
  assert_int_equal(file.count, 7 * 6 + 4); /* 7 times weight; weight, bias, mean, variance, count; and fc1, fc2 */
  for (int i = 0; i < 7; i++)
    if (safetensors_read_f32(&file, tensors[i], ranks[i], shapes[i], values, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(safetensors_metadata(&file, "network"), "resnet 4,6,8 dropout 0.1");
  safetensors_close(&file);
}

/* --predict uses the network without batch norm. */
static void predicts_digits(void **state) {
  (void)state;
  Error err;
  MnistSet set;
  if (mnist_load(mnist, "t10k", &set, &err) != 0) fail_msg("%s", err.message);
  for (int i = 0; i < DIGITS; i++) {
    Image image = image_new(28, 28, 1);
    memcpy(image.pixels, set.images + i * 28 * 28, 28 * 28);
    if (image_write_png(digit_path(i), &image, &err) != 0) fail_msg("%s", err.message);
    image_free(&image);
  }
  /* the network is what the checkpoint says */
  assert_in_range(digits_right("learn", &set, "network resnet 4,6,8 dropout 0.1"), 7, DIGITS);
  mnist_free(&set);
}

/* ------------------------------------------------------------------------------------- it stops and goes on */

static void interrupted_and_resumed_equals_uninterrupted(void **state) {
  (void)state;
  Subprocess uninterrupted = three_epochs("whole", FEW, NULL);
  expect_run(&uninterrupted, 0, NULL, NULL);
  Subprocess first = start_and_signal("parts", SIGINT, 2, 0, FEW); /* after the hundredth step of 313 */
  expect_run(&first, 130, "--resume", "stopping after this step");
  Subprocess second = three_epochs("parts", "--stream", "--resume");
  expect_run(&second, 0, "resuming at epoch", NULL);
  assert_same_models("whole", "parts");
  subprocess_free(&uninterrupted);
  subprocess_free(&first);
  subprocess_free(&second);
}

/* ---------------------------------------------------------------------------- the data set in the host's memory */

static void a_streamed_set_gives_the_same_bits_cpu(void **state) {
  (void)state;
  small_must("resident", "--epochs=2", FILTERS, "--augment=affine:rotate=9,cutout:6", NULL);
  Subprocess run =
      train(output_dir("streamed"), "--train-images=640", "--stream", FILTERS, "--augment=affine:rotate=9,cutout:6");
  expect_run(&run, 0, NULL, NULL);
  assert_same_tensors(in_dir("resident", "last.state.safetensors"), in_dir("streamed", "last.state.safetensors"));
  subprocess_free(&run);
}

/* Through the kernels: 20 images in batches of 8, 8 and 4. The program must warn with `warning`; NULL: must not warn.
 * 0 where there is no GPU. */
static int train_by_kernels(const char *directory, const char *first, const char *second, const char *warning) {
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program,
                        data,
                        output_dir(directory),
                        "--train-images=20",
                        "--test-images=10",
                        "--device=gpu",
                        "--filters=3,4,5",
                        "--batch-size=8",
                        "--epochs=2",
                        first,
                        first ? second : NULL,
                        NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  const int none = run.status == 1 && strstr(run.err, "use --device=cpu"); /* built for a GPU that is not here */
  if (!none) expect_run(&run, 0, "confusion", warning);
  if (!none && !warning && strstr(run.err, "--graph")) fail_msg("no warning is expected; stderr has: %s", run.err);
  subprocess_free(&run);
  return !none;
}

static void a_streamed_set_gives_the_same_bits_gpu(void **state) {
  (void)state;
  if (!train_by_kernels("kernels", NULL, NULL, NULL)) skip();
  train_by_kernels("kernels_stream", "--stream", NULL, NULL);
  train_by_kernels("kernels_graph", "--stream", "--graph",
                   "warning: --graph records each step anew, which takes longer than to replay recorded ones: --stream "
                   "copies each batch by itself");
  assert_same_tensors(in_dir("kernels", "last.state.safetensors"), in_dir("kernels_stream", "last.state.safetensors"));
  assert_same_tensors(in_dir("kernels", "last.state.safetensors"), in_dir("kernels_graph", "last.state.safetensors"));
}

/* ------------------------------------------------------------------------------------------ dropout, other networks */

/* Dropout draws anew in each step, so that the steps cannot be recorded once: a warning names the node. With p = 0
 * nothing is drawn. */
static void a_graph_of_a_network_with_dropout_gives_the_same_bits(void **state) {
  (void)state;
  if (!train_by_kernels("dropped", NULL, NULL, NULL)) skip();
  train_by_kernels("dropped_graph", "--graph", NULL,
                   "warning: --graph records each step anew, which takes longer than to replay recorded ones: dropout1 "
                   "draws other random numbers");
  assert_same_tensors(in_dir("dropped", "last.state.safetensors"), in_dir("dropped_graph", "last.state.safetensors"));
  train_by_kernels("kept", "--dropout=0", NULL, NULL);
  train_by_kernels("kept_graph", "--dropout=0", "--graph", NULL);
  assert_same_tensors(in_dir("kept", "last.state.safetensors"), in_dir("kept_graph", "last.state.safetensors"));
  assert_true(first_value("kept", "fc2.bias", 10) != first_value("dropped", "fc2.bias", 10));
}

static void dropout_is_an_option_that_a_checkpoint_remembers(void **state) {
  (void)state;
  small_must("off", "--epochs=1", FILTERS, "--dropout=0", "network resnet 4,6,8 dropout 0: ");
  small_must("on", "--epochs=1", FILTERS, "--dropout=0.5", "network resnet 4,6,8 dropout 0.5: ");
  assert_true(first_value("on", "fc2.bias", 10) != first_value("off", "fc2.bias", 10));
  small_refused("on", "--resume", "--epochs=2", "--dropout=0",
                "this is the network \"resnet 4,6,8 dropout 0.5\", not \"resnet 4,6,8 dropout 0\"; leave --filters and "
                "--dropout out");
  small_refused("on", "--resume", "--epochs=2", "--filters=4,6,9", "not \"resnet 4,6,9 dropout 0.5\"");
  small_must("on", "--resume", "--epochs=2", NULL, "network resnet 4,6,8 dropout 0.5: ");
}

/* A last batch of one image: its 7 x 7 values are enough for batch norm. */
static void a_last_batch_of_one_image_trains(void **state) {
  (void)state;
  Subprocess run = train(output_dir("one"), "--train-images=33", "--batch-size=32", FILTERS, "--epochs=2");
  expect_run(&run, 0, "confusion", NULL);
  subprocess_free(&run);
}

/* A file with the mean and deviation of `channels` channels, and conv1 of another network. */
static const char *write_model(const char *name, const char *network, const char *mean) {
  static char path[PATH_MAX];
  static const float weights[6 * 25] = {0};
  const size_t shape[] = {6, 1, 5, 5};
  Error err;
  SafetensorsWriter out;
  memset(&out, 0, sizeof out);
  safetensors_add(&out, "conv1.weight", "F32", 4, shape, weights);
  safetensors_add_metadata(&out, "mean", mean);
  safetensors_add_metadata(&out, "stddev", mean);
  if (network) safetensors_add_metadata(&out, "network", network);
  if (safetensors_write(&out, test_path(path, sizeof path, name), &err) != 0) fail_msg("%s", err.message);
  safetensors_writer_free(&out);
  return path;
}

static void predict_refused(const char *path, const char *first, const char *second) {
  char option[PATH_MAX + 16];
  snprintf(option, sizeof option, "--checkpoint=%s", path);
  const char *argv[] = {program, "--device=cpu", option, "--predict", "some.png", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, first);
  expect_run(&run, 1, NULL, second);
  subprocess_free(&run);
}

static void another_network_is_refused(void **state) {
  (void)state;
  predict_refused(write_model("lenet.safetensors", NULL, "0.25"), "(6, 1, 5, 5)", "(16, 1, 3, 3)"); /* both shapes */
  predict_refused(write_model("mlp.safetensors", "784,128,10 relu", "0.25"), "mlp.safetensors",
                  "of the network \"784,128,10 relu\"");
  predict_refused(write_model("wide.safetensors", "resnet 9,1,99999 dropout 0.25", "0.25"), "wide.safetensors",
                  "of the network \"resnet 9,1,99999 dropout 0.25\"");
}

static void images_of_another_shape_are_refused(void **state) {
  (void)state;
  const char *argv[] = {program, "--device=cpu", "--data=cifar10", "--summary", NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "the network has an input of shape (1,28,28)");
  expect_run(&run, 1, NULL, "of shape (3,32,32)");
  subprocess_free(&run);
}

static void wrong_options_exit_with_2(void **state) {
  (void)state;
  const char *options[] = {"--dropout=1", "--dropout=x", "--filters=16,32", "--filters=16,32,0", "--filters=1,2,3,4"};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    const char *argv[] = {program, options[i], NULL};
    Subprocess run = subprocess_run(argv, SECONDS);
    expect_run(&run, 2, NULL, i < 2 ? "--dropout" : "three numbers from 1 to 4096 are expected");
    subprocess_free(&run);
  }
}

int main(void) {
  Error err;
  if (runfiles_find("phase3_cnn/14_resnet_mnist/resnet_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(learns_and_writes_its_results), /* the predictions below use its model */
      cmocka_unit_test(predicts_digits),
      cmocka_unit_test(interrupted_and_resumed_equals_uninterrupted),
      cmocka_unit_test(a_streamed_set_gives_the_same_bits_cpu),
      cmocka_unit_test(a_streamed_set_gives_the_same_bits_gpu),
      cmocka_unit_test(a_graph_of_a_network_with_dropout_gives_the_same_bits),
      cmocka_unit_test(dropout_is_an_option_that_a_checkpoint_remembers),
      cmocka_unit_test(a_last_batch_of_one_image_trains),
      cmocka_unit_test(another_network_is_refused),
      cmocka_unit_test(images_of_another_shape_are_refused),
      cmocka_unit_test(wrong_options_exit_with_2),
  };
  return TEST_MAIN("resnet_mnist", tests);
}

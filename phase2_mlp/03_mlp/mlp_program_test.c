/* The program of lesson 3 as its users meet it: it finds every fault that it is asked to make, trains what is right,
 * and survives what is wrong. */
#include "common/program_test.h"

static void gradients_are_right_and_it_learns(void **state) {
  (void)state;
  Subprocess run = train(output_dir("right"), "--json", NULL, NULL, NULL);
  expect_run(&run, 0, "network 784,128,10 relu: 101770 parameters", NULL);
  assert_int_equal(test_count(run.out, ": right\n"), 4); /* weight and bias of two layers */
  assert_int_equal(test_count(run.out, "WRONG"), 0);
  json_t *result = expect_json(&run);
  assert_true(json_number_value(json_object_get(result, "gradient_error")) < 2e-6);
  assert_true(json_number_value(json_object_get(result, "gradient_error")) > 0);
  assert_true(json_number_value(json_object_get(result, "test_accuracy")) > 0.87);
  assert_string_equal(json_string_value(json_object_get(result, "program")), "mlp");
  json_decref(result);
  subprocess_free(&run);
}

/* What is wrong shows where it must: a bend spoils what lies before it, a forgotten bias the biases alone. */
static void every_fault_is_found(void **state) {
  (void)state;
  const struct {
    const char *option;
    int right, wrong;
  } faults[] = {{"--fault=bend", 2, 2}, {"--fault=bias", 2, 2}, {"--fault=mean", 0, 4}};
  for (int i = 0; i < 3; i++) {
    Subprocess run = train(output_dir("fault"), faults[i].option, NULL, NULL, NULL);
    expect_run(&run, 1, "analytic        numeric", "the gradients are wrong: training stops before it begins");
    if (test_count(run.out, ": right\n") != faults[i].right || test_count(run.out, "WRONG") != faults[i].wrong)
      fail_msg("%s: %s", faults[i].option, run.out);
    assert_null(strstr(run.out, "train loss"));
    subprocess_free(&run);
  }
  Subprocess none = train(output_dir("fault"), "--fault=none", "--epochs=1", NULL, NULL);
  expect_run(&none, 0, "train loss", NULL);
  subprocess_free(&none);
}

static void networks_of_any_shape_are_checked_and_trained(void **state) {
  (void)state;
  const char *const networks[][4] = {
      {"--layers=784,10", "--batch-size=1", "--train-images=100", "network 784,10 relu"},
      {"--layers=784,127,3,10", "--activation=tanh", "--batch-size=65536", "network 784,127,3,10 tanh"},
      {"--layers=784,1,10", "--activation=sigmoid", "--train-images=1000", "network 784,1,10 sigmoid"},
      {"--layers=784,20,20,20,11", "--activation=leaky_relu", "--lr=0.01", "network 784,20,20,20,11 leaky_relu"},
      {"--layers=784,2,10", "--train-images=8", "--test-images=1", "8 training images, 1 test images"},
  };
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
    Subprocess run = train(output_dir("shapes"), "--epochs=1", networks[i][0], networks[i][1], networks[i][2]);
    expect_run(&run, 0, networks[i][3], NULL);
    assert_int_equal(test_count(run.out, "WRONG"), 0);
    subprocess_free(&run);
  }
}

/* A check of 40 entries would take minutes; fewer are looked at, and the output says so. */
static void a_wide_network_is_checked_in_seconds(void **state) {
  (void)state;
  Subprocess run =
      train(output_dir("wide"), "--layers=784,4096,1024,10", "--train-images=8", "--test-images=1", "--epochs=1");
  expect_run(&run, 0, "(at most 7 random entries per tensor instead of 40", NULL);
  assert_int_equal(test_count(run.out, ": right\n"), 6);
  assert_int_equal(test_count(run.out, "               7 of "), 6); /* every tensor has so many */
  subprocess_free(&run);
}

static void the_emulated_or_real_gpu_is_right_too(void **state) {
  (void)state;
  Subprocess run = train(output_dir("gpu"), "--device=gpu", "--train-images=640", "--epochs=1", NULL);
  if (run.status == 1 && strstr(run.err, "use --device=cpu")) skip(); /* built for a GPU that is not here */
  expect_run(&run, 0, "on GPU", NULL);
  assert_int_equal(test_count(run.out, ": right\n"), 4);
  subprocess_free(&run);
}

static void a_divergent_run_says_what_to_do(void **state) {
  (void)state;
  Subprocess run = train(output_dir("diverge"), "--lr=1e6", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "the loss is not finite at step");
  expect_run(&run, 1, NULL, "try --lr=100000");
  subprocess_free(&run);
  /* One step, whose loss was measured before it: only the test shows what it did. */
  run =
      train(output_dir("diverge"), "--lr=1e6", "--train-images=8", "--layers=784,64,64,64,64,64,64,64,64,10", "--json");
  expect_run(&run, 1, NULL, "the loss is not finite at step 1:");
  subprocess_free(&run);
}

static void a_full_disk_is_no_success(void **state) {
  (void)state;
  char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {
      "/bin/sh",         "-c",           "\"$0\" \"$@\" > /dev/full", program, data, "--train-images=8",
      "--test-images=1", "--device=cpu", output_dir("full"),          NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, NULL, "the results cannot be written to stdout");
  subprocess_free(&run);
}

static void what_is_wrong_is_named(void **state) {
  (void)state;
  const char *const wrong[][2] = {{"--layers=784", "two widths at least"},
                                  {"--activation=gelu", "unknown activation"},
                                  {"--fault=yes", "none, bend, bias"},
                                  {"--lr=0", "a number from"},
                                  {"--train-images=7", "from 8"},
                                  {"stray", "is not an option"},
                                  {"--layers=784,65536,65536,10", "4347133962 parameters, at most 2147483647"},
                                  {"--epochs=0", "from 1"},
                                  {"--momentum=1", "to 0.9999"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Subprocess run = train(output_dir("wrong"), wrong[i][0], NULL, NULL, NULL);
    expect_run(&run, 2, NULL, wrong[i][1]);
    subprocess_free(&run);
  }
  Subprocess run = train(output_dir("wrong"), "--layers=100,10", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "100 inputs and 10 classes; the images have 784 pixels, and 10 classes");
  subprocess_free(&run);
  run = train(output_dir("wrong"), "--layers=784,9", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "784 inputs and 9 classes");
  subprocess_free(&run);
  run = train(output_dir("wrong"), "--data-dir=/no/such/folder", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "/no/such/folder");
  subprocess_free(&run);
  run = train("--output-dir=/dev/null/below", NULL, NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "/dev/null");
  subprocess_free(&run);
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/03_mlp/mlp", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_right_and_it_learns),
      cmocka_unit_test(every_fault_is_found),
      cmocka_unit_test(networks_of_any_shape_are_checked_and_trained),
      cmocka_unit_test(a_wide_network_is_checked_in_seconds),
      cmocka_unit_test(the_emulated_or_real_gpu_is_right_too),
      cmocka_unit_test(a_divergent_run_says_what_to_do),
      cmocka_unit_test(a_full_disk_is_no_success),
      cmocka_unit_test(what_is_wrong_is_named),
  };
  return TEST_MAIN("mlp_program", tests);
}

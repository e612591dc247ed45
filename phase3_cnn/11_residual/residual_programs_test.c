/* The programs residual and residual_depth as a user runs them. */
#include <math.h>

#include "common/program_test.h"

enum { MOST_LAYERS = 16 };

static Subprocess run_depth(const char *a, const char *b, const char *c, const char *d) {
  static char found[PATH_MAX], data[PATH_MAX + 16];
  expect_program("phase3_cnn", "residual_depth", found, sizeof found);
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {found, data, "--train-images=64", "--test-images=10", "--epochs=1", "--json"};
  int n = 6;
  const char *const more[] = {a, b, c, d};
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static void the_ladder_is_right(void **state) {
  (void)state;
  expect_versions_right("phase3_cnn", "residual", "--shape=5x33", "Backward, one array for both branches, 5x33", 9);
}

/* The gradients of network `i`: layers in the object's order. */
static size_t gradients_of(const json_t *result, size_t i, double gradients[MOST_LAYERS]) {
  const json_t *row = json_array_get(json_object_get(result, "networks"), i), *list = json_object_get(row, "gradients");
  const size_t layers = json_array_size(list);
  assert_int_equal(layers, json_integer_value(json_object_get(row, "layers")));
  assert_true(layers >= 2 && layers <= MOST_LAYERS);
  for (size_t l = 0; l < layers; l++) {
    gradients[l] = json_number_value(json_array_get(list, l));
    assert_true(gradients[l] > 0);
  }
  return layers;
}

static double first_by_last(const json_t *result, size_t i) {
  double gradients[MOST_LAYERS];
  const size_t layers = gradients_of(result, i, gradients);
  return gradients[0] / gradients[layers - 1];
}

/* 16 layers with PyTorch's small weights: without a shortcut the gradient vanishes; with batch norm it grows. */
static void a_shortcut_keeps_the_gradient(void **state) {
  (void)state;
  Subprocess run = run_depth(output_dir("depth"), "--depth=4,16", "--init=torch", "--device=cpu");
  expect_run(&run, 0, "residual_depth on CPU\n", NULL);
  expect_run(&run, 0, "   16  residual, batch norm ", NULL);
  json_t *result = expect_json(&run);
  assert_string_equal(json_string_value(json_object_get(result, "program")), "residual_depth");
  assert_string_equal(json_string_value(json_object_get(result, "init")), "torch");
  assert_int_equal(json_array_size(json_object_get(result, "networks")), 8);
  const double plain = first_by_last(result, 4), plain_norm = first_by_last(result, 5),
               residual = first_by_last(result, 6), residual_norm = first_by_last(result, 7);
  print_message("first by last layer: plain %g, %g with batch norm; residual %g, %g\n", plain, plain_norm, residual,
                residual_norm);
  assert_true(plain < 0.01 && residual > 0.1 && residual < 10);
  assert_true(plain_norm > 5 && residual_norm < plain_norm / 2);
  if (strstr(run.err, "gnuplot is not installed") == NULL) {
    assert_true(file_exists(in_dir("depth", "gradients.svg")) && file_exists(in_dir("depth", "gradients.png")));
    assert_true(file_exists(in_dir("depth", "accuracy.svg")));
  }
  json_decref(result);
  subprocess_free(&run);
}

/* Kernels and the CPU's loops: the same gradients. */
static void both_devices_measure_the_same(void **state) {
  (void)state;
  const char *const devices[] = {"--device=cpu", "--device=gpu"};
  double gradients[2][4][MOST_LAYERS];
  for (int d = 0; d < 2; d++) {
    Subprocess run = run_depth(output_dir("devices"), "--depth=2", devices[d], NULL);
    expect_run(&run, 0, NULL, NULL);
    json_t *result = expect_json(&run);
    for (size_t i = 0; i < 4; i++) assert_int_equal(gradients_of(result, i, gradients[d][i]), 2);
    json_decref(result);
    subprocess_free(&run);
  }
  for (int i = 0; i < 4; i++)
    for (int l = 0; l < 2; l++)
      if (!(fabs(gradients[1][i][l] / gradients[0][i][l] - 1) < 1e-3))
        fail_msg("network %d, layer %d: %g and %g", i, l + 1, gradients[0][i][l], gradients[1][i][l]);
}

/* A network that diverges is a result, and has no figures; the others follow. */
static void divergence_is_reported(void **state) {
  (void)state;
  Subprocess run = run_depth(output_dir("diverged"), "--depth=2", "--lr=1e6", "--device=cpu");
  expect_run(&run, 0, "   diverged\n", NULL);
  json_t *result = expect_json(&run), *row;
  size_t i, without = 0;
  json_array_foreach(json_object_get(result, "networks"), i, row) {
    without += json_object_get(row, "test_accuracy") == NULL;
    assert_int_equal(json_array_size(json_object_get(row, "gradients")), 2);
  }
  assert_true(without >= 1);
  json_decref(result);
  subprocess_free(&run);
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--depth=3", "--depth=3: up to 8 even numbers from 2 to 128 are expected"},
      {"--depth=", "--depth=: up to 8"},
      {"--depth=4,", "--depth=4,: up to 8"},
      {"--depth=4;8", "--depth=4;8: up to 8"},
      {"--depth=2,2,2,2,2,2,2,2,2", "up to 8"},
      {"--init=small", "--init: unknown initialisation \"small\"; expected he_normal"},
      {"--channels=0", "--channels=0: a whole number from 1 to 256 is expected"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_depth(cases[i][0], NULL, NULL, NULL);
    expect_run(&run, 2, NULL, cases[i][1]);
    subprocess_free(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_ladder_is_right),           cmocka_unit_test(a_shortcut_keeps_the_gradient),
      cmocka_unit_test(both_devices_measure_the_same), cmocka_unit_test(divergence_is_reported),
      cmocka_unit_test(wrong_options_are_refused),
  };
  Error err;
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  return TEST_MAIN("residual_programs", tests);
}

/* The programs lr_schedules and lr_kernels as a user runs them. */
#include <math.h>

#include "common/program_test.h"

static Subprocess run_program(const char *a, const char *b, const char *c, const char *d) {
  static char found[PATH_MAX], data[PATH_MAX + 16];
  expect_program("phase4_training", "lr_schedules", found, sizeof found);
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {found, data, "--train-images=200", "--test-images=50", "--json"};
  const char *const more[] = {a, b, c, d};
  int n = 5;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static void every_kernel_is_right(void **state) {
  (void)state;
  expect_versions_right("phase4_training", "lr_kernels", "--shape=4999", "Smoothed losses, 4999", 5);
}

/* All of them: each has its row and its figures, and no two that differ in their rates have the same ones. */
static void all_schedules_are_compared(void **state) {
  (void)state;
  Subprocess run = run_program(output_dir("all"), "--epochs=4", "--device=cpu", "--lr=0.05");
  expect_run(&run, 0, "lr_schedules on CPU\n", NULL);
  json_t *result = expect_json(&run), *runs = json_object_get(result, "runs");
  static const char *const names[] = {"constant", "linear",   "step",    "exponential",
                                      "cosine",   "onecycle", "plateau", "cosine:cycles=3"};
  assert_int_equal(json_array_size(runs), 8);
  double loss[8];
  for (size_t i = 0; i < 8; i++) {
    const json_t *row = json_array_get(runs, i);
    assert_string_equal(json_string_value(json_object_get(row, "schedule")), names[i]);
    loss[i] = json_number_value(json_object_get(row, "test_loss"));
    assert_true(loss[i] > 0 && loss[i] < 2.3); /* ln 10: has learned nothing */
    for (size_t k = 0; k < i; k++)
      if (loss[k] == loss[i] && strcmp(names[i], "plateau") != 0) /* without a plateau: as constant */
        fail_msg("%s and %s: %.17g", names[k], names[i], loss[i]);
  }
  if (strstr(run.err, "gnuplot is not installed") == NULL)
    assert_true(file_exists(in_dir("all", "schedules.svg")) && file_exists(in_dir("all", "losses.png")));
  json_decref(result);
  subprocess_free(&run);
}

/* A diverged network is a result without figures. The kernels learn, too. */
static void divergence_is_reported(void **state) {
  (void)state;
  Subprocess run = run_program(output_dir("diverged"), "--epochs=4", "--lr=1e6", "--schedule=constant");
  expect_run(&run, 0, "diverged\n", NULL);
  json_t *result = expect_json(&run), *row = json_array_get(json_object_get(result, "runs"), 0);
  assert_int_equal(json_array_size(json_object_get(result, "runs")), 1);
  assert_null(json_object_get(row, "test_loss"));
  json_decref(result);
  subprocess_free(&run);
  run = run_program(output_dir("kernels"), "--epochs=1", "--device=gpu", "--schedule=onecycle:up=0.5");
  expect_run(&run, 0, "onecycle:up=0.5 ", NULL);
  subprocess_free(&run);
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--schedule=cosine:cycle=3",
       "--schedule=cosine:cycle=3: cosine has no parameter \"cycle\"; did you mean cycles?"},
      {"--schedule=triangle", "--schedule=triangle: constant, linear,"},
      {"--augment=shift", "unrecognized option"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_program(cases[i][0], NULL, NULL, NULL);
    expect_run(&run, 2, NULL, cases[i][1]);
    subprocess_free(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_is_right),
      cmocka_unit_test(all_schedules_are_compared),
      cmocka_unit_test(divergence_is_reported),
      cmocka_unit_test(wrong_options_are_refused),
  };
  Error err;
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  return TEST_MAIN("lr_schedules", tests);
}

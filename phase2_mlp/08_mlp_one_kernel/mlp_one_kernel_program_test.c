/* The program mlp_one_kernel as its users meet it: every version learns what the CPU does; what is typed wrong. */
#include "common/program_test.h"

static Subprocess train_with(const char *a, const char *b, const char *c, const char *d) {
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program, data, a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

static void train_expect(const char *a, const char *b, int status, const char *out, const char *err) {
  Subprocess run = train_with(a, b, NULL, NULL);
  expect_run(&run, status, out, err);
  subprocess_free(&run);
}

/* Losses within 1e-4 of the CPU's, the last step smaller, and the same accuracy by the first version and the last. */
static void all_versions_learn_the_same(void **state) {
  (void)state;
  Subprocess run = train_with("--train-images=300", "--test-images=200", "--epochs=2", "--json");
  expect_run(&run, 0, "Test accuracy, by layers and by flags", NULL);
  json_t *object = expect_json(&run), *rows = json_object_get(object, "rows"), *row;
  assert_int_equal(json_integer_value(json_object_get(object, "steps")), 5);
  const char *const names[] = {"layers", "step_graph", "fused", "graph", "grid_sync", "barrier", "flags"};
  assert_int_equal(json_array_size(rows), 7);
  size_t i;
  double accuracy = json_number_value(json_object_get(json_array_get(rows, 0), "test_accuracy"));
  json_array_foreach(rows, i, row) {
    assert_string_equal(json_string_value(json_object_get(row, "version")), names[i]);
    assert_true(json_is_true(json_object_get(row, "ok")));
    assert_true(json_number_value(json_object_get(row, "error")) < 1e-5);
    assert_true(fabs(json_number_value(json_object_get(row, "test_accuracy")) - accuracy) <= 0.01);
  }
  assert_true(json_number_value(json_object_get(json_array_get(rows, 1), "launches")) == 5);
  assert_true(json_number_value(json_object_get(json_array_get(rows, 2), "kernels")) == 15);
  assert_true(json_number_value(json_object_get(json_array_get(rows, 3), "launches")) == 1);
  assert_true(json_number_value(json_object_get(json_array_get(rows, 6), "kernels")) == 1);
  assert_true(accuracy > 0.2); /* chance is 0.1 */
  assert_true(fabs(json_number_value(json_object_get(object, "test_accuracy")) -
                   json_number_value(json_object_get(object, "layers_test_accuracy"))) <= 0.02);
  json_decref(object);
  subprocess_free(&run);
}

static void one_version_or_the_cpu(void **state) {
  (void)state;
  Subprocess run = train_with("--train-images=100", "--test-images=100", "--batch-size=64", "--only=flags");
  expect_run(&run, 0, "flags", NULL);
  assert_null(strstr(run.out, "grid_sync"));
  subprocess_free(&run);
  train_expect("--device=cpu", "--train-images=1000", 0, "layer by layer on the CPU: ", NULL);
}

/* Seven slices of 8 groups are more blocks than the emulated GPU runs at the same time: the others are shown, and why
 * these are not. A real GPU may have room for them. */
static void what_does_not_fit_is_left_out(void **state) {
  (void)state;
  Subprocess run = train_with("--train-images=20", "--test-images=20", "--hidden=64", "--epochs=1");
  assert_non_null(
      strstr(run.out, " 1         15 ")); /* the smaller last step is all there is: 15 kernels, one launch */
  if (strstr(run.out, "emulated GPU") != NULL) {
    expect_run(&run, 0, "Test accuracy, by layers and by graph", "note: without flags: 784-64-10 takes 56 blocks");
    assert_null(strstr(run.out, "grid_sync"));
  }
  subprocess_free(&run);
  run = train_with("--train-images=20", "--test-images=20", "--hidden=64", "--only=flags");
  if (strstr(run.out, "emulated GPU") != NULL)
    expect_run(&run, 1, NULL, "this GPU has room for 32: enough for 32 hidden");
  subprocess_free(&run);
}

/* Losses far above 1 differ by more than 1e-4, and rightly so; infinite ones end it. */
static void learning_rates_that_diverge(void **state) {
  (void)state;
  Subprocess run = train_with("--train-images=300", "--test-images=20", "--epochs=1", "--lr=5");
  expect_run(&run, 0, "Test accuracy", NULL);
  assert_null(strstr(run.out, "WRONG"));
  subprocess_free(&run);
  train_expect("--train-images=2000", "--lr=1e6", 1, NULL, "the loss is not finite at step ");
  train_expect("--device=cpu", "--lr=1e6", 1, NULL, "try a learning rate below --lr=1e+06");
}

static void what_is_typed_wrong_is_explained(void **state) {
  (void)state;
  train_expect("--help", NULL, 0, "--only=NAME", NULL);
  train_expect("--batch-size=65", NULL, 2, NULL, "these kernels take at most 64 images per step");
  train_expect("--hidden=129", NULL, 2, NULL, "--hidden=129: a whole number from 1 to 128 is expected");
  train_expect("--only=fastest", NULL, 2, NULL, "--only=fastest: there are layers, step_graph");
  train_expect("--train-images=60001", NULL, 1, NULL, "--train-images=60001");
  train_expect("--data-dir=/nowhere", NULL, 1, NULL, "/nowhere");
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/08_mlp_one_kernel/mlp_one_kernel", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_versions_learn_the_same),      cmocka_unit_test(one_version_or_the_cpu),
      cmocka_unit_test(what_does_not_fit_is_left_out),    cmocka_unit_test(learning_rates_that_diverge),
      cmocka_unit_test(what_is_typed_wrong_is_explained),
  };
  return TEST_MAIN("mlp_one_kernel_program", tests);
}

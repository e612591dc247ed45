/* The programs of this lesson as a user runs them; and the options --label-smoothing, --mixup and --ema of all programs
 * that train, by one of them. */
#include <math.h>

#include "common/program_test.h"

/* ---- the lesson's programs ---- */

static void every_kernel_is_right(void **state) {
  (void)state;
  expect_versions_right("phase4_training", "regularization_kernels", "--shape=9x1100", NULL, 8);
  expect_versions_right("phase4_training", "ema", "--shape=5x1003", NULL, 3);
}

static Subprocess compare_methods(const char *directory, const char *a, const char *b, const char *c, const char *d) {
  char found[PATH_MAX], data[PATH_MAX + 16];
  expect_program("phase4_training", "regularization", found, sizeof found);
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {found, data, output_dir(directory), "--train-images=120", "--test-images=100", "--json"};
  const char *const more[] = {a, b, c, d};
  int n = 6;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

/* All methods, and no two of them end alike. */
static void all_methods_are_compared(void **state) {
  (void)state;
  Subprocess run = compare_methods("all", "--epochs=3", "--seeds=2", "--device=cpu", NULL);
  expect_run(&run, 0, "mean of 2 seeds ± standard deviation", NULL);
  json_t *result = expect_json(&run), *runs = json_object_get(result, "runs");
  static const char *const names[] = {"none",     "l2:0.005", "dropout:0.5", "label_smoothing:0.1", "mixup:0.4",
                                      "ema:0.98", "together", "adam",        "adam_l2:0.01",        "adamw:0.3"};
  assert_int_equal(json_array_size(runs), 10);
  double loss[10];
  for (size_t i = 0; i < 10; i++) {
    const json_t *row = json_array_get(runs, i);
    assert_string_equal(json_string_value(json_object_get(row, "method")), names[i]);
    loss[i] = json_number_value(json_object_get(row, "test_loss"));
    const double gap = json_number_value(json_object_get(row, "gap"));
    assert_true(loss[i] > 0 && loss[i] < 2.4); /* ln 10: has learned nothing */
    assert_true(fabs(loss[i] - json_number_value(json_object_get(row, "train_loss")) - gap) < 1e-9);
    assert_true(json_number_value(json_object_get(row, "test_loss_spread")) > 0);
    for (size_t k = 0; k < i; k++)
      if (loss[k] == loss[i]) fail_msg("%s and %s: %.17g", names[k], names[i], loss[i]);
  }
  json_decref(result);
  subprocess_free(&run);
  static char text[1 << 16];
  text[test_read_file(in_dir("all", "curves.csv"), text, sizeof text - 1)] = '\0';
  assert_int_equal(test_count(text, "\n"), 1 + 10 * 3);
  assert_non_null(strstr(text, "method,epoch,train_loss,train_accuracy,test_loss,test_accuracy\nnone,1,"));
}

/* Strengths of one method; without a second seed there is no spread; the kernels learn, too; divergence is a result. */
static void strengths_are_compared(void **state) {
  (void)state;
  Subprocess run = compare_methods("strengths", "--method=mixup:0.1", "--method=mixup:1", "--epochs=2", "--seeds=1");
  expect_run(&run, 0, "mixup:0.1 ", NULL);
  json_t *result = expect_json(&run), *runs = json_object_get(result, "runs");
  assert_int_equal(json_array_size(runs), 2);
  assert_null(json_object_get(json_array_get(runs, 0), "test_loss_spread"));
  json_decref(result);
  subprocess_free(&run);
  run = compare_methods("kernels", "--method=together", "--device=gpu", "--epochs=1", "--seeds=1");
  expect_run(&run, 0, "together ", NULL);
  subprocess_free(&run);
  run = compare_methods("diverged", "--method=none", "--lr=1e6", "--epochs=4", NULL);
  expect_run(&run, 0, " diverged\n", NULL);
  subprocess_free(&run);
}

static void wrong_methods_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--method=cutout", "--method=cutout: one of none, l2, dropout,"},
      {"--method=mixup:-1", "--method=mixup=-1: a number from 0 to 100 is expected"},
      {"--method=ema:1", "--method=ema=1: a number from 0 to 0.9999 is expected"},
      {"--method=none:3", "--method=none:3: none has no strength; say --method=none"},
      {"--seeds=0", "--seeds=0: a whole number from 1 to 20 is expected"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = compare_methods("refused", cases[i][0], NULL, NULL, NULL);
    expect_run(&run, 2, NULL, cases[i][1]);
    subprocess_free(&run);
  }
}

/* ---- the options of all programs ---- */

static void wrong_options_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--label-smoothing=1.5", "--label-smoothing=1.5: a number from 0 to 0.99 is expected"},
      {"--label-smoothing=nan", "--label-smoothing=nan: a number from 0 to 0.99 is expected"},
      {"--mixup=-1", "--mixup=-1: a number from 0 to 100 is expected"},
      {"--ema=1", "--ema=1: a number from 0 to 0.9999 is expected"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = small("refused", cases[i][0], "--epochs=1", NULL);
    expect_run(&run, 2, "", cases[i][1]);
    subprocess_free(&run);
  }
}

/* Stopped after an epoch, and resumed without being named again: the same bits, of the weights and of the averages. */
static void a_resumed_run_is_the_same(void **state) {
  (void)state;
  const char *says = ", labels smoothed by 0.1, mixup 0.4, weights averaged by 0.9, schedule constant";
  const char *ema = "--ema=0.9";
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  for (int epochs = 2; epochs > 0; epochs--) {
    const char *argv[] = {program,
                          data,
                          output_dir(epochs == 2 ? "whole" : "parts"),
                          "--train-images=640",
                          "--test-images=200",
                          "--device=cpu",
                          epochs == 2 ? "--epochs=2" : "--epochs=1",
                          "--schedule=constant",
                          "--label-smoothing=0.1",
                          "--mixup=0.4",
                          ema,
                          NULL};
    Subprocess run = subprocess_run(argv, SECONDS);
    expect_run(&run, 0, says, NULL);
    subprocess_free(&run);
  }
  Subprocess run = train(output_dir("parts"), "--train-images=640", "--test-images=200", "--ema=0.5", "--resume");
  expect_run(&run, 1, NULL, "was started with --ema=0.9; leave the option out");
  subprocess_free(&run);
  run = train(output_dir("parts"), "--train-images=640", "--test-images=200", "--epochs=2", "--resume");
  expect_run(&run, 0, says, NULL);
  subprocess_free(&run);
  assert_same_models("whole", "parts");
}

static void read_tensor(const char *file_name, const char *tensor, float *values) {
  Error err;
  SafetensorsFile file;
  const size_t shape[] = {128};
  if (safetensors_open(in_dir("averages", file_name), &file, &err) != 0 ||
      safetensors_read_f32(&file, tensor, 1, shape, values, &err) != 0)
    fail_msg("%s", err.message);
  safetensors_close(&file);
}

/* The model, which --predict reads, is the average; the state has both. */
static void the_model_is_the_average(void **state) {
  (void)state;
  float model[128], weights[128], average[128];
  small_must("averages", "--epochs=1", "--ema=0.95", NULL, "weights averaged by 0.95");
  read_tensor("last.safetensors", "fc1.bias", model);
  read_tensor("last.state.safetensors", "fc1.bias", weights);
  read_tensor("last.state.safetensors", "average.fc1.bias", average);
  assert_memory_equal(model, average, sizeof model);
  assert_memory_not_equal(model, weights, sizeof model);
  read_tensor("best.safetensors", "fc1.bias", model);
  assert_memory_equal(model, average, sizeof model);
}

/* Recorded steps, which read what changes in the GPU's memory, have the same bits. */
static void recorded_steps_are_the_same(void **state) {
  (void)state;
  for (int graph = 0; graph < 2; graph++) {
    const char *argv[16] = {program,
                            NULL,
                            output_dir(graph ? "recorded" : "launched"),
                            "--train-images=200",
                            "--test-images=50",
                            "--device=gpu",
                            "--epochs=2",
                            "--batch-size=16",
                            "--mixup=1",
                            "--label-smoothing=0.2",
                            "--ema=0.8",
                            graph ? "--graph" : NULL};
    static char data[PATH_MAX + 16];
    snprintf(data, sizeof data, "--data-dir=%s", mnist);
    argv[1] = data;
    Subprocess run = subprocess_run(argv, SECONDS);
    if (run.status == 1 && strstr(run.err, "use --device=cpu")) skip(); /* built for a GPU that is not here */
    expect_run(&run, 0, "mixup 1", NULL);
    assert_null(strstr(run.err, "--graph records each step anew"));
    subprocess_free(&run);
  }
  assert_same_models("launched", "recorded");
}

/* --profile has a row for each of them, and --summary the memory. */
static void they_are_counted(void **state) {
  (void)state;
  double bytes[2];
  Subprocess run = small("profile", "--profile", "--mixup=0.4", "--clip-norm=1");
  expect_run(&run, 0, "mix ", NULL);
  expect_run(&run, 0, "clip ", NULL);
  subprocess_free(&run);
  run = small("profile", "--profile", "--ema=0.9", NULL);
  expect_run(&run, 0, "average ", NULL);
  subprocess_free(&run);
  for (int i = 0; i < 2; i++) {
    run = small("summary", "--summary", "--json", i ? "--ema=0.9" : NULL);
    json_t *result = expect_json(&run);
    bytes[i] = json_number_value(json_object_get(result, "training_bytes"));
    json_decref(result);
    subprocess_free(&run);
  }
  assert_true(bytes[1] - bytes[0] == 101770 * sizeof(float));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_is_right),     cmocka_unit_test(all_methods_are_compared),
      cmocka_unit_test(strengths_are_compared),    cmocka_unit_test(wrong_methods_are_refused),
      cmocka_unit_test(wrong_options_are_refused), cmocka_unit_test(a_resumed_run_is_the_same),
      cmocka_unit_test(the_model_is_the_average),  cmocka_unit_test(recorded_steps_are_the_same),
      cmocka_unit_test(they_are_counted),
  };
  Error err;
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  expect_program("phase2_mlp", "mlp_mnist", program, sizeof program);
  return TEST_MAIN("regularization", tests);
}

/* The program runtime_duel, as its users meet it: contenders that are missing, wrong, mute or gone are rows with a
 * reason. The contender of PyTorch is replaced by scripts of the test with --python. */
#include "common/program_test.h"
#include "phase5_production/10_onnx_runtime/test_ort.h"

#include <sys/stat.h>

static char colours[PATH_MAX];

/* --python= a script of the test with this content behind its first line. */
static const char *python(const char *name, const char *content) {
  static char option[PATH_MAX + 16], path[PATH_MAX];
  FILE *file = fopen(test_path(path, sizeof path, name), "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/bash\nfor option in \"$@\"; do case $option in --y=*) y=${option#--y=} ;; esac; done\n%s",
          content);
  fclose(file);
  chmod(path, 0755);
  snprintf(option, sizeof option, "--python=%s", path);
  return option;
}

/* A short duel of these contenders, with one more option or NULL. Status 0, or 1 where somebody fell out on the way. */
static Subprocess duel(const char *only, const char *option, const char *more) {
  const char *argv[] = {program,
                        "--device=cpu",
                        only,
                        output_dir("charts"),
                        "--rounds=2",
                        "--seconds=0.01",
                        "--batch-size=3",
                        "--threads=1",
                        colours,
                        "--json",
                        "--starts=1",
                        option,
                        option ? more : NULL,
                        NULL};
  return subprocess_run(argv, SECONDS);
}

/* The contender's row of the JSON. */
static json_t *row_of(const json_t *result, const char *contender) {
  json_t *rows = json_object_get(result, "rows"), *row;
  size_t i;
  json_array_foreach(rows, i, row) {
    if (strcmp(json_string_value(json_object_get(row, "contender")), contender) == 0) return row;
  }
  fail_msg("there is no row of %s", contender);
  return NULL;
}

/* The row of PyTorch, in a duel with another, has this reason. */
static void expect_reason_beside(const char *other, const char *option, int status, const char *words) {
  char only[64];
  snprintf(only, sizeof only, "--only=%s,torch_cpu", other);
  Subprocess said = duel(only, option, NULL);
  if (said.status != status) fail_msg("exit status %d (expected %d)\n%s%s", said.status, status, said.out, said.err);
  json_t *result = expect_json(&said), *row = row_of(result, "torch_cpu");
  const char *reason = json_string_value(json_object_get(row, "reason"));
  if (reason == NULL || strstr(reason, words) == NULL) fail_msg("expected \"%s\" in: %s", words, reason ? reason : "-");
  assert_null(json_object_get(row, "batch1_p50_us")); /* what was not measured is absent */
  json_decref(result);
  subprocess_free(&said);
}

static void expect_reason(const char *option, int status, const char *words) {
  expect_reason_beside("engine_cpu", option, status, words);
}

static void need_ort(void) {
  Ort ort;
  ort_required(&ort);
  ort_close(&ort);
}

static void a_duel_has_a_table_and_a_chart(void **state) {
  (void)state;
  need_ort();
  Subprocess said = duel("--only=ort_cpu,tensorrt", NULL, NULL);
  expect_run(&said, 0, "colours, a sample of 3 x 8 x 8; answers are compared with those of ONNX Runtime, CPU", NULL);
  expect_run(&said, 0, "TensorRT                        fp16   its lesson comes later", NULL);
  json_t *result = expect_json(&said), *row = row_of(result, "ort_cpu");
  assert_true(json_number_value(json_object_get(row, "batch1_p50_us")) > 0);
  assert_true(json_number_value(json_object_get(row, "batch1_p99_us")) >=
              json_number_value(json_object_get(row, "batch1_p50_us")));
  assert_true(json_number_value(json_object_get(row, "images_per_second")) > 0);
  assert_true(json_number_value(json_object_get(row, "first_answer_seconds")) > 0);
  assert_true(json_number_value(json_object_get(row, "disk_bytes")) > 1e7);
  assert_int_equal(json_integer_value(json_object_get(row, "samples")), 4); /* one, then three */
  assert_int_equal(json_integer_value(json_object_get(row, "same_class")), 4);
  assert_true(file_exists(in_dir("charts", "colours.svg")));
  json_decref(result);
  subprocess_free(&said);
}

/* Debian's PyTorch, if it is there, reads the same file and gives the same numbers. */
static void pytorch_agrees(void **state) {
  (void)state;
  Subprocess said = duel("--only=engine_cpu,torch_cpu", NULL, NULL);
  json_t *result = expect_json(&said), *row = row_of(result, "torch_cpu");
  const char *reason = json_string_value(json_object_get(row, "reason"));
  if (reason && strstr(reason, "No module named")) {
    print_message("skipped: %s\n", reason);
    json_decref(result);
    subprocess_free(&said);
    skip();
  }
  if (reason) fail_msg("%s", reason);
  assert_true(json_number_value(json_object_get(row, "difference")) < 1e-5);
  json_decref(result);
  subprocess_free(&said);
}

/* Ours and ONNX Runtime. */
static void the_engine_agrees(void **state) {
  (void)state;
  need_ort();
  Subprocess said = duel("--only=ort_cpu,engine_cpu", NULL, NULL);
  expect_run(&said, 0, "answers are compared with those of ONNX Runtime, CPU", NULL);
  json_t *result = expect_json(&said), *row = row_of(result, "engine_cpu");
  assert_true(json_number_value(json_object_get(row, "difference")) < 1e-5);
  assert_int_equal(json_integer_value(json_object_get(row, "same_class")), 4);
  json_decref(result);
  subprocess_free(&said);
}

static void a_python_that_is_missing_is_a_reason(void **state) {
  (void)state;
  expect_reason("--python=/nowhere/python", 0, "/nowhere/python cannot be started: No such file");
  expect_reason(python("without", "echo '{\"missing\": \"there is no torch\"}'\n"), 0, "there is no torch");
}

static void a_contender_that_ends_is_a_reason(void **state) {
  (void)state;
  expect_reason(python("ends", "echo some words >&2; exit 3\n"), 0, "some words");
  expect_reason(python("mute", "exit 3\n"), 0, "it ended without a word");
  expect_reason(python("talks", "echo hello\n"), 0, "it answered \"hello\"");
  expect_reason(python("later", "echo '{\"first\":1}'; read; echo gone >&2; exit 1\n"), 1, "gone");
}

/* Another output than the reference's: never measured, and the duel has failed. */
static void a_contender_that_is_wrong_is_not_measured(void **state) {
  (void)state;
  need_ort(); /* the reference */
  expect_reason_beside(
      "ort_cpu",
      python("wrong", "echo '{\"first\":1}'\nread\nhead -c 16 /dev/zero > \"$y\"\necho '{\"ready\":1}'\nread\n"), 1,
      "its answers differ from ONNX Runtime, CPU by ");
  expect_reason_beside("ort_cpu",
                       python("nan",
                              "echo '{\"first\":1}'\nread\nprintf '\\0\\0\\300\\177%.0s' 1 2 3 4 > \"$y\"\n"
                              "echo '{\"ready\":1}'\nread\n"),
                       1, "its answers differ from ONNX Runtime, CPU by nan");
  expect_reason_beside(
      "ort_cpu",
      python("short", "echo '{\"first\":1}'\nread\nhead -c 8 /dev/zero > \"$y\"\necho '{\"ready\":1}'\nread\n"), 1,
      "its output has another size than the reference's");
  expect_reason_beside("ort_cpu", python("none", "echo '{\"first\":1}'\nread\necho '{\"ready\":1}'\nread\n"), 1,
                       "its output has another size than the reference's");
}

/* PyTorch's row stands before the engine's: it would be the reference. Another takes its place. */
static void a_reference_that_is_gone_is_replaced(void **state) {
  (void)state;
  static const char *const scripts[][2] = {{"read; exit 1\n", "it ended without a word"},
                                           {"read; echo '{\"ready\":1}'; read\n", "its output is not there"}};
  for (int i = 0; i < 2; i++) {
    char script[128];
    snprintf(script, sizeof script, "echo '{\"first\":1}'\n%s", scripts[i][0]);
    Subprocess said = duel("--only=engine_cpu,torch_cpu", python(i ? "silent" : "gone", script), NULL);
    expect_run(&said, 1, "answers are compared with those of our engine, CPU", NULL);
    json_t *result = expect_json(&said), *row = row_of(result, "engine_cpu");
    assert_non_null(strstr(json_string_value(json_object_get(row_of(result, "torch_cpu"), "reason")), scripts[i][1]));
    assert_int_equal(json_integer_value(json_object_get(row, "same_class")), 4); /* with itself, but compared */
    json_decref(result);
    subprocess_free(&said);
  }
}

/* Who was asked for has a row, also where it cannot fight. */
static void a_contender_of_another_device_has_a_row(void **state) {
  (void)state;
  Subprocess said = duel("--only=engine_cpu,engine,engine_cpu_int8", NULL, NULL);
  expect_run(&said, 0, "it computes on a GPU; give --device=gpu", NULL);
  expect_run(&said, 0, "there is no quantised model, NAME.int8.onnx beside NAME.onnx", NULL);
  subprocess_free(&said);
}

static void refused(const char *argument, int status, const char *sentence) {
  const char *argv[] = {program, "--device=cpu", output_dir("charts"), argument, NULL};
  Subprocess said = subprocess_run(argv, SECONDS);
  expect_run(&said, status, NULL, sentence);
  subprocess_free(&said);
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  refused("--only=ort", 2, "there is no contender \"ort\"; there are ort_cpu, ort_cpu_int8");
  refused("--rounds=2", 2, "the .onnx files of models are expected");
  refused("/nowhere.onnx", 1, "cannot open /nowhere.onnx");
  refused("/etc/passwd", 1, "/etc/passwd is no ONNX file");
}

int main(void) {
  Error err;
  expect_program("phase5_production", "runtime_duel", program, sizeof program);
  if (runfiles_find("phase5_production/10_onnx_runtime/testdata/colours.onnx", colours, sizeof colours, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_duel_has_a_table_and_a_chart),
                                     cmocka_unit_test(the_engine_agrees),
                                     cmocka_unit_test(pytorch_agrees),
                                     cmocka_unit_test(a_python_that_is_missing_is_a_reason),
                                     cmocka_unit_test(a_contender_that_ends_is_a_reason),
                                     cmocka_unit_test(a_contender_that_is_wrong_is_not_measured),
                                     cmocka_unit_test(a_reference_that_is_gone_is_replaced),
                                     cmocka_unit_test(a_contender_of_another_device_has_a_row),
                                     cmocka_unit_test(wrong_arguments_are_refused)};
  return TEST_MAIN("runtime_duel", tests);
}

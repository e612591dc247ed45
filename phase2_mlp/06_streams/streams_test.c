/* The lesson about streams as its users meet it: tables, JSON, pictures, other orders of the streams, bad input. */
#include "common/program_test.h"

static Subprocess run_streams(const char *a, const char *b, const char *c, const char *d) {
  const char *argv[] = {program, a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

/* On a GPU times, else steps; never both, and what was not measured is not there. */
static void every_version_is_right(void **state) {
  (void)state;
  static const char *const names[] = {"pageable", "pinned", "overlapped", "staged", "mapped", "resident"};
  Subprocess run = run_streams("--batches=5", "--batch-size=3", "--hidden=7", "--json");
  expect_run(&run, 0, "Timelines, by the number of the batch", "");
  json_t *object = expect_json(&run), *rows = json_object_get(object, "rows"), *row;
  assert_string_equal(json_string_value(json_object_get(object, "lesson")), "streams");
  assert_int_equal(json_integer_value(json_object_get(object, "batches")), 5);
  assert_int_equal(json_integer_value(json_object_get(object, "batch_size")), 3);
  assert_int_equal(json_integer_value(json_object_get(object, "hidden_units")), 7);
  assert_int_equal(json_array_size(rows), 6);
  const int emulated = strstr(run.out, "emulated GPU") != NULL;
  const double work = json_number_value(json_object_get(json_array_get(rows, 5), "steps"));
  size_t i;
  json_array_foreach(rows, i, row) {
    assert_string_equal(json_string_value(json_object_get(row, "version")), names[i]);
    assert_true(json_is_true(json_object_get(row, "ok")));
    assert_true(json_number_value(json_object_get(row, "error")) <=
                json_number_value(json_object_get(row, "tolerance")));
    assert_int_equal(json_object_get(row, "steps") != NULL, emulated);
    assert_int_equal(json_object_get(row, "time_us") != NULL, !emulated);
    assert_int_equal(json_object_get(row, "hidden") != NULL, !emulated && i < 5);
    const json_t *spans = json_object_get(row, emulated ? "spans_steps" : "spans_ms");
    assert_int_equal(json_array_size(json_object_get(spans, "copy")), i < 4 ? 5 : 0);
    assert_int_equal(json_array_size(json_object_get(spans, "work")), 5);
    if (!emulated) continue;
    /* all copies are seen, the first alone, or none */
    assert_true(json_number_value(json_object_get(row, "steps")) == work + (i < 2 ? 5 : i < 4 ? 1 : 0));
  }
  assert_int_equal(json_object_get(object, "bandwidth") != NULL, !emulated);
  assert_int_equal(strstr(run.out, "emulated times mean nothing") != NULL, emulated);
  if (emulated) assert_true(strstr(run.out, " ms ") == NULL && strstr(run.out, "GB/s") == NULL);
  json_decref(object);
  subprocess_free(&run);
}

static void pictures_are_drawn(void **state) {
  (void)state;
  static const char *const files[] = {"timelines.svg", "pageable.svg", "overlapped.svg", "resident.svg"};
  if (system("command -v gnuplot > /dev/null") != 0) skip();
  Subprocess run = run_streams("--batches=3", "--batch-size=2", "--hidden=3", output_dir("pictures"));
  expect_run(&run, 0, "Drawn: ", "");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    assert_int_equal(access(in_dir("pictures", files[i]), F_OK), 0);
  subprocess_free(&run);
}

static void other_orders_of_the_streams(void **state) {
  (void)state;
  static const char *const modes[] = {"lazy", "random:1", "random:2"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    setenv("SIMT_STREAMS", modes[i], 1);
    Subprocess run = run_streams("--batches=7", "--batch-size=2", "--hidden=3", NULL);
    unsetenv("SIMT_STREAMS");
    expect_run(&run, 0, "overlapped", "");
    assert_null(strstr(run.out, "WRONG"));
    subprocess_free(&run);
  }
}

static void one_version_alone_and_the_reference_alone(void **state) {
  (void)state;
  Subprocess run = run_streams("--only=staged", "--batches=2", "--batch-size=1", "--hidden=1");
  expect_run(&run, 0, "staged: ", "");
  assert_null(strstr(run.out, "Timelines"));
  subprocess_free(&run);
  run = run_streams("--only=overlapped", "--batches=2", "--batch-size=1", "--json");
  expect_run(&run, 0, "overlapped: ", "");
  json_t *alone = expect_json(&run), *rows = json_object_get(alone, "rows"), *row = json_array_get(rows, 0);
  assert_int_equal(json_array_size(rows), 1);
  assert_string_equal(json_string_value(json_object_get(row, "version")), "overlapped");
  assert_true(json_is_true(json_object_get(row, "ok")));
  assert_null(json_object_get(row, "time_us"));
  if (strstr(run.out, "emulated GPU")) {
    assert_true(json_integer_value(json_object_get(row, "steps")) > 0);
    assert_int_equal(json_array_size(json_object_get(json_object_get(row, "spans_steps"), "copy")), 2);
  }
  json_decref(alone);
  subprocess_free(&run);
  run = run_streams("--device=cpu", "--batches=1", "--batch-size=1", "--json");
  expect_run(&run, 0, "streams on CPU", "");
  json_t *object = expect_json(&run);
  assert_null(json_object_get(object, "rows"));
  assert_true(json_number_value(json_object_get(object, "cpu_us")) > 0);
  json_decref(object);
  subprocess_free(&run);
}

static void a_full_disk_is_no_success(void **state) {
  (void)state;
  const char *argv[] = {"/bin/sh", "-c", "exec \"$0\" --only=pinned --batches=1 --batch-size=1 > /dev/full", program,
                        NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 1, "", "the results cannot be written to stdout");
  subprocess_free(&run);
}

static void what_is_typed_wrong(void **state) {
  (void)state;
  static const struct {
    const char *typed, *said;
  } wrong[] = {{"--batches=0", "--batches=0: a whole number from 1 to 1000 is expected"},
               {"--batches=1001", "from 1 to 1000"},
               {"--hidden=many", "--hidden=many: a whole number from 1 to 16384 is expected"},
               {"--rounds=-1", "from 1 to 101"},
               {"--batch-size=0", "--batch-size=0"},
               {"--only=fast", "--only=fast: pageable, pinned, overlapped, staged, mapped or resident is expected"},
               {"--device=tpu", "cpu or gpu is expected"},
               {"images", "takes no other arguments"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    Subprocess run = run_streams(wrong[i].typed, NULL, NULL, NULL);
    expect_run(&run, 2, "", wrong[i].said);
    subprocess_free(&run);
  }
  Subprocess run = run_streams("--batches=1000", "--batch-size=65536", "--hidden=16384", NULL);
  expect_run(&run, 2, "", "--hidden=16384 --rounds=");
  subprocess_free(&run);
  /* Few FLOPs, many images: these take minutes on any machine, however much memory it has. */
  run = run_streams("--device=cpu", "--batches=1000", "--batch-size=65536", "--hidden=1");
  expect_run(&run, 2, "", "; try --batches=");
  subprocess_free(&run);
  run = run_streams("--device=cpu", "--batches=1000", "--batch-size=8192", "--hidden=2048"); /* 6 GB of images */
  expect_run(&run, 2, "", "would take too long; try --batches=");
  subprocess_free(&run);
  run = run_streams("--batches=1000", "--batch-size=65536", "--hidden=1", NULL);
  expect_run(&run, 2, "", "--rounds=");
  expect_run(&run, 2, "", "; try --batch");
  subprocess_free(&run);
  run = run_streams("--batches=1000", "--batch-size=600", "--hidden=1", "--rounds=101");
  if (strstr(run.err, "emulated GPU")) expect_run(&run, 2, "", "try --batch-size=300 or less, with --rounds=1");
  subprocess_free(&run);
  run = run_streams("--batch-size=1", "--hidden=16384", "--rounds=101", NULL);
  if (strstr(run.err, "emulated GPU")) expect_run(&run, 2, "", "try --rounds=1 ");
  subprocess_free(&run);
  /* too much for an emulated GPU, which is not asked for */
  run = run_streams("--device=cpu", "--batches=60", "--batch-size=600", "--hidden=1");
  expect_run(&run, 0, "60 batches of 600 images", "");
  subprocess_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_version_is_right),      cmocka_unit_test(pictures_are_drawn),
      cmocka_unit_test(other_orders_of_the_streams), cmocka_unit_test(one_version_alone_and_the_reference_alone),
      cmocka_unit_test(a_full_disk_is_no_success),   cmocka_unit_test(what_is_typed_wrong),
  };
  Error err;
  if (runfiles_find("phase2_mlp/06_streams/streams", program, sizeof program, &err) != 0) die("%s", err.message);
  return TEST_MAIN("streams", tests);
}

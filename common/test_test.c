/* The glue itself: a child process runs a group of tests of which some fail, the parent reads what came of it. */
#include "common/test.h"

static void passes(void **state) {
  (void)state;
  const float x[] = {1, 2, 3};
  assert_close(x, x, 3, 0, 0);
}

static void fails(void **state) {
  (void)state;
  const float x[] = {1, 2, 3}, y[] = {1, 2, NAN};
  assert_close(y, x, 3, 1e-5, 0);
}

static void skips(void **state) {
  (void)state;
  skip();
}

static void crashes(void **state) {
  (void)state;
  raise(SIGSEGV);
}

static char xml[512];

static void run_group(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(passes), cmocka_unit_test(fails), cmocka_unit_test(skips),
                                     cmocka_unit_test(crashes)};
  exit(TEST_MAIN("children", tests));
}

/* A new process, not a fork alone: cmocka 2 has the XML of this group open already. */
static void run_group_anew(void) {
  setenv("XML_OUTPUT_FILE", xml, 1);
  setenv("TEST_OF_TEST", "1", 1);
  unsetenv("TESTBRIDGE_TEST_ONLY");
  execl("/proc/self/exe", "test_test", (char *)NULL);
  die("/proc/self/exe: %s", strerror(errno));
}

static void run_filtered(void) {
  setenv("TESTBRIDGE_TEST_ONLY", "pass*", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(passes), cmocka_unit_test(fails)};
  exit(TEST_MAIN("children", tests));
}

static void failure_reaches_exit_status_log_and_xml(void **state) {
  (void)state;
  char log[8192], text[8192];
  FILE *file = fopen(test_path(xml, sizeof xml, "children.xml"), "w");
  assert_non_null(file);
  fputs("of an earlier run", file);
  fclose(file);
  /* Not by an assertion, whose failure might be lost in the same way. */
  if (test_fork(run_group_anew, log, sizeof log) != 1) die("a group with failures must exit with 1");
  file = fopen(xml, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);

  const char *diagnosis = "1 of 3 elements is wrong, worst at element 2: NaN where 3 was expected";
  assert_non_null(strstr(log, diagnosis));
  assert_non_null(strstr(log, "test_test.c:"));
  assert_non_null(strstr(log, "[  FAILED  ] fails"));
  assert_non_null(strstr(log, "[  SKIPPED ] skips"));
  assert_non_null(strstr(log, "[  FAILED  ] crashes"));
  assert_non_null(strstr(text, "tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\""));
  assert_non_null(strstr(text, diagnosis));
  assert_null(strstr(text, "earlier"));
}

static void filter_of_bazel_is_obeyed(void **state) {
  (void)state;
  char log[8192];
  assert_int_equal(test_fork(run_filtered, log, sizeof log), 0);
  assert_non_null(strstr(log, "passes"));
  assert_null(strstr(log, "fails"));
}

static void is_killed(void) { raise(SIGKILL); }

static void writes_much(void) {
  for (int i = 0; i < 100000; i++) putchar('x');
}

static void child_gives_status_and_output(void **state) {
  (void)state;
  char output[16];
  assert_int_equal(test_fork(is_killed, output, sizeof output), 128 + SIGKILL);
  assert_string_equal(output, "");
  assert_int_equal(test_fork(writes_much, output, sizeof output), 0);
  assert_string_equal(output, "xxxxxxxxxxxxxxx");
}

static void directory_is_writable(void **state) {
  (void)state;
  char path[512];
  assert_string_equal(test_tmpdir(), test_tmpdir());
  FILE *file = fopen(test_path(path, sizeof path, "probe"), "w");
  assert_non_null(file);
  fclose(file);
  assert_int_equal(unlink(path), 0);
}

static void random_fill_is_seeded_and_asymmetric(void **state) {
  (void)state;
  enum { N = 10007 };
  static float x[N], y[N];
  test_random_fill(x, N, 1);
  test_random_fill(y, 33, 1);
  assert_memory_equal(x, y, 33 * sizeof *x);
  test_random_fill(y, N, 2);
  double sum = 0;
  size_t same = 0;
  for (size_t i = 0; i < N; i++) {
    assert_true(x[i] >= -1 && x[i] < 2);
    sum += x[i];
    same += x[i] == y[i];
  }
  assert_true(fabs(sum / N - 0.5) < 0.05);
  assert_true(same < 10);
}

int main(void) {
  if (getenv("TEST_OF_TEST") != NULL) run_group();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failure_reaches_exit_status_log_and_xml), cmocka_unit_test(filter_of_bazel_is_obeyed),
      cmocka_unit_test(child_gives_status_and_output),           cmocka_unit_test(directory_is_writable),
      cmocka_unit_test(random_fill_is_seeded_and_asymmetric),
  };
  return TEST_MAIN("test", tests);
}

/* The program engine, as its users meet it: a plan is built, run and shown, and what cannot be done is one sentence,
 * status 1 or 2, and no file lost. */
#include <sys/stat.h>

#include "common/expect.h"
#include "common/runfiles.h"

enum { SECONDS = 120 };

static char program[PATH_MAX], model[PATH_MAX], plan[PATH_MAX];

static Subprocess run(const char *a, const char *b, const char *c, const char *d, const char *e) {
  const char *argv[8] = {program, a, b, c, d, e, "--device=cpu", NULL}, **end = argv + 1;
  for (int i = 1; i < 7; i++)
    if (argv[i]) *end++ = argv[i];
  *end = NULL;
  return subprocess_run(argv, SECONDS);
}

static void expect(int status, const char *out, const char *says, const char *a, const char *b, const char *c,
                   const char *d, const char *e) {
  Subprocess own = run(a, b, c, d, e);
  expect_run(&own, status, out, says);
  subprocess_free(&own);
}

static long file_size(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

/* The model that the tests may spoil. */
static int set_up(void **state) {
  (void)state;
  char from[PATH_MAX];
  Error err;
  if (runfiles_find("phase5_production/10_onnx_runtime/testdata/colours.onnx", from, sizeof from, &err) != 0)
    fail_msg("%s", err.message);
  test_path(model, sizeof model, "colours.onnx");
  test_path(plan, sizeof plan, "colours.nnplan");
  FILE *in = fopen(from, "rb"), *out = fopen(model, "wb");
  assert_true(in != NULL && out != NULL);
  for (int byte; (byte = fgetc(in)) != EOF;) assert_int_not_equal(fputc(byte, out), EOF);
  assert_int_equal(fclose(out), 0);
  fclose(in);
  return 0;
}

static void a_plan_is_built_and_run(void **state) {
  (void)state;
  expect(0, "memory planned", NULL, "build", model, "-o", plan, "--max-batch=2");
  assert_true(file_size(plan) > 0);
  expect(0, NULL, NULL, "run", plan, "--random", "--top=2", NULL);
  expect(0, NULL, NULL, "bench", plan, "--json", NULL, NULL);
}

/* The model would be lost, and the plan cannot be made again without it. */
static void a_model_is_not_overwritten(void **state) {
  (void)state;
  char link_name[PATH_MAX];
  const long before = file_size(model);
  expect(1, NULL, "is the model itself", "build", model, "-o", model, NULL);
  test_path(link_name, sizeof link_name, "link.onnx");
  assert_int_equal(symlink(model, link_name), 0);
  expect(1, NULL, "is the model itself", "show", model, "-o", link_name, NULL);
  assert_int_equal(file_size(model), before);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  expect(2, NULL, "build, run, bench or show", "build", NULL, NULL, NULL, NULL);
  expect(2, NULL, "-o FILE.nnplan", "build", model, NULL, NULL, NULL);
  expect(1, NULL, "nowhere.onnx", "run", "nowhere.onnx", "--random", NULL, NULL);
  expect(2, NULL, "--max-batch", "run", model, "--random", "--max-batch=0", NULL);
  assert_int_equal(truncate(model, file_size(model) - 1), 0);
  expect(1, NULL, "cut short", "run", model, "--random", NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_plan_is_built_and_run, set_up),
      cmocka_unit_test_setup(a_model_is_not_overwritten, set_up),
      cmocka_unit_test_setup(bad_input_is_refused, set_up),
  };
  expect_program("phase5_production", "engine", program, sizeof program);
  return TEST_MAIN("engine_program", tests);
}

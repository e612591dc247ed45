/* The programs of this phase's lessons as a user runs them: small shapes, shapes that there are not, what is drawn, and
 * how many lessons and exercises there are said to be. That every version is right is in the lessons' own tests and
 * recorded outputs; lr_schedules and contact_sheet have tests of their own. */
#include "common/course_counts.h"

#include <ctype.h>
#include <math.h>

enum { SECONDS = 120 };

static Subprocess run_lesson(const char *name, const char *a, const char *b) {
  static char program[PATH_MAX];
  expect_program("phase4_training", name, program, sizeof program);
  const char *argv[] = {program, a, b, NULL};
  return subprocess_run(argv, SECONDS);
}

/* At least so many rows, each of which is right or a copy, which computes nothing. */
static void check_rows(const char *name, const char *shape, const char *expected, size_t least) {
  Subprocess run = run_lesson(name, "--json", shape);
  expect_run(&run, 0, expected, "");
  json_t *object = expect_json(&run), *row;
  size_t r, checked = 0;
  json_array_foreach(json_object_get(object, "rows"), r, row) {
    const json_t *ok = json_object_get(row, "ok");
    if (ok && !json_is_true(ok)) fail_msg("%s: row %zu is wrong", name, r);
    checked += ok != NULL;
  }
  if (checked < least) fail_msg("%s %s: %zu rows were checked; expected are %zu at least", name, shape, checked, least);
  json_decref(object);
  subprocess_free(&run);
}

static void small_shapes_are_right(void **state) {
  (void)state;
  check_rows("sgd", "--shape=5x1003", "flat", 6);
  check_rows("lr_kernels", "--shape=1003", "Smoothed losses", 5);
  check_rows("augmentation", "--shape=3x3x9x12", "Augmentation", 4);
  check_rows("search_kernels", "--shape=3x33", "The first step of k trials", 4);
  check_rows("loss_scale", "--shape=1003x2", "The loss scale of each step", 7);
}

static void shapes_that_there_are_not_are_refused(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"sgd", "--shape=193x1000", "193 tensors: a table has room for "},
      {"adam", "--shape=200x1000", "200 tensors: a table has room for "},
      {"muon", "--shape=161x2x2", "161 matrices: a table has room for "},
      {"rmsprop", "--shape=0x1000", "2 sizes of at least 1 are expected"},
      {"loss_scale", "--shape=1003", "2 sizes of at least 1 are expected"},
      {"lr_kernels", "--shape=0", "a size of at least 1 is expected"},
      {"search_kernels", "--shape=0x3", "2 sizes of at least 1 are expected"},
      {"augmentation", "--shape=3x3x9", "4 sizes of at least 1 are expected"},
      {"sgd", "--only=fastest", "--only=fastest: there is no such version; there are\n"},
      {"augmentation", "--only=fastest", "--only=fastest: there is no such version; there are\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_lesson(cases[i][0], cases[i][1], NULL);
    expect_run(&run, 2, "", cases[i][2]);
    subprocess_free(&run);
  }
}

/* A picture that a README shows is what the program draws: the same text, with numbers that differ by a pixel at most,
 * because the processor's rounding has a say in a path. */
static void expect_same_picture(const char *drawn, const char *name) {
  Error err;
  char path[PATH_MAX], runfile[128];
  static char text[1 << 20];
  snprintf(runfile, sizeof runfile, "phase4_training/03_rmsprop/%s", name);
  if (runfiles_find(runfile, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  text[test_read_file(path, text, sizeof text - 1)] = '\0';
  for (char *a = (char *)drawn, *b = text; *a || *b;) {
    const int number = isdigit((unsigned char)a[*a == '-']) && isdigit((unsigned char)b[*b == '-']);
    const double x = number ? strtod(a, &a) : *a++, y = number ? strtod(b, &b) : *b++;
    if (!(fabs(x - y) <= (number ? 1 : 0)))
      fail_msg("%s is not what optimizer_paths draws; copy it there from runs/optimizer_paths", runfile);
  }
}

/* Five paths on each map; in the animated one each of five dots has two coordinates that change. */
static void the_paths_are_drawn(void **state) {
  (void)state;
  char option[PATH_MAX], path[PATH_MAX];
  static char text[1 << 20];
  snprintf(option, sizeof option, "--output-dir=%s/paths", test_tmpdir());
  Subprocess run = run_lesson("optimizer_paths", option, NULL);
  expect_run(&run, 0, "Rosenbrock's function", NULL);
  subprocess_free(&run);
  static const char *const files[] = {"valley.svg", "rosenbrock.svg", "valley_animated.svg", "rosenbrock_animated.svg"};
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/paths/%s", test_tmpdir(), files[i]);
    text[test_read_file(path, text, sizeof text - 1)] = '\0';
    assert_int_equal(test_count(text, "<polyline"), 5);
    assert_int_equal(test_count(text, "<animate "), i < 2 ? 0 : 10);
    assert_int_equal(test_count(text, "nan"), 0);
    assert_non_null(strstr(text, ">Adam</text>"));
    assert_non_null(strstr(text, "</svg>"));
    if (i >= 2) expect_same_picture(text, files[i]);
  }
  run = run_lesson("optimizer_paths", "--output-dir=/proc/no", NULL);
  expect_run(&run, 1, NULL, "--output-dir: ");
  subprocess_free(&run);
}

static void lessons_and_exercises_are_as_many_as_said(void **state) {
  (void)state;
  expect_course_counts("phase4_training", 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_shapes_are_right),
      cmocka_unit_test(shapes_that_there_are_not_are_refused),
      cmocka_unit_test(the_paths_are_drawn),
      cmocka_unit_test(lessons_and_exercises_are_as_many_as_said),
  };
  return TEST_MAIN("lessons", tests);
}

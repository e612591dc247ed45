/* The programs of the convolution lessons as a user runs them: every version is right or refuses the shape with a
 * reason; the table and the JSON; shapes that no convolution has, and what is typed wrong. A new program adds a line to
 * `programs`, and its label to the BUILD file. */
#include "common/expect.h"
#include "common/runfiles.h"

enum { SECONDS = 120 };

/* A shape that is quick in the emulator, how many rows there are at least, and a shape that some version refuses: NULL
 * where each takes all shapes. rows 0: the program takes long even then, and its recorded_test runs it; here it only
 * has to refuse. */
static const struct {
  const char *name, *shape;
  size_t rows;
  const char *refused_shape, *refused_version, *refusal;
} programs[] = {
    {"conv2d_naive", "2x3x9x8x5x3x3:stride=2x1:padding=1", 4, "1x4x6x5x4x3x3:groups=2", "tiled",
     "tiled computes convolutions of one group with dilation 1; this one is (1,4,6,5) with (4,2,3,3), stride 1 x 1, "
     "padding 0 x 0, 2 groups: use naive"},
    {"conv2d_im2col", NULL, 0, "64x16x512x512x1x31x31:padding=15", "matrix",
     "64x16x512x512x1x31x31:padding=15 is too large a shape: it needs "},
    {"conv2d_implicit_gemm", NULL, 0, "1x1x300x300x1x299x299", "halo",
     "halo keeps what 8 x 32 pixels read of a channel in shared memory; for (1,1,300,300) with (1,1,299,299), stride 1 "
     "x "
     "1, padding 0 x 0 this takes 3264752 bytes, and a block has at most "},
    {"conv2d_tensor_core", NULL, 0, NULL, NULL, NULL},
    {"conv2d_winograd", NULL, 0, "1x4x6x5x4x5x5", "winograd2_fused",
     "winograd computes 3 x 3 filters with stride 1, dilation 1 and 1 group; this one is (1,4,6,5) with (4,4,5,5), "
     "stride 1 x 1, padding 0 x 0: use implicit_gemm"},
    {"conv2d_fft", NULL, 0, "1x4x6x5x4x3x3:stride=2", "tiled",
     "with stride 1, dilation 1 and one group; this one is (1,4,6,5) with (4,4,3,3), stride 2 x 2, padding 0 x 0: use "
     "implicit_gemm"},
    {"conv2d_backward", NULL, 0, "1x4x6x5x4x3x3:groups=2", "weight_tiled",
     "tiled computes convolutions of one group with dilation 1; this one is (1,4,6,5) with (4,2,3,3), stride 1 x 1, "
     "padding 0 x 0, 2 groups: use naive"},
    {"conv2d_depthwise", "2x3x9x8x3x3x3:padding=1:groups=3", 4, "1x4x6x5x4x3x3:groups=2", "strip",
     "depthwise convolution has as many groups as channels; this one is (1,4,6,5) with (4,2,3,3), stride 1 x 1, "
     "padding 0 x 0, 2 groups: use implicit_gemm"},
    {"conv2d_transposed", "2x3x5x4x5x3x3:stride=2:padding=1", 2, NULL, NULL, NULL},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static Subprocess run_lesson(const char *name, const char *a, const char *b, const char *c) {
  static char program[PATH_MAX];
  expect_program("phase3_cnn", name, program, sizeof program);
  const char *argv[] = {program, a, b, c, NULL};
  return subprocess_run(argv, SECONDS);
}

static double number(const json_t *row, const char *key) {
  const json_t *value = json_object_get(row, key);
  if (!json_is_number(value)) fail_msg("%s: no number %s", json_string_value(json_object_get(row, "version")), key);
  return json_number_value(value);
}

/* The rows of a run with --json; each is right, refused, or somebody else's copy. Returns how many were refused. */
static size_t check_rows(const char *name, const json_t *object, size_t at_least, const char *shape) {
  const json_t *rows = json_object_get(object, "rows"), *row;
  size_t i, refused = 0;
  assert_string_equal(json_string_value(json_object_get(object, "lesson")), name);
  assert_string_equal(json_string_value(json_object_get(object, "device")), "gpu");
  if (json_array_size(rows) < at_least) fail_msg("%s has %zu rows", name, json_array_size(rows));
  json_array_foreach(rows, i, row) {
    const char *version = json_string_value(json_object_get(row, "version"));
    assert_string_equal(json_string_value(json_object_get(row, "shape")), shape);
    if (json_object_get(row, "refused") != NULL) { /* a figure that was not measured is absent */
      assert_true(json_is_string(json_object_get(row, "refused")));
      assert_null(json_object_get(row, "ok"));
      assert_null(json_object_get(row, "time_us"));
      assert_null(json_object_get(row, "gflops"));
      assert_null(json_object_get(row, "memory_bytes"));
      refused++;
    } else if (json_object_get(row, "ok") != NULL) {
      if (!json_is_true(json_object_get(row, "ok"))) fail_msg("%s: %s is wrong", name, version);
      assert_true(number(row, "error") <= number(row, "tolerance"));
      if (json_object_get(row, "time_us") != NULL) assert_true(number(row, "time_us") > 0 && number(row, "gflops") > 0);
    } else if (strcmp(version, "device copy") != 0) {
      fail_msg("%s: %s was not checked", name, version);
    }
  }
  return refused;
}

static void every_version_is_right(void **state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; i++) {
    char shape[128];
    if (programs[i].rows == 0) continue;
    snprintf(shape, sizeof shape, "--shape=%s", programs[i].shape);
    Subprocess run = run_lesson(programs[i].name, "--json", "--seed=3", shape);
    expect_run(&run, 0, "checked on", "");
    expect_run(&run, 0, programs[i].shape, "");
    json_t *object = expect_json(&run);
    check_rows(programs[i].name, object, programs[i].rows, programs[i].shape);
    json_decref(object);
    subprocess_free(&run);
  }
}

static void a_check_measures_nothing(void **state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; i++) {
    char shape[128];
    if (programs[i].rows == 0) continue;
    snprintf(shape, sizeof shape, "--shape=%s", programs[i].shape);
    Subprocess run = run_lesson(programs[i].name, "--json", "--check-only", shape);
    expect_run(&run, 0, "tolerance", "");
    json_t *object = expect_json(&run), *row;
    size_t r;
    check_rows(programs[i].name, object, programs[i].rows, programs[i].shape);
    json_array_foreach(json_object_get(object, "rows"), r, row) assert_null(json_object_get(row, "time_us"));
    json_decref(object);
    subprocess_free(&run);
  }
}

/* It stands in the table with the reason. */
static void check_refused_row(size_t i, const char *shape) {
  char not_this[512];
  snprintf(not_this, sizeof not_this, "    Not this shape: %s.\n", programs[i].refusal);
  Subprocess run = run_lesson(programs[i].name, "--json", shape, NULL);
  expect_run(&run, 0, not_this, "");
  json_t *object = expect_json(&run), *row;
  assert_true(check_rows(programs[i].name, object, programs[i].rows, programs[i].refused_shape) >= 1);
  size_t r, found = 0;
  json_array_foreach(json_object_get(object, "rows"), r, row) {
    if (strcmp(json_string_value(json_object_get(row, "version")), programs[i].refused_version) != 0) continue;
    assert_string_equal(json_string_value(json_object_get(row, "refused")), programs[i].refusal);
    found++;
  }
  assert_int_equal(found, 1);
  json_decref(object);
  subprocess_free(&run);
}

/* Alone, there is nothing to do. */
static void a_version_refuses_a_shape_with_a_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; i++) {
    char shape[128], only[64];
    if (programs[i].refused_shape == NULL) continue;
    snprintf(shape, sizeof shape, "--shape=%s", programs[i].refused_shape);
    snprintf(only, sizeof only, "--only=%s", programs[i].refused_version);
    if (programs[i].rows > 0) check_refused_row(i, shape);
    Subprocess run = run_lesson(programs[i].name, only, shape, NULL);
    expect_run(&run, 2, "", programs[i].refusal);
    subprocess_free(&run);
  }
}

/* On an emulated GPU, whose memory is small; a real one computes it. The tables of the copies would need that memory,
 * too, but with --only nothing depends on them. */
static void a_workspace_larger_than_the_memory_is_refused(void **state) {
  (void)state;
  Subprocess run = run_lesson("conv2d_im2col", "--only=all_images", "--shape=4x4x200x200x1x21x21:padding=10", NULL);
  if (strstr(run.out, "emulated GPU") != NULL)
    expect_run(&run, 2, "",
               "on 4x4x200x200x1x21x21:padding=10 it needs a workspace of 1.06 GiB beside arrays of 0.00 GiB");
  else
    expect_run(&run, 0, "one launch", "");
  subprocess_free(&run);
}

/* The same sentences from all programs. */
static void impossible_convolutions_are_refused(void **state) {
  (void)state;
  const struct {
    const char *option, *expected;
  } cases[] = {
      {"--shape=1x2x4x4x2x5x3", "the filter spans 5 x 3, and the padded image is 4 x 4; use a smaller filter"},
      {"--shape=1x2x4x4x2x3x3:dilation=2", "the filter spans 5 x 5, and the padded image is 4 x 4"},
      {"--shape=1x2x4x4x2x3x3:stride=0", "stride 0 x 0, padding 0 x 0: the stride must be at least 1"},
      {"--shape=1x2x4x4x2x3x3:stride=1x0", "stride 1 x 0"},
      {"--shape=1x2x4x4x2x3x3:dilation=0x1", "the dilation must be at least 1"},
      {"--shape=1x3x4x4x2x3x3:groups=2", "groups must divide the 3 channels and the 2 filters"},
      {"--shape=1x4x4x4x3x3x3:groups=2", "groups must divide the 4 channels and the 3 filters"},
      {"--shape=1x4x4x4x4x3x3:groups=0", "0 groups: groups must divide"},
      {"--shape=1x1x40000x40000x1x3x3", "an image or the filters hold more than"},
      {"--shape=1x2x4x4x2x3x3:padding=2147483647", "an image or the filters hold more than"},
      {"--shape=1x2x4x4x2x3x3:padding=-1", "padding=-1: a number of at least 0 is expected, or one for each axis"},
      {"--shape=1x2x4x4x2x3x3:padding=1x2x3", "padding=1x2x3: a number of at least 0"},
      {"--shape=1x2x4x4x2x3x3:groups=1x1", "groups=1x1: a number of at least 0 is expected"},
      {"--shape=1x2x4x4x2x3x3:pad=1", "\"pad=1\" is no parameter of this lesson; they are by default stride=1, "},
      {"--shape=1x2x4x4x2x3x3:", "\"\" is no parameter"},
      {"--shape=1x2x4x4x2x3x3:stride=2:stride=2", "stride is given twice"},
      {"--shape=1x2x4x4x2x3", "7 sizes of at least 1 are expected, nxcxhxwxkxrxs, as in"},
      {"--shape=1x2x4x4x2x3x0", "7 sizes of at least 1 are expected"},
      {"--shape=1x2x4x4x2x3x3x3", "7 sizes of at least 1 are expected"},
      {"--shape=99999999999x2x4x4x2x3x3", "a size is at most 2147483647"},
      {"--shape=1x2x4x4x2x3x3,", "7 sizes of at least 1 are expected"},
      {"--shape=4096x4096x64x64x64x3x3:padding=1", "is too large a shape: it needs "},
      {"--only=fastest", "--only=fastest: there is no such version; there are\n"},
      {"--epochs=3", "unrecognized option"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_lesson("conv2d_naive", cases[i].option, NULL, NULL);
    expect_run(&run, 2, "", cases[i].expected);
    subprocess_free(&run);
  }
}

/* Of a transposed convolution the names of the sizes differ, so only the parts that all programs share are expected. */
static void every_program_refuses_them(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--shape=1x8x4x4x8x3x3:stride=0", "the stride must be at least 1"},
      {"--shape=1x8x4x4x8x3x3:dilation=0", "dilation"},
      {"--shape=1x8x4x4x8x3x3:groups=3", "groups"},
      {"--shape=1x8x4x4x8x0x3", "sizes of at least 1 are expected"},
      {"--shape=16384x4096x64x64x64x3x3:padding=1", "is too large a shape: it needs "},
      {"--only=fastest", "--only=fastest: there is no such version; there are\n"},
  };
  for (size_t p = 0; p < PROGRAMS; p++) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      Subprocess run = run_lesson(programs[p].name, cases[i][0], NULL, NULL);
      expect_run(&run, 2, "", cases[i][1]);
      subprocess_free(&run);
    }
    if (strcmp(programs[p].name, "conv2d_transposed") == 0) continue; /* there a large filter makes a large output */
    Subprocess run = run_lesson(programs[p].name, "--shape=1x8x4x4x8x5x3", NULL, NULL);
    expect_run(&run, 2, "", "(1,8,4,4) with (8,8,5,3)");
    expect_run(&run, 2, "", "the filter spans 5 x 3, and the padded image is 4 x 4; use a smaller filter");
    subprocess_free(&run);
  }
}

/* It takes networks and not shapes. */
static void the_duel_refuses_what_it_does_not_know(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"--network=alexnet", "--network=alexnet: expected lenet, fashion, resnet18, vgg or other"},
      {"--pass=sideways", "--pass=sideways: expected forward, backward_input or backward_weight"},
      {"--batch-size=0", "--batch-size=0"},
      {"--shape=1x8x4x4x8x3x3", "unrecognized option"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_lesson("conv2d_duel", cases[i][0], NULL, NULL);
    expect_run(&run, 2, "", cases[i][1]);
    subprocess_free(&run);
  }
}

static void the_help_has_the_parameters(void **state) {
  (void)state;
  Subprocess run = run_lesson("conv2d_naive", "--help", NULL, NULL);
  assert_int_equal(run.status, 0);
  assert_non_null(strstr(run.out, "nxcxhxwxkxrxs"));
  assert_non_null(strstr(run.out, "stride=1"));
  assert_non_null(strstr(run.out, "groups=1"));
  subprocess_free(&run);
}

static void several_shapes_one_launch_and_the_definition(void **state) {
  (void)state;
  Subprocess run = run_lesson("conv2d_naive", "--check-only", "--shape=1x2x5x4x3x3x2:padding=1,1x1x3x3x1x2x2", NULL);
  expect_run(&run, 0, "one thread per output, 1x2x5x4x3x3x2:padding=1;", "");
  expect_run(&run, 0, "one thread per output, 1x1x3x3x1x2x2;", "");
  subprocess_free(&run);
  run = run_lesson("conv2d_naive", "--only=column", "--shape=1x2x5x4x3x3x2:stride=2", NULL);
  expect_run(&run, 0, "column on 1x2x5x4x3x3x2:stride=2, one launch", "");
  subprocess_free(&run);
  run = run_lesson("conv2d_naive", "--device=cpu", "--json", "--shape=1x2x5x4x4x3x2:groups=2");
  expect_run(&run, 0, "conv2d_naive on CPU", "");
  json_t *object = expect_json(&run);
  assert_int_equal(json_array_size(json_object_get(object, "rows")), 1);
  json_decref(object);
  subprocess_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_version_is_right),
      cmocka_unit_test(a_check_measures_nothing),
      cmocka_unit_test(a_version_refuses_a_shape_with_a_reason),
      cmocka_unit_test(a_workspace_larger_than_the_memory_is_refused),
      cmocka_unit_test(impossible_convolutions_are_refused),
      cmocka_unit_test(every_program_refuses_them),
      cmocka_unit_test(the_duel_refuses_what_it_does_not_know),
      cmocka_unit_test(the_help_has_the_parameters),
      cmocka_unit_test(several_shapes_one_launch_and_the_definition),
  };
  return TEST_MAIN("lessons", tests);
}

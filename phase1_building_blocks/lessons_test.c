/* The lessons' programs as a user runs them: every version is right; the table, the JSON and the picture; wrong
 * arguments. On the emulated GPU the table has counts, on a real one times. */
#include "common/expect.h"
#include "common/runfiles.h"

enum { SECONDS = 120 };

/* Runs the lesson `name` with the arguments that are not NULL. */
static Subprocess run_lesson(const char *name, const char *a, const char *b, const char *c) {
  static char program[PATH_MAX];
  expect_program("phase1_building_blocks", name, program, sizeof program);
  const char *argv[] = {program, a, b, c, NULL};
  return subprocess_run(argv, SECONDS);
}

static double number(const json_t *row, const char *key) {
  const json_t *value = json_object_get(row, key);
  if (!json_is_number(value)) fail_msg("%s: no number %s", json_string_value(json_object_get(row, "version")), key);
  return json_number_value(value);
}

/* Every row of ours is right and has counts or times; there are at least `versions` rows, the last is called `last`
 * (NULL: that depends on the GPU). */
static void expect_ladder_with(const char *option, const char *name, const char *shape, size_t versions,
                               const char *last) {
  Subprocess run = run_lesson(name, "--json", option, shape);
  expect_run(&run, 0, "checked on", "");
  json_t *object = expect_json(&run), *rows = json_object_get(object, "rows"), *row;
  assert_string_equal(json_string_value(json_object_get(object, "lesson")), name);
  assert_string_equal(json_string_value(json_object_get(object, "device")), "gpu");
  assert_true(json_is_string(json_object_get(object, "gpu")));
  assert_true(json_array_size(rows) >= versions);
  size_t i;
  json_array_foreach(rows, i, row) {
    const char *version = json_string_value(json_object_get(row, "version"));
    if (last != NULL && i + 1 == json_array_size(rows)) assert_string_equal(version, last);
    if (json_object_get(row, "ok") == NULL) {
      const char *const yardsticks[] = {"device copy", "device memset", "cuRAND uniform", "cuRAND normal"};
      size_t known = 0; /* nothing else goes unchecked */
      while (known < sizeof yardsticks / sizeof *yardsticks && strcmp(version, yardsticks[known]) != 0) known++;
      if (known == sizeof yardsticks / sizeof *yardsticks) fail_msg("%s was not checked", version);
      continue;
    }
    assert_true(json_is_true(json_object_get(row, "ok")));
    assert_true(number(row, "error") <= number(row, "tolerance"));
    if (json_object_get(row, "time_us") != NULL) {
      assert_true(number(row, "time_us") > 0 && number(row, "roof_fraction") > 0);
    } else if (json_object_get(row, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") != NULL) {
      if (strcmp(name, "random_init") != 0) /* which has no input */
        assert_true(number(row, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") > 0);
      assert_true(number(row, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") > 0);
      assert_null(json_object_get(row, "roof_fraction")); /* a figure that was not measured is absent */
    }
  }
  json_decref(object);
  subprocess_free(&run);
}

static void expect_ladder(const char *name, const char *shape, size_t versions, const char *last) {
  expect_ladder_with("--seed=3", name, shape, versions, last);
}

static void vector_add_climbs(void **state) {
  (void)state;
  expect_ladder("vector_add", "--shape=40009", 4, "device copy");
}

static void transpose_climbs(void **state) {
  (void)state;
  expect_ladder("transpose", "--shape=100x60", 6, "device copy");
}

static void matmul_naive_climbs(void **state) {
  (void)state;
  expect_ladder("matmul_naive", "--shape=64x65x33", 3, "cuBLAS");
}

static void matmul_tiled_climbs(void **state) {
  (void)state;
  expect_ladder("matmul_tiled", "--shape=64x65x33", 4, "cuBLAS");
}

static void matmul_register_tiled_climbs(void **state) {
  (void)state;
  expect_ladder("matmul_register_tiled", "--shape=64x65x33", 4, "cuBLAS");
}

static void matmul_tensor_core_climbs(void **state) {
  (void)state;
  expect_ladder("matmul_tensor_core", "--shape=64x65x33", 5, "cuBLAS");
}

static void matmul_split_and_matmul_fp8_climb(void **state) {
  (void)state;
  expect_ladder_with("--shape-alone", "matmul_split", "--shape=64x65x33", 2, "cuBLAS");
  expect_ladder("matmul_fp8", "--shape=64x65x33", 1, NULL);
}

static void matmul_small_climbs(void **state) {
  (void)state;
  expect_ladder_with("--shape-alone", "matmul_small", "--shape=2x9x65x70", 5, "cuBLAS");
}

static void matmul_tuned_climbs_and_sweeps(void **state) {
  (void)state;
  /* its ragged shapes take long, and its counts test and recorded_test have them */
  expect_ladder_with("--shape-alone", "matmul_tuned", "--shape=64x65x33", 11, "cuBLAS");
}

static void activations_climb(void **state) {
  (void)state;
  expect_ladder("activations", "--shape=40009", 16, "device copy");
}

static void dropout_climbs(void **state) {
  (void)state;
  expect_ladder("dropout", "--shape=60x100", 12, "step_softmax_dropout");
}

static void losses_climb(void **state) {
  (void)state;
  expect_ladder("losses", "--shape=65x100", 16, "device copy");
}

static void softmax_cross_entropy_climbs(void **state) {
  (void)state;
  expect_ladder("softmax_cross_entropy", "--shape=5x1100", 5, "device copy");
}

static void random_init_climbs(void **state) {
  (void)state;
  expect_ladder("random_init", "--shape=40009", 12, "cuRAND normal");
  Subprocess run = run_lesson("random_init", "--check-only", "--shape=1000", NULL);
  expect_run(&run, 0, "Normal random numbers, 1000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8  yes\n");
  subprocess_free(&run);
}

static void softmax_climbs(void **state) {
  (void)state;
  expect_ladder("softmax", "--shape=40x130", 10, "device copy");
}

static void fused_batchnorm_relu_softmax_climbs(void **state) {
  (void)state;
  expect_ladder("fused_batchnorm_relu_softmax", "--shape=40x130", 4, "device copy");
}

static void attention_climbs_and_tells_its_memory(void **state) {
  (void)state;
  Subprocess run = run_lesson("attention", "--json", "--shape-alone", "--shape=1x2x33x64"); /* as matmul_tuned */
  expect_run(&run, 0, "more memory", "");
  json_t *object = expect_json(&run), *rows = json_object_get(object, "rows"), *row;
  assert_true(json_array_size(rows) >= 17);
  size_t i;
  json_array_foreach(rows, i, row) {
    const char *version = json_string_value(json_object_get(row, "version"));
    assert_true(json_is_true(json_object_get(row, "ok")));
    double memory = number(row, "memory_bytes"), square = 2.0 * 33 * 33 * sizeof(float);
    int forward = strncmp(version, "gradients", 9) != 0;
    if (forward && (strncmp(version, "flash", 5) == 0 || strstr(version, "mma") != NULL)) assert_true(memory == 0);
    if (strncmp(version, "tf32", 4) == 0) assert_true(memory == 0);
    if (strncmp(version, "three_kernels", 13) == 0) assert_true(memory == square);
    if (strcmp(version, "gradients_naive") == 0) assert_true(memory > 2 * square);
    if (strcmp(version, "gradients_flash") == 0) assert_true(memory < 2 * 33 * 67 * sizeof(float));
  }
  json_decref(object);
  subprocess_free(&run);
  run = run_lesson("attention", "--shape=1x1x8x200", NULL, NULL);
  expect_run(&run, 2, "", "200 is more than 128");
  subprocess_free(&run);
}

static void the_first_lesson_shows_a_launch_and_an_error(void **state) {
  (void)state;
  Subprocess run = run_lesson("vector_add", "--check-only", "--shape=1000", NULL);
  expect_run(&run, 0, "Adding two vectors, 1000", "1 + 10, 2 + 20, ... = 11, 22, 33, 44, 55\n");
  expect_run(&run, 0, "", "A block of 2000 threads: invalid argument.");
  subprocess_free(&run);
}

static void several_shapes_have_a_table_and_a_picture_each(void **state) {
  (void)state;
  char picture[PATH_MAX], option[PATH_MAX + 16], second[PATH_MAX];
  test_path(picture, sizeof picture, "ladder.svg");
  test_path(second, sizeof second, "ladder_2.svg");
  snprintf(option, sizeof option, "--plot=%s", picture);
  Subprocess run = run_lesson("transpose", "--shape=64x32,33x65", option, NULL);
  if (strstr(run.err, "gnuplot is not installed")) { /* as on a machine that has only the GPU test pack */
    print_message("skipped: %s", run.err);
    subprocess_free(&run);
    skip();
  }
  expect_run(&run, 0, "Transposing a matrix, 64x32;", "");
  expect_run(&run, 0, "Transposing a matrix, 33x65;", "");
#ifndef NN_NO_CLONES /* with a sanitizer there are neither counts nor times to draw */
  assert_int_equal(access(picture, R_OK), 0);
  assert_int_equal(access(second, R_OK), 0);
#endif
  subprocess_free(&run);
}

static void a_profiler_gets_one_launch(void **state) {
  (void)state;
  Subprocess run = run_lesson("transpose", "--only=tiled", "--shape=64x32", NULL);
  expect_run(&run, 0, "tiled on 64x32, one launch", "");
  assert_null(strstr(run.out, "padded on"));
  subprocess_free(&run);
  run = run_lesson("transpose", "--only=all", "--shape=64x32", NULL);
  expect_run(&run, 0, "naive_rows on 64x32, one launch", "");
  expect_run(&run, 0, "padded on 64x32, one launch", "");
  subprocess_free(&run);
}

static void the_cpu_has_the_definition(void **state) {
  (void)state;
  Subprocess run = run_lesson("matmul_naive", "--device=cpu", "--json", "--shape=31x33x17");
  expect_run(&run, 0, "matmul_naive on CPU", "");
  json_t *object = expect_json(&run);
  assert_null(json_object_get(object, "gpu"));
  assert_int_equal(json_array_size(json_object_get(object, "rows")), 1);
  json_decref(object);
  subprocess_free(&run);
}

static void what_is_typed_wrong_is_explained(void **state) {
  (void)state;
  const struct {
    const char *option, *expected;
  } cases[] = {
      {"--only=fastest", "--only=fastest: there is no such version; there are\n  naive_rows\n"},
      {"--shape=12", "--shape=12: 2 sizes of at least 1 are expected, as in 256x128"},
      {"--shape=0x5", "2 sizes of at least 1 are expected"},
      {"--shape=5x5x5", "2 sizes of at least 1 are expected"},
      {"--shape=-3x5", "2 sizes of at least 1 are expected"},
      {"--shape=3000000000x5", "a size is at most 2147483647"},
      {"--shape=99999999999999999999x5", "a size is at most 2147483647"},
      {"--shape=100000000x100000000", "100000000 is more than 524280, the most that all versions of this lesson take"},
      {"--shape=5x5,1x3000000", "1x3000000 is too large a shape: 3000000 is more than 524280"},
      {"--shape=200000x200000", "200000x200000 is too large a shape: it needs "},
      {"--shape=5x5,", "--shape=5x5,: 2 sizes of at least 1 are expected"},
      {"--plot=ladder.pdf", "a name that ends in .svg or .png is expected"},
      {"--epochs=3", "unrecognized option"},
      {"file", "is not an option"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_lesson("transpose", cases[i].option, NULL, NULL);
    expect_run(&run, 2, "", cases[i].expected);
    subprocess_free(&run);
  }
}

/* A version is in the list, or it is said why this machine cannot run it. */
static void a_version_that_is_left_out_is_explained(void **state) {
  (void)state;
  Subprocess run = run_lesson("matmul_split", "--only=fastest", NULL, NULL);
  expect_run(&run, 2, "", "--only=fastest: there is no such version; there are\n  wmma_tf32\n");
  if (strstr(run.err, "\n  wgmma_half\n") == NULL)
    expect_run(&run, 2, "", "The versions with wgmma are left out: wgmma and TMA need compute capability 9.0");
  subprocess_free(&run);
}

/* Sizes that are too large for the grid or an int of some version. */
static void what_no_version_reaches_is_refused(void **state) {
  (void)state;
  const struct {
    const char *lesson, *shape, *expected;
  } cases[] = {
      {"matmul_naive", "--shape=1x1x2147483647", "2147483647 is more than 2147483263"},
      {"matmul_tensor_core", "--shape=1x1x2147483647", "2147483647 is more than 2147483583"},
      {"softmax", "--shape=1x9000000", "9000000 is more than 8388480"},
      {"fused_batchnorm_relu_softmax", "--shape=1x9000000", "9000000 is more than 8388480"},
      {"softmax_cross_entropy", "--shape=1x2147483647", "2147483647 is more than 2147482623"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_lesson(cases[i].lesson, cases[i].shape, NULL, NULL);
    expect_run(&run, 2, "", cases[i].expected);
    subprocess_free(&run);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(vector_add_climbs),
      cmocka_unit_test(transpose_climbs),
      cmocka_unit_test(matmul_naive_climbs),
      cmocka_unit_test(matmul_tiled_climbs),
      cmocka_unit_test(matmul_register_tiled_climbs),
      cmocka_unit_test(matmul_tuned_climbs_and_sweeps),
      cmocka_unit_test(matmul_tensor_core_climbs),
      cmocka_unit_test(matmul_split_and_matmul_fp8_climb),
      cmocka_unit_test(matmul_small_climbs),
      cmocka_unit_test(activations_climb),
      cmocka_unit_test(losses_climb),
      cmocka_unit_test(softmax_cross_entropy_climbs),
      cmocka_unit_test(random_init_climbs),
      cmocka_unit_test(dropout_climbs),
      cmocka_unit_test(softmax_climbs),
      cmocka_unit_test(fused_batchnorm_relu_softmax_climbs),
      cmocka_unit_test(attention_climbs_and_tells_its_memory),
      cmocka_unit_test(the_first_lesson_shows_a_launch_and_an_error),
      cmocka_unit_test(several_shapes_have_a_table_and_a_picture_each),
      cmocka_unit_test(a_profiler_gets_one_launch),
      cmocka_unit_test(the_cpu_has_the_definition),
      cmocka_unit_test(what_is_typed_wrong_is_explained),
      cmocka_unit_test(a_version_that_is_left_out_is_explained),
      cmocka_unit_test(what_no_version_reaches_is_refused),
  };
  return TEST_MAIN("lessons", tests);
}

/* The programs perceptron and xor as a user runs them: what they learn, draw and print, and wrong command lines. */
#include "common/program_test.h"

/* Runs the lesson `name` with the arguments that are not NULL. */
static Subprocess run_program(const char *name, const char *a, const char *b, const char *c, const char *d) {
  static char found[PATH_MAX];
  expect_program("phase2_mlp", name, found, sizeof found);
  const char *argv[] = {found, a, b, c, d, NULL};
  return subprocess_run(argv, SECONDS);
}

static double number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) fail_msg("no number %s", key);
  return json_number_value(value);
}

/* A picture is there, or a note says that nothing can draw. */
static void expect_picture(const Subprocess *run, const char *directory, const char *name) {
  if (strstr(run->err, "gnuplot is not installed") != NULL) return;
  if (!file_exists(in_dir(directory, name))) fail_msg("%s is missing: %s", name, run->err);
}

static void a_perceptron_learns_and_draws(void **state) {
  (void)state;
  Subprocess run = run_program("perceptron", output_dir("perceptron"), "--json", "--device=cpu", NULL);
  expect_run(&run, 0, "perceptron on CPU\n", NULL);
  expect_run(&run, 0, "100.0 % of 200 points right", NULL);
  assert_int_equal(test_count(run.out, "\nepoch "), 6);
  json_t *result = expect_json(&run);
  assert_string_equal(json_string_value(json_object_get(result, "program")), "perceptron");
  assert_string_equal(json_string_value(json_object_get(result, "device")), "cpu");
  assert_true(number(result, "train_accuracy") == 1 && number(result, "train_loss") < 0.2);
  assert_true(number(result, "epochs") == 20 && number(result, "points") == 200 && number(result, "seconds") > 0);
  assert_int_equal(json_array_size(json_object_get(result, "parameters")), 3);
  expect_picture(&run, "perceptron", "boundary.png");
  expect_picture(&run, "perceptron", "loss.svg");
  json_decref(result);
  subprocess_free(&run);
}

static void xor_is_learned_by_two_layers(void **state) {
  (void)state;
  Subprocess run = run_program("xor", output_dir("xor"), "--json", "--device=cpu", NULL);
  expect_run(&run, 0, "weights 0 and bias 0: loss 0.693147 (ln 2 = 0.693147), gradient 0.0e+00, 0.0e+00, 0.0e+00",
             NULL);
  expect_run(&run, 0, "one neuron\nepoch 500: loss 0.6931", NULL);
  json_t *result = expect_json(&run);
  assert_true(number(result, "one_neuron_loss") > 0.69314 && number(result, "one_neuron_loss") < 0.69316);
  assert_true(number(result, "train_accuracy") == 1 && number(result, "train_loss") < 0.05);
  assert_string_equal(json_string_value(json_object_get(result, "activation")), "tanh");
  expect_picture(&run, "xor", "surface.png");
  expect_picture(&run, "xor", "loss.svg");
  json_decref(result);
  subprocess_free(&run);
}

/* One hidden neuron fails, 127 succeed; every activation, a batch of one point, and a batch larger than the set. */
static void any_width_runs(void **state) {
  (void)state;
  Subprocess run = run_program("xor", output_dir("width"), "--hidden=1", "--points=4", "--frames=1");
  expect_run(&run, 0, "Not solved", NULL);
  subprocess_free(&run);
  run = run_program("xor", output_dir("width"), "--hidden=127", "--points=20", "--activation=relu");
  expect_run(&run, 0, "with 127 hidden relu", NULL);
  expect_run(&run, 0, "and 100.0 %.", NULL);
  subprocess_free(&run);
  run = run_program("xor", output_dir("width"), "--batch-size=1", "--lr=0.1", "--activation=sigmoid");
  expect_run(&run, 0, "with 3 hidden sigmoid", NULL);
  subprocess_free(&run);
  run = run_program("perceptron", output_dir("width"), "--batch-size=65536", "--points=1", "--epochs=1");
  expect_run(&run, 0, "of 1 points right", NULL);
  subprocess_free(&run);
}

static void a_sweep_counts_what_is_solved(void **state) {
  (void)state;
  Subprocess run = run_program("xor", output_dir("sweep"), "--sweep", "--json", "--epochs=200");
  expect_run(&run, 0, "\n     1    0/20               -  0.", NULL);
  json_t *result = expect_json(&run), *table = json_object_get(result, "sweep"), *row;
  size_t i;
  double before = 0;
  assert_int_equal(json_array_size(table), 6);
  json_array_foreach(table, i, row) {
    assert_true(number(row, "solved") >= (i < 3 ? before : 0) && number(row, "seeds") == 20);
    assert_true((number(row, "solved") > 0) == (json_object_get(row, "median_epochs") != NULL));
    before = number(row, "solved");
  }
  json_decref(result);
  subprocess_free(&run);
}

static void the_same_seed_gives_the_same_text(void **state) {
  (void)state;
  Subprocess a = run_program("xor", output_dir("same"), "--seed=7", "--epochs=20", NULL);
  Subprocess b = run_program("xor", output_dir("same"), "--seed=7", "--epochs=20", NULL);
  Subprocess c = run_program("xor", output_dir("same"), "--seed=8", "--epochs=20", NULL);
  expect_run(&a, 0, NULL, NULL);
  assert_string_equal(a.out, b.out);
  assert_string_not_equal(a.out, c.out);
  subprocess_free(&a);
  subprocess_free(&b);
  subprocess_free(&c);
}

/* On a GPU or an emulated one: the same neuron but for the last digits. */
static void the_gpu_draws_the_same(void **state) {
  (void)state;
  Subprocess gpu = run_program("perceptron", output_dir("gpu"), "--device=gpu", NULL, NULL);
  if (strstr(gpu.err, "no usable NVIDIA GPU") != NULL) {
    print_message("skipped: %s", gpu.err);
    subprocess_free(&gpu);
    skip();
  }
  expect_run(&gpu, 0, "perceptron on GPU ", NULL);
  Subprocess cpu = run_program("perceptron", output_dir("gpu"), "--device=cpu", NULL, NULL);
  const char *from = "The neuron: z = ";
  assert_non_null(strstr(gpu.out, from));
  assert_memory_equal(strstr(gpu.out, from), strstr(cpu.out, from), strlen(from) + 3);
  subprocess_free(&gpu);
  subprocess_free(&cpu);
}

/* One sentence; the files of an earlier run are unchanged. */
static void a_rate_that_is_too_high_is_named(void **state) {
  (void)state;
  Subprocess run = run_program("xor", output_dir("diverged"), "--epochs=5", NULL, NULL);
  expect_run(&run, 0, NULL, NULL);
  expect_picture(&run, "diverged", "loss.svg");
  int drawn = file_exists(in_dir("diverged", "loss.svg"));
  subprocess_free(&run);
  run = run_program("xor", output_dir("diverged"), "--lr=1000", NULL, NULL);
  expect_run(&run, 1, NULL, "xor: error: the loss has grown to ");
  expect_run(&run, 1, NULL, "the learning rate 1000 is too high for this network; try --lr=100\n");
  assert_int_equal(file_exists(in_dir("diverged", "loss.svg")), drawn); /* what was there stays */
  subprocess_free(&run);
}

/* Files may not grow beyond 1000 bytes, as on a full disk: the numbers are printed, the pictures are missing. */
static void a_lost_picture_is_a_failure(void **state) {
  (void)state;
  static const char *const names[] = {"perceptron", "xor"};
  static const char *const pictures[] = {"boundary.png", "surface.png"};
  for (int i = 0; i < 2; i++) {
    char found[PATH_MAX];
    expect_program("phase2_mlp", names[i], found, sizeof found);
    const char *argv[] = {found, output_dir("lost"), "--device=cpu", "--epochs=2", NULL};
    Subprocess run = subprocess_start(argv, 1000);
    subprocess_wait(&run, SECONDS);
    expect_run(&run, 1, NULL, "File too large");
    expect_run(&run, 1, NULL, pictures[i]);
    assert_false(file_exists(in_dir("lost", pictures[i])));
    subprocess_free(&run);
  }
}

static void what_is_typed_wrong_is_explained(void **state) {
  (void)state;
  const struct {
    const char *program, *option, *expected;
  } cases[] = {
      {"xor", "--hidden=0", "--hidden=0: a whole number from 1 to 1024 is expected"},
      {"xor", "--hidden=x", "--hidden=x: a whole number from 1 to 1024 is expected"},
      {"xor", "--activation=step", "--activation=step: relu, leaky_relu, sigmoid or tanh is expected"},
      {"xor", "--points=7", "--points=7: a multiple of 4 is expected"},
      {"xor", "--frames=12", "--frames=12: a whole number from 1 to 11 is expected"},
      {"xor", "--lr=nan", "--lr=nan: a number from 1e-09 to 1e+38 is expected"},
      {"xor", "--data-dir=/tmp", "unrecognized option"},
      {"perceptron", "--lr=0", "--lr=0: a number from 1e-09 to 1e+38 is expected"},
      {"perceptron", "--points=0", "--points=0: a whole number from 1 to 65536 is expected"},
      {"perceptron", "--frames=13", "--frames=13: a whole number from 1 to 12 is expected"},
      {"perceptron", "--epochs=0", "--epochs=0: a whole number from 1 to 100000 is expected"},
      {"perceptron", "--device=tpu", "--device=tpu: cpu or gpu is expected"},
      {"perceptron", "points.csv", "\"points.csv\" is not an option"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Subprocess run = run_program(cases[i].program, cases[i].option, NULL, NULL, NULL);
    expect_run(&run, 2, NULL, cases[i].expected);
    subprocess_free(&run);
  }
  Subprocess run = run_program("xor", "--output-dir=/proc/xor", NULL, NULL, NULL);
  expect_run(&run, 1, NULL, "--output-dir: ");
  subprocess_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_perceptron_learns_and_draws),
      cmocka_unit_test(xor_is_learned_by_two_layers),
      cmocka_unit_test(any_width_runs),
      cmocka_unit_test(a_sweep_counts_what_is_solved),
      cmocka_unit_test(the_same_seed_gives_the_same_text),
      cmocka_unit_test(the_gpu_draws_the_same),
      cmocka_unit_test(a_rate_that_is_too_high_is_named),
      cmocka_unit_test(a_lost_picture_is_a_failure),
      cmocka_unit_test(what_is_typed_wrong_is_explained),
  };
  return TEST_MAIN("point_programs", tests);
}

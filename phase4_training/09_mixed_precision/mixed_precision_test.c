/* The programs as users meet them: mixed_precision, and --precision of a program that trains, here mlp_mnist. */
#include "common/program_test.h"

static char lesson[PATH_MAX];

static void an_overflow_is_shown_and_survived(void **state) {
  (void)state;
  const char *const command[] = {lesson, "--device=cpu", "--steps=4", NULL};
  Subprocess run = subprocess_run(command, SECONDS);
  expect_run(&run, 0, "step 1 overflowed with the scale 16777216: no weight has changed", NULL);
  expect_run(&run, 0, "bf16, learning rate 0.0005, weights of 16 bits", NULL);
  subprocess_free(&run);
}

static void a_network_trains_with_16_bits(void **state) {
  (void)state;
  small_must("bf16", "--precision=bf16", "--epochs=1", NULL, "precision bf16: Gemm 2, Relu 1; float32: weights");
  small_must("tanh", "--precision=bf16", "--activation=tanh", "--epochs=1", "precision bf16: Gemm 2; float32: Tanh 1");
  Subprocess run = small("fp16", "--precision=fp16", "--loss-scale=16777216", "--json");
  expect_run(&run, 0, "weight decay 0.0005, fp16, seed 1",
             "step 1 overflowed with the loss scale 1.67772e+07: it was skipped");
  json_t *result = expect_json(&run);
  assert_true(json_integer_value(json_object_get(result, "skipped_steps")) > 0);
  assert_true(json_number_value(json_object_get(result, "loss_scale")) < 16777216);
  assert_true(json_number_value(json_object_get(result, "test_accuracy")) > 0.7);
  assert_string_equal(json_string_value(json_object_get(result, "precision")), "fp16");
  json_decref(result);
  subprocess_free(&run);
}

/* The scale and what was skipped are in the checkpoint. */
static void a_run_in_fp16_resumes_with_the_same_bits(void **state) {
  (void)state;
  Subprocess run =
      train(output_dir("whole"), "--train-images=640", "--precision=fp16", "--schedule=constant", "--epochs=2");
  expect_run(&run, 0, NULL, NULL);
  subprocess_free(&run);
  run = train(output_dir("parts"), "--train-images=640", "--precision=fp16", "--schedule=constant", "--epochs=1");
  expect_run(&run, 0, NULL, NULL);
  subprocess_free(&run);
  small_must("parts", "--resume", "--epochs=2", NULL, "precision fp16");
  assert_same_models("whole", "parts");
  small_refused("parts", "--resume", "--precision=bf16", "--epochs=3", "was started with --precision=fp16");
}

static void usage(const char *a, const char *b, const char *sentence) {
  Subprocess run = small("usage", a, b, NULL);
  expect_run(&run, 2, NULL, sentence);
  subprocess_free(&run);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  usage("--precision=fp8", NULL, "--precision=fp8: float32, bf16 or fp16 is expected");
  usage("--precision=fp16", "--loss-scale=3", "a power of two is expected");
  usage("--precision=bf16", "--loss-scale=8", "give --precision=fp16");
  usage("--precision=fp16", "--loss-scale=0", "--loss-scale");
  usage("--predict", "--precision=bf16", "leave --precision out");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_overflow_is_shown_and_survived),
      cmocka_unit_test(a_network_trains_with_16_bits),
      cmocka_unit_test(a_run_in_fp16_resumes_with_the_same_bits),
      cmocka_unit_test(what_cannot_be_is_refused),
  };
  Error err;
  if (runfiles_find("phase4_training/09_mixed_precision/mixed_precision", lesson, sizeof lesson, &err) != 0 ||
      runfiles_find("phase2_mlp/07_mlp_mnist/mlp_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  return TEST_MAIN("mixed_precision", tests);
}

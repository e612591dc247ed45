/* The programs training_loop, gradient_clip and confusion_matrix as a user runs them. */
#include <math.h>

#include "common/program_test.h"

static Subprocess start_loop(const char *a, const char *b, const char *c, const char *d) {
  static char found[PATH_MAX], data[PATH_MAX + 16];
  expect_program("phase4_training", "training_loop", found, sizeof found);
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {found, data, "--train-images=500", "--test-images=200", "--device=cpu", "--json"};
  const char *const more[] = {a, b, c, d};
  int n = 6;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_start(argv, 0);
}

static Subprocess run_loop(const char *a, const char *b, const char *c, const char *d) {
  Subprocess run = start_loop(a, b, c, d);
  subprocess_wait(&run, SECONDS);
  return run;
}

static void loop_must(const char *a, const char *b, const char *c, const char *d, const char *sentence) {
  Subprocess run = run_loop(a, b, c, d);
  expect_run(&run, 0, sentence, NULL);
  subprocess_free(&run);
}

static void every_kernel_is_right(void **state) {
  (void)state;
  expect_versions_right("phase4_training", "gradient_clip", "--shape=7x4999", "Gradients clipped by their norm", 4);
  expect_versions_right("phase4_training", "confusion_matrix", "--shape=999x10", "Confusion matrix", 3);
}

static void a_run_learns_and_leaves_its_logs(void **state) {
  (void)state;
  Subprocess run = run_loop(output_dir("learn"), "--epochs=6", "--log-every=5", NULL);
  expect_run(&run, 0, "400 training images, 100 validation images; steps of 32 images", NULL);
  json_t *result = expect_json(&run);
  assert_true(json_number_value(json_object_get(result, "test_accuracy")) > 0.6);
  static const char *const figures[] = {"test_loss", "train_loss", "best_validation_loss", "images_per_second",
                                        "seconds"};
  for (int i = 0; i < 5; i++) assert_true(json_real_value(json_object_get(result, figures[i])) > 0);
  assert_string_equal(json_string_value(json_object_get(result, "checkpoint")), in_dir("learn", "best.safetensors"));
  json_decref(result);
  subprocess_free(&run);
  static const char *const names[] = {"log.jsonl", "log.csv", "best.safetensors", "last.state.safetensors"};
  for (int i = 0; i < 4; i++) assert_true(file_exists(in_dir("learn", names[i])));
}

/* Stopped twice, and with steps in parts: the same weights, momentum and best model. */
static void a_resumed_run_has_the_same_bits(void **state) {
  (void)state;
  for (int parts = 1; parts <= 3; parts += 2) {
    char accumulate[32];
    snprintf(accumulate, sizeof accumulate, "--accumulate=%d", parts);
    loop_must(output_dir(parts == 1 ? "whole1" : "whole3"), "--epochs=5", accumulate, NULL, "best validation loss");
    const char *parted = parts == 1 ? "parted1" : "parted3";
    loop_must(output_dir(parted), "--epochs=5", accumulate, "--stop-after=2", "stopped after epoch 2");
    loop_must(output_dir(parted), "--epochs=5", "--resume", "--stop-after=1", "stopped after epoch 3");
    loop_must(output_dir(parted), "--epochs=5", "--resume", accumulate, "resuming after epoch 3");
    assert_same_models(parts == 1 ? "whole1" : "whole3", parted);
  }
}

/* The steps since the last checkpoint are lost; in the first epoch the whole run is, and nothing is left of it. */
static void ctrl_c_stops_it(void **state) {
  (void)state;
  Subprocess run = start_loop(output_dir("stopped"), "--epochs=20000", "--patience=20000", "--log-every=1");
  signal_after_lines(&run, "stopped", SIGINT, 40);
  expect_run(&run, 130, "; to go on after epoch ", "stopping after this step");
  json_t *result = expect_json(&run);
  assert_true(json_integer_value(json_object_get(result, "epochs")) > 0);
  assert_null(json_object_get(result, "test_accuracy")); /* not measured */
  json_decref(result);
  subprocess_free(&run);
  loop_must(output_dir("stopped"), "--resume", "--epochs=3", NULL, "resuming after epoch");
  run = start_loop(output_dir("at_once"), "--log-every=1", "--batch-size=1", "--train-images=60000");
  signal_after_lines(&run, "at_once", SIGINT, 2);
  expect_run(&run, 130, "stopped in epoch 1; nothing is saved before its end", NULL);
  subprocess_free(&run);
  assert_false(file_exists(in_dir("at_once", "log.csv")));
}

static void patience_ends_the_run(void **state) {
  (void)state;
  Subprocess run = run_loop(output_dir("patience"), "--epochs=60", "--patience=1", "--lr=0.2");
  expect_run(&run, 0, "best validation loss", NULL);
  json_t *result = expect_json(&run);
  const int epochs = (int)json_integer_value(json_object_get(result, "epochs"));
  assert_true(epochs < 60);
  assert_int_equal(json_integer_value(json_object_get(result, "best_epoch")), epochs - 1);
  json_decref(result);
  subprocess_free(&run);
}

static void what_goes_wrong_is_said(void **state) {
  (void)state;
  Subprocess run = run_loop(output_dir("none"), "--resume", NULL, NULL);
  expect_run(&run, 1, NULL, "last.state.safetensors");
  subprocess_free(&run);
  run = run_loop(output_dir("none"), "--validation=0.0001", NULL, NULL);
  expect_run(&run, 1, NULL, "a share of 0.0001 of 500 images is 0");
  subprocess_free(&run);
  run = run_loop(output_dir("none"), "--lr=1e30", NULL, NULL);
  expect_run(&run, 2, NULL, "--lr=1e30");
  subprocess_free(&run);
  loop_must(output_dir("other"), "--stop-after=1", NULL, NULL, "stopped after epoch 1");
  run = run_loop(output_dir("other"), "--resume", "--batch-size=16", NULL);
  expect_run(&run, 1, NULL, "is of 400 training images in batches of 32 with the seed 1, here 400, 16 and 1; give");
  subprocess_free(&run);
  run = run_loop(output_dir("other"), "--resume", "--lr=0.2", NULL);
  expect_run(&run, 1, NULL, "was started with --lr=0.1, here it is 0.2; leave the option out");
  subprocess_free(&run);
  run = run_loop(output_dir("other"), "--resume", "--patience=7", "--lr=0.1");
  expect_run(&run, 1, NULL, "was started with --patience=3, here it is 7; leave the option out");
  subprocess_free(&run);
  run = run_loop(output_dir("other"), "--resume", "--clip-norm=1.0000001", NULL);
  expect_run(&run, 1, NULL, "was started with --clip-norm=1, here it is 1.0000001; leave the option out");
  subprocess_free(&run);
  run = run_loop(output_dir("other"), "--resume", "--clip-value=2", NULL);
  expect_run(&run, 1, NULL, "was started without --clip-value, here it is 2; leave the option out");
  subprocess_free(&run);
  run = run_loop("--help", NULL, NULL, NULL);
  expect_run(&run, 0, "up over 5 % of the run, then straight down to", NULL);
  expect_run(&run, 0, "(default: 25)", NULL);
  subprocess_free(&run);
  run = run_loop(output_dir("other"), "--epochs=2", NULL, NULL);
  expect_run(&run, 1, NULL, "holds a run that was stopped in epoch 2 of 20; go on with it by --resume");
  subprocess_free(&run);
}

/* One bit of a weight or of its momentum, which would go on unnoticed. */
static void a_changed_bit_is_noticed(void **state) {
  (void)state;
  static unsigned char bytes[1 << 20];
  const char *path = in_dir("bit", "last.state.safetensors");
  loop_must(output_dir("bit"), "--stop-after=1", NULL, NULL, "stopped after epoch 1");
  const size_t size = test_read_file(path, bytes, sizeof bytes);
  assert_true(size > 2 * 4 * (784 * 64 + 64 + 64 * 10 + 10) && size < sizeof bytes);
  bytes[size - 1000] ^= 1;
  test_write_file(path, bytes, size);
  Subprocess run = run_loop(output_dir("bit"), "--resume", NULL, NULL);
  expect_run(&run, 1, NULL, "last.state.safetensors is damaged: its tensors have the CRC-32 ");
  subprocess_free(&run);
  bytes[size - 1000] ^= 1;
  test_write_file(path, bytes, size);
  loop_must(output_dir("bit"), "--resume", "--epochs=2", NULL, "resuming after epoch 1");
}

/* Neither a new run nor one that fails loses what an earlier one has left. */
static void an_earlier_run_is_kept(void **state) {
  (void)state;
  loop_must(output_dir("kept"), "--epochs=2", NULL, NULL, "best validation loss");
  loop_must(output_dir("kept"), "--epochs=1", "--clip-value=1e-6", NULL, "best validation loss");
  assert_true(file_exists(in_dir("kept", "previous/best.safetensors")));
  assert_true(file_exists(in_dir("kept", "previous/log.csv")));
  assert_true(file_exists(in_dir("kept", "best.safetensors")));
}

int main(void) {
  Error err;
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kernel_is_right),
      cmocka_unit_test(a_run_learns_and_leaves_its_logs),
      cmocka_unit_test(a_resumed_run_has_the_same_bits),
      cmocka_unit_test(patience_ends_the_run),
      cmocka_unit_test(ctrl_c_stops_it),
      cmocka_unit_test(what_goes_wrong_is_said),
      cmocka_unit_test(an_earlier_run_is_kept),
      cmocka_unit_test(a_changed_bit_is_noticed),
  };
  return TEST_MAIN("training_loop", tests);
}

/* train_cudnn as its users meet it: two short epochs by cuDNN give the losses of ours, a checkpoint serves both sides,
 * a mixture is kept and resumed, what is wrong is said in a sentence. Without cuDNN on the GPU the rest is refused. */
#include <math.h>

#include "common/program_test.h"

static char usual[PATH_MAX]; /* the program of phase 4 */

static Subprocess run_of(const char *which, const char *folder, const char *a, const char *b, const char *c,
                         const char *d) {
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {
      which,          output_dir(folder), data,    "--network=lenet", "--train-images=320", "--test-images=100",
      "--device=gpu", "--epochs=2",       "--json"};
  const char *more[] = {a, b, c, d};
  int n = 9;
  for (int i = 0; i < 4; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

static double test_loss(const char *which, const char *folder, const char *a, const char *b) {
  Subprocess run = run_of(which, folder, a, b, NULL, NULL);
  expect_run(&run, 0, NULL, NULL);
  json_t *object = expect_json(&run);
  const double loss = json_real_value(json_object_get(object, "test_loss"));
  json_decref(object);
  subprocess_free(&run);
  assert_true(loss > 0.1 && loss < 10);
  return loss;
}

static int have_cudnn(void) {
  static int have = -1;
  if (have < 0) {
    Subprocess run = run_of(program, "have", "--layers=cudnn", "--epochs=1", "--train-images=64", NULL);
    have = run.status == 0;
    if (!have) expect_run(&run, 1, NULL, "cuDNN");
    subprocess_free(&run);
  }
  return have;
}

/* The sums have another order, so losses differ by rounding, which ten steps hardly amplify. */
static void cudnn_learns_as_ours_does(void **state) {
  (void)state;
  if (!have_cudnn()) skip();
  const double ours = test_loss(program, "ours", NULL, NULL),
               theirs = test_loss(program, "cudnn", "--layers=cudnn", NULL);
  const double convolutions = test_loss(program, "conv", "--conv=cudnn", NULL);
  const double mixed = test_loss(program, "mixed", "--layers=cudnn,conv1:ours", NULL);
  assert_true(fabs(theirs - ours) < 1e-3 * ours);
  assert_true(fabs(convolutions - ours) < 1e-3 * ours);
  assert_true(fabs(mixed - ours) < 1e-3 * ours);
  /* recorded in a graph: the first of all calls of cuDNN in this process, too */
  assert_true(fabs(test_loss(program, "graph", "--layers=cudnn", "--graph") - ours) < 1e-3 * ours);
  assert_true(fabs(test_loss(program, "auto", "--layers=auto", NULL) - ours) < 1e-3 * ours);
  char text[8192]; /* what was chosen, and not that it is to be measured again */
  text[test_read_file(in_dir("auto", "config.json"), text, sizeof text - 1)] = '\0';
  if (strstr(text, "\"layers\"") == NULL || strstr(text, "auto\"")) fail_msg("config.json of an auto run: %s", text);
}

static void expect_prediction(const char *which, const char *folder, const char *digit, const char *device) {
  static char file[PATH_MAX + 32];
  snprintf(file, sizeof file, "--checkpoint=%s", in_dir(folder, "best.safetensors"));
  const char *const argv[] = {which, file, device, "--predict", digit, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  subprocess_free(&run);
}

/* By either program, on either device: what has computed a step is no part of the model. */
static void checkpoints_serve_both_sides(void **state) {
  (void)state;
  if (!have_cudnn()) skip();
  static char digit[PATH_MAX];
  unsigned char pixels[28 * 28];
  Error err;
  const Image image = {28, 28, 1, pixels};
  for (int i = 0; i < 28 * 28; i++) pixels[i] = i % 28 > 12 && i % 28 < 16 ? 255 : 0;
  snprintf(digit, sizeof digit, "%s/one.png", test_tmpdir());
  if (image_write_png(digit, &image, &err) != 0) fail_msg("%s", err.message);
  test_loss(program, "theirs", "--layers=cudnn", "--epochs=1");
  expect_prediction(usual, "theirs", digit, "--device=cpu");
  expect_prediction(usual, "theirs", digit, "--device=gpu");
  expect_prediction(program, "theirs", digit, "--device=cpu");
  expect_prediction(program, "theirs", digit, "--device=gpu");
}

/* A run of two epochs that goes on to a third computes each layer as it did; without cuDNN it is refused. */
static void a_mixture_is_resumed(void **state) {
  (void)state;
  if (!have_cudnn()) skip();
  test_loss(program, "resumed", "--layers=conv2:cudnn", NULL);
  Subprocess run = run_of(program, "resumed", "--resume", "--epochs=3", NULL, NULL);
  expect_run(&run, 0, "implementations conv2:cudnn", NULL);
  subprocess_free(&run);
  run = run_of(usual, "resumed", "--resume", "--epochs=4", NULL, NULL);
  expect_run(&run, 1, NULL, "the checkpoint's implementations are not those of a training program");
  subprocess_free(&run);
}

static void expect_refused(int status, const char *words, const char *a, const char *b) {
  Subprocess run = run_of(program, "refused", a, b, NULL, NULL);
  expect_run(&run, status, NULL, words);
  subprocess_free(&run);
}

static void mistakes_get_a_sentence(void **state) {
  (void)state;
  expect_refused(2, "unknown implementation \"cublas\"; expected ours, cudnn or auto", "--layers=cublas", NULL);
  expect_refused(1, "of Gemm there is one implementation here", "--layers=fc1:cudnn", NULL);
  expect_refused(1, "the network has no such node", "--layers=conv7:cudnn", NULL);
  expect_refused(2, "--network=mlp has an option --layers of its own", "--network=mlp", NULL);
}

int main(void) {
  Error err;
  if (runfiles_find("phase5_production/01_cudnn_layers/train_cudnn", program, sizeof program, &err) != 0 ||
      runfiles_find("phase4_training/08_train/train", usual, sizeof usual, &err) != 0)
    die("%s", err.message);
  if (runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cudnn_learns_as_ours_does),
      cmocka_unit_test(checkpoints_serve_both_sides),
      cmocka_unit_test(a_mixture_is_resumed),
      cmocka_unit_test(mistakes_get_a_sentence),
  };
  return TEST_MAIN("train_cudnn", tests);
}

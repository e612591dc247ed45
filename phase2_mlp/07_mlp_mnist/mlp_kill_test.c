/* A training run that is killed (SIGKILL) at random moments and resumed: it always goes on, never loses more than the
 * epoch under way, and ends with the bits of a run that nobody killed. The run uses all that has state of its own: a
 * plateau, a validation set, parts of batches, clipped gradients. KILLS in the environment: how often. */
#include "common/philox.h"
#include "common/program_test.h"

enum { EPOCHS = 10, OPTIONS = 16 };

/* A run in this folder, of which `more` is an option more, or NULL. */
static Subprocess start(const char *directory, const char *more) {
  static char data[PATH_MAX + 16], epochs[32];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  snprintf(epochs, sizeof epochs, "--epochs=%d", EPOCHS);
  const char *argv[OPTIONS] = {program,
                               data,
                               output_dir(directory),
                               epochs,
                               "--train-images=1500",
                               "--test-images=200",
                               "--device=cpu",
                               "--validation=0.1",
                               "--schedule=plateau:patience=0,factor=0.5,warmup=0.1",
                               "--batch-size=16",
                               "--accumulate=2",
                               "--clip-norm=1",
                               "--augment=shift",
                               more,
                               NULL};
  return subprocess_start(argv, 0);
}

static int is_there(const char *directory) { return file_exists(in_dir(directory, "last.state.safetensors")); }

/* Finished epochs of the run in this folder. */
static int epochs_of(const char *directory) {
  Error err;
  SafetensorsFile file;
  if (!is_there(directory)) return 0;
  if (safetensors_open(in_dir(directory, "last.state.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  const int epochs = atoi(safetensors_metadata(&file, "epoch"));
  safetensors_close(&file);
  return epochs;
}

static int lines_of(const char *path) {
  int lines = 0, c;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while ((c = fgetc(file)) != EOF) lines += c == '\n';
  fclose(file);
  return lines;
}

/* Otherwise nothing of the plateau's state would be tested. */
static void expect_a_plateau(const char *directory) {
  Error err;
  SafetensorsFile file;
  if (safetensors_open(in_dir(directory, "last.state.safetensors"), &file, &err) != 0) fail_msg("%s", err.message);
  assert_non_null(safetensors_metadata(&file, "plateau_lowered"));
  safetensors_close(&file);
}

/* Goes on, or starts where nothing was saved yet. */
static Subprocess go_on(const char *directory) { return start(directory, is_there(directory) ? "--resume" : NULL); }

static void finish_and_compare(const char *directory) {
  Subprocess run = go_on(directory);
  subprocess_wait(&run, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  subprocess_free(&run);
  assert_same_models("whole", directory);
  assert_int_equal(lines_of(in_dir(directory, "log.csv")), lines_of(in_dir("whole", "log.csv")));
}

static void nap(double seconds) {
  struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&time, NULL);
}

static void a_killed_run_always_goes_on(void **state) {
  (void)state;
  const char *wanted = getenv("KILLS");
  const int kills = wanted ? atoi(wanted) : 3;
  char directory[32];
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  Subprocess run = start("whole", NULL);
  subprocess_wait(&run, SECONDS);
  expect_run(&run, 0, "1350 training images, 150 validation images, 200 test images; batch 32", NULL);
  expect_run(&run, 0, "in 2 parts of 16, gradients clipped to the norm 1", NULL);
  subprocess_free(&run);
  expect_a_plateau("whole");
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double whole = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);

  int runs = 1, ends = 0, before = 0;
  snprintf(directory, sizeof directory, "killed1");
  for (int i = 0; i < kills; i++) {
    run = go_on(directory);
    nap(0.7 * whole * philox_uniform(philox4x32(1, 0, (uint64_t)i).word[0]));
    kill(run.pid, SIGKILL);
    subprocess_wait(&run, SECONDS);
    if (run.status != 0) expect_run(&run, 128 + SIGKILL, NULL, NULL);
    ends += run.status == 0;
    subprocess_free(&run);
    const int epochs = epochs_of(directory);
    if (epochs < before) fail_msg("%d epochs were saved, and after a kill %d", before, epochs);
    before = epochs;
    if (epochs < EPOCHS) continue;
    finish_and_compare(directory); /* and another run */
    snprintf(directory, sizeof directory, "killed%d", ++runs);
    before = 0;
  }
  if (before > 0 || runs == 1) finish_and_compare(directory);
  print_message("%d kills in %d runs, of which %d came after the end\n", kills, runs, ends);
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/07_mlp_mnist/mlp_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_killed_run_always_goes_on)};
  return TEST_MAIN("mlp_kill", tests);
}

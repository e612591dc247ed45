/* A training run that is killed (SIGKILL) at random moments and resumed: it always goes on, never loses more than the
 * epoch under way, and ends with the bits of a run that nobody killed. The run uses all that has state of its own: a
 * plateau, a validation set, parts of batches, clipped gradients. Its logs are those of that run, too: at any moment
 * their beginning, without a gap and with nothing twice. KILLS in the environment: how often. */
#include "common/philox.h"
#include "common/program_test.h"
#include "common/train_log.h"

enum { EPOCHS = 10, OPTIONS = 17 };

static char reader[PATH_MAX];

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
                               "--log-every=10",
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

/* ---- the logs ---- */

static TrainRecord *whole; /* of the run that nobody killed */
static size_t whole_count;

static TrainRecord *load_log(const char *directory, size_t *count) {
  Error err;
  TrainRecord *records;
  if (train_log_load(in_dir(directory, ""), LONG_MAX, &records, count, &err) != 0) fail_msg("%s", err.message);
  return records;
}

/* But for the times. */
static void assert_same_record(const TrainRecord *a, const TrainRecord *b) {
  const double x[] = {a->loss, a->accuracy, a->lr, isnan(a->gradient_norm) ? -1 : a->gradient_norm};
  const double y[] = {b->loss, b->accuracy, b->lr, isnan(b->gradient_norm) ? -1 : b->gradient_norm};
  if (a->step != b->step || a->epoch != b->epoch || strcmp(a->split, b->split) != 0 || memcmp(x, y, sizeof x) != 0)
    fail_msg("step %ld, %s, loss %.9g, expected step %ld, %s, loss %.9g", a->step, a->split, a->loss, b->step, b->split,
             b->loss);
}

/* Lines of log.csv that have an end: each with the step and split that it should have. */
static size_t csv_lines(const char *directory) {
  char line[512], expected[64];
  size_t lines = 0;
  FILE *file = fopen(in_dir(directory, "log.csv"), "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) && strchr(line, '\n')) {
    if (lines++ == 0) continue; /* names */
    if (lines > whole_count + 1) fail_msg("log.csv has more than %zu records", whole_count);
    const TrainRecord *record = &whole[lines - 2];
    snprintf(expected, sizeof expected, "%ld,%ld,%s,%.17g,", record->step, record->epoch, record->split, record->loss);
    if (strncmp(line, expected, strlen(expected)) != 0) fail_msg("%sis expected to begin with %s", line, expected);
  }
  fclose(file);
  return lines > 0 ? lines - 1 : 0;
}

/* Losses in the last event file; a kill may have come before the one before it was removed. */
static size_t events_of(const char *directory) {
  char path[PATH_MAX + NAME_MAX + 2] = "";
  EventFileName name = {""};
  size_t losses = 0;
  while (event_file_next(in_dir(directory, ""), &name))
    snprintf(path, sizeof path, "%s%s", in_dir(directory, ""), name.text);
  if (path[0] == '\0') return 0;
  const char *argv[] = {"/usr/bin/env", "python3", reader, path, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, NULL, NULL);
  for (const char *at = run.out; (at = strstr(at, "\"tag\": \"loss/")) != NULL; at++) {
    char expected[96];
    if (losses == whole_count) fail_msg("%s has more than %zu losses", path, whole_count);
    const TrainRecord *record = &whole[losses++];
    snprintf(expected, sizeof expected, "\"step\": %ld, \"tag\": \"loss/%s\"", record->step, record->split);
    const char *line = at;
    while (strncmp(line, "\"step\"", 6) != 0) line--;
    if (strncmp(line, expected, strlen(expected)) != 0) fail_msg("%.80s is not %s", line, expected);
  }
  subprocess_free(&run);
  return losses;
}

/* Each file is a beginning of the whole run's log; returns the records of log.jsonl. */
static size_t check_logs(const char *directory) {
  size_t count;
  TrainRecord *records = load_log(directory, &count);
  assert_true(count <= whole_count);
  for (size_t i = 0; i < count; i++) assert_same_record(&records[i], &whole[i]);
  free(records);
  csv_lines(directory);
  events_of(directory);
  return count;
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
  assert_int_equal(check_logs(directory), whole_count);
  assert_int_equal(csv_lines(directory), whole_count);
  assert_int_equal(events_of(directory), whole_count);
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
  whole = load_log("whole", &whole_count);
  assert_int_equal(whole_count, EPOCHS * (5 + 2)); /* steps 10, 20, 30, 40 and 43 of each epoch, and two evaluations */
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double duration = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);

  int runs = 1, ends = 0, before = 0;
  snprintf(directory, sizeof directory, "killed1");
  for (int i = 0; i < kills; i++) {
    run = go_on(directory);
    nap(0.7 * duration * philox_uniform(philox4x32(1, 0, (uint64_t)i).word[0]));
    kill(run.pid, SIGKILL);
    subprocess_wait(&run, SECONDS);
    if (run.status != 0) expect_run(&run, 128 + SIGKILL, NULL, NULL);
    ends += run.status == 0;
    subprocess_free(&run);
    const size_t records = check_logs(directory);
    const int epochs = epochs_of(directory);
    if (records < (size_t)epochs * 7) fail_msg("%d epochs are saved, and %zu records logged", epochs, records);
    if (epochs < before) fail_msg("%d epochs were saved, and after a kill %d", before, epochs);
    before = epochs;
    if (epochs < EPOCHS) continue;
    finish_and_compare(directory); /* and another run */
    snprintf(directory, sizeof directory, "killed%d", ++runs);
    before = 0;
  }
  if (before > 0 || runs == 1) finish_and_compare(directory);
  free(whole);
  print_message("%d kills in %d runs, of which %d came after the end\n", kills, runs, ends);
}

int main(void) {
  Error err;
  if (runfiles_find("phase2_mlp/07_mlp_mnist/mlp_mnist", program, sizeof program, &err) != 0 ||
      runfiles_find("tools/event_file.py", reader, sizeof reader, &err) != 0 ||
      runfiles_find("third_party/data/mnist", mnist, sizeof mnist, &err) != 0)
    die("%s", err.message);
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_killed_run_always_goes_on)};
  return TEST_MAIN("mlp_kill", tests);
}

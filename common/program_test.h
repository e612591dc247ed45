/* program_test.h - a training program under test, as its users meet it: for the tests of programs on
 * common/nn/app.h.
 */
#ifndef COMMON_PROGRAM_TEST_H
#define COMMON_PROGRAM_TEST_H

#include "common/expect.h"
#include "common/image.h"
#include "common/mnist.h"
#include "common/runfiles.h"
#include "common/safetensors.h"

enum { SECONDS = 240 }; /* for one run; a sanitized program on a busy machine is slow */

static char program[PATH_MAX], mnist[PATH_MAX]; /* paths, which main() finds */

/* --output-dir=TMP/name, in a buffer of its own for each call of a test. */
static inline const char *output_dir(const char *name) {
  static char buffers[8][PATH_MAX];
  static int next;
  char *buffer = buffers[next++ % 8];
  snprintf(buffer, PATH_MAX, "--output-dir=%s/%s", test_tmpdir(), name);
  return buffer;
}

static inline const char *in_dir(const char *directory, const char *name) {
  static char buffers[8][PATH_MAX];
  static int next;
  char *buffer = buffers[next++ % 8];
  snprintf(buffer, PATH_MAX, "%s/%s/%s", test_tmpdir(), directory, name);
  return buffer;
}

/* Runs the program on small parts of the real data, with the arguments that are not NULL. */
static inline Subprocess train(const char *a, const char *b, const char *c, const char *d, const char *e) {
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[16] = {program, data, "--train-images=4000", "--test-images=1000", "--device=cpu"};
  const char *more[] = {a, b, c, d, e};
  int n = 5;
  for (int i = 0; i < 5; i++)
    if (more[i]) argv[n++] = more[i];
  return subprocess_run(argv, SECONDS);
}

/* A run over 640 images in a folder, with the arguments that are not NULL. */
static inline Subprocess small(const char *directory, const char *a, const char *b, const char *c) {
  return train(output_dir(directory), "--train-images=640", a, b, c);
}

/* It succeeds and says this on stdout; NULL: whatever it says. */
static inline void small_must(const char *directory, const char *a, const char *b, const char *c,
                              const char *sentence) {
  Subprocess run = small(directory, a, b, c);
  expect_run(&run, 0, sentence, NULL);
  subprocess_free(&run);
}

/* It ends with status 1 and says this on stderr. */
static inline void small_refused(const char *directory, const char *a, const char *b, const char *c,
                                 const char *sentence) {
  Subprocess run = small(directory, a, b, c);
  expect_run(&run, 1, NULL, sentence);
  subprocess_free(&run);
}

/* All tensors of two files have the same names, shapes and bits. */
static inline void assert_same_tensors(const char *path_a, const char *path_b) {
  Error err;
  SafetensorsFile a, b;
  if (safetensors_open(path_a, &a, &err) != 0 || safetensors_open(path_b, &b, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(a.count, b.count);
  for (size_t i = 0; i < a.count; i++) {
    const SafetensorsTensor *t = &a.tensors[i];
    char *x = (char *)xmalloc(t->bytes), *y = (char *)xmalloc(t->bytes);
    if (safetensors_read(&a, t->name, t->dtype, t->rank, t->shape, x, &err) != 0 ||
        safetensors_read(&b, t->name, t->dtype, t->rank, t->shape, y, &err) != 0)
      fail_msg("%s", err.message);
    if (memcmp(x, y, t->bytes) != 0) fail_msg("%s and %s differ in %s", path_a, path_b, t->name);
    free(x);
    free(y);
  }
  safetensors_close(&a);
  safetensors_close(&b);
}

/* Two runs end in the same state, and their best models are the same. */
static inline void assert_same_models(const char *directory_a, const char *directory_b) {
  assert_same_tensors(in_dir(directory_a, "last.state.safetensors"), in_dir(directory_b, "last.state.safetensors"));
  assert_same_tensors(in_dir(directory_a, "best.safetensors"), in_dir(directory_b, "best.safetensors"));
}

enum { DIGITS = 10 };

/* Where a test stores its picture of digit `index` of the test set. */
static inline const char *digit_path(int index) {
  static char paths[DIGITS][PATH_MAX];
  char name[32];
  snprintf(name, sizeof name, "digit%d.png", index);
  return test_path(paths[index], sizeof paths[index], name);
}

/* How many of the DIGITS pictures the best model in a folder predicts correctly; the program prints `sentence`. */
static inline int digits_right(const char *directory, const MnistSet *set, const char *sentence) {
  const char *argv[DIGITS + 6] = {program, "--device=cpu", output_dir(directory), "--json", "--predict"};
  for (int i = 0; i < DIGITS; i++) argv[5 + i] = digit_path(i);
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, sentence, NULL);
  json_t *result = expect_json(&run), *predictions = json_object_get(result, "predictions");
  assert_int_equal(json_array_size(predictions), DIGITS);
  int right = 0;
  for (size_t i = 0; i < DIGITS; i++) {
    json_t *top = json_object_get(json_array_get(predictions, i), "top");
    assert_int_equal(json_array_size(top), 3);
    right += json_integer_value(json_object_get(json_array_get(top, 0), "label")) == set->labels[i];
  }
  json_decref(result);
  subprocess_free(&run);
  return right;
}

static inline int file_exists(const char *path) { return access(path, F_OK) == 0; }

/* What a run with pictures leaves in its folder. */
static inline void assert_run_files(const char *directory) {
  const char *names[] = {"best.safetensors", "last.safetensors", "last.state.safetensors", "log.jsonl",
                         "log.csv",          "filters.png",      "misclassified.png",      "report.html"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (!file_exists(in_dir(directory, names[i]))) fail_msg("%s is missing", names[i]);
}

/* Starts a run of three epochs, of 313 steps each, with the options that are not NULL. */
static inline Subprocess three_epochs_start(const char *directory, const char *a, const char *b) {
  static char data[PATH_MAX + 16];
  snprintf(data, sizeof data, "--data-dir=%s", mnist);
  const char *argv[] = {program,
                        data,
                        output_dir(directory),
                        "--train-images=20000",
                        "--test-images=500",
                        "--device=cpu",
                        "--epochs=3",
                        a ? a : b,
                        a ? b : NULL,
                        NULL};
  return subprocess_start(argv, 0);
}

/* The whole run. */
static inline Subprocess three_epochs(const char *directory, const char *a, const char *b) {
  Subprocess run = three_epochs_start(directory, a, b);
  subprocess_wait(&run, SECONDS);
  return run;
}

/* A lesson's program with --check-only on `shape`: all of its versions, less the device copy, are right. */
static inline void expect_versions_right(const char *phase, const char *name, const char *shape, const char *title,
                                         int versions) {
  char found[PATH_MAX];
  expect_program(phase, name, found, sizeof found);
  const char *argv[] = {found, "--json", "--check-only", shape, NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  expect_run(&run, 0, title, NULL);
  json_t *result = expect_json(&run), *row;
  size_t i;
  int checked = 0;
  json_array_foreach(json_object_get(result, "rows"), i, row) {
    if (json_object_get(row, "ok") == NULL) continue; /* the copy */
    if (!json_is_true(json_object_get(row, "ok")))
      fail_msg("%s is wrong", json_string_value(json_object_get(row, "version")));
    checked++;
  }
  assert_int_equal(checked, versions);
  json_decref(result);
  subprocess_free(&run);
}

/* Sends the signal when the run's log.csv has so many lines, and waits for the run's end. */
static inline void signal_after_lines(Subprocess *run, const char *directory, int signal, int lines) {
  char log[PATH_MAX];
  snprintf(log, sizeof log, "%s", in_dir(directory, "log.csv"));
  struct timespec nap = {0, 2 * 1000 * 1000};
  for (int i = 0; i < 60 * 500; i++) {
    int seen = 0, c;
    FILE *file = fopen(log, "r");
    while (file && (c = fgetc(file)) != EOF) seen += c == '\n';
    if (file) fclose(file);
    if (seen >= lines || kill(run->pid, 0) != 0) break;
    nanosleep(&nap, NULL);
  }
  kill(run->pid, signal);
  subprocess_wait(run, SECONDS);
}

/* Sends `signal` to such a run once the log has `lines` lines, and waits. option: one more, or NULL. */
static inline Subprocess start_and_signal(const char *directory, int signal, int lines, int resume,
                                          const char *option) {
  Subprocess run = three_epochs_start(directory, resume ? "--resume" : NULL, option);
  signal_after_lines(&run, directory, signal, lines);
  return run;
}

/* The first of the `count` values of a tensor in the folder's last.safetensors. */
static inline float first_value(const char *directory, const char *tensor, size_t count) {
  Error err;
  SafetensorsFile file;
  float *values = (float *)malloc(count * sizeof *values);
  assert_non_null(values);
  if (safetensors_open(in_dir(directory, "last.safetensors"), &file, &err) != 0 ||
      safetensors_read_f32(&file, tensor, 1, &count, values, &err) != 0)
    fail_msg("%s", err.message);
  safetensors_close(&file);
  const float first = values[0];
  free(values);
  return first;
}

#endif /* COMMON_PROGRAM_TEST_H */

/* The lessons' programs as their users meet them: a small run of each, its JSON, what it leaves; --help; what is typed
 * wrong. A new program is one row of the table. On the emulated GPU there are counts, on a real one times. */
#include "common/expect.h"
#include "common/runfiles.h"

enum { SECONDS = 240, ARGUMENTS = 8, FILES = 3 };

typedef struct Lesson {
  const char *name;
  const char *arguments[ARGUMENTS]; /* of a small run */
  const char *out;                  /* what it prints */
  const char *number;               /* a figure of its JSON, on the top level; NULL: it has `rows` */
  const char *files[FILES];         /* what is in its output folder then */
  const char *wrong, *sentence;     /* an option with a value that is none, and what is said of it */
  int leaves_nothing;               /* and so has no --output-dir */
} Lesson;

static const Lesson lessons[] = {
    {"batch_orders",
     {"--train-images=1000", "--epochs=2", "--device=cpu"},
     "an epoch is 15 batches of 64 and one of 40",
     "batch_size",
     {NULL},
     "--images=9",
     "a whole number from 10",
     0},
    {"perceptron",
     {"--epochs=4", "--frames=2"},
     "The neuron: z = ",
     "train_accuracy",
     {NULL},
     "--points=0",
     "a whole number from 1",
     0},
    {"xor",
     {"--epochs=20", "--frames=1"},
     "After 20 epochs one neuron has a loss of 0.6931 and 50.0 % right",
     "one_neuron_loss",
     {NULL},
     "--points=6",
     "a multiple of 4 is expected",
     0},
    {"mlp",
     {"--train-images=640", "--test-images=200", "--epochs=1", "--device=cpu"},
     "fc1.weight",
     "test_accuracy",
     {NULL},
     "--activation=step",
     "relu",
     0},
    {"idx_files",
     {"--digits=2", "--sheet=20"},
     "60000 x 28 x 28 = 47040000 bytes",
     "mean",
     {"train_classes.png"},
     "--label=ten",
     "a whole number from 0 to 9",
     0},
    {"batches",
     {"--shape=9x132x1000"},
     "A batch of images, 9x132x1000; checked on 17 shapes",
     NULL,
     {NULL},
     "--shape=9x132",
     "3 sizes of at least 1 are expected",
     0},
    {"streams",
     {"--batches=3", "--batch-size=2", "--hidden=3"},
     "Timelines, by the number of the batch",
     NULL,
     {NULL}, /* pictures, where there is gnuplot: streams_test */
     "--batches=0",
     "a whole number from 1 to 1000",
     0},
    {"mlp_mnist",
     {"--train-images=640", "--test-images=200", "--epochs=1", "--device=cpu"},
     "confusion matrix",
     "test_accuracy",
     {"best.safetensors", "log.csv", "misclassified.png"},
     "--layers=784",
     "--layers",
     0},
    {"mlp_one_kernel",
     {"--train-images=128", "--test-images=64", "--rounds=1", "--epochs=1", "--hidden=16"},
     "128 images in 2 steps of 64",
     NULL,
     {NULL},
     "--rounds=x",
     "a whole number from",
     1},
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

/* Runs the lesson with the arguments that are not NULL, its results in a folder of its own. */
static Subprocess run_lesson(const Lesson *lesson, const char *const *arguments, const char *more) {
  char program[PATH_MAX], output[PATH_MAX + 16], folder[PATH_MAX];
  const char *argv[ARGUMENTS + 4];
  int n = 0;
  expect_program("phase2_mlp", lesson->name, program, sizeof program);
  snprintf(output, sizeof output, "--output-dir=%s", test_path(folder, sizeof folder, lesson->name));
  argv[n++] = program;
  if (!lesson->leaves_nothing) argv[n++] = output;
  for (int i = 0; arguments != NULL && i < ARGUMENTS && arguments[i] != NULL; i++) argv[n++] = arguments[i];
  if (more != NULL) argv[n++] = more;
  argv[n] = NULL;
  print_message("%s\n", lesson->name); /* above what is said of a run that fails */
  return subprocess_run(argv, SECONDS);
}

/* Every row of ours is right; a yardstick that is only timed goes unchecked, and says so by its name. */
static void expect_rows(const Lesson *lesson, const json_t *rows) {
  size_t i, checked = 0;
  const json_t *row;
  json_array_foreach(rows, i, row) {
    const char *version = json_string_value(json_object_get(row, "version"));
    assert_non_null(version);
    const json_t *ok = json_object_get(row, "ok");
    if (ok == NULL && strcmp(version, "device copy") == 0) continue;
    if (!json_is_true(ok)) fail_msg("%s: %s is wrong, or was not checked", lesson->name, version);
    assert_true(json_number_value(json_object_get(row, "error")) <=
                json_number_value(json_object_get(row, "tolerance")));
    checked++;
  }
  assert_true(checked > 0);
}

static void each_runs_and_says_what_it_found(void **state) {
  (void)state;
  for (int i = 0; i < LESSONS; i++) {
    const Lesson *lesson = &lessons[i];
    Subprocess run = run_lesson(lesson, lesson->arguments, "--json");
    expect_run(&run, 0, lesson->out, "");
    json_t *object = expect_json(&run);
    const char *key = lesson->number != NULL ? "program" : "lesson";
    const json_t *name = json_object_get(object, key);
    if (!json_is_string(name) || strcmp(json_string_value(name), lesson->name) != 0)
      fail_msg("%s: the JSON does not name it: %s", lesson->name, run.out);
    if (lesson->number == NULL)
      expect_rows(lesson, json_object_get(object, "rows"));
    else if (!json_is_number(json_object_get(object, lesson->number)))
      fail_msg("%s: the JSON has no number %s", lesson->name, lesson->number);
    for (int f = 0; f < FILES && lesson->files[f] != NULL; f++) {
      char folder[PATH_MAX], file[PATH_MAX + 64];
      snprintf(file, sizeof file, "%s/%s", test_path(folder, sizeof folder, lesson->name), lesson->files[f]);
      if (access(file, R_OK) != 0) fail_msg("%s: %s is missing", lesson->name, file);
    }
    json_decref(object);
    subprocess_free(&run);
  }
}

/* --help goes to stdout with exit status 0; it names the options that the program really has. */
static void each_explains_itself(void **state) {
  (void)state;
  for (int i = 0; i < LESSONS; i++) {
    Subprocess run = run_lesson(&lessons[i], NULL, "--help");
    expect_run(&run, 0, "--json", "");
    if (!lessons[i].leaves_nothing) expect_run(&run, 0, "--output-dir", "");
    expect_run(&run, 0, "Usage:", "");
    subprocess_free(&run);
  }
}

static void each_refuses_what_is_typed_wrong(void **state) {
  (void)state;
  for (int i = 0; i < LESSONS; i++) {
    const Lesson *lesson = &lessons[i];
    Subprocess run = run_lesson(lesson, NULL, "--no-such-option");
    expect_run(&run, 2, "", "unrecognized option");
    subprocess_free(&run);
    run = run_lesson(lesson, NULL, lesson->wrong);
    expect_run(&run, 2, "", lesson->sentence);
    subprocess_free(&run);
  }
}

/* common/lesson/main.h is one for all lessons with `rows`; the others end with the same function. */
static void a_full_disk_is_no_success(void **state) {
  (void)state;
  Error err;
  char program[PATH_MAX];
  if (runfiles_find("phase2_mlp/05_batches/batches", program, sizeof program, &err) != 0) fail_msg("%s", err.message);
  const char *argv[] = {"/bin/sh", "-c", "\"$0\" \"$@\" > /dev/full", program, "--device=cpu", "--shape=9x132x1000",
                        NULL};
  Subprocess run = subprocess_run(argv, SECONDS);
  if (run.status != 1 || !strstr(run.err, "cannot be written to stdout")) fail_msg("%d: %s", run.status, run.err);
  subprocess_free(&run);
}

/* What an order does: sorted by label, a batch knows one digit, and the layer learns little of the others. */
static void an_order_by_label_is_worst(void **state) {
  (void)state;
  const Lesson *lesson = &lessons[0]; /* batch_orders */
  Subprocess run = run_lesson(lesson, lesson->arguments, "--json");
  json_t *object = expect_json(&run), *orders = json_object_get(object, "orders");
  assert_int_equal(json_array_size(orders), 5);
  double worst = 0, best_share = 1;
  for (size_t i = 0; i < 5; i++) {
    const json_t *order = json_array_get(orders, i), *accuracies = json_object_get(order, "test_accuracy");
    double accuracy = json_number_value(json_array_get(accuracies, 1)),
           share = json_number_value(json_object_get(order, "largest_class"));
    assert_int_equal(json_array_size(accuracies), 2);
    if (i == 0) {
      worst = accuracy;
      best_share = share;
      continue;
    }
    assert_true(accuracy > worst + 0.2); /* measured: 0.2 against 0.7 */
    assert_true(share < 0.3 && best_share > 0.8);
  }
  json_decref(object);
  subprocess_free(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_runs_and_says_what_it_found), cmocka_unit_test(each_explains_itself),
      cmocka_unit_test(each_refuses_what_is_typed_wrong), cmocka_unit_test(a_full_disk_is_no_success),
      cmocka_unit_test(an_order_by_label_is_worst),
  };
  return TEST_MAIN("phase2_lessons", tests);
}

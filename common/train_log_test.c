#include "common/train_log.h"
#include "common/expect.h"
#include "common/runfiles.h"
#include "common/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define HEADER "step,epoch,split,loss,accuracy,lr,images_per_second,seconds,gradient_norm,time\n"

static char folder[PATH_MAX], reader[PATH_MAX];

/* Each test writes in a folder of its own. */
static void enter(const char *name) { assert_int_equal(make_directories(test_path(folder, PATH_MAX, name), NULL), 0); }

static char *slurp(const char *name) {
  static char text[2][1 << 20];
  static int turn;
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) fail_msg("%s is missing", path);
  char *buffer = text[turn++ & 1];
  buffer[fread(buffer, 1, sizeof text[0] - 1, file)] = '\0';
  fclose(file);
  return buffer;
}

static void put(const char *name, const char *text) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* The record that every test writes at this step: figures with no short decimal form. */
static TrainRecord record_of(long step) {
  TrainRecord record = {step,
                        1 + step / 10,
                        "train",
                        1.0 / (double)(3 * step + 1),
                        0.1 * (double)(step % 7),
                        0.05,
                        12345.678,
                        0.25 * (double)step,
                        1.0 / (double)step,
                        1.7e9 + 0.125 * (double)step};
  if (step % 5 == 0) snprintf(record.split, sizeof record.split, "test");
  return record;
}

static void write_steps(TrainLog *log, long from, long to) {
  for (long step = from; step <= to; step++) {
    TrainRecord record = record_of(step);
    train_log_write(log, &record);
  }
}

/* The folder has one event file, with the same losses in the same order. */
static void assert_events(long last) {
  EventFileName name = {""};
  char path[PATH_MAX + NAME_MAX + 2];
  assert_int_equal(event_file_next(folder, &name), 1);
  snprintf(path, sizeof path, "%s/%s", folder, name.text);
  assert_int_equal(event_file_next(folder, &name), 0);
  const char *argv[] = {"/usr/bin/env", "python3", reader, path, NULL};
  Subprocess run = subprocess_run(argv, 60);
  expect_run(&run, 0, "{\"time\": ", NULL);
  const char *at = run.out;
  for (long step = 1; (at = strstr(at, "\"tag\": \"loss/")) != NULL; step++) {
    const TrainRecord expected = record_of(step);
    char wanted[128];
    if (step > last) fail_msg("more than %ld losses: %.80s", last, at);
    snprintf(wanted, sizeof wanted, "\"step\": %ld, ", step);
    assert_int_equal(strncmp(at - strlen(wanted), wanted, strlen(wanted)), 0);
    snprintf(wanted, sizeof wanted, "\"tag\": \"loss/%s\", \"value\": ", expected.split);
    assert_int_equal(strncmp(at, wanted, strlen(wanted)), 0);
    at += strlen(wanted);
    assert_true((float)atof(at) == (float)expected.loss);
    if (step == last) last = -1;
  }
  assert_true(last <= 0);
  subprocess_free(&run);
}

/* The log holds the steps 1..last, each once, in order and exact, in all files. */
static void assert_steps(long last) {
  TrainRecord *records;
  size_t count;
  assert_int_equal(train_log_load(folder, LONG_MAX, &records, &count, NULL), 0);
  assert_int_equal(count, last);
  char *csv = strdup(slurp("log.csv")), *end = csv + strlen(HEADER);
  assert_int_equal(strncmp(csv, HEADER, strlen(HEADER)), 0);
  for (long i = 0; i < last; i++) {
    TrainRecord expected = record_of(i + 1);
    assert_memory_equal(&records[i], &expected, sizeof expected);
    assert_int_equal(strtol(end, &end, 10), i + 1);
    assert_int_equal(strtol(end + 1, &end, 10), expected.epoch);
    end = strchr(end + 1, ',');
    double figures[TRAIN_RECORD_FIGURES];
    for (int k = 0; k < TRAIN_RECORD_FIGURES; k++) figures[k] = strtod(end + 1, &end);
    assert_memory_equal(figures, &expected.loss, sizeof figures);
    assert_int_equal(*end++, '\n');
  }
  assert_int_equal(*end, '\0');
  free(csv);
  free(records);
  assert_events(last);
}

static void what_the_files_say(void **state) {
  (void)state;
  TrainLog log;
  Error err;
  enter("say");
  assert_int_equal(train_log_open(&log, folder, -1, &err), 0);
  TrainRecord first = {64, 1, "train", 2.25, 0.125, 0.5, 18000, 1.5, 0.75, 1.7e9};
  TrainRecord second = {938, 1, "test", NAN, 0.96875, INFINITY, -INFINITY, 1e-300, NAN, 1.5};
  train_log_write(&log, &first);
  assert_string_equal(slurp("log.csv"), HEADER "64,1,train,2.25,0.125,0.5,18000,1.5,0.75,1700000000\n"); /* at once */
  train_log_write(&log, &second);
  assert_int_equal(train_log_close(&log, &err), 0);
  assert_string_equal(slurp("log.jsonl"),
                      "{\"step\":64,\"epoch\":1,\"split\":\"train\",\"loss\":2.25,\"accuracy\":0.125,\"lr\":0.5,"
                      "\"images_per_second\":18000.0,\"seconds\":1.5,\"gradient_norm\":0.75,\"time\":1700000000.0}\n"
                      "{\"step\":938,\"epoch\":1,\"split\":\"test\",\"loss\":null,\"accuracy\":0.96875,\"lr\":null,"
                      "\"images_per_second\":null,\"seconds\":1e-300,\"gradient_norm\":null,\"time\":1.5}\n");
  assert_string_equal(strchr(strchr(slurp("log.csv"), '\n') + 1, '\n') + 1, "938,1,test,,0.96875,,,1e-300,,1.5\n");

  TrainRecord *records;
  size_t count;
  assert_int_equal(train_log_load(folder, 938, &records, &count, &err), 0);
  assert_int_equal(count, 2);
  assert_memory_equal(&records[0], &first, sizeof first);
  assert_true(isnan(records[1].loss) && isnan(records[1].lr) && records[1].seconds == 1e-300);
  free(records);
}

static void resumed_without_duplicates(void **state) {
  (void)state;
  TrainLog log;
  enter("resumed");
  assert_int_equal(train_log_open(&log, folder, -1, NULL), 0);
  write_steps(&log, 1, 57);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_steps(57);
  assert_int_equal(train_log_open(&log, folder, 40, NULL), 0); /* the checkpoint is of step 40 */
  assert_steps(40);
  write_steps(&log, 41, 60);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_steps(60);
  assert_int_equal(train_log_open(&log, folder, 0, NULL), 0); /* saved before the first step */
  assert_steps(0);
  write_steps(&log, 1, 3);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_int_equal(train_log_open(&log, folder, -1, NULL), 0); /* a new run */
  assert_steps(0);
  assert_int_equal(train_log_close(&log, NULL), 0);
}

static void resumed_where_there_was_no_log(void **state) {
  (void)state;
  TrainLog log;
  enter("none");
  assert_int_equal(train_log_open(&log, folder, 10, NULL), 0);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_steps(0);
}

static void resumed_after_a_kill(void **state) {
  (void)state;
  enter("killed");
  for (int round = 0; round < 5; round++) {
    char path[PATH_MAX + 16];
    struct stat info;
    snprintf(path, sizeof path, "%s/log.csv", folder);
    pid_t child = fork();
    if (child == 0) {
      TrainLog log;
      if (train_log_open(&log, folder, -1, NULL) != 0) _exit(1);
      write_steps(&log, 1, LONG_MAX);
    }
    do usleep(1000 + 700 * round);
    while (stat(path, &info) != 0 || info.st_size < 20000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    TrainLog log;
    assert_int_equal(train_log_open(&log, folder, 90, NULL), 0);
    write_steps(&log, 91, 120);
    assert_int_equal(train_log_close(&log, NULL), 0);
    assert_steps(120);
    unlink(path);
  }
}

static void damaged_lines_are_dropped(void **state) {
  (void)state;
  TrainLog log;
  TrainRecord *records;
  size_t count;
  enter("damaged");
  put("log.jsonl",
      "{\"step\":1,\"epoch\":1,\"split\":\"a split with a name that is too long\",\"loss\":2}\n"
      "\n{}\n[1]\nnull\n{\"step\":\"2\",\"split\":\"train\"}\n{\"step\":2,\"split\":3}\n{\"step\":3,\"split\":"
      "\"train\"}\n"
      "{\"step\":4,\"epoch\":1,\"split\":\"train\",\"lo");
  assert_int_equal(train_log_open(&log, folder, 9, NULL), 0);
  TrainRecord last = record_of(4);
  train_log_write(&log, &last);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_int_equal(train_log_load(folder, LONG_MAX, &records, &count, NULL), 0);
  assert_int_equal(count, 3);
  assert_int_equal(records[0].step, 1);
  assert_string_equal(records[0].split, "a split with a ");
  assert_true(records[0].loss == 2 && isnan(records[0].accuracy));
  assert_int_equal(records[1].step, 3);
  assert_memory_equal(&records[2], &last, sizeof last);
  free(records);
}

static void a_disk_that_fills_up(void **state) {
  (void)state;
  enter("full");
  char path[PATH_MAX];
  test_path(path, sizeof path, "full/stderr");
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) { /* no file may grow beyond 5000 bytes */
    TrainLog log;
    Error err;
    struct rlimit limit = {5000, 5000};
    if (freopen(path, "w", stderr) == NULL) _exit(9);
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || train_log_open(&log, folder, -1, &err) != 0) _exit(8);
    write_steps(&log, 1, 200);
    fflush(stderr); /* buffered, now that it is a file */
    if (train_log_close(&log, &err) == 0) _exit(7);
    _exit(strstr(err.message, folder) != NULL && strstr(err.message, "File too large") != NULL ? 0 : 6);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  const char *said = slurp("stderr");
  assert_non_null(strstr(said, "training goes on\n"));
  assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* once */

  /* What was written is whole, and the run can be resumed once there is room. */
  TrainRecord *records;
  size_t count;
  assert_int_equal(train_log_load(folder, LONG_MAX, &records, &count, NULL), 0);
  assert_in_range(count, 20, 30);
  for (size_t i = 0; i < count; i++) {
    TrainRecord expected = record_of((long)i + 1);
    assert_memory_equal(&records[i], &expected, sizeof expected);
  }
  free(records);
  TrainLog log;
  assert_int_equal(train_log_open(&log, folder, 20, NULL), 0);
  write_steps(&log, 21, 60);
  assert_int_equal(train_log_close(&log, NULL), 0);
  assert_steps(60);
}

static void places_that_cannot_hold_a_log(void **state) {
  (void)state;
  TrainLog log;
  Error err;
  enter("places");
  assert_int_equal(train_log_open(&log, "/no/such/folder", -1, &err), -1);
  assert_non_null(strstr(err.message, "/no/such/folder/log.jsonl"));
  enter("places/log.jsonl"); /* a folder where the file should be */
  enter("places");
  assert_int_equal(train_log_open(&log, folder, -1, &err), -1);
  assert_int_equal(train_log_open(&log, folder, 5, &err), -1);
  assert_non_null(strstr(err.message, "places/log.jsonl"));
}

static void the_result_is_one_line(void **state) {
  (void)state;
  char path[PATH_MAX];
  enter("result");
  test_path(path, sizeof path, "result/stdout");
  for (int full = 0; full < 2; full++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      Error err;
      if (freopen(full ? "/dev/full" : path, "w", stdout) == NULL) _exit(9);
      json_t *object = json_pack("{s:s, s:i, s:o, s:o}", "program", "lenet", "epochs", 5, "test_accuracy",
                                 json_number(0.1), "test_loss", json_number(NAN));
      _exit(json_result(object, &err) == 0 ? 0 : strstr(err.message, "No space left") != NULL ? 1 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), full);
  }
  assert_string_equal(slurp("stdout"),
                      "{\"program\":\"lenet\",\"epochs\":5,\"test_accuracy\":0.1,"
                      "\"test_loss\":null}\n");
}

/* What json_pack() makes of a NaN that nobody looked at. */
static void a_result_that_is_none_is_not_blamed_on_stdout(void **state) {
  (void)state;
  Error err;
  assert_int_equal(json_result(json_pack("{s:f}", "test_loss", NAN), &err), -1);
  assert_non_null(strstr(err.message, "not finite"));
}

int main(void) {
  Error err;
  if (runfiles_find("tools/event_file.py", reader, sizeof reader, &err) != 0) die("%s", err.message);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_files_say),
      cmocka_unit_test(resumed_without_duplicates),
      cmocka_unit_test(resumed_where_there_was_no_log),
      cmocka_unit_test(resumed_after_a_kill),
      cmocka_unit_test(damaged_lines_are_dropped),
      cmocka_unit_test(a_disk_that_fills_up),
      cmocka_unit_test(places_that_cannot_hold_a_log),
      cmocka_unit_test(the_result_is_one_line),
      cmocka_unit_test(a_result_that_is_none_is_not_blamed_on_stdout),
  };
  return TEST_MAIN("train_log", tests);
}

#include "common/interrupt.h"

#include "common/test.h"
#include "common/threads_begin.h"

#include <fcntl.h>
#include <sys/wait.h>

/* Runs `body` in a child with stderr in a file; gives its wait status and what it wrote. */
static int run(void (*body)(void), char *output, size_t size) {
  char path[4096];
  test_path(path, sizeof path, "stderr");
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (file < 0 || dup2(file, 2) < 0) _exit(99);
    body();
    _exit(98); /* each body ends with a status of its own */
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  output[fread(output, 1, size - 1, file)] = '\0';
  fclose(file);
  return status;
}

/* A training loop whose third step is interrupted; its exit status is the number of steps that were done. */
static void train(int number) {
  int steps = 0;
  interrupt_install();
  while (!interrupt_requested() && steps < 10) {
    if (steps == 2) raise(number);
    steps++;
  }
  _exit(steps);
}

static void train_sigint(void) { train(SIGINT); }
static void train_sigterm(void) { train(SIGTERM); }

static void raise_twice(int first, int second) {
  interrupt_install();
  raise(first);
  raise(second);
}

static void int_int(void) { raise_twice(SIGINT, SIGINT); }
static void term_int(void) { raise_twice(SIGTERM, SIGINT); }
static void int_term(void) { raise_twice(SIGINT, SIGTERM); }

static void ignored_before(void) {
  signal(SIGINT, SIG_IGN); /* what nohup and `command &` in a script do */
  train(SIGINT);
}

static void restarted_read(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) _exit(97);
  interrupt_install();
  pid_t parent = getpid();
  if (fork() == 0) {
    usleep(50000);
    kill(parent, SIGINT);
    usleep(50000);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
  }
  _exit(read(ends[0], &byte, 1) == 1 && interrupt_requested() ? 0 : 1);
}

static void the_first_signal_finishes_the_step(void **state) {
  (void)state;
  void (*bodies[])(void) = {train_sigint, train_sigterm};
  for (int i = 0; i < 2; i++) {
    char output[256];
    int status = run(bodies[i], output, sizeof output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_string_equal(output, "\nstopping after this step; press Ctrl-C again to quit at once\n");
  }
}

static void the_second_signal_ends_the_program(void **state) {
  (void)state;
  void (*bodies[])(void) = {int_int, term_int, int_term};
  const int expected[] = {130, 130, 143};
  for (int i = 0; i < 3; i++) {
    char output[256];
    int status = run(bodies[i], output, sizeof output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected[i]);
  }
}

static void an_ignored_signal_stays_ignored(void **state) {
  (void)state;
  char output[256];
  int status = run(ignored_before, output, sizeof output);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 10);
  assert_string_equal(output, "");
}

static void a_read_under_way_goes_on(void **state) {
  (void)state;
  char output[256];
  assert_int_equal(run(restarted_read, output, sizeof output), 0);
}

/* This program, executed anew, as a training program begins. */
static void begin_with_a_signal_pending(void) {
  static char name[] = "interrupt_test", word[] = "begin";
  char *argv[] = {name, word, NULL};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  raise(SIGTERM);
  unsetenv("GOMP_SPINCOUNT"); /* threads_begin.h then executes it once more */
  unsetenv("OMP_WAIT_POLICY");
  execv("/proc/self/exe", argv);
  _exit(97);
}

static void a_signal_before_the_training_gets_a_sentence(void **state) {
  (void)state;
  char output[256];
  int status = run(begin_with_a_signal_pending, output, sizeof output);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 143);
  assert_string_equal(output, "\nstopped before the training began; no file was changed\n");
}

int main(int argc, char **argv) {
  const int only_begins = argc == 2 && strcmp(argv[1], "begin") == 0;
  if (only_begins) interrupt_begin();
  threads_begin();
  if (only_begins) return 96;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_signal_before_the_training_gets_a_sentence),
      cmocka_unit_test(the_first_signal_finishes_the_step),
      cmocka_unit_test(the_second_signal_ends_the_program),
      cmocka_unit_test(an_ignored_signal_stays_ignored),
      cmocka_unit_test(a_read_under_way_goes_on),
  };
  return TEST_MAIN("interrupt", tests);
}

/* Processes without the sandbox: what each gets, several at a time, and what is said where there is no sandbox. */
#include "learn/pool.h"
#include "common/test.h"

/* Without the sandbox: what every program gets. */
static void runs_and_waits(void **state) {
  (void)state;
  const char *argv[] = {"sh", "-c", "cat; echo $WHO; echo oops >&2; exit 7", NULL};
  const char *env[] = {"WHO=me", NULL};
  ProcessSpec spec = process_spec(argv);
  Process process;
  Error err;
  spec.env = env;
  spec.input = "hello\n";
  spec.separate_errors = true;
  assert_int_equal(process_run(&process, &spec, &err), 0);
  assert_int_equal(process.status, 7);
  assert_string_equal(process.output, "hello\nme\n");
  assert_string_equal(process.errors, "oops\n");
  argv[2] = "kill -SEGV $$";
  assert_int_equal(process_run(&process, &spec, &err), 0);
  assert_int_equal(process.status, 128 + SIGSEGV);
  const char *missing[] = {"/no/such/program", NULL};
  spec.argv = missing;
  assert_int_equal(process_run(&process, &spec, &err), 0);
  assert_int_equal(process.status, 127);
}

/* A program of that name, first in PATH. */
static void put_program(const char *name, const char *script) {
  static char folder[PATH_MAX], path[PATH_MAX + 40];
  test_path(folder, sizeof folder, "bin");
  mkdir(folder, 0755);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  test_write_file(path, script, strlen(script));
  chmod(path, 0755);
  setenv("PATH", keep_printf("%s:/usr/bin:/bin", folder), 1);
}

static void ask_forbidden(void) {
  put_program("bwrap", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
  printf("%d %s", sandbox_installed(), sandbox_missing());
}
static void ask_not_installed(void) {
  setenv("PATH", "/nowhere", 1);
  printf("%d %s", sandbox_installed(), sandbox_missing());
}

static void says_why_there_is_no_sandbox(void **state) {
  (void)state;
  char said[2000];
  assert_int_equal(test_fork(ask_forbidden, said, sizeof said), 0);
  assert_non_null(strstr(said, "1 the sandbox, bubblewrap, is installed, but this machine forbids"));
  assert_non_null(strstr(said, "(bwrap: No permissions to create new namespace)"));
  assert_non_null(strstr(said, "--security-opt seccomp=unconfined"));
  assert_null(strstr(said, "setup.sh"));
  assert_int_equal(test_fork(ask_not_installed, said, sizeof said), 0);
  assert_non_null(strstr(said, "0 the sandbox, bubblewrap, is not installed"));
  assert_non_null(strstr(said, "setup.sh"));
}

/* ---------------------------------------------------------------------------------------------------------------- */

/* Piece 3 crashes, piece 4 waits for piece 9, all square their number. */
static void square(int piece, int slot, FILE *result, void *context) {
  const int *ends = (const int *)context;
  char byte = 0;
  if (piece == 3) {
    signal(SIGABRT, SIG_DFL);
    abort();
  }
  if (piece == 9 && write(ends[1], &byte, 1) != 1) _exit(1);
  if (piece == 4 && read(ends[0], &byte, 1) != 1) _exit(1);
  fprintf(result, "%d slot %d", piece * piece, slot);
}

static void shares_the_work_out(void **state) {
  (void)state;
  enum { PIECES = 12, SLOTS = 3 };
  static Pool pool;
  PoolDone done;
  Error err;
  int started = 0, ended = 0, most = 0, ends[2], seen[PIECES] = {0};
  assert_int_equal(pipe(ends), 0);
  pool_open(&pool, SLOTS);
  while (ended < PIECES) {
    while (started < PIECES && pool_has_room(&pool))
      assert_int_equal(pool_start(&pool, started++, square, ends, &err), 0);
    if (pool.running > most) most = pool.running;
    if (!pool_wait(&pool, 5, &done)) fail_msg("nothing ended within 5 s, %d of %d had", ended, PIECES);
    int value = 0, slot = -1;
    assert_in_range(done.piece, 0, PIECES - 1);
    seen[done.piece]++;
    ended++;
    if (done.piece == 3) {
      assert_int_equal(done.status, 128 + SIGABRT);
      assert_int_equal(done.length, 0);
    } else {
      assert_int_equal(done.status, 0);
      assert_int_equal(sscanf(done.result, "%d slot %d", &value, &slot), 2);
      assert_int_equal(value, done.piece * done.piece);
      assert_in_range(slot, 0, SLOTS - 1);
    }
    free(done.result);
  }
  assert_int_equal(most, SLOTS);
  for (int i = 0; i < PIECES; i++) assert_int_equal(seen[i], 1);
  assert_false(pool_wait(&pool, 0.01, &done));
  close(ends[0]);
  close(ends[1]);
}

static void sleep_long(int piece, int slot, FILE *result, void *context) {
  (void)piece;
  (void)slot;
  (void)result;
  (void)context;
  signal(SIGTERM, SIG_DFL);
  sleep(100);
}
static bool is_second(int piece, void *context) {
  (void)context;
  return piece == 1;
}

static void ends_what_is_told_to(void **state) {
  (void)state;
  static Pool pool;
  PoolDone done;
  Error err;
  double begin = seconds_now();
  pool_open(&pool, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(pool_start(&pool, i, sleep_long, NULL, &err), 0);
  assert_false(pool_has_room(&pool));
  assert_false(pool_wait(&pool, 0.2, &done));
  double worked = pool_seconds(&pool, is_second, NULL);
  assert_true(worked >= 0.2 && worked <= seconds_now() - begin);
  pool_signal(&pool, SIGTERM);
  for (int i = 0; i < 2; i++) {
    assert_true(pool_wait(&pool, 10, &done));
    assert_int_equal(done.status, 128 + SIGTERM);
    free(done.result);
  }
  assert_int_equal(pool.running, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_and_waits), cmocka_unit_test(says_why_there_is_no_sandbox),
                                     cmocka_unit_test(shares_the_work_out), cmocka_unit_test(ends_what_is_told_to)};
  return TEST_MAIN("pool", tests);
}

/* atomic_file_test.c - whatever happens during a write, PATH holds the old file or the new one, complete. */
#include "common/atomic_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "common/test.h"

static char path[PATH_MAX];
static char temporary[PATH_MAX + 8];

static int setup(void **state) {
  (void)state;
  snprintf(path, sizeof path, "%s/atomic", test_tmpdir());
  snprintf(temporary, sizeof temporary, "%s.tmp", path);
  unlink(path);
  unlink(temporary);
  return 0;
}

/* The whole file as a string, NULL when there is none. */
static char *slurp(const char *name) {
  static char text[1 << 16];
  FILE *in = fopen(name, "rb");
  if (in == NULL) return NULL;
  text[fread(text, 1, sizeof text - 1, in)] = '\0';
  fclose(in);
  return text;
}

static void put(const char *name, const char *text) {
  AtomicFile f;
  Error err;
  assert_int_equal(atomic_file_open(&f, name, &err), 0);
  fputs(text, f.stream);
  assert_int_equal(atomic_file_commit(&f, &err), 0);
}

static void test_replaces(void **state) {
  (void)state;
  put(path, "old");
  assert_string_equal(slurp(path), "old");
  AtomicFile f;
  Error err;
  assert_int_equal(atomic_file_open(&f, path, &err), 0);
  fprintf(f.stream, "%s", "new and longer");
  fflush(f.stream);
  assert_string_equal(slurp(path), "old"); /* nothing shows before the commit */
  assert_int_equal(atomic_file_commit(&f, &err), 0);
  assert_string_equal(slurp(path), "new and longer");
  put(path, "x");
  assert_string_equal(slurp(path), "x");
  assert_null(slurp(temporary));
}

static void test_abandon(void **state) {
  (void)state;
  put(path, "old");
  AtomicFile f;
  assert_int_equal(atomic_file_open(&f, path, NULL), 0);
  fputs("new", f.stream);
  atomic_file_abandon(&f);
  atomic_file_abandon(&f);
  assert_string_equal(slurp(path), "old");
  assert_null(slurp(temporary));
}

static void test_keeps_permissions_and_links(void **state) {
  (void)state;
  char link_path[PATH_MAX + 8];
  snprintf(link_path, sizeof link_path, "%s.link", path);
  unlink(link_path);
  put(path, "old");
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(symlink(path, link_path), 0);
  put(link_path, "through the link");
  struct stat info;
  assert_int_equal(lstat(link_path, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_string_equal(slurp(path), "through the link");
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  unlink(link_path);
}

static void test_takes_over_what_a_killed_writer_left(void **state) {
  (void)state;
  put(temporary, "half of a file that is longer than the next one");
  put(path, "short");
  assert_string_equal(slurp(path), "short");
  assert_null(slurp(temporary));
}

static void test_refuses_a_second_writer(void **state) {
  (void)state;
  AtomicFile first, second;
  Error err;
  assert_int_equal(atomic_file_open(&first, path, &err), 0);
  fputs("first", first.stream);
  assert_int_equal(atomic_file_open(&second, path, &err), -1);
  assert_non_null(strstr(err.message, "another program is writing"));
  assert_int_equal(atomic_file_commit(&first, &err), 0);
  assert_string_equal(slurp(path), "first");
}

/* A file-size limit fails writes half way just as a full disk does, without needing one. `big` bytes pass through the
 * buffer in one piece or in many small ones. */
static void check_full(size_t piece) {
  put(path, "old");
  struct rlimit before, limited;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limited = before;
  limited.rlim_cur = 100000;
  signal(SIGXFSZ, SIG_IGN);
  AtomicFile f;
  Error err;
  char *big = (char *)xcalloc(1, 300000);
  assert_int_equal(atomic_file_open(&f, path, &err), 0);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
  for (size_t i = 0; i < 300000; i += piece) fwrite(big, 1, piece, f.stream);
  int status = atomic_file_commit(&f, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  free(big);
  assert_int_equal(status, -1);
  assert_non_null(strstr(err.message, path));
  assert_non_null(strstr(err.message, "File too large"));
  assert_string_equal(slurp(path), "old");
  assert_null(slurp(temporary));
}

static void test_full_disk(void **state) {
  (void)state;
  check_full(300000);
  check_full(1000);
  check_full(1);
}

static void test_refuses_what_cannot_be_written(void **state) {
  (void)state;
  AtomicFile f;
  Error err;
  char below[PATH_MAX + 16];
  put(path, "a file");
  snprintf(below, sizeof below, "%s/below", path);
  assert_int_equal(atomic_file_open(&f, below, &err), -1);
  assert_non_null(strstr(err.message, "Not a directory"));
  assert_non_null(strstr(err.message, below));
  assert_int_equal(atomic_file_open(&f, "/nonexistent/file", &err), -1);
  assert_non_null(strstr(err.message, "No such file or directory"));
  assert_int_equal(atomic_file_open(&f, test_tmpdir(), &err), -1);
  assert_non_null(strstr(err.message, "it is a directory"));
  assert_int_equal(atomic_file_open(&f, "/dev/null", &err), -1);
  assert_non_null(strstr(err.message, "device or pipe"));
  assert_int_equal(atomic_file_open(&f, "", &err), -1);
  if (geteuid() != 0) { /* root may overwrite anything */
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(atomic_file_open(&f, path, &err), -1);
    assert_non_null(strstr(err.message, "cannot overwrite"));
  }
}

enum { ITEMS = 5000, KILLS = 200 };

/* Version v of the file is v written ITEMS times, so a mixture of two versions shows. */
__attribute__((noreturn)) static void rewrite_forever(void) {
  for (int version = 0;; version++) {
    AtomicFile f;
    if (atomic_file_open(&f, path, NULL) != 0) _exit(1);
    for (int i = 0; i < ITEMS; i++) fwrite(&version, sizeof version, 1, f.stream);
    if (atomic_file_commit(&f, NULL) != 0) _exit(1);
  }
}

static void test_kill_at_any_moment(void **state) {
  (void)state;
  unsigned random = 12345;
  int written = 0;
  for (int kills = 0; kills < KILLS; kills++) {
    pid_t child = fork();
    if (child == 0) rewrite_forever();
    random = random * 1664525u + 1013904223u;
    usleep(random >> 18); /* 0 to 16 ms */
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status)); /* it never failed by itself */
    FILE *in = fopen(path, "rb");
    if (in == NULL) continue;
    int content[ITEMS + 1];
    assert_int_equal(fread(content, sizeof(int), ITEMS + 1, in), ITEMS);
    fclose(in);
    for (int i = 1; i < ITEMS; i++) assert_int_equal(content[i], content[0]);
    written++;
  }
  assert_true(written > 0);
  put(path, "still writable");
  assert_string_equal(slurp(path), "still writable");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_replaces, setup),
      cmocka_unit_test_setup(test_abandon, setup),
      cmocka_unit_test_setup(test_keeps_permissions_and_links, setup),
      cmocka_unit_test_setup(test_takes_over_what_a_killed_writer_left, setup),
      cmocka_unit_test_setup(test_refuses_a_second_writer, setup),
      cmocka_unit_test_setup(test_full_disk, setup),
      cmocka_unit_test_setup(test_refuses_what_cannot_be_written, setup),
      cmocka_unit_test_setup(test_kill_at_any_moment, setup),
  };
  return TEST_MAIN("atomic_file", tests);
}

/* test.h - cmocka as this project uses it: one group a binary, a log for people, JUnit XML for Bazel.
 *
 *     #include "common/test.h"
 *
 *     static void relu_clamps(void **state) {
 *       (void)state;
 *       ...
 *       assert_close(y, expected, n, 1e-5, 1e-6);      // relative, absolute tolerance
 *     }
 *
 *     int main(void) {
 *       const struct CMUnitTest tests[] = {cmocka_unit_test(relu_clamps)};
 *       return TEST_MAIN("relu", tests);
 *     }
 *
 * The log comes first, test by test, so that a crash leaves the name of its test in it; the XML is written at the end,
 * to the file that Bazel names in XML_OUTPUT_FILE. `bazel test --test_filter='relu_*'` runs only the tests that match.
 * A test that needs a GPU begins with test_requires_gpu(): without one it is reported as skipped, never as passed.
 */
#ifndef COMMON_TEST_H
#define COMMON_TEST_H

#include "common/error.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#include "common/compare.h"
#include "common/philox.h"

#ifdef __CUDACC__
#include <cuda_runtime_api.h>
#endif

/* cmocka 1 knows one format at a time and writes the XML after the group's teardown: log until here, XML from here. */
static inline int test_begin_xml(void **state) {
  (void)state;
#ifndef assert_int_in_range
  if (getenv("XML_OUTPUT_FILE") != NULL) cmocka_set_message_output(CM_OUTPUT_XML);
#endif
  return 0;
}

#ifdef assert_int_in_range /* cmocka 2 calls it so */
#undef assert_in_range
#define assert_in_range assert_int_in_range
#endif

/* Fails the test with a sentence. cmocka's own fail_msg() keeps the sentence out of the XML, hence the redefinition. */
#undef fail_msg
#define fail_msg(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static inline void test_fail(const char *file, int line, const char *format,
                                                                   ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  _assert_true(0, message, file, line);
}

/* Runs the group and gives main()'s exit status. `tests` is an array of struct CMUnitTest. */
#define TEST_MAIN(group, tests) test_run_group(group, tests, sizeof(tests) / sizeof((tests)[0]))

static inline int test_run_group(const char *group, const struct CMUnitTest *tests, size_t count) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the log in order with stderr, and out of forked children */
  const char *xml = getenv("XML_OUTPUT_FILE");
  if (xml != NULL) {
    unlink(xml); /* cmocka would print to the terminal rather than replace a file */
    setenv("CMOCKA_XML_FILE", xml, 1);
  }
  unsetenv("CMOCKA_MESSAGE_OUTPUT");
#ifdef assert_int_in_range /* cmocka 2 writes both at once */
  if (xml != NULL) setenv("CMOCKA_MESSAGE_OUTPUT", "STANDARD,XML", 1);
#endif
  const char *filter = getenv("TESTBRIDGE_TEST_ONLY");
  int matches = 0;
  for (size_t i = 0; i < count && filter != NULL; i++) matches += fnmatch(filter, tests[i].name, 0) == 0;
  if (filter != NULL && matches == 0) die("--test_filter=%s matches none of the %zu cases of %s", filter, count, group);
  cmocka_set_test_filter(filter);
  return _cmocka_run_group_tests(group, tests, count, NULL, test_begin_xml) == 0 ? 0 : 1;
}

/* A directory to write in, the same throughout the run: Bazel's, or a new one under /tmp. */
static inline const char *test_tmpdir(void) {
  static char made[] = "/tmp/test.XXXXXX";
  static const char *directory;
  if (directory == NULL) directory = getenv("TEST_TMPDIR");
  if (directory == NULL) directory = mkdtemp(made);
  if (directory == NULL) die("%s: cannot make a directory for the test: %s", made, strerror(errno));
  return directory;
}

/* Writes the path of `name` in test_tmpdir() into `buffer`, and returns it. */
static inline const char *test_path(char *buffer, size_t size, const char *name) {
  if ((size_t)snprintf(buffer, size, "%s/%s", test_tmpdir(), name) >= size) die("%s: the path is too long", name);
  return buffer;
}

/* A file with these bytes; the bytes of a file, `limit` of them at most, and how many they are. */
static inline void test_write_file(const char *path, const void *bytes, size_t size) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(bytes, 1, size, out), size);
  assert_int_equal(fclose(out), 0);
}
static inline size_t test_read_file(const char *path, void *bytes, size_t limit) {
  FILE *in = fopen(path, "rb");
  if (in == NULL) fail_msg("%s is missing", path);
  size_t size = fread(bytes, 1, limit, in);
  fclose(in);
  return size;
}

/* How often a text has a word. */
static inline int test_count(const char *text, const char *word) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, word)) != NULL; at++) count++;
  return count;
}

/* n random floats, uniform in [-1, 2): neither symmetric nor of zero mean, so that a lost sign shows. */
static inline void test_random_fill(float *x, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) {
    PhiloxBlock block = philox4x32(seed, 0, i / 4);
    x[i] = 3.0f * philox_uniform(block.word[i % 4]) - 1.0f;
  }
}

/* Skips the test where there is no usable GPU, or no kernels in the program. */
static inline void test_requires_gpu(void) {
#ifdef __CUDACC__
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return;
  print_message("skipped: no usable NVIDIA GPU (%s)\n",
                status == cudaSuccess ? "none found" : cudaGetErrorString(status));
#else
  print_message("skipped: built without CUDA kernels\n");
#endif
  skip();
}

/* Runs `body` in a child process, for what ends a program. Gives its exit status, or 128 + the signal that killed it,
 * and what it wrote on stdout and stderr. The child must be the first to touch CUDA: a GPU does not survive fork(). */
static inline int test_fork(void (*body)(void), char *output, size_t size) {
  int ends[2], status;
  if (pipe(ends) != 0) die("pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) die("fork: %s", strerror(errno));
  if (child == 0) {
    const int caught[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS}; /* by cmocka, which would go on in the child */
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) signal(caught[i], SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    fflush(NULL);
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  ssize_t got;
  char rest[256]; /* what does not fit is read all the same, or the child would wait */
  while ((got = read(ends[0], rest, sizeof rest)) > 0)
    for (ssize_t i = 0; i < got; i++)
      if (used + 1 < size) output[used++] = rest[i];
  if (size > 0) output[used] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Fails with the diagnosis unless the Comparison of compare_arrays() or compare_runs() is right. */
#define assert_comparison(comparison) test_assert_comparison(comparison, __FILE__, __LINE__)

/* Fails unless every |actual - expected| <= atol + rtol * |expected|; NaN never passes. */
#define assert_close(actual, expected, n, rtol, atol) \
  assert_comparison(compare_arrays(actual, expected, 1, n, tolerance_make(rtol, atol)))

/* The same for rows x cols, row-major: the diagnosis speaks of rows and columns. */
#define assert_matrix_close(actual, expected, rows, cols, rtol, atol) \
  assert_comparison(compare_arrays(actual, expected, rows, cols, tolerance_make(rtol, atol)))

static inline void test_assert_comparison(Comparison comparison, const char *file, int line) {
  if (!comparison.ok) test_fail(file, line, "%s", comparison.message);
}

#endif /* COMMON_TEST_H */

#include "common/error.h"

#include "common/test.h"

static void error_set_formats_and_returns_minus_one(void **state) {
  (void)state;
  Error err;
  assert_int_equal(error_set(&err, "%s: %d bytes", "x.gz", 7), -1);
  assert_string_equal(err.message, "x.gz: 7 bytes");
  assert_int_equal(error_set(NULL, "%s", "nobody listens"), -1);
}

static void error_set_cuts_what_does_not_fit(void **state) {
  (void)state;
  struct {
    Error err;
    char after[8];
  } s;
  memset(&s, '#', sizeof s);
  char text[2 * sizeof s.err.message];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  assert_int_equal(error_set(&s.err, "%s", text), -1);
  assert_int_equal(strlen(s.err.message), sizeof s.err.message - 1);
  assert_memory_equal(s.after, "########", sizeof s.after);
}

static void a_code_tells_failures_apart(void **state) {
  (void)state;
  Error err;
  assert_int_equal(error_set_code(&err, ERROR_NOT_INSTALLED, "%s is not installed", "gnuplot"), -1);
  assert_int_equal(err.code, ERROR_NOT_INSTALLED);
  assert_string_equal(err.message, "gnuplot is not installed");
  assert_int_equal(error_set(&err, "x.gz: 7 bytes"), -1);
  assert_int_equal(err.code, ERROR_OTHER);
  assert_int_equal(error_set_code(NULL, ERROR_INTERRUPTED, "interrupted"), -1);
}

static void advice_is_replaced_or_dropped(void **state) {
  (void)state;
  Error err;
  error_set(&err, "%s: read-only; really", "out");
  assert_int_equal(error_advise(&err, "choose another with --%s", "output-dir"), -1);
  assert_string_equal(err.message, "out: read-only; really; choose another with --output-dir");
  error_advise(&err, "choose another folder");
  assert_string_equal(err.message, "out: read-only; really; choose another folder");
  error_drop_advice(&err);
  assert_string_equal(err.message, "out: read-only; really");
  error_drop_advice(&err);
  assert_string_equal(err.message, "out: read-only; really");
  error_advise(&err, "again");
  error_set(&err, "another failure");
  error_advise(&err, "its own advice");
  assert_string_equal(err.message, "another failure; its own advice");
  assert_int_equal(error_advise(NULL, "nobody listens"), -1);
}

static void advice_that_does_not_fit_is_cut(void **state) {
  (void)state;
  struct {
    Error err;
    char after[8];
  } s;
  char text[sizeof s.err.message];
  memset(text, 'x', sizeof text);
  for (size_t room = 0; room < 5; room++) {
    memset(&s, '#', sizeof s);
    text[sizeof text - 1 - room] = '\0';
    error_set(&s.err, "%s", text);
    error_advise(&s.err, "try something else");
    assert_int_equal(strlen(s.err.message), sizeof s.err.message - 1);
    assert_memory_equal(s.after, "########", sizeof s.after);
  }
}

static void dies(void) {
  printf("a result; "); /* still in the buffer */
  die("%s: no such file; try another", "data.bin");
}

static void die_names_the_program_and_exits_with_1(void **state) {
  (void)state;
  char output[256], wanted[256];
  assert_int_equal(test_fork(dies, output, sizeof output), 1);
  snprintf(wanted, sizeof wanted, "a result; %s: error: data.bin: no such file; try another\n",
           program_invocation_short_name);
  assert_string_equal(output, wanted);
}

static volatile size_t huge = SIZE_MAX / 4;

static void *volatile block; /* a compiler may leave out a block that nobody uses */

static void asks_too_much(void) { block = xcalloc(huge, 8); }

static void xcalloc_gives_zeros_or_dies(void **state) {
  (void)state;
#ifndef __SANITIZE_ADDRESS__ /* which reports the request itself */
  char output[256];
  assert_int_equal(test_fork(asks_too_much, output, sizeof output), 1);
  assert_non_null(strstr(output, "out of memory"));
#else
  (void)asks_too_much;
#endif
  char *memory = (char *)xcalloc(33, 1);
  for (int i = 0; i < 33; i++) assert_int_equal(memory[i], 0);
  free(memory);
  memory = (char *)xmalloc(0); /* nothing is something */
  assert_non_null(memory);
  free(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(error_set_formats_and_returns_minus_one),
      cmocka_unit_test(error_set_cuts_what_does_not_fit),
      cmocka_unit_test(a_code_tells_failures_apart),
      cmocka_unit_test(advice_is_replaced_or_dropped),
      cmocka_unit_test(advice_that_does_not_fit_is_cut),
      cmocka_unit_test(die_names_the_program_and_exits_with_1),
      cmocka_unit_test(xcalloc_gives_zeros_or_dies),
  };
  return TEST_MAIN("error", tests);
}

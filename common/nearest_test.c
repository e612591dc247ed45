/* Distances between words, and the name that was meant. */
#include "common/nearest.h"

#include "common/test.h"

static void distances_by_hand(void **unused) {
  (void)unused;
  const struct {
    const char *a, *b;
    size_t distance;
  } cases[] = {{"", "", 0},
               {"", "abc", 3},
               {"abc", "", 3},
               {"cosine", "cosine", 0},
               {"cosin", "cosine", 1},
               {"cosien", "cosine", 1},
               {"csine", "cosine", 1},
               {"cozine", "cosine", 1},
               {"ab", "ba", 1},
               {"abcd", "badc", 2},
               {"ca", "abc", 3},
               {"kitten", "sitting", 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t there = nearest_distance(cases[i].a, cases[i].b), back = nearest_distance(cases[i].b, cases[i].a);
    if (there != cases[i].distance || back != there)
      fail_msg("\"%s\" and \"%s\": %zu, and %zu the other way; expected %zu", cases[i].a, cases[i].b, there, back,
               cases[i].distance);
  }
}

/* Beyond the limit letters do not count, and nothing is written beside the table. */
static void long_words_are_cut(void **unused) {
  (void)unused;
  char a[200], b[200];
  memset(a, 'a', sizeof a);
  memset(b, 'a', sizeof b);
  a[199] = b[199] = '\0';
  b[100] = 'b';
  assert_int_equal(nearest_distance(a, b), 0);
  b[NEAREST_MAX_NAME - 1] = 'b';
  assert_int_equal(nearest_distance(a, b), 1);
}

static void the_nearest_name_is_found(void **unused) {
  (void)unused;
  const char *const names[] = {"warmup", "cycles", "growth", "end"};
  assert_string_equal(nearest_name("warm_up", names, 4), "warmup");
  assert_string_equal(nearest_name("Cycle", names, 4), "cycles");
  assert_string_equal(nearest_name("edn", names, 4), "end");
  assert_string_equal(nearest_name("end", names, 4), "end");
  assert_null(nearest_name("temperature", names, 4));
  assert_null(nearest_name("", names, 4));
  assert_null(nearest_name("warmup", names, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(distances_by_hand),
      cmocka_unit_test(long_words_are_cut),
      cmocka_unit_test(the_nearest_name_is_found),
  };
  return TEST_MAIN("nearest", tests);
}

#include "common/nearest.h"

#include "common/test.h"

static void distances_are_as_by_hand(void **state) {
  (void)state;
  const struct {
    const char *a, *b;
    int distance;
  } cases[] = {{"", "", 0},         {"", "abc", 3},           {"abc", "", 3},       {"flip", "flip", 0},
               {"flop", "flip", 1}, {"lip", "flip", 1},       {"flipp", "flip", 1}, {"rotation", "rotate", 3},
               {"ab", "ba", 2},     {"kitten", "sitting", 3}, {"shear", "share", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(nearest_distance(cases[i].a, cases[i].b), cases[i].distance);
    assert_int_equal(nearest_distance(cases[i].b, cases[i].a), cases[i].distance);
  }
}

static void the_nearest_word_is_found(void **state) {
  (void)state;
  static const char *const known[] = {"rotate", "scale", "shear", "shift", NULL}, *const none[] = {NULL};
  assert_string_equal(nearest_word("rotation", known), "rotate");
  assert_string_equal(nearest_word("scal", known), "scale");
  assert_string_equal(nearest_word("shif", known), "shift");
  assert_string_equal(nearest_word("", known), "scale"); /* five letters as shear and shift: the first of them */
  assert_null(nearest_word("x", none));
}

/* Longer words than there is room for are compared by their beginnings. */
static void long_words_do_no_harm(void **state) {
  (void)state;
  char a[1000], b[1000];
  memset(a, 'a', sizeof a);
  memset(b, 'b', sizeof b);
  a[999] = b[999] = '\0';
  assert_int_equal(nearest_distance(a, b), NEAREST_MOST);
  assert_int_equal(nearest_distance(a, a), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(distances_are_as_by_hand),
      cmocka_unit_test(the_nearest_word_is_found),
      cmocka_unit_test(long_words_do_no_harm),
  };
  return TEST_MAIN("nearest", tests);
}

#include "common/confusion.h"
#include "common/test.h"

/* What confusion_print() writes, until the next call. */
static const char *printed(const int *counts, int classes, const char *const *names) {
  static char text[8192];
  FILE *stream = fmemopen(text, sizeof text, "w");
  assert_non_null(stream);
  if (names == NULL) confusion_print(stream, counts, classes);
  if (names != NULL) confusion_print_named(stream, counts, classes, names);
  fclose(stream);
  return text;
}

static void by_hand(void **state) {
  (void)state;
  const int counts[] = {8, 0, 2, /**/ 1, 97, 2, /**/ 0, 5, 1005};
  const char *text = printed(counts, 3, NULL);
  assert_string_equal(text,
                      "      predicted\n"
                      "true     0    1    2    total  recall\n"
                      "   0     8    .    2       10   80.0%\n"
                      "   1     1   97    2      100   97.0%\n"
                      "   2     .    5 1005     1010   99.5%\n"
                      "accuracy 99.11%: 1110 of 1120\n"
                      "most confused: 2 taken for 1: 5, 0 taken for 2: 2, 1 taken for 2: 2, 1 taken for 0: 1\n");
}

static void with_names_and_an_absent_class(void **state) {
  (void)state;
  const char *names[] = {"Ankle boot", "Sneaker", "Bag"};
  const int counts[] = {3, 1, 0, /**/ 0, 4, 0, /**/ 0, 0, 0};
  const char *text = printed(counts, 3, names);
  assert_string_equal(text,
                      "            predicted\n"
                      "      true  Ankle b Sneaker     Bag    total  recall\n"
                      "Ankle boot        3       1       .        4   75.0%\n"
                      "   Sneaker        .       4       .        4  100.0%\n"
                      "       Bag        .       .       .        0       -\n"
                      "accuracy 87.50%: 7 of 8\n"
                      "most confused: Ankle boot taken for Sneaker: 1\n");
}

static void nothing_confused_nothing_counted(void **state) {
  (void)state;
  const int perfect[] = {5, 0, 0, 6}, none[] = {0, 0, 0, 0};
  const char *text = printed(perfect, 2, NULL);
  assert_non_null(strstr(text, "accuracy 100.00%: 11 of 11\n"));
  assert_null(strstr(text, "confused"));
  text = printed(none, 2, NULL);
  assert_null(strstr(text, "accuracy"));
  assert_null(strstr(text, "nan"));
}

static void five_pairs_at_most_the_worst_first(void **state) {
  (void)state;
  int counts[100];
  for (int i = 0; i < 100; i++) counts[i] = i / 10 == i % 10 ? 1000 : i % 7; /* 13 pairs are confused 6 times */
  const char *text = printed(counts, 10, NULL);
  assert_string_equal(strstr(text, "most confused"),
                      "most confused: 0 taken for 6: 6, 1 taken for 3: 6, 2 taken for 0: 6, 2 taken for 7: 6, "
                      "3 taken for 4: 6\n");
  for (const char *line = text; line < strstr(text, "accuracy"); line = strchr(line, '\n') + 1)
    if (line != text) assert_int_equal(strcspn(line, "\n"), 5 + 10 * 5 + 9 + 8); /* all lines but the first */
}

/* A hundred columns would fit on no screen. */
static void many_classes_without_columns(void **state) {
  (void)state;
  static int counts[21 * 21];
  for (int i = 0; i < 21; i++) counts[22 * i] = 3;
  counts[20] = 1;
  const char *text = printed(counts, 21, NULL);
  assert_int_equal(strncmp(text, "true     total  recall\n   0         4   75.0%\n   1         3  100.0%\n", 60), 0);
  assert_non_null(strstr(text, "accuracy 98.44%: 63 of 64\nmost confused: 0 taken for 20: 1\n"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_hand),
      cmocka_unit_test(with_names_and_an_absent_class),
      cmocka_unit_test(nothing_confused_nothing_counted),
      cmocka_unit_test(five_pairs_at_most_the_worst_first),
      cmocka_unit_test(many_classes_without_columns),
  };
  return TEST_MAIN("confusion", tests);
}

/* How many lessons and exercises there are said to be; the programs have tests of their own. */
#include "common/course_counts.h"

static void lessons_and_exercises_are_as_many_as_said(void **state) {
  (void)state;
  expect_course_counts("phase5_production", 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lessons_and_exercises_are_as_many_as_said)};
  return TEST_MAIN("lessons", tests);
}

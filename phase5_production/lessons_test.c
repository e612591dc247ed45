/* How many lessons and exercises there are said to be; the programs have tests of their own. */
#include "common/expect.h"
#include "common/runfiles.h"

#include <ctype.h>

static const char *read_course_file(const char *runfile) {
  Error err;
  char path[PATH_MAX];
  static char text[1 << 20];
  if (runfiles_find(runfile, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  text[test_read_file(path, text, sizeof text - 1)] = '\0';
  return text;
}

/* As course.bzl lists them: a line "phase5_production/NN_TOPIC": [ for each lesson, and one for each of its
 * exercises. */
static void lessons_and_exercises_are_as_many_as_said(void **state) {
  (void)state;
  const char *const words[] = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  char expected[64];
  int lessons = 0, exercises = 0, inside = 0;
  for (const char *line = read_course_file("course.bzl"); *line; line += strcspn(line, "\n") + 1) {
    const int folder = strncmp(line, "    \"phase", 10) == 0;
    if (folder) inside = strncmp(line, "    \"phase5_production/", 23) == 0;
    lessons += inside && folder;
    exercises += inside && strncmp(line, "        \"", 9) == 0;
  }
  assert_true(lessons > 0 && lessons < 10);
  snprintf(expected, sizeof expected, "**%d lessons, %d exercises** |", lessons, exercises);
  const char *row = strstr(read_course_file("README.md"), "\n| 5 |");
  assert_non_null(row);
  const char *said = strstr(row, expected);
  if (said == NULL || said > strchr(row + 1, '\n')) fail_msg("README.md, phase 5: expected %s", expected);
  snprintf(expected, sizeof expected, "%c%s lessons with %d exercises.", toupper((unsigned char)words[lessons][0]),
           words[lessons] + 1, exercises);
  if (strstr(read_course_file("phase5_production/README.md"), expected) == NULL)
    fail_msg("phase5_production/README.md: expected \"%s\"", expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lessons_and_exercises_are_as_many_as_said)};
  return TEST_MAIN("lessons", tests);
}

/* course_counts.h - for a phase's test: as many lessons and exercises as course.bzl lists are in the tables of
 * README.md and of the phase's README.
 *
 *     expect_course_counts("phase4_training", 4);      // data: //:README.md, //:course.bzl, README.md
 */
#ifndef COMMON_COURSE_COUNTS_H
#define COMMON_COURSE_COUNTS_H

#include <ctype.h>

#include "common/expect.h"
#include "common/runfiles.h"

/* The text of a runfile, in a buffer of its own: the next call overwrites it. */
static inline const char *course_file(const char *runfile) {
  Error err;
  char path[PATH_MAX];
  static char text[1 << 20];
  if (runfiles_find(runfile, path, sizeof path, &err) != 0) fail_msg("%s", err.message);
  text[test_read_file(path, text, sizeof text - 1)] = '\0';
  return text;
}

/* In course.bzl a lesson is a line "PHASE/NN_TOPIC": [ and each of its exercises another one. */
static inline void expect_course_counts(const char *phase, int number) {
  const char *const words[] = {"no",    "one",   "two",  "three", "four",   "five",  "six",
                               "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  char folder[128], expected[192];
  int lessons = 0, exercises = 0, inside = 0;
  const int length = snprintf(folder, sizeof folder, "    \"%s/", phase);
  for (const char *line = course_file("course.bzl"); *line; line += strcspn(line, "\n") + 1) {
    const int starts = strncmp(line, "    \"phase", 10) == 0;
    if (starts) inside = strncmp(line, folder, (size_t)length) == 0;
    lessons += inside && starts;
    exercises += inside && strncmp(line, "        \"", 9) == 0;
  }
  assert_true(lessons > 0 && lessons < (int)(sizeof words / sizeof *words));
  snprintf(expected, sizeof expected, "\n| %d |", number);
  const char *row = strstr(course_file("README.md"), expected);
  assert_non_null(row);
  snprintf(expected, sizeof expected, "**%d lessons, %d exercises** |", lessons, exercises);
  const char *said = strstr(row, expected);
  if (said == NULL || said > strchr(row + 1, '\n')) fail_msg("README.md, phase %d: expected %s", number, expected);
  snprintf(folder, sizeof folder, "%.100s/README.md", phase);
  snprintf(expected, sizeof expected, "%c%s lessons with %d exercises.", toupper((unsigned char)words[lessons][0]),
           words[lessons] + 1, exercises);
  if (strstr(course_file(folder), expected) == NULL) fail_msg("%s: expected \"%s\"", folder, expected);
}

#endif /* COMMON_COURSE_COUNTS_H */

/* test_counts.cu - test_counts.h: the harness that checks and counts. Compiled once, and not in every test. */
#include "common/lesson/test_counts.h"

#include "common/lesson/verify.h"

LessonCounts counts_alone_of(const Lesson *lesson, LessonVersion version, LessonShape shape) {
  static LessonResult result;
  if (lesson_verify(lesson, &version, &shape, 99, &result) != 0) fail_msg("%s", result.message);
  return result.counts;
}

LessonCounts counts_of(const Lesson *lesson, LessonVersion version, LessonShape shape) {
  static LessonResult result;
  if (lesson_verify_all(lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  return counts_alone_of(lesson, version, shape);
}

void counts_required(void) {
#ifndef SIMT_INSPECT
  print_message("skipped: right, but only the inspector's build counts accesses\n");
  skip();
#endif
}

/* test_counts.h - do the counts bear out what a rung of a ladder claims?
 *
 *     LessonCounts c = counts_of(&lesson, transpose_version("padded", transpose_padded, ""), shape);
 *     assert_count(c.shared_load_conflicts, 0);
 *
 * counts_of() checks the version on all shapes of the lesson first, with no finding of the inspector; so on a GPU,
 * which counts nothing, something is tested all the same before the test says that it is skipped.
 */
#ifndef COMMON_LESSON_TEST_COUNTS_H
#define COMMON_LESSON_TEST_COUNTS_H

#include "common/lesson/verify.h"
#include "common/test.h"

/* Of one launch on `shape`. */
static inline LessonCounts counts_of(const Lesson *lesson, LessonVersion version, LessonShape shape) {
  static LessonResult result;
  if (lesson_verify_all(lesson, &version, 1, &result) != 0) fail_msg("%s", result.message);
  if (lesson_verify(lesson, &version, &shape, 99, &result) != 0) fail_msg("%s", result.message);
  return result.counts;
}

/* After counts_of(). */
static inline void counts_required(void) {
#ifndef SIMT_INSPECT
  print_message("skipped: right, but only the inspector's build counts accesses\n");
  skip();
#endif
}

#define assert_count(count, expected) counts_assert(count, expected, #count, #expected, __FILE__, __LINE__)

static inline void counts_assert(double count, double expected, const char *count_text, const char *expected_text,
                                 const char *file, int line) {
  if (count != expected)
    test_fail(file, line, "%s is %.0f; expected %s = %.0f", count_text, count, expected_text, expected);
}

#endif /* COMMON_LESSON_TEST_COUNTS_H */

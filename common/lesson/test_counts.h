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

#include "common/lesson/counts.h"
#include "common/lesson/lesson.h"
#include "common/test.h"

/* Of one launch on `shape`. */
LessonCounts counts_of(const Lesson *lesson, LessonVersion version, LessonShape shape);

/* The same, but the version is checked on this shape alone: for those that are slow to emulate. */
LessonCounts counts_alone_of(const Lesson *lesson, LessonVersion version, LessonShape shape);

/* After counts_of(): skips the rest of the test where nothing was counted. */
void counts_required(void);

#define assert_count(count, expected) counts_assert(count, expected, #count, #expected, __FILE__, __LINE__)

static inline void counts_assert(double count, double expected, const char *count_text, const char *expected_text,
                                 const char *file, int line) {
  if (count != expected)
    test_fail(file, line, "%s is %.0f; expected %s = %.0f", count_text, count, expected_text, expected);
}

#endif /* COMMON_LESSON_TEST_COUNTS_H */

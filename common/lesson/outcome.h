/* outcome.h - all arrays of one run of a lesson (lesson.h) as floats: what wrong outputs are explained with. */
#ifndef COMMON_LESSON_OUTCOME_H
#define COMMON_LESSON_OUTCOME_H

#include "common/lesson/arrays.h"

/* Inputs, or what is expected; and what was computed. */
typedef struct LessonOutcome {
  const Lesson *lesson;
  const int *size;
  size_t elements[LESSON_ARRAYS];
  float *right[LESSON_ARRAYS], *computed[LESSON_ARRAYS];
} LessonOutcome;

static inline LessonOutcome lesson_outcome_open(const Lesson *lesson, const int *size, const LessonHost *host,
                                                void *const *got) {
  LessonOutcome outcome;
  memset(&outcome, 0, sizeof outcome);
  outcome.lesson = lesson;
  outcome.size = size;
  for (int a = 0; a < lesson->arrays; a++) {
    size_t n = outcome.elements[a] = host->elements[a];
    outcome.right[a] = (float *)xmalloc(2 * n * sizeof(float));
    outcome.computed[a] = outcome.right[a] + n;
    lesson_to_floats(outcome.right[a], host->array[a], lesson->array[a].element, n);
    lesson_to_floats(outcome.computed[a], got[a], lesson->array[a].element, n);
  }
  return outcome;
}

static inline void lesson_outcome_close(LessonOutcome *outcome) {
  for (int a = 0; a < outcome->lesson->arrays; a++) free(outcome->right[a]);
}

/* Element i of array `a`: its index at each letter of the lesson, -1 where the array has none. */
static inline void lesson_index(const LessonOutcome *outcome, int a, size_t i, long index[LESSON_SIZES]) {
  const char *letters = outcome->lesson->array[a].letters;
  for (int l = 0; l < LESSON_SIZES; l++) index[l] = -1;
  for (size_t l = strlen(letters); l-- > 0;) {
    size_t extent = lesson_extent(outcome->lesson, letters[l], outcome->size);
    index[strchr(outcome->lesson->letters, letters[l]) - outcome->lesson->letters] = (long)(i % extent);
    i /= extent;
  }
}

#endif /* COMMON_LESSON_OUTCOME_H */

/* duel_compare_lesson.cuh - arrays and shapes of duel_compare.cuh, for its tests and exercises: rows and classes,
 * "nc". */
#ifndef PHASE5_PRODUCTION_DUEL_COMPARE_LESSON_CUH
#define PHASE5_PRODUCTION_DUEL_COMPARE_LESSON_CUH

#include <float.h>

#include "common/lesson/lesson.h"
#include "phase5_production/11_runtime_duel/duel_compare.cuh"

typedef void DuelAgreement(float *cosine, float *difference, float *largest, const float *a, const float *b, int n,
                           int classes);
typedef void DuelWorst(float *worst, int *row, const float *difference, const float *largest, int groups, int n);
typedef void DuelTop1(int *first, int *second, const float *a, const float *b, int n, int classes);

static inline void duel_agreement_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DuelAgreement *)launch)(array[0], array[1], array[2], array[3], array[4], size[0], size[1]);
}

static inline void duel_top1_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DuelTop1 *)launch)((int *)array[0], (int *)array[1], array[2], array[3], size[0], size[1]);
}

/* Three sums of `c` products; the cosine is at most 1, and its error that of the sums relative to |a| |b|. */
static inline Tolerance duel_cosine_tolerance(const int *size) {
  const double n = size[1];
  return tolerance_make(0, (8 + 3 * fmin(n, 4 * sqrt(n))) * FLT_EPSILON);
}

static inline void duel_lesson_shapes(Lesson *lesson) {
  static const int shapes[][2] = {{7, 33}, {1, 1}, {3, 10}, {5, 1000}, {129, 31}, {2, 127}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
  lesson->counted = lesson_shape(lesson, 64, 256);
  lesson->timed = lesson_shape(lesson, 4096, 1000);
}

static inline LessonVersion duel_agreement_version(const char *name, DuelAgreement *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion duel_top1_version(const char *name, DuelTop1 *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson duel_agreement_lesson(void) {
  Lesson lesson = lesson_make("runtime_duel", "nc", duel_agreement_call, (LessonLauncher)duel_agreement_cpu);
  lesson_output(&lesson, "cosine", "n");
  lesson_tolerance(&lesson, "cosine", duel_cosine_tolerance);
  lesson_output(&lesson, "difference", "n");
  lesson_output(&lesson, "largest", "n");
  lesson_input(&lesson, "a", "nc");
  lesson_input(&lesson, "b", "nc");
  lesson_range(&lesson, "b", -4, 2); /* a row of another length */
  duel_lesson_shapes(&lesson);
  return lesson;
}

/* A few numbers are 1e4 in the same row: of equal ones the first counts. */
static inline Lesson duel_top1_lesson(void) {
  Lesson lesson = lesson_make("runtime_duel", "nc", duel_top1_call, (LessonLauncher)duel_top1_cpu);
  lesson_output(&lesson, "first", "n");
  lesson_element(&lesson, "first", LESSON_INT);
  lesson_output(&lesson, "second", "n");
  lesson_element(&lesson, "second", LESSON_INT);
  lesson_input(&lesson, "a", "nc");
  lesson_extreme(&lesson, "a", 1e4f);
  lesson_input(&lesson, "b", "nc");
  duel_lesson_shapes(&lesson);
  return lesson;
}

static inline void duel_worst_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DuelWorst *)launch)(array[0], (int *)array[1], array[2], array[3], size[0], size[1]);
}

static inline LessonVersion duel_worst_version(const char *name, DuelWorst *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* A NaN is the right answer where there is one. */
static inline Tolerance duel_worst_tolerance(const int *size) {
  (void)size;
  Tolerance tolerance = tolerance_make(0, 0);
  tolerance.nan_equal = 1;
  return tolerance;
}

/* Groups and rows, "gn". A few differences are NaN, and a few infinite, which are equal. */
static inline Lesson duel_worst_lesson(void) {
  Lesson lesson = lesson_make("runtime_duel", "gn", duel_worst_call, (LessonLauncher)duel_worst_cpu);
  lesson_output(&lesson, "worst", "g");
  lesson_tolerance(&lesson, "worst", duel_worst_tolerance);
  lesson_output(&lesson, "row", "g");
  lesson_element(&lesson, "row", LESSON_INT);
  lesson_input(&lesson, "difference", "gn");
  lesson_range(&lesson, "difference", 0, 2);
  lesson_extreme(&lesson, "difference", NAN);
  lesson_input(&lesson, "largest", "gn");
  lesson_range(&lesson, "largest", 1, 3);
  lesson_extreme(&lesson, "largest", 0);
  static const int shapes[][2] = {{37, 5}, {1, 1}, {9, 33}, {129, 2}, {16, 64}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  lesson.counted = lesson_shape(&lesson, 64, 256);
  lesson.timed = lesson_shape(&lesson, 4096, 1024);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_DUEL_COMPARE_LESSON_CUH */

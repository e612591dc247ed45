/* search_kernels_lesson.cuh - arrays, shapes, references and tolerances: for the program search_kernels, its test and
 * the exercises. */
#ifndef PHASE4_TRAINING_SEARCH_KERNELS_LESSON_CUH
#define PHASE4_TRAINING_SEARCH_KERNELS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/08_train/search_kernels.cuh"

typedef void TrialStepsLauncher(float *out, const float *w, const float *g, int k, int n, float first, float last);
typedef void LowestLauncher(float *lowest, const float *loss, int t, int e);

#define TRIAL_STEPS_FIRST 0.015625f
#define TRIAL_STEPS_LAST 0.75f

static inline void trial_steps_call(LessonLauncher launch, float *const *array, const int *size) {
  ((TrialStepsLauncher *)launch)(array[0], array[1], array[2], size[0], size[1], TRIAL_STEPS_FIRST, TRIAL_STEPS_LAST);
}

static inline void lowest_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LowestLauncher *)launch)(array[0], array[1], size[0], size[1]);
}

static inline LessonVersion trial_steps_version(const char *name, TrialStepsLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion lowest_version(const char *name, LowestLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* With u = 2^-24: the exponent, up to 1, and the ratio are rounded once each, which moves the power by ln(48) u and u;
 * powf() is good to 2 u; two products, with |g| up to 2, and the difference from |w| up to 2 round once each. */
static inline Tolerance trial_steps_tolerance(const int *size) {
  (void)size;
  const double u = 5.96e-8;
  return tolerance_make(0, (2 * TRIAL_STEPS_LAST * (3.9 + 1 + 4 + 2) + 4) * u);
}

static inline Lesson trial_steps_lesson(void) {
  Lesson lesson = lesson_make("search_kernels", "kn", trial_steps_call, (LessonLauncher)trial_steps_cpu);
  lesson_output(&lesson, "out", "kn");
  lesson_input(&lesson, "w", "n");
  lesson_input(&lesson, "g", "n");
  lesson_scalar(&lesson, "first", TRIAL_STEPS_FIRST);
  lesson_scalar(&lesson, "last", TRIAL_STEPS_LAST);
  lesson.tolerance = trial_steps_tolerance;
  lesson.timed = lesson_shape(&lesson, 32, 1 << 20);
  lesson.counted = lesson_shape(&lesson, 32, 1 << 12);
  /* the first shows faults best */
  static const int sizes[][2] = {{5, 91}, {1, 1}, {1, 33}, {2, 31}, {3, 127}, {7, 257}, {256, 3}, {31, 1021}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i][0], sizes[i][1]));
  return lesson;
}

/* Losses of trials, of which some have diverged: a few are infinite, of either sign. */
static inline Lesson lowest_lesson(void) {
  Lesson lesson = lesson_make("search_kernels", "te", lowest_call, (LessonLauncher)lowest_cpu);
  lesson_output(&lesson, "lowest", "t");
  lesson_input(&lesson, "loss", "te");
  lesson_range(&lesson, "loss", 0.125f, 4);
  lesson_extreme(&lesson, "loss", INFINITY);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape(&lesson, 1 << 12, 1 << 10);
  lesson.counted = lesson_shape(&lesson, 1 << 8, 1 << 8);
  static const int sizes[][2] = {{9, 91}, {1, 31}, {3, 33}, {33, 65}, {127, 40}, {5, 1021}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i][0], sizes[i][1]));
  return lesson;
}

#endif /* PHASE4_TRAINING_SEARCH_KERNELS_LESSON_CUH */

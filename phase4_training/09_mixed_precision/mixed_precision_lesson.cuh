/* mixed_precision_lesson.cuh - arrays, shapes, references: for the program loss_scale and the exercises. All are exact.
 * */
#ifndef PHASE4_TRAINING_MIXED_PRECISION_LESSON_CUH
#define PHASE4_TRAINING_MIXED_PRECISION_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/09_mixed_precision/mixed_precision.cuh"

typedef void RoundLauncher(float *y, const float *x, int n);
typedef void UnscaleLauncher(float *out, float *overflow, const float *g, int n, float scale);
typedef void ScalesLauncher(float *scale, const int *event, int n);

static inline void round_call(LessonLauncher launch, float *const *array, const int *size) {
  ((RoundLauncher *)launch)(array[0], array[1], size[0]);
}

/* Once so that gradients above 4 become infinite, and once as usual. */
static inline void unscale_call(LessonLauncher launch, float *const *array, const int *size) {
  ((UnscaleLauncher *)launch)(array[0], array[1] + 1, array[2], size[0], 0x1p-126f);
  ((UnscaleLauncher *)launch)(array[0], array[1], array[2], size[0], 1024);
}

static inline void scales_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ScalesLauncher *)launch)(array[0], (const int *)array[1], size[0]);
}

static inline LessonVersion round_version(const char *name, RoundLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion unscale_version(const char *name, UnscaleLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion scales_version(const char *name, ScalesLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson mixed_lesson(const char *name, void (*call)(LessonLauncher, float *const *, const int *),
                                  LessonLauncher reference) {
  Lesson lesson = lesson_make(name, "nf", call, reference);
  const int sizes[] = {335, 1, 2, 3, 31, 33, 127, 256, 1021, 4099, 17011};
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape(&lesson, 25557032, 2); /* ResNet-50's parameters */
  lesson.counted = lesson_shape(&lesson, 1 << 15, 2);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i], 2));
  return lesson;
}

static inline Lesson round_lesson(void) {
  Lesson lesson = mixed_lesson("loss_scale", round_call, (LessonLauncher)round_cpu);
  lesson_output(&lesson, "y", "n");
  lesson_input(&lesson, "x", "n");
  return lesson;
}

static inline Lesson unscale_lesson(void) {
  Lesson lesson = mixed_lesson("loss_scale", unscale_call, (LessonLauncher)unscale_cpu);
  lesson_output(&lesson, "out", "n");
  lesson_output(&lesson, "overflow", "f");
  lesson_input(&lesson, "g", "n");
  lesson_range(&lesson, "g", -8, 8);
  return lesson;
}

static inline Lesson scales_lesson(void) {
  Lesson lesson = mixed_lesson("loss_scale", scales_call, (LessonLauncher)scales_cpu);
  lesson_output(&lesson, "scale", "n");
  lesson_labels(&lesson, "event", "n", 'f'); /* 0 or 1 */
  lesson.timed = lesson.counted = lesson_shape(&lesson, 1000, 2);
  return lesson;
}

#endif /* PHASE4_TRAINING_MIXED_PRECISION_LESSON_CUH */

/* lr_schedules_lesson.cuh - arrays, shapes, references and tolerances: for the program lr_kernels, its test and the
 * exercises. */
#ifndef PHASE4_TRAINING_LR_SCHEDULES_LESSON_CUH
#define PHASE4_TRAINING_LR_SCHEDULES_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/04_lr_schedules/lr_schedules.cuh"

typedef void RatesLauncher(float *rate, int n, CosineSteps s);
typedef void SmoothLauncher(float *smooth, const float *loss, int n, float beta);

#define RATES_HIGHEST 0.75f
#define RATES_LEAST 0.125f
#define SMOOTH_BETA 0.96875f

/* A warm-up of about a tenth, a first cycle of about a seventh of the rest, and no number of them a power of two. */
static inline void rates_call(LessonLauncher launch, float *const *array, const int *size) {
  const int n = size[0], warmup = n / 10 + 1;
  const CosineSteps steps = {warmup, (n - warmup) / 7 + 1, RATES_HIGHEST, RATES_LEAST};
  ((RatesLauncher *)launch)(array[0], n, steps);
}

static inline void smooth_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SmoothLauncher *)launch)(array[0], array[1], size[0], SMOOTH_BETA);
}

static inline LessonVersion rates_version(const char *name, RatesLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion smooth_version(const char *name, SmoothLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* With u = 2^-24: t is rounded twice (2 u t, t at most 1), which moves the cosine by up to pi times that; cospif() is
 * exact to 2 u; the sum, the two products and the last sum round once each. */
static inline Tolerance rates_tolerance(const int *size) {
  (void)size;
  const double u = 5.96e-8;
  return tolerance_make(0, RATES_HIGHEST * (2 * 3.1416 / 2 + 2 + 4) * u);
}

/* Each step rounds three times, relative to values of at most 4, and what it has rounded counts beta^k times k steps
 * later: 1 / (1 - beta) = 32 times in all. The division that corrects the start makes error and value larger alike. The
 * window leaves out beta^512 of the average before it. */
static inline Tolerance smooth_tolerance(const int *size) {
  (void)size;
  const double u = 5.96e-8;
  return tolerance_make(0, 4 * (3 * 32 * u + pow(SMOOTH_BETA, SMOOTH_WINDOW)));
}

static inline Lesson lr_kernels_lesson(void (*call)(LessonLauncher, float *const *, const int *),
                                       LessonLauncher reference) {
  Lesson lesson = lesson_make("lr_kernels", "n", call, reference);
  lesson.timed = lesson_shape(&lesson, 1 << 20);
  lesson.counted = lesson_shape(&lesson, 1 << 15);
  /* the first shows faults best; around a warp, a row of 256, and a part of 4096; several parts */
  const int sizes[] = {91, 1, 2, 3, 31, 33, 127, 257, 1021, 4096, 4099, 17011};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i]));
  return lesson;
}

static inline Lesson rates_lesson(void) {
  Lesson lesson = lr_kernels_lesson(rates_call, (LessonLauncher)rates_cpu);
  lesson_output(&lesson, "rate", "n");
  lesson_scalar(&lesson, "highest", RATES_HIGHEST);
  lesson_scalar(&lesson, "least", RATES_LEAST);
  lesson.tolerance = rates_tolerance;
  return lesson;
}

static inline Lesson smooth_lesson(void) {
  Lesson lesson = lr_kernels_lesson(smooth_call, (LessonLauncher)smooth_cpu);
  lesson_output(&lesson, "smooth", "n");
  lesson_input(&lesson, "loss", "n");
  lesson_range(&lesson, "loss", 1, 4);
  lesson_scalar(&lesson, "beta", SMOOTH_BETA);
  lesson.tolerance = smooth_tolerance;
  return lesson;
}

#endif /* PHASE4_TRAINING_LR_SCHEDULES_LESSON_CUH */

/* losses_lesson.cuh - arrays, shapes, reference and tolerance of the losses, forward, backward and both: for the
 * program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_LOSSES_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_LOSSES_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/09_losses/losses.cuh"

/* total (1) and dx (n), from x (n) and t (n) */
typedef void LossForward(float *total, const float *x, const float *t, size_t n);
typedef void LossBackward(float *dx, const float *x, const float *t, size_t n);
typedef void LossBoth(float *total, float *dx, const float *x, const float *t, size_t n);
/* total (1) and dp (batch,classes), from p (batch,classes) and labels (batch) */
typedef void CrossEntropyBoth(float *total, float *dp, const float *p, const int *labels, int batch, int classes);

static inline size_t loss_lesson_n(const int *size) { return (size_t)size[0] * (size_t)size[1]; }

static inline void loss_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LossForward *)launch)(array[0], array[1], array[2], loss_lesson_n(size));
}
static inline void loss_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LossBackward *)launch)(array[0], array[1], array[2], loss_lesson_n(size));
}
static inline void loss_both_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LossBoth *)launch)(array[0], array[1], array[2], array[3], loss_lesson_n(size));
}
static inline void cross_entropy_call(LessonLauncher launch, float *const *array, const int *size) {
  ((CrossEntropyBoth *)launch)(array[0], array[1], array[2], (const int *)array[3], size[0], size[1]);
}

static inline LessonVersion loss_forward_version(const char *name, LossForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion loss_backward_version(const char *name, LossBackward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion loss_both_version(const char *name, LossBoth *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion cross_entropy_version(const char *name, CrossEntropyBoth *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void mse_forward_cpu(float *total, const float *x, const float *t, size_t n) {
  mse_cpu(total, (float *)NULL, x, t, n);
}
static inline void mse_backward_cpu(float *dx, const float *x, const float *t, size_t n) {
  mse_cpu((float *)NULL, dx, x, t, n);
}
/* The elements are not negative, so the relative error of their sum is at most theirs. It is largest for probabilities:
 * half a unit for 1 - t, one for the logarithm, half a unit each for the product, the sum of two and the sums of four;
 * and half a unit for the total, which is added up in double and rounded once. */
static inline Tolerance loss_total_tolerance(const int *size) {
  (void)size;
  return tolerance_make(4 * FLT_EPSILON, 0);
}

/* 1 - t x cancels: the product, up to 4, was rounded. */
static inline Tolerance hinge_total_tolerance(const int *size) {
  (void)size;
  return tolerance_make(4 * FLT_EPSILON, 2 * FLT_EPSILON);
}

/* max(x, 0) - x t cancels: both were rounded, of numbers up to 100, the logits' extreme. */
static inline Tolerance bce_logits_total_tolerance(const int *size) {
  (void)size;
  return tolerance_make(4 * FLT_EPSILON, 100 * FLT_EPSILON);
}

/* A few roundings; where sigmoid(x) - t cancels, of numbers up to 1. All are divided by n. */
static inline Tolerance loss_slope_tolerance(const int *size) {
  return tolerance_make(8 * FLT_EPSILON, 4 * FLT_EPSILON / (double)loss_lesson_n(size));
}

/* Sizes are (batch, classes), because cross-entropy has rows; for the other losses it is one long array. */
static inline void loss_shapes(Lesson *lesson) {
  lesson->most = lesson_shape(lesson, 1 << 30, 1 << 30); /* cross_entropy_fused */
  lesson->timed = lesson_shape(lesson, 16384, 4096);     /* 256 MiB an array */
  lesson->counted = lesson_shape(lesson, 64, 1024);
  /* a single element; around a warp, a block and its quads; row lengths that are a multiple of four and others; more
   * floats than threads */
  const int shapes[][2] = {{1, 1}, {3, 1}, {31, 33}, {33, 31}, {127, 1}, {4, 256}, {7, 1021}, {129, 260}, {270, 1000}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
}

typedef enum LossPart { LOSS_TOTAL, LOSS_SLOPES, LOSS_TOTAL_AND_SLOPES } LossPart;

/* x and t lie in [low, high) and [t_low, t_high). */
static inline Lesson loss_lesson(LossPart part, LessonLauncher reference, float low, float high, float t_low,
                                 float t_high) {
  Lesson lesson = lesson_make("losses", "bc",
                              part == LOSS_TOTAL    ? loss_forward_call
                              : part == LOSS_SLOPES ? loss_backward_call
                                                    : loss_both_call,
                              reference);
  if (part != LOSS_SLOPES) lesson_output(&lesson, "total", "");
  if (part != LOSS_TOTAL) lesson_output(&lesson, "dx", "bc");
  lesson_input(&lesson, "x", "bc");
  lesson_input(&lesson, "t", "bc");
  lesson_range(&lesson, "x", low, high);
  lesson_range(&lesson, "t", t_low, t_high);
  lesson.tolerance = loss_slope_tolerance;
  if (part != LOSS_SLOPES) lesson_tolerance(&lesson, "total", loss_total_tolerance);
  loss_shapes(&lesson);
  return lesson;
}

static inline Lesson mse_forward_lesson(void) {
  return loss_lesson(LOSS_TOTAL, (LessonLauncher)mse_forward_cpu, -1, 2, -1, 2);
}
static inline Lesson mse_backward_lesson(void) {
  return loss_lesson(LOSS_SLOPES, (LessonLauncher)mse_backward_cpu, -1, 2, -1, 2);
}
static inline Lesson mse_lesson(void) {
  return loss_lesson(LOSS_TOTAL_AND_SLOPES, (LessonLauncher)mse_cpu<float>, -1, 2, -1, 2);
}
static inline Lesson bce_lesson(void) {
  return loss_lesson(LOSS_TOTAL_AND_SLOPES, (LessonLauncher)bce_cpu<float>, 0, 1, 0, 1);
}
/* Also beyond 89, where exp() overflows. */
static inline Lesson bce_logits_lesson(void) {
  Lesson lesson = loss_lesson(LOSS_TOTAL_AND_SLOPES, (LessonLauncher)bce_logits_cpu<float>, -12, 12, 0, 1);
  lesson_extreme(&lesson, "x", 100);
  lesson_tolerance(&lesson, "total", bce_logits_total_tolerance);
  return lesson;
}
/* t may be any number: the formula does not need -1 and 1. */
static inline Lesson hinge_lesson(void) {
  Lesson lesson = loss_lesson(LOSS_TOTAL_AND_SLOPES, (LessonLauncher)hinge_cpu<float>, -2, 2, -2, 2);
  lesson_tolerance(&lesson, "total", hinge_total_tolerance);
  return lesson;
}

/* All of dp is written; one sector per row of p is read. */
static inline double cross_entropy_bytes(const int *size) {
  return 4.0 * (double)loss_lesson_n(size) + (32.0 + 4.0) * size[0];
}

/* The probabilities are not 0. They need not sum to 1. */
static inline Lesson cross_entropy_lesson(void) {
  Lesson lesson = lesson_make("losses", "bc", cross_entropy_call, (LessonLauncher)cross_entropy_cpu<float>);
  lesson_output(&lesson, "total", "");
  lesson_output(&lesson, "dp", "bc");
  lesson_input(&lesson, "p", "bc");
  lesson_labels(&lesson, "labels", "b", 'c');
  lesson_range(&lesson, "p", 1e-3f, 1);
  lesson.bytes = cross_entropy_bytes;
  lesson.tolerance = loss_slope_tolerance;
  lesson_tolerance(&lesson, "total", loss_total_tolerance);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 7, 5)); /* shows faults best */
  loss_shapes(&lesson);
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_LOSSES_LESSON_CUH */

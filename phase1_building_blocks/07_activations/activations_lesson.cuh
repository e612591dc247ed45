/* activations_lesson.cuh - arrays, shapes, reference and tolerance of an activation, forward and backward: for the
 * program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_ACTIVATIONS_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_ACTIVATIONS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/07_activations/activations.cuh"

/* y (n) from x (n); dx (n) from dy (n) and y (n) */
typedef void ActivationForward(float *y, const float *x, size_t n);
typedef void ActivationBackward(float *dx, const float *dy, const float *y, size_t n);

static inline void activation_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = (size_t)size[0], first = lesson_first_part(n);
  if (first > 0) ((ActivationForward *)launch)(array[0], array[1], first);
  ((ActivationForward *)launch)(array[0] + first, array[1] + first, n - first);
}

static inline void activation_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = (size_t)size[0], first = lesson_first_part(n);
  if (first > 0) ((ActivationBackward *)launch)(array[0], array[1], array[2], first);
  ((ActivationBackward *)launch)(array[0] + first, array[1] + first, array[2] + first, n - first);
}

static inline LessonVersion activation_forward_version(const char *name, ActivationForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline LessonVersion activation_backward_version(const char *name, ActivationBackward *launch,
                                                        const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void activation_shapes(Lesson *lesson) {
  lesson->timed = lesson_shape(lesson, 64 << 20); /* 256 MiB per array */
  lesson->counted = lesson_shape(lesson, 1 << 16);
  /* The first shape shows faults best. The others: one element; around a warp and a block of 256; more than one block;
   * with and without a rest after the last float4; aligned to 16 bytes or not. */
  const int sizes[] = {31, 1, 3, 33, 127, 256, 1021, 1023, 40011};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) lesson_check_shape(lesson, lesson_shape(lesson, sizes[i]));
}

/* exp() and expm1() of the math libraries are accurate to 2 units in the last place; an addition and a division follow.
 * A unit is at most FLT_EPSILON times the value, and for denormal values FLT_EPSILON times FLT_MIN. */
static inline Tolerance activation_forward_tolerance(const int *size) {
  (void)size;
  return tolerance_make(4 * FLT_EPSILON, FLT_EPSILON * FLT_MIN);
}

/* Four roundings of half a unit. */
static inline Tolerance activation_backward_tolerance(const int *size) {
  (void)size;
  return tolerance_make(2 * FLT_EPSILON, 0);
}

/* A few x are 1e4 or -1e4, where exp() overflows. */
static inline Lesson activation_forward_lesson(const char *name, ActivationForward *reference) {
  Lesson lesson = lesson_make(name, "n", activation_forward_call, (LessonLauncher)reference);
  lesson_output(&lesson, "y", "n");
  lesson_input(&lesson, "x", "n");
  lesson_range(&lesson, "x", -12, 12);
  lesson_extreme(&lesson, "x", 1e4f);
  lesson.tolerance = activation_forward_tolerance;
  activation_shapes(&lesson);
  return lesson;
}

/* y lies between low and high. */
static inline Lesson activation_backward_lesson(const char *name, ActivationBackward *reference, float low,
                                                float high) {
  Lesson lesson = lesson_make(name, "n", activation_backward_call, (LessonLauncher)reference);
  lesson_output(&lesson, "dx", "n");
  lesson_input(&lesson, "dy", "n");
  lesson_input(&lesson, "y", "n");
  lesson_range(&lesson, "y", low, high);
  lesson.tolerance = activation_backward_tolerance;
  activation_shapes(&lesson);
  return lesson;
}

static inline Lesson relu_forward_lesson(void) { return activation_forward_lesson("activations", relu_forward_cpu); }
static inline Lesson relu_backward_lesson(void) {
  return activation_backward_lesson("activations", relu_backward_cpu, -1, 2);
}
static inline Lesson leaky_relu_forward_lesson(void) {
  return activation_forward_lesson("activations", leaky_relu_forward_cpu);
}
static inline Lesson leaky_relu_backward_lesson(void) {
  return activation_backward_lesson("activations", leaky_relu_backward_cpu, -1, 2);
}
/* exp(90) is infinite, but sigmoid(-90) = 8e-40 is not 0: this catches 1 / (1 + exp(-x)). */
static inline Lesson sigmoid_forward_lesson(void) {
  Lesson lesson = activation_forward_lesson("activations", sigmoid_forward_cpu);
  lesson_extreme(&lesson, "x", 90);
  return lesson;
}
static inline Lesson sigmoid_backward_lesson(void) {
  return activation_backward_lesson("activations", sigmoid_backward_cpu, 0, 1);
}
static inline Lesson tanh_forward_lesson(void) { return activation_forward_lesson("activations", tanh_forward_cpu); }
static inline Lesson tanh_backward_lesson(void) {
  Lesson lesson = activation_backward_lesson("activations", tanh_backward_cpu, -1, 1);
  lesson_extreme(&lesson, "y", 0.9999999f);
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_ACTIVATIONS_LESSON_CUH */

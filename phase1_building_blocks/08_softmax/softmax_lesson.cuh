/* softmax_lesson.cuh - arrays, shapes, reference and tolerance of softmax, forward and backward: for the program, its
 * test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/08_softmax/softmax.cuh"

/* x, y (rows,cols) */
typedef void SoftmaxForwardLauncher(float *y, const float *x, int rows, int cols);
typedef void SoftmaxBackwardLauncher(float *dx, const float *dy, const float *y, int rows, int cols);

static inline void softmax_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftmaxForwardLauncher *)launch)(array[0], array[1], size[0], size[1]);
}
static inline void softmax_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftmaxBackwardLauncher *)launch)(array[0], array[1], array[2], size[0], size[1]);
}

static inline LessonVersion softmax_forward_version(const char *name, SoftmaxForwardLauncher *launch,
                                                    const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion softmax_backward_version(const char *name, SoftmaxBackwardLauncher *launch,
                                                     const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The result is a quotient by a sum of `cols` terms. Numerator and denominator contain up to two exp() each (2 units
 * each) of arguments up to 20 in magnitude: their rounding would be a factor of 1 + 20 half units. (Scores within one
 * power of two, as here, have exact differences.) That is 2 (2 + 2 + 10) units, and 4 for products and quotients; in
 * the worst case one thread adds up all terms one after the other. */
static inline Tolerance softmax_forward_tolerance(const int *size) {
  double n = size[1];
  Tolerance tolerance = tolerance_make((32 + fmin(n, 4 * sqrt(n))) * FLT_EPSILON, FLT_MIN);
  tolerance.nan_equal = 1; /* a row whose only element is -inf gives NaN */
  return tolerance;
}

/* y (dy - dot): the dot product has `cols` terms of about a half. */
static inline Tolerance softmax_backward_tolerance(const int *size) { return tolerance_dot((size_t)size[1], 0.5); }

static inline void softmax_shapes(Lesson *lesson) {
  lesson->most = lesson_shape(lesson, INT_MAX - 127, 65535 * 128); /* naive's blocks of 128 rows; jacobian's, y */
  lesson->timed = lesson_shape(lesson, 4096, 4096);
  lesson->counted = lesson_shape(lesson, 64, 512);
  /* the first shows faults best; a single element; around a warp, around the float4s of a warp and of a block; primes;
   * row lengths that are a multiple of four and others */
  const int shapes[][2] = {{5, 33},  {1, 1},   {3, 5},   {129, 3},  {2, 31},   {7, 127},
                           {3, 257}, {2, 509}, {3, 772}, {2, 1025}, {1, 2052}, {1, 4099}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
}

static inline Lesson softmax_forward_lesson(void) {
  Lesson lesson = lesson_make("softmax", "rc", softmax_forward_call, (LessonLauncher)softmax_forward_cpu<float>);
  lesson_output(&lesson, "y", "rc");
  lesson_input(&lesson, "x", "rc");
  lesson_range(&lesson, "x", -10020, -10000); /* exp() of these is 0: without the maximum the quotients are 0/0 */
  lesson_ruled_out(&lesson, "x");             /* adds some -inf: -inf - -inf is NaN, which a kernel must avoid */
  lesson.tolerance = softmax_forward_tolerance;
  softmax_shapes(&lesson);
  return lesson;
}

static inline Lesson softmax_backward_lesson(void) {
  Lesson lesson = lesson_make("softmax", "rc", softmax_backward_call, (LessonLauncher)softmax_backward_cpu<float>);
  lesson_output(&lesson, "dx", "rc");
  lesson_input(&lesson, "dy", "rc");
  lesson_input(&lesson, "y", "rc");
  lesson_range(&lesson, "y", 0, 1);
  lesson.tolerance = softmax_backward_tolerance;
  softmax_shapes(&lesson);
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_LESSON_CUH */

/* perceptron_lesson.cuh - arrays, sizes, references and tolerances for the kernels of perceptron.cuh: used by their
 * tests and the exercises. */
#ifndef PHASE2_MLP_PERCEPTRON_LESSON_CUH
#define PHASE2_MLP_PERCEPTRON_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase2_mlp/01_perceptron/perceptron.cuh"

/* Sizes (b,i,o): samples, inputs, neurons. */
typedef void PerceptronForward(float *y, const float *x, const float *w, const float *bias, int batch, int in, int out);
typedef void PerceptronBackward(float *dw, float *dbias, const float *dy, const float *x, int batch, int in, int out);
typedef void PerceptronUpdate(float *next, const float *w, const float *dw, size_t n, float lr);

#define PERCEPTRON_LESSON_LR 0.375f

static inline void perceptron_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((PerceptronForward *)launch)(array[0], array[1], array[2], array[3], size[0], size[1], size[2]);
}
static inline void perceptron_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((PerceptronBackward *)launch)(array[0], array[1], array[2], array[3], size[0], size[1], size[2]);
}
static inline void perceptron_update_call(LessonLauncher launch, float *const *array, const int *size) {
  ((PerceptronUpdate *)launch)(array[0], array[1], array[2], (size_t)size[0], PERCEPTRON_LESSON_LR);
}

static inline Tolerance perceptron_forward_tolerance(const int *size) {
  return tolerance_dot((size_t)size[1] + 1, 1); /* the bias is one more product */
}
static inline Tolerance perceptron_backward_tolerance(const int *size) { return tolerance_dot((size_t)size[0], 1); }
static inline Tolerance perceptron_update_tolerance(const int *size) { /* one or two roundings of what is below 3 */
  (void)size;
  return tolerance_make(0, 3 * FLT_EPSILON);
}

/* Sizes that differ, so that an index with the wrong one shows; one of each; around a warp and a block; primes. */
static inline void perceptron_shapes(Lesson *lesson) {
  lesson->timed = lesson_shape(lesson, 65536, 2, 64);
  lesson->counted = lesson_shape(lesson, 512, 2, 4);
  const int shapes[][3] = {{7, 5, 3},  {4, 2, 5},  {1, 1, 1},  {1, 2, 3},    {3, 2, 1},    {31, 3, 2},
                           {33, 1, 4}, {64, 2, 1}, {97, 4, 3}, {127, 2, 31}, {200, 127, 3}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
}

static inline Lesson perceptron_forward_lesson(void) {
  Lesson lesson =
      lesson_make("perceptron_forward", "bio", perceptron_forward_call, (LessonLauncher)linear_forward_cpu<float>);
  lesson_output(&lesson, "y", "bo");
  lesson_input(&lesson, "x", "bi");
  lesson_input(&lesson, "w", "oi");
  lesson_input(&lesson, "bias", "o");
  lesson.tolerance = perceptron_forward_tolerance;
  perceptron_shapes(&lesson);
  return lesson;
}

static inline Lesson perceptron_backward_lesson(void) {
  Lesson lesson = lesson_make("perceptron_backward", "bio", perceptron_backward_call,
                              (LessonLauncher)linear_backward_weight_cpu<float>);
  lesson_output(&lesson, "dw", "oi");
  lesson_output(&lesson, "dbias", "o");
  lesson_input(&lesson, "dy", "bo");
  lesson_input(&lesson, "x", "bi");
  lesson.tolerance = perceptron_backward_tolerance;
  perceptron_shapes(&lesson);
  return lesson;
}

static inline Lesson perceptron_update_lesson(void) {
  Lesson lesson =
      lesson_make("perceptron_update", "n", perceptron_update_call, (LessonLauncher)perceptron_update_cpu<float>);
  lesson_output(&lesson, "next", "n");
  lesson_input(&lesson, "w", "n");
  lesson_input(&lesson, "dw", "n");
  lesson_scalar(&lesson, "lr", PERCEPTRON_LESSON_LR);
  lesson.tolerance = perceptron_update_tolerance;
  lesson.timed = lesson_shape(&lesson, 1 << 24);
  lesson.counted = lesson_shape(&lesson, 1 << 12);
  const int sizes[] = {33, 1, 3, 31, 127, 128, 129, 1021};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i]));
  return lesson;
}

#endif /* PHASE2_MLP_PERCEPTRON_LESSON_CUH */

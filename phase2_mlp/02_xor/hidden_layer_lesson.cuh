/* hidden_layer_lesson.cuh - arrays, sizes, reference and tolerance of the backward pass of a hidden layer: used by its
 * test and the exercise. */
#ifndef PHASE2_MLP_HIDDEN_LAYER_LESSON_CUH
#define PHASE2_MLP_HIDDEN_LAYER_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase2_mlp/02_xor/hidden_layer.cuh"

/* Sizes (b,h,o): samples, hidden neurons, neurons above them. */
typedef void HiddenBackward(Activation kind, float *da, const float *dy, const float *w, const float *h, int batch,
                            int hidden, int out);

template <Activation KIND>
static inline void hidden_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((HiddenBackward *)launch)(KIND, array[0], array[1], array[2], array[3], size[0], size[1], size[2]);
}

/* The activation's derivative is at most 1; it costs three roundings. */
static inline Tolerance hidden_backward_tolerance(const int *size) {
  Tolerance tolerance = tolerance_dot((size_t)size[2], 1);
  tolerance.relative += 3 * FLT_EPSILON;
  return tolerance;
}

/* h as the activation leaves it. */
template <Activation KIND>
static inline Lesson hidden_backward_lesson(void) {
  Lesson lesson =
      lesson_make("hidden_backward", "bho", hidden_backward_call<KIND>, (LessonLauncher)hidden_backward_cpu<float>);
  lesson_output(&lesson, "da", "bh");
  lesson_input(&lesson, "dy", "bo");
  lesson_input(&lesson, "w", "oh");
  lesson_input(&lesson, "h", "bh");
  if (KIND == ACTIVATION_TANH) lesson_range(&lesson, "h", -1, 1);
  if (KIND == ACTIVATION_SIGMOID) lesson_range(&lesson, "h", 0, 1);
  lesson.tolerance = hidden_backward_tolerance;
  lesson.timed = lesson_shape(&lesson, 65536, 128, 10);
  lesson.counted = lesson_shape(&lesson, 64, 32, 4);
  const int shapes[][3] = {{7, 5, 3},  {4, 3, 2},  {1, 1, 1},   {1, 3, 2},    {3, 1, 4},    {31, 2, 1},
                           {33, 8, 1}, {64, 2, 3}, {97, 31, 1}, {5, 127, 10}, {128, 3, 127}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE2_MLP_HIDDEN_LAYER_LESSON_CUH */

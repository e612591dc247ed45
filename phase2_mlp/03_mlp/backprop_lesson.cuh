/* backprop_lesson.cuh - arrays, sizes, references and tolerances for the kernels of a backward pass: those of
 * backprop.cuh, the gradient of the bias (linear.cuh) and the update (sgd.cuh). For their test and the exercises. */
#ifndef PHASE2_MLP_BACKPROP_LESSON_CUH
#define PHASE2_MLP_BACKPROP_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase2_mlp/03_mlp/backprop.cuh"
#include "phase2_mlp/03_mlp/sgd.cuh"

/* Sizes (b,i,o): samples, inputs, outputs. */
typedef void BackpropDelta(float *dx, const float *dy, const float *w, const float *x, int batch, int in, int out);
typedef void BackpropWeight(float *dw, const float *dy, const float *x, int batch, int in, int out);
typedef void BackpropBias(float *dbias, const float *dy, int batch, int out);

typedef void BackpropUpdate(float *next_w, float *next_velocity, const float *w, const float *velocity,
                            const float *grad, size_t n, float lr, float momentum, float weight_decay);

#define BACKPROP_LESSON_LR 0.375f
#define BACKPROP_LESSON_MOMENTUM 0.8125f
#define BACKPROP_LESSON_DECAY 0.125f

static inline void backprop_delta_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BackpropDelta *)launch)(array[0], array[1], array[2], array[3], size[0], size[1], size[2]);
}
static inline void backprop_weight_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BackpropWeight *)launch)(array[0], array[1], array[2], size[0], size[1], size[2]);
}
static inline void backprop_bias_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BackpropBias *)launch)(array[0], array[1], size[0], size[1]);
}
static inline void backprop_update_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BackpropUpdate *)launch)(array[0], array[1], array[2], array[3], array[4], (size_t)size[0], BACKPROP_LESSON_LR,
                             BACKPROP_LESSON_MOMENTUM, BACKPROP_LESSON_DECAY);
}

static inline void backprop_delta_cpu(float *dx, const float *dy, const float *w, const float *x, int batch, int in,
                                      int out) {
  hidden_backward_cpu(ACTIVATION_RELU, dx, dy, w, x, batch, in, out);
}

static inline void backprop_bias_cpu(float *dbias, const float *dy, int batch, int out) {
  for (int o = 0; o < out; o++) {
    double sum = 0;
    for (int b = 0; b < batch; b++) sum += dy[(size_t)b * out + o];
    dbias[o] = (float)sum;
  }
}

static inline void backprop_update_cpu(float *next_w, float *next_velocity, const float *w, const float *velocity,
                                       const float *grad, size_t n, float lr, float momentum, float weight_decay) {
  memcpy(next_w, w, n * sizeof *w);
  memcpy(next_velocity, velocity, n * sizeof *velocity);
  sgd_step_cpu(next_w, next_velocity, grad, n, lr, momentum, weight_decay);
}

static inline Tolerance backprop_delta_tolerance(const int *size) { return tolerance_dot((size_t)size[2], 1); }
static inline Tolerance backprop_sum_tolerance(const int *size) { return tolerance_dot((size_t)size[0], 1); }
static inline Tolerance backprop_update_tolerance(const int *size) { /* up to seven roundings of what is below 5 */
  (void)size;
  return tolerance_make(0, 7 * 4 * FLT_EPSILON);
}

/* Sizes that differ, so that an index with the wrong one shows; one of each; around a warp and a block; primes. */
static inline void backprop_shapes(Lesson *lesson) {
  lesson->timed = lesson_shape(lesson, 64, 784, 128);
  lesson->counted = lesson_shape(lesson, 64, 128, 32);
  const int shapes[][3] = {{7, 5, 3},    {4, 2, 5},   {1, 1, 1},   {1, 2, 3},    {3, 2, 1},   {31, 3, 2},
                           {33, 1, 127}, {64, 31, 5}, {5, 97, 33}, {127, 2, 31}, {3, 127, 65}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
}

static inline Lesson backprop_delta_lesson(void) {
  Lesson lesson = lesson_make("backprop_delta", "bio", backprop_delta_call, (LessonLauncher)backprop_delta_cpu);
  lesson_output(&lesson, "dx", "bi");
  lesson_input(&lesson, "dy", "bo");
  lesson_input(&lesson, "w", "oi");
  lesson_input(&lesson, "x", "bi"); /* a third of it is below 0, which no ReLU would output: a harder test */
  lesson.tolerance = backprop_delta_tolerance;
  backprop_shapes(&lesson);
  return lesson;
}

static inline Lesson backprop_weight_lesson(void) {
  Lesson lesson =
      lesson_make("backprop_weight", "bio", backprop_weight_call, (LessonLauncher)backprop_weight_cpu<float>);
  lesson_output(&lesson, "dw", "oi");
  lesson_input(&lesson, "dy", "bo");
  lesson_input(&lesson, "x", "bi");
  lesson.tolerance = backprop_sum_tolerance;
  backprop_shapes(&lesson);
  return lesson;
}

static inline Lesson backprop_bias_lesson(void) {
  Lesson lesson = lesson_make("backprop_bias", "bo", backprop_bias_call, (LessonLauncher)backprop_bias_cpu);
  lesson_output(&lesson, "dbias", "o");
  lesson_input(&lesson, "dy", "bo");
  lesson.tolerance = backprop_sum_tolerance;
  lesson.timed = lesson_shape(&lesson, 4096, 1024);
  lesson.counted = lesson_shape(&lesson, 64, 128);
  const int shapes[][2] = {{64, 33}, {1, 1}, {1, 3}, {3, 1}, {15, 31}, {16, 32}, {17, 127}, {33, 65}, {127, 10}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

static inline Lesson backprop_update_lesson(void) {
  Lesson lesson = lesson_make("backprop_update", "n", backprop_update_call, (LessonLauncher)backprop_update_cpu);
  lesson_output(&lesson, "w", "n");
  lesson_output(&lesson, "velocity", "n");
  lesson_input(&lesson, "old w", "n");
  lesson_input(&lesson, "old velocity", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_scalar(&lesson, "lr", BACKPROP_LESSON_LR);
  lesson_scalar(&lesson, "momentum", BACKPROP_LESSON_MOMENTUM);
  lesson_scalar(&lesson, "weight_decay", BACKPROP_LESSON_DECAY);
  lesson.tolerance = backprop_update_tolerance;
  lesson.timed = lesson_shape(&lesson, 1 << 24);
  lesson.counted = lesson_shape(&lesson, 1 << 12);
  const int sizes[] = {33, 1, 3, 31, 127, 255, 256, 257, 1021};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i]));
  return lesson;
}

#endif /* PHASE2_MLP_BACKPROP_LESSON_CUH */

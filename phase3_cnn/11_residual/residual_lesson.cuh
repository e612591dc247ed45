/* residual_lesson.cuh - arrays, shapes, references and tolerances of the end of a residual block: for the program, its
 * tests and the exercises. */
#ifndef PHASE3_CNN_RESIDUAL_LESSON_CUH
#define PHASE3_CNN_RESIDUAL_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/11_residual/residual.cuh"

/* All arrays hold n = planes pixels floats, mean holds `planes`. */
typedef void AddReluForward(float *y, const float *a, const float *b, size_t n);
typedef void AddReluBackward(float *da, float *db, const float *dy, const float *y, size_t n);
typedef void AddReluStep(float *y, float *da, float *db, const float *a, const float *b, const float *dy, size_t n);
typedef void AddReluMean(float *y, float *mean, const float *a, const float *b, int planes, int pixels);

static inline size_t residual_lesson_n(const int *size) { return (size_t)size[0] * size[1]; }

static inline void add_relu_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = residual_lesson_n(size), first = lesson_first_part(n);
  if (first > 0) ((AddReluForward *)launch)(array[0], array[1], array[2], first);
  ((AddReluForward *)launch)(array[0] + first, array[1] + first, array[2] + first, n - first);
}

static inline void add_relu_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = residual_lesson_n(size), first = lesson_first_part(n);
  if (first > 0) ((AddReluBackward *)launch)(array[0], array[1], array[2], array[3], first);
  ((AddReluBackward *)launch)(array[0] + first, array[1] + first, array[2] + first, array[3] + first, n - first);
}

static inline void add_relu_shared_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AddReluBackward *)launch)(array[0], array[0], array[1], array[2], residual_lesson_n(size));
}

static inline LessonVersion add_relu_forward_version(const char *name, AddReluForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void add_relu_step_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = residual_lesson_n(size), first = lesson_first_part(n);
  float *part[6];
  if (first > 0) ((AddReluStep *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], first);
  for (int i = 0; i < 6; i++) part[i] = array[i] + first;
  ((AddReluStep *)launch)(part[0], part[1], part[2], part[3], part[4], part[5], n - first);
}

static inline void add_relu_mean_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AddReluMean *)launch)(array[0], array[1], array[2], array[3], size[0], size[1]);
}

static inline LessonVersion add_relu_backward_version(const char *name, AddReluBackward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion add_relu_mean_version(const char *name, AddReluMean *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The first shape shows faults best. The others: one element; around a warp and a block of 256; with and without a rest
 * after the last float4; aligned to 16 bytes or not (lesson_first_part()); several blocks. */
static inline Lesson residual_lesson_of(void (*call)(LessonLauncher, float *const *, const int *),
                                        LessonLauncher reference) {
  static const char *const shapes[] = {"31x33", "1x1", "3x1",    "1x31",    "33x1",
                                       "127x3", "3x7", "5x1021", "17x2503", "2x257"};
  Lesson lesson = lesson_make("residual", "cp", call, reference);
  lesson.timed = lesson_shape(&lesson, 2048, 65536); /* 512 MiB per array */
  lesson.counted = lesson_shape(&lesson, 64, 1024);
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline Lesson add_relu_forward_lesson(void) {
  Lesson lesson = residual_lesson_of(add_relu_forward_call, (LessonLauncher)add_relu_forward_cpu<float>);
  lesson_output(&lesson, "y", "cp");
  lesson_input(&lesson, "a", "cp");
  lesson_input(&lesson, "b", "cp");
  return lesson;
}

static inline Lesson add_relu_backward_lesson(void) {
  Lesson lesson = residual_lesson_of(add_relu_backward_call, (LessonLauncher)add_relu_backward_cpu<float>);
  lesson_output(&lesson, "da", "cp");
  lesson_output(&lesson, "db", "cp");
  lesson_input(&lesson, "dy", "cp");
  lesson_input(&lesson, "y", "cp");
  return lesson;
}

/* da and db are one array. */
static inline Lesson add_relu_shared_lesson(void) {
  Lesson lesson = residual_lesson_of(add_relu_shared_call, (LessonLauncher)add_relu_backward_cpu<float>);
  lesson_output(&lesson, "d", "cp");
  lesson_input(&lesson, "dy", "cp");
  lesson_input(&lesson, "y", "cp");
  return lesson;
}

static inline void add_relu_step_cpu(float *y, float *da, float *db, const float *a, const float *b, const float *dy,
                                     size_t n) {
  add_relu_forward_cpu(y, a, b, n);
  add_relu_backward_cpu(da, db, dy, y, n);
}

static inline void add_relu_step_gpu(float *y, float *da, float *db, const float *a, const float *b, const float *dy,
                                     size_t n) {
  add_relu_forward_gpu(y, a, b, n);
  add_relu_backward_gpu(da, db, dy, y, n);
}

/* Both passes, so that y has zeros as it has in a network: of the exercise. */
static inline Lesson add_relu_step_lesson(void) {
  Lesson lesson = residual_lesson_of(add_relu_step_call, (LessonLauncher)add_relu_step_cpu);
  lesson_output(&lesson, "y", "cp");
  lesson_output(&lesson, "da", "cp");
  lesson_output(&lesson, "db", "cp");
  lesson_input(&lesson, "a", "cp");
  lesson_input(&lesson, "b", "cp");
  lesson_input(&lesson, "dy", "cp");
  lesson_range(&lesson, "a", -2, 2);
  return lesson;
}

/* A mean of p numbers of at most 4. */
static inline Tolerance add_relu_mean_tolerance(const int *size) {
  return tolerance_dot((size_t)size[1], 4.0 / size[1]);
}

static inline Lesson add_relu_mean_lesson(void) {
  Lesson lesson = residual_lesson_of(add_relu_mean_call, (LessonLauncher)add_relu_mean_cpu<float>);
  lesson_output(&lesson, "y", "cp");
  lesson_output(&lesson, "mean", "c");
  lesson_input(&lesson, "a", "cp");
  lesson_input(&lesson, "b", "cp");
  lesson_tolerance(&lesson, "mean", add_relu_mean_tolerance);
  return lesson;
}

#endif /* PHASE3_CNN_RESIDUAL_LESSON_CUH */

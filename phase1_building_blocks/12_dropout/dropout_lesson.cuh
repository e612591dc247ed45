/* dropout_lesson.cuh - arrays, shapes and reference of dropout: for the program, its test and the exercises. What is
 * dropped depends on seed, stream and index alone, so results are checked element by element, and exactly. */
#ifndef PHASE1_BUILDING_BLOCKS_DROPOUT_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_DROPOUT_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/12_dropout/dropout.cuh"

/* x, y (n); p is not a half, so that dropped and kept elements cannot be confused */
typedef void DropoutLauncher(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream);

/* also dx, dy (n): forward and backward of a training step */
typedef void DropoutStepLauncher(float *y, float *dx, const float *x, const float *dy, size_t n, float p, uint64_t seed,
                                 uint32_t stream);

#define DROPOUT_LESSON_P 0.4f
#define DROPOUT_LESSON_SEED 0x0123456789abcdefu
#define DROPOUT_LESSON_STREAM 0xfedcba98u

/* Each part of the arrays begins with number 0 of the stream. */
static inline void dropout_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t n = (size_t)size[0] * size[1], first = lesson_first_part(n);
  float *y = array[0], *x = array[1];
  if (first > 0) ((DropoutLauncher *)launch)(y, x, first, DROPOUT_LESSON_P, DROPOUT_LESSON_SEED, DROPOUT_LESSON_STREAM);
  ((DropoutLauncher *)launch)(y + first, x + first, n - first, DROPOUT_LESSON_P, DROPOUT_LESSON_SEED,
                              DROPOUT_LESSON_STREAM);
}
static inline void dropout_step_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DropoutStepLauncher *)launch)(array[0], array[1], array[2], array[3], (size_t)size[0] * size[1], DROPOUT_LESSON_P,
                                  DROPOUT_LESSON_SEED, DROPOUT_LESSON_STREAM);
}

static inline LessonVersion dropout_version(const char *name, DropoutLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion dropout_step_version(const char *name, DropoutStepLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The mask that forward keeps for backward, n bytes; it grows when a larger n is requested. */
static inline uint8_t *dropout_lesson_mask(size_t n) {
  static uint8_t *mask;
  static size_t size;
  if (n > size) {
    CUDA_CHECK(cudaFree(mask));
    CUDA_CHECK(cudaMalloc((void **)&mask, n));
    size = n;
  }
  return mask;
}

static inline void dropout_mask(float *y, const float *x, size_t n, float p, uint64_t seed, uint32_t stream) {
  dropout_forward_mask(y, dropout_lesson_mask(n), x, n, p, seed, stream);
}

static inline void dropout_step_mask(float *y, float *dx, const float *x, const float *dy, size_t n, float p,
                                     uint64_t seed, uint32_t stream) {
  uint8_t *mask = dropout_lesson_mask(n);
  dropout_forward_mask(y, mask, x, n, p, seed, stream);
  dropout_backward_mask(dx, mask, dy, n, p);
}
static inline void dropout_step_one_each(float *y, float *dx, const float *x, const float *dy, size_t n, float p,
                                         uint64_t seed, uint32_t stream) {
  dropout_one_each(y, x, n, p, seed, stream);
  dropout_one_each(dx, dy, n, p, seed, stream);
}
static inline void dropout_step_gpu(float *y, float *dx, const float *x, const float *dy, size_t n, float p,
                                    uint64_t seed, uint32_t stream) {
  dropout_gpu(y, x, n, p, seed, stream);
  dropout_gpu(dx, dy, n, p, seed, stream);
}
static inline void dropout_step_cpu(float *y, float *dx, const float *x, const float *dy, size_t n, float p,
                                    uint64_t seed, uint32_t stream) {
  dropout_cpu(y, x, n, p, seed, stream);
  dropout_cpu(dx, dy, n, p, seed, stream);
}

/* As a matrix (rows,cols), so that the second half of the lesson, with a softmax, has the same sizes. */
static inline void dropout_lesson_shapes(Lesson *lesson) {
  lesson->timed = lesson_shape(lesson, 32768, 1024); /* 128 MiB an array */
  lesson->counted = lesson_shape(lesson, 128, 512);
  /* the first shows faults best; within a block of Philox, around a warp, primes; more than one thread block with 4
   * elements per thread */
  const int shapes[][2] = {{1, 31}, {1, 1},   {1, 2},    {1, 3},   {2, 2},    {1, 5},
                           {3, 11}, {1, 127}, {1, 1021}, {8, 128}, {1, 2053}, {3, 2741}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
}

/* Exact: one multiplication, rounded in the same way on both sides. */
static inline Lesson dropout_lesson(void) {
  Lesson lesson = lesson_make("dropout", "rc", dropout_call, (LessonLauncher)dropout_cpu<float>);
  lesson_output(&lesson, "y", "rc");
  lesson_input(&lesson, "x", "rc");
  lesson_scalar(&lesson, "p", DROPOUT_LESSON_P);
  dropout_lesson_shapes(&lesson);
  return lesson;
}

static inline Lesson dropout_step_lesson(void) {
  Lesson lesson = lesson_make("dropout", "rc", dropout_step_call, (LessonLauncher)dropout_step_cpu);
  lesson_output(&lesson, "y", "rc");
  lesson_output(&lesson, "dx", "rc");
  lesson_input(&lesson, "x", "rc");
  lesson_input(&lesson, "dy", "rc");
  dropout_lesson_shapes(&lesson);
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_DROPOUT_LESSON_CUH */

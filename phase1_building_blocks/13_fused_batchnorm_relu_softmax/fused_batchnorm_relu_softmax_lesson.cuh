/* fused_batchnorm_relu_softmax_lesson.cuh - arrays, shapes, reference and tolerance of the fused kernel: for the
 * program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/13_fused_batchnorm_relu_softmax/fused_batchnorm_relu_softmax.cuh"

/* x, y (rows,cols); mean, variance, gamma, beta (cols) */
typedef void FusedLauncher(float *y, const float *x, const float *mean, const float *variance, const float *gamma,
                           const float *beta, int rows, int cols);

static inline void fused_call(LessonLauncher launch, float *const *array, const int *size) {
  ((FusedLauncher *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], size[0], size[1]);
}

static inline LessonVersion fused_version(const char *name, FusedLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The error of the normalised value comes from rounding scale x and mean scale, up to 6 each (2 * 2 / sqrt(0.5)), in
 * one or two steps; the relative error of its exp() is as large. The rest is that of softmax. */
static inline Tolerance fused_tolerance(const int *size) {
  double n = size[1];
  return tolerance_make((40 + fmin(n, 4 * sqrt(n))) * FLT_EPSILON, FLT_MIN);
}

static inline void fused_lesson_inputs(Lesson *lesson) {
  lesson_input(lesson, "x", "rc");
  lesson_input(lesson, "mean", "c");
  lesson_input(lesson, "variance", "c");
  lesson_input(lesson, "gamma", "c");
  lesson_input(lesson, "beta", "c");
  lesson->most = lesson_shape(lesson, INT_MAX - BATCHNORM_ROWS, 65535 * BATCHNORM_THREADS); /* batchnorm_kernel's y */
  lesson->timed = lesson_shape(lesson, 4096, 4096);
  lesson->counted = lesson_shape(lesson, 64, 512);
  /* the first shows faults best; a single element; around a warp, around the float4s of a warp and of a block; primes;
   * row lengths that are a multiple of four and others; more rows than blocks */
  const int shapes[][2] = {{3, 5},   {1, 1},    {1300, 3}, {2, 31},   {5, 33},    {70, 127},
                           {3, 257}, {19, 509}, {3, 772},  {2, 1025}, {70, 1100}, {1, 4099}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(lesson, lesson_shape(lesson, shapes[i][0], shapes[i][1]));
}

static inline Lesson fused_lesson(void) {
  Lesson lesson =
      lesson_make("fused_batchnorm_relu_softmax", "rc", fused_call, (LessonLauncher)batchnorm_relu_softmax_cpu);
  lesson_output(&lesson, "y", "rc");
  fused_lesson_inputs(&lesson);
  lesson_range(&lesson, "variance", 0.5f, 2);
  lesson.tolerance = fused_tolerance;
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The normalisation alone, for its exercises: n, and the maximum of n and 0, all (rows,cols). */

typedef void BatchnormLauncher(float *n, float *relu, const float *x, const float *mean, const float *variance,
                               const float *gamma, const float *beta, int rows, int cols);

static inline void batchnorm_call(LessonLauncher launch, float *const *array, const int *size) {
  ((BatchnormLauncher *)launch)(array[0], array[1], array[2], array[3], array[4], array[5], array[6], size[0], size[1]);
}

static inline void batchnorm_both_cpu(float *n, float *relu, const float *x, const float *mean, const float *variance,
                                      const float *gamma, const float *beta, int rows, int cols) {
  for (int row = 0; row < rows; row++)
    for (int j = 0; j < cols; j++) {
      size_t at = (size_t)row * cols + j;
      double scale = gamma[j] / sqrt((double)variance[j] + BATCHNORM_EPSILON);
      n[at] = (float)((x[at] - (double)mean[j]) * scale + beta[j]);
      relu[at] = fmaxf(n[at], 0);
    }
}

static inline void batchnorm_both(float *n, float *relu, const float *x, const float *mean, const float *variance,
                                  const float *gamma, const float *beta, int rows, int cols) {
  batchnorm_launch<false>(n, x, mean, variance, gamma, beta, rows, cols);
  batchnorm_launch<true>(relu, x, mean, variance, gamma, beta, rows, cols);
}

/* The scale is up to 2 / sqrt(1e-4), with three roundings; scale x and mean scale are up to twice as large. They, their
 * sum and the sum with beta are rounded once more: six roundings of half a unit each, for x and for the mean. */
static inline Tolerance batchnorm_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 2 * (6 * FLT_EPSILON / 2) * 2 * 200);
}

static inline Lesson batchnorm_lesson(void) {
  Lesson lesson = lesson_make("batchnorm", "rc", batchnorm_call, (LessonLauncher)batchnorm_both_cpu);
  lesson_output(&lesson, "n", "rc");
  lesson_output(&lesson, "relu", "rc");
  fused_lesson_inputs(&lesson);
  lesson.counted = lesson_shape(&lesson, 128, 511); /* no float4: the kernel with one thread per column is counted */
  lesson_range(&lesson, "variance", 1e-4f, 1e-2f);  /* epsilon is 0.1 % to 10 % of it: it must not be forgotten */
  lesson.tolerance = batchnorm_tolerance;
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_FUSED_BATCHNORM_RELU_SOFTMAX_LESSON_CUH */

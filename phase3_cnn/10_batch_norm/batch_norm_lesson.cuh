/* batch_norm_lesson.cuh - arrays, shapes, reference and tolerance of batch norm in training, forward and backward, and
 * of its fold into a convolution: for the program, its tests and the exercises. */
#ifndef PHASE3_CNN_BATCH_NORM_LESSON_CUH
#define PHASE3_CNN_BATCH_NORM_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/10_batch_norm/batch_norm2d_ladder.cuh"

typedef void BatchNorm2dLauncher(const BatchNorm2d *b);

static inline int batch_norm_pixels(const int *size) { return size[2] * size[3]; }

static inline int batch_norm_lesson_check(const int *size, Error *err) {
  const BatchNorm2dShape s = {size[0], size[1], batch_norm_pixels(size)};
  if (size[LESSON_SIZES] != 0 && size[LESSON_SIZES] != 1)
    return error_set(err, "relu=%d: 0 or 1 is expected", size[LESSON_SIZES]);
  if ((double)size[1] * size[2] * size[3] > INT_MAX)
    return error_set(err, "an image of %d x %d x %d: at most %d values are possible", size[1], size[2], size[3],
                     INT_MAX);
  if ((double)size[0] * size[2] * size[3] > INT_MAX)
    return error_set(err, "%d images of %d x %d pixels: at most %d values per channel are possible", size[0], size[2],
                     size[3], INT_MAX);
  return batch_norm2d_shape_check(s, err);
}

/* What both directions have in common. */
static inline BatchNorm2d batch_norm_lesson_arrays(const int *size) {
  BatchNorm2d b;
  memset(&b, 0, sizeof b);
  b.shape.n = size[0];
  b.shape.c = size[1];
  b.shape.pixels = batch_norm_pixels(size);
  b.after = size[LESSON_SIZES] ? BATCH_NORM_RELU : BATCH_NORM_ALONE;
  return b;
}

static inline void batch_norm_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  BatchNorm2d b = batch_norm_lesson_arrays(size);
  b.y = array[0];
  b.mean = array[1];
  b.inv_std = array[2];
  b.new_mean = array[3];
  b.new_var = array[4];
  b.x = array[5];
  b.gamma = array[6];
  b.beta = array[7];
  b.old_mean = array[8];
  b.old_var = array[9];
  b.workspace = array[10];
  ((BatchNorm2dLauncher *)launch)(&b);
}

static inline void batch_norm_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  BatchNorm2d b = batch_norm_lesson_arrays(size);
  b.dx = array[0];
  b.dgamma = array[1];
  b.dbeta = array[2];
  b.dy = array[3];
  b.x = array[4];
  b.gamma = array[5];
  b.beta = array[6];
  b.mean = array[7];
  b.inv_std = array[8];
  b.workspace = array[9];
  ((BatchNorm2dLauncher *)launch)(&b);
}

static inline LessonVersion batch_norm_version(const char *name, BatchNorm2dLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* Of whichever version needs most. */
static inline size_t batch_norm_lesson_workspace(const void *method, const int *size) {
  const BatchNorm2dShape s = {size[0], size[1], batch_norm_pixels(size)};
  const size_t slices = batch_norm2d_slices_workspace_floats(s), chip = batch_norm2d_workspace_floats(s);
  (void)method;
  return sizeof(float) * (slices > chip ? slices : chip);
}

/* Sums over a channel: a thread's run of values one after the other, then a tree. x is between -1 and 2 with a
 * deviation of 0.87, or normal. Of few values the deviation may be small, and its reciprocal large. */
static inline Tolerance batch_norm_lesson_tolerance(const int *size) {
  const double m = (double)size[0] * batch_norm_pixels(size), run = m / BATCH_NORM_THREADS + 32;
  const double few = m < 8 ? 400 : 1;
  return tolerance_make(few * (16 + 4 * sqrt(run)) * FLT_EPSILON, few * (16 + 4 * sqrt(run)) * FLT_EPSILON);
}

/* dgamma and dbeta: sums of m products. */
static inline Tolerance batch_norm_lesson_sums(const int *size) {
  const double m = (double)size[0] * batch_norm_pixels(size);
  return tolerance_dot((size_t)(m / 64) + 8, 8);
}

/* The part that both passes share; the caller adds the arrays. */
static inline Lesson batch_norm_lesson_make(void (*call)(LessonLauncher, float *const *, const int *),
                                            BatchNorm2dLauncher *reference) {
  /* the first shows faults best; two values; rows of 4 and others; a channel of several blocks, with and without float4
   */
  static const char *const shapes[] = {"3x5x3x4",   "2x1x1x1:relu=0", "1x3x1x2:relu=0", "5x2x31x1",  "2x7x7x7:relu=0",
                                       "9x33x4x49", "130x3x2x2",      "1x2x127x1",      "5x3x64x64", "3x2x71x79"};
  Lesson lesson = lesson_make("batch_norm", "nchw", call, (LessonLauncher)reference);
  lesson_parameter(&lesson, "relu", 1, 1);
  lesson.shape_check = batch_norm_lesson_check;
  lesson.most.size[1] = 65535; /* slices: the rows of a grid */
  lesson_derived(&lesson, 'p', batch_norm_pixels);
  lesson.tolerance = batch_norm_lesson_tolerance;
  lesson.workspace = batch_norm_lesson_workspace;
  lesson.method = "any"; /* asked for its workspace whatever the version */
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.timed = lesson_shape_of(&lesson, "64x256x56x56");
  lesson.counted = lesson_shape_of(&lesson, "4x8x32x32");
  return lesson;
}

static inline Lesson batch_norm_forward_lesson(void) {
  Lesson lesson = batch_norm_lesson_make(batch_norm_forward_call, batch_norm2d_forward_cpu);
  lesson_output(&lesson, "y", "ncp");
  lesson_output(&lesson, "mean", "c");
  lesson_output(&lesson, "inv_std", "c");
  lesson_output(&lesson, "running_mean", "c");
  lesson_output(&lesson, "running_var", "c");
  lesson_input(&lesson, "x", "ncp");
  lesson_input(&lesson, "gamma", "c");
  lesson_input(&lesson, "beta", "c");
  lesson_input(&lesson, "old_mean", "c");
  lesson_input(&lesson, "old_var", "c");
  lesson_range(&lesson, "old_var", 0.5f, 2);
  lesson_scalar(&lesson, "momentum", BATCH_NORM_MOMENTUM);
  return lesson;
}

static inline Lesson batch_norm_backward_lesson(void) {
  Lesson lesson = batch_norm_lesson_make(batch_norm_backward_call, batch_norm2d_backward_cpu);
  lesson_output(&lesson, "dx", "ncp");
  lesson_output(&lesson, "dgamma", "c");
  lesson_output(&lesson, "dbeta", "c");
  lesson_input(&lesson, "dy", "ncp");
  lesson_input(&lesson, "x", "ncp");
  lesson_input(&lesson, "gamma", "c");
  lesson_input(&lesson, "beta", "c");
  lesson_input(&lesson, "mean", "c");
  lesson_input(&lesson, "inv_std", "c");
  lesson_range(&lesson, "inv_std", 0.5f, 2);
  lesson_tolerance(&lesson, "dgamma", batch_norm_lesson_sums);
  lesson_tolerance(&lesson, "dbeta", batch_norm_lesson_sums);
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The fold */

typedef void BatchNorm2dFoldLauncher(BatchNorm2dFold f);

static inline void batch_norm_fold_call(LessonLauncher launch, float *const *array, const int *size) {
  const BatchNorm2dFold f = {array[0], array[1], array[2], array[3], array[4],
                             array[5], array[6], array[7], size[0],  size[1]};
  ((BatchNorm2dFoldLauncher *)launch)(f);
}

static inline Tolerance batch_norm_fold_tolerance(const int *size) {
  (void)size;
  return tolerance_make(8 * FLT_EPSILON, 16 * FLT_EPSILON);
}

static inline Lesson batch_norm_fold_lesson(void) {
  Lesson lesson = lesson_make("batch_norm_fold", "kf", batch_norm_fold_call, (LessonLauncher)batch_norm2d_fold_cpu);
  lesson_output(&lesson, "new_w", "kf");
  lesson_output(&lesson, "new_bias", "k");
  lesson_input(&lesson, "w", "kf");
  lesson_input(&lesson, "bias", "k");
  lesson_input(&lesson, "gamma", "k");
  lesson_input(&lesson, "beta", "k");
  lesson_input(&lesson, "mean", "k");
  lesson_input(&lesson, "var", "k");
  lesson_range(&lesson, "var", 0.25f, 4);
  lesson.tolerance = batch_norm_fold_tolerance;
  const int shapes[][2] = {{5, 18}, {1, 1}, {3, 27}, {33, 9}, {129, 5}};
  for (int i = 0; i < 5; i++) lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  lesson.timed = lesson_shape(&lesson, 512, 4608);
  lesson.counted = lesson_shape(&lesson, 256, 9);
  return lesson;
}

#endif /* PHASE3_CNN_BATCH_NORM_LESSON_CUH */

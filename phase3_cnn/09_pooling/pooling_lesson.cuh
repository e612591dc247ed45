/* pooling_lesson.cuh - arrays, shapes, references and tolerances of pooling: for the program, its tests and the
 * exercises.
 *
 *     bazel run //phase3_cnn:pooling -- --shape=2x3x9x8:kernel=3x2:stride=2:padding=1x0:count_include_pad=1
 *
 * The sizes are N, C, H, W. All tables have the same shape; those of the global average use only its planes, and
 * count_include_pad is of average pooling alone. */
#ifndef PHASE3_CNN_POOLING_LESSON_CUH
#define PHASE3_CNN_POOLING_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/09_pooling/avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/global_avg_pool2d.cuh"
#include "phase3_cnn/09_pooling/max_pool2d.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The shape */

static inline Pool2dShape pooling_shape(const int *size) {
  const int *given = size + LESSON_SIZES;
  const Pool2dWindow window = {given[0], given[1], given[2], given[3], given[4], given[5]};
  Pool2dShape shape = pool2d_shape_of(size[0], size[1], size[2], size[3], window);
  shape.dilation_h = given[6];
  shape.dilation_w = given[7];
  shape.ceil_mode = given[8];
  return shape;
}

static inline bool pooling_include_pad(const int *size) { return size[LESSON_SIZES + 9] != 0; }

static inline int pooling_shape_check(const int *size, Error *err) {
  const Pool2dShape shape = pooling_shape(size);
  if (max_pool2d_shape_check(shape, err) != 0) return -1;
  if (shape.kernel_h * shape.kernel_w == POOL2D_POSITIONS)
    return error_set(err, "this lesson has windows of at most %d elements", POOL2D_POSITIONS - 1);
  return 0;
}

/* What pooling_fits() is asked with: some versions do not take every shape. */
static const char pooling_average[] = "average pooling", pooling_library[] = "cuDNN";

static inline int pooling_fits(const void *method, const int *size, Error *err) {
  const Pool2dShape shape = pooling_shape(size);
  if (shape.dilation_h != 1 || shape.dilation_w != 1)
    return error_set(err, "%s has windows without dilation alone", (const char *)method);
  if (method == pooling_library && shape.ceil_mode) return error_set(err, "cuDNN has no ceil_mode");
  return 0;
}

static inline int pooling_p(const int *size) { return pool2d_out_h(pooling_shape(size)); }
static inline int pooling_q(const int *size) { return pool2d_out_w(pooling_shape(size)); }
static inline int pooling_elements(const int *size) {
  const Pool2dShape shape = pooling_shape(size);
  return shape.kernel_h * shape.kernel_w;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Calls and versions */

typedef void MaxPool2dForward(float *y, uint8_t *argmax, const float *x, Pool2dShape shape);
typedef void MaxPool2dBackward(float *dx, const float *dy, const uint8_t *argmax, Pool2dShape shape);
typedef void AvgPool2d(float *to, const float *from, Pool2dShape shape, bool include_pad); /* forward and backward */
typedef void GlobalAvgPool2d(float *to, const float *from, int planes, int pixels);

static inline void max_pool2d_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MaxPool2dForward *)launch)(array[0], (uint8_t *)array[1], array[2], pooling_shape(size));
}
static inline void max_pool2d_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MaxPool2dBackward *)launch)(array[0], array[1], (const uint8_t *)array[2], pooling_shape(size));
}
static inline void avg_pool2d_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AvgPool2d *)launch)(array[0], array[1], pooling_shape(size), pooling_include_pad(size));
}
static inline void global_avg_pool2d_call(LessonLauncher launch, float *const *array, const int *size) {
  ((GlobalAvgPool2d *)launch)(array[0], array[1], size[0] * size[1], size[2] * size[3]);
}

static inline LessonVersion max_pool2d_forward_version(const char *name, MaxPool2dForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion max_pool2d_backward_version(const char *name, MaxPool2dBackward *launch,
                                                        const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion avg_pool2d_version(const char *name, AvgPool2d *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion global_avg_pool2d_version(const char *name, GlobalAvgPool2d *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What else could have been asked for, for diagnoses */

/* The image in the upper left corner of a larger one, and no padding: it is not subtracted. `outside`: what the rest of
 * the larger one holds. */
static inline float *pooling_moved_image(const float *x, Pool2dShape s, Pool2dShape *moved, float outside) {
  *moved = s;
  moved->h += 2 * s.pad_h;
  moved->w += 2 * s.pad_w;
  moved->pad_h = moved->pad_w = 0;
  float *larger = (float *)xmalloc(pool2d_x_count(*moved) * sizeof *larger);
  for (size_t i = 0; i < pool2d_x_count(*moved); i++) larger[i] = outside;
  for (int row = 0; row < s.n * s.c * s.h; row++)
    memcpy(larger + ((size_t)(row / s.h) * moved->h + row % s.h) * moved->w, x + (size_t)row * s.w, s.w * sizeof *x);
  return larger;
}

static inline void max_pool2d_moved_call(LessonLauncher launch, float *const *array, const int *size) {
  Pool2dShape moved;
  float *x = pooling_moved_image(array[2], pooling_shape(size), &moved, -INFINITY);
  if (pooling_shape(size).ceil_mode == 0) /* otherwise there are more windows */
    ((MaxPool2dForward *)launch)(array[0], (uint8_t *)array[1], x, moved);
  free(x);
}

static inline void avg_pool2d_other_count_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AvgPool2d *)launch)(array[0], array[1], pooling_shape(size), !pooling_include_pad(size));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The lessons */

/* Sums of at most so many terms. */
static inline Tolerance pooling_tolerance(const int *size) { return tolerance_dot((size_t)pooling_elements(size), 1); }

static inline Tolerance global_avg_pool2d_tolerance(const int *size) {
  Tolerance tolerance = tolerance_dot((size_t)size[2] * size[3], 1);
  tolerance.absolute /= (double)size[2] * size[3];
  return tolerance;
}

/* More planes than a warp takes, and fewer; with float4s and without; planes that a block takes. The windows say
 * nothing. */
static inline void pooling_take_planes(Lesson *lesson) {
  static const char *const shapes[] = {"5x8x5x7",  "1x1x1x1:kernel=1", "2x3x6x6",   "1x9x1x3:kernel=1", "3x13x7x7",
                                       "70x2x4x4", "1x8x32x32",        "1x3x36x40", "1x2x41x37"};
  lesson_check_shapes(lesson, shapes, sizeof shapes / sizeof *shapes);
}

/* The part that all share; the caller adds the arrays. */
static inline Lesson pooling_lesson_make(void (*call)(LessonLauncher, float *const *, const int *),
                                         LessonLauncher reference) {
  /* The first shape shows faults best. The others: single elements; equal numbers (of 61 elements one is extreme, and
   * here they are neighbours in a column), also at the edge; rows that are float4s, pairs and neither; the last windows
   * beyond the padding; strides and paddings that differ; an image of one row; windows with gaps. */
  static const char *const shapes[] = {"2x3x9x8:kernel=3:stride=2:padding=1",
                                       "1x1x1x1:kernel=1:stride=1",
                                       "2x4x3x61:kernel=2x1:stride=1:padding=1x0",
                                       "2x2x12x16",
                                       "1x3x9x13:kernel=3:stride=2",
                                       "2x1x7x61:kernel=3:stride=2:padding=1",
                                       "1x2x8x12:kernel=3:stride=2:padding=1:ceil_mode=1",
                                       "1x3x5x7:kernel=2x3:stride=1x2:padding=1x0:count_include_pad=1",
                                       "1x2x6x8:kernel=3x4:stride=2x3:padding=1:ceil_mode=1:count_include_pad=1",
                                       "3x2x1x33:kernel=1x3:stride=1x2:padding=0x1",
                                       "5x3x7x7:kernel=3:stride=2:padding=1:count_include_pad=1",
                                       "1x2x9x11:kernel=3x2:stride=2x1:padding=1x0:dilation=2x3",
                                       "1x2x41x37:kernel=3:stride=1:padding=1"};
  Lesson lesson = lesson_make("pooling", "nchw", call, reference);
  lesson_parameter(&lesson, "kernel", 2, 2);
  lesson_parameter(&lesson, "stride", 2, 2);
  lesson_parameter(&lesson, "padding", 2, 0);
  lesson_parameter(&lesson, "dilation", 2, 1);
  lesson_parameter(&lesson, "ceil_mode", 1, 0);
  lesson_parameter(&lesson, "count_include_pad", 1, 0);
  lesson_derived(&lesson, 'p', pooling_p);
  lesson_derived(&lesson, 'q', pooling_q);
  lesson_derived(&lesson, 'k', pooling_elements);
  lesson.shape_check = pooling_shape_check;
  lesson.fits = pooling_fits;
  lesson.timed = lesson_shape_of(&lesson, "64x160x112x112:kernel=3:stride=2:padding=1");
  lesson.counted = lesson_shape_of(&lesson, "1x32x16x64:kernel=3:stride=2:padding=1");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline Lesson max_pool2d_forward_lesson(void) {
  Lesson lesson = pooling_lesson_make(max_pool2d_forward_call, (LessonLauncher)max_pool2d_forward_cpu<float>);
  lesson_output(&lesson, "y", "ncpq");
  lesson_output(&lesson, "argmax", "ncpq");
  lesson_element(&lesson, "argmax", LESSON_INDEX);
  lesson_input(&lesson, "x", "nchw");
  lesson_range(&lesson, "x", -3, -1); /* an element of the padding, taken for 0, would win */
  lesson_extreme(&lesson, "x", INFINITY);
  lesson_alternative(&lesson, "all of the padding were below and to the right of the image: it is not subtracted",
                     max_pool2d_moved_call);
  return lesson;
}

/* argmax is random: some of its elements lie in the padding, and give their gradient to nobody. */
static inline Lesson max_pool2d_backward_lesson(void) {
  Lesson lesson = pooling_lesson_make(max_pool2d_backward_call, (LessonLauncher)max_pool2d_backward_cpu<float>);
  lesson_output(&lesson, "dx", "nchw");
  lesson_input(&lesson, "dy", "ncpq");
  lesson_indices(&lesson, "argmax", "ncpq", 'k');
  lesson.tolerance = pooling_tolerance;
  return lesson;
}

static inline Lesson avg_pool2d_forward_lesson(void) {
  Lesson lesson = pooling_lesson_make(avg_pool2d_call, (LessonLauncher)avg_pool2d_forward_cpu<float>);
  lesson_output(&lesson, "y", "ncpq");
  lesson_input(&lesson, "x", "nchw");
  lesson.tolerance = pooling_tolerance;
  lesson.method = pooling_average;
  lesson_alternative(&lesson, "count_include_pad were the opposite", avg_pool2d_other_count_call);
  return lesson;
}

static inline Lesson avg_pool2d_backward_lesson(void) {
  Lesson lesson = pooling_lesson_make(avg_pool2d_call, (LessonLauncher)avg_pool2d_backward_cpu<float>);
  lesson_output(&lesson, "dx", "nchw");
  lesson_input(&lesson, "dy", "ncpq");
  lesson.tolerance = pooling_tolerance;
  lesson.method = pooling_average;
  lesson_alternative(&lesson, "count_include_pad were the opposite", avg_pool2d_other_count_call);
  return lesson;
}

static inline Lesson global_avg_pool2d_forward_lesson(void) {
  Lesson lesson = pooling_lesson_make(global_avg_pool2d_call, (LessonLauncher)global_avg_pool2d_forward_cpu<float>);
  pooling_take_planes(&lesson);
  lesson_output(&lesson, "y", "nc");
  lesson_input(&lesson, "x", "nchw");
  lesson.tolerance = global_avg_pool2d_tolerance;
  return lesson;
}

static inline Lesson global_avg_pool2d_backward_lesson(void) {
  Lesson lesson = pooling_lesson_make(global_avg_pool2d_call, (LessonLauncher)global_avg_pool2d_backward_cpu<float>);
  pooling_take_planes(&lesson);
  lesson_output(&lesson, "dx", "nchw");
  lesson_input(&lesson, "dy", "nc");
  return lesson;
}

#endif /* PHASE3_CNN_POOLING_LESSON_CUH */

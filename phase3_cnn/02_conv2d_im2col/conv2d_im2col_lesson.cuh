/* conv2d_im2col_lesson.cuh - the two copies of conv2d_im2col.cuh as lessons, for the program, its counts and the
 * exercises: x -> matrix, matrix -> dx, all images at a time. They have the sizes and parameters of conv2d_lesson.cuh;
 * K only counts for the shape's check.
 */
#ifndef PHASE3_CNN_CONV2D_IM2COL_LESSON_CUH
#define PHASE3_CNN_CONV2D_IM2COL_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"

typedef void Conv2dIm2colCopy(float *to, const float *from, Conv2dShape s, int images);

static inline void conv2d_im2col_call(LessonLauncher launch, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  ((Conv2dIm2colCopy *)launch)(array[0], array[1], s, s.n);
}

static inline LessonVersion conv2d_im2col_version(const char *name, Conv2dIm2colCopy *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void conv2d_im2col_reference(float *matrix, const float *x, Conv2dShape s, int images) {
  conv2d_im2col_cpu(matrix, x, s, 0, images);
}
static inline void conv2d_col2im_reference(float *dx, const float *matrix, Conv2dShape s, int images) {
  conv2d_col2im_cpu(dx, matrix, s, 0, images);
}

static inline int conv2d_im2col_rows_of(const int *size) { return size[1] * size[5] * size[6]; }
static inline int conv2d_im2col_columns_of(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return conv2d_im2col_columns(s, s.n);
}

/* The copies number the columns of all images, and their pixels, in an int. */
static inline int conv2d_im2col_lesson_check(const int *size, Error *err) {
  if (conv2d_lesson_check(size, err) != 0) return -1;
  const Conv2dShape s = conv2d_lesson_shape(size);
  const double columns = (double)s.n * conv2d_out_h(s) * conv2d_out_w(s), pixels = (double)s.n * s.h * s.w;
  if (fmax(columns, pixels) <= CONV2D_IM2COL_COLUMNS) return 0;
  return error_set(
      err,
      "im2col of all images of %s: a channel of them has %.0f pixels, and the matrix %.0f columns; at most "
      "%d are supported: use fewer images",
      conv2d_shape_text(s).text, pixels, columns, CONV2D_IM2COL_COLUMNS);
}

/* Adds the matrix's sizes, t (taps) and l (columns), to a lesson of conv2d_lesson.cuh and to its shapes. The lessons of
 * one program have the same sizes. */
static inline void conv2d_im2col_sizes(Lesson *lesson) {
  Error err;
  lesson_derived(lesson, 't', conv2d_im2col_rows_of);
  lesson_derived(lesson, 'l', conv2d_im2col_columns_of);
  lesson->shape_check = conv2d_im2col_lesson_check;
  LessonShape *shapes[LESSON_SHAPES + 2] = {&lesson->timed, &lesson->counted};
  for (int i = 0; i < lesson->checks; i++) shapes[2 + i] = &lesson->check[i];
  for (int i = 0; i < 2 + lesson->checks; i++)
    if (lesson_shape_complete(lesson, shapes[i], &err) != 0) die("lesson %s: %s", lesson->name, err.message);
}

static inline Tolerance conv2d_col2im_tolerance(const int *size) { return tolerance_dot((size_t)size[5] * size[6], 1); }

static inline Lesson conv2d_im2col_lesson_make(const char *name, LessonLauncher reference) {
  Lesson lesson = conv2d_lesson_make(name, conv2d_im2col_call, reference, reference);
  conv2d_im2col_sizes(&lesson);
  lesson.reference_gpu = NULL;
  lesson.flops = NULL;
  return lesson;
}

/* What else the copies could have been asked for, for diagnoses: an index computed with one slip. */
enum Conv2dIm2colSlip { SLIP_STRIDE, SLIP_DILATION, SLIP_PADDING, SLIP_TAPS, SLIP_PIXELS, SLIP_TURNED };

/* Where the element of a row and a column is copied from, with that slip; -1: it is in the padding. */
static inline ptrdiff_t conv2d_im2col_slip(Conv2dShape shape, enum Conv2dIm2colSlip slip, int row, int column) {
  const int p_count = conv2d_out_h(shape), q_count = conv2d_out_w(shape), area = shape.r * shape.s;
  int c = row / area, tap = row % area, n = column / (p_count * q_count), pixel = column % (p_count * q_count);
  int r = slip == SLIP_TAPS ? tap % shape.r : tap / shape.s, s = slip == SLIP_TAPS ? tap / shape.r : tap % shape.s;
  int p = slip == SLIP_PIXELS ? pixel % p_count : pixel / q_count;
  int q = slip == SLIP_PIXELS ? pixel / p_count : pixel % q_count;
  if (slip == SLIP_TURNED) r = shape.r - 1 - r, s = shape.s - 1 - s;
  if (slip == SLIP_STRIDE) shape.stride_h = shape.stride_w = 1;
  if (slip == SLIP_DILATION) shape.dilation_h = shape.dilation_w = 1;
  if (slip == SLIP_PADDING) shape.padding_h = shape.padding_w = 0;
  int h = p * shape.stride_h + r * shape.dilation_h - shape.padding_h;
  int v = q * shape.stride_w + s * shape.dilation_w - shape.padding_w;
  if (n >= shape.n || h < 0 || h >= shape.h || v < 0 || v >= shape.w) return -1;
  return (((ptrdiff_t)n * shape.c + c) * shape.h + h) * shape.w + v;
}

template <int SLIP>
static inline void conv2d_im2col_slip_call(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  const int rows = conv2d_im2col_rows_of(size), columns = conv2d_im2col_columns(s, s.n);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      ptrdiff_t from = conv2d_im2col_slip(s, (enum Conv2dIm2colSlip)SLIP, row, column);
      array[0][(size_t)row * columns + column] = from < 0 ? 0 : array[1][from];
    }
}

template <int SLIP>
static inline void conv2d_col2im_slip_call(LessonLauncher, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  const int rows = conv2d_im2col_rows_of(size), columns = conv2d_im2col_columns(s, s.n);
  for (size_t i = 0; i < conv2d_x_count(s); i++) array[0][i] = 0;
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      ptrdiff_t to = conv2d_im2col_slip(s, (enum Conv2dIm2colSlip)SLIP, row, column);
      if (to >= 0) array[0][to] += array[1][(size_t)row * columns + column];
    }
}

#define CONV2D_IM2COL_SLIPS(LESSON, CALL)                                                                           \
  do {                                                                                                              \
    lesson_alternative(LESSON, "the stride were 1: it is left out of an index", CALL<SLIP_STRIDE>);                 \
    lesson_alternative(LESSON, "the dilation were 1: it is left out of an index", CALL<SLIP_DILATION>);             \
    lesson_alternative(LESSON, "the padding were 0: it is left out of an index", CALL<SLIP_PADDING>);               \
    lesson_alternative(LESSON, "taps were numbered down the columns of a filter: s * R + r", CALL<SLIP_TAPS>);      \
    lesson_alternative(LESSON, "pixels were numbered down the columns of an output: q * P + p", CALL<SLIP_PIXELS>); \
    lesson_alternative(LESSON, "the filters were turned by 180 degrees: r and s run backwards", CALL<SLIP_TURNED>); \
  } while (0)

/* x (N,C,H,W) -> matrix (C R S, columns) */
static inline Lesson conv2d_im2col_lesson(const char *name) {
  Lesson lesson = conv2d_im2col_lesson_make(name, (LessonLauncher)conv2d_im2col_reference);
  lesson_output(&lesson, "matrix", "tl");
  lesson_input(&lesson, "x", "nchw");
  CONV2D_IM2COL_SLIPS(&lesson, conv2d_im2col_slip_call);
  return lesson;
}

/* matrix (C R S, columns) -> dx (N,C,H,W) */
static inline Lesson conv2d_col2im_lesson(const char *name) {
  Lesson lesson = conv2d_im2col_lesson_make(name, (LessonLauncher)conv2d_col2im_reference);
  lesson_output(&lesson, "dx", "nchw");
  lesson_input(&lesson, "matrix", "tl");
  lesson.tolerance = conv2d_col2im_tolerance;
  CONV2D_IM2COL_SLIPS(&lesson, conv2d_col2im_slip_call);
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_IM2COL_LESSON_CUH */

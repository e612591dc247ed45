/* conv2d_fft_lesson.cuh - conv2d_forward_lesson() and the gradients' lessons with shapes that transforms can compute,
 * and with the tolerance of transforms. For the program, the tests and the exercises.
 */
#ifndef PHASE3_CNN_CONV2D_FFT_LESSON_CUH
#define PHASE3_CNN_CONV2D_FFT_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/05_conv2d_fft/conv2d_fft.cuh"

/* A transform of T x T adds and subtracts all of a tile's numbers, about 1 in size, and rounds in each of its
 * log2(T^2) steps; three transforms and a product follow each other. The error is that of sums over the tile, whatever
 * the size of the filter: Higham, "Accuracy and Stability of Numerical Algorithms", ch. 24. */
static inline Tolerance conv2d_fft_tolerance(size_t length) {
  Tolerance direct = tolerance_dot(length, 1), transforms = tolerance_make(FLT_EPSILON, 0);
  transforms.absolute = 16 * FLT_EPSILON * 12 * sqrt((double)length);
  return direct.absolute > transforms.absolute ? direct : transforms;
}

static inline Tolerance conv2d_fft_forward_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return conv2d_fft_tolerance((size_t)s.c * s.r * s.s + 1);
}
static inline Tolerance conv2d_fft_backward_input_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return conv2d_fft_tolerance((size_t)s.k * s.r * s.s);
}
static inline Tolerance conv2d_fft_backward_weight_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return conv2d_fft_tolerance((size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s));
}

/* The first shape shows faults best: one tile, then several in both directions, of images of several channels. Few,
 * because emulation is slow: conv2d_fft_test.cu has many. */
static inline void conv2d_fft_take(Lesson *lesson) {
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1", "1x2x19x20x3x3x4:padding=1x2"};
  lesson_check_shapes(lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson->counted = lesson_shape_of(lesson, "2x4x28x14x32x3x3:padding=1");
  lesson->timed = lesson_shape_of(lesson, "32x64x56x56x64x7x7:padding=3");
}

static inline Lesson conv2d_fft_forward_lesson(const char *name) {
  Lesson lesson = conv2d_forward_lesson(name);
  conv2d_fft_take(&lesson);
  lesson.tolerance = conv2d_fft_forward_tolerance;
  return lesson;
}

static inline Lesson conv2d_fft_backward_input_lesson(const char *name) {
  Lesson lesson = conv2d_backward_input_lesson(name);
  conv2d_fft_take(&lesson);
  lesson.tolerance = conv2d_fft_backward_input_tolerance;
  return lesson;
}

static inline Lesson conv2d_fft_backward_weight_lesson(const char *name) {
  Lesson lesson = conv2d_backward_weight_lesson(name);
  conv2d_fft_take(&lesson);
  lesson.tolerance = conv2d_fft_backward_weight_tolerance;
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_FFT_LESSON_CUH */

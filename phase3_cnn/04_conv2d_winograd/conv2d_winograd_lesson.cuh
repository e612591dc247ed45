/* conv2d_winograd_lesson.cuh - arrays, shapes, reference and tolerances of Winograd's algorithm: for the program, the
 * test of its counts and the exercises. */
#ifndef PHASE3_CNN_CONV2D_WINOGRAD_LESSON_CUH
#define PHASE3_CNN_CONV2D_WINOGRAD_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/04_conv2d_winograd/conv2d_winograd.cuh"

/* The transforms add rounding errors to those of the sum: README.md says how much. */
static inline Tolerance conv2d_winograd_tolerance(const int *size, float times) {
  Tolerance t = conv2d_forward_tolerance(size);
  t.relative *= times;
  t.absolute *= times;
  return t;
}
static inline Tolerance conv2d_winograd2_tolerance(const int *size) { return conv2d_winograd_tolerance(size, 4); }
static inline Tolerance conv2d_winograd4_tolerance(const int *size) { return conv2d_winograd_tolerance(size, 40); }

/* F(2x2,3x3); its tolerance is too narrow for tiles of 4. */
static inline Lesson conv2d_winograd2_lesson(void) {
  Lesson lesson = conv2d_forward_lesson("conv2d_winograd");
  lesson.tolerance = conv2d_winograd2_tolerance;
  conv2d_take_3x3(&lesson);
  return lesson;
}

static inline Lesson conv2d_winograd4_lesson(void) {
  Lesson lesson = conv2d_winograd2_lesson();
  lesson.tolerance = conv2d_winograd4_tolerance;
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_WINOGRAD_LESSON_CUH */

/* conv2d_depthwise_lesson.cuh - the lessons of conv2d_lesson.cuh on shapes with as many groups as channels, and what a
 * depthwise separable convolution saves: for the program, its tests and the exercises. */
#ifndef PHASE3_CNN_CONV2D_DEPTHWISE_LESSON_CUH
#define PHASE3_CNN_CONV2D_DEPTHWISE_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_depthwise.cuh"

/* Every template; several filters per channel; edges of a strip; strides and gaps; filters without a template. */
static inline Lesson conv2d_depthwise_lesson(Lesson lesson) {
  static const char *const shapes[] = {"2x3x9x8x3x3x3:padding=1:groups=3",
                                       "1x1x1x1x1x1x1",
                                       "2x2x14x11x2x3x3:stride=2:padding=1:groups=2",
                                       "1x3x8x9x6x5x5:padding=2:groups=3",
                                       "1x2x13x12x2x5x5:stride=2:padding=2:groups=2",
                                       "1x2x7x10x2x3x2:stride=1x2:padding=0x1:dilation=2x1:groups=2",
                                       "1x3x9x6x9x7x7:padding=3:groups=3",
                                       "70x1x4x5x1x3x3:padding=1"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.timed = lesson_shape_of(&lesson, "16x128x112x112x128x3x3:padding=1:groups=128");
  lesson.counted = lesson_shape_of(&lesson, "2x4x16x32x4x3x3:padding=1:groups=4");
  lesson.method = &conv2d_depthwise_method; /* of an exercise */
  return lesson;
}

static inline Lesson conv2d_depthwise_forward_lesson(void) {
  return conv2d_depthwise_lesson(conv2d_forward_lesson("conv2d_depthwise"));
}

static inline Lesson conv2d_depthwise_backward_input_lesson(void) {
  return conv2d_depthwise_lesson(conv2d_backward_input_lesson("conv2d_depthwise"));
}

static inline Lesson conv2d_depthwise_backward_weight_lesson(void) {
  return conv2d_depthwise_lesson(conv2d_backward_weight_lesson("conv2d_depthwise"));
}

/* Lesson 1's kernels as launchers of the types of conv2d_method.cuh. */
static inline void conv2d_depthwise_forward_naive(float *y, const float *x, const float *w, const float *bias,
                                                  Conv2dShape s, float *workspace) {
  (void)workspace;
  conv2d_forward_naive(y, x, w, bias, s);
}

static inline void conv2d_depthwise_backward_input_naive(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                         float *workspace) {
  (void)workspace;
  conv2d_backward_input_naive(dx, dy, w, s);
}

static inline void conv2d_depthwise_backward_weight_naive(float *dw, float *dbias, const float *dy, const float *x,
                                                          Conv2dShape s, float *workspace) {
  (void)workspace;
  conv2d_backward_weight_naive(dw, dbias, dy, x, s);
}

#endif /* PHASE3_CNN_CONV2D_DEPTHWISE_LESSON_CUH */

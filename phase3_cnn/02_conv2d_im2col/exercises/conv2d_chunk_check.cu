/* Checks the exercise conv2d_im2col_chunk (learn/check.h): two images at a time, in a workspace for two. Some batches
 * are odd. */
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"

static inline void conv2d_check_chunk(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                      float *workspace) {
  conv2d_im2col_forward_with(conv2d_im2col_matmul, y, x, w, bias, s, 2, workspace);
}

static inline size_t conv2d_chunk_check_floats(Conv2dShape s) { return conv2d_im2col_floats(s, 2); }

static inline Lesson conv2d_chunk_check_lesson(void) {
  static const char *const shapes[] = {"3x3x9x8x5x3x3:padding=1", "1x1x1x1x1x1x1",
                                       "5x4x7x9x6x2x3:stride=2:padding=1:groups=2", "4x2x5x5x3x3x3:dilation=2"};
  static const Conv2dMethod method = {"two", NULL, conv2d_chunk_check_floats, conv2d_check_chunk, NULL, NULL};
  Lesson lesson = conv2d_forward_lesson("conv2d_im2col");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.method = &method;
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_chunk_check_lesson())

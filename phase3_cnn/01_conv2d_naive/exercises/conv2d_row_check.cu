/* Checks the exercise conv2d_row_reuse (learn/check.h). The first shape has two taps per row of a filter: then of four
 * neighbours only the last one sees an input that is missing. */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive.cuh"

static inline void conv2d_check_row(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                    float *) {
  conv2d_forward_row(y, x, w, bias, s);
}

static inline Lesson conv2d_row_check_lesson(void) {
  static const char *const shapes[] = {"2x3x9x9x5x3x2:padding=1x0", "1x1x1x1x1x1x1", "2x3x9x8x5x3x3:padding=1",
                                       "1x4x7x17x6x4x5:stride=3x2:padding=2x3:dilation=1x2:groups=2"};
  Lesson lesson = conv2d_forward_lesson("conv2d_row");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_row_check_lesson())

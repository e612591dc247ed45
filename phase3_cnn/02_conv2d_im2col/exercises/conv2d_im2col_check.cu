/* Checks the exercise conv2d_im2col_index (learn/check.h). */
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col.cuh"
#include "phase3_cnn/02_conv2d_im2col/conv2d_im2col_lesson.cuh"

static inline Lesson conv2d_im2col_check_lesson(void) {
  Lesson lesson = conv2d_im2col_lesson("conv2d_im2col");
  conv2d_take_few(&lesson);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_im2col_check_lesson())

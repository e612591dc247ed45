/* Checks the exercises of conv2d_naive.cuh (learn/check.h). */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive.cuh"

static inline void conv2d_check_naive(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                      float *) {
  conv2d_forward_naive(y, x, w, bias, s);
}

static inline Lesson conv2d_naive_check_lesson(void) {
  Lesson lesson = conv2d_forward_lesson("conv2d_naive");
  conv2d_take_few(&lesson);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_naive_check_lesson())

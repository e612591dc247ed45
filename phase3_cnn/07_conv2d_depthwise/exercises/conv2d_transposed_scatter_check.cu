/* Checks transposed_scatter, whose sums are added in any order (learn/check.h). */
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed_lesson.cuh"

#include "learn/check.h"

static inline Lesson conv2d_transposed_any_order_lesson(void) {
  Lesson lesson = conv2d_transposed_lesson();
  lesson.any_order = 1;
  return lesson;
}

CHECK_MAIN(conv2d_transposed_any_order_lesson())

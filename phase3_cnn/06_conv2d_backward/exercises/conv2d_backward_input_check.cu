/* Checks the exercises of conv2d_backward.cuh that compute dx (learn/check.h). */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_lesson.cuh"

#include "learn/check.h"

static Lesson conv2d_backward_input_check_lesson(void) {
  Lesson lesson = conv2d_backward_input_lesson("conv2d_backward");
  conv2d_take_few(&lesson);
  return lesson;
}

CHECK_MAIN(conv2d_backward_input_check_lesson())

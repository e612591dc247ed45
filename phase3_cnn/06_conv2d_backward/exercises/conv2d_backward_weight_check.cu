/* Checks the exercises of conv2d_backward.cuh that compute dw and dbias (learn/check.h). */
#include "phase3_cnn/06_conv2d_backward/conv2d_backward_lesson.cuh"

#include "learn/check.h"

static Lesson conv2d_backward_weight_check_lesson(void) {
  Lesson lesson = conv2d_backward_weight_lesson("conv2d_backward");
  /* two splits, the second one shorter; images for three slices of the sum of the bias, the last one shorter */
  static const char *const shapes[] = {"3x2x13x12x5x3x2:padding=1x0", "19x2x3x4x5x2x2",
                                       "2x4x9x10x6x3x3:padding=2x1:dilation=2x1:groups=2", "1x1x1x1x1x1x1",
                                       "9x1x12x10x3x3x3:stride=2x1"};
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.method = &conv2d_backward_split_method;
  lesson.any_order = 1; /* one of the exercises adds by atomicAdd */
  return lesson;
}

CHECK_MAIN(conv2d_backward_weight_check_lesson())

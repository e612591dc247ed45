/* Checks dnn_convolution (learn/check.h): a convolution as the descriptor says. */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase5_production/01_cudnn_layers/dnn_describe.cuh"

/* Strides, paddings and dilations that differ between rows and columns. */
static inline Lesson dnn_convolution_lesson(void) {
  static const char *const shapes[] = {"2x3x9x8x4x3x2:stride=1x2:padding=2x1:dilation=2x1", "1x2x7x9x3x3x3:padding=1x0",
                                       "1x1x6x11x2x2x4:stride=2x1:dilation=1x3:padding=0x2"};
  Lesson lesson = conv2d_forward_lesson("cudnn_layers");
  lesson.method = NULL;
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(dnn_convolution_lesson())

/* Checks dnn_convolution (learn/check.h): a convolution as the descriptor says. */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase5_production/01_cudnn_layers/dnn_describe.cuh"

/* By another descriptor, which `change` makes of the right one. */
static inline void described_call(float *const *array, const int *size, void (*change)(DnnConvolution *)) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  DnnConvolution d = {{s.padding_h, s.padding_w}, {s.stride_h, s.stride_w}, {s.dilation_h, s.dilation_w}, 0};
  change(&d);
  for (size_t i = 0; i < conv2d_y_count(s); i++)
    dnn_described_output(array[0], array[1], array[2], array[3], s, d, (int)i);
}

static inline void exchange(int pair[2]) {
  const int first = pair[0];
  pair[0] = pair[1];
  pair[1] = first;
}
static inline void change_padding(DnnConvolution *d) { exchange(d->padding); }
static inline void change_strides(DnnConvolution *d) {
  for (int i = 0; i < 2; i++) {
    const int stride = d->stride[i];
    d->stride[i] = d->dilation[i];
    d->dilation[i] = stride;
  }
}
static inline void padding_call(LessonLauncher, float *const *array, const int *size) {
  described_call(array, size, change_padding);
}
static inline void strides_call(LessonLauncher, float *const *array, const int *size) {
  described_call(array, size, change_strides);
}

/* Strides, paddings and dilations that differ between rows and columns. */
static inline Lesson dnn_convolution_lesson(void) {
  static const char *const shapes[] = {"2x3x9x8x4x3x2:stride=1x2:padding=2x1:dilation=2x1", "1x2x7x9x3x3x3:padding=1x0",
                                       "1x1x6x11x2x2x4:stride=2x1:dilation=1x3:padding=0x2"};
  Lesson lesson = conv2d_forward_lesson("cudnn_layers");
  lesson.method = NULL;
  lesson.alternatives--; /* there are no groups here */
  lesson_alternative(&lesson, "the paddings of rows and columns were exchanged", padding_call);
  lesson_alternative(&lesson, "strides were dilations, and dilations strides", strides_call);
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(dnn_convolution_lesson())

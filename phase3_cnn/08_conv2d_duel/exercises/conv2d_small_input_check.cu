/* Checks conv2d_small_spread (learn/check.h). */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/08_conv2d_duel/conv2d_small.cuh"

static inline Lesson conv2d_small_input_lesson(void) {
  /* The first is small, because diagnoses run the reference many times. */
  static const char *const shapes[] = {"2x2x14x14x3x5x5", "2x6x14x14x16x5x5", "3x1x12x10x6x5x5:padding=2",
                                       "1x3x9x13x7x3x3:padding=1"};
  Lesson lesson = conv2d_backward_input_lesson("conv2d_small_input");
  lesson.method = &conv2d_small_method;
  lesson.counted = lesson_shape_of(&lesson, "2x6x14x14x16x5x5");
  lesson.timed = lesson_shape_of(&lesson, "64x6x14x14x16x5x5");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_small_input_lesson())

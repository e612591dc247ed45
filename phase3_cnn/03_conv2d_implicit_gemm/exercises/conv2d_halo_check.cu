/* Checks the exercises of conv2d_halo.cuh (learn/check.h). */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_halo.cuh"

static inline Lesson conv2d_halo_check_lesson(void) {
  Lesson lesson = conv2d_forward_lesson("conv2d_implicit_gemm");
  conv2d_take_few(&lesson);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_halo_check_lesson())

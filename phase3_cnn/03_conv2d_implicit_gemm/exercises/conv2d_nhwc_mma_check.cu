/* Checks the exercise of conv2d_nhwc_mma.cuh (learn/check.h). */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc_mma.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_core_lesson.cuh"

#include "learn/check.h"

/* One kernel: tiles of 64 x 64, channels in multiples of 8. The others would be compiled again after each edit. */
static inline void conv2d_nhwc_tiles(__nv_bfloat16 *y, const __nv_bfloat16 *x, const __nv_bfloat16 *w,
                                     const float *bias, Conv2dShape s, bool relu) {
  mma_require();
  Conv2dGather g = conv2d_gather(s, false);
  conv2d_nhwc_mma_run<__nv_bfloat16, 64, 64, 32, 32, 3, true, false>(y, x, w, bias, &g, relu);
}

static inline Lesson conv2d_gather_lesson(void) {
  static const char *const shapes[] = {"2x8x5x6x3x3x2:padding=1x0", "1x8x1x1x1x1x1",
                                       "2x8x7x9x4x3x2:stride=2x3:padding=2x1",
                                       "1x16x9x10x6x3x3:padding=2x1:dilation=2x1:groups=2", "3x8x3x5x8x1x1"};
  Lesson lesson = conv2d_bfloat16_lesson();
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.counted = lesson_shape_of(&lesson, "1x16x6x18x16x3x3");
  return lesson;
}

CHECK_MAIN(conv2d_gather_lesson())

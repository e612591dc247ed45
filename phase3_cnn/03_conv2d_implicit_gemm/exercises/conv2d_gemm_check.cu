/* Checks the exercises of conv2d_gemm.cuh (learn/check.h). For the one about the epilogue the shapes have more filters
 * than a tile and groups; for the one about the copies, 8 and 16 channels. */
#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm_register.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"

/* The smallest tiles, which take the least time to compile. */
static inline void conv2d_check_implicit_gemm(float *y, const float *x, const float *w, const float *bias,
                                              Conv2dShape s, float *workspace) {
  Conv2dEpilogue epilogue = {bias, -INFINITY};
  Conv2dGemm g = conv2d_gemm(y, s, 32);
  Conv2dPacked packed = conv2d_gemm_packed(g, workspace);
  conv2d_gemm_pack(packed, w, g);
  conv2d_gemm_run<32, 64, 32, 32, 8, 4, 3, 8, CONV2D_BY_CHANNEL>(y, x, packed, workspace + packed.floats, g, epilogue);
}

static inline Lesson conv2d_gemm_check_lesson(void) {
  static const char *const shapes[] = {"2x8x9x7x5x3x2:padding=1x0", "1x16x7x9x6x3x3:stride=2x1:padding=1x2",
                                       "2x16x9x10x6x3x3:padding=2x1:dilation=2x1:groups=2", "1x8x1x1x1x1x1"};
  Lesson lesson = conv2d_forward_lesson("conv2d_implicit_gemm");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  lesson.counted = lesson_shape_of(&lesson, "1x8x16x32x32x3x3:padding=1");
  lesson.method = &conv2d_implicit_gemm_method;
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(conv2d_gemm_check_lesson())

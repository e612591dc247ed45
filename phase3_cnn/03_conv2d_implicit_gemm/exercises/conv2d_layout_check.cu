/* Checks the exercise of conv2d_nhwc.cuh (learn/check.h). */
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_tensor_core_lesson.cuh"

#include "learn/check.h"

static inline void conv2d_to_nhwc_bfloat16(__nv_bfloat16 *to, const float *from, int n, int c, int pixels) {
  conv2d_to_nhwc(to, from, n, c, pixels);
}

CHECK_MAIN(conv2d_layout_lesson())

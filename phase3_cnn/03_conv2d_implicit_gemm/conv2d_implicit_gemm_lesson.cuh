/* conv2d_implicit_gemm_lesson.cuh - what the program and the test of the counts share: each configuration as a version,
 * and the lesson of convolution, bias and ReLU. */
#ifndef PHASE3_CNN_CONV2D_IMPLICIT_GEMM_LESSON_CUH
#define PHASE3_CNN_CONV2D_IMPLICIT_GEMM_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_naive_method.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_gemm_register.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_implicit_gemm.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Configurations */

template <int CONFIGURATION>
static inline void conv2d_forward_configuration(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape s, float *workspace) {
  Conv2dEpilogue epilogue = {bias, -INFINITY};
  conv2d_gemm_with(CONFIGURATION, y, x, w, s, epilogue, workspace);
}

static inline LessonVersion conv2d_configuration_version(int configuration) {
  static Conv2dForward *const launchers[] = {conv2d_forward_configuration<0>, conv2d_forward_configuration<1>,
                                             conv2d_forward_configuration<2>, conv2d_forward_configuration<3>,
                                             conv2d_forward_configuration<4>, conv2d_forward_configuration<5>,
                                             conv2d_forward_configuration<6>};
  static_assert(sizeof launchers / sizeof *launchers == CONV2D_GEMM_CONFIGURATIONS, "a launcher per configuration");
  static Conv2dMethod methods[CONV2D_GEMM_CONFIGURATIONS];
  methods[configuration] = conv2d_implicit_gemm_method;
  methods[configuration].forward = launchers[configuration];
  return conv2d_forward_version_of(conv2d_gemm_configurations[configuration].name, &methods[configuration], "");
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Convolution, bias, ReLU */

static inline void conv2d_bias_relu_reference(float *y, const float *x, const float *w, const float *bias,
                                              Conv2dShape s, float *) {
  conv2d_forward_cpu<float>(y, x, w, bias, s);
  for (size_t i = 0; i < conv2d_y_count(s); i++) y[i] = y[i] < 0 ? 0 : y[i];
}

/* y (images,k,area): one thread per element. bias may be NULL. */
static __global__ void conv2d_bias_relu_kernel(float *y, const float *bias, int k, int area, size_t count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float v = y[i] + (bias != NULL ? bias[i / area % k] : 0.0f);
  y[i] = v < 0.0f ? 0.0f : v;
}

/* In two kernels: the second one reads y and writes it again. */
static inline void conv2d_then_bias_relu(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                         float *workspace) {
  size_t count = conv2d_y_count(s);
  conv2d_forward_implicit_gemm(y, x, w, NULL, s, workspace);
  conv2d_bias_relu_kernel<<<(unsigned)((count + 255) / 256), 256>>>(y, bias, s.k, conv2d_out_h(s) * conv2d_out_w(s),
                                                                    count);
  CUDA_CHECK_LAUNCH();
}

static inline void conv2d_bias_relu_reference_gpu(float *y, const float *x, const float *w, const float *bias,
                                                  Conv2dShape s, float *workspace) {
  size_t count = conv2d_y_count(s);
  conv2d_forward_reference_gpu(y, x, w, bias, s, workspace);
  conv2d_bias_relu_kernel<<<(unsigned)((count + 255) / 256), 256>>>(y, NULL, 1, 1, count);
  CUDA_CHECK_LAUNCH();
}

static inline Lesson conv2d_bias_relu_lesson(void) {
  Lesson lesson = conv2d_forward_lesson("conv2d_implicit_gemm");
  lesson.reference = (LessonLauncher)conv2d_bias_relu_reference;
  lesson.reference_gpu = (LessonLauncher)conv2d_bias_relu_reference_gpu;
  lesson.counted = lesson_shape_of(&lesson, "1x8x8x32x128x3x3:padding=1"); /* full tiles of every version */
  return lesson;
}

static const Conv2dMethod conv2d_then_bias_relu_method = {
    "conv, then bias+ReLU", NULL, conv2d_implicit_gemm_workspace_floats, conv2d_then_bias_relu, NULL, NULL};
static const Conv2dMethod conv2d_bias_relu_method = {
    "conv+bias+ReLU", NULL, conv2d_implicit_gemm_workspace_floats, conv2d_bias_relu_forward_implicit_gemm, NULL, NULL};

#endif /* PHASE3_CNN_CONV2D_IMPLICIT_GEMM_LESSON_CUH */

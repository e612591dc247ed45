/* conv2d_tensor_core_lesson.cuh - arrays, shapes, reference and tolerance of convolution in NHWC, on bfloat16 and on
 * floats that are multiplied as TF32; and of the change of layout: for the program, its tests and the exercises. */
#ifndef PHASE3_CNN_CONV2D_TENSOR_CORE_LESSON_CUH
#define PHASE3_CNN_CONV2D_TENSOR_CORE_LESSON_CUH

#include "phase3_cnn/01_conv2d_naive/conv2d_lesson.cuh"
#include "phase3_cnn/03_conv2d_implicit_gemm/conv2d_nhwc.cuh"

/* y (N,P,Q,K) from x (N,H,W,C), w (K,R,S,C/groups), bias (K) */
typedef void Conv2dBfloat16(__nv_bfloat16 *y, const __nv_bfloat16 *x, const __nv_bfloat16 *w, const float *bias,
                            Conv2dShape s, bool relu);
typedef void Conv2dTf32(float *y, const float *x, const float *w, const float *bias, Conv2dShape s, bool relu);

static inline void conv2d_bfloat16_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dBfloat16 *)launch)((__nv_bfloat16 *)array[0], (const __nv_bfloat16 *)array[1],
                             (const __nv_bfloat16 *)array[2], array[3], conv2d_lesson_shape(size), false);
}
static inline void conv2d_tf32_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dTf32 *)launch)(array[0], array[1], array[2], array[3], conv2d_lesson_shape(size), false);
}

static inline LessonVersion conv2d_bfloat16_version(const char *name, Conv2dBfloat16 *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion conv2d_tf32_version(const char *name, Conv2dTf32 *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The reference in double, for shapes that would take the CPU minutes. */
template <typename T>
static inline void conv2d_nhwc_reference_gpu(T *y, const T *x, const T *w, const float *bias, Conv2dShape s,
                                             bool relu) {
  conv2d_forward_nhwc_naive_kernel<T, double>
      <<<conv2d_blocks(conv2d_y_count(s)), CONV2D_BLOCK>>>(y, x, w, bias, s, conv2d_out_h(s), conv2d_out_w(s), relu);
  CUDA_CHECK_LAUNCH();
}

/* Products of bfloat16 are exact in float32. The sums are rounded on the way, and at last to bfloat16, as the expected
 * ones are. Where a sum is almost in the middle, one is rounded up and the other down: a unit of the last place. */
static inline Tolerance conv2d_bfloat16_tolerance(const int *size) {
  Tolerance t = conv2d_forward_tolerance(size);
  t.relative = 1.01 / 128;
  return t;
}

/* Both factors are rounded to 10 bits of fraction: a product errs by up to 2^-10 of itself. The errors of n products
 * behave as if independent (compare_element.h). */
static inline Tolerance conv2d_tf32_tolerance(const int *size) {
  Tolerance t = conv2d_forward_tolerance(size);
  const Conv2dShape s = conv2d_lesson_shape(size);
  double n = (double)s.c / s.groups * s.r * s.s;
  t.absolute += fmin(n, 4 * sqrt(n)) / 1024;
  return t;
}

static inline Lesson conv2d_nhwc_lesson(const char *name, LessonElement element,
                                        void (*call)(LessonLauncher, float *const *, const int *),
                                        LessonLauncher reference, LessonLauncher reference_gpu) {
  /* as in conv2d_lesson.cuh; with channels that are multiples of 16 bytes, several steps and tiles, and others */
  static const char *const shapes[] = {"2x8x9x7x6x3x3:padding=1",
                                       "1x1x1x1x1x1x1",
                                       "2x3x9x8x5x3x3:padding=1",
                                       "1x24x11x10x66x3x3:stride=2:padding=1",
                                       "1x8x12x9x8x5x3:stride=2x3:padding=2x1",
                                       "2x32x9x10x16x3x3:padding=2x1:dilation=2x1:groups=2",
                                       "1x6x8x7x6x3x3:stride=1x2:padding=1:groups=6",
                                       "3x72x6x5x16x1x1",
                                       "1x64x5x16x72x3x3:padding=1"};
  Lesson lesson = conv2d_lesson_make(name, call, reference, reference_gpu);
  lesson_output(&lesson, "y", "npqk");
  lesson_input(&lesson, "x", "nhwc");
  lesson_input(&lesson, "w", "krsd");
  lesson_input(&lesson, "bias", "k");
  for (int i = 0; i < 3; i++) lesson_element(&lesson, lesson.array[i].name, element);
  lesson.timed = lesson_shape_of(&lesson, "64x128x28x28x128x3x3:padding=1");
  lesson.counted = lesson_shape_of(&lesson, "1x64x6x18x64x3x3");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline Lesson conv2d_bfloat16_lesson(void) {
  Lesson lesson = conv2d_nhwc_lesson("conv2d_tensor_core", LESSON_BFLOAT16, conv2d_bfloat16_call,
                                     (LessonLauncher)conv2d_forward_nhwc_cpu<__nv_bfloat16>,
                                     (LessonLauncher)conv2d_nhwc_reference_gpu<__nv_bfloat16>);
  lesson.tolerance = conv2d_bfloat16_tolerance;
  return lesson;
}

static inline Lesson conv2d_tf32_lesson(void) {
  Lesson lesson =
      conv2d_nhwc_lesson("conv2d_tf32", LESSON_FLOAT, conv2d_tf32_call, (LessonLauncher)conv2d_forward_nhwc_cpu<float>,
                         (LessonLauncher)conv2d_nhwc_reference_gpu<float>);
  lesson.tolerance = conv2d_tf32_tolerance;
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Layout: x (N,C,H,W) float -> (N,H,W,C) bfloat16 */

typedef void Conv2dLayout(__nv_bfloat16 *to, const float *from, int n, int c, int pixels);

static inline void conv2d_layout_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dLayout *)launch)((__nv_bfloat16 *)array[0], array[1], size[0], size[1], size[2] * size[3]);
}

static inline void conv2d_to_nhwc_cpu(__nv_bfloat16 *to, const float *from, int n, int c, int pixels) {
  // >>> hidden conv2d_nhwc_store
  for (int image = 0; image < n; image++)
    for (int pixel = 0; pixel < pixels; pixel++)
      for (int channel = 0; channel < c; channel++)
        conv2d_narrow(to++, from[((size_t)image * c + channel) * pixels + pixel]);
  // <<< hidden
}

static inline LessonVersion conv2d_layout_version(const char *name, Conv2dLayout *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline double conv2d_layout_bytes(const int *size) {
  return 6.0 * size[0] * size[1] * size[2] * size[3]; /* 4 read, 2 written */
}

static inline Lesson conv2d_layout_lesson(void) {
  static const char *const shapes[] = {"2x3x5x7x1x1x1", "1x1x1x1x1x1x1", "3x33x1x31x1x1x1", "1x70x9x8x1x1x1"};
  Lesson lesson = conv2d_lesson_make("conv2d_layout", conv2d_layout_call, (LessonLauncher)conv2d_to_nhwc_cpu, NULL);
  lesson_output(&lesson, "to", "nhwc");
  lesson_input(&lesson, "from", "nchw");
  lesson_element(&lesson, "to", LESSON_BFLOAT16);
  lesson.flops = NULL;
  lesson.bytes = conv2d_layout_bytes;
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "64x128x28x28x128x3x3:padding=1");
  lesson.counted = lesson_shape_of(&lesson, "1x64x6x18x64x3x3");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_TENSOR_CORE_LESSON_CUH */

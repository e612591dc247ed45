/* conv2d_transposed_lesson.cuh - arrays, shapes, reference and tolerance of a transposed convolution: for the program,
 * its tests and the exercises. */
#ifndef PHASE3_CNN_CONV2D_TRANSPOSED_LESSON_CUH
#define PHASE3_CNN_CONV2D_TRANSPOSED_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/07_conv2d_depthwise/conv2d_transposed.cuh"

/* The sizes are N, C, H, W of x and K, R, S; parameters as conv2d_lesson.cuh has them, and output_padding. */
static inline int conv2d_transposed_lesson_mirror(const int *size, Conv2dShape *mirror, Error *err) {
  const int *given = size + LESSON_SIZES;
  const Conv2dShape like = {1,        1,        1,        1,        1,        size[5],  size[6],
                            given[0], given[1], given[2], given[3], given[4], given[5], given[6]};
  return conv2d_transposed_mirror(mirror, size[0], size[1], size[2], size[3], size[4], like, given[7], given[8], err);
}

static inline Conv2dShape conv2d_transposed_lesson_shape(const int *size) {
  Conv2dShape mirror;
  Error err;
  if (conv2d_transposed_lesson_mirror(size, &mirror, &err) != 0) die("%s", err.message);
  return mirror;
}

static inline int conv2d_transposed_lesson_check(const int *size, Error *err) {
  Conv2dShape mirror;
  return conv2d_transposed_lesson_mirror(size, &mirror, err);
}

static inline int conv2d_transposed_lesson_p(const int *size) { return conv2d_transposed_lesson_shape(size).h; }
static inline int conv2d_transposed_lesson_q(const int *size) { return conv2d_transposed_lesson_shape(size).w; }
static inline int conv2d_transposed_lesson_filters(const int *size) { return size[4] / size[LESSON_SIZES + 6]; }
static inline double conv2d_transposed_lesson_flops(const int *size) {
  return conv2d_flops(conv2d_transposed_lesson_shape(size));
}

/* A sum has at most C / groups R S terms, and the bias. */
static inline Tolerance conv2d_transposed_tolerance(const int *size) {
  const Conv2dShape m = conv2d_transposed_lesson_shape(size);
  return tolerance_dot((size_t)m.k / m.groups * m.r * m.s + 1, 1);
}

static inline void conv2d_transposed_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dTransposedForward *)launch)(array[0], array[1], array[2], array[3], conv2d_transposed_lesson_shape(size));
}

static inline LessonVersion conv2d_transposed_version(const char *name, Conv2dTransposedForward *launch,
                                                      const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The gathering kernel's sums in double, for shapes that would take the CPU minutes. */
static __global__ void conv2d_transposed_reference_kernel(float *y, const float *x, const float *w, const float *bias,
                                                          Conv2dShape m, int height, int width) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, pixels = (size_t)m.h * m.w;
  if (i >= (size_t)m.n * m.c * pixels) return;
  int q = (int)(i % m.w), p = (int)(i / m.w % m.h), k = (int)(i / pixels % m.c), n = (int)(i / pixels / m.c);
  int filters = m.c / m.groups, channels = m.k / m.groups;
  double sum = bias[k];
  for (int tap = 0; tap < channels * m.r * m.s; tap++) {
    int s = tap % m.s, r = tap / m.s % m.r, c = k / filters * channels + tap / (m.r * m.s);
    int up = p + m.padding_h - r * m.dilation_h, left = q + m.padding_w - s * m.dilation_w;
    if (up < 0 || left < 0 || up % m.stride_h != 0 || left % m.stride_w != 0) continue;
    if (up / m.stride_h >= height || left / m.stride_w >= width) continue;
    sum += (double)w[(((size_t)c * filters + k % filters) * m.r + r) * m.s + s] *
           x[(((size_t)n * m.k + c) * height + up / m.stride_h) * width + left / m.stride_w];
  }
  y[i] = (float)sum;
}

static inline void conv2d_transposed_reference_gpu(float *y, const float *x, const float *w, const float *bias,
                                                   Conv2dShape m) {
  conv2d_transposed_reference_kernel<<<conv2d_blocks(conv2d_x_count(m)), CONV2D_BLOCK>>>(
      y, x, w, bias, m, conv2d_out_h(m), conv2d_out_w(m));
  CUDA_CHECK_LAUNCH();
}

/* What else could have been computed, for diagnoses: the same sums, with another stride or padding in the index. */
static inline void conv2d_transposed_placed(float *const *array, Conv2dShape m, Conv2dShape like) {
  const int height = conv2d_out_h(m), width = conv2d_out_w(m), filters = m.c / m.groups, channels = m.k / m.groups;
  for (size_t i = 0; i < conv2d_x_count(m); i++) array[0][i] = array[3][i / m.h / m.w % m.c];
  for (int n = 0; n < m.n; n++)
    for (int c = 0; c < m.k; c++)
      for (int f = 0; f < filters; f++)
        for (int i = 0; i < height * width * m.r * m.s; i++) {
          const int s = i % m.s, r = i / m.s % m.r, v = i / m.s / m.r % width, h = i / m.s / m.r / width;
          const int p = h * like.stride_h - like.padding_h + r * like.dilation_h;
          const int q = v * like.stride_w - like.padding_w + s * like.dilation_w, k = c / channels * filters + f;
          if (p < 0 || p >= m.h || q < 0 || q >= m.w) continue;
          array[0][(((size_t)n * m.c + k) * m.h + p) * m.w + q] +=
              array[2][((size_t)(c * filters + f) * m.r + r) * m.s + s] *
              array[1][(((size_t)n * m.k + c) * height + h) * width + v];
        }
}

static inline void conv2d_transposed_stride_1_call(LessonLauncher, float *const *array, const int *size) {
  Conv2dShape m = conv2d_transposed_lesson_shape(size), like = m;
  like.stride_h = like.stride_w = 1;
  conv2d_transposed_placed(array, m, like);
}

static inline void conv2d_transposed_unpadded_call(LessonLauncher, float *const *array, const int *size) {
  Conv2dShape m = conv2d_transposed_lesson_shape(size), like = m;
  like.padding_h = like.padding_w = 0;
  conv2d_transposed_placed(array, m, like);
}

/* The first shape shows faults best. The others: one element; output padding; strides larger than the filter, so that
 * some outputs have no tap; gaps; groups; padding that cuts off; more filters than a thread computes. */
static inline Lesson conv2d_transposed_lesson(void) {
  static const char *const shapes[] = {"2x3x4x5x5x3x3:stride=2:padding=1:output_padding=1",
                                       "1x1x1x1x1x1x1",
                                       "1x2x3x4x3x2x3:stride=3x2",
                                       "1x2x3x3x2x1x2:stride=3:output_padding=2",
                                       "2x4x5x4x6x3x3:stride=2x1:padding=1x0:dilation=2x3:groups=2",
                                       "1x3x4x4x17x4x4:stride=2:padding=1",
                                       "1x2x6x7x1x5x5:padding=4"};
  Lesson lesson = lesson_make("conv2d_transposed", "nchwkrs", conv2d_transposed_call,
                              (LessonLauncher)conv2d_transposed_forward_cpu<float>);
  lesson_parameter(&lesson, "stride", 2, 1);
  lesson_parameter(&lesson, "padding", 2, 0);
  lesson_parameter(&lesson, "dilation", 2, 1);
  lesson_parameter(&lesson, "groups", 1, 1);
  lesson_parameter(&lesson, "output_padding", 2, 0);
  lesson_derived(&lesson, 'p', conv2d_transposed_lesson_p);
  lesson_derived(&lesson, 'q', conv2d_transposed_lesson_q);
  lesson_derived(&lesson, 'f', conv2d_transposed_lesson_filters);
  lesson_alternative(&lesson, "the stride were 1: it is left out of an index", conv2d_transposed_stride_1_call);
  lesson_alternative(&lesson, "the padding were 0: it is left out of an index", conv2d_transposed_unpadded_call);
  lesson.shape_check = conv2d_transposed_lesson_check;
  lesson_output(&lesson, "y", "nkpq");
  lesson_input(&lesson, "x", "nchw");
  lesson_input(&lesson, "w", "cfrs");
  lesson_input(&lesson, "bias", "k");
  lesson.reference_gpu = (LessonLauncher)conv2d_transposed_reference_gpu;
  lesson.flops = conv2d_transposed_lesson_flops;
  lesson.tolerance = conv2d_transposed_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "16x64x64x64x64x3x3:stride=2:padding=1:output_padding=1");
  lesson.counted = lesson_shape_of(&lesson, "1x8x8x16x8x4x4:stride=2:padding=1");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_TRANSPOSED_LESSON_CUH */

/* conv2d_lesson.cuh - arrays, shapes, references and tolerances of convolution and its two gradients: for the programs,
 * tests and exercises of lessons 1 to 7.
 *
 *     Lesson forward = conv2d_forward_lesson("conv2d_im2col");   // or conv2d_backward_input_lesson(), _weight_lesson()
 *     const LessonVersion versions[] = {
 *         conv2d_forward_version("naive", conv2d_forward_launch, "no workspace, every shape: a launcher alone"),
 *         conv2d_forward_version_of("im2col", &conv2d_im2col_method, "workspace and refusals are the method's")};
 *
 *     bazel run //phase3_cnn:conv2d_naive -- --shape=8x16x28x30x32x3x3:stride=2:padding=1x2:dilation=1:groups=2
 *
 * The sizes are N, C, H, W, K, R, S. A launcher has the type Conv2dForward, Conv2dBackwardInput or Conv2dBackwardWeight
 * (conv2d_method.cuh); its workspace is there when it runs, as large as its method says, and full of NaN. For a method
 * that does not take every shape: conv2d_take_3x3() keeps only shapes of 3 x 3 filters, lesson_check_shapes() those of
 * a list; conv2d_take_few() makes the check of an exercise quick; lesson.method is the method of an exercise.
 */
#ifndef PHASE3_CNN_CONV2D_LESSON_CUH
#define PHASE3_CNN_CONV2D_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/01_conv2d_naive/conv2d_cpu.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_gpu.cuh"
#include "phase3_cnn/01_conv2d_naive/conv2d_method.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* The shape */

static inline Conv2dShape conv2d_lesson_shape(const int *size) {
  const int *given = size + LESSON_SIZES;
  Conv2dShape shape = {size[0],  size[1],  size[2],  size[3],  size[4],  size[5],  size[6],
                       given[0], given[1], given[2], given[3], given[4], given[5], given[6]};
  return shape;
}

static inline int conv2d_lesson_check(const int *size, Error *err) {
  return conv2d_shape_check(conv2d_lesson_shape(size), err);
}

static inline int conv2d_lesson_p(const int *size) { return conv2d_out_h(conv2d_lesson_shape(size)); }
static inline int conv2d_lesson_q(const int *size) { return conv2d_out_w(conv2d_lesson_shape(size)); }
static inline int conv2d_lesson_channels(const int *size) { return size[1] / conv2d_lesson_shape(size).groups; }

static inline double conv2d_lesson_flops(const int *size) { return conv2d_flops(conv2d_lesson_shape(size)); }

/* What a method says of a shape. */
static inline int conv2d_lesson_fits(const void *method, const int *size, Error *err) {
  const Conv2dMethod *of = (const Conv2dMethod *)method;
  return of->fits != NULL ? of->fits(conv2d_lesson_shape(size), err) : 0;
}
static inline size_t conv2d_lesson_workspace(const void *method, const int *size) {
  const Conv2dMethod *of = (const Conv2dMethod *)method;
  return of->workspace_floats != NULL ? of->workspace_floats(conv2d_lesson_shape(size)) * sizeof(float) : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Calls and versions. The workspace lies behind the arrays. */

/* y (n,k,p,q) from x (n,c,h,w), w (k,d,r,s), bias (k); d: channels per group */
static inline void conv2d_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dForward *)launch)(array[0], array[1], array[2], array[3], conv2d_lesson_shape(size), array[4]);
}

/* dx (n,c,h,w) from dy (n,k,p,q), w (k,d,r,s) */
static inline void conv2d_backward_input_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dBackwardInput *)launch)(array[0], array[1], array[2], conv2d_lesson_shape(size), array[3]);
}

/* dw (k,d,r,s), dbias (k) from dy (n,k,p,q), x (n,c,h,w) */
static inline void conv2d_backward_weight_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Conv2dBackwardWeight *)launch)(array[0], array[1], array[2], array[3], conv2d_lesson_shape(size), array[4]);
}

/* Launchers that take every shape and need no workspace. */
static inline LessonVersion conv2d_forward_version(const char *name, Conv2dForward *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion conv2d_backward_input_version(const char *name, Conv2dBackwardInput *launch,
                                                          const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}
static inline LessonVersion conv2d_backward_weight_version(const char *name, Conv2dBackwardWeight *launch,
                                                           const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The launchers of a method. */
static inline LessonVersion conv2d_forward_version_of(const char *name, const Conv2dMethod *method, const char *limit) {
  return lesson_version_of(name, (LessonLauncher)method->forward, method, limit);
}
static inline LessonVersion conv2d_backward_input_version_of(const char *name, const Conv2dMethod *method,
                                                             const char *limit) {
  return lesson_version_of(name, (LessonLauncher)method->backward_input, method, limit);
}
static inline LessonVersion conv2d_backward_weight_version_of(const char *name, const Conv2dMethod *method,
                                                              const char *limit) {
  return lesson_version_of(name, (LessonLauncher)method->backward_weight, method, limit);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* References: on the CPU; and the same sums in double on the GPU, for shapes that would take the CPU minutes. */

static inline void conv2d_forward_reference(float *y, const float *x, const float *w, const float *bias, Conv2dShape s,
                                            float *) {
  conv2d_forward_cpu<float>(y, x, w, bias, s);
}
static inline void conv2d_backward_input_reference(float *dx, const float *dy, const float *w, Conv2dShape s, float *) {
  conv2d_backward_input_cpu<float>(dx, dy, w, s);
}
static inline void conv2d_backward_weight_reference(float *dw, float *dbias, const float *dy, const float *x,
                                                    Conv2dShape s, float *) {
  conv2d_backward_weight_cpu<float>(dw, dbias, dy, x, s);
}

/* Where tap (r,s) reads the image for pixel (p,q); -1: in the padding. */
static __device__ __forceinline__ int conv2d_reference_place(Conv2dShape shape, int p, int q, int r, int s) {
  int h = p * shape.stride_h - shape.padding_h + r * shape.dilation_h;
  int v = q * shape.stride_w - shape.padding_w + s * shape.dilation_w;
  return h < 0 || h >= shape.h || v < 0 || v >= shape.w ? -1 : h * shape.w + v;
}

static __global__ void conv2d_forward_reference_kernel(float *y, const float *x, const float *w, const float *bias,
                                                       Conv2dShape shape, int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (size_t)shape.n * shape.k * p_count * q_count) return;
  int q = (int)(i % q_count), p = (int)(i / q_count % p_count), k = (int)(i / q_count / p_count % shape.k);
  int n = (int)(i / q_count / p_count / shape.k), channels = shape.c / shape.groups;
  const float *image = x + ((size_t)n * shape.c + k / (shape.k / shape.groups) * channels) * shape.h * shape.w;
  double sum = bias[k];
  for (int c = 0; c < channels; c++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        int place = conv2d_reference_place(shape, p, q, r, s);
        if (place < 0) continue;
        sum += (double)w[((k * channels + c) * shape.r + r) * shape.s + s] * image[c * shape.h * shape.w + place];
      }
  y[i] = (float)sum;
}

static __global__ void conv2d_backward_input_reference_kernel(float *dx, const float *dy, const float *w,
                                                              Conv2dShape shape, int p_count, int q_count) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, plane = i / shape.h / shape.w; /* n * C + c */
  if (plane >= (size_t)shape.n * shape.c) return;
  int n = (int)(plane / shape.c), c = (int)(plane % shape.c), pixel = (int)(i % ((size_t)shape.h * shape.w));
  int channels = shape.c / shape.groups, filters = shape.k / shape.groups, group = c / channels;
  double sum = 0;
  for (int k = group * filters; k < (group + 1) * filters; k++)
    for (int r = 0; r < shape.r; r++)
      for (int s = 0; s < shape.s; s++) {
        int p = (pixel / shape.w + shape.padding_h - r * shape.dilation_h) / shape.stride_h;
        int q = (pixel % shape.w + shape.padding_w - s * shape.dilation_w) / shape.stride_w;
        if (p < 0 || p >= p_count || q < 0 || q >= q_count) continue;
        if (conv2d_reference_place(shape, p, q, r, s) != pixel) continue; /* the division had a remainder */
        sum += (double)w[((k * channels + c % channels) * shape.r + r) * shape.s + s] *
               dy[(((size_t)n * shape.k + k) * p_count + p) * q_count + q];
      }
  dx[i] = (float)sum;
}

static __global__ void conv2d_backward_weight_reference_kernel(float *dw, float *dbias, const float *dy, const float *x,
                                                               Conv2dShape shape, int p_count, int q_count) {
  int channels = shape.c / shape.groups, taps = channels * shape.r * shape.s;
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = i < shape.k * taps ? i / taps : i - shape.k * taps;
  if (k >= shape.k) return;
  int s = i % shape.s, r = i / shape.s % shape.r, c = i / (shape.s * shape.r) % channels;
  double sum = 0;
  for (int n = 0; n < shape.n; n++) {
    const float *gradient = dy + ((size_t)n * shape.k + k) * p_count * q_count;
    const float *plane = x + ((size_t)n * shape.c + k / (shape.k / shape.groups) * channels + c) * shape.h * shape.w;
    for (int p = 0; p < p_count; p++)
      for (int q = 0; q < q_count; q++) {
        int place = conv2d_reference_place(shape, p, q, r, s);
        double input = i >= shape.k * taps ? 1 : place >= 0 ? plane[place] : 0;
        sum += gradient[p * q_count + q] * input;
      }
  }
  if (i < shape.k * taps)
    dw[i] = (float)sum;
  else
    dbias[k] = (float)sum;
}

static inline void conv2d_forward_reference_gpu(float *y, const float *x, const float *w, const float *bias,
                                                Conv2dShape s, float *) {
  conv2d_forward_reference_kernel<<<conv2d_blocks(conv2d_y_count(s)), CONV2D_BLOCK>>>(y, x, w, bias, s, conv2d_out_h(s),
                                                                                      conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}
static inline void conv2d_backward_input_reference_gpu(float *dx, const float *dy, const float *w, Conv2dShape s,
                                                       float *) {
  conv2d_backward_input_reference_kernel<<<conv2d_blocks(conv2d_x_count(s)), CONV2D_BLOCK>>>(
      dx, dy, w, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}
static inline void conv2d_backward_weight_reference_gpu(float *dw, float *dbias, const float *dy, const float *x,
                                                        Conv2dShape s, float *) {
  conv2d_backward_weight_reference_kernel<<<conv2d_blocks(conv2d_w_count(s) + s.k), CONV2D_BLOCK>>>(
      dw, dbias, dy, x, s, conv2d_out_h(s), conv2d_out_w(s));
  CUDA_CHECK_LAUNCH();
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* What else the forward pass could have been asked for, for diagnoses */

/* Filters turned by 180 degrees, as mathematicians define a convolution. */
static inline void conv2d_turned_call(LessonLauncher launch, float *const *array, const int *size) {
  const Conv2dShape shape = conv2d_lesson_shape(size);
  const size_t weights = conv2d_w_count(shape), area = (size_t)shape.r * shape.s;
  float *turned = (float *)xmalloc(weights * sizeof *turned);
  for (size_t i = 0; i < weights; i++) turned[i] = array[2][i / area * area + area - 1 - i % area];
  ((Conv2dForward *)launch)(array[0], array[1], turned, array[3], shape, NULL);
  free(turned);
}

/* A convolution of another shape, with at least as many output rows and columns; the first of them are taken. */
static inline void conv2d_cropped_call(LessonLauncher launch, float *const *array, Conv2dShape shape, const float *x,
                                       Conv2dShape other) {
  const int rows = conv2d_out_h(other), columns = conv2d_out_w(other), p = conv2d_out_h(shape), q = conv2d_out_w(shape);
  float *y = (float *)xmalloc(conv2d_y_count(other) * sizeof *y);
  ((Conv2dForward *)launch)(y, x, array[2], array[3], other, NULL);
  for (int plane = 0; plane < shape.n * shape.k; plane++)
    for (int row = 0; row < p; row++)
      memcpy(array[0] + ((size_t)plane * p + row) * q, y + ((size_t)plane * rows + row) * columns, q * sizeof *y);
  free(y);
}

static inline void conv2d_stride_1_call(LessonLauncher launch, float *const *array, const int *size) {
  Conv2dShape shape = conv2d_lesson_shape(size), other = shape;
  other.stride_h = other.stride_w = 1;
  conv2d_cropped_call(launch, array, shape, array[1], other);
}

static inline void conv2d_dilation_1_call(LessonLauncher launch, float *const *array, const int *size) {
  Conv2dShape shape = conv2d_lesson_shape(size), other = shape;
  other.dilation_h = other.dilation_w = 1;
  conv2d_cropped_call(launch, array, shape, array[1], other);
}

/* Each group reads the channels of the first one. */
static inline void conv2d_first_group_call(LessonLauncher launch, float *const *array, const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  const size_t plane = (size_t)s.h * s.w, channels = (size_t)s.c / s.groups;
  float *x = (float *)xmalloc(conv2d_x_count(s) * sizeof *x);
  for (size_t i = 0; i < (size_t)s.n * s.c; i++)
    memcpy(x + i * plane, array[1] + (i - i % s.c + i % s.c % channels) * plane, plane * sizeof *x);
  ((Conv2dForward *)launch)(array[0], x, array[2], array[3], s, NULL);
  free(x);
}

/* All of the padding below and to the right of the image. */
static inline void conv2d_padding_behind_call(LessonLauncher launch, float *const *array, const int *size) {
  Conv2dShape shape = conv2d_lesson_shape(size), other = shape;
  other.h += 2 * shape.padding_h;
  other.w += 2 * shape.padding_w;
  other.padding_h = other.padding_w = 0;
  float *x = (float *)xcalloc(conv2d_x_count(other), sizeof *x);
  for (int row = 0; row < shape.n * shape.c * shape.h; row++)
    memcpy(x + ((size_t)row / shape.h * other.h + row % shape.h) * other.w, array[1] + (size_t)row * shape.w,
           shape.w * sizeof *x);
  conv2d_cropped_call(launch, array, shape, x, other);
  free(x);
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* The lessons */

static inline Tolerance conv2d_forward_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return tolerance_dot((size_t)s.c / s.groups * s.r * s.s + 1, 1);
}
static inline Tolerance conv2d_backward_input_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return tolerance_dot((size_t)s.k / s.groups * s.r * s.s, 1);
}
static inline Tolerance conv2d_backward_weight_tolerance(const int *size) {
  const Conv2dShape s = conv2d_lesson_shape(size);
  return tolerance_dot((size_t)s.n * conv2d_out_h(s) * conv2d_out_w(s), 1);
}

/* 3 x 3, stride 1, dilation 1, one group: for methods that take no others. */
static inline void conv2d_take_3x3(Lesson *lesson) {
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1",    "1x1x3x3x1x3x3",
                                       "1x2x1x1x3x3x3:padding=1",    "1x5x7x6x9x3x3",
                                       "1x17x9x10x33x3x3:padding=1", "3x4x5x12x8x3x3:padding=2x0",
                                       "1x8x16x16x16x3x3:padding=1"};
  lesson_check_shapes(lesson, shapes, sizeof shapes / sizeof *shapes);
}

/* For checks of exercises: every parameter once, in few elements. */
static inline void conv2d_take_few(Lesson *lesson) {
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1", "1x1x1x1x1x1x1",
                                       "1x2x7x17x9x4x5:stride=2x3:padding=2x1",
                                       "2x4x9x10x6x3x3:padding=2x1:dilation=2x1:groups=2", "2x3x5x5x16x1x1"};
  lesson_check_shapes(lesson, shapes, sizeof shapes / sizeof *shapes);
}

/* The part that the three share; the caller adds the arrays. */
static inline Lesson conv2d_lesson_make(const char *name, void (*call)(LessonLauncher, float *const *, const int *),
                                        LessonLauncher reference, LessonLauncher reference_gpu) {
  /* The first shape shows faults best. The others: single elements; strides, also larger than the filter; paddings,
   * also larger than the filter; gaps; groups, also of one channel; 1 x 1; filters larger than the image; an image of
   * one row; edges in every place of a tile. */
  static const char *const shapes[] = {"2x3x9x8x5x3x3:padding=1",
                                       "1x1x1x1x1x1x1",
                                       "1x1x5x4x1x3x2",
                                       "2x4x11x10x6x3x3:stride=2:padding=1",
                                       "1x3x12x9x4x5x3:stride=2x3:padding=2x1",
                                       "2x4x9x10x6x3x3:padding=2x1:dilation=2x1:groups=2",
                                       "1x6x8x7x6x3x3:stride=1x2:padding=1:groups=6",
                                       "3x8x6x5x16x1x1",
                                       "1x2x7x17x9x7x7:padding=3",
                                       "1x3x7x6x4x2x2:stride=3",
                                       "1x1x2x3x2x4x5:padding=3:dilation=1x2",
                                       "5x2x1x33x3x1x4:stride=1x2:padding=0x1:dilation=1x3",
                                       "1x17x9x10x33x3x3:padding=1"};
  Lesson lesson = lesson_make(name, "nchwkrs", call, reference);
  lesson_parameter(&lesson, "stride", 2, 1);
  lesson_parameter(&lesson, "padding", 2, 0);
  lesson_parameter(&lesson, "dilation", 2, 1);
  lesson_parameter(&lesson, "groups", 1, 1);
  lesson_derived(&lesson, 'p', conv2d_lesson_p);
  lesson_derived(&lesson, 'q', conv2d_lesson_q);
  lesson_derived(&lesson, 'd', conv2d_lesson_channels);
  lesson.shape_check = conv2d_lesson_check;
  lesson.fits = conv2d_lesson_fits;
  lesson.workspace = conv2d_lesson_workspace;
  lesson.reference_gpu = reference_gpu;
  lesson.flops = conv2d_lesson_flops;
  lesson.timed = lesson_shape_of(&lesson, "64x64x56x56x64x3x3:padding=1");
  lesson.counted = lesson_shape_of(&lesson, "1x8x16x32x16x3x3:padding=1");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline Lesson conv2d_forward_lesson(const char *name) {
  Lesson lesson = conv2d_lesson_make(name, conv2d_forward_call, (LessonLauncher)conv2d_forward_reference,
                                     (LessonLauncher)conv2d_forward_reference_gpu);
  lesson_output(&lesson, "y", "nkpq");
  lesson_input(&lesson, "x", "nchw");
  lesson_input(&lesson, "w", "kdrs");
  lesson_input(&lesson, "bias", "k");
  lesson.tolerance = conv2d_forward_tolerance;
  lesson_alternative(&lesson, "the filters were turned by 180 degrees: r and s run backwards", conv2d_turned_call);
  lesson_alternative(&lesson, "the stride were 1: it is left out of an index", conv2d_stride_1_call);
  lesson_alternative(&lesson, "the dilation were 1: it is left out of an index", conv2d_dilation_1_call);
  lesson_alternative(&lesson, "all of the padding were below and to the right of the image: it is not subtracted",
                     conv2d_padding_behind_call);
  lesson_alternative(&lesson, "each group of filters read the channels of the first group", conv2d_first_group_call);
  return lesson;
}

static inline Lesson conv2d_backward_input_lesson(const char *name) {
  Lesson lesson = conv2d_lesson_make(name, conv2d_backward_input_call, (LessonLauncher)conv2d_backward_input_reference,
                                     (LessonLauncher)conv2d_backward_input_reference_gpu);
  lesson_output(&lesson, "dx", "nchw");
  lesson_input(&lesson, "dy", "nkpq");
  lesson_input(&lesson, "w", "kdrs");
  lesson.tolerance = conv2d_backward_input_tolerance;
  return lesson;
}

static inline Lesson conv2d_backward_weight_lesson(const char *name) {
  Lesson lesson =
      conv2d_lesson_make(name, conv2d_backward_weight_call, (LessonLauncher)conv2d_backward_weight_reference,
                         (LessonLauncher)conv2d_backward_weight_reference_gpu);
  lesson_output(&lesson, "dw", "kdrs");
  lesson_output(&lesson, "dbias", "k");
  lesson_input(&lesson, "dy", "nkpq");
  lesson_input(&lesson, "x", "nchw");
  lesson.tolerance = conv2d_backward_weight_tolerance;
  return lesson;
}

#endif /* PHASE3_CNN_CONV2D_LESSON_CUH */

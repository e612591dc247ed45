/* depthwise_half_lesson.cuh - arrays, shapes, reference and tolerance of depthwise_half.cuh on bfloat16: for tests and
 * the exercise. A size is images, height, width, runs of eight channels, side of the filter, stride. */
#ifndef PHASE5_PRODUCTION_DEPTHWISE_HALF_LESSON_CUH
#define PHASE5_PRODUCTION_DEPTHWISE_HALF_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/08_engine/depthwise_half.cuh"

typedef void DepthwiseHalfLauncher(uint16_t *y, const uint16_t *x, const float *w, const float *bias, DepthwiseHalf d);

/* size: nhwrfs */
static inline DepthwiseHalf depthwise_half_lesson_shape(const int *size) {
  const int channels = size[3] * HALF_RUN;
  Conv2dShape s = conv2d_shape(size[0], channels, size[1], size[2], channels, size[4], size[4], size[5], size[4] / 2);
  s.groups = channels;
  const DepthwiseHalf d = {s, 0, 6};
  return d;
}

static inline void depthwise_half_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DepthwiseHalfLauncher *)launch)((uint16_t *)array[0], (const uint16_t *)array[1], array[2], array[3],
                                    depthwise_half_lesson_shape(size));
}

static inline LessonVersion depthwise_half_version(const char *name, DepthwiseHalfLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* For the check of the exercise. */
static inline void depthwise_half_bf16(uint16_t *y, const uint16_t *x, const float *w, const float *bias,
                                       DepthwiseHalf d) {
  depthwise_half<__nv_bfloat16>(y, x, w, bias, d);
}

static inline void depthwise_half_reference(uint16_t *y, const uint16_t *x, const float *w, const float *bias,
                                            DepthwiseHalf d) {
  depthwise_half_cpu(y, x, w, bias, d, DTYPE_BF16);
}

static inline int depthwise_half_rows(const int *size) { return conv2d_out_h(depthwise_half_lesson_shape(size).shape); }
static inline int depthwise_half_cols(const int *size) { return conv2d_out_w(depthwise_half_lesson_shape(size).shape); }
static inline int depthwise_half_eight(const int *) { return HALF_RUN; }

static inline int depthwise_half_lesson_check(const int *size, Error *err) {
  return conv2d_shape_check(depthwise_half_lesson_shape(size).shape, err);
}

static inline Lesson depthwise_half_lesson(void) {
  static const char *const shapes[] = {"2x9x7x3x3x1", "1x1x1x1x1x1", "1x5x5x1x3x2", "3x7x11x2x5x2", "2x13x3x5x3x1"};
  Lesson lesson =
      lesson_make("depthwise_half", "nhwrfs", depthwise_half_call, (LessonLauncher)depthwise_half_reference);
  lesson_derived(&lesson, 'p', depthwise_half_rows);
  lesson_derived(&lesson, 'q', depthwise_half_cols);
  lesson_derived(&lesson, 'e', depthwise_half_eight);
  lesson.shape_check = depthwise_half_lesson_check;
  lesson_output(&lesson, "y", "npqre");
  lesson_input(&lesson, "x", "nhwre");
  lesson_input(&lesson, "w", "ffre");
  lesson_input(&lesson, "bias", "re");
  lesson_element(&lesson, "y", LESSON_BFLOAT16);
  lesson_element(&lesson, "x", LESSON_BFLOAT16);
  lesson_range(&lesson, "x", -2, 2);
  lesson_range(&lesson, "bias", 1, 3);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "64x56x56x18x3x1");
  lesson.counted = lesson_shape_of(&lesson, "2x8x8x4x3x1");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_DEPTHWISE_HALF_LESSON_CUH */

/* stem_pool_lesson.cuh - arrays, shapes, reference and tolerance of the first operations of a ResNet, on bfloat16: for
 * tests and the exercise. */
#ifndef PHASE5_PRODUCTION_STEM_POOL_LESSON_CUH
#define PHASE5_PRODUCTION_STEM_POOL_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/04_resnet18_fused/stem_pool.cuh"

/* y (N,P',Q',K), x (N,3,H,W), w (K,49,8), bias (K) */
typedef void StemPoolLauncher(__nv_bfloat16 *y, const float *x, const __nv_bfloat16 *w, const float *bias, StemShape s);

enum { STEM_LESSON_PITCH = 8 };

static inline StemShape stem_lesson_shape(const int *size) {
  return stem_shape(size[0], size[1], size[2], size[3], STEM_LESSON_PITCH);
}

static inline void stem_pool_call(LessonLauncher launch, float *const *array, const int *size) {
  ((StemPoolLauncher *)launch)((__nv_bfloat16 *)array[0], array[1], (const __nv_bfloat16 *)array[2], array[3],
                               stem_lesson_shape(size));
}

static inline LessonVersion stem_pool_version(const char *name, StemPoolLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* For the check of the exercise. */
static inline void stem_pool_forward_bf16(__nv_bfloat16 *y, const float *x, const __nv_bfloat16 *w, const float *bias,
                                          StemShape s) {
  stem_pool_forward_gpu(y, x, w, bias, s);
}

/* The loops on pixels that are rounded as the kernel rounds them. */
static inline void stem_pool_reference(__nv_bfloat16 *y, const float *x, const __nv_bfloat16 *w, const float *bias,
                                       StemShape s) {
  const size_t pixels = (size_t)s.n * 3 * s.h * s.w, weights = (size_t)s.k * STEM_TAPS * STEM_TAPS * s.pitch;
  const size_t outputs = (size_t)s.n * s.pool_h * s.pool_w * s.k;
  float *rounded = (float *)xmalloc((pixels + weights + outputs) * sizeof *rounded);
  float *wide = rounded + pixels, *sums = wide + weights;
  for (size_t i = 0; i < pixels; i++) rounded[i] = __bfloat162float(__float2bfloat16(x[i]));
  for (size_t i = 0; i < weights; i++) wide[i] = __bfloat162float(w[i]);
  stem_pool_forward_cpu(sums, rounded, wide, bias, s);
  for (size_t i = 0; i < outputs; i++) y[i] = __float2bfloat16(sums[i]);
  free(rounded);
}

static inline int stem_lesson_c(const int *) { return 3; }
static inline int stem_lesson_t(const int *) { return STEM_TAPS * STEM_TAPS; }
static inline int stem_lesson_e(const int *) { return STEM_LESSON_PITCH; }
static inline int stem_lesson_p(const int *size) { return stem_lesson_shape(size).pool_h; }
static inline int stem_lesson_q(const int *size) { return stem_lesson_shape(size).pool_w; }

static inline int stem_lesson_check(const int *size, Error *err) {
  if (size[3] % 8 == 0) return 0;
  return error_set(err, "%d filters; a multiple of 8 is expected", size[3]);
}

/* A unit of the last place of bfloat16, and what sums of 147 products of numbers up to 2 err by. */
static inline Tolerance stem_lesson_tolerance(const int *size) {
  (void)size;
  Tolerance t = tolerance_dot(147, 4);
  t.relative = 1.01 / 128;
  return t;
}

static inline Lesson stem_pool_lesson(void) {
  /* one block with all edges; one pixel; aligned rows of two pictures; several blocks along each axis and of filters */
  static const char *const shapes[] = {"1x21x19x8", "1x1x1x8", "2x9x36x16", "1x30x6x72", "1x3x233x8"};
  Lesson lesson = lesson_make("stem_pool", "nhwk", stem_pool_call, (LessonLauncher)stem_pool_reference);
  lesson.shape_check = stem_lesson_check;
  lesson_derived(&lesson, 'c', stem_lesson_c);
  lesson_derived(&lesson, 't', stem_lesson_t);
  lesson_derived(&lesson, 'e', stem_lesson_e);
  lesson_derived(&lesson, 'p', stem_lesson_p);
  lesson_derived(&lesson, 'q', stem_lesson_q);
  lesson_output(&lesson, "y", "npqk");
  lesson_input(&lesson, "x", "nchw");
  lesson_input(&lesson, "w", "kte");
  lesson_input(&lesson, "bias", "k");
  lesson_range(&lesson, "w", -1, 1);
  lesson_element(&lesson, "y", LESSON_BFLOAT16);
  lesson_element(&lesson, "w", LESSON_BFLOAT16);
  lesson.tolerance = stem_lesson_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "64x224x224x64");
  lesson.counted = lesson_shape_of(&lesson, "1x28x32x64");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_STEM_POOL_LESSON_CUH */

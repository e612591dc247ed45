/* pool_linear_lesson.cuh - arrays, shapes, reference and tolerance of the last operations of a ResNet, on bfloat16: for
 * tests and the exercise. */
#ifndef PHASE5_PRODUCTION_POOL_LINEAR_LESSON_CUH
#define PHASE5_PRODUCTION_POOL_LINEAR_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/04_resnet18_fused/pool_linear.cuh"

/* y (N,classes), x (N,pixels,C), w (classes,C), bias (classes) */
typedef void PoolLinearLauncher(float *y, const __nv_bfloat16 *x, const float *w, const float *bias, PoolLinearShape s);

static inline void pool_linear_call(LessonLauncher launch, float *const *array, const int *size) {
  const PoolLinearShape s = {size[0], size[1], size[2], size[2], size[3]};
  ((PoolLinearLauncher *)launch)(array[0], (const __nv_bfloat16 *)array[1], array[2], array[3], s);
}

static inline LessonVersion pool_linear_version(const char *name, PoolLinearLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* For the check of the exercise. */
static inline void pool_linear_forward_bf16(float *y, const __nv_bfloat16 *x, const float *w, const float *bias,
                                            PoolLinearShape s) {
  pool_linear_forward_gpu(y, x, w, bias, s);
}

static inline int pool_linear_lesson_check(const int *size, Error *err) {
  if (size[2] % 8 == 0 && pool_linear_fits(size[2])) return 0;
  return error_set(err, "%d channels; a multiple of 8 up to %d is expected", size[2], POOL_LINEAR_CHANNELS);
}

/* Sums over the pixels and over the channels. */
static inline Tolerance pool_linear_lesson_tolerance(const int *size) { return tolerance_dot(size[1] + size[2], 4); }

static inline Lesson pool_linear_lesson(void) {
  static const char *const shapes[] = {"5x3x40x131", "1x1x8x1", "4x49x64x10", "9x2x264x7", "11x5x24x257", "2x3x2048x3"};
  Lesson lesson =
      lesson_make("pool_linear", "npck", pool_linear_call, (LessonLauncher)pool_linear_forward_cpu<__nv_bfloat16>);
  lesson.shape_check = pool_linear_lesson_check;
  lesson_output(&lesson, "y", "nk");
  lesson_input(&lesson, "x", "npc");
  lesson_input(&lesson, "w", "kc");
  lesson_input(&lesson, "bias", "k");
  lesson_element(&lesson, "x", LESSON_BFLOAT16);
  lesson.tolerance = pool_linear_lesson_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "64x49x512x1000");
  lesson.counted = lesson_shape_of(&lesson, "8x4x512x128");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_POOL_LINEAR_LESSON_CUH */

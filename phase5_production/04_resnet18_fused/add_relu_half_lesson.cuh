/* add_relu_half_lesson.cuh - arrays, shapes, reference and tolerance of add_relu_half.cuh on bfloat16: for tests and
 * the exercise. */
#ifndef PHASE5_PRODUCTION_ADD_RELU_HALF_LESSON_CUH
#define PHASE5_PRODUCTION_ADD_RELU_HALF_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/04_resnet18_fused/add_relu_half.cuh"

/* n: a multiple of 8 */
typedef void AddReluHalf(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t n);

static inline void add_relu_half_call(LessonLauncher launch, float *const *array, const int *size) {
  ((AddReluHalf *)launch)((uint16_t *)array[0], (const uint16_t *)array[1], (const uint16_t *)array[2],
                          (size_t)size[0] * size[1]);
}

static inline LessonVersion add_relu_half_version(const char *name, AddReluHalf *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* For the check of the exercise. */
static inline void add_relu_half_bf16(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t n) {
  add_relu_half<__nv_bfloat16>(y, a, b, n);
}

static inline void add_relu_half_reference(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t n) {
  add_relu_half_cpu(y, a, b, n, DTYPE_BF16);
}

static inline int add_relu_half_lesson_check(const int *size, Error *err) {
  if (size[1] % HALF_RUN == 0) return 0;
  return error_set(err, "%d numbers of a pixel; a multiple of %d is expected", size[1], HALF_RUN);
}

static inline Lesson add_relu_half_lesson(void) {
  static const char *const shapes[] = {"31x24", "1x8", "3x8", "33x40", "127x64", "300x8"};
  Lesson lesson = lesson_make("add_relu_half", "pc", add_relu_half_call, (LessonLauncher)add_relu_half_reference);
  lesson.shape_check = add_relu_half_lesson_check;
  lesson_output(&lesson, "y", "pc");
  lesson_input(&lesson, "a", "pc");
  lesson_input(&lesson, "b", "pc");
  lesson_range(&lesson, "a", -2, 2);
  lesson_range(&lesson, "b", -2, 2);
  const char *const names[] = {"y", "a", "b"};
  for (int i = 0; i < 3; i++) lesson_element(&lesson, names[i], LESSON_BFLOAT16);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "200704x64");
  lesson.counted = lesson_shape_of(&lesson, "512x64");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_ADD_RELU_HALF_LESSON_CUH */

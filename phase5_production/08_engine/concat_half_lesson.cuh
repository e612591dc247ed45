/* concat_half_lesson.cuh - arrays, shapes, reference and tolerance of concat_half.cuh on bfloat16: for tests and the
 * exercise. A size is pixels, and runs of eight channels of the two inputs. */
#ifndef PHASE5_PRODUCTION_CONCAT_HALF_LESSON_CUH
#define PHASE5_PRODUCTION_CONCAT_HALF_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/08_engine/concat_half.cuh"

typedef void ConcatHalf(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t pixels, int a_channels,
                        int b_channels);

/* size: pab */
static inline void concat_half_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ConcatHalf *)launch)((uint16_t *)array[0], (const uint16_t *)array[1], (const uint16_t *)array[2], (size_t)size[0],
                         size[1] * HALF_RUN, size[2] * HALF_RUN);
}

static inline LessonVersion concat_half_version(const char *name, ConcatHalf *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* For the check of the exercise. */
static inline void concat_half_bf16(uint16_t *y, const uint16_t *a, const uint16_t *b, size_t pixels, int a_channels,
                                    int b_channels) {
  concat_half<__nv_bfloat16>(y, a, b, pixels, a_channels, b_channels);
}

static inline int concat_half_both(const int *size) { return size[1] + size[2]; }
static inline int concat_half_eight(const int *) { return HALF_RUN; }

static inline Lesson concat_half_lesson(void) {
  static const char *const shapes[] = {"9x2x3", "1x1x1", "31x1x4", "33x5x1", "127x3x3"};
  Lesson lesson = lesson_make("concat_half", "pab", concat_half_call, (LessonLauncher)concat_half_cpu);
  lesson_derived(&lesson, 's', concat_half_both);
  lesson_derived(&lesson, 'e', concat_half_eight);
  lesson_output(&lesson, "y", "pse");
  lesson_input(&lesson, "a", "pae");
  lesson_input(&lesson, "b", "pbe");
  const char *const names[] = {"y", "a", "b"};
  for (int i = 0; i < 3; i++) lesson_element(&lesson, names[i], LESSON_BFLOAT16);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "200704x8x8");
  lesson.counted = lesson_shape_of(&lesson, "512x4x4");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_CONCAT_HALF_LESSON_CUH */

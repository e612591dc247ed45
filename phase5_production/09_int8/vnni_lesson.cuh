/* vnni_lesson.cuh - arrays, shapes and reference of vnni.cuh, for the exercise. */
#ifndef PHASE5_PRODUCTION_VNNI_LESSON_CUH
#define PHASE5_PRODUCTION_VNNI_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/09_int8/vnni.cuh"

typedef void VnniLinear(int *y, const int8_t *x, const int8_t *w, int m, int d, int k);

/* size: m, words of a row, k, bytes of a word */
static inline void vnni_linear_call(LessonLauncher launch, float *const *array, const int *size) {
  ((VnniLinear *)launch)((int *)array[0], (const int8_t *)array[1], (const int8_t *)array[2], size[0],
                         size[1] * size[3], size[2]);
}

static inline int vnni_bytes(const int *) { return 4; }

static inline Lesson vnni_lesson(void) {
  static const char *const shapes[] = {"5x3x7", "1x1x1", "3x17x33", "31x8x9"};
  Lesson lesson = lesson_make("vnni", "mwk", vnni_linear_call, (LessonLauncher)vnni_linear_cpu);
  lesson_derived(&lesson, 'b', vnni_bytes);
  lesson_output(&lesson, "y", "mk");
  lesson_element(&lesson, "y", LESSON_INT);
  lesson_input(&lesson, "x", "mwb");
  lesson_element(&lesson, "x", LESSON_BYTE);
  lesson_input(&lesson, "w", "kwb");
  lesson_element(&lesson, "w", LESSON_BYTE);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "256x64x256");
  lesson.counted = lesson_shape_of(&lesson, "64x16x64");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_VNNI_LESSON_CUH */

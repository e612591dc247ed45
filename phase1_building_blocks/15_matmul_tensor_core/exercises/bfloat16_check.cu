/* Checks the exercise of bfloat16.cuh (learn/check.h): means of two numbers, half of which lie halfway between two
 * others. */
#include "common/lesson/lesson.h"
#include "phase1_building_blocks/15_matmul_tensor_core/bfloat16.cuh"

typedef void Bfloat16Mean(uint16_t *out, const uint16_t *x, const uint16_t *y, int n);

static inline void bfloat16_mean_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Bfloat16Mean *)launch)((uint16_t *)array[0], (const uint16_t *)array[1], (const uint16_t *)array[2], size[0]);
}

static inline Lesson bfloat16_lesson(void) {
  Lesson lesson = lesson_make("bfloat16", "n", bfloat16_mean_call, (LessonLauncher)bfloat16_mean_cpu);
  lesson_output(&lesson, "out", "n");
  lesson_input(&lesson, "x", "n");
  lesson_input(&lesson, "y", "n");
  for (int i = 0; i < 3; i++) lesson_element(&lesson, lesson.array[i].name, LESSON_BFLOAT16);
  lesson_range(&lesson, "y", 1, 2);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1000));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 33));
  lesson.counted = lesson_shape(&lesson, 1024);
  lesson.timed = lesson_shape(&lesson, 1 << 24);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(bfloat16_lesson())

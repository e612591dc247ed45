/* Checks the exercise of idx_files.cuh (learn/check.h): numbers of four random bytes. */
#include "common/lesson/lesson.h"
#include "phase2_mlp/04_idx_files/idx_files.cuh"

typedef void IdxNumbers(int *halves, const uint8_t *bytes, int n);

static inline void idx_numbers_call(LessonLauncher launch, float *const *array, const int *size) {
  ((IdxNumbers *)launch)((int *)array[0], (const uint8_t *)array[1], size[0]);
}

static inline Lesson idx_files_lesson(void) {
  Lesson lesson = lesson_make("idx_files", "nhb", idx_numbers_call, (LessonLauncher)idx_numbers_cpu);
  lesson_output(&lesson, "halves", "nh");
  lesson_element(&lesson, "halves", LESSON_INT);
  lesson_input(&lesson, "bytes", "nb");
  lesson_element(&lesson, "bytes", LESSON_BYTE);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 33, 2, 4)); /* shows faults best */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 2, 4));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1000, 2, 4));
  lesson.counted = lesson_shape(&lesson, 1024, 2, 4);
  lesson.timed = lesson_shape(&lesson, 1 << 22, 2, 4);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(idx_files_lesson())

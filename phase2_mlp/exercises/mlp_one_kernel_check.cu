/* Checks the exercises of mlp_one_kernel.cuh (learn/check.h). */
#include "phase2_mlp/mlp_one_kernel_lesson.cuh"

#include "learn/check.h"

/* Counted on half the width of the lesson's images: a check should take a second. */
static inline Lesson mlp_check_lesson(void) {
  Lesson lesson = mlp_lesson();
  lesson.counted = lesson_shape(&lesson, 128, 64, 16, 10, 64);
  return lesson;
}

CHECK_MAIN(mlp_check_lesson())

/* Checks the exercises of mlp_one_kernel.cuh (learn/check.h). */
#include "phase2_mlp/08_mlp_one_kernel/mlp_one_kernel_lesson.cuh"

#include "learn/check.h"

/* The lesson's shapes, those of more than one step cut down to a second step of few images: a check should take a
 * second. */
static inline Lesson mlp_check_lesson(void) {
  Lesson lesson = mlp_lesson();
  const int shapes[][5] = {{7, 3, 5, 3, 7},      {7, 3, 5, 3, 2},      {1, 1, 1, 1, 1},
                           {10, 127, 9, 10, 16}, {36, 33, 17, 16, 33}, {5, 240, 3, 2, 3}};
  lesson.checks = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson,
                       lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], shapes[i][4]));
  lesson.counted = lesson_shape(&lesson, 66, 112, 24, 10, 64);
  return lesson;
}

CHECK_MAIN(mlp_check_lesson())

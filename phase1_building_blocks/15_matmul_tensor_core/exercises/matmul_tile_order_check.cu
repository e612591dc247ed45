/* Checks the exercise of matmul_tile_order.cuh (learn/check.h): each tile's number, at the tile's place. */
#include "common/lesson/lesson.h"
#include "phase1_building_blocks/15_matmul_tensor_core/matmul_tile_order.cuh"

typedef void TileOrder(float *order, int rows, int cols);

static inline void tile_order_call(LessonLauncher launch, float *const *array, const int *size) {
  ((TileOrder *)launch)(array[0], size[0], size[1]);
}

static inline Lesson tile_order_lesson(void) {
  Lesson lesson = lesson_make("matmul_tile_order", "rc", tile_order_call, (LessonLauncher)matmul_tile_order_cpu);
  lesson_output(&lesson, "order", "rc");
  const int shapes[][2] = {{19, 7}, {1, 1}, {8, 3}, {16, 5}, {3, 9}, {9, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  lesson.counted = lesson_shape(&lesson, 16, 16);
  lesson.timed = lesson_shape(&lesson, 1000, 1000);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(tile_order_lesson())

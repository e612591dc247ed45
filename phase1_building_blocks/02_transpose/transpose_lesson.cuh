/* transpose_lesson.cuh - arrays, shapes and reference of a transpose: for the program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_TRANSPOSE_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_TRANSPOSE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/02_transpose/transpose.cuh"

/* out (cols,rows) = in (rows,cols), transposed */
typedef void TransposeLauncher(float *out, const float *in, int rows, int cols);

static inline void transpose_call(LessonLauncher launch, float *const *array, const int *size) {
  ((TransposeLauncher *)launch)(array[0], array[1], size[0], size[1]);
}

static inline LessonVersion transpose_version(const char *name, TransposeLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson transpose_lesson(void) {
  Lesson lesson = lesson_make("transpose", "rc", transpose_call, (LessonLauncher)transpose_cpu);
  lesson_output(&lesson, "out", "cr");
  lesson_input(&lesson, "in", "rc");
  const int most = 65535 * TRANSPOSE_BLOCK_ROWS; /* the naive kernels' grids: at most 65535 blocks in y */
  lesson.most = lesson_shape(&lesson, most, most);
  lesson.timed = lesson_shape(&lesson, 8192, 8192);
  lesson.counted = lesson_shape(&lesson, 256, 128);
  /* The first shape shows faults best. The others: one element; around a warp and around tiles of 32 and 64; primes;
   * tall and wide; sizes that are multiples of four, and sizes that are not. */
  const int shapes[][2] = {{31, 33}, {1, 1},     {1, 3},    {31, 1},  {33, 31},
                           {64, 64}, {127, 257}, {96, 100}, {4, 260}, {130, 36}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson; /* nothing is computed: exact */
}

#endif /* PHASE1_BUILDING_BLOCKS_TRANSPOSE_LESSON_CUH */

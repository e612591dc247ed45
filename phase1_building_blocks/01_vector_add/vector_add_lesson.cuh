/* vector_add_lesson.cuh - arrays, shapes and reference of a vector addition: for the program, its test and the
 * exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_VECTOR_ADD_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_VECTOR_ADD_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/01_vector_add/vector_add.cuh"

/* c (n) = a (n) + b (n) */
typedef void VectorAddLauncher(float *c, const float *a, const float *b, size_t n);

static inline void vector_add_call(LessonLauncher launch, float *const *array, const int *size) {
  ((VectorAddLauncher *)launch)(array[0], array[1], array[2], (size_t)size[0]);
}

static inline LessonVersion vector_add_version(const char *name, VectorAddLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson vector_add_lesson(void) {
  Lesson lesson = lesson_make("vector_add", "n", vector_add_call, (LessonLauncher)vector_add_cpu);
  lesson_output(&lesson, "c", "n");
  lesson_input(&lesson, "a", "n");
  lesson_input(&lesson, "b", "n");
  lesson.timed = lesson_shape(&lesson, 64 << 20); /* 256 MiB per array */
  lesson.counted = lesson_shape(&lesson, 1 << 16);
  /* The first shape shows faults best. The others: one element; around a warp and around a block of 256; primes; more
   * elements than the emulated GPU has threads. */
  const int sizes[] = {31, 1, 3, 33, 127, 255, 256, 257, 1021, 40009};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i]));
  return lesson; /* one rounding, the same on the CPU and the GPU: exact */
}

#endif /* PHASE1_BUILDING_BLOCKS_VECTOR_ADD_LESSON_CUH */

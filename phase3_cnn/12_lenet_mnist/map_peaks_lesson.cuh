/* map_peaks_lesson.cuh - arrays, shapes and reference of map_peaks.cuh: for the program, its test and the exercises.
 * The results are elements of x and places, so the tolerance is zero. */
#ifndef PHASE3_CNN_MAP_PEAKS_LESSON_CUH
#define PHASE3_CNN_MAP_PEAKS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/12_lenet_mnist/map_peaks.cuh"

/* value (maps), place (maps), x (maps,area) */
typedef void MapPeaksLauncher(float *value, int *place, const float *x, int maps, int area);

static inline void map_peaks_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MapPeaksLauncher *)launch)(array[0], (int *)array[1], array[2], size[0], size[1]);
}

static inline LessonVersion map_peaks_version(const char *name, MapPeaksLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson map_peaks_lesson(void) {
  Lesson lesson = lesson_make("map_peaks", "ma", map_peaks_call, (LessonLauncher)map_peaks_cpu);
  lesson_output(&lesson, "value", "m");
  lesson_output(&lesson, "place", "m");
  lesson_element(&lesson, "place", LESSON_INT);
  lesson_input(&lesson, "x", "ma");
  lesson_range(&lesson, "x", -1e8f, -1e8f + 256); /* floats of this size are 8 apart: many values are equal */
  lesson.most = lesson_shape(&lesson, INT_MAX / 32 - MAP_PEAKS_BLOCK, INT_MAX - 4 * 32);
  lesson.timed = lesson_shape(&lesson, 60000, 784); /* conv1 of LeNet-5, 10,000 images of 6 maps */
  lesson.counted = lesson_shape(&lesson, 64, 784);
  /* less than a warp, one, a little more; primes; more maps than a block has warps or threads */
  const int shapes[][2] = {{7, 100}, {1, 1},   {3, 31},  {5, 32},   {33, 33},  {4, 64},
                           {31, 25}, {127, 9}, {2, 257}, {1, 1021}, {131, 196}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

#endif /* PHASE3_CNN_MAP_PEAKS_LESSON_CUH */

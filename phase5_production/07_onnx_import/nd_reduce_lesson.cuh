/* nd_reduce_lesson.cuh - arrays and shapes of nd_reduce_rows_gpu() (nd_reduce.cuh), for the exercise. */
#ifndef PHASE5_PRODUCTION_ND_REDUCE_LESSON_CUH
#define PHASE5_PRODUCTION_ND_REDUCE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/07_onnx_import/nd_reduce.cuh"

typedef void NdReduceLauncher(float *sums, const float *x, int rows, int columns);

static inline void nd_reduce_call(LessonLauncher launch, float *const *array, const int *size) {
  ((NdReduceLauncher *)launch)(array[0], array[1], size[0], size[1]);
}

static inline LessonVersion nd_reduce_version(const char *name, NdReduceLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* A sum of n numbers below 2 rounds each partial sum. */
static inline Tolerance nd_reduce_tolerance(const int *size) { return tolerance_make(1e-6, 2.4e-7 * size[1]); }

static inline Lesson nd_reduce_lesson(void) {
  static const char *const shapes[] = {"5x301", "1x1", "33x127", "3x128", "2x1031", "127x3"};
  Lesson lesson = lesson_make("nd_reduce", "rc", nd_reduce_call, (LessonLauncher)nd_reduce_rows_cpu);
  lesson_output(&lesson, "sums", "r");
  lesson_input(&lesson, "x", "rc");
  lesson.tolerance = nd_reduce_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "4096x1024");
  lesson.counted = lesson_shape_of(&lesson, "8x256");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_ND_REDUCE_LESSON_CUH */

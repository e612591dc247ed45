/* nd_place_lesson.cuh - arrays and shapes of nd_flip_gpu() (nd_move.cuh), for the exercise on indices and strides. */
#ifndef PHASE5_PRODUCTION_ND_PLACE_LESSON_CUH
#define PHASE5_PRODUCTION_ND_PLACE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/07_onnx_import/nd_move.cuh"

typedef void NdFlipLauncher(float *y, const float *x, int rows, int columns, int pixels);

static inline void nd_place_call(LessonLauncher launch, float *const *array, const int *size) {
  ((NdFlipLauncher *)launch)(array[0], array[1], size[0], size[1], size[2]);
}

static inline LessonVersion nd_place_version(const char *name, NdFlipLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* What some mistakes would give: the rows in their order. */
static inline void nd_place_unturned_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  const int rows = size[0], columns = size[1], pixels = size[2];
  for (int c = 0; c < columns; c++)
    for (int p = 0; p < pixels; p++)
      for (int r = 0; r < rows; r++)
        array[0][((size_t)c * pixels + p) * rows + r] = array[1][((size_t)r * columns + c) * pixels + p];
}

static inline Tolerance nd_place_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 0);
}

static inline Lesson nd_place_lesson(void) {
  static const char *const shapes[] = {"3x5x4", "1x1x1", "7x31x5", "33x3x17", "2x127x3"};
  Lesson lesson = lesson_make("nd_place", "rcp", nd_place_call, (LessonLauncher)nd_flip_cpu);
  lesson_output(&lesson, "y", "cpr");
  lesson_input(&lesson, "x", "rcp");
  lesson_alternative(&lesson, "the rows were in their order", nd_place_unturned_call);
  lesson.tolerance = nd_place_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "256x256x64");
  lesson.counted = lesson_shape_of(&lesson, "16x32x8");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_ND_PLACE_LESSON_CUH */

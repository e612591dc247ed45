/* Checks duel_cost (learn/check.h): the model for random methods. */
#include "common/lesson/lesson.h"
#include "phase3_cnn/08_conv2d_duel/conv2d_cost.cuh"

typedef void DuelCosts(float *us, const float *gflop, const float *mb, const float *percent, int n);

static inline void duel_costs_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DuelCosts *)launch)(array[0], array[1], array[2], array[3], size[0]);
}

static inline Tolerance duel_cost_tolerance(const int *size) {
  (void)size;
  return tolerance_make(1e-5, 1e-4);
}

static inline Lesson duel_cost_lesson(void) {
  Lesson lesson = lesson_make("duel_cost", "n", duel_costs_call, (LessonLauncher)conv2d_duel_costs_cpu);
  lesson_output(&lesson, "us", "n");
  lesson_tolerance(&lesson, "us", duel_cost_tolerance);
  lesson_input(&lesson, "gflop", "n");
  lesson_range(&lesson, "gflop", 0, 2);
  lesson_input(&lesson, "mb", "n");
  lesson_range(&lesson, "mb", 0, 200);
  lesson_input(&lesson, "percent", "n");
  lesson_range(&lesson, "percent", 5, 95);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 333));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 7));
  lesson.counted = lesson_shape(&lesson, 1024);
  lesson.timed = lesson_shape(&lesson, 1 << 20);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(duel_cost_lesson())

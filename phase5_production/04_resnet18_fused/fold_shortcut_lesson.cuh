/* fold_shortcut_lesson.cuh - arrays, shapes, reference and tolerance of fold_shortcut.cuh: for tests and the
 * exercise. */
#ifndef PHASE5_PRODUCTION_FOLD_SHORTCUT_LESSON_CUH
#define PHASE5_PRODUCTION_FOLD_SHORTCUT_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/04_resnet18_fused/fold_shortcut.cuh"

typedef void FoldShortcutLauncher(FoldShortcut f);

static inline void fold_shortcut_call(LessonLauncher launch, float *const *array, const int *size) {
  const int k = size[0];
  const FoldNorm norm = {array[5], array[6], array[7], array[8]};
  const FoldNorm other = {array[5] + k, array[6] + k, array[7] + k, array[8] + k};
  const FoldShortcut f = {array[0], array[1], array[2], array[3], array[4], norm, other, size[0], size[1], size[2]};
  ((FoldShortcutLauncher *)launch)(f);
}

static inline LessonVersion fold_shortcut_version(const char *name, FoldShortcutLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* A few roundings of each number, and of the four terms of a bias. */
static inline Tolerance fold_shortcut_tolerance(const int *size) {
  (void)size;
  return tolerance_make(2e-6, 4e-6);
}

static inline int fold_shortcut_two(const int *) { return 2; }

static inline Lesson fold_shortcut_lesson(void) {
  static const char *const shapes[] = {"9x18x5", "1x1x1", "33x27x8", "131x9x3", "3x7x31"};
  Lesson lesson = lesson_make("fold_shortcut", "kfc", fold_shortcut_call, (LessonLauncher)fold_shortcut_cpu);
  lesson_derived(&lesson, 't', fold_shortcut_two);
  lesson_output(&lesson, "new_w", "kf");
  lesson_output(&lesson, "new_w_shortcut", "kc");
  lesson_output(&lesson, "bias", "k");
  lesson_input(&lesson, "w", "kf");
  lesson_input(&lesson, "w_shortcut", "kc");
  const char *const names[] = {"gamma", "beta", "mean", "variance"}; /* (2,K): those of the shortcut are the second */
  for (int i = 0; i < 4; i++) lesson_input(&lesson, names[i], "tk");
  lesson_range(&lesson, "variance", 0.25f, 4);
  lesson.tolerance = fold_shortcut_tolerance;
  lesson.timed = lesson_shape_of(&lesson, "512x4608x256");
  lesson.counted = lesson_shape_of(&lesson, "128x72x16");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_FOLD_SHORTCUT_LESSON_CUH */

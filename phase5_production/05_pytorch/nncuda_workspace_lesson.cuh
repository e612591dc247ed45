/* nncuda_workspace_lesson.cuh - arrays, sizes and reference of nncuda_workspace.cuh: for the exercise. */
#ifndef PHASE5_PRODUCTION_NNCUDA_WORKSPACE_LESSON_CUH
#define PHASE5_PRODUCTION_NNCUDA_WORKSPACE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/05_pytorch/nncuda_workspace.cuh"

/* Counted in lines of 256 bytes. */
static inline void workspace_cpu(int *place, int *bytes, const int *count, int plans) {
  static const int size[] = {1, 4, 12};
  for (int p = 0; p < plans; p++) {
    int line = 0;
    for (int i = 0; i < WORKSPACE_ARRAYS; i++, place++, count++) {
      *place = *count > 0 ? 256 * line : -1;
      while (*count > 0 && 256 * line < (*place) + *count * size[i]) line++;
    }
    bytes[p] = 256 * line;
  }
}

typedef void WorkspaceLauncher(int *place, int *bytes, const int *count, int plans);

static inline void workspace_call(LessonLauncher launch, float *const *array, const int *size) {
  ((WorkspaceLauncher *)launch)((int *)array[0], (int *)array[1], (const int *)array[2], size[0]);
}

static inline int workspace_lesson_arrays(const int *size) {
  (void)size;
  return WORKSPACE_ARRAYS;
}

/* Counts from 0 to m - 1. */
static inline Lesson workspace_lesson(void) {
  Lesson lesson = lesson_make("workspace", "pm", workspace_call, (LessonLauncher)workspace_cpu);
  lesson_derived(&lesson, 'a', workspace_lesson_arrays);
  lesson_output(&lesson, "place", "pa");
  lesson_element(&lesson, "place", LESSON_INT);
  lesson_output(&lesson, "bytes", "p");
  lesson_element(&lesson, "bytes", LESSON_INT);
  lesson_labels(&lesson, "count", "pa", 'm');
  lesson.counted = lesson_shape(&lesson, 256, 300);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 5, 700));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 127, 2));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 129, 65));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 33, 5000));
  return lesson;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_WORKSPACE_LESSON_CUH */

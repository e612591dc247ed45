/* Checks memory_peak (learn/check.h): random programs that take and give. */
#include "common/lesson/lesson.h"
#include "phase5_production/02_cudnn_duel/memory_count.cuh"

typedef void MemoryPeaks(int *peak, int *at_peak, const int *bytes, const int *kind, int n, int e);

static inline void memory_peaks_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MemoryPeaks *)launch)((int *)array[0], (int *)array[1], (const int *)array[2], (const int *)array[3], size[0],
                          size[1]);
}

/* k: the kinds; b: a size is below it. */
static inline Lesson memory_peaks_lesson(void) {
  Lesson lesson = lesson_make("cudnn_duel", "nekb", memory_peaks_call, (LessonLauncher)memory_peaks_cpu);
  lesson_output(&lesson, "peak", "n");
  lesson_element(&lesson, "peak", LESSON_INT);
  lesson_output(&lesson, "at_peak", "nk");
  lesson_element(&lesson, "at_peak", LESSON_INT);
  lesson_labels(&lesson, "bytes", "ne", 'b');
  lesson_labels(&lesson, "kind", "ne", 'k');
  static const int shapes[][2] = {{37, 17}, {1, 1}, {129, 5}, {5, 61}};
  for (int i = 0; i < 4; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], MEMORY_KINDS, 9));
  lesson.counted = lesson_shape(&lesson, 512, 16, MEMORY_KINDS, 9);
  lesson.timed = lesson_shape(&lesson, 1 << 16, 64, MEMORY_KINDS, 9);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(memory_peaks_lesson())

/* Checks the exercise of onnx_pads.cuh (learn/check.h): pairs of random paddings, of up to 255. */
#include "common/lesson/lesson.h"
#include "phase5_production/06_onnx_export/onnx_pads.cuh"

typedef void OnnxPads(int *pads, const uint8_t *padding, int n);

static inline void onnx_pads_call(LessonLauncher launch, float *const *array, const int *size) {
  ((OnnxPads *)launch)((int *)array[0], (const uint8_t *)array[1], size[0]);
}

static inline Lesson onnx_pads_lesson(void) {
  Lesson lesson = lesson_make("onnx_pads", "nsp", onnx_pads_call, (LessonLauncher)onnx_pads_cpu);
  lesson_output(&lesson, "pads", "ns");
  lesson_element(&lesson, "pads", LESSON_INT);
  lesson_input(&lesson, "padding", "np");
  lesson_element(&lesson, "padding", LESSON_BYTE);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 19, 4, 2)); /* shows faults best */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, 4, 2));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 300, 4, 2));
  lesson.counted = lesson_shape(&lesson, 1024, 4, 2);
  lesson.timed = lesson_shape(&lesson, 1 << 20, 4, 2);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(onnx_pads_lesson())

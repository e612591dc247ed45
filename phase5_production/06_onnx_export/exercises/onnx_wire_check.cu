/* Checks the exercise of onnx_wire.cuh (learn/check.h): numbers of ten random bytes, which are often long ones. */
#include "common/lesson/lesson.h"
#include "phase5_production/06_onnx_export/onnx_wire.cuh"

typedef void OnnxVarints(int *parts, const uint8_t *bytes, int n);

static inline void onnx_wire_call(LessonLauncher launch, float *const *array, const int *size) {
  ((OnnxVarints *)launch)((int *)array[0], (const uint8_t *)array[1], size[0]);
}

static inline Lesson onnx_wire_lesson(void) {
  Lesson lesson = lesson_make("onnx_wire", "npb", onnx_wire_call, (LessonLauncher)onnx_varints_cpu);
  lesson_output(&lesson, "parts", "np");
  lesson_element(&lesson, "parts", LESSON_INT);
  lesson_input(&lesson, "bytes", "nb");
  lesson_element(&lesson, "bytes", LESSON_BYTE);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 97, ONNX_VARINT_PARTS, ONNX_VARINT)); /* shows faults best */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, ONNX_VARINT_PARTS, ONNX_VARINT));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 3000, ONNX_VARINT_PARTS, ONNX_VARINT)); /* some have ten bytes */
  lesson.counted = lesson_shape(&lesson, 1024, ONNX_VARINT_PARTS, ONNX_VARINT);
  lesson.timed = lesson_shape(&lesson, 1 << 20, ONNX_VARINT_PARTS, ONNX_VARINT);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(onnx_wire_lesson())

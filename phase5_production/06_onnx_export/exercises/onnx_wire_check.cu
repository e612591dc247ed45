/* Checks the exercise of onnx_wire.cuh (learn/check.h): numbers of ten random bytes, which are often long ones. */
#include "common/lesson/lesson.h"
#include "phase5_production/06_onnx_export/onnx_wire.cuh"

typedef void OnnxVarints(int *parts, const uint8_t *bytes, int n);

static inline void onnx_wire_call(LessonLauncher launch, float *const *array, const int *size) {
  ((OnnxVarints *)launch)((int *)array[0], (const uint8_t *)array[1], size[0]);
}

/* What wrong readings of the same bytes give: the parts of a number whose byte k counts 2^(bits k), and keeps the bits
 * of `mask`; or the first byte counts most. */
static inline void onnx_wire_other(float *const *array, int n, int bits, int mask, int first_is_highest) {
  const uint8_t *bytes = (const uint8_t *)array[1];
  int *parts = (int *)array[0];
  for (int i = 0; i < n; i++, bytes += ONNX_VARINT, parts += ONNX_VARINT_PARTS) {
    uint64_t right, number = 0;
    const int used = onnx_varint(bytes, &right);
    for (int k = 0; k < used; k++) {
      const uint64_t byte = bytes[k] & mask;
      if (first_is_highest)
        number = number << 7 | byte;
      else
        number |= bits * k < 64 ? byte << bits * k : 0;
    }
    for (int k = 0; k < 4; k++) parts[k] = (int)(number >> 16 * k & 0xFFFF);
    parts[4] = used;
  }
}
static inline void onnx_wire_highest_bits(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  onnx_wire_other(array, size[0], 7, 255, 0);
}
static inline void onnx_wire_eight_bits(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  onnx_wire_other(array, size[0], 8, 127, 0);
}
static inline void onnx_wire_backwards(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  onnx_wire_other(array, size[0], 7, 127, 1);
}

static inline Lesson onnx_wire_lesson(void) {
  Lesson lesson = lesson_make("onnx_wire", "npb", onnx_wire_call, (LessonLauncher)onnx_varints_cpu);
  lesson_output(&lesson, "parts", "np");
  lesson_element(&lesson, "parts", LESSON_INT);
  lesson_input(&lesson, "bytes", "nb");
  lesson_element(&lesson, "bytes", LESSON_BYTE);
  lesson_alternative(&lesson, "the highest bit of each byte were part of the number", onnx_wire_highest_bits);
  lesson_alternative(&lesson, "each byte held eight bits", onnx_wire_eight_bits);
  lesson_alternative(&lesson, "the first byte counted most", onnx_wire_backwards);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 97, ONNX_VARINT_PARTS, ONNX_VARINT)); /* shows faults best */
  lesson_check_shape(&lesson, lesson_shape(&lesson, 1, ONNX_VARINT_PARTS, ONNX_VARINT));
  lesson_check_shape(&lesson, lesson_shape(&lesson, 3000, ONNX_VARINT_PARTS, ONNX_VARINT)); /* some have ten bytes */
  lesson.counted = lesson_shape(&lesson, 1024, ONNX_VARINT_PARTS, ONNX_VARINT);
  lesson.timed = lesson_shape(&lesson, 1 << 20, ONNX_VARINT_PARTS, ONNX_VARINT);
  return lesson;
}

#include "learn/check.h"

CHECK_MAIN(onnx_wire_lesson())

/* cifar_records_lesson.cuh - arrays and shapes of cifar_records.cuh, for its exercise. The tolerance is zero: the
 * results have the same bits as the loops on the CPU.
 *
 * Shapes are records x label bytes x pixels of a plane, "nlp". */
#ifndef PHASE3_CNN_CIFAR_RECORDS_LESSON_CUH
#define PHASE3_CNN_CIFAR_RECORDS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase3_cnn/15_cifar10/cifar_records.cuh"

typedef void CifarRecordsLauncher(float *x, int *labels, const uint8_t *records, int count, int label_bytes, int plane,
                                  CifarNorm norm);

static const CifarNorm cifar_records_norm = {{0.491f, 0.482f, 0.447f}, {0.247f, 0.243f, 0.262f}};

static inline void cifar_records_call(LessonLauncher launch, float *const *array, const int *size) {
  ((CifarRecordsLauncher *)launch)(array[0], (int *)array[1], (const uint8_t *)array[2], size[0], size[1], size[2],
                                   cifar_records_norm);
}

/* What mistakes would give: records `step` bytes apart, whose pixels begin at `first`; the labels are right. */
static inline void cifar_records_mistake(float *const *array, const int *size, int step, int first, int side_by_side) {
  const uint8_t *records = (const uint8_t *)array[2];
  const int pixels = 3 * size[2];
  for (int i = 0; i < size[0] * pixels; i++) {
    const int at = i % pixels, c = side_by_side ? at % 3 : at / size[2];
    array[0][i] = batch_normalize(records[i / pixels * step + first + at], cifar_records_norm.mean[c],
                                  cifar_records_norm.stddev[c]);
  }
  for (int n = 0; n < size[0]; n++) ((int *)array[1])[n] = records[n * (size[1] + pixels) + size[1] - 1];
}

static inline void cifar_records_packed_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  cifar_records_mistake(array, size, 3 * size[2], size[1], 0);
}
static inline void cifar_records_early_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  cifar_records_mistake(array, size, size[1] + 3 * size[2], size[1] - 1, 0);
}
static inline void cifar_records_interleaved_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  cifar_records_mistake(array, size, size[1] + 3 * size[2], size[1], 1);
}

static inline int cifar_records_pixels(const int *size) { return 3 * size[2]; }
static inline int cifar_records_bytes(const int *size) { return size[1] + 3 * size[2]; }

static inline Lesson cifar_records_lesson(void) {
  Lesson lesson = lesson_make("cifar_records", "nlp", cifar_records_call, (LessonLauncher)cifar_records_cpu);
  lesson_derived(&lesson, 'q', cifar_records_pixels);
  lesson_derived(&lesson, 'r', cifar_records_bytes);
  lesson_output(&lesson, "x", "nq");
  lesson_output(&lesson, "labels", "n");
  lesson_element(&lesson, "labels", LESSON_INT);
  lesson_input(&lesson, "records", "nr");
  lesson_element(&lesson, "records", LESSON_BYTE);
  lesson_alternative(&lesson, "no labels lay between the pictures", cifar_records_packed_call);
  lesson_alternative(&lesson, "the last label were the first pixel", cifar_records_early_call);
  lesson_alternative(&lesson, "the channels of a pixel lay side by side", cifar_records_interleaved_call);
  lesson.timed = lesson_shape(&lesson, 10000, 1, 1024);
  lesson.counted = lesson_shape(&lesson, 16, 2, 256);
  const int shapes[][3] = {{7, 2, 5},   {1, 1, 1},  {3, 1, 31},  {31, 2, 33}, {5, 1, 127},
                           {33, 2, 16}, {2, 3, 64}, {127, 1, 3}, {4, 2, 1024}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  return lesson;
}

#endif /* PHASE3_CNN_CIFAR_RECORDS_LESSON_CUH */

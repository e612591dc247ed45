/* nncuda_label_lesson.cuh - arrays, sizes and reference of the labels in nncuda_cross_entropy.cuh: for the exercise. */
#ifndef PHASE5_PRODUCTION_NNCUDA_LABEL_LESSON_CUH
#define PHASE5_PRODUCTION_NNCUDA_LABEL_LESSON_CUH

#include "common/device.h"
#include "common/lesson/lesson.h"
#include "phase5_production/05_pytorch/nncuda_cross_entropy.cuh"

enum { LABEL_BELOW = 2, LABEL_ABOVE = 3 }; /* labels that are no classes */

/* known (n), counts: of rows that count, of wrong ones, and the first of these; labels (n), raised by LABEL_BELOW */
static inline void labels_cpu(int *known, int *counts, const int *labels, int ignored, int rows, int classes) {
  counts[0] = counts[1] = 0;
  counts[2] = rows;
  for (int row = rows - 1; row >= 0; row--) {
    const int label = labels[row] - LABEL_BELOW;
    const bool counted = label != ignored, wrong = counted && (label < 0 || label > classes - 1);
    known[row] = wrong ? LABEL_WRONG : counted ? label : LABEL_IGNORED;
    counts[0] += counted;
    counts[1] += wrong;
    if (wrong) counts[2] = row;
  }
}

static __global__ void labels_lower_kernel(int64_t *to, const int *from, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) to[row] = from[row] - LABEL_BELOW;
}

typedef void LabelsLauncher(int *to, LabelCounts *counts, const int64_t *labels, int64_t ignored, int rows,
                            int classes);

/* size[LESSON_SIZES]: what is ignored, raised by LABEL_BELOW, too. */
static inline void labels_call(LessonLauncher launch, float *const *array, const int *size) {
  const int rows = size[0], classes = size[1], ignored = size[LESSON_SIZES] - LABEL_BELOW;
  if (launch == (LessonLauncher)labels_cpu) {
    labels_cpu((int *)array[0], (int *)array[1], (const int *)array[2], ignored, rows, classes);
    return;
  }
  int64_t *labels = (int64_t *)device_alloc(DEVICE_GPU, (size_t)rows * sizeof *labels);
  labels_lower_kernel<<<(rows + 127) / 128, 128>>>(labels, (const int *)array[2], rows);
  CUDA_CHECK_LAUNCH();
  ((LabelsLauncher *)launch)((int *)array[0], (LabelCounts *)array[1], labels, ignored, rows, classes);
  CUDA_CHECK(cudaDeviceSynchronize());
  device_free(DEVICE_GPU, labels);
}

/* The launcher of the exercise. */
static inline void nncuda_labels(int *to, LabelCounts *counts, const int64_t *labels, int64_t ignored, int rows,
                                 int classes) {
  cross_entropy_labels(to, counts, labels, ignored, rows, classes);
}

static inline int label_lesson_counts(const int *size) {
  (void)size;
  return 3;
}

static inline int label_lesson_values(const int *size) { return size[1] + LABEL_BELOW + LABEL_ABOVE; }

static inline Lesson label_lesson(void) {
  Lesson lesson = lesson_make("labels", "nc", labels_call, (LessonLauncher)labels_cpu);
  lesson_parameter(&lesson, "ignored", 1, 0);
  lesson_derived(&lesson, 't', label_lesson_counts);
  lesson_derived(&lesson, 'v', label_lesson_values);
  lesson_output(&lesson, "known", "n");
  lesson_element(&lesson, "known", LESSON_INT);
  lesson_output(&lesson, "counts", "t");
  lesson_element(&lesson, "counts", LESSON_INT);
  lesson_labels(&lesson, "labels", "n", 'v');
  lesson.counted = lesson_shape(&lesson, 1024, 10);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 127, 10));
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "129x10:ignored=5")); /* a class */
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "33x3:ignored=1"));   /* -1 */
  lesson_check_shape(&lesson, lesson_shape_of(&lesson, "2049x1:ignored=9"));
  return lesson;
}

#endif /* PHASE5_PRODUCTION_NNCUDA_LABEL_LESSON_CUH */

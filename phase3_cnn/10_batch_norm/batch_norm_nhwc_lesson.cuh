/* batch_norm_nhwc_lesson.cuh - the lessons of batch_norm_lesson.cuh with arrays (N,H,W,C): the same sizes, the same
 * reference, the same tolerance, other kernels. */
#ifndef PHASE3_CNN_BATCH_NORM_NHWC_LESSON_CUH
#define PHASE3_CNN_BATCH_NORM_NHWC_LESSON_CUH

#include "phase3_cnn/10_batch_norm/batch_norm2d_nhwc.cuh"
#include "phase3_cnn/10_batch_norm/batch_norm_lesson.cuh"

/* N images of H x W pixels are N H W images of one pixel. */
typedef struct BatchNormNhwcSize {
  int of[LESSON_SIZES + LESSON_PARAMETERS];
} BatchNormNhwcSize;

static inline BatchNormNhwcSize batch_norm_nhwc_size(const int *size) {
  BatchNormNhwcSize rows;
  memcpy(rows.of, size, sizeof rows.of);
  rows.of[0] = size[0] * batch_norm_pixels(size);
  rows.of[2] = rows.of[3] = 1;
  return rows;
}

static inline void batch_norm_nhwc_forward_call(LessonLauncher launch, float *const *array, const int *size) {
  batch_norm_forward_call(launch, array, batch_norm_nhwc_size(size).of);
}

static inline void batch_norm_nhwc_backward_call(LessonLauncher launch, float *const *array, const int *size) {
  batch_norm_backward_call(launch, array, batch_norm_nhwc_size(size).of);
}

static inline size_t batch_norm_nhwc_lesson_workspace(const void *method, const int *size) {
  const BatchNorm2dShape rows = {size[0] * batch_norm_pixels(size), size[1], 1};
  (void)method;
  return sizeof(float) * batch_norm2d_nhwc_workspace_floats(rows);
}

static inline Lesson batch_norm_nhwc_lesson(Lesson lesson, void (*call)(LessonLauncher, float *const *, const int *)) {
  lesson.call = call;
  lesson.workspace = batch_norm_nhwc_lesson_workspace;
  for (int i = 0; i < lesson.arrays; i++)
    if (strcmp(lesson.array[i].letters, "ncp") == 0) lesson.array[i].letters = "npc";
  return lesson;
}

static inline Lesson batch_norm_nhwc_forward_lesson(void) {
  return batch_norm_nhwc_lesson(batch_norm_forward_lesson(), batch_norm_nhwc_forward_call);
}

static inline Lesson batch_norm_nhwc_backward_lesson(void) {
  return batch_norm_nhwc_lesson(batch_norm_backward_lesson(), batch_norm_nhwc_backward_call);
}

#endif /* PHASE3_CNN_BATCH_NORM_NHWC_LESSON_CUH */

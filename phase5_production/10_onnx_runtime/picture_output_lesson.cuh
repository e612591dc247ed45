/* picture_output_lesson.cuh - arrays and shapes of picture_output.cuh, for its tests and exercises.
 *
 * top_k: sizes are rows, classes and how many are wanted, "nck". A few logits are 1e4 in the same row: equal values, of
 * which the lower label comes first.
 * picture_bytes: pictures, channels, height and width, "nchw". A few numbers are infinite. */
#ifndef PHASE5_PRODUCTION_PICTURE_OUTPUT_LESSON_CUH
#define PHASE5_PRODUCTION_PICTURE_OUTPUT_LESSON_CUH

#include <float.h>

#include "common/lesson/lesson.h"
#include "phase5_production/10_onnx_runtime/picture_output.cuh"

/* ------------------------------------------------------------------------------------------------------------ top_k */

typedef void TopKLauncher(int *label, float *probability, const float *logits, int n, int classes, int k,
                          int are_probabilities);

static inline int top_k_shape_check(const int *size, Error *err) {
  if (size[2] <= size[1] && size[2] <= TOP_K_MOST) return 0;
  return error_set(err, "of %d classes the %d likeliest cannot be taken; up to %d can", size[1], size[2],
                   size[1] < TOP_K_MOST ? size[1] : TOP_K_MOST);
}

static inline void top_k_call(LessonLauncher launch, float *const *array, const int *size) {
  ((TopKLauncher *)launch)((int *)array[0], array[1], array[2], size[0], size[1], size[2], 0);
}

/* exp() of a difference of up to 3, which is rounded before: 8 eps; and the sum of `classes` of them. */
static inline Tolerance top_k_tolerance(const int *size) {
  const double n = size[1];
  return tolerance_make((16 + fmin(n, 4 * sqrt(n))) * FLT_EPSILON, FLT_MIN);
}

static inline LessonVersion top_k_version(const char *name, TopKLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson top_k_lesson(void) {
  Lesson lesson = lesson_make("onnx_runtime", "nck", top_k_call, (LessonLauncher)top_k_cpu);
  lesson.shape_check = top_k_shape_check;
  lesson_output(&lesson, "label", "nk");
  lesson_element(&lesson, "label", LESSON_INT);
  lesson_output(&lesson, "probability", "nk");
  lesson_tolerance(&lesson, "probability", top_k_tolerance);
  lesson_input(&lesson, "logits", "nc");
  lesson_extreme(&lesson, "logits", 1e4f);
  static const int shapes[][3] = {{3, 17, 5}, {1, 1, 1}, {5, 33, 33}, {2, 1000, 5}, {33, 31, 3}, {7, 127, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2]));
  lesson.counted = lesson_shape(&lesson, 64, 256, 5);
  lesson.timed = lesson_shape(&lesson, 1024, 1000, 5);
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------- picture_bytes */

enum { PICTURE_LESSON_RANGE = 2 };

typedef void PictureBytesLauncher(uint8_t *bytes, int *strange, const float *y, int n, int channels, int height,
                                  int width, float range);

/* The harness compares ints: the bytes go to the workspace, which the reference does without, and from there into the
 * output. */
static __global__ void picture_ints_kernel(int *out, const uint8_t *bytes, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = bytes[i];
}

static inline void picture_reference_call(PictureBytesLauncher *launch, float *const *array, const int *size,
                                          int count) {
  uint8_t *bytes = (uint8_t *)xmalloc((size_t)count);
  launch(bytes, (int *)array[1], array[2], size[0], size[1], size[2], size[3], PICTURE_LESSON_RANGE);
  for (int i = 0; i < count; i++) ((int *)array[0])[i] = bytes[i];
  free(bytes);
}

static inline void picture_bytes_call(LessonLauncher launch, float *const *array, const int *size) {
  PictureBytesLauncher *picture_launch = (PictureBytesLauncher *)launch;
  uint8_t *bytes = (uint8_t *)array[3];
  const int count = size[0] * size[1] * size[2] * size[3];
  if (bytes == NULL) {
    picture_reference_call(picture_launch, array, size, count);
    return;
  }
  picture_launch(bytes, (int *)array[1], array[2], size[0], size[1], size[2], size[3], PICTURE_LESSON_RANGE);
  picture_ints_kernel<<<(count + 255) / 256, 256>>>((int *)array[0], bytes, count);
  CUDA_CHECK_LAUNCH();
}

static inline size_t picture_lesson_workspace(const void *method, const int *size) {
  (void)method;
  return (size_t)size[0] * (size_t)size[1] * (size_t)size[2] * (size_t)size[3];
}

static inline LessonVersion picture_bytes_version(const char *name, PictureBytesLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson picture_bytes_lesson(void) {
  Lesson lesson = lesson_make("onnx_runtime", "nchw", picture_bytes_call, (LessonLauncher)picture_bytes_cpu);
  lesson.workspace = picture_lesson_workspace;
  lesson.method = "every version"; /* so that the workspace is asked for */
  lesson_output(&lesson, "bytes", "nhwc");
  lesson_element(&lesson, "bytes", LESSON_INT);
  lesson_output(&lesson, "strange", "n");
  lesson_element(&lesson, "strange", LESSON_INT);
  lesson_input(&lesson, "y", "nchw");
  lesson_range(&lesson, "y", -0.25f, 2.25f);
  lesson_extreme(&lesson, "y", INFINITY);
  static const int shapes[][4] = {{2, 3, 5, 7}, {1, 1, 1, 1},   {3, 3, 17, 33},
                                  {5, 1, 9, 8}, {2, 4, 31, 13}, {1, 3, 64, 48}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
  lesson.counted = lesson_shape(&lesson, 4, 3, 32, 64);
  lesson.timed = lesson_shape(&lesson, 64, 3, 224, 224);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_PICTURE_OUTPUT_LESSON_CUH */

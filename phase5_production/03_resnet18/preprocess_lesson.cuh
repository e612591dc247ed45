/* preprocess_lesson.cuh - arrays and shapes of preprocess.cuh, for its program, its tests and its exercises. The
 * tolerance is zero: everything but the last two operations is whole numbers.
 *
 * Shapes are the picture's height and width, the shorter side after resizing and the side that is kept, "hwrs". */
#ifndef PHASE5_PRODUCTION_PREPROCESS_LESSON_CUH
#define PHASE5_PRODUCTION_PREPROCESS_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/03_resnet18/preprocess.cuh"

typedef void PreprocessLauncher(float *x, const uint8_t *picture, void *workspace, PreprocessPlan plan);

static inline PreprocessPlan preprocess_lesson_plan(const int *size) {
  PreprocessRecipe recipe = preprocess_imagenet;
  recipe.resize = size[2];
  recipe.crop = size[3];
  return preprocess_plan(size[1], size[0], recipe);
}

static inline int preprocess_shape_check(const int *size, Error *err) {
  const int shorter = size[0] < size[1] ? size[0] : size[1], longer = size[0] < size[1] ? size[1] : size[0];
  if (size[3] > size[2])
    return error_set(err, "a picture of %d pixels on its shorter side cannot be cropped to %d; crop to %d at most",
                     size[2], size[3], size[2]);
  if (longer > 16384 || size[2] > 4096)
    return error_set(err, "pictures of up to 16384 pixels a side are resized to at most 4096");
  if ((long long)size[2] * longer / shorter > 1 << 20)
    return error_set(err, "a picture of %d x %d is too narrow", size[1], size[0]);
  return 0;
}

static inline void preprocess_call(LessonLauncher launch, float *const *array, const int *size) {
  ((PreprocessLauncher *)launch)(array[0], (const uint8_t *)array[1], array[2], preprocess_lesson_plan(size));
}

static inline void preprocess_lesson_cpu(float *x, const uint8_t *picture, void *workspace, PreprocessPlan plan) {
  (void)workspace; /* the definition gets no memory besides */
  void *own = xmalloc(preprocess_workspace_bytes(plan));
  preprocess_cpu(x, picture, own, plan);
  free(own);
}

/* What some mistakes would give. */
static inline void preprocess_bgr_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  const size_t pixels = (size_t)size[0] * (size_t)size[1];
  uint8_t *turned = (uint8_t *)xmalloc(3 * pixels);
  for (size_t i = 0; i < 3 * pixels; i++) turned[i] = ((const uint8_t *)array[1])[i / 3 * 3 + 2 - i % 3];
  preprocess_lesson_cpu(array[0], turned, NULL, preprocess_lesson_plan(size));
  free(turned);
}
static inline void preprocess_same_mean_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  PreprocessPlan plan = preprocess_lesson_plan(size);
  for (int c = 1; c < 3; c++) {
    plan.mean[c] = plan.mean[0];
    plan.stddev[c] = plan.stddev[0];
  }
  preprocess_lesson_cpu(array[0], (const uint8_t *)array[1], NULL, plan);
}

static inline void preprocess_beside_call(LessonLauncher launch, float *const *array, const int *size) {
  (void)launch;
  const size_t plane = (size_t)size[3] * (size_t)size[3];
  float *planes = (float *)xmalloc(3 * plane * sizeof *planes);
  preprocess_lesson_cpu(planes, (const uint8_t *)array[1], NULL, preprocess_lesson_plan(size));
  for (size_t i = 0; i < 3 * plane; i++) array[0][i] = planes[i % 3 * plane + i / 3];
  free(planes);
}

static inline size_t preprocess_lesson_workspace(const void *method, const int *size) {
  (void)method;
  return preprocess_workspace_bytes(preprocess_lesson_plan(size));
}

static inline int preprocess_channels(const int *size) { return (void)size, 3; }
static inline int preprocess_line(const int *size) { return 3 * size[1]; }

static inline LessonVersion preprocess_version(const char *name, PreprocessLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson preprocess_lesson(void) {
  Lesson lesson = lesson_make("preprocess", "hwrs", preprocess_call, (LessonLauncher)preprocess_lesson_cpu);
  lesson.shape_check = preprocess_shape_check;
  lesson.workspace = preprocess_lesson_workspace;
  lesson.method = "every version"; /* so that the workspace is asked for */
  lesson_derived(&lesson, 'c', preprocess_channels);
  lesson_derived(&lesson, 'l', preprocess_line);
  lesson_output(&lesson, "x", "css");
  lesson_input(&lesson, "picture", "hl");
  lesson_element(&lesson, "picture", LESSON_BYTE);
  lesson_alternative(&lesson, "blue came first", preprocess_bgr_call);
  lesson_alternative(&lesson, "all channels had the mean and the deviation of red", preprocess_same_mean_call);
  lesson_alternative(&lesson, "the channels of x lay side by side", preprocess_beside_call);
  lesson.timed = lesson_shape(&lesson, 1080, 1920, 256, 224);
  lesson.counted = lesson_shape(&lesson, 96, 128, 40, 32);
  const int shapes[][4] = {{23, 37, 11, 8},  {9, 7, 7, 7},     {5, 4, 13, 9},   {1, 1, 3, 2},
                           {64, 33, 16, 13}, {31, 127, 31, 5}, {127, 16, 5, 4}, {12, 12, 24, 24}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]));
  return lesson;
}

#endif /* PHASE5_PRODUCTION_PREPROCESS_LESSON_CUH */

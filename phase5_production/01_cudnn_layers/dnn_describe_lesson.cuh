/* dnn_describe_lesson.cuh - arrays, shapes and references for the exercises of dnn_describe.cuh. */
#ifndef PHASE5_PRODUCTION_DNN_DESCRIBE_LESSON_CUH
#define PHASE5_PRODUCTION_DNN_DESCRIBE_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/01_cudnn_layers/dnn_describe.cuh"

typedef void DnnTensorLauncher(float *y, int *sizes, const float *x, int n, int c, int h, int w);
typedef void DnnGradientLauncher(float *dw, const float *parts, int p, int k, float weight);
typedef void DnnPickLauncher(int *picked, const int *works, const int *deterministic, const int *rounds,
                             const int *memory, const int *room, int tables, int a);

#define DNN_LESSON_WEIGHT 0.375f

static inline void dnn_tensor_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DnnTensorLauncher *)launch)(array[0], (int *)array[1], array[2], size[0], size[1], size[2], size[3]);
}
static inline void dnn_gradient_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DnnGradientLauncher *)launch)(array[0], array[1], size[0], size[1], DNN_LESSON_WEIGHT);
}
static inline void dnn_pick_call(LessonLauncher launch, float *const *array, const int *size) {
  ((DnnPickLauncher *)launch)((int *)array[0], (const int *)array[1], (const int *)array[2], (const int *)array[3],
                              (const int *)array[4], (const int *)array[5], size[0], size[1]);
}

/* What else could have been described, for diagnoses: the array as the other layout has it. */
static inline void dnn_tensor_last_call(LessonLauncher launch, float *const *array, const int *size) {
  const int n = size[0], c = size[1], h = size[2], w = size[3];
  float *moved = (float *)xmalloc((size_t)n * c * h * w * sizeof *moved);
  const DnnTensor t = dnn_tensor_nhwc(n, c, h, w);
  for (int i = 0; i < n * c * h * w; i++)
    moved[i] = array[2][i / w / h / c * t.stride[0] + i / w / h % c * t.stride[1] + i / w % h * t.stride[2] +
                        i % w * t.stride[3]];
  ((DnnTensorLauncher *)launch)(array[0], (int *)array[1], moved, n, c, h, w);
  free(moved);
}
/* Of a table: `array` (0: works, 1: deterministic, 3: memory, 4: room) holds other numbers. */
static inline void dnn_pick_with(LessonLauncher launch, float *const *array, const int *size, int which, int times,
                                 int plus) {
  const size_t count = (size_t)size[0] * (size_t)(which == 4 ? 1 : size[1]);
  int *other = (int *)xmalloc(count * sizeof *other);
  float *arrays[6];
  memcpy(arrays, array, sizeof arrays);
  for (size_t i = 0; i < count; i++) other[i] = times * ((const int *)array[1 + which])[i] + plus;
  arrays[1 + which] = (float *)other;
  dnn_pick_call(launch, arrays, size);
  free(other);
}
static inline void dnn_pick_works_call(LessonLauncher launch, float *const *array, const int *size) {
  dnn_pick_with(launch, array, size, 0, 0, 1);
}
static inline void dnn_pick_atomic_call(LessonLauncher launch, float *const *array, const int *size) {
  dnn_pick_with(launch, array, size, 1, 0, 1);
}
static inline void dnn_pick_less_call(LessonLauncher launch, float *const *array, const int *size) {
  dnn_pick_with(launch, array, size, 3, 1, 1);
}
static inline void dnn_pick_room_call(LessonLauncher launch, float *const *array, const int *size) {
  dnn_pick_with(launch, array, size, 4, 0, 1 << 20);
}

/* The last size is 4: of the sizes themselves. */
static inline Lesson dnn_tensor_lesson(void) {
  static const int shapes[][4] = {{2, 3, 5, 7}, {1, 1, 1, 4}, {3, 1, 4, 3}, {1, 5, 1, 3}, {2, 2, 6, 1}};
  Lesson lesson = lesson_make("cudnn_layers", "nchwd", dnn_tensor_call, (LessonLauncher)dnn_tensor_read_cpu);
  lesson_output(&lesson, "y", "nchw");
  lesson_output(&lesson, "sizes", "d");
  lesson_element(&lesson, "sizes", LESSON_INT);
  lesson_input(&lesson, "x", "nchw");
  lesson_alternative(&lesson, "x were NHWC: its strides are those of the other layout", dnn_tensor_last_call);
  for (int i = 0; i < 5; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 4));
  lesson.counted = lesson_shape(&lesson, 4, 8, 16, 16, 4);
  lesson.timed = lesson_shape(&lesson, 64, 64, 56, 56, 4);
  return lesson;
}

/* p + 1 roundings of a sum of p terms */
static inline Tolerance dnn_gradient_tolerance(const int *size) { return tolerance_dot((size_t)size[0], 1); }

static inline Lesson dnn_gradient_lesson(void) {
  static const int shapes[][2] = {{3, 37}, {1, 5}, {2, 129}, {7, 1}};
  Lesson lesson = lesson_make("cudnn_layers", "pk", dnn_gradient_call, (LessonLauncher)dnn_gradient_add_cpu);
  lesson_output(&lesson, "dw", "k");
  lesson_input(&lesson, "parts", "pk");
  lesson_scalar(&lesson, "weight", DNN_LESSON_WEIGHT);
  lesson.tolerance = dnn_gradient_tolerance;
  for (int i = 0; i < 4; i++) lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  lesson.counted = lesson_shape(&lesson, 4, 4096);
  lesson.timed = lesson_shape(&lesson, 4, 1 << 20);
  return lesson;
}

/* b: yes or no; m: how many bytes there are to choose from. So few that many tables have one that fits exactly. */
static inline Lesson dnn_pick_lesson(void) {
  static const int shapes[][2] = {{61, 7}, {1, 1}, {129, 8}, {33, 2}};
  Lesson lesson = lesson_make("cudnn_layers", "tabm", dnn_pick_call, (LessonLauncher)dnn_tables_pick_cpu);
  lesson_output(&lesson, "picked", "t");
  lesson_element(&lesson, "picked", LESSON_INT);
  lesson_labels(&lesson, "works", "ta", 'b');
  lesson_labels(&lesson, "deterministic", "ta", 'b');
  lesson_labels(&lesson, "rounds", "ta", 'b');
  lesson_labels(&lesson, "memory", "ta", 'm');
  lesson_labels(&lesson, "room", "t", 'm');
  lesson_alternative(&lesson, "there were room for any workspace", dnn_pick_room_call);
  lesson_alternative(&lesson, "a workspace had to be smaller than the room", dnn_pick_less_call);
  lesson_alternative(&lesson, "all were deterministic: atomic additions are let in", dnn_pick_atomic_call);
  lesson_alternative(&lesson, "all of them worked", dnn_pick_works_call);
  for (int i = 0; i < 4; i++) lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1], 2, 5));
  lesson.counted = lesson_shape(&lesson, 512, 8, 2, 5);
  lesson.timed = lesson_shape(&lesson, 1 << 16, 8, 2, 5);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_DNN_DESCRIBE_LESSON_CUH */

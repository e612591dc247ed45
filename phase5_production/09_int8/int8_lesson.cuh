/* int8_lesson.cuh - arrays, shapes, reference of int8.cuh's rounding and of the product of int8 numbers: for the
 * exercises. */
#ifndef PHASE5_PRODUCTION_INT8_LESSON_CUH
#define PHASE5_PRODUCTION_INT8_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase5_production/09_int8/linear_int8.cuh"

/* --------------------------------------------------------------------------------------------------------- rounding */

/* q (n) of x (n), which is a multiple of a half first, so that many numbers lie between two integers; one in 31 is
 * NaN. */
typedef void Int8Round(int *q, const float *x, int n);

static inline __host__ __device__ int int8_round_of(const float *x, int i) {
  return int8_round(i % 31 == 7 ? NAN : rintf(2 * x[i]) / 2);
}

static inline void int8_round_cpu(int *q, const float *x, int n) {
  for (int i = 0; i < n; i++) q[i] = int8_round_of(x, i);
}

static __global__ void int8_round_kernel(int *q, const float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) q[i] = int8_round_of(x, i);
}

static inline void int8_round_gpu(int *q, const float *x, int n) {
  int8_round_kernel<<<(n + 127) / 128, 128>>>(q, x, n);
  CUDA_CHECK_LAUNCH();
}

static inline void int8_round_call(LessonLauncher launch, float *const *array, const int *size) {
  ((Int8Round *)launch)((int *)array[0], array[1], size[0]);
}

static inline Lesson int8_round_lesson(void) {
  static const char *const shapes[] = {"127", "1", "31", "1000"};
  Lesson lesson = lesson_make("int8_round", "n", int8_round_call, (LessonLauncher)int8_round_cpu);
  lesson_output(&lesson, "q", "n");
  lesson_element(&lesson, "q", LESSON_INT);
  lesson_input(&lesson, "x", "n");
  lesson_range(&lesson, "x", -140, 140);
  lesson_extreme(&lesson, "x", 1e30f);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "1000000");
  lesson.counted = lesson_shape_of(&lesson, "1024");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------- product */

/* y (m,k) = x (m,d) w (k,d)^T times scale (k): x is uint8, w int8. */
typedef void LinearInt8(float *y, const uint8_t *x, const uint8_t *w, const float *scale, int m, int d, int k);

static inline void linear_int8_call(LessonLauncher launch, float *const *array, const int *size) {
  ((LinearInt8 *)launch)(array[0], (const uint8_t *)array[1], (const uint8_t *)array[2], array[3], size[0], size[1],
                         size[2]);
}

static inline Int8End linear_int8_end(const float *scale) {
  Int8End end = int8_end_of(scale, NULL, 0);
  end.x_positive = 1;
  return end;
}

static inline void linear_int8_reference(float *y, const uint8_t *x, const uint8_t *w, const float *scale, int m, int d,
                                         int k) {
  conv2d_int8_cpu(y, (const int8_t *)x, (const int8_t *)w, linear_int8_shape(m, d, k), linear_int8_end(scale));
}
static inline void linear_int8_dp4a(float *y, const uint8_t *x, const uint8_t *w, const float *scale, int m, int d,
                                    int k) {
  conv2d_int8_dp4a(y, (const int8_t *)x, (const int8_t *)w, linear_int8_shape(m, d, k), linear_int8_end(scale));
}

static inline Lesson linear_int8_lesson(void) {
  static const char *const shapes[] = {"5x9x7", "1x16x1", "3x33x66", "65x100x3", "33x127x70"};
  Lesson lesson = lesson_make("linear_int8", "mdk", linear_int8_call, (LessonLauncher)linear_int8_reference);
  lesson_output(&lesson, "y", "mk");
  lesson_input(&lesson, "x", "md");
  lesson_element(&lesson, "x", LESSON_BYTE);
  lesson_input(&lesson, "w", "kd");
  lesson_element(&lesson, "w", LESSON_BYTE);
  lesson_input(&lesson, "scale", "k");
  lesson_range(&lesson, "scale", 0.001f, 0.002f);
  lesson.tolerance = lesson_exact;
  lesson.timed = lesson_shape_of(&lesson, "4096x4096x4096");
  lesson.counted = lesson_shape_of(&lesson, "128x256x128");
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE5_PRODUCTION_INT8_LESSON_CUH */

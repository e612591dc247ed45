/* muon_lesson.cuh - arrays, shapes, reference, FLOPs and tolerance of a step of Muon: for the program, its test and the
 * exercises. */
#ifndef PHASE4_TRAINING_MUON_LESSON_CUH
#define PHASE4_TRAINING_MUON_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/03_rmsprop/muon.cuh"

static inline MuonSettings muon_lesson_settings(void) {
  const MuonSettings settings = {0.25f, 0.75f, 0.125f};
  return settings;
}

static inline void muon_lesson_cpu(float *w, float *momentum, const float *grad, float *workspace, int matrices,
                                   int rows, int cols, MuonSettings settings) {
  const size_t count = (size_t)rows * cols;
  (void)workspace;
  for (int m = 0; m < matrices; m++)
    muon_update_cpu(w + m * count, momentum + m * count, grad + m * count, rows, cols, settings.lr, settings.mu,
                    settings.weight_decay);
}

/* The versions work in place: the old values are copied first, which is a small part of the time. */
static inline void muon_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t bytes = (size_t)size[0] * size[1] * size[2] * sizeof(float);
  for (int a = 0; a < 2; a++) {
    if (launch == (LessonLauncher)muon_lesson_cpu)
      memcpy(array[a], array[2 + a], bytes);
    else
      CUDA_CHECK(cudaMemcpyAsync(array[a], array[2 + a], bytes, cudaMemcpyDeviceToDevice));
  }
  ((MuonLauncher *)launch)(array[0], array[1], array[4], array[5], size[0], size[1], size[2], muon_lesson_settings());
}

static inline double muon_lesson_flops(const int *size) {
  const double n = size[1] < size[2] ? size[1] : size[2], k = size[1] < size[2] ? size[2] : size[1];
  return size[0] * MUON_STEPS * (4 * n * n * k + 2 * n * n * n);
}

/* The polynomial is steep at 0, 3.4445 in each step: a singular value near 0 shows 485 times the rounding errors, of 2
 * sqrt(k) eps, of a product. lr * scale is 0.05 sqrt(larger side). */
static inline Tolerance muon_lesson_tolerance(const int *size) {
  const double k = size[1] < size[2] ? size[2] : size[1];
  return tolerance_make(0, 0.05 * sqrt(k) * 485 * 2 * sqrt(k) * FLT_EPSILON + 4 * FLT_EPSILON);
}

static inline Tolerance muon_lesson_momentum_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 8 * FLT_EPSILON);
}

static inline int muon_lesson_check(const int *size, Error *err) {
  if (size[0] <= MUON_MATRICES) return 0;
  return error_set(err, "%d matrices: a table has room for %d; take fewer", size[0], MUON_MATRICES);
}

/* What both need: the larger of the two. */
static inline size_t muon_lesson_workspace(const void *method, const int *size) {
  (void)method;
  const size_t each = muon_each_floats(size[1], size[2]), all = muon_all_floats(size[0], size[1], size[2]);
  return (each > all ? each : all) * sizeof(float);
}

static inline LessonVersion muon_version(const char *name, MuonLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson muon_lesson(void) {
  static const char *const shapes[] = {"2x5x7", "1x2x2", "1x1x3", "3x7x4", "1x33x34"};
  Lesson lesson = lesson_make("muon", "mrc", muon_call, (LessonLauncher)muon_lesson_cpu);
  lesson_output(&lesson, "w", "mrc");
  lesson_output(&lesson, "momentum", "mrc");
  lesson_input(&lesson, "old w", "mrc");
  lesson_input(&lesson, "old momentum", "mrc");
  lesson_input(&lesson, "grad", "mrc");
  lesson_scalar(&lesson, "mu", muon_lesson_settings().mu);
  lesson_scalar(&lesson, "lr", muon_lesson_settings().lr);
  lesson_scalar(&lesson, "weight_decay", muon_lesson_settings().weight_decay);
  lesson.tolerance = muon_lesson_tolerance;
  lesson_tolerance(&lesson, "momentum", muon_lesson_momentum_tolerance);
  lesson.shape_check = muon_lesson_check;
  lesson.flops = muon_lesson_flops;
  lesson.workspace = muon_lesson_workspace;
  lesson.method = "a workspace"; /* all versions need one */
  lesson.timed = lesson_shape(&lesson, 16, 512, 2304);
  lesson.counted = lesson_shape(&lesson, 3, 32, 40);
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Two parts of it, for the exercises */

typedef void MuonMomentum(float *x, float *momentum, const float *grad, int rows, int cols, float mu);
typedef void MuonPolynomial(float *p, const float *a, int n, float linear, float quadratic);

static inline void muon_momentum_cpu(float *x, float *momentum, const float *grad, int rows, int cols, float mu) {
  for (int i = 0; i < rows * cols; i++) {
    // >>> hidden muon_momentum
    momentum[i] += (1 - mu) * (grad[i] - momentum[i]);
    x[i] = grad[i] + mu * (momentum[i] - grad[i]);
    // <<< hidden
  }
}

static inline void muon_momentum_call(LessonLauncher launch, float *const *array, const int *size) {
  const size_t bytes = (size_t)size[0] * size[1] * sizeof(float);
  if (launch == (LessonLauncher)muon_momentum_cpu)
    memcpy(array[1], array[2], bytes);
  else
    CUDA_CHECK(cudaMemcpyAsync(array[1], array[2], bytes, cudaMemcpyDeviceToDevice));
  ((MuonMomentum *)launch)(array[0], array[1], array[3], size[0], size[1], muon_lesson_settings().mu);
}

/* No more rows than columns: then u is not transposed. */
static inline Lesson muon_momentum_lesson(void) {
  static const char *const shapes[] = {"5x67", "1x1", "3x31", "7x127", "16x16"};
  Lesson lesson = lesson_make("muon_momentum", "rc", muon_momentum_call, (LessonLauncher)muon_momentum_cpu);
  lesson_output(&lesson, "u", "rc");
  lesson_output(&lesson, "momentum", "rc");
  lesson_input(&lesson, "old momentum", "rc");
  lesson_input(&lesson, "grad", "rc");
  lesson_scalar(&lesson, "mu", muon_lesson_settings().mu);
  lesson.tolerance = muon_lesson_momentum_tolerance;
  lesson.timed = lesson_shape(&lesson, 2048, 8192);
  lesson.counted = lesson_shape(&lesson, 32, 256);
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

static inline void muon_polynomial_cpu(float *p, const float *a, int n, float linear, float quadratic) {
  for (int i = 0; i < n * n; i++) p[i] = linear * a[i];
  muon_product_cpu(p, a, a, n, n, n, quadratic);
}

static inline void muon_polynomial_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MuonPolynomial *)launch)(array[0], array[1], size[0], -4.75f, 2);
}

static inline void muon_linear_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MuonPolynomial *)launch)(array[0], array[1], size[0], -4.75f, 0);
}

static inline void muon_exchanged_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MuonPolynomial *)launch)(array[0], array[1], size[0], 2, -4.75f);
}

/* A sum of n products of numbers below 2, twice; a few more roundings. */
static inline Tolerance muon_polynomial_tolerance(const int *size) { return tolerance_dot((size_t)size[0], 2 * 2 * 4); }

/* a is not symmetric here, so that rows and columns can be told apart. */
static inline Lesson muon_polynomial_lesson(void) {
  static const int sizes[] = {17, 1, 3, 16, 33};
  Lesson lesson = lesson_make("muon_polynomial", "n", muon_polynomial_call, (LessonLauncher)muon_polynomial_cpu);
  lesson_output(&lesson, "p", "nn");
  lesson_input(&lesson, "a", "nn");
  lesson_alternative(&lesson, "`quadratic` were 0", muon_linear_call);
  lesson_alternative(&lesson, "`linear` and `quadratic` were exchanged", muon_exchanged_call);
  lesson.tolerance = muon_polynomial_tolerance;
  lesson.timed = lesson_shape(&lesson, 1024);
  lesson.counted = lesson_shape(&lesson, 64);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, sizes[i]));
  return lesson;
}

#endif /* PHASE4_TRAINING_MUON_LESSON_CUH */

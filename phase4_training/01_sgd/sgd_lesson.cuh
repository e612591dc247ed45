/* sgd_lesson.cuh - arrays, shapes, reference and tolerance of a step of SGD: for the program, its test and the
 * exercises. */
#ifndef PHASE4_TRAINING_SGD_LESSON_CUH
#define PHASE4_TRAINING_SGD_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/01_sgd/sgd.cuh"

/* Exact in float, and no two of them or their products are alike. */
#define SGD_LESSON_LR 0.375f
#define SGD_LESSON_MOMENTUM 0.8125f
#define SGD_LESSON_DECAY 0.125f
#define SGD_LESSON_SHARE 0.75f

/* ---------------------------------------------------------------------------------------------------------------- */
/* What the lessons of optimizers share */

/* A shape is (tensors, floats). */
static inline int tensors_lesson_check(const int *size, Error *err) {
  if (size[0] <= TENSORS_MOST) return 0;
  return error_set(err, "%d tensors: a table has room for %d; take fewer", size[0], TENSORS_MOST);
}

/* The first shape shows faults best. The others: one element; tensors without any; with and without a rest after the
 * last float4, at addresses that are aligned to 16 bytes and at others; tensors of several chunks. */
static inline void tensors_lesson_shapes(Lesson *lesson) {
  static const char *const shapes[] = {"3x335", "1x1",   "1x3",   "5x3",    "2x31",
                                       "4x33",  "7x127", "6x800", "1x9001", "40x2003"};
  lesson->shape_check = tensors_lesson_check;
  lesson->timed = lesson_shape(lesson, TENSORS_MOST < 161 ? TENSORS_MOST : 161, 25557032); /* ResNet-50's */
  lesson->counted = lesson_shape(lesson, 16, 32768);
  lesson_check_shapes(lesson, shapes, sizeof shapes / sizeof *shapes);
}

/* `call` computes small arrays of 4 k + 1 elements in two parts, so that the second begins at an address that is not
 * aligned. Part 0 or 1 of n elements; 0 elements: there is none. */
static inline size_t tensors_lesson_part(size_t n, int part, size_t *begin) {
  const size_t first = lesson_first_part(n);
  *begin = part == 0 ? 0 : first;
  return part == 0 ? first : n - first;
}

/* Arrays as a lesson has them: new w, new slots, old w, old slots, gradients. */
template <int SLOTS>
static inline OptimizerArrays<SLOTS> tensors_lesson_arrays(float *const *array, size_t begin) {
  OptimizerArrays<SLOTS> a;
  memset(&a, 0, sizeof a);
  a.new_w = array[0] + begin;
  a.w = array[SLOTS + 1] + begin;
  for (int s = 0; s < SLOTS; s++) {
    a.new_slot[s] = array[1 + s] + begin;
    a.slot[s] = array[SLOTS + 2 + s] + begin;
  }
  a.grad = array[2 * SLOTS + 2] + begin;
  return a;
}

/* The definitions work in place: the old values are copied first. */
template <int SLOTS>
static inline void tensors_lesson_copy(OptimizerArrays<SLOTS> a, size_t n) {
  memcpy(a.new_w, a.w, n * sizeof(float));
  for (int s = 0; s < SLOTS; s++) memcpy(a.new_slot[s], a.slot[s], n * sizeof(float));
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* SGD */

static inline void sgd_lesson_cpu(OptimizerArrays<1> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  tensors_lesson_copy(a, n);
  sgd_update_cpu(a.new_w, a.new_slot[0], a.grad, n, tensor_begin(n, tensors, tensors_weights(tensors)), step.lr,
                 rule.momentum, step.share, rule.nesterov, rule.weight_decay);
}

static inline void sgd_plain_lesson_cpu(OptimizerArrays<0> a, int tensors, size_t n, SgdPlainRule rule,
                                        StepValues step) {
  tensors_lesson_copy(a, n);
  sgd_update_cpu(a.new_w, (float *)NULL, a.grad, n, tensor_begin(n, tensors, tensors_weights(tensors)), step.lr, 0.0f,
                 1.0f, 0, rule.weight_decay);
}

static inline void sgd_lesson_parts(LessonLauncher launch, float *const *array, const int *size, float share,
                                    int nesterov) {
  const StepValues step = {SGD_LESSON_LR, 0, 0, share, 0, 0};
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((SgdLauncher *)launch)(tensors_lesson_arrays<1>(array, begin), size[0], n,
                              sgd_rule(SGD_LESSON_MOMENTUM, SGD_LESSON_DECAY, nesterov), step);
  }
}

static inline void sgd_momentum_call(LessonLauncher launch, float *const *array, const int *size) {
  sgd_lesson_parts(launch, array, size, SGD_LESSON_SHARE, 0);
}

static inline void sgd_nesterov_call(LessonLauncher launch, float *const *array, const int *size) {
  sgd_lesson_parts(launch, array, size, 1, 1);
}

static inline void sgd_plain_call(LessonLauncher launch, float *const *array, const int *size) {
  const StepValues step = {SGD_LESSON_LR, 0, 0, 1, 0, 0};
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((SgdPlainLauncher *)launch)(tensors_lesson_arrays<0>(array, begin), size[0], n, sgd_plain_rule(SGD_LESSON_DECAY),
                                   step);
  }
}

static inline LessonVersion sgd_version(const char *name, SgdLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline LessonVersion sgd_plain_version(const char *name, SgdPlainLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* Numbers below 6 in size, and five roundings. */
static inline Tolerance sgd_lesson_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 5 * 6 * FLT_EPSILON);
}

static inline Lesson sgd_lesson_of(void (*call)(LessonLauncher, float *const *, const int *), LessonLauncher reference,
                                   int slots) {
  Lesson lesson = lesson_make("sgd", "tn", call, reference);
  lesson_output(&lesson, "w", "n");
  if (slots) lesson_output(&lesson, "momentum", "n");
  lesson_input(&lesson, "old w", "n");
  if (slots) lesson_input(&lesson, "old momentum", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_scalar(&lesson, "lr", SGD_LESSON_LR);
  lesson_scalar(&lesson, "weight_decay", SGD_LESSON_DECAY);
  if (slots) lesson_scalar(&lesson, "mu", SGD_LESSON_MOMENTUM);
  lesson.tolerance = sgd_lesson_tolerance;
  tensors_lesson_shapes(&lesson);
  return lesson;
}

static inline Lesson sgd_momentum_lesson(void) {
  Lesson lesson = sgd_lesson_of(sgd_momentum_call, (LessonLauncher)sgd_lesson_cpu, 1);
  lesson_scalar(&lesson, "share", SGD_LESSON_SHARE);
  return lesson;
}

static inline Lesson sgd_nesterov_lesson(void) {
  return sgd_lesson_of(sgd_nesterov_call, (LessonLauncher)sgd_lesson_cpu, 1);
}

static inline Lesson sgd_plain_lesson(void) {
  return sgd_lesson_of(sgd_plain_call, (LessonLauncher)sgd_plain_lesson_cpu, 0);
}

#endif /* PHASE4_TRAINING_SGD_LESSON_CUH */

/* rmsprop_lesson.cuh - arrays, shapes, reference and tolerance of a step of RMSprop: for the program, its test and the
 * exercise. */
#ifndef PHASE4_TRAINING_RMSPROP_LESSON_CUH
#define PHASE4_TRAINING_RMSPROP_LESSON_CUH

#include "phase4_training/01_sgd/sgd_lesson.cuh"
#include "phase4_training/03_rmsprop/rmsprop.cuh"

#define RMSPROP_LESSON_LR 0.375f
#define RMSPROP_LESSON_BETA2 0.75
#define RMSPROP_LESSON_MOMENTUM 0.8125f
#define RMSPROP_LESSON_DECAY 0.125f
#define RMSPROP_LESSON_EPSILON 0.0625f

enum { RMSPROP_ALL = RMSPROP_CENTERED | RMSPROP_MOMENTUM };

static inline Hyper rmsprop_lesson_hyper(void) {
  Hyper h;
  memset(&h, 0, sizeof h);
  h.momentum = RMSPROP_LESSON_MOMENTUM;
  h.weight_decay = RMSPROP_LESSON_DECAY;
  h.epsilon = RMSPROP_LESSON_EPSILON;
  h.beta2 = RMSPROP_LESSON_BETA2;
  return h;
}

static inline void rmsprop_lesson_cpu(OptimizerArrays<1> a, int tensors, size_t n, RmspropRule<0> rule,
                                      StepValues step) {
  tensors_lesson_copy(a, n);
  rmsprop_update_cpu(a.new_w, a.new_slot[0], (float *)NULL, (float *)NULL, a.grad, n,
                     tensor_begin(n, tensors, tensors_weights(tensors)), step.lr, rule.beta2, rule.epsilon, 0.0f,
                     rule.weight_decay);
}

static inline void rmsprop_all_lesson_cpu(OptimizerArrays<3> a, int tensors, size_t n, RmspropRule<RMSPROP_ALL> rule,
                                          StepValues step) {
  tensors_lesson_copy(a, n);
  rmsprop_update_cpu(a.new_w, a.new_slot[0], a.new_slot[1], a.new_slot[2], a.grad, n,
                     tensor_begin(n, tensors, tensors_weights(tensors)), step.lr, rule.beta2, rule.epsilon,
                     rule.momentum, rule.weight_decay);
}

static inline void rmsprop_call(LessonLauncher launch, float *const *array, const int *size) {
  const StepValues step = {RMSPROP_LESSON_LR, 0, 0, 1, 0, 0};
  const Hyper h = rmsprop_lesson_hyper();
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((RmspropLauncher *)launch)(tensors_lesson_arrays<1>(array, begin), size[0], n, rmsprop_rule<0>(&h), step);
  }
}

static inline void rmsprop_all_call(LessonLauncher launch, float *const *array, const int *size) {
  const StepValues step = {RMSPROP_LESSON_LR, 0, 0, 1, 0, 0};
  const Hyper h = rmsprop_lesson_hyper();
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((RmspropAllLauncher *)launch)(tensors_lesson_arrays<3>(array, begin), size[0], n, rmsprop_rule<RMSPROP_ALL>(&h),
                                     step);
  }
}

static inline LessonVersion rmsprop_version(const char *name, RmspropLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline LessonVersion rmsprop_all_version(const char *name, RmspropAllLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The new square is at least 0.75 * 0.25, its root 0.43: g / size is below 6, and there are a dozen roundings. */
static inline Tolerance rmsprop_lesson_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 12 * 6 * FLT_EPSILON);
}

static inline Lesson rmsprop_lesson(void) {
  Lesson lesson = lesson_make("rmsprop", "tn", rmsprop_call, (LessonLauncher)rmsprop_lesson_cpu);
  lesson_output(&lesson, "w", "n");
  lesson_output(&lesson, "square", "n");
  lesson_input(&lesson, "old w", "n");
  lesson_input(&lesson, "old square", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_range(&lesson, "old square", 0.25f, 3);
  lesson_scalar(&lesson, "lr", RMSPROP_LESSON_LR);
  lesson_scalar(&lesson, "beta2", RMSPROP_LESSON_BETA2);
  lesson_scalar(&lesson, "weight_decay", RMSPROP_LESSON_DECAY);
  lesson.tolerance = rmsprop_lesson_tolerance;
  tensors_lesson_shapes(&lesson);
  return lesson;
}

/* Of a few elements the old mean is 8 or -8, and its square larger than the mean square, as rounding makes it: there
 * the variance is 0, size is epsilon, and g / size below 40. Of the others the variance is 0.33 at least: near 0 a
 * rounding of it would change its root by much. A dozen roundings of numbers of that size. */
static inline Tolerance rmsprop_all_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 12 * 40 * FLT_EPSILON);
}

static inline Lesson rmsprop_all_lesson(void) {
  Lesson lesson = lesson_make("rmsprop", "tn", rmsprop_all_call, (LessonLauncher)rmsprop_all_lesson_cpu);
  lesson_output(&lesson, "w", "n");
  lesson_output(&lesson, "square", "n");
  lesson_output(&lesson, "mean", "n");
  lesson_output(&lesson, "momentum", "n");
  lesson_input(&lesson, "old w", "n");
  lesson_input(&lesson, "old square", "n");
  lesson_input(&lesson, "old mean", "n");
  lesson_input(&lesson, "old momentum", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_range(&lesson, "old square", 2, 5);
  lesson_range(&lesson, "old mean", -1, 1.25f);
  lesson_extreme(&lesson, "old mean", 8);
  lesson_scalar(&lesson, "lr", RMSPROP_LESSON_LR);
  lesson_scalar(&lesson, "beta2", RMSPROP_LESSON_BETA2);
  lesson_scalar(&lesson, "weight_decay", RMSPROP_LESSON_DECAY);
  lesson_scalar(&lesson, "mu", RMSPROP_LESSON_MOMENTUM);
  lesson.tolerance = rmsprop_all_tolerance;
  tensors_lesson_shapes(&lesson);
  return lesson;
}

#endif /* PHASE4_TRAINING_RMSPROP_LESSON_CUH */

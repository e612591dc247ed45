/* adam_lesson.cuh - arrays, shapes, reference and tolerance of a step of Adam and AdamW: for the program, its test and
 * the exercises. */
#ifndef PHASE4_TRAINING_ADAM_LESSON_CUH
#define PHASE4_TRAINING_ADAM_LESSON_CUH

#include "phase4_training/01_sgd/sgd_lesson.cuh"
#include "phase4_training/02_adam/adam.cuh"

/* Of the third step, where the corrections are large. Small betas and a large epsilon, so that every term shows. */
#define ADAM_LESSON_LR 0.375f
#define ADAM_LESSON_BETA1 0.75
#define ADAM_LESSON_BETA2 0.875
#define ADAM_LESSON_DECAY 0.125f
#define ADAM_LESSON_EPSILON 0.0625f
enum { ADAM_LESSON_STEP = 2 };

static inline Hyper adam_lesson_hyper(void) {
  Hyper h;
  memset(&h, 0, sizeof h);
  h.weight_decay = ADAM_LESSON_DECAY;
  h.epsilon = ADAM_LESSON_EPSILON;
  h.beta1 = ADAM_LESSON_BETA1;
  h.beta2 = ADAM_LESSON_BETA2;
  return h;
}

static inline void adam_lesson_cpu(OptimizerArrays<2> a, int tensors, size_t n, AdamRule rule, StepValues step) {
  const size_t decayed = tensor_begin(n, tensors, tensors_weights(tensors));
  tensors_lesson_copy(a, n);
  const long t = step.first == 1 ? 10000 : ADAM_LESSON_STEP + 1; /* adam_uncorrected_call(): the powers are 0 */
  adam_update_cpu(a.new_w, a.new_slot[0], a.new_slot[1], a.grad, n, decayed, step.lr, rule.beta1, rule.beta2,
                  rule.epsilon, rule.weight_decay, rule.decoupled, t);
}

static inline void adam_lesson_parts(LessonLauncher launch, float *const *array, const int *size, int decoupled,
                                     int corrected) {
  const Hyper h = adam_lesson_hyper();
  const StepValues plain = {ADAM_LESSON_LR, 1, 1, 1, 0, 0};
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((AdamLauncher *)launch)(tensors_lesson_arrays<2>(array, begin), size[0], n, adam_rule(&h, decoupled),
                               corrected ? step_values(ADAM_LESSON_LR, &h, ADAM_LESSON_STEP) : plain);
  }
}

static inline void adam_call(LessonLauncher launch, float *const *array, const int *size) {
  adam_lesson_parts(launch, array, size, 0, 1);
}

static inline void adam_uncorrected_call(LessonLauncher launch, float *const *array, const int *size) {
  adam_lesson_parts(launch, array, size, 0, 0);
}

static inline void adamw_call(LessonLauncher launch, float *const *array, const int *size) {
  adam_lesson_parts(launch, array, size, 1, 1);
}

/* The first half by AdamW, the second by Adam. */
static inline void adam_both_call(LessonLauncher launch, float *const *array, const int *size) {
  const Hyper h = adam_lesson_hyper();
  const size_t n = (size_t)size[1], half = n / 2;
  for (int decoupled = 0; decoupled < 2; decoupled++) {
    const size_t begin = decoupled ? 0 : half, count = decoupled ? half : n - half;
    if (count > 0)
      ((AdamLauncher *)launch)(tensors_lesson_arrays<2>(array, begin), size[0], count, adam_rule(&h, decoupled),
                               step_values(ADAM_LESSON_LR, &h, ADAM_LESSON_STEP));
  }
}

static inline LessonVersion adam_version(const char *name, AdamLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* The means are below 3, and each is rounded three times; the corrections multiply `first` by 1.7, and a step is at
 * most 0.375 * 1.7 * 2.3 / sqrt(0.25 * 0.875): a dozen roundings of numbers below 4. */
static inline Tolerance adam_lesson_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 12 * 4 * FLT_EPSILON);
}

static inline Lesson adam_lesson_of(void (*call)(LessonLauncher, float *const *, const int *)) {
  Lesson lesson = lesson_make("adam", "tn", call, (LessonLauncher)adam_lesson_cpu);
  lesson_output(&lesson, "w", "n");
  lesson_output(&lesson, "first", "n");
  lesson_output(&lesson, "second", "n");
  lesson_input(&lesson, "old w", "n");
  lesson_input(&lesson, "old first", "n");
  lesson_input(&lesson, "old second", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_range(&lesson, "old second", 0.25f, 3); /* a mean of squares */
  lesson_scalar(&lesson, "lr", ADAM_LESSON_LR);
  lesson_scalar(&lesson, "beta1", ADAM_LESSON_BETA1);
  lesson_scalar(&lesson, "beta2", ADAM_LESSON_BETA2);
  lesson_scalar(&lesson, "weight_decay", ADAM_LESSON_DECAY);
  lesson.tolerance = adam_lesson_tolerance;
  tensors_lesson_shapes(&lesson);
  return lesson;
}

static inline Lesson adam_lesson(void) {
  Lesson lesson = adam_lesson_of(adam_call);
  lesson_alternative(&lesson, "step.first and step.second were 1", adam_uncorrected_call);
  return lesson;
}
static inline Lesson adamw_lesson(void) { return adam_lesson_of(adamw_call); }
static inline Lesson adam_both_lesson(void) { return adam_lesson_of(adam_both_call); }

#endif /* PHASE4_TRAINING_ADAM_LESSON_CUH */

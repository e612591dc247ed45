/* regularization_lesson.cuh - arrays, shapes, reference and tolerance of soft labels, mixed samples and averaged
 * weights: for the programs, their test and the exercises. */
#ifndef PHASE4_TRAINING_REGULARIZATION_LESSON_CUH
#define PHASE4_TRAINING_REGULARIZATION_LESSON_CUH

#include "phase4_training/01_sgd/sgd_lesson.cuh"
#include "phase4_training/05_regularization/regularization.cuh"

/* ---------------------------------------------------------------------------------------------------------------- */
/* Soft labels */

#define SOFT_LESSON_SMOOTHING 0.25f
#define SOFT_LESSON_SHARE 0.375f

/* The gradient of the mean loss, of smoothed labels of mixed samples. */
static inline void soft_lesson_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftLauncher *)launch)(array[0], array[1], array[2], (const int *)array[3],
                           soft_labels(SOFT_LESSON_SMOOTHING, SOFT_LESSON_SHARE), 1.0f / size[0], size[0], size[1]);
}

/* What a lost factor would have computed, for the diagnoses. */
static inline void soft_lesson_unsmoothed(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftLauncher *)launch)(array[0], array[1], array[2], (const int *)array[3], soft_labels(0, SOFT_LESSON_SHARE),
                           1.0f / size[0], size[0], size[1]);
}
static inline void soft_lesson_unmixed(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftLauncher *)launch)(array[0], array[1], array[2], (const int *)array[3], soft_labels(SOFT_LESSON_SMOOTHING, 0),
                           1.0f / size[0], size[0], size[1]);
}
static inline void soft_lesson_exchanged(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftLauncher *)launch)(array[0], array[1], array[2], (const int *)array[3],
                           soft_labels(SOFT_LESSON_SMOOTHING, 1 - SOFT_LESSON_SHARE), 1.0f / size[0], size[0], size[1]);
}

static inline LessonVersion soft_version(const char *name, SoftLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void soft_lesson_reference(float *losses, float *dlogits, const float *logits, const int *labels,
                                         SoftLabels soft, float scale, int batch, int classes) {
  softmax_cross_entropy_soft_forward_cpu(losses, dlogits, logits, labels, soft, batch, classes);
  softmax_cross_entropy_soft_backward_cpu(dlogits, dlogits, labels, soft, scale, batch, classes);
}

/* exp() errs by 2 units in the last place, the sum of C terms as a random walk. */
static inline double soft_lesson_relative(const int *size) {
  return (10 + 4 * sqrt((double)size[1])) * FLT_EPSILON / 2;
}

/* Of p - target, where digits may cancel, divided by the batch. */
static inline Tolerance soft_lesson_tolerance(const int *size) {
  const double relative = soft_lesson_relative(size);
  return tolerance_make(relative, 2 * relative / size[0]);
}

/* log(sum) and the mean of x - max have errors like sums; x - max is at most 20. */
static inline Tolerance soft_lesson_losses_tolerance(const int *size) {
  return tolerance_make(4 * FLT_EPSILON, 20 * soft_lesson_relative(size));
}

static inline Lesson soft_lesson(void) {
  Lesson lesson = lesson_make("regularization_kernels", "bc", soft_lesson_call, (LessonLauncher)soft_lesson_reference);
  lesson_output(&lesson, "losses", "b");
  lesson_output(&lesson, "dlogits", "bc");
  lesson_input(&lesson, "logits", "bc");
  lesson_labels(&lesson, "labels", "b", 'c');
  lesson_range(&lesson, "logits", 80, 100); /* exp(89) is infinite */
  lesson_scalar(&lesson, "smoothing", SOFT_LESSON_SMOOTHING);
  lesson_scalar(&lesson, "share", SOFT_LESSON_SHARE);
  lesson_alternative(&lesson, "the smoothing were 0", soft_lesson_unsmoothed);
  lesson_alternative(&lesson, "the share were 0", soft_lesson_unmixed);
  lesson_alternative(&lesson, "the two labels were exchanged", soft_lesson_exchanged);
  lesson.tolerance = soft_lesson_tolerance;
  lesson_tolerance(&lesson, "losses", soft_lesson_losses_tolerance);
  lesson.timed = lesson_shape(&lesson, 16384, 1000);
  lesson.counted = lesson_shape(&lesson, 64, 1024);
  /* the first shows faults best; around a warp; what a warp's registers hold, and more; an odd batch has a middle */
  const int shapes[][2] = {{7, 10},  {1, 1},   {2, 3},   {31, 33},  {33, 31}, {5, 127},
                           {2, 129}, {7, 257}, {3, 512}, {2, 1024}, {3, 1025}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Mixed samples */

#define MIXUP_LESSON_SHARE 0.3125f

static inline void mixup_lesson_call(LessonLauncher launch, float *const *array, const int *size) {
  ((MixupLauncher *)launch)(array[0], array[1], size[0], (size_t)size[1], MIXUP_LESSON_SHARE, NULL);
}

static inline void mixup_lesson_exchanged(LessonLauncher launch, float *const *array, const int *size) {
  ((MixupLauncher *)launch)(array[0], array[1], size[0], (size_t)size[1], 1 - MIXUP_LESSON_SHARE, NULL);
}

static inline LessonVersion mixup_version(const char *name, MixupLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void mixup_lesson_reference(float *y, const float *x, int batch, size_t width, float share,
                                          const float *share_at) {
  (void)share_at;
  mixup_cpu(y, x, batch, width, share);
}

/* Exact: mixup_one() rounds once, everywhere. */
static inline Lesson mixup_lesson(void) {
  Lesson lesson =
      lesson_make("regularization_kernels", "bw", mixup_lesson_call, (LessonLauncher)mixup_lesson_reference);
  lesson_output(&lesson, "y", "bw");
  lesson_input(&lesson, "x", "bw");
  lesson_scalar(&lesson, "share", MIXUP_LESSON_SHARE);
  lesson_alternative(&lesson, "share were 1 - share", mixup_lesson_exchanged);
  lesson.most = lesson_shape(&lesson, 65535, INT_MAX);
  lesson.timed = lesson_shape(&lesson, 512, 3 * 64 * 64);
  lesson.counted = lesson_shape(&lesson, 64, 1024);
  /* the first shows faults best; one sample, pairs, an odd batch; widths around a block, with and without float4 */
  const int shapes[][2] = {{7, 31},  {1, 1},   {1, 260}, {2, 3},    {3, 4},
                           {4, 255}, {5, 257}, {6, 784}, {33, 127}, {3, 1021}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

/* ---------------------------------------------------------------------------------------------------------------- */
/* Averaged weights */

#define EMA_LESSON_SHARE 0.4375f

static inline void ema_lesson_call(LessonLauncher launch, float *const *array, const int *size) {
  const StepValues step = {SGD_LESSON_LR, 0, 0, SGD_LESSON_SHARE, EMA_LESSON_SHARE, 0};
  for (int part = 0; part < 2; part++) {
    size_t begin, n = tensors_lesson_part((size_t)size[1], part, &begin);
    if (n > 0)
      ((EmaLauncher *)launch)(tensors_lesson_arrays<2>(array, begin), size[0], n,
                              sgd_rule(SGD_LESSON_MOMENTUM, SGD_LESSON_DECAY, 0), step);
  }
}

static inline LessonVersion ema_version(const char *name, EmaLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void ema_lesson_reference(OptimizerArrays<2> a, int tensors, size_t n, SgdRule rule, StepValues step) {
  tensors_lesson_copy(a, n);
  sgd_update_cpu(a.new_w, a.new_slot[0], a.grad, n, tensor_begin(n, tensors, tensors_weights(tensors)), step.lr,
                 rule.momentum, step.share, rule.nesterov, rule.weight_decay);
  average_cpu(a.new_slot[1], a.new_slot[1], a.new_w, n, step.average);
}

/* As sgd_lesson_tolerance(), and three roundings more. */
static inline Tolerance ema_lesson_tolerance(const int *size) {
  (void)size;
  return tolerance_make(0, 8 * 6 * FLT_EPSILON);
}

static inline Lesson ema_lesson(void) {
  Lesson lesson = lesson_make("ema", "tn", ema_lesson_call, (LessonLauncher)ema_lesson_reference);
  lesson_output(&lesson, "w", "n");
  lesson_output(&lesson, "momentum", "n");
  lesson_output(&lesson, "average", "n");
  lesson_input(&lesson, "old w", "n");
  lesson_input(&lesson, "old momentum", "n");
  lesson_input(&lesson, "old average", "n");
  lesson_input(&lesson, "grad", "n");
  lesson_scalar(&lesson, "lr", SGD_LESSON_LR);
  lesson_scalar(&lesson, "mu", SGD_LESSON_MOMENTUM);
  lesson_scalar(&lesson, "weight_decay", SGD_LESSON_DECAY);
  lesson_scalar(&lesson, "step.average", EMA_LESSON_SHARE);
  lesson.tolerance = ema_lesson_tolerance;
  tensors_lesson_shapes(&lesson);
  return lesson;
}

#endif /* PHASE4_TRAINING_REGULARIZATION_LESSON_CUH */

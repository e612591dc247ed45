/* softmax_cross_entropy_lesson.cuh - arrays, shapes, reference and tolerance of softmax and cross-entropy, forward and
 * backward: for the program, its test and the exercises. */
#ifndef PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_LESSON_CUH
#define PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase1_building_blocks/10_softmax_cross_entropy/softmax_cross_entropy.cuh"

/* losses (batch) and dlogits (batch,classes), from logits (batch,classes) and labels (batch) */
typedef void SoftmaxCrossEntropy(float *losses, float *dlogits, const float *logits, const int *labels, float scale,
                                 int batch, int classes);

/* The gradient of the mean loss. */
static inline void softmax_cross_entropy_call(LessonLauncher launch, float *const *array, const int *size) {
  ((SoftmaxCrossEntropy *)launch)(array[0], array[1], array[2], (const int *)array[3], 1.0f / size[0], size[0],
                                  size[1]);
}

static inline LessonVersion softmax_cross_entropy_version(const char *name, SoftmaxCrossEntropy *launch,
                                                          const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline void softmax_cross_entropy_reference(float *losses, float *dlogits, const float *logits,
                                                   const int *labels, float scale, int batch, int classes) {
  softmax_cross_entropy_forward_cpu(losses, dlogits, logits, labels, batch, classes);
  softmax_cross_entropy_backward_cpu(dlogits, dlogits, labels, scale, batch, classes);
}

/* exp() is accurate to 2 units in the last place, and its argument is exact: the difference of two logits of 80..100
 * is. The error of the sum of C terms grows at most as a random walk (compare.h). */
static inline double softmax_cross_entropy_relative(const int *size) {
  return (8 + 4 * sqrt((double)size[1])) * FLT_EPSILON / 2;
}

/* Of p - 1, where digits may cancel, divided by the batch. */
static inline Tolerance softmax_cross_entropy_tolerance(const int *size) {
  double relative = softmax_cross_entropy_relative(size);
  return tolerance_make(relative, 2 * relative / size[0]);
}

/* The absolute error of log(sum) is the relative error of the sum; then a number up to 20 is subtracted. */
static inline Tolerance softmax_cross_entropy_losses_tolerance(const int *size) {
  return tolerance_make(2 * FLT_EPSILON, softmax_cross_entropy_relative(size) + 20 * FLT_EPSILON);
}

static inline Lesson softmax_cross_entropy_lesson(void) {
  Lesson lesson = lesson_make("softmax_cross_entropy", "bc", softmax_cross_entropy_call,
                              (LessonLauncher)softmax_cross_entropy_reference);
  lesson_output(&lesson, "losses", "b");
  lesson_output(&lesson, "dlogits", "bc");
  lesson_input(&lesson, "logits", "bc");
  lesson_labels(&lesson, "labels", "b", 'c');
  lesson_range(&lesson, "logits", 80, 100); /* exp(89) is infinite: finds kernels that do not subtract the maximum */
  lesson_extreme(&lesson, "logits", 1e4f);  /* finds kernels that take the logarithm of p, which may be 0 */
  lesson.tolerance = softmax_cross_entropy_tolerance;
  lesson_tolerance(&lesson, "losses", softmax_cross_entropy_losses_tolerance);
  lesson.most = lesson_shape(&lesson, INT_MAX - 127, INT_MAX - SOFTMAX_ROW_BLOCK); /* a step beyond is an int still */
  lesson.timed = lesson_shape(&lesson, 4096, 50257);                               /* the vocabulary of GPT-2 */
  lesson.counted = lesson_shape(&lesson, 32, 2048);
  /* the first shows faults best; rows of one element, around a warp, up to what a warp's registers hold, for a block;
   * lengths that are a multiple of four and others; more than SOFTMAX_SHORT_ROW */
  const int shapes[][2] = {{7, 10},  {1, 1},    {31, 33},  {33, 31},  {5, 127},  {2, 200}, {7, 257},
                           {3, 512}, {2, 1000}, {3, 1025}, {4, 1028}, {2, 4099}, {2, 9001}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    lesson_check_shape(&lesson, lesson_shape(&lesson, shapes[i][0], shapes[i][1]));
  return lesson;
}

#endif /* PHASE1_BUILDING_BLOCKS_SOFTMAX_CROSS_ENTROPY_LESSON_CUH */

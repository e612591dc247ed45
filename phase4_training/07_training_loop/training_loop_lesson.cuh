/* training_loop_lesson.cuh - arrays, shapes, references and tolerances of clipping and of the confusion matrix: for the
 * programs gradient_clip and confusion_matrix, their test and the exercises. */
#ifndef PHASE4_TRAINING_TRAINING_LOOP_LESSON_CUH
#define PHASE4_TRAINING_TRAINING_LOOP_LESSON_CUH

#include "common/lesson/lesson.h"
#include "phase4_training/01_sgd/sgd_lesson.cuh"
#include "phase4_training/07_training_loop/confusion_matrix.cuh"
#include "phase4_training/07_training_loop/gradient_clip.cuh"

typedef void ClipLauncher(float *clipped, float *norm, const float *g, int tensors, size_t n, float most,
                          double *scratch);
typedef void ConfusionLauncher(int *counts, const float *logits, const int *labels, int batch, int classes);

/* ---- clipping ---- */

/* Gradients have the root mean square 1, so the norm is about the root of n: of three elements and more it is above. */
#define CLIP_LESSON_MOST 1.25f

enum { CLIP_LESSON_ARRAYS = 3 };

static inline void clip_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ClipLauncher *)launch)(array[0], array[1], array[2], size[0], (size_t)size[1], CLIP_LESSON_MOST,
                           (double *)array[CLIP_LESSON_ARRAYS]);
}

/* What is left where nothing is clipped. */
static inline void clip_not_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ClipLauncher *)launch)(array[0], array[1], array[2], size[0], (size_t)size[1], 1e30f,
                           (double *)array[CLIP_LESSON_ARRAYS]);
}

static inline size_t clip_lesson_workspace(const void *method, const int *size) {
  (void)method;
  (void)size;
  return CLIP_SCRATCH * sizeof(double);
}

static inline LessonVersion clip_version(const char *name, ClipLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

/* A thread adds up n / (CLIP_BLOCKS CLIP_BLOCK) squares in float, at least one, five turns of shuffles follow; that is
 * halved by the root. The factor and the product round once each, and the gradients are below 4. */
static inline double clip_lesson_relative(const int *size) {
  return ((double)size[1] / (CLIP_BLOCKS * CLIP_BLOCK) + 1 + 5) / 2 * FLT_EPSILON + 2 * FLT_EPSILON;
}

static inline Tolerance clip_lesson_tolerance(const int *size) { return tolerance_make(clip_lesson_relative(size), 0); }

static inline Lesson clip_lesson(void) {
  Lesson lesson = lesson_make("gradient_clip", "tn", clip_call, (LessonLauncher)clip_cpu);
  lesson_output(&lesson, "clipped", "n");
  lesson_output(&lesson, "norm", "");
  lesson_input(&lesson, "g", "n");
  lesson_scalar(&lesson, "most", CLIP_LESSON_MOST);
  lesson_alternative(&lesson, "nothing were clipped", clip_not_call);
  lesson.tolerance = clip_lesson_tolerance;
  lesson.workspace = clip_lesson_workspace;
  lesson.method = "clip"; /* all versions need the same */
  tensors_lesson_shapes(&lesson);
  lesson_check_shape(&lesson, lesson_shape(&lesson, 5, CLIP_BLOCKS * CLIP_BLOCK + 1001)); /* more than threads */
  return lesson;
}

/* ---- the confusion matrix ---- */

static inline void confusion_call(LessonLauncher launch, float *const *array, const int *size) {
  ((ConfusionLauncher *)launch)((int *)array[0], array[1], (const int *)array[2], size[0], size[1]);
}

static inline int confusion_lesson_check(const int *size, Error *err) {
  if (size[1] <= CONFUSION_MOST) return 0;
  return error_set(err, "%d classes: a block counts those of up to %d; take fewer", size[1], CONFUSION_MOST);
}

static inline LessonVersion confusion_version(const char *name, ConfusionLauncher *launch, const char *limit) {
  return lesson_version(name, (LessonLauncher)launch, limit);
}

static inline Lesson confusion_lesson(void) {
  static const char *const shapes[] = {"1999x7", "1x1", "3x2", "31x10", "127x3", "128x32", "129x10", "1021x17"};
  Lesson lesson = lesson_make("confusion_matrix", "bc", confusion_call, (LessonLauncher)confusion_cpu);
  lesson_output(&lesson, "counts", "cc");
  lesson_element(&lesson, "counts", LESSON_INT);
  lesson_input(&lesson, "logits", "bc");
  lesson_labels(&lesson, "labels", "b", 'c');
  lesson.shape_check = confusion_lesson_check;
  lesson.timed = lesson_shape(&lesson, 1 << 20, 10);
  lesson.counted = lesson_shape(&lesson, 4096, 10);
  lesson_check_shapes(&lesson, shapes, sizeof shapes / sizeof *shapes);
  return lesson;
}

#endif /* PHASE4_TRAINING_TRAINING_LOOP_LESSON_CUH */

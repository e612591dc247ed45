/* augmentation_frame_lesson.cuh - what networks use, common/nn/augment_fast.cuh, as the last version of the lesson. */
#ifndef PHASE4_TRAINING_AUGMENTATION_FRAME_LESSON_CUH
#define PHASE4_TRAINING_AUGMENTATION_FRAME_LESSON_CUH

#include "common/nn/augment_fast.cuh"
#include "phase4_training/06_augmentation/augmentation_lesson.cuh"

static inline void augmentation_frame(float *y, const AugmentSource *source, const AugmentMost *most, int batch,
                                      void *workspace) {
  (void)workspace;
  augment_gpu(y, source, most, batch);
}

/* It needs no workspace. */
static inline LessonVersion augmentation_frame_version(const char *limit) {
  return lesson_version("frame", (LessonLauncher)augmentation_frame, limit);
}

#endif /* PHASE4_TRAINING_AUGMENTATION_FRAME_LESSON_CUH */

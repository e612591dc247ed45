/* Checks the exercise of augmentation.cuh (learn/check.h): a square of each image becomes the mean. */
#include "phase4_training/06_augmentation/augmentation_lesson.cuh"

#include "learn/check.h"

static inline Lesson augmentation_cutout_lesson(void) {
  Lesson lesson = augmentation_lesson_alone<AUGMENTATION_CUTOUT>();
  lesson_alternative(&lesson, "the square were in the first channel only",
                     augmentation_slip_call<AUGMENTATION_CUTOUT, SLIP_ONE_PLANE>);
  lesson_alternative(&lesson, "the square's row were its column",
                     augmentation_slip_call<AUGMENTATION_CUTOUT, SLIP_EXCHANGED>);
  return lesson;
}

CHECK_MAIN(augmentation_cutout_lesson())
